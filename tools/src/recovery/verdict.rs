//! Memory against disk, in words: which is faster, by what factor, and where that stops being true.

use ft_figures::Table;

use super::experiment::is_disk;
use super::stats::Spread;
use super::summary::{Protected, Summary, TOO_FEW};
use super::tables;
use super::units::{bytes, ms, percent, quartiles, short};

/// Mean time between failures for which long runs are compared, in seconds.
const MTBF_S: f64 = 3600.0;

/// What the runs say of memory and disk.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// All of it in one sentence, without its full stop.
    pub(crate) headline: String,
    /// Each a sentence or a few.
    pub(crate) paragraphs: Vec<String>,
    /// The figures; none where there is nothing to compare.
    pub(crate) table: Option<Table>,
}

/// Which of both is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faster {
    Memory,
    Disk,
    /// The quartiles overlap, or there are too few runs to have any.
    Open,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    Checkpoint,
    Recovery,
}

impl Timed {
    fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Recovery => "recovery",
        }
    }

    fn of(self, protected: &Protected) -> Spread {
        match self {
            Self::Checkpoint => protected.checkpoint_s,
            Self::Recovery => protected.recovery_s,
        }
    }
}

/// The fastest scheme in memory beside the fastest on a disk, for one size of the state.
struct Pair<'a> {
    timed: Timed,
    state_bytes: u64,
    memory: (&'a str, Spread),
    disk: (&'a str, Spread),
    faster: Faster,
}

impl<'a> Pair<'a> {
    /// None without a run of either kind.
    fn new(timed: Timed, state_bytes: u64, summaries: &'a [Summary], repeat: usize) -> Option<Self> {
        let fastest = |on_disk: bool| {
            let of_kind = protected(summaries, state_bytes).filter(|(scheme, _)| is_disk(scheme) == on_disk);
            let times = of_kind.map(|(scheme, protected)| (scheme, timed.of(protected)));
            times.filter(|(_, time)| time.median > 0.0).min_by(|a, b| a.1.median.total_cmp(&b.1.median))
        };
        let (memory, disk) = (fastest(false)?, fastest(true)?);
        let faster = match repeat >= TOO_FEW {
            true if memory.1.high < disk.1.low => Faster::Memory,
            true if disk.1.high < memory.1.low => Faster::Disk,
            _ => Faster::Open,
        };
        Some(Self { timed, state_bytes, memory, disk, faster })
    }

    /// `64 MiB a rank (xor 20.1 ms, disk 42.2 ms)`.
    fn figures(&self) -> String {
        let ((memory, memory_s), (disk, disk_s)) = (self.memory, self.disk);
        let (memory_ms, disk_ms) = (ms(memory_s.median), ms(disk_s.median));
        format!("{} a rank ({memory} {memory_ms} ms, {disk} {disk_ms} ms)", bytes(self.state_bytes))
    }

    /// The median of the slower one as a multiple of the other's.
    fn factor(&self) -> f64 {
        let (memory_s, disk_s) = (self.memory.1.median, self.disk.1.median);
        memory_s.max(disk_s) / memory_s.min(disk_s)
    }

    fn row(&self) -> Vec<String> {
        let ((memory, memory_s), (disk, disk_s)) = (self.memory, self.disk);
        let faster = match self.faster {
            Faster::Memory => "memory",
            Faster::Disk => "disk",
            Faster::Open => "open",
        };
        vec![
            bytes(self.state_bytes),
            self.timed.name().to_owned(),
            memory.to_owned(),
            ms(memory_s.median),
            quartiles(&memory_s, ms),
            disk.to_owned(),
            ms(disk_s.median),
            quartiles(&disk_s, ms),
            short(disk_s.median / memory_s.median),
            faster.to_owned(),
        ]
    }
}

fn protected(summaries: &[Summary], state_bytes: u64) -> impl Iterator<Item = (&str, &Protected)> {
    let of_state = summaries.iter().filter(move |summary| summary.state_bytes == state_bytes);
    of_state.filter_map(|summary| Some((summary.scheme.as_str(), summary.protected.as_ref()?)))
}

/// Judges the medians of `repeat` repetitions, with states of these sizes.
pub(crate) fn verdict(states: &[u64], summaries: &[Summary], repeat: usize) -> Verdict {
    let pair = |timed| states.iter().filter_map(move |state| Pair::new(timed, *state, summaries, repeat));
    let pairs: Vec<Pair<'_>> = [Timed::Checkpoint, Timed::Recovery].into_iter().flat_map(pair).collect();
    if pairs.is_empty() {
        let has = |on_disk| {
            summaries.iter().any(|summary| summary.protected.is_some() && is_disk(&summary.scheme) == on_disk)
        };
        let what = if has(false) { "disk scheme" } else { "scheme in memory" };
        return Verdict {
            headline: "No verdict on memory and disk".to_owned(),
            paragraphs: vec![format!(
                "No {what} was measured, so there is nothing to compare; --schemes neighbor,xor,disk has both kinds."
            )],
            table: None,
        };
    }
    let mut paragraphs: Vec<String> = [Timed::Checkpoint, Timed::Recovery]
        .into_iter()
        .filter_map(|timed| sentences(timed, &pairs))
        .collect();
    paragraphs.extend(long_runs(summaries, &pairs));
    paragraphs.push(
        "Memory survives as many losses at once as its scheme says; only files survive the loss of all ranks."
            .to_owned(),
    );
    Verdict { headline: headline(&pairs, repeat), paragraphs, table: Some(table(&pairs)) }
}

fn headline(pairs: &[Pair<'_>], repeat: usize) -> String {
    let has = |faster| pairs.iter().any(|pair| pair.faster == faster);
    match (has(Faster::Memory), has(Faster::Disk), has(Faster::Open)) {
        (true, false, false) => "Memory beats disk wherever it was measured".to_owned(),
        (false, true, false) => "Disk beats memory wherever it was measured".to_owned(),
        (true, false, true) => {
            format!("Memory beats disk; too noisy to tell {}", places(pairs, Faster::Open))
        }
        (false, true, true) => {
            format!("Disk beats memory; too noisy to tell {}", places(pairs, Faster::Open))
        }
        (true, true, _) => format!("Memory beats disk, but not {}", places(pairs, Faster::Disk)),
        (false, false, _) if repeat < TOO_FEW => "Too few repetitions to tell memory from disk".to_owned(),
        (false, false, _) => "Too noisy to tell memory from disk".to_owned(),
    }
}

/// `in checkpoints at 8 MiB and 64 MiB a rank, nor in recoveries at 64 MiB a rank`.
fn places(pairs: &[Pair<'_>], faster: Faster) -> String {
    let place = |(timed, name): (Timed, &str)| {
        let sizes = pairs.iter().filter(|pair| (pair.timed, pair.faster) == (timed, faster));
        let sizes: Vec<String> = sizes.map(|pair| bytes(pair.state_bytes)).collect();
        (!sizes.is_empty()).then(|| format!("in {name} at {} a rank", sizes.join(" and ")))
    };
    let names = [(Timed::Checkpoint, "checkpoints"), (Timed::Recovery, "recoveries")];
    names.into_iter().filter_map(place).collect::<Vec<_>>().join(", nor ")
}

/// What is to be said of checkpoints or of recoveries, with factors.
fn sentences(timed: Timed, pairs: &[Pair<'_>]) -> Option<String> {
    let of = |faster| pairs.iter().filter(move |pair| (pair.timed, pair.faster) == (timed, faster));
    let factors = |faster| -> Option<String> {
        let parts: Vec<String> =
            of(faster).map(|pair| format!("{} times at {}", short(pair.factor()), pair.figures())).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    };
    let open: Vec<String> = of(Faster::Open).map(Pair::figures).collect();
    let name = timed.name();
    let said = [
        factors(Faster::Memory).map(|list| format!("A {name} is faster in memory: {list}.")),
        factors(Faster::Disk).map(|list| format!("A {name} is faster on disk: {list}.")),
        (!open.is_empty())
            .then(|| format!("Quartiles of a {name} overlap, or are not known, at {}.", open.join(", "))),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// What it means for long runs with the largest state, where the runs tell anything of that.
fn long_runs(summaries: &[Summary], pairs: &[Pair<'_>]) -> Option<String> {
    let told = pairs.iter().filter(|pair| pair.faster != Faster::Open);
    let state = told.map(|pair| pair.state_bytes).max()?;
    let best = |on_disk: bool| {
        let of_kind = protected(summaries, state).filter(|(scheme, _)| is_disk(scheme) == on_disk);
        let efficiencies = of_kind.map(|(scheme, protected)| {
            let costs = protected.costs();
            (scheme, costs.efficiency(MTBF_S, costs.daly_s(MTBF_S)))
        });
        efficiencies.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ((memory, in_memory), (disk, on_disk)) = (best(false)?, best(true)?);
    Some(format!(
        "Long runs with {} a rank and a failure an hour have {} of their time for work with {memory}, {} with {disk}.",
        bytes(state),
        percent(in_memory),
        percent(on_disk)
    ))
}

fn table(pairs: &[Pair<'_>]) -> Table {
    let header = [
        "state",
        "of one",
        "in\u{a0}memory",
        "[ms]",
        "quartiles",
        "on\u{a0}disk",
        "[ms]",
        "quartiles",
        "disk /\u{a0}memory",
        "faster",
    ];
    tables::table(&header, pairs.iter().map(Pair::row))
}

#[cfg(test)]
mod tests {
    use ft_checkpoint::interval::Costs;

    use super::super::summary::UNPROTECTED;
    use super::super::units::NO_BREAK;
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A time of so many ms, with quartiles so many per cent away from it.
    fn spread(median_ms: f64, percent: f64) -> Spread {
        let off = median_ms * percent / 100.0;
        Spread { low: (median_ms - off) / 1e3, median: median_ms / 1e3, high: (median_ms + off) / 1e3 }
    }

    fn summary(state_mib: u64, scheme: &str, checkpoint_s: Spread, recovery_s: Spread) -> Summary {
        let protected = Protected {
            checkpoint_s,
            checkpoint_phases_s: [0.0; 4],
            moved_bytes: 0.0,
            memory_overhead: 1.0,
            recovery_s,
            recovery_phases_s: [0.0; 6],
            steps_lost: 0.0,
        };
        Summary {
            state_bytes: state_mib * MIB,
            scheme: scheme.to_owned(),
            loop_s: Spread::default(),
            times: 1.0,
            outside_s: 0.0,
            vm_hwm_bytes: 0.0,
            protected: (scheme != UNPROTECTED).then_some(protected),
        }
    }

    /// Of runs with 1 and 64 MiB a rank, by scheme and checkpoint and recovery in ms, all with the same noise.
    fn judged(runs: &[(u64, &str, f64, f64)], noise: f64, repeat: usize) -> Verdict {
        let none = |state| summary(state, UNPROTECTED, Spread::default(), Spread::default());
        let timed = |&(state, scheme, checkpoint, recovery): &(u64, &str, f64, f64)| {
            summary(state, scheme, spread(checkpoint, noise), spread(recovery, noise))
        };
        let summaries: Vec<Summary> = [none(1), none(64)].into_iter().chain(runs.iter().map(timed)).collect();
        let mut verdict = verdict(&[MIB, 64 * MIB], &summaries, repeat);
        let plain = |text: &mut String| *text = text.replace(NO_BREAK, " ");
        plain(&mut verdict.headline);
        verdict.paragraphs.iter_mut().for_each(plain);
        verdict
    }

    /// The last sentence of every verdict.
    const CAVEAT: &str = "Memory survives as many losses at once as its scheme says; only files survive the loss of all ranks.";

    #[test]
    fn memory_wins_everywhere() {
        let runs = [
            (1, "neighbor", 1.0, 20.0),
            (1, "xor", 0.5, 25.0),
            (1, "disk", 4.0, 40.0),
            (64, "neighbor", 40.0, 100.0),
            (64, "xor", 20.0, 200.0),
            (64, "disk", 50.0, 150.0),
        ];
        let verdict = judged(&runs, 5.0, 5);
        assert_eq!(verdict.headline, "Memory beats disk wherever it was measured");
        let efficiency = |checkpoint_s, recovery_s| {
            let costs = Costs { checkpoint_s, recovery_s };
            percent(costs.efficiency(3600.0, costs.daly_s(3600.0))).replace(NO_BREAK, " ")
        };
        let (xor, disk) = (efficiency(0.02, 0.2), efficiency(0.05, 0.15));
        assert_eq!(
            verdict.paragraphs,
            [
                "A checkpoint is faster in memory: 8.00 times at 1 MiB a rank (xor 0.500 ms, disk 4.00 ms), 2.50 times at \
                 64 MiB a rank (xor 20.0 ms, disk 50.0 ms).",
                "A recovery is faster in memory: 2.00 times at 1 MiB a rank (neighbor 20.0 ms, disk 40.0 ms), 1.50 times at \
                 64 MiB a rank (neighbor 100 ms, disk 150 ms).",
                &format!(
                    "Long runs with 64 MiB a rank and a failure an hour have {xor} of their time for work with xor, \
                     {disk} with disk."
                ),
                CAVEAT,
            ]
        );
        let table = verdict.table.unwrap();
        assert_eq!(table.rows.len(), 4);
        assert!(table.rows.iter().all(|row| row.last().unwrap() == "memory"));
        assert_eq!(table.rows[1][8], "2.50");
    }

    #[test]
    fn where_disk_wins_is_said_with_its_factor() {
        let runs = [
            (1, "xor", 0.5, 25.0),
            (1, "disk:/scratch", 4.0, 50.0),
            (64, "xor", 90.0, 100.0),
            (64, "disk:/scratch", 60.0, 150.0),
        ];
        let verdict = judged(&runs, 5.0, 5);
        assert_eq!(verdict.headline, "Memory beats disk, but not in checkpoints at 64 MiB a rank");
        assert_eq!(
            verdict.paragraphs[0],
            "A checkpoint is faster in memory: 8.00 times at 1 MiB a rank (xor 0.500 ms, disk:/scratch 4.00 ms). A checkpoint \
             is faster on disk: 1.50 times at 64 MiB a rank (xor 90.0 ms, disk:/scratch 60.0 ms)."
        );
        let both =
            [(1, "xor", 5.0, 60.0), (1, "disk", 4.0, 50.0), (64, "xor", 1.0, 9.0), (64, "disk", 2.0, 8.0)];
        let verdict = judged(&both, 1.0, 5);
        let headline = "Memory beats disk, but not in checkpoints at 1 MiB a rank, nor in recoveries at 1 MiB and 64 MiB a rank";
        assert_eq!(verdict.headline, headline);
        let disk = [(64, "xor", 5.0, 60.0), (64, "disk", 4.0, 50.0)];
        assert_eq!(judged(&disk, 1.0, 5).headline, "Disk beats memory wherever it was measured");
    }

    #[test]
    fn what_overlaps_is_left_open() {
        let close = [(1, "xor", 4.0, 40.0), (1, "disk", 5.0, 50.0)];
        let verdict = judged(&close, 20.0, 5);
        assert_eq!(verdict.headline, "Too noisy to tell memory from disk");
        assert_eq!(
            verdict.paragraphs,
            [
                "Quartiles of a checkpoint overlap, or are not known, at 1 MiB a rank (xor 4.00 ms, disk 5.00 ms).",
                "Quartiles of a recovery overlap, or are not known, at 1 MiB a rank (xor 40.0 ms, disk 50.0 ms).",
                CAVEAT,
            ]
        );
        assert!(verdict.table.unwrap().rows.iter().all(|row| row.last().unwrap() == "open"));
        let half = [(1, "xor", 4.0, 49.0), (1, "disk", 9.0, 50.0)];
        let headline = "Memory beats disk; too noisy to tell in recoveries at 1 MiB a rank";
        assert_eq!(judged(&half, 5.0, 5).headline, headline);
        // Without quartiles nothing is known, however far apart the medians are.
        let headline = judged(&[(1, "xor", 1.0, 1.0), (1, "disk", 9.0, 9.0)], 0.0, 2).headline;
        assert_eq!(headline, "Too few repetitions to tell memory from disk");
    }

    #[test]
    fn without_both_kinds_there_is_no_verdict() {
        let memory = judged(&[(1, "neighbor", 1.0, 2.0), (1, "xor", 1.0, 2.0)], 5.0, 5);
        assert_eq!(memory.headline, "No verdict on memory and disk");
        let words = "No disk scheme was measured, so there is nothing to compare; --schemes neighbor,xor,disk has both kinds.";
        assert_eq!((memory.paragraphs, memory.table), (vec![words.to_owned()], None));
        let disk = judged(&[(1, "disk", 1.0, 2.0)], 5.0, 5);
        assert!(disk.paragraphs[0].starts_with("No scheme in memory was measured"), "{disk:?}");
        assert_eq!(judged(&[], 5.0, 5).headline, "No verdict on memory and disk");
    }
}
