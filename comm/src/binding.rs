//! Which cores a rank runs on.
//!
//! Ranks that wait by looking are easily put on one core by the system's scheduler, although there is another: a
//! message wakes its receiver near its sender. As long as there is a core for every rank, each is therefore bound to a
//! share of its own; threads that it starts inherit the share. The service thread is not bound, so that news is heard
//! while the rank computes.

use std::fmt;
use std::str::FromStr;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use ft_proto::rank::Rank;

/// Environment: the cores of a rank, as numbers with commas; not set if it is not bound.
pub const ENV_CORES: &str = "FTRUN_CORES";

/// Whether ranks are bound to cores (`ftrun --bind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// Each to a share of its own, if there is a core for every rank.
    #[default]
    Auto,
    /// Not at all.
    None,
}

impl Binding {
    /// Both, as they are written.
    pub const NAMES: [&str; 2] = ["auto", "none"];

    /// The cores of one rank of `ranks`, of those that are there for all of them.
    pub fn share(self, rank: Rank, ranks: usize, cores: &[usize]) -> Option<&[usize]> {
        let count = cores.len();
        let wanted = self == Self::Auto && ranks > 1 && ranks <= count && rank < ranks;
        wanted.then(|| &cores[rank * count / ranks..(rank + 1) * count / ranks])
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Binding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            _ => Err(format!("'{text}' is none of {}", Self::NAMES.join(", "))),
        }
    }
}

/// The cores that this process may run on.
pub fn cores() -> Vec<usize> {
    // The standard library's count reads files of control groups, which a replacement is not to open.
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Cores as they are written into [`ENV_CORES`].
pub fn text(cores: &[usize]) -> String {
    cores.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Binds a process, or none for the calling thread, to the cores that `text` names. Where the system refuses, it runs on
/// as before. Of a process it is the main thread, and the threads that it starts later.
pub fn bind(process: Option<Pid>, text: &str) {
    let mut set = CpuSet::new();
    for core in text.split(',').filter_map(|core| core.parse().ok()).filter(|core| *core < CpuSet::MAX_CPU) {
        set.set(core);
    }
    if set.count() > 0 {
        let _ = sched_setaffinity(process, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_use_all_cores() {
        let cores = [0, 2, 3, 5, 8, 9, 11];
        for ranks in 2..=7 {
            let shares: Vec<&[usize]> =
                (0..ranks).map(|rank| Binding::Auto.share(rank, ranks, &cores).unwrap()).collect();
            assert!(shares.iter().all(|share| !share.is_empty()));
            assert_eq!(shares.concat(), cores);
        }
        // With more ranks than cores, or one rank alone, the scheduler knows better.
        assert_eq!(Binding::Auto.share(0, 8, &cores), None);
        assert_eq!(Binding::Auto.share(0, 1, &cores), None);
        assert_eq!(Binding::None.share(0, 2, &cores), None);
    }

    #[test]
    fn a_thread_runs_where_it_is_bound() {
        let all = cores();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                bind(None, &text(&all[all.len() - 1..]));
                assert_eq!(cores(), all[all.len() - 1..]);
                bind(None, "no core");
                assert_eq!(cores(), all[all.len() - 1..]);
            });
        });
    }

    #[test]
    fn what_is_written_is_read() {
        for name in Binding::NAMES {
            assert_eq!(name.parse::<Binding>().unwrap().to_string(), name);
        }
        assert!("core".parse::<Binding>().is_err());
    }
}
