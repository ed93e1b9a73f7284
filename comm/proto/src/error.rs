//! What can go wrong in a call. A lost peer is a value here, never a panic.

use crate::rank::{Generation, Rank};

/// The status of a job that a rank ends because of an error: `code` if it is the exit status of a
/// failure (1 to 255), else 1.
pub fn failure_status(code: i32) -> i32 {
    if (1..=255).contains(&code) { code } else { 1 }
}

/// Error of a communication call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// Ranks were lost. The buffers of this call are unspecified. In message mode `Nop` every call on every communicator
    /// answers with this error until `World::repair` has returned, in mode `Continue` those that need these ranks.
    #[error("{} failed in generation {generation}; call World::repair", list("rank", ranks))]
    PeerFailed {
        /// The ranks known to be lost, world numbering.
        ranks: Vec<Rank>,
        /// The generation in which they were lost.
        generation: Generation,
    },
    /// A link between living ranks broke: this operation failed, but nobody is known to be lost. Every call answers with
    /// it until `World::repair` has returned, which renews all links.
    #[error("a link broke in generation {generation}; call World::repair")]
    LinkBroke {
        /// The generation of the link.
        generation: Generation,
    },
    /// The communicator was revoked by one of its ranks (`Communicator::revoke`): agree on it, shrink it, or
    /// leave it.
    #[error("the communicator was revoked in generation {generation}")]
    Revoked {
        /// The generation of the world.
        generation: Generation,
    },
    /// The request belongs to a generation that a repair has ended; start it again.
    #[error("this request was started in generation {started}, the world is at generation {now}")]
    Expired {
        /// Generation of the request.
        started: Generation,
        /// Generation of the world.
        now: Generation,
    },
    /// The job is over: somebody said goodbye, or too much was lost. End this process.
    #[error("the job has ended with status {code}: {message}")]
    Ended {
        /// Exit status of the job.
        code: i32,
        /// Its cause.
        message: String,
    },
    /// This rank has left the job: `World::finalize` has returned, or the `World` was dropped.
    #[error(
        "this rank has left the job: World::finalize has returned, or the World was dropped. Make all calls before that"
    )]
    Left,
    /// This process was forked from a rank. It has none of the rank's threads, and would send in
    /// its name.
    #[error(
        "this process was forked from a rank of the job and is no rank itself. Call the library only in the process that has called World::init"
    )]
    Forked,
    /// A panic of the program, in an operation of a reduction perhaps, has unwound through a call of this rank and was caught: the
    /// call is left in the middle, and no other can be made. The first one that is tried ends the job. Return a value
    /// for what goes wrong in such code, or let the panic end the process, which is repaired then.
    #[error(
        "a panic that was caught has left a call of this rank in the middle, and no other can be made; end this process \
         (catch panics within what the call runs, not around it)"
    )]
    Panicked,
    /// A rank that has gone back to a recovery line asks other questions than the first time: between a line and the next its calls have to follow from its state
    /// and from what calls have given it, not from a clock, random numbers or other threads.
    #[error(
        "after going back to a recovery line the program has made other calls than the first time; what it does may follow from its protected \
         state and from what its calls give, not from a clock or from random numbers without a seed in that state"
    )]
    Diverged,
    /// Nothing was done: what was under way at a recovery line is there again when the states of all ranks are whole. Make requests again in the first step behind it, not where the state is
    /// made whole.
    #[error(
        "a request is made again of its record in a step, not in `rebuild`: messages of before are not there yet"
    )]
    TooSoon,
    /// Messages of this communicator were under way at a recovery line, and `rebuild` has not made
    /// it again. Keep its record in the protected state.
    #[error(
        "messages on a communicator (context {context}) were under way at the checkpoint, and `rebuild` has not made it again; keep \
         `Communicator::record` in the state, and make the communicator with `World::communicator` in `rebuild`"
    )]
    NotMadeAgain {
        /// Its context.
        context: u32,
    },
    /// What was kept with a recovery line cannot be read.
    #[error("what was kept with a recovery line is damaged, or of another version of this library")]
    Line,
    /// Nothing was done: code that a call of this rank runs (an operation of a reduction, a computation of a schedule) has made this
    /// one; make it before or after that call.
    #[error("a call from within what another call of this rank runs; make it before or after that call")]
    Nested,
    /// Nothing was consumed; receive again with more room.
    #[error(
        "message of {message_bytes} bytes from rank {from} does not fit into a buffer of {buffer_bytes} bytes"
    )]
    Truncated {
        /// Rank of the sender in the communicator.
        from: Rank,
        /// Length of the message.
        message_bytes: usize,
        /// Room in the buffer.
        buffer_bytes: usize,
    },
    /// Nothing was sent or received.
    #[error("rank {rank} does not exist in a communicator of size {size}")]
    RankOutOfRange {
        /// The rank that was asked for.
        rank: Rank,
        /// Size of the communicator.
        size: usize,
    },
    /// Nothing was sent: the operation of a reduction has no meaning for its elements.
    #[error("{0}")]
    Operation(String),
    /// Ranks called different collectives, or the same one with other arguments (found with `ftrun --check`).
    #[error("collective calls differ: {0}")]
    Mismatch(String),
    /// A buffered send has no room for its copy; wait until the sends before it have left, or use another one.
    #[error("{wanted} bytes for a buffered send, {free} of {limit} are free")]
    Buffer {
        /// Bytes of the message.
        wanted: usize,
        /// Bytes that are free.
        free: usize,
        /// Limit of a rank.
        limit: usize,
    },
    /// Ranks have closed up since the communicator was made, or it was made behind the recovery line that this rank has gone back to; make it again.
    #[error("the communicator was made in generation {made}, the world is at generation {now}")]
    Stale {
        /// Generation of the communicator.
        made: Generation,
        /// Generation of the world.
        now: Generation,
    },
    /// A layout does not fit its buffer, or names an element twice in a receive.
    #[error("{0}")]
    Layout(String),
    /// A value cannot be serialized, or what was received is no value of the type that was asked
    /// for.
    #[error("the value of rank {from} {what}")]
    Value {
        /// Rank of the sender in the communicator.
        from: Rank,
        /// What is wrong, as the end of a sentence about the value.
        what: String,
    },
    /// The message is no whole number of elements, or the counts of a collective do not fit the buffer.
    #[error("{0}")]
    Count(String),
    /// The process could not join its job.
    #[error("cannot join the job: {0}")]
    Join(String),
}

impl CommError {
    /// Whether `World::repair` is the cure.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::PeerFailed { .. } | Self::LinkBroke { .. })
    }
}

/// "rank 3" or "ranks 1 and 3" or "ranks 1, 2 and 3".
pub fn list(noun: &str, numbers: &[usize]) -> String {
    match numbers {
        [] => format!("no {noun}"),
        [one] => format!("{noun} {one}"),
        [head @ .., last] => {
            let head: Vec<String> = head.iter().map(ToString::to_string).collect();
            format!("{noun}s {} and {last}", head.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_ranks() {
        let text =
            |ranks: &[usize]| CommError::PeerFailed { ranks: ranks.to_vec(), generation: 2 }.to_string();
        assert_eq!(text(&[3]), "rank 3 failed in generation 2; call World::repair");
        assert!(text(&[1, 3]).starts_with("ranks 1 and 3 failed"));
        assert!(text(&[1, 2, 3]).starts_with("ranks 1, 2 and 3 failed"));
    }
}
