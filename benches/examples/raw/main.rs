//! What sockets leave possible between processes of one host: the tests of `ft_benches::messages` without any message
//! layer. No headers, no matching, no queues; every receive knows what comes.
//!
//! `raw -n 2 --wait spin latency pingpong` or `raw -n 4 --sockets unix barrier allreduce`
//!
//! Only the tests that say something about a message layer are there: all between two ranks, and of the collectives the
//! barrier and the allreduce of 8 bytes.

mod tests;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use ft_benches::sockets::{Sockets, Wait, Wires, start};

/// The command line.
#[derive(Debug, Clone, Parser)]
struct Options {
    /// Processes; a power of two
    #[arg(short = 'n', long, default_value_t = 2)]
    ranks: usize,
    /// What connects them
    #[arg(long, value_enum, default_value = "tcp")]
    sockets: Sockets,
    /// Congestion control of TCP, by the name that the kernel has for it
    #[arg(long, default_value = "default")]
    congestion: String,
    /// What a process does while there is nothing to read; who spins has a core of its own
    #[arg(long, value_enum, default_value = "yield")]
    wait: Wait,
    /// Seconds a test
    #[arg(short = 't', long, default_value_t = 0.1)]
    time: f64,
    /// Tests: NAME or NAME:BYTES; all by default
    tests: Vec<String>,
    /// The rank of this process; without it the ranks are started
    #[arg(long, hide = true)]
    rank: Option<usize>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.rank {
        None => options.start(),
        Some(rank) => tests::run(&options, rank),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("raw: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    /// Starts all ranks and prints what rank 0 prints.
    fn start(&self) -> io::Result<()> {
        if !self.ranks.is_power_of_two() {
            return Err(io::Error::other(format!("{} ranks are no power of two", self.ranks)));
        }
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        start(self.ranks, &arguments, &[], &mut |rank, line| {
            if rank == 0 {
                println!("{line}");
            }
        })
    }

    fn wires(&self) -> Wires<'_> {
        let Self { ranks, sockets, wait, .. } = *self;
        Wires { ranks, sockets, congestion: &self.congestion, buffer_bytes: None, wait }
    }
}
