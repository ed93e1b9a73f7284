//! The bundled apps: what each of them gives to the command line, to its ranks and to the report.

use std::ffi::OsString;
use std::fmt::Debug;
use std::process::ExitCode;

use ft_comm::fault::KillSpec;
use ft_comm::launch::Ending;
use serde::de::DeserializeOwned;
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

/// A bundled app with its arguments.
pub(crate) trait App: Debug {
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

    /// Runs one rank.
    fn rank(&self) -> ExitCode;

    /// Adds to the result what the launcher knows: failures, and the time of the whole job.
    fn complete(&self, result: &mut Value, ending: &Ending) {
        let _ = (result, ending);
    }

    /// What is wrong with the result of a run that came to its end; empty if it is right.
    fn complaint(&self, result: &Value) -> String {
        let _ = result;
        String::new()
    }

    /// What the run was about, in a few words for the first line of the report; may be empty.
    fn headline(&self, result: &Value) -> String {
        let _ = result;
        String::new()
    }

    /// The result for people.
    fn lines(&self, result: &Value) -> Vec<String>;

    /// What the launcher does when the job is over: pictures, cleaning up. The result is null if the job failed.
    fn finish(&self, result: &Value) -> Result<(), String> {
        let _ = result;
        Ok(())
    }
}

/// The result of an app, from the report of its rank 0.
pub(crate) fn read<T: DeserializeOwned>(result: &Value) -> Option<T> {
    serde_json::from_value(result.clone()).ok()
}

/// Reads the command line of an app, without its name.
type Parse = fn(&Bundled, &[OsString]) -> Result<(Options, Box<dyn App>), clap::Error>;

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
