//! How a job ends: all ranks are done, then their processes exit, and the worst status is that of the job. Or at once, everywhere,
//! with one cause.

use std::time::Duration;

use super::chairs::{Chair, Phase};
use super::roster::Roster;
use super::{Effect, Event, Exit};
use crate::error::failure_status;
use crate::rank::Rank;
use crate::time::Time;
use crate::wire::control::News;

/// How far the end of a job is, and the status that it will have.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// All ranks are done.
    pub(super) is_finished: bool,
    /// Nothing follows.
    pub(super) is_over: bool,
    code: i32,
    text: String,
}

impl Ending {
    /// A process has exited when all were done. A program's own status speaks for itself. Who is killed then has done all; who
    /// crashes has not.
    fn exited(&mut self, origin: Rank, exit: Exit) {
        let (code, text) = match exit {
            Exit::Status(code) => (code, String::new()),
            Exit::Signal(signal) => (
                if is_crash(signal) { 128 + signal } else { 0 },
                format!("rank {origin} was killed by signal {signal} after all ranks were done"),
            ),
        };
        if code > self.code || self.text.is_empty() && code == self.code {
            (self.code, self.text) = (code, text);
        }
    }
}

impl Roster {
    /// Records that all ranks are done, if they are.
    pub(super) fn finish(&mut self) {
        if self.ending.is_finished {
            return;
        }
        let Some(outputs) = self.chairs.outputs() else { return };
        self.ending.is_finished = true;
        self.out.record(Event::Finished { outputs });
        self.out.broadcast(self.chairs.listening(), &News::Finalized);
    }

    /// A process has exited, and all ranks are done.
    pub(super) fn done_and_gone(&mut self, rank: Rank, exit: Exit) {
        self.chairs[rank].phase = Phase::Gone;
        self.ending.exited(self.chairs[rank].origin, exit);
        self.end_when_all_are_gone();
    }

    /// All are done, but the end of this process cannot be seen behind a cut link: after its lease it is past.
    pub(super) fn let_go(&mut self, now: Time, rank: Rank, lease: Duration) {
        let chair = &mut self.chairs[rank];
        // A link that was closed in order says that the exit is still to be seen.
        if !chair.connected || chair.phase == Phase::Gone {
            return;
        }
        if now.since(*chair.silent.get_or_insert(now)) > lease {
            chair.phase = Phase::Gone;
            self.put_to_death(now, rank);
            self.end_when_all_are_gone();
        }
    }

    pub(super) fn end_when_all_are_gone(&mut self) {
        if self.chairs.held().all(|chair| chair.phase == Phase::Gone) {
            let (code, text) = (self.ending.code, std::mem::take(&mut self.ending.text));
            self.end(code, text);
        } else if !self.ending.is_finished
            && self.chairs.iter().any(|chair| matches!(chair.phase, Phase::Joined(_)))
        {
            let gone = self.chairs.iter().position(|chair| chair.phase == Phase::Gone).unwrap_or(0);
            self.end(1, format!("rank {gone} exited without joining the job while others joined it"));
        }
    }

    /// A rank ends the job everywhere. Whatever status it gives, that is a failure.
    pub(super) fn aborted(&mut self, rank: Rank, code: i32, message: String) {
        let text = match message.is_empty() {
            true => format!("rank {} aborted the job with status {code}", self.chairs[rank].origin),
            false => message,
        };
        self.end(failure_status(code), text);
    }

    /// Ends the job everywhere.
    pub(super) fn end(&mut self, code: i32, message: String) {
        if self.ending.is_over {
            return;
        }
        self.ending.is_over = true;
        // Replacements that have not connected yet would find nobody.
        let late =
            |chair: &&Chair| chair.incarnation > 0 && !chair.connected && chair.phase == Phase::Starting;
        let late = self.chairs.iter().filter(late).map(|chair| chair.peer);
        late.chain(self.pool.starting()).for_each(|peer| self.out.kill(peer));
        let end = News::Ended { code, message: message.clone() };
        self.out.broadcast(self.pool.listening().chain(self.chairs.listening()), &end);
        self.out.push(Effect::End { code, message });
    }
}

/// Whether a process gets this signal for something that it does wrong itself: those whose default action dumps its memory
/// (signal(7)).
fn is_crash(signal: i32) -> bool {
    matches!(signal, 3..=8 | 11 | 24 | 25 | 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(exits: &[Exit]) -> (i32, String) {
        let mut ending = Ending::default();
        exits.iter().enumerate().for_each(|(rank, exit)| ending.exited(rank, *exit));
        (ending.code, ending.text)
    }

    #[test]
    fn the_worst_status_is_that_of_the_job() {
        let killed = |rank| format!("rank {rank} was killed by signal 9 after all ranks were done");
        assert_eq!(status(&[Exit::Status(0), Exit::Status(0)]), (0, String::new()));
        assert_eq!(status(&[Exit::Status(2), Exit::Status(7), Exit::Status(3)]), (7, String::new()));
        // Who was killed first is named, but no status counts less for it.
        assert_eq!(status(&[Exit::Status(0), Exit::Signal(9), Exit::Signal(9)]), (0, killed(1)));
        assert_eq!(status(&[Exit::Signal(9), Exit::Status(1)]), (1, String::new()));
        let (code, text) = status(&[Exit::Status(4), Exit::Signal(11)]);
        assert!(code == 139 && text.contains("rank 1 was killed by signal 11"), "{text}");
    }
}
