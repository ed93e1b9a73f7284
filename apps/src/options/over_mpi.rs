//! Ranks that `mpirun` has started (`--transport mpi`): how many there are, and which options are for a launcher that starts its ranks itself.

use ft_comm::transport::Carrier;
use ft_launch::MpiTask;

use super::Options;
use crate::words::count;

impl Options {
    /// The process of `mpirun` that this is, if its processes are to be the ranks.
    ///
    /// # Errors
    /// They are, and no `mpirun` has started this one.
    pub(crate) fn mpi_task(&self) -> Result<Option<MpiTask>, String> {
        if self.carrier()? != Carrier::Mpi {
            return Ok(None);
        }
        let task = MpiTask::of(&|name| std::env::var(name).ok());
        let command = "mpirun -n N ftrun --transport mpi [OPTIONS] PROGRAM";
        task.map(Some)
            .ok_or_else(|| format!("--transport mpi is for ranks that MPI's own launcher starts: {command}"))
    }

    /// Whether the other options go with it.
    pub(super) fn check_mpi(&self) -> Result<(), String> {
        if self.task.is_none() {
            return Ok(());
        }
        let others = [
            (self.hosts.is_some(), "--hosts"),
            (self.hostfile.is_some(), "--hostfile"),
            (self.launcher_exec.is_some(), "--launcher-exec"),
            (self.ppn.is_some(), "--ppn"),
            (self.spare_hosts > 0, "--spare-hosts"),
            (self.keep_memory, "--keep-memory"),
            (self.remote_path.is_some(), "--remote-path"),
        ];
        match others.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Err(format!("{option} does not go with --transport mpi: mpirun starts the ranks"))
            }
            None => Ok(()),
        }
    }

    /// Ranks among the processes of `mpirun`, if they are those; the others are spares.
    pub(super) fn ranks_of_mpi(&self) -> Option<usize> {
        let task = self.task.filter(|_| self.parity_ranks == 0)?;
        Some((task.count as usize).saturating_sub(self.spares).max(1))
    }

    /// Whether `mpirun` has started as many processes as this many ranks and the spares are.
    pub(crate) fn check_task(&self, total: usize) -> Result<(), String> {
        let Some(task) = self.task else { return Ok(()) };
        let wanted = total + self.spares;
        if wanted == task.count as usize {
            return Ok(());
        }
        Err(format!(
            "mpirun has started {} process{}, where {} and {} are wanted: mpirun -n {wanted}",
            task.count,
            if task.count == 1 { "" } else { "es" },
            count(total as u64, "rank"),
            count(self.spares as u64, "spare"),
        ))
    }
}
