//! All runs of an order, one after the other.

use std::time::Duration;

use super::bars::Bar;
use super::congestion::{self, Congestion};
use super::measured::{Measured, parse};
use super::peers::Programs;
use super::plan::{Order, Run, START, Task, runs};
use super::side::Side;
use super::summary::{Reading, Summary};
use super::test::Operation;
use ft_tools::harness::{Children, HarnessError, Ticks, disturbance};
use ft_tools::recovery::{Machine, Spread};

/// Starts of each side in one round when the start itself is timed; their median is one process start.
const STARTS: usize = 5;
/// Longest time of a program whatever it does.
const PATIENCE_S: f64 = 30.0;

/// One line of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The round, from 0.
    pub round: usize,
    /// Who.
    pub side: Side,
    /// What.
    pub measured: Measured,
    /// The part of all cores that other processes had meanwhile, in this process start.
    pub foreign: f64,
}

/// All that was measured, and what follows.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// Congestion control of the machine meanwhile.
    pub congestion: String,
    /// The one that `ft-comm` was said to ask for.
    pub comm_congestion: String,
    /// Who was compared.
    pub sides: Vec<Side>,
    /// Rounds.
    pub rounds: usize,
    /// Seconds a test.
    pub time_s: f64,
    /// Medians.
    pub summary: Summary,
    /// The bars that were tried, and how they turned out.
    pub readings: Vec<(Bar, Reading)>,
    /// What went wrong, and what a reader has to know.
    pub remarks: Vec<String>,
    /// Raw numbers, in the order in which they were measured.
    pub samples: Vec<Sample>,
}

/// Compares all that is ordered. `progress` hears of each run before it begins: how many are done, of how many, and
/// what comes now. `is_interrupted` is asked again and again, and ends it all.
///
/// A run that fails or takes too long is a remark, and its figures are missing. From now on the calling process adopts
/// orphans among its descendants, and after each run all its children are ended.
///
/// # Errors
/// A program is missing, or the congestion control cannot be changed. [`HarnessError::Interrupted`] when
/// `is_interrupted` says so. The congestion control is what it was before in every case.
pub fn run(
    order: &Order,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Results, HarnessError> {
    let machine = Machine::here();
    let children = Children::adopting(is_interrupted);
    let _switched = order.congestion.as_deref().map(Congestion::switch).transpose()?;
    let programs = Programs::find(order, &children)?;
    let sides = programs.sides();
    let planned = runs(order, &sides);
    let mut samples = Vec::new();
    let mut remarks = remarks(order, &programs, &sides);
    for (done, run) in planned.iter().enumerate() {
        progress(done, planned.len(), &format!("round {}, {}: {}", run.round + 1, run.task, run.side));
        let before = Ticks::now();
        let outcome = measure(order, &programs, &children, run);
        let foreign = before.foreign_until(Ticks::now());
        match outcome {
            Ok(measured) => samples.extend(measured.into_iter().map(|measured| Sample {
                round: run.round,
                side: run.side,
                measured,
                foreign,
            })),
            Err(HarnessError::Interrupted) => return Err(HarnessError::Interrupted),
            Err(error) => remarks.push(format!("{}, {}: {error}", run.side, run.task)),
        }
    }
    remarks.extend(disturbance(samples.iter().map(|sample| sample.foreign)));
    let summary = Summary::of(&samples);
    let readings = Bar::all(&order.ranks, machine.cores).into_iter().filter_map(|bar| {
        let reading = summary.read(&bar);
        // Where nothing was measured nothing was asked.
        reading.ours.is_some().then_some((bar, reading))
    });
    Ok(Results {
        machine,
        congestion: congestion::current(),
        comm_congestion: order.comm_congestion.clone(),
        readings: readings.collect(),
        sides,
        rounds: order.rounds,
        time_s: order.time_s,
        summary,
        remarks,
        samples,
    })
}

fn measure(
    order: &Order,
    programs: &Programs,
    children: &Children<'_>,
    run: &Run,
) -> Result<Vec<Measured>, HarnessError> {
    let ranks = run.task.ranks();
    if let Task::Start(_) = run.task {
        let limit = Duration::from_secs_f64(PATIENCE_S);
        let start = |_| children.run(programs.command(run, order.time_s), limit).map(|ended| ended.wall_s);
        let seconds: Vec<f64> = (0..STARTS).map(start).collect::<Result<_, _>>()?;
        return Ok(vec![starts(ranks, &seconds)]);
    }
    // A batch may take as long as all were meant to, and there are five at least.
    let seconds = PATIENCE_S + run.tests.len() as f64 * (2.0 + 10.0 * order.time_s);
    let command = programs.command(run, order.time_s);
    let words = format!("{command:?}");
    let ended = children.run(command, Duration::from_secs_f64(seconds))?;
    parse(&ended.output, ranks, &run.tests).map_err(|why| HarnessError::Output { command: words, why })
}

fn starts(ranks: usize, seconds: &[f64]) -> Measured {
    let fold = |by: fn(f64, f64) -> f64| seconds.iter().copied().reduce(by).unwrap_or(0.0);
    Measured {
        test: START,
        ranks,
        value: Operation::Start.value(0, Spread::of(seconds.iter().copied()).median),
        p10: fold(f64::min),
        p90: fold(f64::max),
        batches: seconds.len(),
        iterations: 1,
    }
}

fn remarks(order: &Order, programs: &Programs, sides: &[Side]) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |applies: bool, text: &str| all.extend(applies.then(|| text.to_owned()));
    say(order.mpich.is_none(), "MPICH was not measured: --mpich DIR names its folder.");
    say(order.openmpi.is_none(), "Open MPI was not measured: --openmpi DIR names its folder.");
    say(
        !sides.contains(&Side::CommTcp),
        "This ftrun has no --transport: what it does by itself stands for TCP too.",
    );
    say(
        !programs.mpich_has_gforker(),
        "This MPICH has no mpiexec.gforker: with more ranks than cores its ranks cannot give way, which is not its best.",
    );
    say(order.rounds < 3, "Fewer than 3 rounds: these are no figures to quote.");
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_have_a_median() {
        let measured = starts(4, &[0.3, 0.1, 0.2, 0.9, 0.2]);
        assert_eq!((measured.test, measured.ranks, measured.batches), (START, 4, 5));
        assert_eq!((measured.p10, measured.value, measured.p90), (0.1, 0.2, 0.9));
    }
}
