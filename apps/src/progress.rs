//! A line on the terminal while the job runs; silent in a pipe.

use std::io::{IsTerminal, Result};

use ft_comm::launch::{Console, Stream};
use ft_comm::list;
use ft_comm::proto::arbiter::Event;
use ft_comm::time::Time;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::report::count;

/// Setting that tells rank 0 that somebody looks at its progress.
pub(crate) const PROGRESS: &str = "progress";

/// What people see of a running job.
pub(crate) struct Display {
    console: Console,
    bar: Option<ProgressBar>,
    verbose: bool,
    work: String,
    checkpoints: u64,
    failures: u64,
    kills: Vec<String>,
    cuts: Vec<String>,
}

/// Whether somebody is looking.
pub(crate) fn is_watched(quiet: bool) -> bool {
    !quiet && std::io::stderr().is_terminal()
}

pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_spinner()).progress_chars("=> ")
}

impl Display {
    pub(crate) fn new(
        console: &Console,
        quiet: bool,
        verbose: bool,
        kills: Vec<String>,
        cuts: Vec<String>,
    ) -> Self {
        let bar = is_watched(quiet).then(|| {
            let screen = ProgressDrawTarget::term_like(Box::new(Screen(console.clone())));
            let bar = ProgressBar::with_draw_target(None, screen);
            bar.with_style(style("{spinner} {elapsed} {msg}"))
        });
        let console = console.clone();
        Self { console, bar, verbose, work: "starting".into(), checkpoints: 0, failures: 0, kills, cuts }
    }

    pub(crate) fn show(&mut self, event: &Event, at: Time) {
        match event {
            Event::Progress { line, done, .. } => {
                self.work.clone_from(line);
                if let (Some(bar), Some(done), false) = (&self.bar, done, self.console.is_full()) {
                    if bar.length().is_none() {
                        bar.set_length(1000);
                        bar.set_style(style("{elapsed} [{bar:30}] {percent} %, {eta} left, {msg}"));
                    }
                    bar.set_position(u64::from(*done));
                }
            }
            Event::Marked { rank: 0 } => self.checkpoints += 1,
            Event::Lost { .. } => self.failures += 1,
            _ => {}
        }
        let said = match event {
            Event::Struck { spec } => self.verbose.then(|| format!("--kill {} strikes", self.kills[*spec])),
            Event::Cut { spec } => self.verbose.then(|| format!("--cut {} strikes", self.cuts[*spec])),
            Event::RandomKill { rank } => self.verbose.then(|| format!("--mtbf strikes rank {rank}")),
            Event::Lost { rank, cause, .. } => Some(format!("rank {rank} is lost: {cause}")),
            Event::Decided { generation: 0, .. } => self.verbose.then(|| "all ranks have joined".into()),
            Event::Decided { generation, failed } => {
                Some(format!("{} back, generation {generation} starts", list("rank", failed)))
            }
            Event::Resumed { steps_lost, .. } => {
                Some(format!("state restored from memory, {steps_lost} steps are done again"))
            }
            Event::Stalled { account } => Some(account.clone()),
            Event::Finished { .. } => self.verbose.then(|| "all ranks are done".into()),
            Event::Spares { ready, wanted, lost: None } => {
                self.verbose.then(|| format!("{ready} of {wanted} spares are ready"))
            }
            Event::Spares { lost: Some(cause), .. } => Some(format!("a spare is lost: {cause}")),
            Event::Refused { count } => {
                self.verbose.then(|| format!("{count} connections of strangers are refused by a rank"))
            }
            Event::Marked { .. }
            | Event::Progress { .. }
            | Event::Activity { .. }
            | Event::Agreed
            | Event::Respawned => None,
        };
        let said = said.map(|text| format!("ftrun: {:9.6} s  {text}", at.seconds()));
        match (&self.bar, said) {
            (Some(bar), said) => {
                said.into_iter().for_each(|line| bar.println(line));
                // Somebody who holds the terminal sees nothing move.
                if self.console.is_full() {
                    return;
                }
                let Self { work, checkpoints, failures, .. } = self;
                let (checkpoints, failures) =
                    (count(*checkpoints, "checkpoint"), count(*failures, "failure"));
                bar.set_message(format!("{work}, {checkpoints}, {failures}"));
                bar.tick();
            }
            // Who asked for the watchdog wants to hear it.
            (None, Some(line)) if self.verbose || matches!(event, Event::Stalled { .. }) => {
                self.console.say(line);
            }
            (None, _) => {}
        }
    }

    pub(crate) fn finish(self) {
        self.bar.into_iter().for_each(|bar| bar.finish_and_clear());
    }
}

/// The terminal, by way of the console: drawing on it waits for nobody.
#[derive(Debug)]
struct Screen(Console);

impl Screen {
    fn put(&self, text: impl Into<Vec<u8>>) -> Result<()> {
        self.0.print(Stream::Error, text);
        Ok(())
    }

    /// Moves the cursor by `count` towards where the letter says (ECMA-48).
    fn go(&self, count: usize, towards: char) -> Result<()> {
        if count == 0 { Ok(()) } else { self.put(format!("\x1b[{count}{towards}")) }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        self.0.width().unwrap_or(80)
    }

    fn move_cursor_up(&self, count: usize) -> Result<()> {
        self.go(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> Result<()> {
        self.go(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> Result<()> {
        self.go(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> Result<()> {
        self.go(count, 'D')
    }

    fn write_line(&self, text: &str) -> Result<()> {
        self.put(format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> Result<()> {
        self.put(text)
    }

    fn clear_line(&self) -> Result<()> {
        self.put("\r\x1b[2K")
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}
