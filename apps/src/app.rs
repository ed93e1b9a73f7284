//! What a bundled app is: what it gives to its ranks, to the launcher and to the report.

use std::fmt::Debug;
use std::process::ExitCode;

use ft_checkpoint::Lines;
use ft_comm::fault::KillSpec;
use ft_launch::Ending;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::Options;

/// A bundled app: its arguments, and what it makes of them.
pub(crate) trait App: Debug {
    /// What the ranks report at the end; numbers in it that may not be finite go through [`crate::number`].
    type Outcome: Serialize + DeserializeOwned;

    /// Says what is wrong with the order, before a process is started.
    fn check(&self, options: &Options) -> Result<(), String> {
        let _ = options;
        Ok(())
    }

    /// Whether its messages cross checkpoints, and how they do if nothing else is asked for.
    fn crosses(&self) -> Lines {
        Lines::Meet
    }

    /// Failures to inject beside those of `--kill`.
    fn kills(&self, options: &Options) -> Vec<KillSpec> {
        let _ = options;
        vec![]
    }

    /// Runs one rank, the first of which gives an [`App::Outcome`] to the launcher, as [`write()`] has it.
    fn rank(&self) -> ExitCode;

    /// Adds to the outcome what the launcher knows: failures, and the time of the whole job.
    fn complete(&self, outcome: &mut Self::Outcome, ending: &Ending) {
        let _ = (outcome, ending);
    }

    /// What is wrong with the outcome of a run that came to its end, in one line; none if it is right.
    fn complaint(&self, outcome: &Self::Outcome) -> Option<String>;

    /// What the run was about, in a few words for the first line of the report; may be empty.
    fn headline(&self, outcome: &Self::Outcome) -> String {
        let _ = outcome;
        String::new()
    }

    /// The outcome for people.
    fn lines(&self, outcome: &Self::Outcome) -> Vec<String>;

    /// What the launcher does when the job is over: pictures, cleaning up. There is no outcome if the job failed.
    fn finish(&self, outcome: Option<&Self::Outcome>) -> Result<(), String> {
        let _ = outcome;
        Ok(())
    }
}

/// The bytes that the ranks of a bundled app give to the launcher.
pub(crate) fn write(outcome: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(outcome).expect("an outcome can be written")
}

/// Any [`App`], for the launcher: its outcome is the `result` of the report, null if there is none.
pub(crate) trait AnyApp: Debug {
    /// See [`App::check`].
    fn check(&self, options: &Options) -> Result<(), String>;

    /// See [`App::crosses`].
    fn crosses(&self) -> Lines;

    /// See [`App::kills`].
    fn kills(&self, options: &Options) -> Vec<KillSpec>;

    /// See [`App::rank`].
    fn rank(&self) -> ExitCode;

    /// See [`App::complete`].
    fn complete(&self, result: &mut Value, ending: &Ending);

    /// See [`App::complaint`]; a result that cannot be read is nothing that is right.
    fn complaint(&self, result: &Value) -> Option<String>;

    /// See [`App::headline`].
    fn headline(&self, result: &Value) -> String;

    /// See [`App::lines`].
    fn lines(&self, result: &Value) -> Vec<String>;

    /// See [`App::finish`].
    fn finish(&self, result: &Value) -> Result<(), String>;
}

impl<A: App> AnyApp for A {
    fn check(&self, options: &Options) -> Result<(), String> {
        App::check(self, options)
    }

    fn crosses(&self) -> Lines {
        App::crosses(self)
    }

    fn kills(&self, options: &Options) -> Vec<KillSpec> {
        App::kills(self, options)
    }

    fn rank(&self) -> ExitCode {
        App::rank(self)
    }

    fn complete(&self, result: &mut Value, ending: &Ending) {
        if let Ok(mut outcome) = read::<A>(result) {
            App::complete(self, &mut outcome, ending);
            *result = serde_json::to_value(outcome).expect("an outcome can be written");
        }
    }

    fn complaint(&self, result: &Value) -> Option<String> {
        match read::<A>(result) {
            Ok(outcome) => App::complaint(self, &outcome),
            // serde writes a number that is not finite as null, unless it goes through
            // `crate::number`.
            Err(error) if !result.is_null() && error.to_string().contains("invalid type: null") => {
                Some("the result has a number that is not finite".into())
            }
            Err(error) => Some(format!("the ranks came to an end, but their result cannot be read: {error}")),
        }
    }

    fn headline(&self, result: &Value) -> String {
        read::<A>(result).map_or(String::new(), |outcome| App::headline(self, &outcome))
    }

    fn lines(&self, result: &Value) -> Vec<String> {
        read::<A>(result).map_or(vec![], |outcome| App::lines(self, &outcome))
    }

    fn finish(&self, result: &Value) -> Result<(), String> {
        App::finish(self, read::<A>(result).ok().as_ref())
    }
}

fn read<A: App>(result: &Value) -> serde_json::Result<A::Outcome> {
    A::Outcome::deserialize(result)
}
