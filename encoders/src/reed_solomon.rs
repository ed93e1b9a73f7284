//! Reed-Solomon: any number of losses, for as many redundant blocks.
//!
//! Take the `i`-th bytes of the `k` shards as the values of a polynomial of degree below `k` at the points
//! `0..k`; there is exactly one such polynomial. The `i`-th bytes of the redundant blocks are its values at the
//! points `k..k + m`. Any `k` of the `k + m` values determine the polynomial, and so all the others.
//! Bytes are elements of GF(2^8), where addition is XOR and there are 256 points, hence `k + m <= 256`. The
//! value at a point is a weighted sum of the values at `0..k`, so a block is accumulated one shard at a time.
//!
//! In matrices this is the Vandermonde matrix reduced until its first `k` rows are the identity, as in Plank
//! and Ding's note. The arithmetic is that of the crate `reed-solomon-erasure`, of which nothing is visible
//! from outside. Its own `encode_single` stores the shard of the first member instead of adding it, and writes
//! all `m` blocks at once; so only the weights are taken from it, and the products are added here.

use reed_solomon_erasure::galois_8;

use crate::shape::Shape;
use crate::{Code, CodeError};

/// Any `k` data members and `m` redundant blocks with `k + m <= 256`, over GF(2^8) with the polynomial
/// `0x11d`; survives any `m` losses.
pub struct ReedSolomon {
    shape: Shape,
    /// `weights[block][member]`: what the shard of `member` is multiplied by in `block`. Never zero.
    weights: Vec<Vec<u8>>,
    codec: galois_8::ReedSolomon,
}

impl ReedSolomon {
    /// Most blocks of a stripe, data and redundant together: one for each element of GF(2^8).
    pub const BLOCKS_MAX: usize = 256;

    /// A code of `data` data members and `redundant` redundant blocks.
    ///
    /// Costs about `(data + redundant) * data^2` byte multiplications, some tens of milliseconds for the
    /// largest codes; keep the code instead of making it again.
    ///
    /// # Errors
    ///
    /// When one of the numbers is 0, or their sum is more than [`Self::BLOCKS_MAX`].
    pub fn new(data: usize, redundant: usize) -> Result<Self, CodeError> {
        let shape = Shape::new(data, redundant, Self::BLOCKS_MAX)?;
        let codec =
            galois_8::ReedSolomon::new(data, redundant).expect("the shape is within the crate's limits");
        let mut weights = vec![vec![0; data]; redundant];
        for member in 0..data {
            let mut blocks = vec![[0]; redundant];
            codec.encode_single_sep(member, &[1], &mut blocks).expect("one byte in, one byte in each block");
            for (row, [weight]) in weights.iter_mut().zip(blocks) {
                row[member] = weight;
            }
        }
        Ok(Self { shape, weights, codec })
    }
}

impl Code for ReedSolomon {
    fn data(&self) -> usize {
        self.shape.data
    }

    fn redundant(&self) -> usize {
        self.shape.redundant
    }

    fn accumulate(
        &self,
        block: usize,
        member: usize,
        shard: &[u8],
        into: &mut [u8],
    ) -> Result<(), CodeError> {
        self.shape.check_accumulate(block, member, shard, into)?;
        galois_8::mul_slice_xor(self.weights[block][member], shard, &mut into[..shard.len()]);
        Ok(())
    }

    fn recover(&self, shards: &mut [Option<Vec<u8>>]) -> Result<(), CodeError> {
        let bytes = self.shape.check_recover(shards)?;
        if bytes == 0 {
            // The crate refuses empty shards; there is nothing to compute in them.
            for shard in shards {
                shard.get_or_insert_default();
            }
        } else {
            self.codec.reconstruct(shards).expect("count, lengths and losses are checked");
        }
        Ok(())
    }
}

impl std::fmt::Debug for ReedSolomon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReedSolomon").field("shape", &self.shape).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_zero() {
        for (data, redundant) in [(1, 1), (4, 2), (17, 5), (128, 128), (255, 1), (1, 255)] {
            let code = ReedSolomon::new(data, redundant).unwrap();
            assert!(code.weights.iter().flatten().all(|&weight| weight != 0), "{code:?}");
        }
    }

    #[test]
    fn one_member_is_mirrored() {
        let code = ReedSolomon::new(1, 3).unwrap();
        assert!(code.weights.iter().flatten().all(|&weight| weight == 1));
    }

    #[test]
    fn the_field_limits_the_blocks() {
        let too_many = CodeError::TooManyBlocks { data: 250, redundant: 7, blocks_max: 256 };
        assert_eq!(ReedSolomon::new(250, 7).unwrap_err(), too_many);
        assert_eq!(ReedSolomon::new(0, 1).unwrap_err(), CodeError::Empty { data: 0, redundant: 1 });
    }

    #[test]
    fn debug_shows_the_shape_and_not_the_tables() {
        assert_eq!(format!("{:?}", ReedSolomon::new(4, 2).unwrap()), "ReedSolomon { shape: 4+2, .. }");
    }
}
