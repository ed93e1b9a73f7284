//! Messages between a rank's service thread and the launcher: length-prefixed postcard.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fault::KillSpec;
use crate::rank::{Agreement, Generation, Membership, OnFailure, PeerId, Rank};
use crate::settings::{MessageSettings, Settings};
use crate::wire::wait::{Place, Wait};

/// Longest control message in bytes; a longer one is a protocol error.
pub const CONTROL_BYTES_MAX: usize = 16 << 20;

/// What a rank is told when it has joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The rank that this process holds.
    pub rank: Rank,
    /// How often the rank has been replaced.
    pub incarnation: u32,
    /// Ranks that compute.
    pub compute: usize,
    /// All ranks, dedicated parity ranks included.
    pub total: usize,
    /// The generation that this process waits for: 0 at the start, else that of the repair it joins.
    pub joining: Generation,
    /// Heartbeat interval in milliseconds.
    pub heartbeat_ms: u64,
    /// Heartbeat timeout in milliseconds.
    pub timeout_ms: u64,
    /// What happens when a rank is lost.
    pub on_failure: OnFailure,
    /// What the launcher was told that is about messages.
    pub messages: MessageSettings,
    /// What it was told that layers above read, by the name of the layer.
    pub layers: BTreeMap<String, Settings>,
    /// Failures to inject that have not fired yet, by their position on the command line.
    pub kills: Vec<(usize, KillSpec)>,
}

/// From a rank to the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToArbiter {
    /// The process is ready to take its seat; links to it are accepted at `address`.
    Join {
        /// Where.
        address: String,
        /// What it has found in memory that its predecessor has left, as the value of [`ToArbiter::Ready`]; 0: nothing.
        report: u64,
    },
    /// Alive.
    Beat {
        /// The step that the rank is in, as it counts them; 0: it has begun none.
        step: u64,
    },
    /// A link to `rank` broke.
    Suspect {
        /// Generation of the link.
        generation: Generation,
        /// The rank behind it.
        rank: Rank,
        /// This rank does not stop for a repair that would renew it.
        goes_on: bool,
        /// What was seen of it, in words.
        why: String,
    },
    /// A word in an agreement of a communicator of which a member has failed, or was asked for.
    Agree {
        /// Generation of the communicator.
        generation: Generation,
        /// The communicator.
        of: CommunicatorId,
        /// Counts its agreements.
        number: u32,
        /// The word.
        word: Word,
    },
    /// All calls on the communicator with this context are to end (`MPI_Comm_revoke`).
    Revoke {
        /// Generation of the communicator.
        generation: Generation,
        /// Its context.
        context: u32,
        /// World ranks of its members: others may have another one of that context.
        members: Vec<Rank>,
    },
    /// The rank has stopped using `generation` and waits for the next one.
    Ready {
        /// The generation that it leaves.
        generation: Generation,
        /// Opaque value for the others.
        report: u64,
    },
    /// The rank has resumed work after a repair.
    Resumed {
        /// The generation in which it works.
        generation: Generation,
        /// Steps that have to be done again.
        steps_lost: u64,
    },
    /// The job made progress that will not be lost: retry counts start again.
    Mark {
        /// Its number, as the layers above count it; for people.
        number: u64,
    },
    /// The rank has arrived at the failure to inject with this position.
    Reached {
        /// Position on the command line.
        spec: usize,
    },
    /// What the rank does from now on, for a timeline.
    Activity {
        /// In the words of the layers above.
        name: String,
    },
    /// Progress for the terminal.
    Progress {
        /// Thousandths of the work that are done, if that can be said.
        done: Option<u16>,
        /// One line.
        line: String,
    },
    /// The rank has waited long in one call, and still does.
    Waiting(Wait),
    /// The wait of which the rank spoke last is over.
    Moving,
    /// The rank is done.
    Finalize {
        /// The generation in which it is done.
        generation: Generation,
        /// What it has to report; opaque.
        output: Vec<u8>,
        /// It is done whatever becomes of the others, as far as the job allows that.
        goes_on: bool,
    },
    /// The job is to end with this status.
    Goodbye {
        /// Exit status of the job; none: that of this process, which is about to exit.
        code: Option<i32>,
        /// Cause, empty if there is nothing to say.
        message: String,
    },
    /// Connections to this rank that were refused since it last said so.
    Refused {
        /// How many.
        count: u64,
    },
    /// A checkpoint was written to files, or could not be.
    Saved(Saved),
    /// The rank keeps so much memory that a process in its place would need the same.
    Keeps {
        /// Bytes of each piece, the longest first.
        pieces: Vec<u64>,
    },
    /// What the rank has to say of a generation so far, in case that it does not come to its end. The newest counts.
    Account {
        /// This generation.
        generation: Generation,
        /// Opaque.
        account: Vec<u8>,
    },
    /// The program of the rank is done, and all ranks are to be done after the same step.
    Done {
        /// The generation in which it is.
        generation: Generation,
        /// Its last step.
        last: Place,
    },
    /// The program has made no call of the library for long.
    Silent {
        /// In milliseconds; 0: it makes calls again.
        millis: u64,
    },
    /// The thread that makes the calls of the program has ended, and its process lives.
    Dead {
        /// What was seen of it, in words.
        why: String,
    },
}

