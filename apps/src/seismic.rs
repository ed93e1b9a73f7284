//! `seismic`: shots of a 2D acoustic survey, handed out among the ranks as a bag of tasks.

use std::process::ExitCode;

use ft_comm::launch::Ending;
use serde_json::Value;

use crate::app::{App, read};
use crate::cli::Options;
use crate::rank;

mod args;
mod gathers;
pub(crate) mod pictures;
mod program;
mod setup;
mod summary;

pub(crate) use args::{SeismicArgs, shape};
use program::Modelling;
use setup::Setup;
use summary::Summary;

impl App for SeismicArgs {
    /// Makes the whole survey once, so that what is wrong with it is said once and before the start.
    fn check(&self, _: &Options) -> Result<(), String> {
        Setup::new(self)?;
        self.out.as_deref().map_or(Ok(()), gathers::prepare)
    }

    fn rank(&self) -> ExitCode {
        rank::run(&mut Modelling::new(self.clone()))
    }

    fn complete(&self, result: &mut Value, ending: &Ending) {
        if let Some(mut summary) = read::<Summary>(result) {
            summary.predict(&ending.failures, ending.elapsed.as_secs_f64());
            *result = serde_json::to_value(summary).expect("a summary can be written");
        }
    }

    fn headline(&self, result: &Value) -> String {
        read(result).map_or(String::new(), |summary: Summary| summary.headline())
    }

    fn lines(&self, result: &Value) -> Vec<String> {
        read(result).map_or(vec![], |summary: Summary| summary.lines())
    }

    fn finish(&self, result: &Value) -> Result<(), String> {
        let Some(out) = self.out.as_deref() else { return Ok(()) };
        gathers::clean(out).map_err(|error| error.to_string())?;
        if self.pictures && !result.is_null() {
            pictures::of_survey(&Setup::new(self)?, self, out)
        } else {
            Ok(())
        }
    }
}
