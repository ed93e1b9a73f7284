//! Defects on demand: a checker that has found none is trusted only if it finds these.
//!
//! Without the feature `planted-bugs` there are none, and nothing of this is left in the code.

#[cfg(feature = "planted-bugs")]
std::thread_local! {
    static BUG: std::cell::Cell<(&'static str, u64)> = const { std::cell::Cell::new(("", 0)) };
}

/// The arbiter starts the next generation without waiting for all survivors.
pub const DECIDES_EARLY: &str = "decides without waiting for all survivors";
/// Links and frames of an old generation are taken.
pub const TAKES_OLD_FRAMES: &str = "takes links and frames of an old generation";
/// A rank that is cut off from the launcher goes on for ever.
pub const IGNORES_LEASE: &str = "ignores its lease";
/// A receive takes the last message that it accepts.
pub const TAKES_LAST: &str = "takes the last message that fits";
/// What was read from the memory of a sender is taken, whatever has become of that memory since.
pub const IGNORES_SEAL: &str = "ignores the seal of memory that it has read";

/// Memory says that bytes are there before they are.
pub const PUBLISHES_EARLY: &str = "says that bytes are there before they are";
/// Who has written bytes looks for sleepers before the bytes can be seen.
pub const LOOKS_WITHOUT_FENCE: &str = "looks for sleepers without a fence";
/// Positions in shared memory are taken as they are.
pub const TRUSTS_POSITIONS: &str = "trusts the positions in shared memory";

/// Whoever waits for a message takes whichever is in a cell.
pub const TAKES_ANY_CELL: &str = "takes what is in a cell, whatever it is for";
/// A cell is filled again before its message was taken.
pub const FILLS_FULL_CELLS: &str = "fills a cell that is full";

/// A message that was under way at a recovery line is not kept.
pub const FORGETS_LATE: &str = "forgets a message that was under way";
/// A message that its receiver has is sent again.
pub const SENDS_EARLY_AGAIN: &str = "sends a message again that has come";
/// What was not determined comes out otherwise when it is done again.
pub const REPLAYS_IN_ANOTHER_ORDER: &str = "replays outcomes in another order";
/// One line behind and one ahead are the same.
pub const COUNTS_LINES_BY_TWO: &str = "counts recovery lines modulo two";
/// What belongs to a line is given up when the next one is drawn.
pub const FREES_EARLY: &str = "frees a line before the next is committed";

/// The collectives of a communicator are counted from none again by who goes back to a line.
pub const COUNTS_COLLECTIVES_ANEW: &str = "counts collectives of made communicators anew";
/// Who goes back to a line goes on with the contexts that it knew before.
pub const GOES_ON_WITH_CONTEXTS: &str = "goes on with contexts behind the line";
/// Communicators that a repeated part makes are new ones.
pub const MAKES_NEW_COMMUNICATORS: &str = "makes new communicators where it repeats itself";
/// Algorithms of collectives depend on hosts although ranks may come to others in the middle.
pub const FOLLOWS_HOSTS: &str = "follows the hosts across recovery lines";
/// What was not determined is told of behind the message that depends on it.
pub const TELLS_LATE: &str = "tells of what was not determined too late";
/// What others have to be fed with is given up when a line is drawn, before it is committed.
pub const FREES_JOURNAL_EARLY: &str = "gives up its journal before the line is committed";
/// A message that a survivor has is sent again by who has gone back.
pub const REPEATS_ITSELF: &str = "sends again what survivors have";

/// A collective that was under way at a line sends everything again when it begins again.
pub const SENDS_BEGUN_AGAIN: &str = "sends all of a collective again";

/// Messages that come behind a repair are counted from none again by who stays, although some of before it are here.
pub const NUMBERS_ANEW: &str = "counts messages behind a repair anew";

/// What a receive had in its place when a line was drawn beside it is not kept.
pub const FORGETS_OPEN: &str = "forgets what was in the places of open receives";

/// No defect, but what finds some: there is credit for few messages.
pub const HAS_LITTLE_CREDIT: &str = "has credit for few messages";

/// This thread has `bug` from now on; the empty name is none.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: &'static str) {
    plant_at(bug, 0);
}

/// As [`plant`], at a place that a number tells.
#[cfg(feature = "planted-bugs")]
pub fn plant_at(bug: &'static str, number: u64) {
    BUG.set((bug, number));
}

/// Where this thread has its bug.
#[cfg(feature = "planted-bugs")]
pub fn place() -> u64 {
    BUG.get().1
}

/// Whether this thread has `bug`.
#[cfg(feature = "planted-bugs")]
pub fn has(bug: &str) -> bool {
    BUG.get().0 == bug
}

/// This build has no bugs to plant.
#[cfg(not(feature = "planted-bugs"))]
pub fn plant(_: &'static str) {}

/// This build has no planted bugs.
#[cfg(not(feature = "planted-bugs"))]
pub const fn has(_: &str) -> bool {
    false
}
