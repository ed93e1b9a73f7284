//! Somebody at the desk: a connection, what it has asked and what it has not taken yet. Nothing here waits for it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::board::{Board, Wish};
use super::http;
use super::protocol::{self, Answer, Command};
use ft_comm::time::Time;

/// Longest request in bytes.
const REQUEST_MAX: usize = 4096;
/// How long somebody may stand there without asking anything, or without taking any of what was said.
const PATIENCE: Duration = Duration::from_secs(5);

/// What somebody at the desk wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// What the protocol has words for.
    Command(Command),
    /// The page with the metrics.
    Metrics,
    /// The page of the dashboard.
    Board,
    /// To look on: from the beginning, or from this entry of the chronicle on.
    Stream(Option<u64>),
}

/// Where the metrics are.
const METRICS: &[u8] = b"/metrics";
/// What a browser hears that was led here under the name of another host.
const UNKNOWN_HOST: &str = "this host is not known by the name in the Host header: ask for its IP address, for localhost, or for the \
                            NAME that --metrics NAME:PORT or --dashboard NAME:PORT has";
/// The text format of Prometheus.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How a guest speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    /// The lines of the protocol.
    Lines,
    /// HTTP, at the door of the metrics.
    Metrics,
    /// HTTP, at the door of the dashboard.
    Board,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) number: u64,
    socket: OwnedFd,
    tongue: Tongue,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// When patience with it ends, unless it looks on.
    pub(super) until: Time,
    /// It looks on, and this is the next entry of the chronicle that it is told.
    follows: Option<u64>,
    /// It says nothing more, or is not listened to any more: it goes when it has taken what was said.
    leaves: bool,
}

impl Guest {
    /// Somebody who has just come; the socket does not block.
    pub(super) fn new(number: u64, socket: OwnedFd, tongue: Tongue, now: Time) -> Self {
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        let (follows, leaves) = (None, false);
        Self { number, socket, tongue, incoming, outgoing, until: now.after(PATIENCE), follows, leaves }
    }

    /// What to wait for: somebody who does not take what was said is not listened to.
    pub(super) fn poll(&self) -> Option<PollFd<'_>> {
        let flags = if self.outgoing.is_empty() { PollFlags::IN } else { PollFlags::OUT };
        let waits = !self.outgoing.is_empty() || !self.leaves;
        waits.then(|| PollFd::new(&self.socket, flags))
    }

    /// Hears what there is to hear, and hands over what is taken; false if the guest is gone or has tried our patience.
    pub(super) fn turn(&mut self, now: Time) -> bool {
        let there = self.flush(now) && self.receive();
        there
            && now < self.patience_ends()
            && (self.is_pending() || !self.outgoing.is_empty() || !self.leaves)
    }

    /// When patience with it ends. Who looks on and has taken all that it was told is not to be blamed.
    pub(super) fn patience_ends(&self) -> Time {
        if self.next_entry().is_some() { Time(u64::MAX) } else { self.until }
    }

    /// Hands over what is taken; false if the guest is gone.
    pub(super) fn flush(&mut self, now: Time) -> bool {
        while !self.outgoing.is_empty() {
            match rustix::net::send(&self.socket, &self.outgoing, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.outgoing.drain(..count);
                    self.until = now.after(PATIENCE);
                }
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// False if the guest is gone.
    fn receive(&mut self) -> bool {
        if !self.outgoing.is_empty() || self.leaves || self.incoming.len() > REQUEST_MAX {
            return true;
        }
        let mut buffer = [0; REQUEST_MAX];
        match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => self.leaves = true,
            Ok((_, count)) => self.incoming.extend_from_slice(&buffer[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return false,
        }
        if self.follows.is_some() {
            self.incoming.clear();
        }
        true
    }

    /// Whether it has asked something that was not answered yet, and takes answers.
    pub(super) fn is_pending(&self) -> bool {
        self.outgoing.is_empty() && (self.end_of_request().is_some() || self.incoming.len() > REQUEST_MAX)
    }

    fn end_of_request(&self) -> Option<usize> {
        match self.tongue {
            Tongue::Lines => self.incoming.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Tongue::Metrics | Tongue::Board => http::end_of_head(&self.incoming),
        }
    }

    /// What it asks, which is to be answered at once. What makes no sense is answered here.
    ///
    /// `names` are those by which this host is known.
    pub(super) fn asks(&mut self, board: Option<&Board>, names: &[String]) -> Option<Ask> {
        if !self.is_pending() {
            return None;
        }
        let Some(end) = self.end_of_request() else {
            self.leaves = true;
            self.incoming.clear();
            let why = format!("a request has at most {REQUEST_MAX} bytes");
            match self.tongue {
                Tongue::Lines => self.say(Answer::Refused(why)),
                Tongue::Metrics | Tongue::Board => self.refuse("431 Request Header Fields Too Large", &why),
            }
            return None;
        };
        let request: Vec<u8> = self.incoming.drain(..end).collect();
        if self.tongue == Tongue::Lines {
            let command = protocol::read_request(&request);
            return command.map_err(|why| self.say(Answer::Refused(why))).map(Ask::Command).ok();
        }
        self.leaves = true;
        let request = http::read(&request).map_err(|status| self.refuse(status, "this is not understood"));
        let request = request.ok()?;
        if !request.is_for(names) {
            self.refuse("403 Forbidden", UNKNOWN_HOST);
            return None;
        }
        match board.filter(|_| self.tongue == Tongue::Board).map(|board| board.wish(request)) {
            None if request.path == METRICS => Some(Ask::Metrics),
            None => {
                self.refuse("404 Not Found", "there is /metrics here");
                None
            }
            Some(Wish::Page) => Some(Ask::Board),
            Some(Wish::Stream(from)) => Some(Ask::Stream(from)),
            Some(Wish::Nothing(status)) => {
                self.refuse(status, "the address is the one that ftrun has said, with its token");
                None
            }
        }
    }

    /// Refuses a request of HTTP.
    pub(super) fn refuse(&mut self, status: &str, why: &str) {
        self.outgoing = http::nothing(status, why);
    }

    /// Says something, whether it was asked or not.
    pub(super) fn say(&mut self, answer: Answer) {
        if self.tongue == Tongue::Lines {
            self.outgoing.extend(protocol::reply(answer).into_bytes());
        }
    }

    /// Hands out the metrics.
    pub(super) fn show(&mut self, text: &str) {
        self.outgoing = http::page(METRICS_TYPE, "", text);
    }

    /// Hands out a page.
    pub(super) fn hand_out(&mut self, page: Vec<u8>) {
        self.outgoing = page;
    }

    /// From now on it looks on, and stays.
    pub(super) fn follow(&mut self, greeting: String, from: u64) {
        self.incoming.clear();
        self.outgoing = greeting.into_bytes();
        (self.follows, self.leaves) = (Some(from), false);
    }

    /// Whether it looks on.
    pub(super) fn looks_on(&self) -> bool {
        self.follows.is_some()
    }

    /// The next entry that it is told, if it looks on and has taken all that it was told before.
    pub(super) fn next_entry(&self) -> Option<u64> {
        self.follows.filter(|_| self.outgoing.is_empty())
    }

    /// How many bytes wait for it to take them.
    #[cfg(test)]
    pub(super) fn untaken(&self) -> usize {
        self.outgoing.len()
    }

    /// Tells it more; `next` is the entry after that.
    pub(super) fn tell(&mut self, now: Time, text: &str, next: u64) {
        self.until = now.after(PATIENCE);
        self.outgoing.extend_from_slice(text.as_bytes());
        self.follows = Some(next);
    }
}
