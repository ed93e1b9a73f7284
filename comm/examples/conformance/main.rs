//! Every collective, blocking and not, with every type and operation, against a serial reference; and point-to-point
//! messages of all kinds.
//!
//! `ftrun -n 7 target/release/examples/conformance`

use ft_comm::{CommError, World};

mod checks;

fn main() -> Result<(), CommError> {
    let mut world = World::init()?;
    let comm = world.comm().clone();
    checks::collectives(&comm, 1 << 20)?;
    checks::messages(&comm)?;
    checks::communicators(&comm)?;
    if comm.rank() == 0 {
        println!("{} ranks conform", comm.size());
    }
    world.finalize(Vec::new())
}
