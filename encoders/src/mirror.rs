//! Copies: every redundant block is the one shard itself (RAID level 1).
//!
//! The dearest code in memory and the cheapest in time: to recover is to copy. It is linear like the others,
//! so accumulating XORs the shard into the block; on a fresh block of zeros that is a copy.

use crate::shape::Shape;
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
    /// When `copies` is 0, or `FT_KERNEL` names no kernel.
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

    fn weight(&self, _: usize, _: usize) -> u8 {
        1
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
