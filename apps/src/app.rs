//! The bundled apps: what each of them gives to the command line, to its ranks and to the report.

use std::ffi::OsString;
use std::fmt::Debug;
use std::process::ExitCode;

use ft_comm::fault::KillSpec;
use ft_launch::Ending;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cg::CgArgs;
use crate::cli::{self, Options};
use crate::collective::CollectiveArgs;
use crate::collective_times::CollectiveTimesArgs;
use crate::ep::EpArgs;
use crate::heat::HeatArgs;
use crate::load::LoadArgs;
use crate::pi::PiArgs;
use crate::ring::RingArgs;
use crate::seismic::SeismicArgs;
use crate::simulator::SimulatorArgs;

/// A bundled app: its arguments, and what it makes of them.
pub(crate) trait App: Debug {
    /// What the ranks report at the end; numbers in it that may not be finite go through [`crate::number`].
    type Outcome: Serialize + DeserializeOwned;

    /// Says what is wrong with the order, before a process is started.
    fn check(&self, options: &Options) -> Result<(), String> {
        let _ = options;
        Ok(())
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

/// Reads the command line of an app, without its name.
type Parse = fn(&Bundled, &[OsString]) -> Result<(Options, Box<dyn AnyApp>), clap::Error>;

/// An entry of the table of bundled apps.
#[derive(Debug)]
pub(crate) struct Bundled {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    /// What stands behind the name, in the usage.
    pub(crate) usage: &'static str,
    pub(crate) parse: Parse,
    /// The command line without the name.
    pub(crate) command: fn(&Bundled) -> clap::Command,
}

/// All of them, in the order of the help.
pub(crate) const BUNDLED: &[Bundled] = &[
    Bundled {
        name: "cg",
        purpose: "Solve a sparse linear system by conjugate gradients",
        usage: "<--matrix FILE|--poisson N|--poisson2d N>",
        parse: cli::parse_app::<CgArgs>,
        command: cli::app_command::<CgArgs>,
    },
    Bundled {
        name: "pi",
        purpose: "Estimate pi from random points",
        usage: "",
        parse: cli::parse_app::<PiArgs>,
        command: cli::app_command::<PiArgs>,
    },
    Bundled {
        name: "ep",
        purpose: "Run the kernel EP of the NAS Parallel Benchmarks",
        usage: "",
        parse: cli::parse_app::<EpArgs>,
        command: cli::app_command::<EpArgs>,
    },
    Bundled {
        name: "seismic",
        purpose: "Model the shots of a 2D acoustic survey",
        usage: "<--model FILE|--synthetic KIND>",
        parse: cli::parse_app::<SeismicArgs>,
        command: cli::app_command::<SeismicArgs>,
    },
    Bundled {
        name: "heat",
        purpose: "Find the temperatures of a plate with one hot edge by Jacobi's method",
        usage: "",
        parse: cli::parse_app::<HeatArgs>,
        command: cli::app_command::<HeatArgs>,
    },
    Bundled {
        name: "simulator",
        purpose: "Turn matrices end to end in a loop while random ranks are killed",
        usage: "",
        parse: cli::parse_app::<SimulatorArgs>,
        command: cli::app_command::<SimulatorArgs>,
    },
    Bundled {
        name: "collective",
        purpose: "Check and time the collective operations",
        usage: "",
        parse: cli::parse_app::<CollectiveArgs>,
        command: cli::app_command::<CollectiveArgs>,
    },
    Bundled {
        name: "ring",
        purpose: "Pass a token round, with repairs and restores by hand",
        usage: "",
        parse: cli::parse_app::<RingArgs>,
        command: cli::app_command::<RingArgs>,
    },
    Bundled {
        name: "load",
        purpose: "Protect a state of any size through steps of any length, to measure what that costs",
        usage: "",
        parse: cli::parse_app::<LoadArgs>,
        command: cli::app_command::<LoadArgs>,
    },
    Bundled {
        name: "collective-times",
        purpose: "Check and time every algorithm of the collective operations",
        usage: "",
        parse: cli::parse_app::<CollectiveTimesArgs>,
        command: cli::app_command::<CollectiveTimesArgs>,
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_nothing_that_is_right() {
        for app in BUNDLED {
            let needed: &[&str] = match app.name {
                "cg" => &["--poisson", "4"],
                "seismic" => &["--synthetic", "salt"],
                _ => &[],
            };
            let argv: Vec<OsString> =
                std::iter::once(app.name).chain(needed.iter().copied()).map(Into::into).collect();
            let (_, parsed) = (app.parse)(app, &argv).unwrap();
            for result in [Value::Null, json!({}), json!({ "pi": null })] {
                let complaint = parsed.complaint(&result).unwrap_or_default();
                assert!(complaint.contains("cannot be read"), "{}: {complaint}", app.name);
                assert!(parsed.lines(&result).is_empty() && parsed.headline(&result).is_empty());
            }
        }
    }
}
