//! A measurement under way: how far it is, on a terminal, and whether somebody wants it to end.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ft_tools::recovery::Progress;
use indicatif::ProgressBar;

use crate::progress::{is_watched, style};

/// A measurement as its user watches it.
pub(super) struct Watch<'a> {
    /// If there is a terminal.
    bar: Option<ProgressBar>,
    /// The signal that has come; 0: none.
    signal: &'a AtomicUsize,
}

impl<'a> Watch<'a> {
    pub(super) fn new(signal: &'a AtomicUsize) -> Self {
        let template = "{pos} of {len} [{bar:30}] {elapsed}, {msg}";
        let bar = is_watched(false).then(|| ProgressBar::new(1).with_style(style(template)));
        Self { bar, signal }
    }

    /// Shows how far it is; breaks it off if a signal has come.
    pub(super) fn step(&self, show: impl FnOnce(&ProgressBar)) -> ControlFlow<()> {
        if let Some(bar) = &self.bar {
            show(bar);
        }
        match self.signal.load(Ordering::Relaxed) {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// It is over: the terminal is as it was.
    pub(super) fn end(self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Shows on a terminal how far a measurement is.
pub(crate) fn show(bar: &ProgressBar, progress: &Progress) {
    let left = progress.left.as_secs();
    let left = if left < 90 { format!("{left} s") } else { format!("{} min", (left + 30) / 60) };
    bar.set_length(progress.total as u64);
    bar.set_position(progress.done as u64);
    bar.set_message(format!("about {left} left: {}", progress.next));
    bar.enable_steady_tick(Duration::from_secs(1));
}
