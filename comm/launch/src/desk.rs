//! The desk of a job: where its user asks how it is, and has it do something. A Unix socket for `ftrun status` and the like, an
//! address for its metrics if one is wanted, and one for browsers (`desk/board.rs`).
//!
//! The launcher serves it in its one thread, so an answer is what is true at that moment. Nobody who comes can hold it up: no guest is
//! waited for, each is heard once in a turn, there is room for few, and whoever comes then takes the place of the one that has
//! been quiet for longest. What a guest says is a line of at most some kilobytes (`desk/guest.rs`), and it hears one answer at a time.
//! Who looks on is told the next thing when it has taken the last, and has to leave when it takes nothing for long.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use ft_comm::time::Time;

mod board;
mod chronicle;
mod folder;
mod guest;
mod http;
mod inquiry;
mod metrics;
pub(super) mod protocol;

use board::Board;
use folder::Place;
pub use folder::{DeskError, jobs};
pub(super) use guest::Ask;
use guest::{Guest, Tongue};
pub use inquiry::{Inquiry, InquiryError};
use protocol::{Answer, HostStatus, Status};

use super::seen::Seen;

/// How many guests there is room for, besides those who look on.
const GUESTS_MAX: usize = 8;
/// How many may look on.
const ONLOOKERS_MAX: usize = 8;
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
    board: Option<Board>,
    /// What browsers may call this host.
    names: Vec<String>,
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

    /// Shows metrics at an address, which may have a `name`, to whoever comes; gives the address,
    /// also where its port was 0.
    ///
    /// # Errors
    /// The operating system does not let anybody listen there.
    pub fn show_metrics(&mut self, at: SocketAddr, name: Option<&str>) -> std::io::Result<SocketAddr> {
        let listener = listen(at)?;
        self.is_known_as(name);
        let address = listener.local_addr()?;
        self.page = Some(listener);
        Ok(address)
    }

    /// Shows a dashboard at an address, which may have a `name`, to browsers that have its token;
    /// gives the whole of the address.
    ///
    /// # Errors
    /// The operating system does not let anybody listen there, or has no random numbers.
    pub fn show_dashboard(&mut self, at: SocketAddr, name: Option<&str>) -> std::io::Result<String> {
        let listener = listen(at)?;
        self.is_known_as(name);
        let board = self.board.insert(Board::new(listener)?);
        Ok(board.address().unwrap_or_default())
    }

    /// Browsers may call this host by its own name and by this one.
    fn is_known_as(&mut self, name: Option<&str>) {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let own = Some(own.trim()).filter(|own| !own.is_empty());
        self.names.extend(own.into_iter().chain(name).map(str::to_owned));
    }

    /// What the job runs.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Where metrics are shown.
    pub(super) fn metrics(&self) -> Option<SocketAddr> {
        self.page.as_ref().and_then(|page| page.local_addr().ok())
    }

    /// Where the dashboard is, with its token.
    pub(super) fn dashboard(&self) -> Option<String> {
        self.board.as_ref()?.address()
    }

    /// What to wait for.
    pub(super) fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        let place = self.place.as_ref().map(|place| place.listener.as_fd());
        let board = self.board.as_ref().map(|board| board.door.as_fd());
        let doors = place.into_iter().chain(self.page.as_ref().map(AsFd::as_fd)).chain(board);
        let doors = doors.filter(|_| self.rests_until.is_none());
        let doors = doors.map(|door| PollFd::from_borrowed_fd(door, PollFlags::IN));
        doors.chain(self.guests.iter().filter_map(Guest::poll))
    }

    /// When [`Desk::serve`] is due.
    pub(super) fn poll_timeout(&self) -> Time {
        // One that has nothing to wait for is to be dealt with.
        let due = |guest: &Guest| {
            if guest.is_pending() || guest.poll().is_none() { Time(0) } else { guest.patience_ends() }
        };
        let next_look = self.board.as_ref().filter(|_| self.has_onlooker()).map(Board::due);
        let rest = self.rests_until.into_iter().chain(next_look);
        self.guests.iter().map(due).chain(rest).fold(Time(u64::MAX), Time::min)
    }

    /// What is asked, and by which guest: each is to be answered now.
    pub(super) fn serve(&mut self, now: Time) -> Vec<(u64, Ask)> {
        self.let_in(now);
        let mut onlookers = self.guests.iter().filter(|guest| guest.looks_on()).count();
        let mut asked = Vec::new();
        self.guests.retain_mut(|guest| {
            let stays = guest.turn(now);
            match (guest.asks(self.board.as_ref(), &self.names).filter(|_| stays), &mut self.board) {
                (Some(Ask::Board), _) => guest.hand_out(board::page()),
                (Some(Ask::Stream(_)), _) if onlookers == ONLOOKERS_MAX => {
                    guest.refuse("503 Service Unavailable", "enough browsers look on already");
                }
                (Some(Ask::Stream(from)), Some(board)) => {
                    onlookers += 1;
                    let (greeting, from) = board.greeting(from);
                    guest.follow(greeting, from);
                    board.hurry();
                }
                (ask, _) => {
                    asked.extend(ask.map(|ask| (guest.number, ask)));
                    return stays;
                }
            }
            guest.flush(now)
        });
        asked
    }

    /// Whether somebody looks on.
    pub(super) fn has_onlooker(&self) -> bool {
        self.guests.iter().any(Guest::looks_on)
    }

    /// Whether those who look on are to be told how the job is.
    pub(super) fn is_to_tell(&self, now: Time) -> bool {
        self.has_onlooker() && self.board.as_ref().is_some_and(|board| board.due() <= now)
    }

    /// Something has happened.
    pub(super) fn note(&mut self, seen: Seen<'_>, now: Time) {
        self.board.iter_mut().for_each(|board| board.note(seen, now));
    }

    /// Tells those who look on how the job is, and what has happened since they were last told.
    pub(super) fn tell(&mut self, now: Time, status: &Status, hosts: &[HostStatus]) {
        let Some(board) = &mut self.board else { return };
        let (state, value) = (board.look(now, status, hosts), board.newest());
        self.guests.retain_mut(|guest| {
            let Some(from) = guest.next_entry() else { return true };
            let (log, next) = board.told(from);
            guest.tell(now, &format!("{log}{value}{state}"), next);
            guest.flush(now)
        });
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
            // Who looks on has shown a token, and stays.
            let asks = self.guests.iter().enumerate().filter(|(_, guest)| !guest.looks_on());
            let asks: Vec<(Time, usize)> = asks.map(|(at, guest)| (guest.until, at)).collect();
            if let (GUESTS_MAX.., Some((_, quiet))) = (asks.len(), asks.iter().min()) {
                self.guests.remove(*quiet);
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
        let page = self.page.as_ref().map(|page| (page, Tongue::Metrics));
        let board = self.board.as_ref().map(|board| (&board.door, Tongue::Board));
        for (door, tongue) in page.into_iter().chain(board) {
            if let Some((stream, _)) = unless_blocked(door.accept())? {
                stream.set_nonblocking(true)?;
                return Ok(Some((stream.into(), tongue)));
            }
        }
        Ok(None)
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

    /// The job is over. Who is there is told so, as far as it takes that at once, and who looks on is told first how it was.
    pub(super) fn close(
        &mut self,
        now: Time,
        code: i32,
        message: &str,
        last: Option<(Status, Vec<HostStatus>)>,
    ) {
        if let Some((status, hosts)) = last {
            self.tell(now, &status, &hosts);
        }
        for mut guest in self.guests.drain(..) {
            if let (Some(from), Some(board)) = (guest.next_entry(), &mut self.board) {
                let (log, next) = board.told(from);
                guest.tell(now, &format!("{log}{}", board::end(code, message)), next);
            }
            guest.say(Answer::Ended { code, message: message.to_owned() });
            guest.flush(now);
        }
        (self.place, self.page, self.board) = (None, None, None);
    }
}

/// Listens at an address without waiting for anybody.
#[expect(
    clippy::disallowed_methods,
    reason = "pages are for strangers: nothing of the job is behind these doors"
)]
fn listen(at: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
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
