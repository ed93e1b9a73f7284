//! What else the machine does while something is measured.

use std::fs;

use crate::recovery::percent;

/// The part of all cores that other processes may have.
const FOREIGN: f64 = 0.06;

/// Clock ticks since the start of the machine and of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ticks {
    /// In which a core did something.
    busy: u64,
    /// Of all cores.
    all: u64,
    /// Of this process and of its children that were waited for.
    own: u64,
}

impl Ticks {
    /// As the system has counted them; zeros where it does not say.
    pub fn now() -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        Self::of(&read("/proc/stat"), &read("/proc/self/stat"))
    }

    fn of(machine: &str, process: &str) -> Self {
        let numbers = |words: &str| -> Vec<u64> {
            words.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect()
        };
        let cores = machine.lines().find_map(|line| line.strip_prefix("cpu "));
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted as users.
        let cores = numbers(cores.unwrap_or_default());
        let all = cores.iter().take(8).sum();
        let idle: u64 = cores.iter().skip(3).take(2).sum();
        // The name, second of the fields, ends with the last bracket; utime, stime, cutime, cstime are 14 to 17.
        let fields = numbers(process.rsplit_once(')').map_or("", |(_, fields)| fields));
        Self { busy: all - idle, all, own: fields.iter().skip(11).take(4).sum() }
    }

    /// The part of all cores that others had from then on until now.
    pub fn foreign_until(self, now: Self) -> f64 {
        let own = now.own.saturating_sub(self.own);
        let foreign = now.busy.saturating_sub(self.busy).saturating_sub(own);
        foreign as f64 / now.all.saturating_sub(self.all).max(1) as f64
    }
}

/// Whether other processes had a part in what was measured, given the part that they had during each start of a program.
pub fn disturbance(foreign: impl Iterator<Item = f64> + Clone) -> Option<String> {
    let disturbed = foreign.clone().filter(|&part| part > FOREIGN).count();
    let most = foreign.clone().fold(0.0, f64::max);
    (disturbed > 0).then(|| {
        format!(
            "Other processes had more than {} of the cores during {disturbed} of {} starts, {} at most: \
             whoever spins suffers most, so repeat it on a quiet machine.",
            percent(FOREIGN),
            foreign.count(),
            percent(most)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_figures_are_counted() {
        assert_eq!(disturbance([0.0, 0.0].into_iter()), None);
        let said = disturbance([0.0, 0.25].into_iter()).unwrap();
        assert!(said.contains("during 1 of 2 starts, 25.0\u{a0}% at most"), "{said}");
    }

    #[test]
    fn ticks_by_hand() {
        let before = Ticks::of(
            "cpu  100 0 50 800 50 0 10 0 0 0\ncpu0 1 2 3\n",
            "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 20 10 5 5 20 0 1",
        );
        assert_eq!(before, Ticks { busy: 160, all: 1010, own: 40 });
        let after = Ticks { busy: 240, all: 1110, own: 100 };
        assert_eq!(before.foreign_until(after), 0.2);
        assert_eq!(before.foreign_until(Ticks { own: 200, ..after }), 0.0, "rounding");
        assert_eq!(before.foreign_until(before), 0.0);
    }

    #[test]
    fn this_machine_is_read() {
        let now = Ticks::now();
        assert!(now.busy > 0 && now.all > now.busy && now.own <= now.busy, "{now:?}");
    }
}
