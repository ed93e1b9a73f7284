//! Every job once in each round, in an order that changes from round to round.

use std::fmt;

use ft_tools::harness::{HarnessError, Ticks, disturbance};

use super::command::Watch;
use super::samples::{Sample, Samples};

/// What comes of a job that fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failures {
    /// It ends the comparison.
    End,
    /// It is a remark, and its figures are missing after so many starts in vain.
    AreSaid { after: usize },
}

/// What is started.
pub(crate) struct Rounds<J> {
    /// Jobs that are held against each other, and so take turns. One that several cases have is started once in a round.
    pub(crate) cases: Vec<Vec<J>>,
    pub(crate) rounds: usize,
    pub(crate) failures: Failures,
}

impl<J: Copy + Ord + fmt::Display> Rounds<J> {
    /// Starts everything; `measure` starts one job and reads what it took. The remarks are the failures, and whether other
    /// processes had a part in it.
    ///
    /// # Errors
    /// [`HarnessError::Interrupted`] when the user wants an end, and the first failure if that ends it.
    pub(crate) fn run<T>(
        &self,
        watch: &Watch<'_>,
        mut measure: impl FnMut(J) -> Result<T, HarnessError>,
    ) -> Result<(Samples<J, T>, Vec<String>), HarnessError> {
        let turns = self.turns();
        let (tries, ends) = match self.failures {
            Failures::End => (1, true),
            Failures::AreSaid { after } => (after, false),
        };
        let (mut samples, mut remarks) = (Vec::new(), Vec::new());
        for (done, &(round, job)) in turns.iter().enumerate() {
            watch.progress(done, turns.len(), &format!("round {}, {job}", round + 1));
            for _ in 0..tries {
                let before = Ticks::now();
                match measure(job) {
                    Ok(took) => {
                        let foreign = before.foreign_until(Ticks::now());
                        samples.push(Sample { round, job, took, foreign });
                        break;
                    }
                    Err(error) if ends || matches!(error, HarnessError::Interrupted) => return Err(error),
                    Err(error) => remarks.push(format!("Not counted: round {}, {job}: {error}", round + 1)),
                }
            }
        }
        remarks.extend(disturbance(samples.iter().map(|sample| sample.foreign)));
        Ok((Samples(samples), remarks))
    }

    /// The jobs of a case one after the other. Each round begins with another one, and every second round goes on backwards, so that
    /// none always follows the same.
    fn turns(&self) -> Vec<(usize, J)> {
        let mut all = Vec::new();
        for round in 0..self.rounds {
            let start = all.len();
            for case in &self.cases {
                let mut case = case.clone();
                let first = round % case.len().max(1);
                case.rotate_left(first);
                if round % 2 == 1 && !case.is_empty() {
                    case[1..].reverse();
                }
                for job in case {
                    if !all[start..].contains(&(round, job)) {
                        all.push((round, job));
                    }
                }
            }
        }
        all
    }
}

/// What a reader is told of fewer rounds than figures take that are quoted.
pub(crate) fn few_rounds(rounds: usize, fewest: usize) -> Option<String> {
    (rounds < fewest).then(|| format!("Fewer than {fewest} rounds: these are no figures to quote."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(cases: &[&str], rounds: usize, failures: Failures) -> Rounds<char> {
        Rounds { cases: cases.iter().map(|case| case.chars().collect()).collect(), rounds, failures }
    }

    fn order(cases: &[&str], count: usize) -> Vec<String> {
        let turns = rounds(cases, count, Failures::End).turns();
        assert!(turns.is_sorted_by_key(|(round, _)| *round));
        (0..count)
            .map(|round| turns.iter().filter(|turn| turn.0 == round).map(|turn| turn.1).collect())
            .collect()
    }

    #[test]
    fn every_round_has_every_job_once_and_another_order() {
        assert_eq!(order(&["ab", "c"], 3), ["abc", "bac", "abc"]);
        assert_eq!(order(&["abcd"], 5), ["abcd", "badc", "cdab", "dcba", "abcd"]);
        assert_eq!(order(&["ab", "cb", ""], 2), ["abc", "bac"], "equal jobs are started once");
    }

    fn run(failures: Failures, outcomes: &[(char, bool)]) -> (Result<String, String>, Vec<String>) {
        let mut left = outcomes.iter();
        let measured = rounds(&["ab"], 1, failures).run(&Watch::unseen(&|| false), |job| {
            let &(due, is_good) = left.next().unwrap();
            assert_eq!(job, due);
            is_good.then_some(job).ok_or_else(|| HarnessError::Folder("gone".into()))
        });
        assert_eq!(left.next(), None);
        match measured {
            Ok((samples, remarks)) => (Ok(samples.0.iter().map(|sample| sample.took).collect()), remarks),
            Err(error) => (Err(error.to_string()), vec![]),
        }
    }

    #[test]
    fn what_fails_is_said_and_tried_again() {
        let twice = Failures::AreSaid { after: 2 };
        let (took, remarks) = run(twice, &[('a', false), ('a', true), ('b', true)]);
        assert_eq!((took.unwrap().as_str(), &remarks[0][..]), ("ab", "Not counted: round 1, a: gone"));
        let (took, remarks) = run(twice, &[('a', false), ('a', false), ('b', true)]);
        assert_eq!((took.unwrap().as_str(), remarks[1].as_str()), ("b", "Not counted: round 1, a: gone"));
        let (took, _) = run(Failures::End, &[('a', true), ('b', false)]);
        assert_eq!(took, Err("gone".into()));
    }

    #[test]
    fn an_interruption_ends_it() {
        let again = rounds(&["a"], 1, Failures::AreSaid { after: 3 });
        let ended = again.run::<()>(&Watch::unseen(&|| true), |_| Err(HarnessError::Interrupted));
        assert!(matches!(ended, Err(HarnessError::Interrupted)));
    }
}
