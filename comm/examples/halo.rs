//! The program of the handbook's page on messages: a collective that goes on, an exchange that is planned once, a communicator of half the ranks.
//!
//! `ftrun -n 4 target/release/examples/halo`

use ft_comm::{Layout, Op, Piece, World};

fn main() -> Result<(), ft_comm::MainError> {
    let mut world = World::init()?; // without ftrun: a job of one rank
    let comm = world.comm().clone();
    let (rank, size) = (comm.rank(), comm.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);

    // A sum goes on while the last column of a matrix of 3 rows and 4 columns goes to the right neighbor's first.
    let sum = comm.iallreduce(vec![rank as u64], Op::Sum)?;
    let column = |at| Layout::strided(at, 3, 1, 4).expect("it is small");
    let out = Piece { peer: right, tag: 0, layout: column(3) };
    let into = Piece { peer: left, tag: 0, layout: column(0) };
    let halo = comm.plan::<f64>(&[out], &[into])?; // planned once, run as often as wanted
    let mut matrix = [0.0; 12];
    halo.run(&[rank as f64; 12], &mut matrix)?;
    assert_eq!(matrix[4], left as f64);
    assert_eq!(sum.wait()?, [(0..size as u64).sum()]);

    // The ranks of equal parity have messages of their own.
    let half = comm.split(Some(rank as u32 % 2), 0)?.expect("it has a color");
    let mut first = [rank];
    half.bcast(&mut first, 0)?;
    assert_eq!(first, [rank % 2]);
    Ok(world.finalize(Vec::new())?)
}
