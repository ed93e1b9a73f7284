//! All jobs of an order, one after the other.

use std::ops::ControlFlow;

use ft_comm::collective::Operation;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::child::{self, Timing};
use super::choice::choices;
use super::experiment::Experiment;
use super::measured::{Sample, cases};
use super::results::Results;
use super::table::table;
use crate::recovery::{BenchError, Machine};

/// Measures all that is ordered. `progress` hears of each job before it begins (jobs done, jobs in all, what is next), and
/// can end it all.
///
/// # Errors
/// A job cannot be started, fails, gives wrong answers or reports nothing. [`BenchError::Interrupted`] when `progress`
/// breaks.
pub fn run(
    experiment: &Experiment,
    progress: &mut dyn FnMut(usize, usize, &str) -> ControlFlow<()>,
) -> Result<Results, BenchError> {
    let machine = Machine::here();
    let mut samples = Vec::new();
    let jobs = jobs(experiment);
    for (done, &(round, ranks)) in jobs.iter().enumerate() {
        if progress(done, jobs.len(), &format!("{ranks} ranks")).is_break() {
            return Err(BenchError::Interrupted);
        }
        let times = child::run(experiment, ranks)?;
        samples.extend(times.timings.into_iter().filter_map(|timing| sample(round, ranks, timing)));
    }
    let cases = cases(&samples);
    let table = table(&machine_name(&machine, &experiment.transport), &cases);
    Ok(Results {
        machine,
        transport: experiment.transport.clone(),
        places: experiment.places.clone(),
        rounds: experiment.rounds,
        time_s: experiment.time_s,
        ranks: experiment.ranks.clone(),
        choices: choices(&table, &cases),
        table,
        cases,
        samples,
    })
}

/// None of an operation that is not known here.
fn sample(round: usize, ranks: usize, timing: Timing) -> Option<Sample> {
    let Timing { operation, bytes, algorithm, seconds, calls } = timing;
    let operation = Operation::named(&operation)?;
    Some(Sample { round, ranks, operation, bytes, algorithm, seconds, calls })
}

/// Round and number of ranks of each job, in another order in each round.
fn jobs(experiment: &Experiment) -> Vec<(usize, usize)> {
    let mut random = Pcg64::seed_from_u64(1);
    let round = |round: usize| {
        let mut jobs: Vec<_> = experiment.ranks.iter().map(|&ranks| (round, ranks)).collect();
        jobs.shuffle(&mut random);
        jobs
    };
    (0..experiment.rounds).flat_map(round).collect()
}

/// Name of a table: host, cores, transport.
fn machine_name(machine: &Machine, transport: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    table_name(&host, machine.cores, transport)
}

fn table_name(host: &str, cores: usize, transport: &str) -> String {
    let sound =
        |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '-' };
    let host: String = host.trim().chars().take(20).map(sound).collect();
    let host = if host.is_empty() { "unknown" } else { &host };
    format!("{host}-{cores}cores-{transport}")
}

#[cfg(test)]
mod tests {
    use ft_comm::collective::Selection;

    use super::*;

    #[test]
    fn every_round_has_every_job() {
        let experiment = Experiment {
            program: "ftrun".into(),
            ranks: vec![2, 4, 8],
            time_s: 1.0,
            rounds: 4,
            transport: "auto".into(),
            places: vec![],
        };
        let mut all = jobs(&experiment);
        assert!(all.chunks(3).enumerate().all(|(round, jobs)| jobs.iter().all(|job| job.0 == round)));
        all.sort_unstable();
        assert_eq!(all.len(), 12);
        assert!(all.chunks(3).all(|jobs| jobs.iter().map(|job| job.1).eq([2, 4, 8])));
    }

    #[test]
    fn names_of_tables_are_allowed() {
        for (host, name) in [
            ("node7\n", "node7-64cores-auto"),
            ("a very long name of a höst.example.org", "a-very-long-name-of--64cores-auto"),
            ("", "unknown-64cores-auto"),
        ] {
            assert_eq!(table_name(host, 64, "auto"), name);
            Selection::parse(&format!("name: {name}")).unwrap();
        }
    }
}
