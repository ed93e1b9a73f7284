//! What a program may expect of messages and collectives, checked.
//!
//! `ftrun -n 7 target/release/examples/conformance [BYTES]`: every collective, blocking and not, with every type and operation,
//! against a serial reference; point-to-point messages of all kinds; communicators. The longest buffers of collectives have
//! BYTES, 1 MiB if they are not given.
//!
//! `ftrun -n 4 --kill 2@collective=20 --kill 0@at=iscan:2 target/release/examples/conformance survive 3`: so many rounds of
//! every collective in a loop that survives failures.

mod call;
mod collectives;
mod communicators;
mod messages;
mod surviving;

use ft_comm::{CommError, MainError, World};

fn main() -> Result<(), MainError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: u64| args.get(at).map_or(usual, |arg| arg.parse().expect("a number"));
    let world = World::init()?;
    match args.first().is_some_and(|first| first == "survive") {
        true => surviving::survive(world, number(1, 1))?,
        false => check(world, number(0, 1 << 20) as usize)?,
    }
    Ok(())
}

/// Everything once, with buffers of up to `long` bytes.
fn check(mut world: World, long: usize) -> Result<(), CommError> {
    let comm = world.comm().clone();
    collectives::check(&comm, long)?;
    messages::check(&comm)?;
    communicators::check(&comm)?;
    if comm.rank() == 0 {
        println!("{} ranks conform", comm.size());
    }
    world.finalize(Vec::new())
}
