//! Every collective, blocking and not, with every type and operation, against a serial reference; and point-to-point
//! messages of all kinds.
//!
//! `ftrun -n 7 target/release/examples/conformance [BYTES]`: the longest buffers of collectives have BYTES, 1 MiB if they are
//! not given.

mod collectives;
mod communicators;
mod messages;

use ft_comm::{MainError, World};

fn main() -> Result<(), MainError> {
    let long = std::env::args().nth(1).map_or(1 << 20, |bytes| bytes.parse().expect("a number of bytes"));
    let mut world = World::init()?;
    let comm = world.comm().clone();
    collectives::check(&comm, long)?;
    messages::check(&comm)?;
    communicators::check(&comm)?;
    if comm.rank() == 0 {
        println!("{} ranks conform", comm.size());
    }
    Ok(world.finalize(Vec::new())?)
}
