//! What files tell of a shard, beside its bytes.

/// For who does not know the type of the state; empty where nothing is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Legend {
    /// [The fields](crate::region::outline) in the shard.
    pub(crate) outline: Vec<u8>,
    /// [Where its doubles belong](crate::region::seams), if they are kept apart.
    pub(crate) seams: Vec<u8>,
}
