//! The words of a command line that stand for tools.

/// Measurements.
pub(super) const BENCH: &str = "bench";
/// Advice.
pub(super) const ADVISE: &str = "advise";
/// Drawing.
pub(super) const PICTURE: &str = "picture";
/// A look at files that a job has left.
pub(super) const INSPECT: &str = "inspect";
/// Job scripts for Slurm.
pub(super) const SBATCH: &str = "sbatch";
/// What makes a shell complete command lines.
pub(super) const COMPLETIONS: &str = "completions";
/// Manual pages.
pub(super) const MANUAL: &str = "man";
/// The jobs that there are.
pub(super) const PS: &str = "ps";
/// How a job is.
pub(super) const STATUS: &str = "status";
/// The same, live.
pub(super) const TOP: &str = "top";
/// A rank is to be killed.
pub(super) const KILL: &str = "kill";
/// A checkpoint is to be written to files.
pub(super) const CHECKPOINT: &str = "checkpoint";
/// A job is to end.
pub(super) const STOP: &str = "stop";
/// The hosts of a job.
pub(super) const HOSTS: &str = "hosts";
/// Help on the words behind it.
pub(super) const HELP: &str = "help";

/// The tools that are one command, and what each is for, in the order of the help.
pub(super) const PURPOSES: [(&str, &str); 13] = [
    (ADVISE, "Measure a program and say which scheme to use, and how often"),
    (INSPECT, "Say which checkpoints there are in files, and whether they are whole"),
    (PICTURE, "Draw a shot gather or a velocity model"),
    (SBATCH, "Print a job script for Slurm, or queue it"),
    (PS, "List the jobs of this user on this host"),
    (STATUS, "Say how a job is: ranks, hosts, steps, checkpoints, failures"),
    (TOP, "Say the same again every second"),
    (KILL, "Kill the process of a rank, which the job survives as it survives any failure"),
    (CHECKPOINT, "Have a job with --spill write its newest checkpoint to files now"),
    (STOP, "End a job, as SIGTERM to its launcher does"),
    (HOSTS, "List the hosts of a job, or add one, drain or remove it"),
    (COMPLETIONS, "Print what makes a shell complete command lines of ftrun"),
    (MANUAL, "Print the manual page of ftrun, or of an app or a tool"),
];

/// Whether a word stands for a tool.
pub(super) fn is_tool(word: &str) -> bool {
    word == BENCH || PURPOSES.iter().any(|(known, _)| *known == word)
}

/// What a tool is for that is one command.
pub(super) fn purpose(word: &str) -> &'static str {
    PURPOSES.iter().find(|(known, _)| *known == word).map_or("", |(_, purpose)| purpose)
}
