//! The two numbers of a code, and the checks of arguments that follow from them.
//!
//! They are made in one place, before anything is written, so that every code refuses the same calls with
//! the same words and none changes anything on error.

use crate::{Code, CodeError, Kernel};

/// `k` data members and `m` redundant blocks, both at least 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) data: usize,
    pub(crate) redundant: usize,
}

impl Shape {
    /// A shape of at most `blocks_max` blocks in all. Every code begins here, so here a wrong choice of a kernel is told too.
    pub(crate) fn new(data: usize, redundant: usize, blocks_max: usize) -> Result<Self, CodeError> {
        if data == 0 || redundant == 0 {
            return Err(CodeError::Empty { data, redundant });
        }
        match data.checked_add(redundant) {
            Some(blocks) if blocks <= blocks_max => {
                Kernel::chosen()?;
                Ok(Self { data, redundant })
            }
            _ => Err(CodeError::TooManyBlocks { data, redundant, blocks_max }),
        }
    }

    /// That of a code.
    pub(crate) fn of<C: Code + ?Sized>(code: &C) -> Self {
        Self { data: code.data(), redundant: code.redundant() }
    }

    pub(crate) fn check_member(self, member: usize) -> Result<(), CodeError> {
        let Self { data, redundant } = self;
        if member < data { Ok(()) } else { Err(CodeError::MemberOutOfRange { member, data, redundant }) }
    }

    pub(crate) fn check_block(self, block: usize) -> Result<(), CodeError> {
        let Self { data, redundant } = self;
        if block < redundant { Ok(()) } else { Err(CodeError::BlockOutOfRange { block, data, redundant }) }
    }

    /// `given` data shards are all.
    pub(crate) fn check_data(self, given: usize) -> Result<(), CodeError> {
        let Self { data, redundant } = self;
        let wrong = CodeError::WrongShardCount { given, taken: data, data, redundant };
        if given == data { Ok(()) } else { Err(wrong) }
    }

    /// The blocks are all, of one length, and every shard fits into them.
    pub(crate) fn check_blocks<T>(self, blocks: &[&mut [T]], shards: &[&[T]]) -> Result<(), CodeError> {
        let Self { data, redundant } = self;
        if blocks.len() != redundant {
            return Err(CodeError::WrongBlockCount { given: blocks.len(), data, redundant });
        }
        let block_bytes = check_lengths(blocks)?;
        let shard_bytes = shards.iter().map(|shard| size_of_val(*shard)).max().unwrap_or(0);
        if shard_bytes > block_bytes {
            return Err(CodeError::ShardTooLong { shard_bytes, block_bytes });
        }
        Ok(())
    }

    /// There are such blocks as are wanted, and no more are missing than the code survives.
    pub(crate) fn check_solvable(self, present: &[bool], wanted: &[usize]) -> Result<(), CodeError> {
        let Self { data, redundant } = self;
        let taken = data + redundant;
        let lost = present.iter().filter(|is_present| !**is_present).count();
        if present.len() != taken {
            Err(CodeError::WrongShardCount { given: present.len(), taken, data, redundant })
        } else if let Some(&index) = wanted.iter().find(|index| **index >= taken) {
            Err(CodeError::IndexOutOfRange { index, data, redundant })
        } else if lost > redundant {
            Err(CodeError::TooManyLost { lost, data, redundant })
        } else {
            Ok(())
        }
    }
}

/// The common length of the blocks in bytes, 0 if there are none.
pub(crate) fn check_lengths<T>(blocks: &[&mut [T]]) -> Result<usize, CodeError> {
    let bytes = |block: &[T]| size_of_val(block);
    let first_bytes = blocks.first().map_or(0, |block| bytes(block));
    match blocks.iter().enumerate().find(|(_, block)| bytes(block) != first_bytes) {
        Some((index, block)) => Err(CodeError::UnequalLengths { index, bytes: bytes(block), first_bytes }),
        None => Ok(first_bytes),
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{}", self.data, self.redundant)
    }
}

/// As the numbers are written everywhere: `4+2`.
impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_say_why() {
        let text = |data, redundant| Shape::new(data, redundant, 256).unwrap_err().to_string();
        assert_eq!(text(0, 2), "a code (0+2) is impossible, both numbers must be at least 1");
        assert_eq!(text(2, 0), "a code (2+0) is impossible, both numbers must be at least 1");
        assert_eq!(text(200, 57), "a code (200+57) is impossible, 200 + 57 is more than 256 blocks");
        assert!(matches!(Shape::new(usize::MAX, 1, usize::MAX), Err(CodeError::TooManyBlocks { .. })));
        assert!(Shape::new(200, 56, 256).is_ok());
    }

    #[test]
    fn a_shape_is_written_with_a_plus() {
        assert_eq!(format!("{:?}", Shape::new(4, 2, 256).unwrap()), "4+2");
    }
}
