//! Messages and collectives of `ft-comm` beside raw sockets, MPICH and Open MPI.
//!
//! Every side is a program that times the same list of tests ([`mod@test`]) in the same way ([`batches`]) and prints
//! the same lines ([`Measured`]): `examples/messages.rs` for `ft-comm`, `examples/raw` for sockets without any message
//! layer, `peers/mpi_messages.c` for MPI. What counts are ratios of medians over rounds, because the machine is in another mood with
//! every start.

pub mod batches;
mod case;
mod congestion;
mod measured;
mod row;
mod side;
mod sides;
mod tables;
pub mod test;

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use ft_tools::harness::Files;

use self::case::cases;
use self::congestion::Congestion;
pub use self::measured::Measured;
use self::side::Side;
use self::sides::Sides;
use self::test::Selection;
use crate::comparison::{Comparison, Failures, Report, Rounds, Watch, few_rounds};

/// Compares the messages of ft-comm with raw sockets, MPICH and Open MPI, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "messages")]
pub struct Options {
    /// Installation of MPICH: the folder with bin/mpicc and bin/mpiexec
    #[arg(long, value_name = "DIR")]
    mpich: Option<PathBuf>,
    /// Installation of Open MPI
    #[arg(long, value_name = "DIR")]
    openmpi: Option<PathBuf>,
    /// Process starts of every side
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Seconds a test
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1)]
    time: f64,
    /// Tests, each NAME or NAME:BYTES; all by default
    #[arg(long, value_name = "TEST,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Ranks of the collectives
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2,4,8")]
    ranks: Vec<usize>,
    /// Congestion control of this machine meanwhile (default: as it is); takes root
    #[arg(long, value_name = "NAME", default_value = "default")]
    congestion: String,
    /// The congestion control that ft-comm asks for: raw sockets are measured under it too
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    comm_congestion: String,
    #[command(flatten)]
    files: Files,
}

impl Options {
    fn check(&self) -> Result<(), String> {
        if let Some(ranks) = self.ranks.iter().find(|ranks| !ranks.is_power_of_two() || **ranks < 2) {
            return Err(format!("--ranks {ranks}: raw collectives want a power of two from 2 on"));
        }
        match self.time > 0.0 && self.time < 60.0 && self.rounds > 0 {
            true => Ok(()),
            false => Err("--time is more than 0 and less than 60 seconds, --rounds at least 1".into()),
        }
    }

    /// What a reader has to know to read the tables.
    fn notes(&self, sides: &Sides<'_>) -> Vec<String> {
        let mut all = Vec::new();
        let mut say = |applies: bool, text: &str| all.extend(applies.then(|| text.to_owned()));
        say(self.mpich.is_none(), "MPICH was not measured: --mpich DIR names its folder.");
        say(self.openmpi.is_none(), "Open MPI was not measured: --openmpi DIR names its folder.");
        say(
            !sides.those_there().contains(&Side::CommTcp),
            "This ftrun has no --transport: what it does by itself stands for TCP too.",
        );
        say(
            !sides.mpich_has_gforker(),
            "This MPICH has no mpiexec.gforker: with more ranks than cores its ranks cannot give way, which is not its best.",
        );
        all.extend(few_rounds(self.rounds, 3));
        all
    }
}

impl Comparison for Options {
    fn files(&self) -> &Files {
        &self.files
    }

    fn compare(&self, watch: &Watch<'_>) -> Result<Report, Box<dyn Error>> {
        self.check()?;
        let selection = Selection::of(&self.only)?;
        // It is put back when this goes.
        let wanted = Some(&self.congestion).filter(|name| *name != "default");
        let _switched = wanted.map(|name| Congestion::switch(name)).transpose()?;
        let sides = Sides::find(self, watch)?;
        let there = sides.those_there();
        let rounds = Rounds {
            cases: cases(&self.ranks, &there, &selection),
            rounds: self.rounds,
            failures: Failures::AreSaid { after: 1 },
        };
        let mut remarks = self.notes(&sides);
        let (samples, failures) = rounds.run(watch, |job| sides.measure(job, &selection, self.time))?;
        remarks.extend(failures);
        let congestion = congestion::current();
        let did = format!(
            "{} rounds, {} s a test; medians over process starts [lowest..highest]",
            self.rounds, self.time
        );
        let under =
            format!("congestion control of the system {congestion}, of comm {}", self.comm_congestion);
        let bars = tables::bars(&row::all(&self.ranks, watch.machine.cores), &samples);
        Ok(Report {
            head: vec![did, watch.machine_line(), under],
            tables: vec![("Bars", bars), ("All figures", tables::figures(&there, &samples))],
            remarks,
            measurements: tables::measurements(&congestion, &samples),
            others: vec![],
        })
    }
}
