//! Defects and damage that tests plant ([`ft_proto::planted`]): what is to be found names them.

/// A defect to plant: a rank commits before the vote.
pub const COMMITS_EARLY: &str = "commits before the vote";
/// A defect to plant: a rank does not report an epoch whose vote it has not heard the end of.
pub const FORGETS_STAGED: &str = "forgets what it has staged";

/// A defect to plant: a rank that has not heard of the first commit in a new placement stays with the old one.
pub const KEEPS_OLD_LAYOUT: &str = "keeps the old layout";

/// A defect to plant: what has changed is taken against an old copy whose checksum is not looked at.
pub const TRUSTS_OLD_COPY: &str = "trusts the old copy";

/// A defect to plant: a rank gives up the old placement for a new one before it is restored to that.
pub const DROPS_OLD_EARLY: &str = "drops the old placement early";

/// Damage to plant: a bit of the rank's own shard flips in memory before a restore.
pub const DAMAGED_SHARD: &str = "a bit of a shard flips";
/// Damage to plant: a bit of a redundant block flips in memory before a restore.
pub const DAMAGED_BLOCK: &str = "a bit of a redundant block flips";

/// Damage to plant: a bit of the copy of a state flips before redundancy is made of it.
pub const DAMAGED_COPY: &str = "a bit of a copy flips";

/// Damage to plant: a bit of the redundant blocks of each checkpoint flips on its way, before their checksums are taken.
pub const DAMAGED_ON_THE_WAY: &str = "a bit of redundancy flips on its way";

/// Damage to plant: a bit of what is held of the committed checkpoint flips behind the computation.
pub const ROTS: &str = "a bit of the committed checkpoint flips";

/// Damage to plant: the same in the constant part.
pub const ROTS_FOR_GOOD: &str = "a bit of the constant part flips";

/// A defect to plant: a rank does not note for a successor that it has committed.
pub const KEEPS_COMMIT_TO_ITSELF: &str = "keeps a commit to itself";

/// A defect to plant: a rank with one own copy writes its state over it before the vote.
pub const COPIES_EARLY: &str = "copies its state before the vote";
/// A defect to plant: a rank with one own copy does not write its state over it when it hears from others that it is committed.
pub const FORGETS_LIVE: &str = "forgets that its state is the checkpoint";

/// A defect to plant: a rank takes what was rebuilt with rounding for what the others have sums of.
pub const TRUSTS_ROUNDED: &str = "takes what was rounded for what was there";

/// A defect to plant: doubles that were rebuilt with rounding are said to be what they were.
pub const DENIES_ROUNDING: &str = "denies that doubles were rounded";

/// A defect to plant: a rank that was replaced counts itself among those that have a checkpoint of a level that was passed by.
pub const CLAIMS_WHAT_IS_LOST: &str = "claims a checkpoint that was lost with its rank";

/// A defect to plant: a replacement takes what is committed for laid over the hosts of now.
pub const ASSUMES_LAYOUT: &str = "assumes how a checkpoint lies";
/// A defect to plant: what begins anew lies as what was before.
pub const STAYS_AS_LAID: &str = "lays nothing over other hosts";
