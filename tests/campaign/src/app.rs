//! The programs that are run, and what has to be the same in each of their answers.

use serde_json::Value;

use crate::random::Random;

/// A bundled app with its arguments, or a program of one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct App {
    pub(crate) name: &'static str,
    arguments: &'static str,
}

const fn app(name: &'static str, arguments: &'static str) -> App {
    App { name, arguments }
}

/// An example that is run as a program of one's own; what it says before is more than a pipe holds.
const OWN: &str = "own";

/// Each with the number of its chances.
const APPS: [(usize, App); 14] = [
    (3, app("cg", "--poisson 16")),
    (5, app("cg", "--poisson 32")),
    (2, app("cg", "--poisson 44")),
    (4, app("heat", "--grid 128 --steps 400")),
    (2, app("heat", "--grid 400 --steps 150")),
    (3, app("pi", "--samples 20000000")),
    (2, app("ep", "--class S")),
    (2, app("npb-cg", "--class W")),
    (3, app("simulator", "--size 96 --numloops 400")),
    (2, app("simulator", "--size 300 --numloops 100")),
    (4, app("ring", "--rounds 3000 --checkpoint-rounds 100")),
    (
        4,
        app(
            "seismic",
            "--synthetic layers --shape 101x61 --time 0.5 --shots 6 --slice 10 --freq 12 --out out",
        ),
    ),
    (
        2,
        app(
            "seismic",
            "--synthetic layers --shape 101x61 --time 0.5 --shots 4 --slice 5 --freq 12 --out out --su --protect-shots",
        ),
    ),
    (3, app(OWN, "")),
];

impl App {
    pub(crate) fn choose(random: &mut Random) -> Self {
        random.weighed(&APPS)
    }

    /// One whose ranks have much to say to each other, but not in turn: a relay takes its time.
    pub(crate) fn choose_talker(random: &mut Random) -> Self {
        loop {
            let app = Self::choose(random);
            if matches!(app.name, "cg" | "heat" | "simulator") {
                return app;
            }
        }
    }

    /// A small system of equations.
    pub(crate) fn small() -> Self {
        APPS[0].1
    }

    pub(crate) fn is_own(&self) -> bool {
        self.name == OWN
    }

    /// It can go on with fewer ranks.
    pub(crate) fn shrinks(&self) -> bool {
        matches!(self.name, "cg" | "heat")
    }

    /// It takes checkpoints by `--every` and `--interval`.
    pub(crate) fn has_interval(&self) -> bool {
        self.name != "ring"
    }

    /// The number of ranks is part of its answer.
    pub(crate) fn counts_ranks(&self) -> bool {
        matches!(self.name, "ring" | "simulator" | OWN)
    }

    /// As on the command line. A program of one's own is a script beside the folder of the run.
    pub(crate) fn arguments(&self) -> String {
        match self.is_own() {
            true => "../own".to_owned(),
            false => format!("{} {}", self.name, self.arguments),
        }
    }

    /// The parts of a result that do not depend on who computes it when.
    pub(crate) fn answer(&self, result: &Value) -> Vec<(&'static str, Value)> {
        let keys: &[&str] = match self.name {
            "cg" => &["answer_hash", "iterations", "converged", "rows"],
            "heat" => &["answer_hash", "steps", "plausible"],
            "pi" => &["hits", "samples", "pi"],
            "npb-cg" => &["answer_hash", "zeta", "iterations"],
            "ep" => &["accepted", "counts", "sx", "sy"],
            "simulator" => &["sum", "expected", "loops"],
            "ring" => &["token", "rounds", "ranks"],
            "seismic" => &["answer_hash", "samples", "receivers", "steps_per_shot"],
            _ => &[],
        };
        keys.iter().map(|key| (*key, result[*key].clone())).collect()
    }
}
