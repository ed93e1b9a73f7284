//! The table of scenarios in the simulator: wherever death strikes, whomever, and whatever the repair mode, the job ends
//! with the right answer and nobody is lost who lived.
//!
//! Rows are calls ([`rows`]) and the steps of checkpoint and repair, columns say whom death strikes. Each cell is a
//! number of seeds; a run without failures says how long the calls take, and the blow falls at a moment in that time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ft_checkpoint::{Interval, Protection};
use ft_comm::time::Time;
use ft_comm::{OnFailure, Rank};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_sim::{self as sim, Blow, Config, Fault, SimOutcome, Trigger};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::row::rows;
use super::shrink::{Recurrence, is_right};
use super::survival::{MODES, STEPS, survive};
use super::{Choices, checker, seeds};

const RANKS: usize = 5;

/// Whom death strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    One,
    First,
    Highest,
    TwoAtOnce,
    /// The second one dies during the repair of the first.
    TwoInTurn,
    Replacement,
}

const COLUMNS: [(&str, Column); 6] = [
    ("one", Column::One),
    ("rank 0", Column::First),
    ("the highest", Column::Highest),
    ("two at once", Column::TwoAtOnce),
    ("second in the repair", Column::TwoInTurn),
    ("the replacement", Column::Replacement),
];

impl Column {
    fn victims(self) -> Vec<Rank> {
        match self {
            Self::One | Self::TwoInTurn | Self::Replacement => vec![1],
            Self::First => vec![0],
            Self::Highest => vec![RANKS - 1],
            Self::TwoAtOnce => vec![1, 3],
        }
    }

    /// Who dies after the loss of the first.
    fn next(self, choices: &mut Choices) -> Option<Fault> {
        let victim = match self {
            Self::TwoInTurn => 3,
            Self::Replacement => 1,
            _ => return None,
        };
        // A repair takes some milliseconds of virtual time; all orders of magnitude of it are of interest.
        let delay = Duration::from_micros((1 << choices.below(13)) + choices.below(1500));
        Some(Fault { trigger: Trigger::AfterLoss { losses: 1, delay }, blow: Blow::Kill(vec![victim]) })
    }
}

/// What a cell has seen.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    runs: u64,
    /// In these somebody was lost.
    struck: u64,
}

fn config(seed: u64, on_failure: OnFailure) -> Config {
    Config { on_failure, ..Config::rough(seed, RANKS) }
}

/// Nobody is lost who was not struck, and the job is done.
fn sound<R>(outcome: &SimOutcome<R>, most: &[Rank]) -> Result<bool, String> {
    checker::memberships(outcome)?;
    let lost: Vec<Rank> = checker::launcher(outcome)
        .filter_map(|event| match event {
            ArbiterEvent::Lost { rank, .. } => Some(*rank),
            _ => None,
        })
        .collect();
    if let Some(rank) = lost.iter().find(|rank| !most.contains(rank)) {
        return Err(format!("rank {rank} is lost, and was never struck"));
    }
    match checker::status(outcome)? {
        (0, _) => Ok(!lost.is_empty()),
        (code, message) => Err(format!("ended with {code}: {message}")),
    }
}

/// From the moment when all have joined to the end of a run without failures.
fn span<R>(outcome: &SimOutcome<R>) -> (Duration, Duration) {
    let joined = outcome.history.iter().map(|seen| seen.at).max().unwrap_or(Time(0)).since(Time(0));
    (joined, outcome.elapsed)
}

/// How long the calls of a row take without failures, by seed: the same for all its cells.
type Spans = Mutex<HashMap<u64, (Duration, Duration)>>;

