//! A hash of an answer's bits that does not depend on the number of ranks.
//!
//! Each block of rows (see [`crate::partition`]) is hashed by its owner; the hash of the block hashes, in block
//! order, with the number of rows in front, is the result. `0.0` and `-0.0` hash differently: bits are meant.

use ft_comm::Communicator;

use crate::{LinalgError, Partition};

const HASH_BYTES: usize = blake3::OUT_LEN;

/// Hash of the vector whose local part is `x`, as 64 hex digits, the same on every rank.
///
/// Collective: one allgatherv of 32 bytes per block.
///
/// # Errors
/// [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`], [`LinalgError::Length`] when `x` does not have one
/// element for each row of this rank.
pub fn answer_hash(part: &Partition, x: &[f64], comm: &Communicator) -> Result<String, LinalgError> {
    part.require(comm)?;
    part.require_len("answer", x.len())?;
    let counts: Vec<usize> = (0..comm.size()).map(|rank| HASH_BYTES * part.blocks_of(rank).len()).collect();
    let mut hashes = vec![0u8; HASH_BYTES * part.blocks()];
    let start = HASH_BYTES * part.blocks_of(comm.rank()).start;
    let mine = block_hashes(part, x);
    hashes[start..start + mine.len()].copy_from_slice(&mine);
    comm.allgatherv(&mut hashes, &counts)?;
    Ok(combine(part.n(), &hashes))
}

/// Hashes of this rank's blocks, 32 bytes each, in order.
fn block_hashes(part: &Partition, x: &[f64]) -> Vec<u8> {
    let hash = |rows: std::ops::Range<usize>| {
        let mut hasher = blake3::Hasher::new();
        x[rows].iter().for_each(|value| {
            hasher.update(&value.to_bits().to_le_bytes());
        });
        *hasher.finalize().as_bytes()
    };
    part.local_blocks().flat_map(hash).collect()
}

fn combine(n: usize, hashes: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(n as u64).to_le_bytes()).update(hashes);
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_on(size: usize, x: &[f64]) -> String {
        let part = |rank| Partition::new(x.len(), size, rank);
        let hashes = (0..size).flat_map(|rank| block_hashes(&part(rank), &x[part(rank).range()]));
        combine(x.len(), &hashes.collect::<Vec<u8>>())
    }

    #[test]
    fn depends_on_bits_and_not_on_ranks() {
        let x: Vec<f64> = (0..1000).map(|i| f64::from(i).sqrt()).collect();
        let one = hash_on(1, &x);
        assert_eq!(one.len(), 64);
        assert!((2..=8).all(|size| hash_on(size, &x) == one));
        let mut y = x.clone();
        y[777] = y[777].next_up();
        assert_ne!(hash_on(3, &y), one);
        assert_ne!(hash_on(1, &[0.0]), hash_on(1, &[-0.0]));
        assert_ne!(hash_on(1, &[]), hash_on(1, &[0.0]));
    }
}
