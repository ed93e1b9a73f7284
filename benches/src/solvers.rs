//! Solvers beside those of PETSc.
//!
//! Each side is a program of its own (`examples/solvers.rs` under `ftrun`, `peers/petsc_solvers.c` under `mpiexec`) that makes a
//! system and times one thing of it. What counts is the median over rounds of the ratio of the two within a round, each of which is
//! the best of several repeats; and the ratio of the bests of all rounds stands beside it.

mod case;
mod sides;
mod tables;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use ft_tools::harness::Files;

use self::case::{CASES, Case, DOTS, DOTS_NAME};
use self::sides::{Job, Sides};
use crate::comparison::{Comparison, Failures, Report, Rounds, Watch};

/// Compares solvers with those of PETSc, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "solver_peers")]
pub struct Options {
    /// Installation of the MPI that PETSc was built with: the folder with bin/mpicc and bin/mpiexec
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    mpi: PathBuf,
    /// Process starts of every job
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,
    /// Cases, or what their names begin with; all by default
    #[arg(long, value_name = "CASE,...", value_delimiter = ',')]
    only: Vec<String>,
    /// The data folder, whose matrices are read [default: FT_DATA, or shared/data beside the repository]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    files: Files,
}

impl Options {
    fn data(&self) -> PathBuf {
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        self.data.clone().or_else(|| std::env::var_os("FT_DATA").map(PathBuf::from)).unwrap_or_else(beside)
    }

    fn is_meant(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.starts_with(only.as_str()))
    }

    /// What is started, and why something is not.
    ///
    /// # Errors
    /// A name means no case.
    fn cases(&self) -> Result<(Vec<Vec<Job>>, Vec<String>), String> {
        let names = || CASES.iter().map(|case| case.name).chain([DOTS_NAME]);
        if let Some(only) = self.only.iter().find(|only| !names().any(|name| name.starts_with(only.as_str())))
        {
            let names: Vec<&str> = names().collect();
            return Err(format!("no case begins with '{only}': there are {}", names.join(", ")));
        }
        let data = self.data();
        let (mut cases, mut remarks) = (Vec::new(), Vec::new());
        let chosen = CASES.iter().enumerate().filter(|(_, case)| self.is_meant(case.name));
        for (at, Case { name, ranks, .. }) in chosen {
            match CASES[at].file(&data).filter(|file| !file.is_file()) {
                None => cases.extend(ranks.iter().map(|&ranks| Job::beside(at, ranks).into())),
                Some(file) => remarks.push(format!("{name} was left out: {} is not there.", file.display())),
            }
        }
        if self.is_meant(DOTS_NAME) {
            cases.extend(DOTS.map(|(n, _)| vec![Job::Dot(n)]));
        }
        Ok((cases, remarks))
    }
}

impl Comparison for Options {
    fn files(&self) -> &Files {
        &self.files
    }

    fn compare(&self, watch: &Watch<'_>) -> Result<Report, Box<dyn Error>> {
        if self.rounds == 0 {
            return Err("--rounds is at least 1".into());
        }
        let (cases, mut remarks) = self.cases()?;
        let rounds = Rounds { cases, rounds: self.rounds, failures: Failures::AreSaid { after: 2 } };
        let mut sides = Sides::find(&self.mpi, &self.data(), watch)?;
        let (samples, more) = rounds.run(watch, |job| sides.measure(job))?;
        remarks.extend(more);
        Ok(Report {
            head: vec![tables::head(self.rounds, &sides.petsc), watch.machine_line()],
            tables: tables::all(&samples),
            remarks,
            measurements: tables::measurements(&samples),
            others: vec![],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Options {
        Options::parse_from([&["solver_peers", "--data", "/no/such/folder"], words].concat())
    }

    #[test]
    fn matrices_that_are_not_there_are_left_out_with_a_word() {
        let (cases, remarks) = options(&["--only", "jacobi-494_bus,dot"]).cases().unwrap();
        assert_eq!(cases, DOTS.map(|(n, _)| vec![Job::Dot(n)]));
        assert!(remarks.iter().all(|remark| remark.contains("494_bus.mtx.gz is not there")), "{remarks:?}");
        assert!(!remarks.is_empty());
    }

    #[test]
    fn cases_are_chosen_by_what_they_begin_with() {
        let (cases, _) = options(&["--only", "poisson"]).cases().unwrap();
        assert!(cases.iter().all(|case| case.len() == 2));
        let error = options(&["--only", "poison"]).cases().unwrap_err();
        assert!(error.starts_with("no case begins with 'poison': there are product-"), "{error}");
    }
}