fn of_call(row: &str, mode: usize, column: Column, seed: u64, spans: &Spans) -> Result<bool, String> {
    let (_, on_failure, repairs) = MODES[mode];
    let run = |config| {
        sim::run(config, |mut world| survive(&mut world, row, repairs).map_err(|error| error.to_string()))
    };
    let mut spans = spans.lock().expect("no cell panics");
    let (joined, end) = *spans.entry(seed).or_insert_with(|| span(&run(config(seed, on_failure))));
    drop(spans);
    let choices = &mut Choices(seed);
    let within = |from: Duration, to: Duration, choices: &mut Choices| {
        from + Duration::from_nanos(choices.below((to - from).as_nanos() as u64 + 1))
    };
    let at = within(joined, end, choices);
    let mut config = config(seed, on_failure);
    config.faults.explicit = vec![Fault::kill(at, column.victims())];
    config.faults.explicit.extend(column.next(choices));
    let outcome = run(config);
    let most: Vec<Rank> = if column == Column::TwoInTurn { vec![1, 3] } else { column.victims() };
    let struck = sound(&outcome, &most)?;
    let due = if row == "finalize" { 1 } else { STEPS };
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    match outputs.iter().all(|output| output.is_empty() || output[..] == due.to_le_bytes()) {
        true => Ok(struck),
        false => Err(format!("outputs {outputs:?}")),
    }
}

/// Steps of the life of a protected program, and the failures that come before.
const STAGES: [(&str, &str, &str); 12] = [
    ("init", "init", ""),
    ("a step", "step=5", ""),
    ("checkpoint: copy", "checkpoint=2/copy", ""),
    ("checkpoint: encode", "checkpoint=2/encode", ""),
    ("checkpoint: exchange", "checkpoint=2/exchange", ""),
    ("checkpoint: vote", "checkpoint=2/vote", ""),
    ("checkpoint: commit", "checkpoint=2/commit", ""),
    ("repair: agree", "repair=1/agree", "2@step=5"),
    ("repair: reconnect", "repair=1/reconnect", "2@step=5"),
    ("restore: plan", "restore=1/plan", "2@step=5"),
    ("restore: exchange", "restore=1/exchange", "2@step=5"),
    ("restore: verify, re-protect", "restore=1/verify", "2@step=5"),
];

fn of_stage(
    stage: (&str, &str, &str),
    on_failure: OnFailure,
    column: Column,
    seed: u64,
) -> Result<bool, String> {
    let (_, point, before) = stage;
    let choices = &mut Choices(seed);
    let spec = |ranks: &[Rank], point: &str| {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        format!("{}@{point}", ranks.join(",")).parse().expect("a spec")
    };
    let mut config = config(seed, on_failure);
    config.kills = (!before.is_empty()).then(|| before.parse().expect("a spec")).into_iter().collect();
    config.kills.push(spec(&column.victims(), point));
    config.faults.explicit.extend(column.next(choices));
    let mut most = column.victims();
    most.extend((!before.is_empty()).then_some(2));
    most.extend((column == Column::TwoInTurn).then_some(3));
    // Any three of five may be lost.
    let protection = Protection::new("rs:2+3".parse().expect("a scheme"), Interval::Steps(3));
    let outcome = sim::run(config, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Recurrence)
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let struck = sound(&outcome, &most)?;
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    match outputs.iter().all(|bytes| is_right(bytes)) {
        true => Ok(struck),
        false => Err("a wrong answer".into()),
    }
}

/// Counts the seeds of a cell, or says which one failed.
fn cell(name: &str, seeds: &[u64], run: impl Fn(u64) -> Result<bool, String>) -> Result<Count, String> {
    let mut count = Count::default();
    let chosen = std::env::var("FT_CELL").map_or(true, |part| name.contains(&part));
    for seed in seeds.iter().filter(|_| chosen) {
        let struck = run(*seed).map_err(|text| format!("{name}, seed {seed}: {text}"))?;
        count.runs += 1;
        count.struck += u64::from(struck);
    }
    Ok(count)
}

type Cell<'a> = Box<dyn Fn(&[u64]) -> Result<Count, String> + Send + Sync + 'a>;
/// The name of a row, and its cells; none where there is nothing to strike.
type Line<'a> = (String, Vec<Option<Cell<'a>>>);

