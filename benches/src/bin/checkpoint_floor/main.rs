//! What a checkpoint costs at best: the bytes of a scheme over sockets and the arithmetic of its code, between processes that
//! know what comes. No headers, no matching, no checksums, no votes.
//!
//! `checkpoint_floor --scheme xor --ranks 8 --mib 64 --sockets unix`
//!
//! Every rank copies its state first. The times are those from the first rank's start to the last rank's end; memory is
//! there and touched before, and all that is held in the end is compared with blocks that are computed anew.
//!
//! - `neighbor`, `xor`, `rs` (rotated): in round d each rank sends a segment to rank + d and gets one of rank - d. Who has
//!   them all computes the redundant blocks of the stripe in one pass, keeps the first, and forwards the second.
//! - `xor-dedicated`, `rs-dedicated`: partial sums of a segment go from rank to rank, and from the last one to the ranks that keep
//!   them; a segment leaves while the next one arrives.
//! - `file`: no redundancy but a file, synchronized, renamed, and its folder synchronized, in the folder that `--folder` names.

mod exchange;
mod file;
mod state;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use ft_benches::checkpoints::{Scheme, now_ns, spans};
use ft_benches::sockets::{Mesh, Sockets, Wait, Wires, start};
use ft_tools::harness::Middle;

use self::exchange::Member;

/// Huge pages, as the launcher wants them for its ranks.
const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// Times the exchange of a checkpoint between processes without any protocol
#[derive(Debug, Parser)]
#[command(name = "checkpoint_floor")]
struct Options {
    /// What is done with the state of each rank
    #[arg(long, value_enum)]
    scheme: Scheme,
    /// Processes with a state; those that only hold redundancy come on top
    #[arg(long, value_name = "N", default_value_t = 4)]
    ranks: usize,
    /// State of each of them
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    mib: usize,
    /// What connects them
    #[arg(long, value_enum, default_value = "unix")]
    sockets: Sockets,
    /// Checkpoints that are timed; one more goes before
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// Pieces that are sent and encoded at a time
    #[arg(long, value_name = "KIB", default_value_t = 256)]
    segment_kib: usize,
    /// Buffers of the sockets; 0 for the kernel's choice
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    buffer_kib: usize,
    /// Congestion control of TCP; 'default' for the system's
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion: String,
    /// Where the files of the scheme 'file' are written, and removed afterwards
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    /// The rank of this process; without it the ranks are started
    #[arg(long, hide = true)]
    rank: Option<usize>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match options.rank {
        None => options.start(),
        Some(rank) => options.run(rank),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("checkpoint_floor: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    /// Starts all ranks and says what they took.
    fn start(&self) -> io::Result<()> {
        self.check().map_err(io::Error::other)?;
        let Self { scheme, ranks, mib, sockets, .. } = self;
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let mut times = vec![Vec::new(); self.processes()];
        start(self.processes(), &arguments, &[TUNABLES], &mut |rank, line| {
            let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            times[rank].extend(<[u64; 2]>::try_from(numbers));
        })?;
        let seconds = spans(&times);
        let of_all = |times: &Vec<[u64; 2]>| times.len() == self.repeats;
        if !times.iter().all(of_all) {
            return Err(io::Error::other("a rank has not told all its times"));
        }
        if self.json {
            let scheme = scheme.name();
            let line = serde_json::json!({
                "scheme": scheme, "ranks": ranks, "mib": mib, "sockets": sockets.to_string(), "seconds": seconds,
            });
            println!("{line}");
        } else {
            let ms: Vec<f64> = seconds.iter().map(|seconds| seconds * 1e3).collect();
            let middle = Middle::of(&ms).expect("once at least");
            println!("{scheme}, {ranks} ranks x {mib} MiB, {sockets}: {middle} ms");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let least = match self.scheme {
            Scheme::Copy | Scheme::File => 1,
            Scheme::Rs => 3,
            _ => 2,
        };
        if self.ranks < least || self.processes() > 256 {
            return Err(format!("--ranks {} are too few or too many for {}", self.ranks, self.scheme));
        }
        if self.mib == 0 || self.repeats == 0 || self.segment_kib == 0 {
            return Err("--mib, --repeats and --segment-kib are at least 1".into());
        }
        match (self.scheme, &self.folder) {
            (Scheme::File, None) => Err("the scheme 'file' takes --folder DIR".into()),
            _ => Ok(()),
        }
    }

    fn processes(&self) -> usize {
        self.ranks + self.scheme.parity_ranks()
    }

    fn wires(&self) -> Wires<'_> {
        Wires {
            ranks: self.processes(),
            sockets: self.sockets,
            congestion: &self.congestion,
            buffer_bytes: (self.buffer_kib > 0).then_some(self.buffer_kib << 10),
            wait: Wait::Poll,
        }
    }

    /// All checkpoints of one rank; prints when each of them began and ended.
    fn run(&self, rank: usize) -> io::Result<()> {
        let mesh = Mesh::new(&self.wires(), rank)?;
        let mut member = Member::new(self, rank)?;
        let mut times = Vec::new();
        for number in 0..=self.repeats {
            member.change(number);
            mesh.meet()?;
            let began = now_ns();
            member.protect(&mesh)?;
            times.push((began, now_ns()));
        }
        member.verify(self.repeats)?;
        // The first one does not count.
        times[1..].iter().for_each(|(began, ended)| println!("{began} {ended}"));
        Ok(())
    }
}