/// What has become of a checkpoint that was to be written to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Its number among those of the folder.
    pub number: u32,
    /// Bytes that the rank has written.
    pub bytes: u64,
    /// Why it is not there; none: all ranks have written their files, and it is whole.
    pub error: Option<String>,
}

impl ToArbiter {
    /// The generation in which alone it means something; none if it does in all of them.
    pub fn generation(&self) -> Option<Generation> {
        match self {
            Self::Suspect { generation, .. }
            | Self::Agree { generation, .. }
            | Self::Revoke { generation, .. }
            | Self::Ready { generation, .. }
            | Self::Resumed { generation, .. }
            | Self::Finalize { generation, .. }
            | Self::Done { generation, .. } => Some(*generation),
            Self::Join { .. }
            | Self::Beat { .. }
            | Self::Mark { .. }
            | Self::Reached { .. }
            | Self::Activity { .. }
            | Self::Progress { .. }
            | Self::Waiting(_)
            | Self::Moving
            | Self::Goodbye { .. }
            | Self::Refused { .. }
            | Self::Saved(_)
            | Self::Keeps { .. }
            | Self::Account { .. }
            | Self::Silent { .. }
            | Self::Dead { .. } => None,
        }
    }
}

/// A communicator, for those who are in none of its calls. Disjoint ones may have the same context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CommunicatorId {
    /// Its context.
    pub context: u32,
    /// The rank in the world of its rank 0.
    pub first: Rank,
}

/// What a rank has to say in an agreement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// It waits for the outcome.
    Gives {
        /// World ranks of the communicator.
        members: Vec<Rank>,
        /// The bits of which all others are to have the same.
        flags: u64,
        /// A context above all that it knows of.
        context: u32,
        /// Failed ranks that it has acknowledged.
        acknowledged: Vec<Rank>,
    },
    /// It knows the outcome already.
    Knows(Verdict),
}

/// The outcome of an agreement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What the program is told.
    pub agreement: Agreement,
    /// A context above all that any of the ranks knows of.
    pub context: u32,
}

/// From the launcher to a rank: the news of the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum News {
    /// First message on the link: the launcher knows this process.
    Welcome(Welcome),
    /// Alive; for [`crate::member`] alone.
    Beat,
    /// Ranks of this generation are lost: every call is interrupted until the repair.
    Failed {
        /// Generation of the loss.
        generation: Generation,
        /// All ranks lost in it so far; empty if only links broke.
        ranks: Vec<Rank>,
    },
    /// The next generation starts.
    Decided(Membership),
    /// Others wait for the outcome of this agreement: whoever knows it says so. Not for the rank but for its service.
    Asked {
        /// Generation of the communicator.
        generation: Generation,
        /// The communicator.
        of: CommunicatorId,
        /// Counts its agreements.
        number: u32,
    },
    /// The outcome of an agreement.
    Agreed {
        /// Generation of the communicator.
        generation: Generation,
        /// Its context.
        context: u32,
        /// Counts its agreements.
        number: u32,
        /// The outcome.
        verdict: Verdict,
    },
    /// All calls on the communicator with this context end.
    Revoked {
        /// Generation of the communicator.
        generation: Generation,
        /// Its context.
        context: u32,
    },
    /// All ranks are done.
    Finalized,
    /// Exit without goodbye: an injected failure.
    Die,
    /// Let nothing pass from and to these processes: an injected failure.
    Cut {
        /// Its position on the command line.
        spec: usize,
        /// The processes; the launcher may be among them.
        peers: Vec<PeerId>,
        /// How long, in milliseconds; without it for ever.
        millis: Option<u64>,
    },
    /// The job is over, or this process is out of it.
    Ended {
        /// Exit status.
        code: i32,
        /// Cause.
        message: String,
    },
    /// What is protected is to be written to files at once; not for the rank but for its service.
    Save,
    /// To a spare: a rank that it may get keeps so much memory. Not for a program but for its service.
    Prepare {
        /// Bytes of each piece, the longest first.
        pieces: Vec<u64>,
    },
}

