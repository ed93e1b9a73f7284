//! A line on the terminal while the job runs. Where there is none, in a pipe or a log: nothing, or with `-v` what happens, and
//! now and then how far the work is.

use std::collections::BTreeSet;
use std::io::Result;
use std::time::Duration;

use ft_comm::list;
use ft_comm::time::Time;
use ft_launch::{Console, Optional, Stream};
use ft_proto::arbiter::Event;
use ft_proto::rank::Rank;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::say::can_draw;
use crate::words::count;

/// Between two lines in a log about how far the work is.
const LOGGED_EVERY: Duration = Duration::from_secs(10);

/// The view of a running job on the terminal. A panic in it does not end the job.
pub(crate) struct Display(Optional<Drawn>);

/// The parts of a display.
struct Drawn {
    console: Console,
    bar: Option<ProgressBar>,
    /// Whether it can be drawn on now.
    can_draw: fn() -> bool,
    account: Account,
}

/// What is told of a running job.
struct Account {
    verbose: bool,
    work: String,
    checkpoints: u64,
    failures: u64,
    /// Ranks that could not write a checkpoint to files.
    unwritten: BTreeSet<Rank>,
    /// When a log last heard how far the work is.
    logged: Time,
    kills: Vec<String>,
    cuts: Vec<String>,
    /// Where lost states are restored from.
    source: &'static str,
}

/// Whether somebody is looking.
pub(crate) fn is_watched(quiet: bool) -> bool {
    !quiet && can_draw(std::io::stderr())
}

pub(crate) fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_spinner()).progress_chars("=> ")
}

impl Display {
    /// `on_disk`: checkpoints are files.
    pub(crate) fn new(
        console: &Console,
        quiet: bool,
        verbose: bool,
        kills: Vec<String>,
        cuts: Vec<String>,
        on_disk: bool,
    ) -> Self {
        let screen = is_watched(quiet).then(|| Box::new(Screen(console.clone())) as Box<dyn TermLike>);
        let can_draw = || can_draw(std::io::stderr());
        Self::on(screen, can_draw, console, Account::new(verbose, kills, cuts, on_disk))
    }

    fn on(
        screen: Option<Box<dyn TermLike>>,
        can_draw: fn() -> bool,
        console: &Console,
        account: Account,
    ) -> Self {
        let bar = screen.map(|screen| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::term_like(screen));
            bar.with_style(style("{spinner} {elapsed} {msg}"))
        });
        Self(Optional::new(
            "the display",
            console,
            Drawn { console: console.clone(), bar, can_draw, account },
        ))
    }

    pub(crate) fn show(&mut self, event: &Event, at: Time) {
        self.0.run(|drawn| drawn.show(event, at));
    }

    pub(crate) fn say(&mut self, line: String) {
        self.0.run(|drawn| drawn.say(line));
    }

    pub(crate) fn finish(mut self) {
        self.0.run(Drawn::finish);
    }
}

impl Drawn {
    fn show(&mut self, event: &Event, at: Time) {
        let timed = |text: String| format!("ftrun: {:9.6} s  {text}", at.seconds());
        let said = self.account.hear(event).map(timed);
        let Some(bar) = &self.bar else {
            let progress = self.account.log(event, at).map(timed);
            // Who asked for the watchdog wants to hear it.
            let said = said.filter(|_| self.account.verbose || is_wanted(event));
            return said.into_iter().chain(progress).for_each(|line| self.console.say(line));
        };
        if !(self.can_draw)() {
            // In the background, or too narrow for now.
            return said.into_iter().for_each(|line| self.console.say(line));
        }
        said.into_iter().for_each(|line| bar.println(line));
        // A stopped terminal shows no progress, and drawing would overwrite a prompt.
        if self.console.is_full(Stream::Error) || self.console.has_open_line(Stream::Error) {
            return;
        }
        if let Event::Progress { done: Some(done), .. } = event {
            if bar.length().is_none() {
                bar.set_length(1000);
                bar.set_style(style("{elapsed} [{bar:30}] {percent} %, {eta} left, {msg}"));
            }
            bar.set_position(u64::from(*done));
        }
        bar.set_message(self.account.state());
        bar.tick();
    }

    /// Prints a line above the one that shows how far the work is.
    fn say(&self, line: String) {
        match self.bar.as_ref().filter(|_| (self.can_draw)()) {
            Some(bar) => bar.println(line),
            None => self.console.say(line),
        }
    }

    fn finish(&mut self) {
        let Some(bar) = self.bar.take() else { return };
        if !(self.can_draw)() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.finish_and_clear();
    }
}

