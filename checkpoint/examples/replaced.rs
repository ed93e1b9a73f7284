//! The file of the program is replaced while it runs, as by a build that ends in the middle of a job.
//!
//! `cp target/release/examples/replaced /tmp; ftrun -n 4 --kill 2@step=40 /tmp/replaced same`
//!
//! With `same` a copy of the file takes its place, and the job goes on. With `other` that is a byte longer, another
//! build for all that anybody can tell: what the survivors hold is not given to a replacement that runs it, and the
//! job ends.

use std::fs::{self, File};
use std::io::{self, Write as _};

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{CommError, Op, World};

const STEPS: u64 = 100;

#[derive(Default, Protect)]
struct Total {
    sum: u64,
}

struct Replaced {
    other: bool,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Comm(#[from] CommError),
    #[error("cannot replace the program: {0}")]
    File(#[from] io::Error),
}

impl Replaced {
    fn replace(&self) -> io::Result<()> {
        let program = std::env::current_exe()?;
        let copy = program.with_extension("new");
        fs::copy(&program, &copy)?;
        if self.other {
            File::options().append(true).open(&copy)?.write_all(&[0])?;
        }
        fs::rename(copy, program)
    }
}

impl Program for Replaced {
    type State = Total;
    type Error = Problem;

    fn init(&mut self, world: &World) -> Result<Total, Problem> {
        if world.rank() == 0 {
            self.replace()?;
        }
        Ok(Total { sum: 0 })
    }

    fn step(&mut self, total: &mut Total, world: &World, number: u64) -> Result<Flow, Problem> {
        let mut terms = [number];
        world.comm().allreduce(&mut terms, Op::Sum)?;
        total.sum += terms[0];
        Ok(if number == STEPS { Flow::Done } else { Flow::Continue })
    }
}

fn main() -> Result<(), MainError> {
    let other = std::env::args().nth(1).is_some_and(|word| word == "other");
    let world = World::init()?;
    let (size, protection) = (world.size() as u64, Protection::from_launcher(&world)?);
    let total = ft_checkpoint::run(world, protection, &mut Replaced { other })?;
    assert!(total.is_none_or(|total| total.sum == STEPS * (STEPS + 1) / 2 * size));
    Ok(())
}
