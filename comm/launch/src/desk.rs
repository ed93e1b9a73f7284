//! The desk of a job: where its user asks how it is, and has it do something. A Unix socket for `ftrun status` and the like, and an
//! address for its metrics if one is wanted.
//!
//! The launcher serves it in its one thread, so an answer is what is true at that moment. Nobody who comes can hold it up: no guest is
//! waited for, each is heard once in a turn, there is room for few, and whoever comes then takes the place of the one that has
//! been quiet for longest. What a guest says is a line of at most some kilobytes (`desk/guest.rs`), and it hears one answer at a time.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use ft_comm::time::Time;

mod folder;
mod guest;
mod http;
mod inquiry;
mod metrics;
pub(super) mod protocol;

use folder::Place;
pub use folder::{DeskError, jobs};
pub(super) use guest::Ask;
use guest::{Guest, Tongue};
pub use inquiry::{Inquiry, InquiryError};
use protocol::{Answer, Status};

/// How many guests there is room for.
const GUESTS_MAX: usize = 8;
/// How many may come in a turn: those have a chance to ask before others take their place.
const COME_MAX: usize = 4;
/// How long nobody is let in when the operating system could let nobody in, as it is short of files.
const REST: Duration = Duration::from_secs(1);

/// See the module. By default nobody comes to it.
#[derive(Debug, Default)]
pub struct Desk {
    command: String,
    place: Option<Place>,
    page: Option<TcpListener>,
    guests: Vec<Guest>,
    /// Number of the next guest.
    next: u64,
    rests_until: Option<Time>,
}

impl Desk {
    /// The desk of a job that runs `command`; nobody comes to it yet.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// From now on the user of this process finds it ([`jobs`]).
    ///
    /// # Errors
    /// There is no place for it. The job can do without.
    pub fn open(&mut self) -> Result<(), DeskError> {
        self.place = Some(Place::take()?);
        Ok(())
    }

    /// Shows metrics at an address to whoever comes; gives the address, also where its port was 0.
    ///
    /// # Errors
    /// The operating system does not let anybody listen there.
    #[expect(
        clippy::disallowed_methods,
        reason = "metrics are for strangers: nothing of the job is behind this door"
    )]
    pub fn show_metrics(&mut self, at: SocketAddr) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        self.page = Some(listener);
        Ok(address)
    }

    /// What the job runs.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Where metrics are shown.
    pub(super) fn metrics(&self) -> Option<SocketAddr> {
        self.page.as_ref().and_then(|page| page.local_addr().ok())
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        let place = self.place.as_ref().map(|place| place.listener.as_fd());
        let doors = place.into_iter().chain(self.page.as_ref().map(AsFd::as_fd));
        let doors = doors.filter(|_| self.rests_until.is_none());
        let doors = doors.map(|door| PollFd::from_borrowed_fd(door, PollFlags::IN));
        doors.chain(self.guests.iter().filter_map(Guest::poll))
    }

    /// When [`Desk::serve`] is due.
    pub(super) fn poll_timeout(&self) -> Time {
        // One that has nothing to wait for is to be dealt with.
        let due =
            |guest: &Guest| if guest.is_pending() || guest.poll().is_none() { Time(0) } else { guest.until };
        self.guests.iter().map(due).chain(self.rests_until).fold(Time(u64::MAX), Time::min)
    }

    /// What is asked, and by which guest: each is to be answered now.
    pub(super) fn serve(&mut self, now: Time) -> Vec<(u64, Ask)> {
        self.let_in(now);
        let mut asked = Vec::new();
        self.guests.retain_mut(|guest| {
            let stays = guest.turn(now);
            asked.extend(guest.asks().filter(|_| stays).map(|ask| (guest.number, ask)));
            stays
        });
        asked
    }

    fn let_in(&mut self, now: Time) {
        if self.rests_until.is_some_and(|until| now < until) {
            return;
        }
        self.rests_until = None;
        for _ in 0..COME_MAX {
            let (socket, tongue) = match self.next_guest() {
                Ok(Some(guest)) => guest,
                Ok(None) => return,
                Err(_) => return self.rests_until = Some(now.after(REST)),
            };
            if self.guests.len() == GUESTS_MAX {
                let quiet = (0..GUESTS_MAX).min_by_key(|at| self.guests[*at].until);
                quiet.into_iter().for_each(|at| _ = self.guests.remove(at));
            }
            self.guests.push(Guest::new(self.next, socket, tongue, now));
            self.next += 1;
        }
    }

    /// Somebody who waits at one of the doors.
    fn next_guest(&self) -> std::io::Result<Option<(OwnedFd, Tongue)>> {
        if let Some(place) = &self.place {
            while let Some((stream, _)) = unless_blocked(place.listener.accept())? {
                stream.set_nonblocking(true)?;
                // The folder keeps others out already.
                if rustix::net::sockopt::socket_peercred(&stream)
                    .is_ok_and(|peer| peer.uid == rustix::process::geteuid())
                {
                    return Ok(Some((stream.into(), Tongue::Lines)));
                }
            }
        }
        let Some(page) = &self.page else { return Ok(None) };
        let Some((stream, _)) = unless_blocked(page.accept())? else { return Ok(None) };
        stream.set_nonblocking(true)?;
        Ok(Some((stream.into(), Tongue::Http)))
    }

    fn guest(&mut self, number: u64) -> Option<&mut Guest> {
        self.guests.iter_mut().find(|guest| guest.number == number)
    }

    /// Answers what a guest has asked.
    pub(super) fn answer(&mut self, now: Time, guest: u64, answer: Answer) {
        if let Some(guest) = self.guest(guest) {
            guest.say(answer);
            guest.flush(now);
        }
    }

    /// Shows a guest the metrics that it has asked for.
    pub(super) fn show(&mut self, now: Time, guest: u64, status: &Status) {
        if let Some(guest) = self.guest(guest) {
            guest.show(&metrics::text(status));
            guest.flush(now);
        }
    }

    /// The job is over. Who is there is told so, as far as it takes that at once.
    pub(super) fn close(&mut self, now: Time, code: i32, message: &str) {
        for mut guest in self.guests.drain(..) {
            guest.say(Answer::Ended { code, message: message.to_owned() });
            guest.flush(now);
        }
        (self.place, self.page) = (None, None);
    }
}

/// None if nobody is there.
fn unless_blocked<T>(result: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        // Who has gone again is nobody.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::ConnectionAborted | ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