fn lines<'a>(mode: usize) -> Vec<Line<'a>> {
    let (name, on_failure, repairs) = MODES[mode];
    let applies = move |column: Column| column != Column::Replacement || on_failure == OnFailure::Rebuild;
    let mut lines: Vec<Line<'a>> = vec![];
    for row in rows() {
        let spans = Arc::new(Spans::default());
        let of = |column: Column| {
            let (row, spans) = (row.clone(), spans.clone());
            let title = format!("{row} / {column:?} / {name}");
            applies(column).then(|| {
                Box::new(move |seeds: &[u64]| {
                    cell(&title, seeds, |seed| of_call(&row, mode, column, seed, &spans))
                }) as Cell<'a>
            })
        };
        lines.push((row.clone(), COLUMNS.iter().map(|(_, column)| of(*column)).collect()));
    }
    // The resilient loop knows no holes, and repairs.
    if repairs && on_failure != OnFailure::Blank {
        for stage in STAGES {
            let of = |column: Column| {
                let title = format!("{} / {column:?} / {name}", stage.0);
                applies(column).then(|| {
                    Box::new(move |seeds: &[u64]| {
                        cell(&title, seeds, |seed| of_stage(stage, on_failure, column, seed))
                    }) as Cell<'a>
                })
            };
            lines.push((stage.0.to_owned(), COLUMNS.iter().map(|(_, column)| of(*column)).collect()));
        }
    }
    lines
}

/// Runs all cells on all cores; gives what each has counted.
fn count_all(lines: &[Line<'_>], seeds: &[u64]) -> Vec<Vec<Option<Result<Count, String>>>> {
    let next = AtomicUsize::new(0);
    let work = |core: usize| {
        stay_on(core);
        let mut counts = vec![];
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((_, cells)) = lines.get(at) else { return counts };
            let count = |cell: &Option<Cell<'_>>| cell.as_ref().map(|cell| cell(seeds));
            counts.push((at, cells.iter().map(count).collect::<Vec<_>>()));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut counts: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|core| {
                scope.spawn({
                    let work = &work;
                    move || work(core)
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no cell panics")).collect()
    });
    counts.sort_by_key(|(at, _)| *at);
    counts.into_iter().map(|(_, counts)| counts).collect()
}

/// Keeps this thread and those that it starts on one of the cores it may use: of the threads of a simulation one runs at a time,
/// and the next starts sooner where the last one was.
fn stay_on(core: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).collect();
    let mut one = CpuSet::new();
    one.set(allowed[core % allowed.len()]);
    // Where that is forbidden it only takes longer.
    let _ = sched_setaffinity(None, &one);
}

/// `FT_SEEDS=1000` makes the table of the repository; with `FT_TABLE` it is written to that file. `FT_CELL` runs the cells
/// whose name has that text in it, `FT_SEED` one seed.
#[test]
fn scenarios_end_well_wherever_death_strikes() {
    let seeds = seeds(2);
    let (mut table, mut failures, mut cells, mut struck) = (String::new(), vec![], 0, 0);
    for (mode, (name, ..)) in MODES.iter().enumerate() {
        let lines = lines(mode);
        let _ = write!(table, "\n## {name}\n\n| where |");
        COLUMNS.iter().for_each(|(column, _)| table += &format!(" {column} |"));
        table += "\n|---|---|---|---|---|---|---|\n";
        for ((row, _), counts) in lines.iter().zip(count_all(&lines, &seeds)) {
            let _ = write!(table, "| {row} |");
            for count in counts {
                table += &match count {
                    None => " - |".to_owned(),
                    Some(Ok(count)) => {
                        (cells, struck) = (cells + 1, struck + count.struck);
                        format!(" {} of {} |", count.struck, count.runs)
                    }
                    Some(Err(text)) => {
                        failures.push(text);
                        " failed |".to_owned()
                    }
                };
            }
            table += "\n";
        }
    }
    let head = format!(
        "{cells} cells, {} seeds each; a cell counts the runs in which somebody was lost. All ended with the right answer.\n",
        seeds.len()
    );
    if let Some(file) = std::env::var_os("FT_TABLE") {
        std::fs::write(file, format!("# Scenarios in the simulator\n\n{head}{table}"))
            .expect("the table is written");
    }
    println!("{head}{table}");
    assert!(
        failures.is_empty(),
        "{} cells failed, the first: {:#?}",
        failures.len(),
        &failures[..failures.len().min(6)]
    );
    let few = std::env::var_os("FT_CELL").is_some() || seeds.len() == 1;
    let runs = cells * seeds.len() as u64;
    assert!(few || struck > runs / 3, "many runs lose somebody: {struck} of {runs} did");
}