/// Whether it is said to those who have not asked to hear all: they asked for the watchdog, a
/// promise is not kept, or the job waits for a rank that it cannot replace.
fn is_wanted(event: &Event) -> bool {
    match event {
        Event::Saved { saved, .. } => saved.error.is_some(),
        event => matches!(event, Event::Stalled { .. } | Event::Silent { .. } | Event::HeardAgain { .. }),
    }
}

impl Account {
    fn new(verbose: bool, kills: Vec<String>, cuts: Vec<String>, on_disk: bool) -> Self {
        let source = if on_disk { "disk" } else { "memory" };
        let (checkpoints, failures, logged) = (0, 0, Time(0));
        let (work, unwritten) = (String::from("starting"), BTreeSet::new());
        Self { verbose, work, checkpoints, failures, unwritten, logged, kills, cuts, source }
    }

    /// Takes note of an event; gives what is worth a line.
    fn hear(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Progress { line, .. } => self.work.clone_from(line),
            Event::Marked { rank: 0, .. } => self.checkpoints += 1,
            Event::Lost { .. } => self.failures += 1,
            // A disk that is full stays so: each rank says it once.
            Event::Saved { rank, saved }
                if saved.error.is_some() && !self.unwritten.insert(*rank) && !self.verbose =>
            {
                return None;
            }
            _ => {}
        }
        self.said(event)
    }

    fn said(&self, event: &Event) -> Option<String> {
        let detail = |text: String| self.verbose.then_some(text);
        match event {
            Event::Struck { spec } => detail(format!("--kill {} strikes", self.kills[*spec])),
            Event::Cut { spec } => detail(format!("--cut {} strikes", self.cuts[*spec])),
            Event::RandomKill { rank } => detail(format!("--mtbf strikes rank {rank}")),
            Event::Lost { rank, cause, .. } => Some(format!("rank {rank} is lost: {cause}")),
            Event::Decided { generation: 0, .. } => detail("all ranks have joined".into()),
            Event::Decided { generation, failed, held } => {
                Some(format!("{}, generation {generation} starts", repaired(failed, held)))
            }
            Event::Resumed { steps_lost: 1, .. } => {
                Some(format!("state restored from {}, 1 step is done again", self.source))
            }
            Event::Resumed { steps_lost, .. } => {
                Some(format!("state restored from {}, {steps_lost} steps are done again", self.source))
            }
            Event::Silent { rank, timeout, limit } => Some(format!(
                "rank {rank} is silent for {} s; the job would not survive its loss, so it is waited for up to {} s",
                timeout.as_secs_f64(),
                limit.as_secs_f64()
            )),
            Event::HeardAgain { rank, silent } => {
                Some(format!("rank {rank} is heard again after {:.1} s", silent.as_secs_f64()))
            }
            Event::Stalled { account } => Some(account.clone()),
            Event::Finished { .. } => detail("all ranks are done".into()),
            Event::Spares { ready, wanted, lost: None } => {
                detail(format!("{ready} of {wanted} spares are ready"))
            }
            Event::Spares { lost: Some(cause), .. } => Some(format!("a spare is lost: {cause}")),
            Event::HostLost { cause } => Some(cause.clone()),
            Event::HostBack { name, is_new: true } => Some(format!("host {name} joins")),
            Event::HostBack { name, is_new: false } => Some(format!("host {name} is back")),
            Event::AgentBack { name } => detail(format!("host {name} has another agent, its ranks go on")),
            Event::Refused { count: 1 } => detail("1 connection of a stranger is refused by a rank".into()),
            Event::Refused { count } => {
                detail(format!("{count} connections of strangers are refused by a rank"))
            }
            Event::Saved { rank, saved } => match &saved.error {
                Some(error) => Some(format!(
                    "rank {rank} could not write checkpoint {} to files, and the job goes on: {error}",
                    saved.number
                )),
                None => detail(format!("checkpoint {} is in files", saved.number)),
            },
            Event::Marked { .. }
            | Event::Progress { .. }
            | Event::Activity { .. }
            | Event::Account { .. }
            | Event::Agreed
            | Event::Respawned => None,
        }
    }

    /// How far the work is, for a log, if it is time to say so.
    fn log(&mut self, event: &Event, at: Time) -> Option<String> {
        let Event::Progress { done, .. } = event else { return None };
        if !self.verbose || at.since(self.logged) < LOGGED_EVERY {
            return None;
        }
        self.logged = at;
        let share = done.map_or(String::new(), |done| format!("{} %, ", done / 10));
        Some(format!("{share}{}", self.state()))
    }

    fn state(&self) -> String {
        let Self { work, checkpoints, failures, .. } = self;
        format!("{work}, {}, {}", count(*checkpoints, "checkpoint"), count(*failures, "failure"))
    }
}

