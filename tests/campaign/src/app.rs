//! The programs that are run, and what has to be the same in each of their answers.

use serde_json::Value;

use crate::random::Random;
use crate::solves;

/// A bundled app with its arguments, or a program of one's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct App {
    pub(crate) name: &'static str,
    arguments: String,
}

/// An example that is run as a program of one's own; what it says before is more than a pipe holds.
const OWN: &str = "own";

/// Each with the number of its chances; `solve` gets its arguments when it is chosen.
const APPS: [(usize, (&str, &str)); 21] = [
    (3, ("cg", "--poisson 16")),
    (5, ("cg", "--poisson 32")),
    (2, ("cg", "--poisson 44")),
    (4, ("heat", "--grid 128 --steps 400")),
    (2, ("heat", "--grid 400 --steps 150")),
    (3, ("pi", "--samples 20000000")),
    (2, ("ep", "--class S")),
    (2, ("npb-cg", "--class W")),
    (2, ("hpcg", "--size 24 --time 0")),
    (3, ("simulator", "--size 96 --numloops 400")),
    (2, ("simulator", "--size 300 --numloops 100")),
    (4, ("ring", "--rounds 3000 --checkpoint-rounds 100")),
    (4, ("seismic", "--synthetic layers --shape 101x61 --time 0.5 --shots 6 --slice 10 --freq 12 --out out")),
    (
        2,
        (
            "seismic",
            "--synthetic layers --shape 101x61 --time 0.5 --shots 4 --slice 5 --freq 12 --out out --su --protect-shots",
        ),
    ),
    (4, ("solve", "")),
    (3, ("pipeline", "--items 15000")),
    (2, ("pipeline", "--items 8000 --ahead --depth 6")),
    (3, ("farm", "--limit 3000000 --numbers 1000")),
    (3, ("wavefront", "--points 48 --iterations 80")),
    (2, ("jacobi", "--points 60 --steps 6000")),
    (3, (OWN, "")),
];

impl App {
    /// Any of them, or one of this name.
    pub(crate) fn choose(random: &mut Random, wanted: Option<&str>) -> Self {
        loop {
            let (name, arguments) = random.weighed(&APPS);
            if wanted.is_none_or(|wanted| wanted == name) {
                let is_solve = name == "solve";
                let arguments = if is_solve { solves::choose(random) } else { arguments.to_owned() };
                return Self { name, arguments };
            }
        }
    }

    pub(crate) fn is_name(name: &str) -> bool {
        APPS.iter().any(|(_, (known, _))| *known == name)
    }

    /// One whose ranks have much to say to each other, but not in turn: a relay takes its time.
    pub(crate) fn choose_talker(random: &mut Random) -> Self {
        loop {
            let app = Self::choose(random, None);
            if matches!(app.name, "cg" | "heat" | "simulator") {
                return app;
            }
        }
    }

    /// A small system of equations.
    pub(crate) fn small() -> Self {
        let (name, arguments) = APPS[0].1;
        Self { name, arguments: arguments.to_owned() }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.name == OWN
    }

    /// Its results may be rounded after a loss, and the rest of its answer stays the same.
    pub(crate) fn may_be_rounded(&self) -> bool {
        let is_steady = matches!(self.name, "cg" | "heat" | "pi" | "ep" | "npb-cg" | "hpcg" | "simulator");
        is_steady && !self.writes_files()
    }

    /// It can go on with fewer ranks.
    pub(crate) fn shrinks(&self) -> bool {
        matches!(self.name, "cg" | "heat" | "solve")
    }

    /// It writes files of results.
    pub(crate) fn writes_files(&self) -> bool {
        self.arguments.contains("--out")
    }

    /// Its messages cross its checkpoints.
    pub(crate) fn crosses(&self) -> bool {
        matches!(self.name, "pipeline" | "farm" | "wavefront" | "jacobi")
    }

    /// How its messages may cross checkpoints, and who goes back.
    pub(crate) fn lines(&self, random: &mut Random) -> &'static str {
        match self.name {
            "pipeline" | "wavefront" => random.one_of(&["", " --lines drain", " --recovery local"]),
            "farm" | "jacobi" => random.one_of(&["", " --recovery local"]),
            "cg" | "heat" | "pi" | "ep" | "npb-cg" | "solve" if random.percent(40) => {
                random.one_of(&[" --lines log", " --lines drain", " --recovery local", " --recovery local"])
            }
            _ => "",
        }
    }

    /// It takes checkpoints by `--every` and `--interval`.
    pub(crate) fn has_interval(&self) -> bool {
        self.name != "ring"
    }

    /// The number of ranks is part of its answer.
    pub(crate) fn counts_ranks(&self) -> bool {
        matches!(self.name, "ring" | "simulator" | "pipeline" | OWN)
    }

    /// As on the command line. A program of one's own is a script beside the folder of the run.
    pub(crate) fn arguments(&self) -> String {
        match self.is_own() {
            true => "../own".to_owned(),
            false => format!("{} {}", self.name, self.arguments),
        }
    }

    /// Whether two answers are the same but for doubles that were rounded after a loss.
    pub(crate) fn are_near(one: &[(&'static str, Value)], other: &[(&'static str, Value)]) -> bool {
        let are_near = |((name, a), (_, b)): (&(&str, Value), &(&str, Value))| match (a, b) {
            _ if matches!(*name, "answer_hash" | "iterations" | "relative_residual") => {
                a.is_null() == b.is_null()
            }
            (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
                let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
                (a - b).abs() <= 1e-6 * b.abs()
            }
            _ => a == b,
        };
        one.len() == other.len() && one.iter().zip(other).all(are_near)
    }

    /// The parts of a result that do not depend on who computes it when.
    pub(crate) fn answer(&self, result: &Value) -> Vec<(&'static str, Value)> {
        let keys: &[&str] = match self.name {
            "cg" => &["answer_hash", "iterations", "converged", "rows"],
            "solve" => {
                &["answer_hash", "iterations", "converged", "relative_residual", "history", "eigenvalues"]
            }
            "heat" => &["answer_hash", "steps", "plausible"],
            "pi" => &["hits", "samples", "pi"],
            "hpcg" => &["answer_hash", "relative_residual", "checks"],
            "npb-cg" => &["answer_hash", "zeta", "iterations"],
            "ep" => &["accepted", "counts", "sx", "sy"],
            "simulator" => &["sum", "expected", "loops"],
            "ring" => &["token", "rounds", "ranks"],
            "pipeline" => &["digest", "wrong", "items"],
            "farm" => &["digest", "is_right", "pairs", "tasks"],
            "wavefront" => &["answer", "iterations"],
            "jacobi" => &["points", "steps"],
            "seismic" => &["answer_hash", "samples", "receivers", "steps_per_shot"],
            _ => &[],
        };
        keys.iter().map(|key| (*key, result[*key].clone())).collect()
    }
}
