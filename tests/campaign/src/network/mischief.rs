//! What the relay does to bytes that pass between two hosts.

use std::fmt;
use std::time::Duration;

use super::namespaces::HOSTS;
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// One bit is another.
    Flip,
    /// So many bytes are missing.
    Drop(usize),
    /// So many bytes come twice.
    Repeat(usize),
    /// What comes together comes in another order.
    Reorder,
    /// What follows comes so many milliseconds late, in one direction of one connection.
    Delay(f64),
    /// The connection ends.
    Cut,
    /// One direction of the connection ends, in the middle.
    Truncate,
    /// For so many milliseconds nothing passes between the hosts.
    Silence(f64),
    /// Nothing passes any more.
    SilenceForEver,
    /// The program that an agent is to start is another one.
    Rename,
}

/// What is done, between whom, after how many bytes, and how often.
#[derive(Clone, Debug)]
pub(super) struct Mischief {
    kind: Kind,
    pub(super) between: [usize; 2],
    /// Bytes between the two, in both directions and all connections, until it is done next.
    next: u64,
    every: u64,
    left: u32,
    done: u32,
    silent_until: Duration,
}

/// What becomes of a piece.
#[derive(Debug, Default)]
pub(super) struct Fate {
    pub(super) bytes: Vec<u8>,
    /// When it may go on.
    pub(super) due: Duration,
    /// The connection ends.
    pub(super) cut: bool,
    /// Nothing more goes this way.
    pub(super) ends: bool,
}

impl Mischief {
    pub(super) fn choose(random: &mut Random) -> Self {
        let few = 1 + random.below(64);
        let ms = random.between(1.0, 2000.0);
        let kind = random.weighed(&[
            (6, Kind::Flip),
            (3, Kind::Drop(few)),
            (3, Kind::Repeat(few)),
            (3, Kind::Reorder),
            (2, Kind::Delay(ms)),
            (3, Kind::Cut),
            (2, Kind::Truncate),
            (2, Kind::Silence(ms)),
            (1, Kind::SilenceForEver),
            (2, Kind::Rename),
        ]);
        let first = 1 + random.below(HOSTS);
        let second = 1 + (first + random.below(HOSTS - 1)) % HOSTS;
        // Half of all strike the handshakes and the first orders, half the work.
        let next = 10f64.powf(random.between(0.5, 6.0)) as u64;
        let every = 10f64.powf(random.between(3.0, 5.5)) as u64;
        let left = random.one_of(&[1, 1, 3, 30]);
        Self { kind, between: [first, second], next, every, left, done: 0, silent_until: Duration::ZERO }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Flip => "flips",
            Kind::Drop(_) => "drops",
            Kind::Repeat(_) => "repeats",
            Kind::Reorder => "reorders",
            Kind::Delay(_) => "delays",
            Kind::Cut => "cuts",
            Kind::Truncate => "truncates",
            Kind::Silence(_) => "is silent for a while",
            Kind::SilenceForEver => "is silent for ever",
            Kind::Rename => "renames the program",
        }
    }

    pub(super) fn done(&self) -> u32 {
        self.done
    }

    /// Something passes between the two.
    pub(super) fn meet(&mut self, now: Duration, bytes: Vec<u8>, random: &mut Random) -> Fate {
        let mut fate = Fate { bytes, due: now.max(self.silent_until), ..Fate::default() };
        if self.kind == Kind::Rename {
            self.rename(&mut fate.bytes);
            return fate;
        }
        let count = fate.bytes.len() as u64;
        if self.left == 0 || self.next >= count {
            self.next = self.next.saturating_sub(count);
            return fate;
        }
        let at = self.next as usize;
        self.next = (self.every as f64 * random.between(0.5, 1.5)) as u64;
        self.left -= 1;
        self.done += 1;
        self.act(now, at, &mut fate, random);
        fate
    }

    fn act(&mut self, now: Duration, at: usize, fate: &mut Fate, random: &mut Random) {
        let bytes = &mut fate.bytes;
        let later = |ms: f64| now + Duration::from_secs_f64(ms * 1e-3);
        match self.kind {
            Kind::Flip => bytes[at] ^= 1 << random.below(8),
            Kind::Drop(count) => _ = bytes.drain(at..(at + count).min(bytes.len())),
            Kind::Repeat(count) => {
                let again = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            Kind::Reorder => {
                let half = (bytes.len() - at) / 2;
                bytes[at..].rotate_left(half);
            }
            Kind::Delay(ms) => fate.due = later(ms),
            Kind::Cut => fate.cut = true,
            Kind::Truncate => {
                bytes.truncate(at);
                fate.ends = true;
            }
            Kind::Silence(ms) => self.silent_until = later(ms),
            Kind::SilenceForEver => self.silent_until = Duration::MAX,
            Kind::Rename => {}
        }
        fate.due = fate.due.max(self.silent_until);
    }

    fn rename(&mut self, bytes: &mut [u8]) {
        const NAME: &[u8] = b"/ftrun";
        let mut from = 0;
        while let Some(at) = bytes[from..].windows(NAME.len()).position(|window| window == NAME) {
            from += at + NAME.len();
            bytes[from - 1] = b'N';
            self.done += 1;
        }
    }
}

impl fmt::Display for Mischief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, between: [one, other], next, every, left, .. } = self;
        write!(
            f,
            "a relay between hosts {one} and {other}: {kind:?} after {next} bytes, at most {left} times, {every} bytes apart"
        )
    }
}
