//! What comparisons with other libraries share: programs as child processes, libraries of MPI, what else the machine did, and
//! tables of medians over process starts.

mod child;
mod confidence;
mod error;
mod files;
mod interruption;
mod load;
mod middle;
mod mpi;
mod page;

pub(crate) use self::child::Children;
pub use self::child::Parting;
pub use self::confidence::Confidence;
pub use self::error::HarnessError;
pub use self::files::Files;
pub use self::interruption::interruptible;
pub(crate) use self::load::{Ticks, disturbance};
pub use self::middle::Middle;
pub(crate) use self::middle::shown;
pub(crate) use self::mpi::{AS_ROOT, Mpi, there};
pub(crate) use self::page::{Page, machine_line};
