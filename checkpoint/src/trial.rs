//! A run that ends early, to measure a program: `ftrun advise` tells the ranks so.

use ft_comm::World;

/// How far a run goes before it is ended. The end comes with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trial {
    seconds: f64,
    steps: u64,
}

/// The setting for the seconds after which a trial is over.
const SECONDS: &str = "trial-seconds";
/// The setting for the steps after which a trial is over.
const STEPS: &str = "trial-steps";

impl Trial {
    /// As the launcher was told; `None` for a run that goes to its end.
    pub(crate) fn from_launcher(world: &World) -> Option<Self> {
        let number = |name: &str| world.setting(name).and_then(|text| text.parse::<f64>().ok());
        let (seconds, steps) = (number(SECONDS), number(STEPS));
        (seconds.is_some() || steps.is_some()).then(|| Self {
            seconds: seconds.unwrap_or(f64::INFINITY),
            steps: steps.map_or(u64::MAX, |steps| steps as u64),
        })
    }

    /// Whether that is enough.
    pub(crate) fn is_over(&self, elapsed: f64, step: u64) -> bool {
        step > 0 && (elapsed >= self.seconds || step >= self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::Trial;

    #[test]
    fn a_trial_has_at_least_one_step() {
        let trial = Trial { seconds: 2.0, steps: 10 };
        assert!(!trial.is_over(9.0, 0) && trial.is_over(9.0, 1));
        assert!(!trial.is_over(1.0, 9) && trial.is_over(1.0, 10));
    }
}
