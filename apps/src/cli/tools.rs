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
/// Help on the words behind it.
pub(super) const HELP: &str = "help";

/// The tools that are one command, and what each is for, in the order of the help.
pub(super) const PURPOSES: [(&str, &str); 6] = [
    (ADVISE, "Measure a program and say which scheme to use, and how often"),
    (INSPECT, "Say which checkpoints there are in files, and whether they are whole"),
    (PICTURE, "Draw a shot gather or a velocity model"),
    (SBATCH, "Print a job script for Slurm, or queue it"),
    (COMPLETIONS, "Print what makes a shell complete command lines of ftrun"),
    (MANUAL, "Print the manual page of ftrun, or of an app or a tool"),
];

/// What a tool is for that is one command.
pub(super) fn purpose(word: &str) -> &'static str {
    PURPOSES.iter().find(|(known, _)| *known == word).map_or("", |(_, purpose)| purpose)
}
