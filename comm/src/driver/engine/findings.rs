//! What the engine has found out while it moved messages; it keeps that until it is asked.

use ft_proto::rank::Rank;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Links that are of no use: to which ranks, and what was seen of them first.
    broken: Vec<(Rank, String)>,
    /// News came while a link was being opened: frames that need it have not left.
    interrupted: bool,
}

impl Findings {
    /// The link to a rank is of no use.
    pub(super) fn broke(&mut self, rank: Rank, why: &str) {
        if self.broken.iter().all(|(other, _)| *other != rank) {
            self.broken.push((rank, why.to_owned()));
        }
    }

    /// There is news that a link was not opened for.
    pub(super) fn interrupted(&mut self) {
        self.interrupted = true;
    }

    /// There is nothing to be asked for.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.broken.is_empty() && !self.interrupted
    }

    #[inline]
    pub(crate) fn has_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Links that have broken since the last call: to which ranks, and what was seen of them.
    pub(crate) fn take_broken(&mut self) -> Vec<(Rank, String)> {
        std::mem::take(&mut self.broken)
    }

    /// Whether frames have not left, since the last call, because there is news.
    pub(super) fn take_interrupted(&mut self) -> bool {
        std::mem::take(&mut self.interrupted)
    }
}
