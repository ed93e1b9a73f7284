//! Undisturbed runs, to compare others with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::programs::Programs;
use crate::run::{self, Order};
use crate::surroundings::Surroundings;

/// Time for any of them, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// How an undisturbed run of a program ended.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) elapsed: Duration,
    pub(crate) answer: Vec<(&'static str, Value)>,
    /// Lines of a program of one's own, each once.
    pub(crate) lines: BTreeSet<String>,
    pub(crate) files: Files,
}

/// Files by their names.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> std::io::Result<Files> {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                found.insert(name, std::fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// One for each program, run when it is asked for.
#[derive(Debug)]
pub(crate) struct References<'a> {
    programs: &'a Programs,
    known: Mutex<HashMap<(App, usize), Arc<Reference>>>,
}

impl<'a> References<'a> {
    pub(crate) fn new(programs: &'a Programs) -> Self {
        Self { programs, known: Mutex::default() }
    }

    /// # Errors
    /// It fails undisturbed.
    pub(crate) fn get(&self, app: &App, ranks: usize) -> Result<Arc<Reference>, String> {
        let key = (app.clone(), if app.counts_ranks() { ranks } else { 4 });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reference) = known.get(&key) {
            return Ok(reference.clone());
        }
        let reference = Arc::new(self.measure(app, key.1)?);
        known.insert(key, reference.clone());
        Ok(reference)
    }

    fn measure(&self, app: &App, ranks: usize) -> Result<Reference, String> {
        let folder = self.programs.folder()?;
        let json = if app.is_own() { "" } else { " --json" };
        let arguments = format!("-n {ranks} --scheme none{json} {}", app.arguments());
        let command = run::command(&self.programs.ftrun, folder.path(), &arguments, Surroundings::Usual)
            .map_err(|error| error.to_string())?;
        let order = Order { deadline: PATIENCE, ..Order::undisturbed(command) };
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
            files: files(folder.path()).map_err(|error| error.to_string())?,
        })
    }
}
