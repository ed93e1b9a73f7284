//! The campaign of strikes: random jobs, random strikes, and whether what came of it may be.

use std::time::Duration;

use crate::case::Case;
use crate::programs::Programs;
use crate::random::Random;
use crate::reference::{self, References};
use crate::run::{self, Order, Struck};
use crate::verdict;
use crate::workers::{Judged, Work};

/// Time for any job whatever it computes.
const PATIENCE: Duration = Duration::from_secs(10);
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

impl Work for Kills<'_> {
    fn run(&self, number: u64) -> Result<Judged, String> {
        let case = Case::new(self.seed, number, self.app);
        let reference = self.references.get(&case.app, case.ranks)?;
        let folder = self.programs.folder()?;
        let command = run::command(&self.programs.ftrun, folder.path(), &case.arguments());
        let order = Order {
            stdout: case.stdout,
            stderr: case.stderr,
            strikes: &case.strikes,
            usual: reference.elapsed,
            deadline: PATIENCE
                + reference.elapsed * 20
                + Duration::from_secs_f64(case.timeout_ms * 1e-3 * TIMEOUTS),
            random: Random::of_run(!self.seed, number),
            ..Order::undisturbed(command)
        };
        let outcome = run::run(order).map_err(|error| format!("run {number}: {error}"))?;
        let found = reference::files(folder.path()).map_err(|error| error.to_string())?;
        let findings = verdict::findings(&case, &outcome, &reference, &found);
        let mut labels = vec![
            ("app", case.app.name.to_owned()),
            ("scheme", case.scheme.name.to_owned()),
            ("mode", format!("{:?}", case.mode).to_lowercase()),
        ];
        labels.extend(case.kinds().into_iter().map(|kind| ("strike", kind.to_owned())));
        let mut account = case.to_string();
        for Struck { position, at, met, whom } in &outcome.struck {
            let (ms, strike) = (at.as_secs_f64() * 1e3, case.strikes[*position]);
            account += &format!("  struck {met} after {ms:.1} ms {whom:?}: {strike}\n");
        }
        account += &outcome.to_string();
        Ok(Judged { labels, status: outcome.status, findings, account })
    }
}
