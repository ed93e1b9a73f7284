//! The campaign of strikes: random jobs, random strikes, and whether what came of it may be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::case::{Case, Stream};
use crate::programs::Programs;
use crate::random::Random;
use crate::run::{self, Order};
use crate::verdict::{self, Reference};
use crate::workers::{Judged, Work};

/// Time for any job whatever it computes.
const PATIENCE: Duration = Duration::from_secs(10);
/// A job may wait for ten timeouts, and then needs one to go on.
const TIMEOUTS: f64 = 12.0;

/// See the module.
pub(crate) struct Kills<'a> {
    programs: &'a Programs,
    seed: u64,
    references: Mutex<HashMap<(App, usize), Arc<Reference>>>,
}

impl<'a> Kills<'a> {
    pub(crate) fn new(programs: &'a Programs, seed: u64) -> Self {
        Self { programs, seed, references: Mutex::default() }
    }

    /// The undisturbed run of the same program.
    fn reference(&self, case: &Case) -> Result<Arc<Reference>, String> {
        let key = (case.app, if case.app.counts_ranks() { case.ranks } else { 4 });
        let mut references = self.references.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = references.get(&key) {
            return Ok(known.clone());
        }
        let reference = Arc::new(self.measure(case.app, key.1)?);
        references.insert(key, reference.clone());
        Ok(reference)
    }

    fn measure(&self, app: App, ranks: usize) -> Result<Reference, String> {
        let folder = tempfile::tempdir_in(self.programs.folder.path()).map_err(|error| error.to_string())?;
        let json = if app.is_own() { "" } else { " --json" };
        let arguments = format!("-n {ranks} --scheme none{json} {}", app.arguments());
        let order = Order {
            command: run::command(&self.programs.ftrun, folder.path(), &arguments),
            mark: format!("{}.reference", std::process::id()),
            stdout: Stream::Read,
            stderr: Stream::Read,
            strikes: &[],
            usual: Duration::ZERO,
            deadline: PATIENCE * 4,
            random: Random::of_run(0, 0),
        };
        let outcome = run::run(order).map_err(|error| format!("ftrun {arguments}: {error}"))?;
        if outcome.status != 0 {
            return Err(format!(
                "ftrun {arguments}: status {}, undisturbed\n{}",
                outcome.status, outcome.stderr
            ));
        }
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        Ok(Reference {
            elapsed: outcome.elapsed,
            answer: app.answer(&report["result"]),
            lines: outcome.stdout.lines().map(str::to_owned).filter(|_| app.is_own()).collect(),
            files: verdict::files(folder.path()).map_err(|error| error.to_string())?,
        })
    }
}

impl Work for Kills<'_> {
    fn run(&self, number: u64) -> Result<Judged, String> {
        let case = Case::new(self.seed, number);
        let reference = self.reference(&case)?;
        let folder = tempfile::tempdir_in(self.programs.folder.path()).map_err(|error| error.to_string())?;
        let mark = format!("{}.{number}", std::process::id());
        let order = Order {
            command: run::command(&self.programs.ftrun, folder.path(), &case.arguments()),
            mark,
            stdout: case.stdout,
            stderr: case.stderr,
            strikes: &case.strikes,
            usual: reference.elapsed,
            deadline: PATIENCE
                + reference.elapsed * 20
                + Duration::from_secs_f64(case.timeout_ms * 1e-3 * TIMEOUTS),
            random: Random::of_run(!self.seed, number),
        };
        let outcome = run::run(order).map_err(|error| format!("run {number}: {error}"))?;
        let found = verdict::files(folder.path()).map_err(|error| error.to_string())?;
        let findings = verdict::findings(&case, &outcome, &reference, &found);
        let mut labels = vec![
            ("app", case.app.name.to_owned()),
            ("scheme", case.scheme.name.to_owned()),
            ("mode", format!("{:?}", case.mode).to_lowercase()),
        ];
        labels.extend(case.kinds().into_iter().map(|kind| ("strike", kind.to_owned())));
        let mut account = case.to_string();
        for (position, at, met) in &outcome.struck {
            account += &format!(
                "  struck {met} after {:.1} ms: {}\n",
                at.as_secs_f64() * 1e3,
                case.strikes[*position]
            );
        }
        account += &format!("  status {} after {:.3} s\n", outcome.status, outcome.elapsed.as_secs_f64());
        let (stdout, stderr) = (shortened(&outcome.stdout), shortened(&outcome.stderr));
        account += &format!("  stdout: {stdout}\n  stderr:\n{stderr}");
        Ok(Judged { labels, status: outcome.status, findings, account })
    }
}

/// The beginning and the end of a text.
fn shortened(text: &str) -> String {
    const ENDS: usize = 3000;
    if text.len() < 2 * ENDS {
        return text.to_owned();
    }
    let start = text.floor_char_boundary(ENDS);
    let end = text.ceil_char_boundary(text.len() - ENDS);
    format!("{} [...] {}", &text[..start], &text[end..])
}
