//! What the launcher has told of this generation, until a call asks for it.

use std::collections::HashMap;

use ft_proto::wire::control::Verdict;

#[derive(Debug, Default)]
pub(crate) struct Told {
    /// By communicator the number and the outcome of the last agreement.
    pub(super) agreed: HashMap<u32, (u32, Verdict)>,
    /// All ranks are done.
    pub(super) finalized: bool,
    /// Positions of the cuts that have struck.
    pub(super) cuts: Vec<usize>,
}

impl Told {
    /// Takes the outcome of an agreement, if it was told.
    pub(super) fn verdict(&mut self, context: u32, number: u32) -> Option<Verdict> {
        match self.agreed.remove(&context) {
            Some((over, verdict)) if over == number => Some(verdict),
            _ => None,
        }
    }

    /// Whether the cut at this position has struck.
    pub(crate) fn has_cut(&self, spec: usize) -> bool {
        self.cuts.contains(&spec)
    }
}
