//! Messages and collectives of `ft-comm` beside MPICH, Open MPI, and sockets and shared memory alone.
//!
//! Every side is a program that times the same list of tests ([`mod@test`]) in the same way ([`batches`]) and prints
//! the same lines ([`Measured`]): `examples/messages.rs` for `ft-comm`, `examples/raw` for sockets and `peers/raw_memory.c` for shared memory
//! without any message layer, `peers/mpi_messages.c` for MPI. What counts are ratios of times within a round, because the machine is in
//! another mood with every start.

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
use ft_tools::harness::{Files, require_writable};
use serde_json::json;

use self::case::cases;
use self::congestion::Congestion;
pub use self::measured::Measured;
use self::side::Side;
use self::sides::Sides;
use self::test::Selection;
use crate::comparison::{Comparison, Failures, Report, Rounds, Watch, few_rounds};

/// Compares the messages of ft-comm with MPICH, Open MPI, raw sockets and raw shared memory, alternated in one session
#[derive(Debug, Parser)]
#[command(name = "messages")]
pub struct Options {
    /// What carries messages of ft-comm within the host, as ftrun --transport takes it (default: FTRUN_TRANSPORT, else as ftrun chooses)
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Installation of MPICH: the folder with bin/mpicc and bin/mpiexec (default: the one in PATH)
    #[arg(long, value_name = "DIR")]
    mpich: Option<PathBuf>,
    /// Installation of Open MPI (default: the one in PATH)
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
    /// Write the rows as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
        let mut all = sides.left_out.clone();
        let mut say = |applies: bool, text: &str| all.extend(applies.then(|| text.to_owned()));
        let has_mpich = sides.those_there().contains(&Side::Mpich);
        say(
            has_mpich,
            "MPICH in shared memory was measured with no more ranks than cores: more of them spin through whole time slices.",
        );
        say(
            has_mpich && !sides.room().mpich_yields,
            "So it was over TCP: this MPICH has no mpiexec.gforker, whose ranks can give way to each other.",
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
        let mut json = self.json.iter();
        json.try_for_each(|file| require_writable(file).map_err(|error| format!("--json: {error}")))?;
        let selection = Selection::of(&self.only)?;
        // It is put back when this goes.
        let wanted = Some(&self.congestion).filter(|name| *name != "default");
        let _switched = wanted.map(|name| Congestion::switch(name)).transpose()?;
        let sides = Sides::find(self, watch)?;
        let there = sides.those_there();
        let rounds = Rounds {
            cases: cases(&self.ranks, &there, &selection, sides.room()),
            rounds: self.rounds,
            failures: Failures::AreSaid { after: 1 },
        };
        let mut remarks = self.notes(&sides);
        let (samples, failures) = rounds.run(watch, |job| sides.measure(job, &selection, self.time))?;
        remarks.extend(failures);
        let congestion = congestion::current();
        let did = format!(
            "{} rounds, {} s a test; medians over process starts [lowest..highest], of ratios over rounds",
            self.rounds, self.time
        );
        let under =
            format!("congestion control of the system {congestion}, of comm {}", self.comm_congestion);
        let rows = row::all(&self.ranks, watch.machine.cores);
        let bars = tables::bars(&rows, &samples);
        let head = vec![did, watch.machine_line(), under, sides.words()];
        let json = json!({"head": head, "machine": watch.machine, "rows": tables::json(&rows, &samples), "remarks": remarks});
        Ok(Report {
            head,
            tables: vec![("Bars", bars), ("All figures", tables::figures(&there, &samples))],
            remarks,
            measurements: tables::measurements(&congestion, &samples),
            others: self.json.iter().map(|file| (file.clone(), format!("{json:#}\n"))).collect(),
        })
    }
}
