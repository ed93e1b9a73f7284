//! What comparisons with other libraries share: programs as child processes, what else the machine did, and
//! tables of medians over process starts.

mod child;
mod confidence;
mod error;
mod files;
mod interruption;
mod iterations;
mod load;
mod middle;
mod page;

pub use self::child::Children;
pub(crate) use self::child::Ended;
pub use self::child::Parting;
pub use self::confidence::Confidence;
pub use self::error::HarnessError;
pub use self::files::{Files, require_writable};
pub use self::interruption::interruptible;
pub use self::iterations::more;
pub use self::load::{Ticks, disturbance};
pub use self::middle::Middle;
pub use self::middle::shown;
pub use self::page::{Page, machine_line};
