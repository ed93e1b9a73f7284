//! One row of the table of scenarios on real processes:
//!
//! `ftrun -n 5 --on-failure shrink --kill 1@step=3 target/release/examples/scenario any-source shrink`
//!
//! The second argument is one of `rebuild`, `shrink`, `blank` and `continue`; with the last one survivors agree on every
//! step and shrink their communicator instead of repairing the world (`--on-failure shrink`).

use std::process::ExitCode;

use ft_comm::World;

#[path = "../conformance/call.rs"]
mod call;
mod row;
mod survival;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [row, mode] = &args[..] else { return usage() };
    let mode = survival::MODES.iter().find(|(name, ..)| name == mode);
    let (Some((_, _, repairs)), true) = (mode, row::rows().contains(row)) else { return usage() };
    let outcome = World::init()
        .and_then(|mut world| survival::survive(&mut world, row, *repairs).map(|done| (world, done)));
    match outcome {
        Ok((world, done)) => {
            println!("rank {} of {} has done {done} steps", world.rank(), world.size());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: scenario ROW rebuild|shrink|blank|continue, where ROW is one of {}",
        row::rows().join(", ")
    );
    ExitCode::from(2)
}
