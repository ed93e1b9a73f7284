//! Requests as values: what a rank that goes back to a checkpoint needs to make again what was under way there.

use serde::{Deserialize, Serialize};

use super::{Aim, Request};
use ft_proto::error::CommError;
use ft_proto::plain::Plain;
use ft_proto::rank::Tag;

/// A [`Request`] as a value for the state of a program whose messages may cross checkpoints (`ftrun --lines drain` or `log`).
///
/// A checkpoint waits until no operation of its rank is under way, but for those of which there is a record. A program takes the record when it starts the operation, and keeps it in its state until
/// it has waited for the request. When it goes back it has no requests: in its next step, before any other receive, it makes them again, in their order ([`crate::Communicator::request`]).
///
/// With `--lines meet` a record is of no use: no message may cross a checkpoint there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord(pub(crate) Kind);

/// What is to be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// Its message is before the checkpoint.
    Send,
    Receive {
        source: Option<u32>,
        tag: Option<Tag>,
        /// Which one of those that may take several messages.
        number: Option<u64>,
    },
}

impl<T: Plain> Request<T> {
    /// The request as a value; from now on checkpoints are taken beside it.
    ///
    /// # Errors
    /// As [`Request::test`].
    pub fn record(&self) -> Result<RequestRecord, CommError> {
        let core = &mut *self.comm.door().enter()?;
        let under_way = self.current(core)?;
        let is_receive = matches!(self.aim, Aim::From(..));
        let engine = &mut core.driver.engine;
        let number = under_way.and_then(|op| engine.record(op, self.comm.context(), is_receive));
        Ok(RequestRecord(match self.aim {
            Aim::To(_) => Kind::Send,
            Aim::From(source, tag) => Kind::Receive { source, tag, number },
        }))
    }
}
