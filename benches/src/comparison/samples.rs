//! All that was measured, and its medians over rounds.

use ft_tools::harness::Middle;

/// One start of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<J, T> {
    /// The round, from 0.
    pub(crate) round: usize,
    pub(crate) job: J,
    /// What it says that it took.
    pub(crate) took: T,
    /// The part of all cores that other processes had meanwhile.
    pub(crate) foreign: f64,
}

/// What every job took in every round, in the order in which they were started.
#[derive(Clone, Debug)]
pub(crate) struct Samples<J, T>(pub(crate) Vec<Sample<J, T>>);

impl<J: Copy + Ord, T> Samples<J, T> {
    pub(crate) fn of(&self, job: J) -> impl Iterator<Item = &Sample<J, T>> {
        self.0.iter().filter(move |sample| sample.job == job)
    }

    /// Every job once, in the order of jobs.
    pub(crate) fn jobs(&self) -> Vec<J> {
        let mut jobs: Vec<J> = self.0.iter().map(|sample| sample.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    /// A figure of a job over the rounds; `read` finds it in what a start took.
    pub(crate) fn middle(&self, job: J, read: impl Fn(&T) -> Option<f64>) -> Option<Middle> {
        Middle::of(&self.of(job).filter_map(|sample| read(&sample.took)).collect::<Vec<_>>())
    }

    /// Two figures of each round that has both.
    pub(crate) fn pairs(
        &self,
        (above, read_above): (J, impl Fn(&T) -> Option<f64>),
        (below, read_below): (J, impl Fn(&T) -> Option<f64>),
    ) -> Vec<(usize, [f64; 2])> {
        let pair = |sample: &Sample<J, T>| {
            let other = self.of(below).find(|other| other.round == sample.round)?;
            Some((sample.round, [read_above(&sample.took)?, read_below(&other.took)?]))
        };
        self.of(above).filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_over_rounds_and_pairs_within_them() {
        let sample = |round, job, took| Sample { round, job, took, foreign: 0.0 };
        let samples = Samples(vec![
            sample(0, 'b', 4.0),
            sample(0, 'a', 1.0),
            sample(1, 'a', 3.0),
            sample(2, 'b', 8.0),
            sample(2, 'a', 2.0),
        ]);
        let read = |took: &f64| (*took > 0.0).then_some(10.0 * took);
        let middle = samples.middle('a', read).unwrap();
        assert_eq!(middle, Middle { median: 20.0, lowest: 10.0, highest: 30.0, starts: 3 });
        assert_eq!((samples.middle('c', read), samples.middle('a', |_| None)), (None, None));
        assert_eq!(samples.pairs(('a', read), ('b', read)), [(0, [10.0, 40.0]), (2, [20.0, 80.0])]);
        assert_eq!(samples.jobs(), ['a', 'b']);
    }
}
