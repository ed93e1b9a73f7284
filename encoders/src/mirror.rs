//! Copies: every redundant block is the one shard itself (RAID level 1).
//!
//! The dearest code in memory and the cheapest in time: to recover is to copy. It is linear like the others,
//! so accumulating XORs the shard into the block; on a fresh block of zeros that is a copy.

use crate::shape::Shape;
use crate::xor::xor_into;
use crate::{Code, CodeError};

/// One data member and `copies` redundant copies of its shard; survives the loss of any `copies` of them.
#[derive(Debug, Clone)]
pub struct Mirror {
    shape: Shape,
}

impl Mirror {
    /// A code of 1 data member and `copies` redundant blocks.
    ///
    /// # Errors
    ///
    /// When `copies` is 0.
    pub fn new(copies: usize) -> Result<Self, CodeError> {
        Ok(Self { shape: Shape::new(1, copies, usize::MAX)? })
    }
}

impl Code for Mirror {
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
        self.shape.check_recover(shards)?;
        let present = shards.iter().position(Option::is_some).expect("checked: at most m are missing");
        let (before, rest) = shards.split_at_mut(present);
        let (source, after) = rest.split_first_mut().expect("`present` is an index of `shards`");
        for missing in before.iter_mut().chain(after).filter(|shard| shard.is_none()) {
            missing.clone_from(source);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_block_becomes_a_copy() {
        let mut block = [0; 5];
        Mirror::new(2).unwrap().accumulate(1, 0, b"shard", &mut block).unwrap();
        assert_eq!(&block, b"shard");
    }

    #[test]
    fn accumulating_twice_takes_the_shard_out_again() {
        let code = Mirror::new(1).unwrap();
        let mut block = *b"block";
        code.accumulate(0, 0, b"shard", &mut block).unwrap();
        code.accumulate(0, 0, b"shard", &mut block).unwrap();
        assert_eq!(&block, b"block");
    }

    #[test]
    fn no_copies_are_no_code() {
        assert_eq!(Mirror::new(0).unwrap_err(), CodeError::Empty { data: 1, redundant: 0 });
    }
}
