//! Parts of the launcher that a job can do without, such as its display and its dashboard: a defect
//! there must not end the job.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::console::Console;

/// Runs `work`; a panic in it ends here.
///
/// # Errors
/// It has panicked, with this text. What it used may be in any state, and should not be used again.
pub fn caught<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        // Dropping what was thrown may panic again.
        std::mem::forget(panic);
        text.unwrap_or_else(|| "no reason given".into())
    })
}

/// A part of the launcher that a job can do without. After its first panic it is off.
#[derive(Debug)]
pub struct Optional<T> {
    /// None when it is off.
    part: Option<T>,
    name: &'static str,
    console: Console,
}

impl<T> Optional<T> {
    /// A part that people know by this name.
    pub fn new(name: &'static str, console: &Console, part: T) -> Self {
        Self { part: Some(part), name, console: console.clone() }
    }

    /// Has the part do something, unless it is off. If it panics, a line on the console says so,
    /// and it is off from then on.
    pub fn run<R>(&mut self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut part = self.part.take()?;
        match caught(|| work(&mut part)) {
            Ok(result) => {
                self.part = Some(part);
                Some(result)
            }
            Err(why) => {
                let name = self.name;
                self.console.say(format_args!(
                    "ftrun: {name} failed ({why}) and is off from now on, and the job continues; this is a defect of ftrun"
                ));
                // Its destructor may panic as well.
                std::mem::forget(part);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_that_has_panicked_is_off() {
        let console = Console::new().unwrap();
        let mut part = Optional::new("the test of a panic", &console, 0);
        let add = |part: &mut Optional<i32>, more: i32| {
            part.run(|sum| {
                *sum += more;
                assert!(more < 5, "more than 4");
                *sum
            })
        };
        assert_eq!([add(&mut part, 1), add(&mut part, 2)], [Some(1), Some(3)]);
        assert_eq!([add(&mut part, 5), add(&mut part, 1)], [None, None]);
        assert_eq!(caught(|| panic!("a text")).map(|()| 0), Err("a text".to_owned()));
        assert_eq!(caught(|| 7), Ok(7));
    }
}
