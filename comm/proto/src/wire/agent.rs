//! Messages between the launcher and its agents, which start processes on other hosts: written as control messages are
//! ([`encode`](super::control::encode)).

use serde::{Deserialize, Serialize};

use crate::rank::PeerId;

/// Bytes of standard input that may be on their way to a process that does not read them.
pub const INPUT_WINDOW: usize = 64 << 10;

/// What an agent has to know before it starts anything. The key of the job is not among it: the agent has that already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The program of every process, as the operating system writes paths.
    pub program: Vec<u8>,
    /// Its arguments.
    pub args: Vec<Vec<u8>>,
    /// The program that each rank becomes, if it does.
    pub executable: Option<Vec<u8>>,
    /// The folder to work in.
    pub folder: Vec<u8>,
    /// What the processes find in their environment, besides what the agent knows itself.
    pub environment: Vec<(String, String)>,
    /// Milliseconds between two signs of life.
    pub heartbeat_ms: u64,
    /// Milliseconds of silence after which the other side is lost.
    pub timeout_ms: u64,
    /// With its signs of life the agent is to say how busy its host is.
    pub measures: bool,
    /// What processes print passes unchanged, as soon as it is read.
    pub raw_output: bool,
}

/// How busy a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Thousandths of processes that want to run, on average over the last minute.
    pub running: u32,
    /// Its cores.
    pub cores: u32,
}

/// A share of the cores of a host: the one at `index` of `count` equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreShare {
    /// Which.
    pub index: u32,
    /// Of how many.
    pub count: u32,
}

/// Where a process stands in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its rank at the start of the job.
    pub rank: u32,
    /// Ranks that compute at the start.
    pub size: u32,
    /// Its number among the ranks of its host.
    pub local: u32,
}

/// What a process is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// It may get standard input.
    pub reads: bool,
    /// The cores that it runs on, if it is bound.
    pub share: Option<CoreShare>,
    /// Ranks that have the cores of its host among them.
    pub ranks: u32,
    /// None for a spare.
    pub standing: Option<Standing>,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// From the launcher to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// First message on the link.
    Site(Site),
    /// Alive.
    Beat,
    /// Start a process.
    Start {
        /// Under this number.
        peer: PeerId,
        /// With this.
        birth: Birth,
    },
    /// A spare has got a rank: bind it.
    Bind {
        /// The process.
        peer: PeerId,
        /// Its cores.
        share: CoreShare,
    },
    /// Send a signal.
    Signal {
        /// To this process and its children; none: to all.
        to: Option<PeerId>,
        /// The number of the signal.
        signal: i32,
    },
    /// Standard input.
    Input {
        /// Of this process.
        peer: PeerId,
        /// What comes next; empty: nothing more does.
        bytes: Vec<u8>,
    },
    /// The job is over: end everything and exit.
    End,
    /// What of what processes print is to stay in their pipes, as nobody reads it.
    Hold(Held),
}

/// Which of the streams of processes stay in their pipes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Standard output.
    pub output: bool,
    /// Standard error.
    pub error: bool,
}

impl Held {
    /// Whether one stream is: standard error, or the other.
    pub fn has(self, is_error: bool) -> bool {
        if is_error { self.error } else { self.output }
    }
}

/// From an agent to the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromAgent {
    /// Alive.
    Beat {
        /// How busy the host is, if the launcher wants to know.
        busy: Option<Busy>,
    },
    /// Processes have given signs of life, which the launcher has not heard from themselves.
    Alive {
        /// Which, and the step that each was in.
        of: Vec<(PeerId, u64)>,
    },
    /// Nothing can be started on this host.
    Refused {
        /// Why.
        why: String,
    },
    /// A process was started.
    Started {
        /// Which.
        peer: PeerId,
        /// Its number on that host.
        pid: u32,
    },
    /// A process could not be started.
    NotStarted {
        /// Which.
        peer: PeerId,
        /// Why.
        why: String,
    },
    /// A process does nothing any more but has not ended yet.
    Dying {
        /// Which.
        peer: PeerId,
        /// How.
        ended: Ended,
    },
    /// A process has ended and was waited for.
    Gone {
        /// Which.
        peer: PeerId,
        /// How.
        ended: Ended,
    },
    /// What a process has printed: whole lines, and the beginning of one whose end does not follow
    /// soon.
    Output {
        /// Which.
        peer: PeerId,
        /// To standard error.
        error: bool,
        /// The lines.
        lines: Vec<u8>,
    },
    /// A process has taken standard input.
    Taken {
        /// Which.
        peer: PeerId,
        /// So many bytes of it.
        bytes: u32,
    },
    /// A process was stopped by a signal, or goes on.
    Stopped {
        /// Which.
        peer: PeerId,
        /// It is stopped now.
        is_stopped: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::control::{decode, encode};
    use proptest::prelude::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let site = Site {
            program: b"/a b/ftrun".to_vec(),
            args: vec![b"\xff".to_vec(), vec![]],
            executable: Some(b"./program".to_vec()),
            folder: b"/".to_vec(),
            environment: vec![("A".into(), "1".into())],
            heartbeat_ms: 100,
            timeout_ms: 1000,
            measures: true,
            raw_output: true,
        };
        let sent = [
            ToAgent::Site(site),
            ToAgent::Start {
                peer: PeerId(7),
                birth: Birth {
                    reads: true,
                    share: Some(CoreShare { index: 1, count: 2 }),
                    ranks: 2,
                    standing: Some(Standing { rank: 5, size: 6, local: 1 }),
                },
            },
            ToAgent::Signal { to: None, signal: 9 },
            ToAgent::Input { peer: PeerId(7), bytes: vec![] },
            ToAgent::End,
            ToAgent::Hold(Held { output: true, error: false }),
        ];
        let mut bytes = Vec::new();
        sent.iter().for_each(|message| encode(message, &mut bytes));
        let got: Vec<ToAgent> = std::iter::from_fn(|| decode(&mut bytes).unwrap()).collect();
        assert_eq!(got, sent);
        assert!(bytes.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 0_u8..60, variant in 0_u8..9
        ) {
            let mut whole = vec![length, 0, 0, 0, variant];
            whole.extend_from_slice(&bytes);
            let mut twice = whole.clone();
            while let Ok(Some(message)) = decode::<ToAgent>(&mut whole) {
                let mut again = Vec::new();
                encode(&message, &mut again);
                prop_assert_eq!(decode::<ToAgent>(&mut again), Ok(Some(message)));
            }
            while let Ok(Some(_)) = decode::<FromAgent>(&mut twice) {}
            while let Ok(Some(_)) = decode::<FromAgent>(&mut bytes) {}
        }
    }
}
