//! How a blocked caller waits: spinning, yielding, sleeping.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How a blocked caller waits: it looks again so many times, then lets others run between so many looks, then
/// sleeps in [`Transport::wait`](super::Transport::wait).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Looks one after the other.
    pub spins: u32,
    /// Looks with [`Transport::relax`](super::Transport::relax) before each. The sum of both fits into 32 bits.
    pub yields: u32,
    /// After a yield that took so long it yields no more for a while, but sleeps: somebody else computes on its core.
    pub gives_way: Option<Duration>,
}

/// What is asked for (`ftrun --wait`).
///
/// Yielding lets another rank run only where both are in one scheduler group: on kernels with autogroups, in
/// one session. So the launcher gives ranks no sessions of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// With a core for every rank, looks often, then yields, then sleeps; with more ranks than cores, yields a while, then sleeps. Where
    /// somebody computes on the core meanwhile, it sleeps without yielding. Good for all but the last microsecond.
    #[default]
    Auto,
    /// Looks often, then yields for ever. The shortest latency after long waits too, at the price of a busy core a
    /// rank: for jobs that have the machine to themselves, with a core for every rank.
    Spin,
    /// Yields for ever. For more ranks than cores where nobody else wants the cores.
    Yield,
    /// Sleeps at once. Every message costs a wake-up, but waiting costs neither power nor anybody else's time.
    Sleep,
}

impl Waiting {
    /// All of them, as they are written.
    pub const NAMES: [&str; 4] = ["auto", "spin", "yield", "sleep"];

    /// How a caller of a job of `ranks` ranks waits, where `cores` are there for all of them.
    pub fn patience(self, ranks: usize, cores: usize) -> Patience {
        // Two ranks may be on one core although there is another: a look alone would wait for the end of a time slice,
        // while a yield costs next to nothing where nobody else wants the core.
        const SPINS: u32 = 30;
        // Away for longer than that it was for a program that computes and has a slice of the scheduler's time. With more ranks than cores it may
        // have been for several ranks of the job, which then have to say something soon: that takes more.
        const SLICE: Duration = Duration::from_millis(1);
        const SHARED_SLICE: Duration = Duration::from_micros(2500);
        match self {
            Self::Auto if ranks <= cores => Patience { spins: SPINS, yields: 2000, gives_way: Some(SLICE) },
            Self::Auto => Patience { spins: 0, yields: 60, gives_way: Some(SHARED_SLICE) },
            Self::Spin => Patience { spins: SPINS, yields: u32::MAX - SPINS, gives_way: None },
            Self::Yield => Patience { yields: u32::MAX, ..Patience::default() },
            Self::Sleep => Patience::default(),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Waiting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Auto, Self::Spin, Self::Yield, Self::Sleep];
        all.into_iter()
            .find(|waiting| waiting.to_string() == text)
            .ok_or_else(|| format!("'{text}' is none of {}", Self::NAMES.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_in_its_own_way() {
        let patience = |waiting: Waiting, ranks| waiting.patience(ranks, 4);
        // With a core for every rank a caller spins, yields and sleeps; without, it never spins.
        assert!(patience(Waiting::Auto, 4).spins > 0 && patience(Waiting::Auto, 4).yields > 0);
        assert!(patience(Waiting::Auto, 5).spins == 0 && patience(Waiting::Auto, 5).yields > 0);
        for ranks in [4, 5] {
            // These two have no last look before a sleep, and the number of looks has room for them.
            for (waiting, spins) in [(Waiting::Spin, true), (Waiting::Yield, false)] {
                let Patience { spins: looks, yields, .. } = patience(waiting, ranks);
                assert_eq!((looks > 0, looks.checked_add(yields)), (spins, Some(u32::MAX)), "{waiting}");
            }
            assert_eq!(patience(Waiting::Sleep, ranks), Patience::default());
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for name in Waiting::NAMES {
            assert_eq!(name.parse::<Waiting>().unwrap().to_string(), name);
        }
        assert_eq!("doze".parse::<Waiting>().unwrap_err(), "'doze' is none of auto, spin, yield, sleep");
        assert_eq!("sleep".parse(), Ok(Waiting::Sleep));
    }
}
