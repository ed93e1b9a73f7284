//! The programs of both sides: how they are started, and what they print.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::case::{CASES, Figure};
use crate::comparison::{Watch, built, folder, missing};
use crate::mpi::{AS_ROOT, Mpi};
use ft_tools::harness::{Children, HarnessError};

const PEER: &str = "petsc_solvers";
/// Longest time of a job.
const LIMIT: Duration = Duration::from_secs(180);
/// How far the norms of a product of equal matrices may lie apart, by the order of additions.
const NORMS_APART: f64 = 1e-10;
/// The largest true residual of a solve to 1e-8.
const RESIDUAL: f64 = 1e-7;
/// Repeats of the dot products.
const DOT_REPEATS: u32 = 20;

/// One start of a program. Cases are given by their place in [`CASES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// Our side of a case.
    Ours { case: usize, ranks: usize },
    /// That of PETSc.
    Petsc { case: usize, ranks: usize },
    /// Both dot products of so many elements.
    Dot(u32),
}

impl Job {
    /// Both sides.
    pub(super) fn beside(case: usize, ranks: usize) -> [Self; 2] {
        [Self::Ours { case, ranks }, Self::Petsc { case, ranks }]
    }

    /// What it has to print.
    fn due(self) -> &'static [Figure] {
        match self {
            Self::Ours { case, .. } | Self::Petsc { case, .. } => CASES[case].task.figures(),
            Self::Dot(_) => &[Figure::Reproducible, Figure::Plain],
        }
    }

    /// The words for the program.
    fn words(self, data: &Path) -> Vec<String> {
        let of = |at: usize, side: usize, more: &str| {
            let case = &CASES[at];
            let (task, count) = case.task.words();
            let system = case.file(data).map_or(case.system[side].into(), |file| file.display().to_string());
            let words = [task.to_owned(), system, count.to_string(), case.repeats.to_string()];
            words.into_iter().chain(more.split(' ').map(str::to_owned)).collect()
        };
        match self {
            Self::Ours { case, .. } => of(case, 0, CASES[case].ours),
            Self::Petsc { case, .. } => of(case, 1, CASES[case].petsc),
            Self::Dot(n) => vec!["dot".into(), n.to_string(), DOT_REPEATS.to_string()],
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours { case, ranks } => write!(f, "ours: {}, {ranks} ranks", CASES[*case].name),
            Self::Petsc { case, ranks } => write!(f, "PETSc: {}, {ranks} ranks", CASES[*case].name),
            Self::Dot(n) => write!(f, "dot products of {n}"),
        }
    }
}

/// The least of each figure, in seconds where it is a time.
pub(super) type Figures = BTreeMap<Figure, f64>;

/// Both sides.
pub(super) struct Sides<'a> {
    children: Children<'a>,
    programs: PathBuf,
    data: PathBuf,
    cores: usize,
    mpi: Mpi,
    /// Which PETSc it is.
    pub(super) petsc: String,
    /// Of a product with the matrix of each case.
    norms: BTreeMap<usize, f64>,
}

impl<'a> Sides<'a> {
    /// Finds ours and compiles theirs. From now on the calling process adopts orphans among its descendants, and after each job all
    /// its children are ended.
    ///
    /// # Errors
    /// One is missing; the text says how to get it.
    pub(super) fn find(mpi: &Path, data: &Path, watch: &Watch<'a>) -> Result<Self, HarnessError> {
        let children = Children::adopting(watch.is_interrupted);
        let programs = folder()?;
        built(&programs, "ftrun", "-p ft-apps")?;
        built(&programs, "examples/solvers", "-p ft-benches --examples")?;
        let ask = |words: &[&str]| {
            let mut command = Command::new("pkg-config");
            command.args(words).arg("petsc");
            let remedy = "the packages of Debian are petsc-dev, libpetsc-real-dev and openmpi-bin; PKG_CONFIG_PATH \
                          leads to another build";
            let absent = |_| missing("PETSc", remedy.to_owned());
            children.run(command, LIMIT).map(|ended| ended.output.trim().to_owned()).map_err(absent)
        };
        let petsc = ask(&["--modversion"])?;
        let words = ask(&["--cflags", "--libs"])?;
        let words: Vec<&str> = words.split_whitespace().chain(["-lm"]).collect();
        let sources = [(PEER, include_str!("../../peers/petsc_solvers.c"))];
        let mpi = Mpi::compile(mpi, "openmpi", &sources, &words, &children)?;
        let cores = watch.machine.cores;
        Ok(Self { children, programs, data: data.to_owned(), cores, mpi, petsc, norms: BTreeMap::new() })
    }

    pub(super) fn measure(&mut self, job: Job) -> Result<Figures, HarnessError> {
        let ended = self.children.run(self.command(job), LIMIT)?;
        let figures = self.read(job, &ended.output);
        figures.map_err(|why| HarnessError::Output { command: job.to_string(), why })
    }

