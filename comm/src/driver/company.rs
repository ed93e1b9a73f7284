//! Whether somebody computes on the core of this rank while it waits.
//!
//! Who yields gives its core away. Where nobody else wants it, that takes less than a microsecond, and where other ranks wait as well, a few. Where another
//! program computes, the core is back after a slice of time of the scheduler: milliseconds, for a message that is there after microseconds. A rank that
//! sleeps is woken by the message instead. It is the same if a rank of the job computes for so long: then the wake-up costs next to nothing of that.

use std::time::Duration;

use ft_proto::time::Time;

/// So many waits are slept through after that, and twice as many each time that the others are still there.
const SLEEPS: std::ops::RangeInclusive<u32> = 64..=4096;
/// After so many yields in a row that nobody took, the others are gone.
const ALONE: u32 = 32;

/// What is known of others on this core.
#[derive(Debug, Default)]
pub(super) struct Company {
    /// When the last yield was over, or, before the second one of a wait, that began.
    since: Time,
    /// So many waits are still slept through.
    sleeps: u32,
    /// So many there were when others were seen last.
    spell: u32,
}

impl Company {
    /// Whether it is better to sleep than to yield.
    pub(super) fn is_there(&self) -> bool {
        self.sleeps > 0
    }

    /// The caller yields by `relax`, for the time of this number in a row. Who is away for a `slice` was not alone on its core. Most waits are over after one, which is
    /// not timed.
    pub(super) fn yields(
        &mut self,
        number: u32,
        slice: Duration,
        mut now: impl FnMut() -> Time,
        relax: impl FnOnce(),
    ) {
        if number == 2 {
            self.since = now();
        }
        relax();
        if number < 2 {
            return;
        }
        let now = now();
        if now.since(self.since) >= slice {
            self.spell = self.spell.saturating_mul(2).clamp(*SLEEPS.start(), *SLEEPS.end());
            self.sleeps = self.spell;
        } else if number == ALONE {
            self.spell = 0;
        }
        self.since = now;
    }

    /// The caller has slept.
    pub(super) fn slept(&mut self) {
        self.sleeps = self.sleeps.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields as often as an idle wait does at most, each so long; how often, until there is company.
    fn yields(company: &mut Company, now: &mut Time, each: Duration) -> u32 {
        let until = |number: &u32| {
            let clock = std::cell::Cell::new(*now);
            let relax = || clock.set(clock.get().after(each));
            company.yields(*number, Duration::from_millis(1), || clock.get(), relax);
            *now = clock.get();
            company.is_there()
        };
        (1..=2000).find(until).unwrap_or(2000)
    }

    #[test]
    fn alone_it_yields() {
        let (mut company, mut now) = (Company::default(), Time(0));
        assert_eq!(yields(&mut company, &mut now, Duration::from_micros(1)), 2000);
        // Computing between two waits is no company.
        now = now.after(Duration::from_secs(1));
        assert_eq!(yields(&mut company, &mut now, Duration::from_micros(1)), 2000);
        company.slept();
        assert!(!company.is_there());
    }

    #[test]
    fn beside_others_it_sleeps_ever_longer_until_they_are_gone() {
        let (mut company, mut now) = (Company::default(), Time(0));
        let mut spells = Vec::new();
        for _ in 0..8 {
            assert_eq!(yields(&mut company, &mut now, Duration::from_millis(3)), 2, "the second is timed");
            let sleeps = (1..).find(|_| {
                company.slept();
                !company.is_there()
            });
            spells.extend(sleeps);
        }
        assert_eq!(spells, [64, 128, 256, 512, 1024, 2048, 4096, 4096]);
        assert_eq!(yields(&mut company, &mut now, Duration::from_micros(1)), 2000);
        yields(&mut company, &mut now, Duration::from_millis(3));
        (0..64).for_each(|_| company.slept());
        assert!(!company.is_there(), "the next spell is short again");
    }
}
