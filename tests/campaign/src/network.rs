//! A hostile network: whoever sits between two of three hosts changes what passes there. The answer has to be right, or
//! the end clear, and no program of a stranger may run.
//!
//! The hosts are network namespaces, and all that passes between them goes through a relay in a fourth one.

mod mischief;
mod namespaces;
mod relay;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::programs::Programs;
use crate::random::Random;
use crate::reference::References;
use crate::run::{self, Order, Outcome};
use crate::workers::{Judged, Work};
use mischief::Mischief;
use namespaces::{HOSTS, Namespaces};
use relay::Relay;

/// Silence after which somebody is lost, in milliseconds.
const TIMEOUT_MS: u32 = 800;
/// Longest that a job may take beside its work: agents have 10 s to arrive, links break twice, leases end.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Network<'a> {
    programs: &'a Programs,
    seed: u64,
    references: References<'a>,
    /// Those that no run uses.
    free: Mutex<Vec<Namespaces>>,
}

impl<'a> Network<'a> {
    /// # Errors
    /// Why there can be no such network here.
    pub(crate) fn new(programs: &'a Programs, seed: u64) -> Result<Self, String> {
        let free = Mutex::new(vec![Namespaces::new(programs)?]);
        Ok(Self { programs, seed, references: References::new(programs), free })
    }
}

impl Work for Network<'_> {
    fn run(&self, number: u64) -> Result<Judged, String> {
        let mut random = Random::of_run(self.seed, number);
        let app = App::choose_talker(&mut random);
        let ranks = 3 + random.below(4);
        let schemes = ["xor", "neighbor", "neighbor:2", "rs:2+1"];
        let scheme = random.one_of(&schemes);
        let mischief = Mischief::choose(&mut random);
        let reference = self.references.get(&app, ranks)?;

        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let hosts = free.map_or_else(|| Namespaces::new(self.programs), Ok)?;
        let folder = self.programs.folder()?;
        let slots = ranks.div_ceil(HOSTS);
        let names: Vec<String> =
            (1..=HOSTS).map(|host| format!("{}:{slots}", namespaces::address(host))).collect();
        let arguments = format!(
            "-n {ranks} --scheme {scheme} --heartbeat-timeout {TIMEOUT_MS} --hosts {} --json -v {}",
            names.join(","),
            app.arguments()
        );
        let relay = Relay::start(&hosts.router()?, mischief.clone(), random)
            .map_err(|error| format!("the relay: {error}"))?;
        let command = command(&hosts, folder.path(), &arguments)?;
        let order = Order { deadline: PATIENCE + reference.elapsed * 20, ..Order::undisturbed(command) };
        let outcome = run::run(order).map_err(|error| format!("run {number}: {error}"))?;
        let done = relay.end();
        let mut findings = findings(&app, &outcome, &reference.answer);
        if hosts.a_stranger_has_run() {
            findings.push(("a stranger's program", "a program has run that the relay has named".to_owned()));
        }
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(hosts);
        let again = format!("  again: campaign --network --seed {} --only {number}\n", self.seed);
        let account = format!("{again}  ftrun {arguments}\n  {mischief}: done {done} times\n{outcome}");
        let mut labels = vec![("app", app.name.to_owned()), ("scheme", scheme.to_owned())];
        labels.push(match done {
            0 => ("relay", "has done nothing".to_owned()),
            _ => ("relay", mischief.name().to_owned()),
        });
        Ok(Judged { labels, status: outcome.status, findings, account })
    }
}

/// `ftrun` on the first host.
fn command(hosts: &Namespaces, folder: &Path, arguments: &str) -> Result<Command, String> {
    let mut command = Command::new("nsenter");
    command.arg(hosts.entrance(1)).arg(hosts.ftrun()).arg("--launcher-exec").arg(hosts.exec());
    command.args(arguments.split_whitespace()).current_dir(folder);
    Ok(command)
}

fn findings(app: &App, outcome: &Outcome, right: &[(&'static str, Value)]) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if let Some(hang) = &outcome.hang {
        wrong.push(("hang", hang.clone()));
        return wrong;
    }
    if outcome.stderr.contains("panicked") || outcome.status == 101 {
        wrong.push(("panic", "a panic".to_owned()));
    }
    if !outcome.left.is_empty() {
        wrong.push(("left behind", format!("left behind: {}", outcome.left.join("\n    "))));
    }
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    let answer = app.answer(&report["result"]);
    if outcome.status == 0 && answer != right {
        wrong.push(("wrong answer", format!("{answer:?}, not {right:?}")));
    }
    // Whom it was about.
    let names = ["rank", "host", "link", "agent", "launcher"];
    let is_clear = |line: &str| line.starts_with("ftrun: ") && names.iter().any(|name| line.contains(name));
    // What is said with a time is an event, not the cause of the end.
    let causes = outcome.stderr.lines().filter(|line| !line.contains(" s  "));
    if outcome.status != 0 && !causes.into_iter().any(is_clear) {
        wrong.push(("unclear end", format!("status {} without a line that names the link", outcome.status)));
    }
    wrong
}
