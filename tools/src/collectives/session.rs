//! All jobs of an order, one after the other.

use std::ops::ControlFlow;

use ft_comm::collective::Operation;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::child;
use super::choice::choices;
use super::fit::{Links, fit};
use super::measured::{Sample, cases};
use super::order::Order;
use super::prediction::{checks, predictions};
use super::results::{Fitted, Results};
use super::table::table;
use crate::recovery::{BenchError, Machine, Spread};

/// Measures all that is ordered. `progress` hears of each job before it begins (jobs done, jobs in all, what is next), and
/// can end it all.
///
/// # Errors
/// A job cannot be started, fails, gives wrong answers or reports nothing. [`BenchError::Interrupted`] when `progress`
/// breaks.
pub fn run(
    order: &Order,
    progress: &mut dyn FnMut(usize, usize, &str) -> ControlFlow<()>,
) -> Result<Results, BenchError> {
    let machine = Machine::here();
    let (mut samples, mut links) = (Vec::new(), Vec::new());
    let jobs = jobs(order);
    for (done, &(round, ranks)) in jobs.iter().enumerate() {
        let what = ranks.map_or_else(|| "messages".to_owned(), |ranks| format!("{ranks} ranks"));
        if progress(done, jobs.len(), &what).is_break() {
            return Err(BenchError::Interrupted);
        }
        let times = child::run(order, ranks)?;
        links.extend(times.links);
        samples.extend(times.timings.into_iter().filter_map(|timing| {
            Some(Sample {
                round,
                ranks: ranks?,
                operation: Operation::named(&timing.operation)?,
                bytes: timing.bytes,
                algorithm: timing.algorithm,
                seconds: timing.seconds,
                calls: timing.calls,
            })
        }));
    }
    let cases = cases(&samples);
    let fitted = order.model.then(|| {
        let short_s = Spread::of(links.iter().map(|links| links.short_s));
        let links = Links::middle(&links);
        let fitted = fit(&links, machine.cores);
        let (checks, predictions) = (checks(&cases, &fitted), predictions(&fitted));
        Fitted { links, short_s, machine: fitted.into(), checks, predictions }
    });
    let table = (!order.model).then(|| table(&machine_name(&machine, &order.transport), &cases));
    Ok(Results {
        machine,
        transport: order.transport.clone(),
        rounds: order.rounds,
        time_s: order.time_s,
        ranks: order.ranks.clone(),
        choices: table.as_ref().map_or(vec![], |table| choices(table, &cases)),
        table,
        fitted,
        cases,
        samples,
    })
}

/// Round and number of ranks of each job, in another order in each round; no ranks: messages are timed.
fn jobs(order: &Order) -> Vec<(usize, Option<usize>)> {
    let mut random = Pcg64::seed_from_u64(1);
    let round = |round: usize| {
        let messages = order.model.then_some(None);
        let mut jobs: Vec<_> = order
            .ranks
            .iter()
            .map(|&ranks| Some(ranks))
            .chain(messages)
            .map(|ranks| (round, ranks))
            .collect();
        jobs.shuffle(&mut random);
        jobs
    };
    (0..order.rounds).flat_map(round).collect()
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
        let mut order = Order {
            program: "ftrun".into(),
            ranks: vec![2, 4, 8],
            time_s: 1.0,
            rounds: 4,
            transport: "auto".into(),
            model: true,
        };
        let mut all = jobs(&order);
        assert_eq!(
            all.iter().map(|job| job.0).collect::<Vec<_>>(),
            [0; 4].into_iter().chain([1; 4]).chain([2; 4]).chain([3; 4]).collect::<Vec<_>>()
        );
        all.sort_unstable();
        assert!(all.chunks(4).all(|jobs| jobs.iter().map(|job| job.1).eq([None, Some(2), Some(4), Some(8)])));
        order.model = false;
        assert_eq!(jobs(&order).len(), 12);
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