/// What a repair has made of the loss of the ranks `failed`, if now somebody has the ranks `held`.
fn repaired(failed: &[Rank], held: &[Rank]) -> String {
    if failed.is_empty() {
        return "links are renewed".into();
    }
    match failed.iter().any(|rank| held.contains(rank)) {
        true => format!("{} back", list("rank", failed)),
        false => format!("{} without {}", count(held.len() as u64, "rank"), list("rank", failed)),
    }
}

#[cfg(test)]
mod tests {
    use ft_comm::Saved;

    use super::*;

    fn account(verbose: bool) -> Account {
        Account::new(verbose, vec![], vec![], false)
    }

    fn at(seconds: f64) -> Time {
        Time(0).after(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn a_full_disk_is_said_once_by_each_rank() {
        let saved = |rank: Rank, error: Option<&str>| {
            let saved = Saved { number: 3, bytes: 0, error: error.map(str::to_owned) };
            Event::Saved { rank, saved }
        };
        let said = |verbose: bool| -> Vec<bool> {
            let mut account = account(verbose);
            let events = [(1, Some("full")), (1, Some("full")), (0, None), (2, Some("full"))];
            events.map(|(rank, error)| account.hear(&saved(rank, error)).is_some()).to_vec()
        };
        assert_eq!(said(false), [true, false, false, true]);
        assert_eq!(said(true), [true; 4]);
    }

    #[test]
    fn a_log_hears_of_progress_now_and_then() {
        let progress = |line: &str| Event::Progress { rank: 0, done: Some(405), line: line.into() };
        let lines = |verbose: bool, seconds: &[f64]| -> Vec<String> {
            let mut account = account(verbose);
            account.hear(&Event::Marked { rank: 0, number: 1 });
            let lines = seconds.iter().filter_map(|seconds| {
                let event = progress(&format!("step {seconds}"));
                account.hear(&event);
                account.log(&event, at(*seconds))
            });
            lines.collect()
        };
        assert_eq!(lines(true, &[0.1, 5.0, 9.9]), [""; 0]);
        assert_eq!(
            lines(true, &[5.0, 11.0, 11.1, 20.9, 21.5]),
            ["40 %, step 11, 1 checkpoint, 0 failures", "40 %, step 21.5, 1 checkpoint, 0 failures"]
        );
        assert_eq!(lines(false, &[5.0, 11.0, 30.0]), [""; 0]);
    }

    /// A terminal that panics when its width is read.
    #[derive(Debug)]
    struct Broken;

    impl TermLike for Broken {
        fn width(&self) -> u16 {
            panic!("planted")
        }

        fn move_cursor_up(&self, _: usize) -> Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> Result<()> {
            Ok(())
        }

        fn write_line(&self, _: &str) -> Result<()> {
            Ok(())
        }

        fn write_str(&self, _: &str) -> Result<()> {
            Ok(())
        }

        fn clear_line(&self) -> Result<()> {
            Ok(())
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn panic_while_drawing_turns_the_display_off() {
        let console = Console::new().unwrap();
        let lost = Event::Lost { rank: 1, cause: "killed by signal 9".into(), generation: None };
        let mut display = Display::on(Some(Box::new(Broken)), || true, &console, account(false));
        display.show(&lost, at(1.0));
        assert_eq!(display.0.run(|_| ()), None);
        display.show(&lost, at(2.0));
        display.finish();
        // Where nothing can be drawn now, lines are printed as they are.
        let mut display = Display::on(Some(Box::new(Broken)), || false, &console, account(false));
        display.show(&lost, at(1.0));
        assert_eq!(display.0.run(|_| ()), Some(()));
        display.finish();
    }

    #[test]
    fn nobody_is_back_who_was_not_replaced() {
        let said = |held: &[usize], failed: &[usize]| {
            let (held, failed) = (held.to_vec(), failed.to_vec());
            account(false).hear(&Event::Decided { generation: 1, failed, held }).unwrap()
        };
        assert_eq!(said(&[0, 1, 2, 3], &[3]), "rank 3 back, generation 1 starts");
        assert_eq!(said(&[0, 1, 2], &[3]), "3 ranks without rank 3, generation 1 starts");
        assert_eq!(said(&[0], &[1, 2, 3]), "1 rank without ranks 1, 2 and 3, generation 1 starts");
        assert_eq!(said(&[0, 1], &[]), "links are renewed, generation 1 starts");
    }
}

/// The terminal, by way of the console: drawing on it waits for nobody.
#[derive(Debug)]
struct Screen(Console);

impl Screen {
    fn put(&self, text: impl AsRef<[u8]>) -> Result<()> {
        self.0.draw(text);
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
