//! What a step list is made of.

use std::ops::Range;

use crate::rank::Rank;

/// Memory that steps name, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// What the caller sends and keeps; steps only read it. Empty for operations in place.
    Input,
    /// What the caller gets, and for operations in place sends.
    Buffer,
    /// Memory of the executor, as long as the highest part that a step names; its contents are unspecified at first.
    Scratch,
}

/// Elements of one memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which memory.
    pub space: Space,
    /// Elements of it.
    pub range: Range<usize>,
}

impl Span {
    /// Elements of the caller's input.
    pub fn input(range: Range<usize>) -> Self {
        Self { space: Space::Input, range }
    }

    /// Elements of the executor's scratch.
    pub fn scratch(range: Range<usize>) -> Self {
        Self { space: Space::Scratch, range }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Whether the two have an element in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.space == other.space
            && self.range.start.max(other.range.start) < self.range.end.min(other.range.end)
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { space: Space::Buffer, range }
    }
}

/// Which operand of a reduction comes first. It matters for operations that are not commutative, and for the bits of
/// those that nearly are (payloads of NaN, signs of zero): the contribution of the lower rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `mine = op(mine, other)`.
    MineFirst,
    /// `mine = op(other, mine)`.
    OtherFirst,
}

impl Order {
    /// The order in which the lower of two ranks comes first.
    pub fn of(mine: Rank, other: Rank) -> Self {
        if mine < other { Self::MineFirst } else { Self::OtherFirst }
    }
}

/// What one rank does next.
///
/// Steps start in order. A step that changes a part waits until nothing that is under way uses that part, one that
/// reads a part until nothing that is under way changes it, one that sends a part until nothing that is under way sends
/// or reads it; otherwise steps may be under way together. A [`Step::RecvReduce`] of a part that is still being sent
/// starts at once, as its message is received aside; only the change waits. Messages of one rank to another are received
/// in the order in which they were sent. The list is done when all its steps are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends `part` to a rank.
    Send {
        /// Receiver.
        to: Rank,
        /// What is sent.
        part: Span,
    },
    /// `part` = incoming.
    Recv {
        /// Sender.
        from: Rank,
        /// Where it goes; as long as what was sent.
        part: Span,
    },
    /// `part[i] = op(part[i], incoming[i])`, or the other way round.
    RecvReduce {
        /// Sender.
        from: Rank,
        /// What is changed.
        part: Span,
        /// Which operand comes first.
        order: Order,
    },
    /// `to = from`; the two do not overlap.
    Copy {
        /// What is read.
        from: Span,
        /// What is changed.
        to: Span,
    },
    /// `part[i] = op(part[i], other[i])`, or the other way round; the two do not overlap.
    Reduce {
        /// What is read.
        other: Span,
        /// What is changed.
        part: Span,
        /// Which operand comes first.
        order: Order,
    },
    /// The caller's own computation on all three memories, in a `Schedule`.
    Apply {
        /// Which one it is.
        number: usize,
        /// What it reads.
        reads: Vec<Span>,
        /// What it changes.
        changes: Vec<Span>,
    },
    /// Everything that was to be received so far has been.
    Fence,
}

impl Step {
    /// See [`Step::Send`].
    pub fn send(to: Rank, part: impl Into<Span>) -> Self {
        Self::Send { to, part: part.into() }
    }

    /// See [`Step::Recv`].
    pub fn recv(from: Rank, part: impl Into<Span>) -> Self {
        Self::Recv { from, part: part.into() }
    }

    /// See [`Step::RecvReduce`].
    pub fn recv_reduce(from: Rank, part: impl Into<Span>, order: Order) -> Self {
        Self::RecvReduce { from, part: part.into(), order }
    }

    /// See [`Step::Copy`].
    pub fn copy(from: impl Into<Span>, to: impl Into<Span>) -> Self {
        Self::Copy { from: from.into(), to: to.into() }
    }

    /// See [`Step::Reduce`].
    pub fn reduce(other: impl Into<Span>, part: impl Into<Span>, order: Order) -> Self {
        Self::Reduce { other: other.into(), part: part.into(), order }
    }
}
