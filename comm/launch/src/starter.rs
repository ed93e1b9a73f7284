//! What starts an agent on another host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::remote;

/// The command that starts a program on another host, if no other is named.
pub(super) const SSH: &str = "ssh";
/// The command of Slurm.
pub(super) const SRUN: &str = "srun";

/// What `ssh` is told, besides the host: no windows from there, and no questions, as it runs in the background, where it would be stopped
/// if it asked the terminal; and to give up before the launcher does, as it knows the reason.
const UNASKED: [&str; 3] = ["-x", "-oBatchMode=yes", "-oConnectTimeout=8"];

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
    /// `ssh`.
    Ssh,
    /// Another command: `EXEC HOST COMMAND...`, which may join its words for a shell as `ssh` does.
    Command(PathBuf),
    /// A step of the job of Slurm that this is part of.
    Slurm,
}

impl Starter {
    /// The command that starts `program` as an agent on `host`, and its arguments.
    pub(super) fn command(&self, host: &str, program: &Path, agent: &str) -> (PathBuf, Vec<OsString>) {
        match self {
            Self::Ssh => {
                let mut arguments: Vec<OsString> = UNASKED.map(OsString::from).into();
                arguments.push(host.into());
                arguments.extend(remote::command(program, agent));
                (SSH.into(), arguments)
            }
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
        let by_ssh = "ssh|-x|-oBatchMode=yes|-oConnectTimeout=8|n2|'/a b/ftrun'|--as-agent";
        assert_eq!(words(&Starter::Ssh), by_ssh);
        assert_eq!(words(&Starter::Command("blaunch".into())), "blaunch|n2|'/a b/ftrun'|--as-agent");
        let words = words(&Starter::Slurm);
        assert!(words.starts_with("srun|--mpi=none|"), "{words}");
        assert!(words.ends_with("|--nodelist=n2|/a b/ftrun|--as-agent"), "{words}");
    }
}
