//! The two numbers of a code, and the checks of arguments that follow from them.
//!
//! They are made in one place, before anything is written, so that every code refuses the same calls with
//! the same words and none changes anything on error.

use crate::CodeError;

/// `k` data members and `m` redundant blocks, both at least 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) data: usize,
    pub(crate) redundant: usize,
}

impl Shape {
    /// A shape of at most `blocks_max` blocks in all.
    pub(crate) fn new(data: usize, redundant: usize, blocks_max: usize) -> Result<Self, CodeError> {
        if data == 0 || redundant == 0 {
            return Err(CodeError::Empty { data, redundant });
        }
        match data.checked_add(redundant) {
            Some(blocks) if blocks <= blocks_max => Ok(Self { data, redundant }),
            _ => Err(CodeError::TooManyBlocks { data, redundant, blocks_max }),
        }
    }

    /// Checks the arguments of `Code::accumulate`.
    pub(crate) fn check_accumulate(
        self,
        block: usize,
        member: usize,
        shard: &[u8],
        into: &[u8],
    ) -> Result<(), CodeError> {
        let Self { data, redundant } = self;
        if block >= redundant {
            return Err(CodeError::BlockOutOfRange { block, data, redundant });
        }
        if member >= data {
            return Err(CodeError::MemberOutOfRange { member, data, redundant });
        }
        if shard.len() > into.len() {
            return Err(CodeError::ShardTooLong { shard_bytes: shard.len(), block_bytes: into.len() });
        }
        Ok(())
    }

    /// Checks the argument of `Code::recover` and returns the common length of the present shards.
    pub(crate) fn check_recover(self, shards: &[Option<Vec<u8>>]) -> Result<usize, CodeError> {
        let Self { data, redundant } = self;
        let taken = data + redundant;
        if shards.len() != taken {
            return Err(CodeError::WrongShardCount { given: shards.len(), taken, data, redundant });
        }
        let lengths = || shards.iter().enumerate().filter_map(|(i, shard)| Some((i, shard.as_ref()?.len())));
        let lost = taken - lengths().count();
        if lost > redundant {
            return Err(CodeError::TooManyLost { lost, data, redundant });
        }
        let (other_index, other_bytes) = lengths().next().expect("lost <= m < k + m, so one is present");
        match lengths().find(|&(_, bytes)| bytes != other_bytes) {
            Some((index, bytes)) => Err(CodeError::UnequalLengths { index, bytes, other_index, other_bytes }),
            None => Ok(other_bytes),
        }
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