    fn command(&self, job: Job) -> Command {
        let mut command = match job {
            Job::Petsc { ranks, .. } => {
                let mut command = Command::new(self.mpi.launcher());
                command.envs(AS_ROOT).args(["-n", &ranks.to_string()]);
                match ranks <= self.cores {
                    true => command.args(["--bind-to", "core"]),
                    false => command.args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]),
                };
                command.arg(self.mpi.program(PEER));
                command
            }
            Job::Ours { .. } | Job::Dot(_) => {
                let ranks = if let Job::Ours { ranks, .. } = job { ranks } else { 1 };
                let mut command = Command::new(self.programs.join("ftrun"));
                command
                    .args(["-n", &ranks.to_string(), "--threads", "1"])
                    .arg(self.programs.join("examples/solvers"));
                command
            }
        };
        command.args(job.words(&self.data));
        command
    }

    /// What a job has printed, if the two sides agree on what they compute.
    fn read(&mut self, job: Job, output: &str) -> Result<Figures, String> {
        if let Job::Ours { case, .. } | Job::Petsc { case, .. } = job {
            let norm = least(output, "norm")?;
            let due = *self.norms.entry(case).or_insert(norm);
            let is_equal = (norm - due).abs() <= NORMS_APART * due;
            if !is_equal {
                return Err(format!("its matrix is another: the norm of a product is {norm}, not {due}"));
            }
            if job.due().contains(&Figure::Solve) {
                let residual = least(output, "residual")?;
                let is_solved = residual <= RESIDUAL;
                if !is_solved {
                    return Err(format!("the residual of its answer is {residual}"));
                }
            }
        }
        job.due().iter().map(|&figure| Ok((figure, least(output, figure.name())?))).collect()
    }
}

/// The least of a figure of lines with a name and a number each.
fn least(output: &str, name: &str) -> Result<f64, String> {
    let words = output.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(' '));
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("{name} is {word}"));
    let numbers: Vec<f64> = words.map(number).collect::<Result<_, String>>()?;
    numbers.into_iter().reduce(f64::min).ok_or_else(|| format!("there is no {name}"))
}

#[cfg(test)]
mod tests {
    use super::super::case::Task;
    use super::*;

    fn sides() -> Sides<'static> {
        Sides {
            children: Children { adopts: false, is_interrupted: &|| false },
            programs: "p".into(),
            data: "d".into(),
            cores: 2,
            mpi: Mpi::without_programs("/mpi/bin"),
            petsc: String::new(),
            norms: BTreeMap::new(),
        }
    }

    fn place(name: &str) -> usize {
        CASES.iter().position(|case| case.name == name).unwrap()
    }

    fn line(job: Job) -> String {
        let command = sides().command(job);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn commands() {
        let [ours, petsc] = Job::beside(place("jacobi-bcsstk13"), 2);
        let task = "iterate d/matrices/bcsstk13.mtx.gz 150 20";
        assert_eq!(line(ours), format!("p/ftrun -n 2 --threads 1 p/examples/solvers {task} cg jacobi"));
        let petsc = line(petsc);
        assert!(petsc.starts_with("/mpi/bin/mpiexec -n 2 --bind-to core "), "{petsc}");
        assert!(petsc.contains(&format!("{PEER} {task} -ksp_type cg ")), "{petsc}");
        let [ours, petsc] = Job::beside(place("poisson-free"), 4);
        assert!(line(ours).contains(" stencil:128 40 3"));
        assert!(line(petsc).contains(" -n 4 --oversubscribe ") && line(petsc).contains(" poisson:128 40 3 "));
        assert_eq!(line(Job::Dot(10)), "p/ftrun -n 1 --threads 1 p/examples/solvers dot 10 20");
    }

    #[test]
    fn the_least_of_what_is_printed_counts_if_both_sides_have_one_matrix() {
        let case = CASES.iter().position(|case| case.task == Task::Solve).unwrap();
        let [ours, petsc] = Job::beside(case, 2);
        let mut sides = sides();
        let text = |norm, residual| {
            format!("norm {norm}\nsetup 2\nsolve 5\niterations 9\nsolve 3\nsetup 4\nresidual {residual}\n")
        };
        let figures = sides.read(ours, &text(1.0, 1e-9)).unwrap();
        assert_eq!(figures[&Figure::Solve] + figures[&Figure::Setup], 5.0);
        assert_eq!(sides.read(petsc, &text(1.0 + 1e-12, 1e-9)).unwrap(), figures);
        assert!(sides.read(petsc, &text(1.1, 1e-9)).unwrap_err().starts_with("its matrix is another: "));
        assert!(sides.read(petsc, &text(f64::NAN, 1e-9)).is_err());
        assert_eq!(sides.read(ours, &text(1.0, 0.5)).unwrap_err(), "the residual of its answer is 0.5");
        assert_eq!(sides.read(ours, "norm 1\nresidual 0\nsetup x").unwrap_err(), "setup is x");
        assert_eq!(sides.read(Job::Dot(10), "plain 1\n").unwrap_err(), "there is no reproducible");
    }
}
