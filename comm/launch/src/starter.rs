//! What starts an agent on another host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::remote;

/// The command that starts a program on another host, if no other is named.
const SSH: &str = "ssh";
/// The command of Slurm.
pub(super) const SRUN: &str = "srun";

/// What `srun` is told, besides the host: a step of one task for an agent, whose ranks may use all of the host. It is no end of
/// the job when it ends, nor when a node is lost: that is for the agents' links to tell.
const STEP: [&str; 9] = [
    "--mpi=none",
    "--nodes=1",
    "--ntasks=1",
    "--overlap",
    "--cpu-bind=none",
    "--mem=0",
    "--no-kill",
    "--kill-on-bad-exit=0",
    "--quiet",
];

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Starter {
    /// A command such as `ssh`: `EXEC HOST COMMAND...`, which may join its words for a shell.
    Command(PathBuf),
    /// A step of the job of Slurm that this is part of.
    Slurm,
}

impl Starter {
    /// `ssh`.
    pub(super) fn ssh() -> Self {
        Self::Command(SSH.into())
    }

    /// The command that starts `program` as an agent on `host`, and its arguments.
    pub(super) fn command(&self, host: &str, program: &Path, agent: &str) -> (PathBuf, Vec<OsString>) {
        match self {
            Self::Command(exec) => {
                let [program, agent] = remote::command(program, agent);
                (exec.clone(), vec![host.into(), program, agent])
            }
            Self::Slurm => {
                let mut arguments: Vec<OsString> = STEP.map(OsString::from).into();
                arguments.extend([format!("--nodelist={host}").into(), program.into(), agent.into()]);
                (SRUN.into(), arguments)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_host_and_what_is_to_run_there() {
        let words = |starter: &Starter| {
            let (exec, arguments) = starter.command("n2", Path::new("/a b/ftrun"), "--as-agent");
            let words = std::iter::once(exec.into_os_string()).chain(arguments);
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join("|")
        };
        assert_eq!(words(&Starter::ssh()), "ssh|n2|'/a b/ftrun'|--as-agent");
        assert_eq!(words(&Starter::Command("blaunch".into())), "blaunch|n2|'/a b/ftrun'|--as-agent");
        let words = words(&Starter::Slurm);
        assert!(words.starts_with("srun|--mpi=none|"), "{words}");
        assert!(words.ends_with("|--nodelist=n2|/a b/ftrun|--as-agent"), "{words}");
    }
}
