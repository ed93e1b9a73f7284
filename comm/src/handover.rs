//! What another launcher has started several times: no job of one rank each, of which none would know of the others.
//!
//! Each task of `srun` becomes `ftrun`, of which the first one makes one job of as many ranks, while the others stand aside. So does each process of `mpirun` and
//! `mpiexec` where the program was built with MPI, and then the others are the ranks. Else what they have started several times is refused, as they start nothing on other
//! hosts for us.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ft_proto::error::CommError;

const SRUN: &str = "srun";

/// Who starts a program several times at once, each a rank, and the variable that says how many times.
const OTHERS: [(&str, &str); 3] =
    [(SRUN, "SLURM_STEP_NUM_TASKS"), ("mpirun", "OMPI_COMM_WORLD_SIZE"), ("mpiexec", "PMI_SIZE")];

/// How `ftrun` is told that `mpirun` has started its ranks.
const OVER_MPI: [&str; 2] = ["--transport", "mpi"];

/// The launcher, as a file.
const FTRUN: &str = "ftrun";

/// Returns where this process is alone, and not at all where it becomes `ftrun`.
///
/// # Errors
/// It is neither.
pub(crate) fn require_alone() -> Result<(), CommError> {
    match several(|name| std::env::var(name).ok()) {
        None => Ok(()),
        Some((SRUN, _, count)) => Err(CommError::Join(become_ftrun(SRUN, count, &[]))),
        Some((launcher, _, count)) if cfg!(feature = "mpi") => {
            Err(CommError::Join(become_ftrun(launcher, count, &OVER_MPI)))
        }
        Some((launcher, name, count)) => Err(CommError::Join(format!(
            "{launcher} has started this program {count} times, and each would be a job of one rank: ftrun -n {count} PROGRAM starts one of \
             {count} ranks ({name} is {count}; env -u {name} PROGRAM is on its own)"
        ))),
    }
}

/// Who has started this several times, the variable that says so, and how many times.
fn several(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, &'static str, u64)> {
    let count = |name| variable(name).and_then(|text| text.parse().ok()).filter(|count: &u64| *count > 1);
    OTHERS.iter().find_map(|(launcher, name)| Some((*launcher, *name, count(name)?)))
}

/// Makes this process `ftrun` with these options, this program and its arguments. Returns only if that cannot be, with the reason.
fn become_ftrun(launcher: &str, count: u64, options: &[&str]) -> String {
    let why = match std::env::current_exe() {
        Ok(program) => match find(&program) {
            Some(ftrun) => {
                let error =
                    Command::new(&ftrun).args(options).arg(program).args(std::env::args_os().skip(1)).exec();
                format!("{} cannot be run: {error}", ftrun.display())
            }
            None => "it is neither beside the program nor in $PATH".to_owned(),
        },
        Err(error) => format!("the file of this program is not known: {error}"),
    };
    format!(
        "{launcher} has started this program {count} times, of which ftrun would make one job of {count} ranks, but {why}"
    )
}

/// The launcher: beside the program, or in `$PATH`.
fn find(program: &Path) -> Option<PathBuf> {
    let beside = program.parent().map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(FTRUN)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_another_launcher_has_started_several_times_is_no_job_of_one_rank() {
        let with = |name: &'static str, value: &'static str| {
            several(move |other| (other == name).then(|| value.to_owned()))
        };
        for fine in [with("SLURM_STEP_NUM_TASKS", "1"), with("PMI_SIZE", "x"), with("RANK", "4")] {
            assert_eq!(fine, None);
        }
        assert_eq!(with("SLURM_STEP_NUM_TASKS", "8"), Some(("srun", "SLURM_STEP_NUM_TASKS", 8)));
        assert_eq!(with("OMPI_COMM_WORLD_SIZE", "2"), Some(("mpirun", "OMPI_COMM_WORLD_SIZE", 2)));
    }

    #[test]
    fn the_launcher_beside_a_program_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let ftrun = folder.path().join(FTRUN);
        std::fs::create_dir(&ftrun).unwrap();
        assert_ne!(find(&folder.path().join("program")).as_deref(), Some(&*ftrun), "it is a folder");
        std::fs::remove_dir(&ftrun).unwrap();
        std::fs::write(&ftrun, "").unwrap();
        assert_eq!(find(&folder.path().join("program")), Some(ftrun));
    }
}
