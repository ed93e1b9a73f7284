//! What a rank of a simulated program comes upon: an error of a call, or a breach of what must hold.

use ft_comm::CommError;

/// Exit status of a job in which a rank has seen what must not be.
pub(crate) const BREACH: i32 = 9;

#[derive(Debug)]
pub(crate) enum Problem {
    Comm(CommError),
    Breach(String),
}

impl From<CommError> for Problem {
    fn from(error: CommError) -> Self {
        Self::Comm(error)
    }
}

pub(crate) fn demand(holds: bool, text: impl Fn() -> String) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err(Problem::Breach(text())) }
}
