//! Why a scheme does not fit a job, and losses that it does not survive.

use std::fmt;

use crate::scheme::Scheme;

/// A scheme does not fit the job; nothing was laid out.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A number that must be at least one is zero.
    #[error("{scheme} with {what} = 0; at least 1 is needed")]
    Zero {
        /// The scheme.
        scheme: Scheme,
        /// The number that is zero.
        what: &'static str,
    },
    /// A group of one rank has nobody to hold its parity.
    #[error("xor:1 leaves no rank to hold the parity; at least xor:2 is needed")]
    XorOfOne,
    /// A single rank has nobody to protect it.
    #[error("{scheme} needs at least 2 ranks, there is 1; use none")]
    OneRank {
        /// The scheme.
        scheme: Scheme,
    },
    /// There are fewer ranks than one group needs.
    #[error("{scheme} needs {needs} ranks {}, there {} {ranks}", if *.dedicated { "that compute a group" } else { "a group" }, if *.ranks == 1 { "is" } else { "are" })]
    TooFew {
        /// The scheme.
        scheme: Scheme,
        /// Ranks that one group needs.
        needs: usize,
        /// Ranks that compute.
        ranks: usize,
        /// True if the parity has ranks of its own, which are not counted here.
        dedicated: bool,
    },
    /// As many copies as ranks, or more.
    #[error("neighbor:{copies} needs more than {copies} ranks, there are {ranks}")]
    TooManyCopies {
        /// Copies of each shard.
        copies: usize,
        /// Ranks that compute.
        ranks: usize,
    },
    /// The scheme and the number of parity ranks a group contradict each other.
    #[error("{scheme} goes with {} parity ranks a group, not {parity_ranks}", if *.allows == 0 { "0".to_owned() } else { format!("0 or {}", .allows) })]
    ParityRanks {
        /// The scheme.
        scheme: Scheme,
        /// Parity ranks a group that the scheme can use beside 0.
        allows: usize,
        /// Parity ranks a group that were asked for.
        parity_ranks: usize,
    },
    /// A Reed-Solomon stripe has more blocks than its field has elements.
    #[error(
        "{scheme}: a group of {data} data + {parity} parity = {} blocks a stripe is more than 256",
        .data.saturating_add(*.parity)
    )]
    TooWide {
        /// The scheme.
        scheme: Scheme,
        /// Data blocks a stripe.
        data: usize,
        /// Parity blocks a stripe.
        parity: usize,
    },
    /// There are no well-conditioned weights for so many blocks a stripe.
    #[error(
        "{scheme}: a group of {data} data + {parity} redundant blocks a stripe is more than there are weights for ({data_max} + \
         {parity_max}); use smaller groups, or rs:K+M"
    )]
    NoWeights {
        /// The scheme.
        scheme: Scheme,
        /// Data blocks a stripe.
        data: usize,
        /// Redundant blocks a stripe.
        parity: usize,
        /// The most data blocks.
        data_max: usize,
        /// The most redundant blocks.
        parity_max: usize,
    },
    /// Hosts are given for fewer ranks than compute.
    #[error("{hosts} hosts are given for {ranks} ranks")]
    Hosts {
        /// Entries in the list of hosts.
        hosts: usize,
        /// Ranks that compute.
        ranks: usize,
    },
}

/// More ranks of a group are lost than its code can decode; the job cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeyondTolerance {
    /// The scheme with the size of this group, such as `xor:4`.
    pub scheme: Scheme,
    /// The index of the group.
    pub group: usize,
    /// World ranks of the group, those that compute first.
    pub members: Vec<usize>,
    /// Lost world ranks of the group, ascending.
    pub lost: Vec<usize>,
    /// Losses that the group survives wherever they strike.
    pub tolerance: usize,
    /// A scheme that would have survived the same losses, with the parity ranks a group that it takes.
    pub suggestion: Option<(Scheme, usize)>,
}

/// Writes `1`, `1 and 2`, `1, 2 and 3`.
fn enumerated(ranks: &[usize]) -> String {
    match ranks {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(usize::to_string).collect();
            format!("{} and {last}", first.join(", "))
        }
    }
}

impl fmt::Display for BeyondTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ranks, are) = if self.lost.len() == 1 { ("rank", "is") } else { ("ranks", "are") };
        write!(f, "{ranks} {} ", enumerated(&self.lost))?;
        if self.scheme == Scheme::None {
            write!(f, "{are} lost, scheme none survives no loss; ")?;
        } else {
            let losses = if self.tolerance == 1 { "loss" } else { "losses" };
            let members: Vec<String> = self.members.iter().map(usize::to_string).collect();
            write!(f, "of parity group {} (ranks {}) ", self.group, members.join(" "))?;
            write!(f, "{are} lost, {} survives {} {losses} a group; ", self.scheme, self.tolerance)?;
        }
        match &self.suggestion {
            Some((scheme, 0)) => write!(f, "{scheme} would have survived this"),
            Some((scheme, m)) => write!(f, "{scheme} with {m} parity ranks a group would have survived this"),
            None if self.lost.len() == 1 => write!(f, "no scheme would have survived 1 loss here"),
            None => write!(f, "no scheme would have survived {} losses here", self.lost.len()),
        }
    }
}

impl std::error::Error for BeyondTolerance {}
