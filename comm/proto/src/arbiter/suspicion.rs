//! What ranks say of links to others that broke, while all of them live.

use crate::rank::Rank;
use crate::time::Time;

/// Most characters of a reason that are kept.
const CHARS: usize = 200;

/// A link between two ranks has broken.
#[derive(Debug, Default)]
pub(super) struct Breaks {
    /// How often.
    pub(super) times: u32,
    why: String,
}

impl Breaks {
    /// It broke once more.
    pub(super) fn again(&mut self, why: &str) {
        self.times += 1;
        if !why.is_empty() {
            self.why = plain(why);
        }
    }

    /// Why it did last.
    pub(super) fn why(&self) -> &str {
        &self.why
    }
}

/// The link of a rank to another broke, and both go on.
#[derive(Debug)]
pub(super) struct Accusation {
    /// Who says so.
    pub(super) by: Rank,
    /// When the rank is lost for that.
    pub(super) due: Time,
    pub(super) why: String,
}

impl Accusation {
    pub(super) fn new(by: Rank, due: Time, why: &str) -> Self {
        Self { by, due, why: plain(why) }
    }
}

/// Words of another process, for a line that people read.
fn plain(why: &str) -> String {
    why.chars().filter(|char| !char.is_control()).take(CHARS).collect()
}

/// The end of a sentence that says why, if that is known.
pub(super) fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}
