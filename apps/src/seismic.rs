//! `seismic`: shots of a 2D acoustic survey, handed out among the ranks as a bag of tasks.

use std::process::ExitCode;

use ft_launch::Ending;

use crate::app::App;
use crate::options::Options;
use crate::rank;

mod args;
mod facts;
mod gathers;
pub(crate) mod pictures;
mod program;
mod setup;
mod summary;

pub(crate) use args::{SeismicArgs, shape};
use program::Modeling;
use setup::Setup;
use summary::Summary;

impl App for SeismicArgs {
    type Outcome = Summary;

    /// Makes the whole survey once, so that what is wrong with it is said once and before the start.
    fn check(&self, options: &Options) -> Result<(), String> {
        let setup = Setup::new(self)?;
        self.out.as_deref().map_or(Ok(()), gathers::prepare)?;
        let moved: Vec<String> = setup.moved.iter().map(ToString::to_string).collect();
        if !moved.is_empty() && !options.quiet {
            let spacing = setup.model.spacing;
            eprintln!("ftrun: positions are points of a grid of {spacing} m: {}", moved.join(", "));
        }
        Ok(())
    }

    fn rank(&self) -> ExitCode {
        rank::run(|settings| Modeling::new(self.clone(), settings))
    }

    fn complete(&self, summary: &mut Summary, ending: &Ending) {
        summary.predict(&ending.failures, ending.elapsed.as_secs_f64());
    }

    /// A rank that does not get a gather right says so itself, and ends the job.
    fn complaint(&self, summary: &Summary) -> Option<String> {
        summary.complaint()
    }

    fn headline(&self, summary: &Summary) -> String {
        summary.headline()
    }

    fn lines(&self, summary: &Summary) -> Vec<String> {
        summary.lines()
    }

    fn finish(&self, summary: Option<&Summary>) -> Result<(), String> {
        let Some(out) = self.out.as_deref() else { return Ok(()) };
        gathers::clean(out).map_err(|error| error.to_string())?;
        if self.pictures && summary.is_some() {
            pictures::of_survey(&Setup::new(self)?, self, out)
        } else {
            Ok(())
        }
    }
}