impl News {
    /// The generation whose members alone it concerns; none if it concerns every process.
    pub fn generation(&self) -> Option<Generation> {
        match self {
            Self::Failed { generation, .. }
            | Self::Asked { generation, .. }
            | Self::Agreed { generation, .. }
            | Self::Revoked { generation, .. } => Some(*generation),
            Self::Welcome(_)
            | Self::Beat
            | Self::Decided(_)
            | Self::Finalized
            | Self::Die
            | Self::Cut { .. }
            | Self::Ended { .. }
            | Self::Save
            | Self::Prepare { .. } => None,
        }
    }
}

/// Why bytes on a control link are no message. The link is to be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// Longer than [`CONTROL_BYTES_MAX`].
    #[error("control message of {0} bytes, at most {CONTROL_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// Not a message of this version.
    #[error("control message cannot be read")]
    Garbled,
}

/// Appends `message` with its length to `out`.
pub fn encode<M: Serialize>(message: &M, out: &mut Vec<u8>) {
    let body = postcard::to_stdvec(message).expect("control messages hold nothing that cannot be written");
    out.extend_from_slice(&u32::try_from(body.len()).expect("control messages are short").to_le_bytes());
    out.extend_from_slice(&body);
}

/// Takes the first whole message from the front of `bytes`.
///
/// # Errors
/// The bytes are no message; the link is to be closed.
pub fn decode<M: DeserializeOwned>(bytes: &mut Vec<u8>) -> Result<Option<M>, ControlError> {
    let first = decode_first(bytes)?;
    Ok(first.map(|(message, length)| {
        bytes.drain(..length);
        message
    }))
}

/// The first whole message of `bytes`, and how many of them it takes. It is for whoever decodes many: [`decode`] moves all bytes behind the message each time.
///
/// # Errors
/// The bytes are no message; the link is to be closed.
pub fn decode_first<M: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(M, usize)>, ControlError> {
    let Some(prefix) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*prefix) as usize;
    if length > CONTROL_BYTES_MAX {
        return Err(ControlError::TooLong(length));
    }
    let Some(body) = bytes.get(4..4 + length) else { return Ok(None) };
    let (message, rest) = postcard::take_from_bytes(body).map_err(|_| ControlError::Garbled)?;
    if !rest.is_empty() {
        return Err(ControlError::Garbled);
    }
    Ok(Some((message, 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_arrive_in_pieces() {
        let sent = [
            ToArbiter::Beat { step: 7 },
            ToArbiter::Ready { generation: 3, report: 99 },
            ToArbiter::Goodbye { code: Some(2), message: "no such file".into() },
        ];
        let mut stream = Vec::new();
        sent.iter().for_each(|message| encode(message, &mut stream));
        let (mut got, mut pending) = (Vec::new(), Vec::new());
        for byte in stream {
            pending.push(byte);
            while let Some(message) = decode::<ToArbiter>(&mut pending).unwrap() {
                got.push(message);
            }
        }
        assert_eq!(got, sent);
        assert!(pending.is_empty());
    }

    /// Launcher and ranks may be of different builds: what one of them says has these bytes in all of one version.
    #[test]
    fn news_keeps_its_bytes() {
        let agreement = Agreement { flags: 5, failed: vec![1], unacknowledged: vec![] };
        let of = CommunicatorId { context: 8, first: 2 };
        let cases: [(News, &[u8]); 10] = [
            (News::Beat, &[1]),
            (News::Failed { generation: 3, ranks: vec![1, 2] }, &[2, 3, 2, 1, 2]),
            (News::Asked { generation: 3, of, number: 4 }, &[4, 3, 8, 2, 4]),
            (
                News::Agreed {
                    generation: 3,
                    context: 8,
                    number: 4,
                    verdict: Verdict { agreement, context: 9 },
                },
                &[5, 3, 8, 4, 5, 1, 1, 0, 9],
            ),
            (News::Revoked { generation: 3, context: 8 }, &[6, 3, 8]),
            (News::Finalized, &[7]),
            (News::Die, &[8]),
            (News::Cut { spec: 1, peers: vec![PeerId(0)], millis: Some(500) }, &[9, 1, 1, 0, 1, 0xf4, 3]),
            (News::Ended { code: 1, message: "x".into() }, &[10, 2, 1, b'x']),
            (News::Save, &[11]),
        ];
        for (news, bytes) in cases {
            let mut stream = Vec::new();
            encode(&news, &mut stream);
            assert_eq!(stream[4..], *bytes, "{news:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            while let Ok(Some(_)) = decode::<News>(&mut bytes) {}
        }
    }
}
