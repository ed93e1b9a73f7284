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
    /// When `data` is 0, or `FT_KERNEL` names no kernel.
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

    fn weight(&self, _: usize, _: usize) -> u8 {
        1
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
