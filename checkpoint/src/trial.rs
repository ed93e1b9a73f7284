//! A run that ends early, to measure a program: `ftrun advise` tells the ranks so.

/// How far a run goes before it is ended. The end comes with a checkpoint; with [`Lines::Log`](crate::Lines::Log) each rank ends after so many steps of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    /// Over after so many seconds.
    pub seconds: Option<f64>,
    /// Over after so many steps.
    pub steps: Option<u64>,
}

impl Trial {
    /// Whether the run is only measured.
    pub fn is_wanted(&self) -> bool {
        self.seconds.is_some() || self.steps.is_some()
    }

    /// Whether `step` is the last by itself: where each rank takes its checkpoints when it comes by, nobody is told that it is.
    pub(crate) fn is_last(&self, step: u64) -> bool {
        self.steps.is_some_and(|steps| step >= steps)
    }

    /// Whether that is enough.
    pub(crate) fn is_over(&self, elapsed: f64, step: u64) -> bool {
        let is_late = self.seconds.is_some_and(|seconds| elapsed >= seconds);
        step > 0 && (is_late || self.is_last(step))
    }
}

#[cfg(test)]
mod tests {
    use super::Trial;

    #[test]
    fn a_trial_has_at_least_one_step() {
        let trial = Trial { seconds: Some(2.0), steps: Some(10) };
        assert!(!trial.is_over(9.0, 0) && trial.is_over(9.0, 1));
        assert!(!trial.is_over(1.0, 9) && trial.is_over(1.0, 10));
        assert!(!Trial::default().is_over(1e9, 1 << 40));
        assert!(!trial.is_last(9) && trial.is_last(10) && !Trial::default().is_last(1 << 40));
    }
}
