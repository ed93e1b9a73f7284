//! What a batch system has given to the job in which `ftrun` is started: hosts, how many ranks each of them is to have, and what starts
//! agents on them. The environment says so, or a file that it names; each system has a file here that says where.

mod kubernetes;
mod lsf;
mod pbs;
mod slurm;

use std::path::Path;

use crate::cluster::{HostError, HostList};
use crate::starter::Starter;
pub use slurm::Tasks;

/// Hosts that are there for this job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// What has given them, such as "Slurm job 17".
    pub name: String,
    /// The hosts, with as many slots as tasks were asked for.
    pub hosts: HostList,
    /// Which of them this is; none of them: the job was started elsewhere.
    pub(super) own: Option<String>,
    pub(super) starter: Starter,
}

/// What can be seen of the system that `ftrun` was started by.
#[expect(missing_debug_implementations, reason = "functions")]
pub struct Surroundings<'a> {
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file, or why it cannot be read.
    pub text: &'a dyn Fn(&Path) -> Result<String, String>,
    /// Whether there is such a command.
    pub has_command: &'a dyn Fn(&str) -> bool,
}

/// An allocation cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// Not a list of hosts.
    #[error("{variable} is '{text}', which is no list of hosts; --hosts names them")]
    Hosts {
        /// The variable of the environment.
        variable: &'static str,
        /// What it says.
        text: String,
    },
    /// Not a number of tasks for each host.
    #[error(
        "{variable} is '{text}', which is no number of tasks for each of {hosts} hosts; --hosts names hosts and slots"
    )]
    Counts {
        /// The variable of the environment.
        variable: &'static str,
        /// What it says.
        text: String,
        /// How many hosts there are.
        hosts: usize,
    },
    /// A file that has the hosts cannot be used.
    #[error("{variable} is '{path}': {why}; --hosts names hosts")]
    File {
        /// The variable of the environment.
        variable: &'static str,
        /// The file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A number of pods, or the name of one, that makes no sense.
    #[error("{variable} is '{text}', which is {what}; --hosts names hosts")]
    Pods {
        /// The variable of the environment.
        variable: &'static str,
        /// What it says.
        text: String,
        /// What should be there.
        what: &'static str,
    },
    /// A host that cannot be used.
    #[error("a host of the allocation: {0}")]
    Host(HostError),
    /// The command that is to start agents is missing.
    #[error("{name} starts things on its hosts by {command}, and there is no such command in $PATH")]
    Command {
        /// What has given the hosts.
        name: String,
        /// The command.
        command: &'static str,
    },
}

impl Allocation {
    /// That of the batch system that this is part of a job of; none: it is part of no such job.
    ///
    /// # Errors
    /// What the system says does not fit together.
    pub fn of(surroundings: &Surroundings<'_>) -> Result<Option<Self>, AllocationError> {
        for system in [slurm::allocation, pbs::allocation, lsf::allocation, kubernetes::allocation] {
            if let Some(found) = system(surroundings)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Surroundings<'_> {
    /// Hosts in the file that a variable names, one a line and as often as it has slots.
    fn hosts_in_file(&self, variable: &'static str) -> Result<Option<HostList>, AllocationError> {
        let Some(path) = (self.variable)(variable) else { return Ok(None) };
        let hosts = (self.text)(Path::new(&path))
            .and_then(|text| HostList::from_lines(&text).map_err(|error| error.to_string()));
        hosts.map(Some).map_err(|why| AllocationError::File { variable, path, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The allocation where these variables, files and commands are.
    pub(super) fn allocated(
        variables: &[(&str, &str)],
        files: &[(&str, &str)],
        commands: &[&str],
    ) -> Result<Option<Allocation>, AllocationError> {
        let value = |list: &[(&str, &str)], name: &str| {
            list.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        };
        Allocation::of(&Surroundings {
            variable: &|name| value(variables, name),
            text: &|path| value(files, path.to_str().unwrap()).ok_or_else(|| "No such file".into()),
            has_command: &|name| commands.contains(&name),
        })
    }

    #[test]
    fn outside_of_jobs_nothing_is_given() {
        assert_eq!(allocated(&[("HOSTNAME", "n1")], &[], &["srun", "blaunch"]), Ok(None));
    }
}
