//! Somebody at the desk: a connection, what it has asked and what it has not taken yet. Nothing here waits for it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::http::{self, Wish};
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
    Page,
}

/// How a guest speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tongue {
    /// The lines of the protocol.
    Lines,
    /// HTTP.
    Http,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) number: u64,
    socket: OwnedFd,
    tongue: Tongue,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// When patience with it ends.
    pub(super) until: Time,
    /// It says nothing more, or is not listened to any more: it goes when it has taken what was said.
    leaves: bool,
}

impl Guest {
    /// Somebody who has just come; the socket does not block.
    pub(super) fn new(number: u64, socket: OwnedFd, tongue: Tongue, now: Time) -> Self {
        let (incoming, outgoing) = (Vec::new(), Vec::new());
        Self { number, socket, tongue, incoming, outgoing, until: now.after(PATIENCE), leaves: false }
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
        there && now < self.until && (self.is_pending() || !self.outgoing.is_empty() || !self.leaves)
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
        true
    }

    /// Whether it has asked something that was not answered yet, and takes answers.
    pub(super) fn is_pending(&self) -> bool {
        self.outgoing.is_empty() && (self.end_of_request().is_some() || self.incoming.len() > REQUEST_MAX)
    }

    fn end_of_request(&self) -> Option<usize> {
        match self.tongue {
            Tongue::Lines => self.incoming.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Tongue::Http => http::end_of_head(&self.incoming),
        }
    }

    /// What it asks, which is to be answered at once. What makes no sense is answered here.
    pub(super) fn asks(&mut self) -> Option<Ask> {
        if !self.is_pending() {
            return None;
        }
        let Some(end) = self.end_of_request() else {
            self.leaves = true;
            self.incoming.clear();
            self.refuse(
                format!("a request has at most {REQUEST_MAX} bytes"),
                "431 Request Header Fields Too Large",
            );
            return None;
        };
        let request: Vec<u8> = self.incoming.drain(..end).collect();
        match self.tongue {
            Tongue::Lines => match protocol::read_request(&request) {
                Ok(command) => return Some(Ask::Command(command)),
                Err(why) => self.refuse(why, ""),
            },
            Tongue::Http => {
                self.leaves = true;
                match http::read(&request) {
                    Wish::Page => return Some(Ask::Page),
                    Wish::Nothing(status) => self.refuse(String::new(), status),
                }
            }
        }
        None
    }

    fn refuse(&mut self, why: String, status: &str) {
        match self.tongue {
            Tongue::Lines => self.say(Answer::Refused(why)),
            Tongue::Http => self.outgoing = http::nothing(status),
        }
    }

    /// Says something, whether it was asked or not.
    pub(super) fn say(&mut self, answer: Answer) {
        if self.tongue == Tongue::Lines {
            self.outgoing.extend(protocol::reply(answer).into_bytes());
        }
    }

    /// Hands out the page that was asked for.
    pub(super) fn show(&mut self, text: &str) {
        self.outgoing = http::page(text);
    }
}
