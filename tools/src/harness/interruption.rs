//! The frame of a command that measures: whatever ends it, nothing is left behind.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Does the work of a command, which asks again and again whether a signal wants it to end, and says under its name what
/// has gone wrong.
pub fn interruptible(name: &str, work: impl FnOnce(&dyn Fn() -> bool) -> Result<(), String>) -> ExitCode {
    let signal = Arc::new(AtomicUsize::new(0));
    for number in [SIGHUP, SIGINT, SIGTERM] {
        if let Err(error) = signal_hook::flag::register_usize(number, signal.clone(), number as usize) {
            eprintln!("{name}: signal {number} cannot be handled: {error}");
            return ExitCode::FAILURE;
        }
    }
    match work(&|| signal.load(Ordering::Relaxed) != 0) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{name}: {complaint}");
            let status = match signal.load(Ordering::Relaxed) {
                0 => 1,
                signal => 128 + signal,
            };
            ExitCode::from(u8::try_from(status).unwrap_or(1))
        }
    }
}
