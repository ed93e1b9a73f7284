//! A solver that keeps every core busy, to see what checkpoints cost it: Jacobi's method for Laplace's equation on a square
//! that the ranks cut into rows, with a halo exchange and an allreduce in each step.
//!
//! `ftrun -n 4 --json --scheme xor --interval 2 target/release/examples/solver --mib 64 --steps 500`
//!
//! The result in the report has the seconds from the first step to the last, and the bits of the last change, which are the same
//! whatever happened meanwhile.

use clap::Parser;
use ft_benches::checkpoints::now_ns;
use ft_checkpoint::{Checkpoints, Flow, Program, Protect, Protection};
use ft_comm::{CommError, MainError, Op, World};
use serde_json::json;

/// Points of a row.
const COLUMNS: usize = 4096;
const ROW_BYTES: usize = COLUMNS * size_of::<f64>();

/// The command line.
#[derive(Debug, Parser)]
struct Options {
    /// Protected state of each rank
    #[arg(long, default_value_t = 64)]
    mib: usize,
    /// Steps
    #[arg(long, default_value_t = 500)]
    steps: u64,
    /// Take asynchronous checkpoints
    #[arg(long)]
    asynchronous: bool,
}

/// The rows of a rank between one row of each neighbor, or of the boundary.
#[derive(Default, Protect)]
struct Plate {
    points: Vec<f64>,
    change: f64,
}

struct Solver {
    options: Options,
    next: Vec<f64>,
    began: Option<u64>,
}

impl Program for Solver {
    type State = Plate;
    type Error = CommError;

    fn init(&mut self, world: &World) -> Result<Plate, CommError> {
        let rows = (self.options.mib << 20) / ROW_BYTES;
        let mut points = vec![0.0; rows * COLUMNS];
        if world.rank() == 0 {
            points[..COLUMNS].fill(1.0);
        }
        Ok(Plate { points, change: 0.0 })
    }

    fn step(&mut self, plate: &mut Plate, world: &World, step: u64) -> Result<Flow, CommError> {
        self.began.get_or_insert_with(now_ns);
        exchange(&mut plate.points, world)?;
        self.next.resize(plate.points.len(), 0.0);
        plate.change = sweep(&plate.points, &mut self.next);
        // The outer rows stay: they are the boundary, or come from a neighbor.
        let inner = COLUMNS..plate.points.len() - COLUMNS;
        plate.points[inner.clone()].copy_from_slice(&self.next[inner]);
        let mut all = [plate.change];
        world.comm().allreduce(&mut all, Op::Max)?;
        plate.change = all[0];
        Ok(if step == self.options.steps { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, plate: &mut Plate, world: &World) -> Result<Vec<u8>, CommError> {
        let mut took = [self.began.map_or(0, |began| now_ns() - began)];
        world.comm().allreduce(&mut took, Op::Max)?;
        let answer = format!("{:016x}", plate.change.to_bits());
        Ok(json!({ "seconds": took[0] as f64 * 1e-9, "answer": answer }).to_string().into_bytes())
    }
}

/// The second row of each rank becomes the last one of the rank above, and so on.
fn exchange(points: &mut [f64], world: &World) -> Result<(), CommError> {
    let (comm, rank, rows) = (world.comm(), world.rank(), points.len() / COLUMNS);
    let row = |number: usize| number * COLUMNS..(number + 1) * COLUMNS;
    // Pairs of an even rank and the next, then the others: nobody waits for somebody who waits.
    for parity in [0, 1] {
        let below = rank % 2 == parity;
        let peer = if below { rank + 1 } else { rank.wrapping_sub(1) };
        if peer >= world.size() {
            continue;
        }
        let (mine, theirs) = if below { (row(rows - 2), row(rows - 1)) } else { (row(1), row(0)) };
        let out = points[mine].to_vec();
        comm.sendrecv(&out, peer, &mut points[theirs], peer, 0)?;
    }
    Ok(())
}

/// One step of all inner rows; gives the largest change.
fn sweep(points: &[f64], next: &mut [f64]) -> f64 {
    let mut change: f64 = 0.0;
    for row in 1..points.len() / COLUMNS - 1 {
        let line = |row: usize| &points[row * COLUMNS..(row + 1) * COLUMNS];
        let (above, here, below) = (line(row - 1), line(row), line(row + 1));
        let into = &mut next[row * COLUMNS..(row + 1) * COLUMNS];
        into[0] = here[0];
        into[COLUMNS - 1] = here[COLUMNS - 1];
        for at in 1..COLUMNS - 1 {
            let mean = 0.25 * (above[at] + below[at] + here[at - 1] + here[at + 1]);
            change = change.max((mean - here[at]).abs());
            into[at] = mean;
        }
    }
    change
}

fn main() -> Result<(), MainError> {
    let options = Options::parse();
    let world = World::init()?;
    if options.mib == 0 {
        Err(world.abort(2, "--mib is at least 1"))?;
    }
    let mut protection = Protection::from_launcher(&world)?;
    if options.asynchronous {
        protection.checkpoints = Checkpoints::Asynchronous;
    }
    ft_checkpoint::run(world, protection, &mut Solver { options, next: vec![], began: None })?;
    Ok(())
}
