//! `ftrun sbatch`: the script by which Slurm runs a job that outlives its nodes, and goes on from its files when it is started again.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, ExitCode, Stdio};

use clap::Parser;
use ft_launch::quoted;

use crate::say::{complain, page};

/// The command that queues a script.
const SBATCH: &str = "sbatch";
/// What asks for that.
const SUBMIT: &str = "--submit";
/// What every job has: it outlives its nodes, and what it prints when it is started again goes behind what was there.
const ALWAYS: [&str; 2] = ["--no-kill", "--open-mode=append"];
/// What a job has that writes files: it may be started again, and is told a minute before its time is over.
const WITH_FILES: [&str; 2] = ["--requeue", "--signal=B:TERM@60"];

/// Print a job script for Slurm, or queue it
#[derive(Debug, Parser)]
#[command(
    name = "sbatch",
    display_name = "ftrun sbatch",
    bin_name = "ftrun sbatch",
    version,
    max_term_width = 110
)]
#[command(override_usage = "ftrun sbatch [--submit] [OPTIONS OF SBATCH] -- [OPTIONS] PROGRAM [ARGS...]")]
#[command(
    after_help = "The job outlives its nodes (--no-kill). With --spill DIR among its options it is told before its time is over \
                        (--signal) and writes files, and when Slurm starts it again (--requeue) it goes on from them."
)]
pub(crate) struct Sbatch {
    /// Hand the script to sbatch; without it the script is printed
    #[arg(long)]
    submit: bool,
    /// Options for sbatch, such as --nodes=3 --ntasks-per-node=2; they win over those of the script
    #[arg(value_name = "OPTIONS OF SBATCH", allow_hyphen_values = true)]
    options: Vec<String>,
    /// The job, as it stands behind the word `ftrun`. It is taken off before the others are read: they may look like anything.
    #[arg(skip)]
    job: Vec<OsString>,
}

impl Sbatch {
    /// The same for this job, as it stands behind the word `ftrun`.
    pub(crate) fn of_job(mut self, job: &[OsString]) -> Self {
        // Among words that are not known, one that is goes unnoticed.
        let is_own = |word: &String| word == SUBMIT;
        self.submit |= self.options.iter().any(is_own);
        self.options.retain(|word| !is_own(word));
        Self { job: job.to_vec(), ..self }
    }

    /// Says what is wrong with it that `sbatch` would not say itself.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.job.is_empty() {
            return Err("there is no job: it stands behind '--'".into());
        }
        if let Some(word) = self.options.first().filter(|word| !word.starts_with('-')) {
            return Err(format!("'{word}' is no option of sbatch: the job stands behind '--'"));
        }
        let broken = self.options.iter().find(|word| word.contains('\n'));
        broken
            .map_or(Ok(()), |word| Err(format!("{word:?} has a line break, which a script has no place for")))
    }

    /// Prints the script or queues it. `writes_files`: the job has a directory for its checkpoints.
    pub(crate) fn run(&self, writes_files: bool) -> ExitCode {
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => {
                complain(format_args!("the path of this program: {error}"));
                return ExitCode::FAILURE;
            }
        };
        let script = self.script(program.as_os_str(), writes_files);
        if self.submit { submit(&script) } else { page(script) }
    }

    fn script(&self, program: &OsStr, writes_files: bool) -> Vec<u8> {
        let with_files = WITH_FILES.into_iter().filter(|_| writes_files);
        let mut script = "#!/bin/bash".to_owned();
        for option in ALWAYS.into_iter().chain(with_files) {
            script += &format!("\n#SBATCH {option}");
        }
        for word in &self.options {
            // A value may stand behind its option.
            script += if word.starts_with('-') { "\n#SBATCH " } else { " " };
            script += &quoted(word.as_ref()).to_string_lossy();
        }
        let mut script = (script + "\nexec").into_bytes();
        for word in std::iter::once(program).chain(self.job.iter().map(OsString::as_os_str)) {
            script.push(b' ');
            script.extend_from_slice(quoted(word).as_bytes());
        }
        script.push(b'\n');
        script
    }
}

/// Gives the script to `sbatch`, whose words and status are passed on.
fn submit(script: &[u8]) -> ExitCode {
    let queued = Command::new(SBATCH).stdin(Stdio::piped()).spawn().and_then(|mut sbatch| {
        // One that does not read it says why.
        let _ = sbatch.stdin.take().map(|mut stdin| stdin.write_all(script));
        sbatch.wait()
    });
    match queued {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            complain(format_args!("{SUBMIT}: cannot start {SBATCH}: {error}"));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Sbatch {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let end = words.iter().position(|word| word == "--").unwrap();
        Sbatch::try_parse_from(&words[..end]).unwrap().of_job(&words[end + 1..])
    }

    fn script(line: &str, writes_files: bool) -> String {
        String::from_utf8(read(line).script("/opt/ft run".as_ref(), writes_files)).unwrap()
    }

    #[test]
    fn options_of_sbatch_come_last_and_words_survive_the_shell() {
        assert_eq!(
            script("sbatch -N 3 --ntasks-per-node=2 --submit --comment=it's -- -n 6 cg --rhs a$b", true),
            "#!/bin/bash\n#SBATCH --no-kill\n#SBATCH --open-mode=append\n#SBATCH --requeue\n#SBATCH --signal=B:TERM@60\n\
             #SBATCH -N 3\n#SBATCH --ntasks-per-node=2\n#SBATCH '--comment=it'\\''s'\n\
             exec '/opt/ft run' -n 6 cg --rhs 'a$b'\n"
        );
        assert!(read("sbatch --submit -- cg").submit && read("sbatch -N 3 --submit -- cg").submit);
        assert!(!read("sbatch -N 3 -- cg --submit").submit);
    }

    #[test]
    fn without_files_nothing_is_gained_by_a_second_start() {
        let script = script("sbatch -- cg --poisson 8", false);
        assert_eq!(
            script,
            "#!/bin/bash\n#SBATCH --no-kill\n#SBATCH --open-mode=append\nexec '/opt/ft run' cg --poisson 8\n"
        );
    }

    #[test]
    fn what_is_no_option_is_refused() {
        assert_eq!(
            read("sbatch cg -- cg").check(),
            Err("'cg' is no option of sbatch: the job stands behind '--'".into())
        );
        let broken = Sbatch { options: vec!["--comment=a\nb".into()], ..read("sbatch --  cg") };
        assert!(broken.check().is_err() && read("sbatch --  cg").check().is_ok());
        assert_eq!(read("sbatch -N 3 --  ").check(), Err("there is no job: it stands behind '--'".into()));
    }
}
