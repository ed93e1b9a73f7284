//! Which jobs, in which order.

use std::path::PathBuf;

use super::job::{Job, Side};
use super::row::Row;

/// What is to be compared.
#[derive(Clone, Debug)]
pub struct Order {
    /// `ftrun`.
    pub ftrun: PathBuf,
    /// Installation of Open MPI, the folder with `bin`; without it ours is measured alone.
    pub openmpi: Option<PathBuf>,
    /// How often everything is run.
    pub rounds: usize,
    /// What is to be shown.
    pub rows: Vec<Row>,
}

/// One process start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) round: usize,
    pub(super) side: Side,
    pub(super) job: Job,
}

/// Every job of the rows once in each round, that of the other side next to ours; who begins changes from round to round.
/// Rows share jobs that are equal.
pub(super) fn runs(rows: &[Row], rounds: usize, with_ulfm: bool) -> Vec<Run> {
    let mut all: Vec<Run> = Vec::new();
    for round in 0..rounds {
        for row in rows {
            let mut pair = [(Side::Ours, row.ours), (Side::Ulfm, row.theirs.filter(|_| with_ulfm))];
            if round % 2 == 1 {
                pair.reverse();
            }
            for (side, job) in pair {
                let run = job.map(|job| Run { round, side, job }).filter(|run| !all.contains(run));
                all.extend(run);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::{AGREE, FRESH};
    use super::*;

    #[test]
    fn sides_take_turns_and_equal_jobs_run_once() {
        let names = ["fresh-8x1", "spare-8x1", "agree-8", "allreduce-8"];
        let rows = Row::choose(&names, false).unwrap();
        let spare = Job { spares: 1, ..FRESH };
        let planned: Vec<(usize, Side, Job)> =
            runs(&rows, 2, true).iter().map(|run| (run.round, run.side, run.job)).collect();
        let expected = [
            (0, Side::Ours, FRESH),
            (0, Side::Ulfm, FRESH),
            (0, Side::Ours, spare),
            (0, Side::Ulfm, AGREE),
            (1, Side::Ulfm, FRESH),
            (1, Side::Ours, FRESH),
            (1, Side::Ours, spare),
            (1, Side::Ulfm, AGREE),
        ];
        assert_eq!(planned, expected);
        let alone = runs(&rows, 1, false);
        assert!(alone.len() == 2 && alone.iter().all(|run| run.side == Side::Ours), "{alone:?}");
    }
}
