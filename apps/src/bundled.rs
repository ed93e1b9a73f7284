//! The table of the bundled apps.

use std::ffi::OsStr;

use clap::{ArgMatches, Args, Command, Error};

use crate::app::{AnyApp, App};
use crate::collective::CollectiveArgs;
use crate::ep::EpArgs;
use crate::farm::FarmArgs;
use crate::heat::HeatArgs;
use crate::hpcg::HpcgArgs;
use crate::jacobi::JacobiArgs;
use crate::load::LoadArgs;
use crate::npb_cg::NpbCgArgs;
use crate::pi::PiArgs;
use crate::pipeline::PipelineArgs;
use crate::ring::RingArgs;
use crate::seismic::SeismicArgs;
use crate::simulator::SimulatorArgs;
use crate::solve::SolveArgs;
use crate::wavefront::WavefrontArgs;

/// An entry of the table.
#[derive(Debug)]
pub(crate) struct Bundled {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
    /// What stands behind the name, in the usage.
    pub(crate) usage: &'static str,
    /// Adds the app's own options to a command.
    pub(crate) options: fn(Command) -> Command,
    /// Reads these from what such a command has found.
    pub(crate) read: fn(&ArgMatches) -> Result<Box<dyn AnyApp>, Error>,
}

/// All of them, in the order of the help.
pub(crate) const BUNDLED: &[Bundled] = &[
    Bundled {
        name: "cg",
        purpose: "Solve a sparse linear system by conjugate gradients",
        usage: "<--matrix FILE|--poisson N|--poisson2d N>",
        options: SolveArgs::augment_args,
        read: read::<SolveArgs>,
    },
    Bundled {
        name: "solve",
        purpose: "Solve a sparse system, least-squares or eigenvalue problem by a solver of your choice",
        usage: "<--matrix FILE|--poisson N|--poisson2d N>",
        options: SolveArgs::augment_args,
        read: read::<SolveArgs>,
    },
    Bundled {
        name: "pi",
        purpose: "Estimate pi from random points",
        usage: "",
        options: PiArgs::augment_args,
        read: read::<PiArgs>,
    },
    Bundled {
        name: "ep",
        purpose: "Run the kernel EP of the NAS Parallel Benchmarks",
        usage: "",
        options: EpArgs::augment_args,
        read: read::<EpArgs>,
    },
    Bundled {
        name: "npb-cg",
        purpose: "Run the kernel CG of the NAS Parallel Benchmarks",
        usage: "",
        options: NpbCgArgs::augment_args,
        read: read::<NpbCgArgs>,
    },
    Bundled {
        name: "hpcg",
        purpose: "Run conjugate gradients with multigrid, as the HPCG benchmark does",
        usage: "",
        options: HpcgArgs::augment_args,
        read: read::<HpcgArgs>,
    },
    Bundled {
        name: "seismic",
        purpose: "Model the shots of a 2D acoustic survey",
        usage: "<--model FILE|--synthetic KIND>",
        options: SeismicArgs::augment_args,
        read: read::<SeismicArgs>,
    },
    Bundled {
        name: "heat",
        purpose: "Find the temperatures of a plate with one hot edge, by Jacobi's method or by implicit time steps",
        usage: "",
        options: HeatArgs::augment_args,
        read: read::<HeatArgs>,
    },
    Bundled {
        name: "wavefront",
        purpose: "Solve for a potential in a cube by SSOR, plane by plane in a pipeline of ranks",
        usage: "",
        options: WavefrontArgs::augment_args,
        read: read::<WavefrontArgs>,
    },
    Bundled {
        name: "jacobi",
        purpose: "Solve for a potential in a square by Jacobi's method, in which nobody waits for the newest values",
        usage: "",
        options: JacobiArgs::augment_args,
        read: read::<JacobiArgs>,
    },
    Bundled {
        name: "farm",
        purpose: "Find twin primes, dealt out by a master to whoever has nothing to do",
        usage: "",
        options: FarmArgs::augment_args,
        read: read::<FarmArgs>,
    },
    Bundled {
        name: "pipeline",
        purpose: "Pass items round a ring, with several under way at any time",
        usage: "",
        options: PipelineArgs::augment_args,
        read: read::<PipelineArgs>,
    },
    Bundled {
        name: "simulator",
        purpose: "Turn matrices end to end in a loop while random ranks are killed",
        usage: "",
        options: SimulatorArgs::augment_args,
        read: read::<SimulatorArgs>,
    },
    Bundled {
        name: "collective",
        purpose: "Check and time the collective operations, or all their algorithms",
        usage: "",
        options: CollectiveArgs::augment_args,
        read: read::<CollectiveArgs>,
    },
    Bundled {
        name: "ring",
        purpose: "Pass a token round, with repairs and restores by hand",
        usage: "",
        options: RingArgs::augment_args,
        read: read::<RingArgs>,
    },
    Bundled {
        name: "load",
        purpose: "Protect a state of any size through steps of any length, to measure what that costs",
        usage: "",
        options: LoadArgs::augment_args,
        read: read::<LoadArgs>,
    },
];

/// The app of this name, if there is one.
pub(crate) fn find(name: &OsStr) -> Option<&'static Bundled> {
    BUNDLED.iter().find(|app| name == app.name)
}

fn read<A: App + Args + 'static>(matches: &ArgMatches) -> Result<Box<dyn AnyApp>, Error> {
    Ok(Box::new(A::from_arg_matches(matches)?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_result_with_a_number_that_is_not_finite_is_refused_in_words() {
        let app = BUNDLED.iter().find(|app| app.name == "pi").unwrap();
        let parsed = (app.read)(&(app.options)(Command::new("pi")).get_matches_from(["pi"])).unwrap();
        let result = json!({ "samples": 1, "hits": 1, "pi": f64::NAN, "standard_error": 1, "deviation": 1 });
        assert_eq!(parsed.complaint(&result).unwrap(), "the result has a number that is not finite");
    }

    #[test]
    fn what_cannot_be_read_is_nothing_that_is_right() {
        for app in BUNDLED {
            let needed: &[&str] = match app.name {
                "cg" | "solve" => &["--poisson", "4"],
                "seismic" => &["--synthetic", "salt"],
                _ => &[],
            };
            let argv = std::iter::once(app.name).chain(needed.iter().copied());
            let matches = (app.options)(Command::new(app.name)).get_matches_from(argv);
            let parsed = (app.read)(&matches).unwrap();
            for result in [Value::Null, json!({})] {
                let complaint = parsed.complaint(&result).unwrap_or_default();
                assert!(complaint.contains("cannot be read"), "{}: {complaint}", app.name);
                assert!(parsed.lines(&result).is_empty() && parsed.headline(&result).is_empty());
            }
        }
    }
}
