//! What happens to a job from outside, and when.

use std::fmt;

use rustix::process::Signal;

use crate::doors::Manner;

/// Something that the launcher says with `-v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Joined,
    Lost,
    Back,
    Restored,
    Done,
}

impl Event {
    /// How it is recognized.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Joined => "all ranks have joined",
            Self::Lost => " is lost: ",
            Self::Back => "generation 1 starts",
            Self::Restored => "state restored",
            Self::Done => "all ranks are done",
        }
    }
}

/// A moment. Times after it are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    /// This part of the time that the job takes undisturbed.
    Part(f64),
    /// So long after the first rank was born.
    Birth(f64),
    /// So long after a process was born that takes the place of a lost one.
    Newborn(f64),
    /// So long after the launcher said so.
    Said(Event, f64),
}

/// Whom it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// So many random ranks or spares.
    Ranks(usize),
    AllRanks,
    /// The process that was started last, in place of a lost one.
    Newest,
    /// A random agent, or the keeper of one.
    Agent,
    /// The keeper of a random agent.
    Keeper,
    Launcher,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    /// A signal. Whoever is stopped goes on after so many milliseconds, or never.
    Signal { who: Who, signal: Signal, resume: Option<f64> },
    /// Connections to all doors of the job.
    Strangers { manner: Manner, count: usize },
    /// The file of `ftrun` is removed, or replaced by another program.
    Replace { is_removed: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Strike {
    pub(crate) when: When,
    pub(crate) deed: Deed,
}

impl Strike {
    pub(crate) fn kill(when: When, who: Who) -> Self {
        Self { when, deed: Deed::Signal { who, signal: Signal::KILL, resume: None } }
    }

    pub(crate) fn stop(when: When, who: Who, resume: Option<f64>) -> Self {
        Self { when, deed: Deed::Signal { who, signal: Signal::STOP, resume } }
    }

    /// Whether it stops processes.
    pub(crate) fn stops(&self) -> bool {
        matches!(self.deed, Deed::Signal { signal: Signal::STOP, .. })
    }

    /// Under what name it is counted.
    pub(crate) fn kind(&self) -> &'static str {
        let newborn = matches!(self.when, When::Newborn(_));
        let birth = matches!(self.when, When::Birth(_));
        match self.deed {
            Deed::Strangers { manner, .. } => match manner {
                Manner::Silent => "strangers, silent",
                Manner::OneByte => "strangers, one byte",
                Manner::Garbage | Manner::Http => "strangers, garbage",
            },
            Deed::Replace { is_removed: true } => "executable removed",
            Deed::Replace { is_removed: false } => "executable replaced",
            Deed::Signal { who: Who::Keeper, .. } => "keeper stopped",
            Deed::Signal { who: Who::Launcher, signal, .. } => match signal {
                Signal::KILL => "launcher killed",
                Signal::STOP => "launcher stopped",
                Signal::TSTP => "launcher suspended",
                _ => "launcher told to end",
            },
            Deed::Signal { who: Who::Agent, signal: Signal::KILL, .. } => "agent killed",
            Deed::Signal { who: Who::Agent, .. } => "agent stopped",
            Deed::Signal { who: Who::AllRanks, .. } => "all ranks killed",
            Deed::Signal { who: Who::Newest, signal: Signal::KILL, .. } => "newborn killed",
            Deed::Signal { who: Who::Newest, .. } => "newborn stopped",
            Deed::Signal { signal: Signal::KILL, .. } if newborn || birth => "killed at birth",
            Deed::Signal { who: Who::Ranks(1), signal: Signal::KILL, .. } => "rank killed",
            Deed::Signal { signal: Signal::KILL, .. } => "ranks killed together",
            Deed::Signal { .. } if birth => "stopped at birth",
            Deed::Signal { resume: None, .. } => "rank stopped for ever",
            Deed::Signal { .. } => "rank stopped",
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(part) => write!(f, "at {part:.3} of the job"),
            Self::Birth(ms) => write!(f, "{ms:.1} ms after the first birth"),
            Self::Newborn(ms) => write!(f, "{ms:.1} ms after the birth of a replacement"),
            Self::Said(event, ms) => write!(f, "{ms:.1} ms after '{}'", event.words().trim()),
        }
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.deed {
            Deed::Strangers { manner, count } => {
                write!(f, "{}: {count} strangers, {manner:?}", self.when)
            }
            Deed::Replace { .. } => write!(f, "{}: {}", self.when, self.kind()),
            Deed::Signal { who, signal, resume } => {
                write!(f, "{}: {} to {who:?}", self.when, name(signal))?;
                resume.map_or(Ok(()), |ms| write!(f, ", SIGCONT after {ms:.0} ms"))
            }
        }
    }
}

fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::KILL => "SIGKILL",
        Signal::STOP => "SIGSTOP",
        Signal::TSTP => "SIGTSTP",
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        _ => "SIGHUP",
    }
}
