//! The most memory that a rank has in use, beside what [`ParityGroup::kept_bytes`] says of it:
//!
//! `ftrun -n 4 --scheme rs:2+2 target/release/examples/memory 64`
//!
//! Each rank has a state of so many MiB, a quarter of it constant, and takes six checkpoints. Rank 0 prints for each rank the bytes
//! that came on top of the state, and those that are due.

use ft_checkpoint::{Checkpointer, GroupLayout, MainError, Protect, Protection};
use ft_comm::World;

#[derive(Protect)]
struct State {
    #[protect(constant)]
    model: Vec<u64>,
    field: Vec<u64>,
}

/// Bytes of this process that are in memory, at most so far (`VmHWM`).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has a line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let mib: usize = std::env::args().nth(1).map_or(Ok(64), |text| text.parse())?;
    let words = if world.is_parity() { 0 } else { mib << 17 };
    let value = world.rank() as u64 + 1;
    let mut state = State { model: vec![value; words / 4], field: vec![value; words - words / 4] };
    let alone = peak();
    let mut checkpointer = Checkpointer::new(&world, protection.scheme.clone())?;
    for number in 0..6 {
        state.field.iter_mut().for_each(|word| *word = word.rotate_left(7) ^ number);
        match world.is_parity() {
            true => checkpointer.checkpoint(&world, &mut ())?,
            false => checkpointer.checkpoint(&world, &mut state)?,
        }
    }
    let layout = GroupLayout::new(protection.scheme, world.size(), world.total() - world.size(), None)?;
    let (group, member) = layout.group_of(world.rank()).ok_or("a scheme with groups")?;
    let group = &layout.groups[group];
    let of = |words: usize| group.kept_bytes(member, &vec![words * 8 + 8; group.computing]);
    let whole = mib << 17;
    let due = (of(whole / 4) + 2 * of(whole - whole / 4)) as u64;
    println!("rank {}: {} bytes, {due} due", world.rank(), peak() - alone);
    let mut world = world;
    world.finalize(vec![])?;
    Ok(())
}
