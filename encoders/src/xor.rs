//! Parity: the redundant block is the XOR of all shards (RAID levels 3 to 5).
//!
//! In `d0 ^ d1 ^ .. ^ p = 0` all blocks have the same standing, so the lost one, whichever it is, is the XOR
//! of all the others.

use crate::shape::Shape;
use crate::{Code, CodeError};

/// Any number of data members and one redundant block, their XOR; survives one loss.
#[derive(Debug, Clone)]
pub struct Xor {
    shape: Shape,
}

impl Xor {
    /// A code of `data` data members and 1 redundant block.
    ///
    /// # Errors
    ///
    /// When `data` is 0.
    pub fn new(data: usize) -> Result<Self, CodeError> {
        Ok(Self { shape: Shape::new(data, 1, usize::MAX)? })
    }
}

impl Code for Xor {
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
        xor_into(shard, into);
        Ok(())
    }

    fn recover(&self, shards: &mut [Option<Vec<u8>>]) -> Result<(), CodeError> {
        let bytes = self.shape.check_recover(shards)?;
        let Some(lost) = shards.iter().position(Option::is_none) else { return Ok(()) };
        let mut recovered = vec![0; bytes];
        for shard in shards.iter().flatten() {
            xor_into(shard, &mut recovered);
        }
        shards[lost] = Some(recovered);
        Ok(())
    }
}

/// `into ^= shard` over the length of `shard`, which is at most that of `into`.
pub(crate) fn xor_into(shard: &[u8], into: &mut [u8]) {
    for (sum, byte) in into.iter_mut().zip(shard) {
        *sum ^= byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parity_of_three_by_hand() {
        let code = Xor::new(3).unwrap();
        let mut block = [0; 2];
        code.accumulate(0, 0, &[0b0011, 1], &mut block).unwrap();
        code.accumulate(0, 1, &[0b0101, 2], &mut block).unwrap();
        code.accumulate(0, 2, &[0b1001], &mut block).unwrap();
        assert_eq!(block, [0b1111, 3]);
    }

    #[test]
    fn no_members_are_no_code() {
        assert_eq!(Xor::new(0).unwrap_err(), CodeError::Empty { data: 0, redundant: 1 });
    }
}
