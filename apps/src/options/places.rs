//! Where a job runs: the hosts that a file names or a batch system has given, and the folder of its ranks.

use std::path::{Path, PathBuf};

use ft_launch::{Allocation, AllocationError, HostList, Surroundings};

use super::Options;
use crate::shell::in_path;
use crate::text_file::read_text;

impl Options {
    /// The same with its hosts: those of the host file, which only the launcher may read, as other hosts need not have it; or those that
    /// a batch system has given, if no others are named.
    ///
    /// # Errors
    /// The file or the allocation cannot be read, or names no hosts.
    pub(crate) fn with_hosts(&self) -> Result<Self, String> {
        let mut options = self.clone();
        options.task = options.mpi_task()?;
        options.check_mpi()?;
        if let Some(file) = options.hostfile.take() {
            options.hosts = Some(hosts_of(&file)?);
        } else if options.hosts.is_none() && options.task.is_none() {
            options.allocation = options.allocated().map_err(|error| error.to_string())?;
            options.hosts = options.allocation.as_ref().map(|allocation| allocation.hosts.clone());
        }
        if options.launcher_exec.is_some() && options.hosts.is_none() {
            return Err("--launcher-exec starts things on hosts: name some with --hosts or --hostfile".into());
        }
        if options.spare_hosts > 0 && options.hosts.is_none() {
            return Err("--spare-hosts keeps some of the hosts: name them with --hosts or --hostfile".into());
        }
        let given =
            options.allocation.as_ref().map(|allocation| allocation.hosts.slots_without(options.spare_hosts));
        if let Some(slots) = options.ppn {
            let hosts = options.hosts.take().ok_or("--ppn is for ranks on hosts: name them with --hosts")?;
            let hosts = hosts.with_slots(slots);
            options.allocation.iter_mut().for_each(|allocation| allocation.hosts = hosts.clone());
            options.hosts = Some(hosts);
        }
        options.check_slots(given)?;
        options.check().map(|()| options)
    }

    /// Whether the slots that a batch system has given, if it has, are enough.
    fn check_slots(&self, given: Option<usize>) -> Result<(), String> {
        let (ranks, Some(slots), Some(Allocation { name, .. })) = (self.ranks(), given, &self.allocation)
        else {
            return Ok(());
        };
        if ranks <= slots || self.oversubscribe {
            return Ok(());
        }
        Err(format!(
            "{ranks} ranks are too many for the {slots} slots of {name}: --oversubscribe lets some share one"
        ))
    }

    /// What a batch system has given. A command that is named takes the place of its own.
    fn allocated(&self) -> Result<Option<Allocation>, AllocationError> {
        Allocation::of(&Surroundings {
            variable: &|name| std::env::var(name).ok(),
            text: &read_text,
            has_command: &|name| self.launcher_exec.is_some() || in_path(name).is_some(),
        })
    }

    /// Goes to the folder of the ranks, which they inherit; `program` and what else was named from here is found from there.
    ///
    /// # Errors
    /// There is no such folder.
    pub(crate) fn move_to_folder(&mut self, program: Option<&mut PathBuf>) -> Result<(), String> {
        let Some(folder) = self.wdir.clone() else { return Ok(()) };
        let refused = |error: std::io::Error| format!("--wdir: cannot work in {}: {error}", folder.display());
        // A command without a `/` is looked for as a shell would.
        let is_path = |path: &&mut PathBuf| path.as_os_str().as_encoded_bytes().contains(&b'/');
        let exec = self.launcher_exec.as_mut().filter(is_path);
        for path in [program, exec, self.timeline.as_mut()].into_iter().flatten() {
            *path = std::path::absolute(&path).map_err(refused)?;
        }
        std::env::set_current_dir(&folder).map_err(refused)
    }
}

/// The hosts that a host file names.
fn hosts_of(file: &Path) -> Result<HostList, String> {
    let text =
        read_text(file).map_err(|error| format!("--hostfile: cannot read {}: {error}", file.display()))?;
    HostList::from_lines(&text).map_err(|error| format!("--hostfile {}: {error}", file.display()))
}
