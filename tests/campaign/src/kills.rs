//! The campaign of strikes: random jobs, random strikes, and whether what came of it may be.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::case::{Case, FLUSHED};
use crate::programs::Programs;
use crate::random::Random;
use crate::reference::{self, Files, References};
use crate::run::{self, Order, Struck};
use crate::surroundings::Surroundings;
use crate::verdict;
use crate::workers::{Judged, Work};

/// Time for any job whatever it computes. A silent rank whose loss the job would not survive is
/// waited for a minute.
const PATIENCE: Duration = Duration::from_secs(75);
/// A job may wait for ten timeouts, and then needs one to go on.
const TIMEOUTS: f64 = 12.0;

/// See the module.
pub(crate) struct Kills<'a> {
    programs: &'a Programs,
    seed: u64,
    app: Option<&'a str>,
    references: References<'a>,
}

impl<'a> Kills<'a> {
    /// With any app, or with one alone.
    pub(crate) fn new(programs: &'a Programs, seed: u64, app: Option<&'a str>) -> Self {
        Self { programs, seed, app, references: References::new(programs) }
    }
}

/// Whether a job has left a set of checkpoint files with its manifest.
fn has_set(found: &Files) -> bool {
    found.keys().any(|name| name.starts_with(FLUSHED) && name.ends_with("/manifest"))
}

/// A job that was resumed from files.
struct Resumed {
    /// What is wrong, with a word for its kind.
    finding: Option<(&'static str, String)>,
    account: String,
}

impl Kills<'_> {
    /// Resumes a job from the files that it has left.
    fn resume(&self, case: &Case, folder: &Path) -> Result<Resumed, String> {
        let reference = self.references.get(&case.app, case.ranks)?;
        let arguments = format!("--json --resume {FLUSHED} {}", case.app.arguments());
        let command = run::command(&self.programs.ftrun, folder, &arguments, Surroundings::Usual)
            .map_err(|error| error.to_string())?;
        let deadline = PATIENCE + reference.elapsed * 20;
        let outcome = run::run(Order { deadline, ..Order::undisturbed(command) })
            .map_err(|error| format!("ftrun {arguments}: {error}"))?;
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let answer = case.app.answer(&report["result"]);
        let finding = match &outcome.hang {
            Some(hang) => Some(("resume", hang.clone())),
            None if outcome.status != 0 => Some(("resume", format!("status {}", outcome.status))),
            None if case.is_rounded() && App::are_near(&answer, &reference.answer) => None,
            None if answer != reference.answer => {
                Some(("resume", format!("{answer:?}, not {:?}", reference.answer)))
            }
            None => None,
        };
        Ok(Resumed { finding, account: format!("\n  then: ftrun {arguments}\n{outcome}") })
    }
}

impl Work for Kills<'_> {
    fn run(&self, number: u64) -> Result<Judged, String> {
        let case = Case::new(self.seed, number, self.app);
        let reference = self.references.get(&case.app, case.ranks)?;
        let folder = self.programs.folder()?;
        let own = case.replaces().then(|| self.programs.copy()).transpose()?;
        let ftrun = own.as_ref().map_or(&self.programs.ftrun, |(_, file)| file);
        let command = run::command(ftrun, folder.path(), &case.arguments(), case.surroundings)
            .map_err(|error| format!("run {number}: {error}"))?;
        let order = Order {
            surroundings: case.surroundings,
            stdout: case.stdout,
            stderr: case.stderr,
            strikes: &case.strikes,
            executable: own.as_ref().map(|(_, file)| file.clone()),
            usual: reference.elapsed,
            deadline: PATIENCE
                + reference.elapsed * 20
                + Duration::from_secs_f64(case.timeout_ms * 1e-3 * TIMEOUTS),
            random: Random::of_run(!self.seed, number),
            ..Order::undisturbed(command)
        };
        let outcome = run::run(order).map_err(|error| format!("run {number}: {error}"))?;
        let found = reference::files(folder.path()).map_err(|error| error.to_string())?;
        let mut findings = verdict::findings(&case, &outcome, &reference, &found);
        let mut resumed = String::new();
        if outcome.status != 0 && outcome.hang.is_none() && has_set(&found) && !case.app.is_own() {
            let Resumed { finding, account } = self.resume(&case, folder.path())?;
            findings.extend(finding);
            resumed = account;
        }
        let mut labels = vec![
            ("app", case.app.name.to_owned()),
            ("scheme", case.scheme.name.to_owned()),
            ("mode", format!("{:?}", case.mode).to_lowercase()),
            ("surroundings", case.surroundings.name().to_owned()),
        ];
        labels.extend(case.kinds().into_iter().map(|kind| ("strike", kind.to_owned())));
        let mut account = case.to_string();
        for Struck { position, at, met, whom } in &outcome.struck {
            let (ms, strike) = (at.as_secs_f64() * 1e3, case.strikes[*position]);
            account += &format!("  struck {met} after {ms:.1} ms {whom:?}: {strike}\n");
        }
        account += &outcome.to_string();
        account += &resumed;
        Ok(Judged { labels, status: outcome.status, findings, account })
    }
}
