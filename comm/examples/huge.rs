//! One message of many GiB from rank 0 to rank 1, every byte of it checked.
//!
//! `ftrun -n 2 target/release/examples/huge 3221225472`

use ft_comm::{MainError, World};

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn main() -> Result<(), MainError> {
    let bytes = std::env::args().nth(1).map_or(3 << 30, |bytes| bytes.parse().expect("a number of bytes"));
    let mut world = World::init()?;
    let comm = world.comm().clone();
    // It is the first message on its link: that can be read in place, too.
    match comm.rank() {
        0 if comm.size() > 1 => comm.send(&(0..bytes).map(byte).collect::<Vec<u8>>(), 1, 0)?,
        1 => {
            let mut buf = vec![0u8; bytes];
            let status = comm.recv(&mut buf, 0, 0)?;
            assert_eq!(status.bytes, bytes);
            let wrong = (0..bytes).find(|at| buf[*at] != byte(*at));
            assert_eq!(wrong, None, "the first wrong byte");
            println!("{bytes} bytes are right, {} of them read in place", world.bytes_read());
        }
        _ => {}
    }
    Ok(world.finalize(Vec::new())?)
}
