//! The dashboard: what of a job a browser shows, and to whom. One page, and behind it a stream of events (HTML, server-sent events) that
//! tells how the job is some times a second, and what has happened. All of it is for those who know a token.

use std::net::TcpListener;
use std::time::Duration;

use serde::Serialize;

use super::chronicle::Chronicle;
use super::http::{self, Request};
use super::protocol::{HostStatus, Status};
use crate::seen::Seen;
use ft_comm::time::Time;
use ft_proto::wire::handshake::hex;

/// From one look to the next, how much longer it is for each rank, and how long it is at most.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_OF_RANK: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// What is to be shown at once is shown so soon after the last look.
const AT_ONCE: Duration = Duration::from_millis(30);
/// Entries that are told in one look.
const ENTRIES_MAX: usize = 1000;
/// What a token is called in an address.
const TOKEN: &str = "token";

/// The page: no file from the network.
const PAGE: &str = concat!(
    include_str!("board/head.html"),
    "<style>\n",
    include_str!("board/style.css"),
    "</style>\n",
    include_str!("board/body.html"),
    "<script>\n",
    include_str!("board/script.js"),
    "</script>\n"
);
/// It loads nothing from elsewhere, is kept nowhere, and tells nobody its address.
const PRECAUTIONS: &str = "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                           connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
                           Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
/// What a stream begins with. A browser that has lost it comes again after a second.
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                      X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\nretry: 1000\n\n";

/// See the module.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) door: TcpListener,
    token: String,
    chronicle: Chronicle,
    looked: Time,
    due: Time,
}

/// What a browser wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The page.
    Page,
    /// The stream: from the beginning, or from this entry on.
    Stream(Option<u64>),
    /// Nothing that there is for it, with this status.
    Nothing(&'static str),
}

impl Board {
    /// The dashboard behind a door, with a token that nobody can guess.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub(super) fn new(door: TcpListener) -> std::io::Result<Self> {
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(|error| std::io::Error::other(error.to_string()))?;
        let chronicle = Chronicle::default();
        Ok(Self { door, token: hex(&token), chronicle, looked: Time(0), due: Time(0) })
    }

    /// Where it is shown, token and all.
    pub(super) fn address(&self) -> Option<String> {
        let at = self.door.local_addr().ok()?;
        Some(format!("http://{at}/?{TOKEN}={}", self.token))
    }

    /// What a request comes to.
    pub(super) fn wish(&self, request: Request<'_>) -> Wish {
        if !request.asked(TOKEN).is_some_and(|token| is_same(token, self.token.as_bytes())) {
            return Wish::Nothing("403 Forbidden");
        }
        match request.path {
            b"/" => Wish::Page,
            b"/events" => Wish::Stream(request.last_event),
            _ => Wish::Nothing("404 Not Found"),
        }
    }

    /// Takes note of what has happened.
    pub(super) fn note(&mut self, seen: Seen<'_>, now: Time) {
        if self.chronicle.note(seen, now.seconds()) {
            self.due = self.due.min(self.looked.after(AT_ONCE));
        }
    }

    /// When who looks on is to be told more.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Somebody new looks on, or there is more to tell.
    pub(super) fn hurry(&mut self) {
        self.due = Time(0);
    }

    /// How the job is, as all who look on are told it now.
    pub(super) fn look(&mut self, now: Time, status: &Status, hosts: &[HostStatus]) -> String {
        let pause = PAUSE + PAUSE_OF_RANK * u32::try_from(status.ranks.len()).unwrap_or(u32::MAX);
        (self.looked, self.due) = (now, now.after(pause.min(PAUSE_MAX)));
        #[derive(Serialize)]
        struct State<'a> {
            status: &'a Status,
            hosts: &'a [HostStatus],
        }
        event("state", &State { status, hosts })
    }

    /// What the stream of somebody new begins with, and the number of the first entry that is told it.
    pub(super) fn greeting(&self, after: Option<u64>) -> (String, u64) {
        let value = self.chronicle.value().map(|series| event("series", series)).unwrap_or_default();
        (format!("{STREAM}{value}"), after.unwrap_or(0))
    }

    /// Entries from a number on, as many as are told at once, and the number of the next.
    pub(super) fn told(&mut self, from: u64) -> (String, u64) {
        let (entries, next) = self.chronicle.since(from, ENTRIES_MAX);
        if entries.is_empty() {
            return (String::new(), next);
        }
        let text = format!("id: {next}\n{}", event("log", &entries));
        if next < self.chronicle.end() {
            self.hurry();
        }
        (text, next)
    }

    /// The newest point of the value, as all are told it now.
    pub(super) fn newest(&self) -> String {
        self.chronicle.value().map(|series| event("value", &series.newest())).unwrap_or_default()
    }
}

/// The page.
pub(super) fn page() -> Vec<u8> {
    http::page("text/html; charset=utf-8", PRECAUTIONS, PAGE)
}

/// What is told at the end.
pub(super) fn end(code: i32, message: &str) -> String {
    #[derive(Serialize)]
    struct End<'a> {
        code: i32,
        message: &'a str,
    }
    event("end", &End { code, message })
}

/// An event of a stream. JSON has no ends of line in it.
fn event(name: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).expect("what is told has names for keys");
    format!("event: {name}\ndata: {data}\n\n")
}

/// Whether two texts are the same, in a time that does not depend on where they differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs =
        one.iter().zip(other).fold(0, |differs, (one, other)| std::hint::black_box(differs | (one ^ other)));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_as_wholes() {
        for (one, other, same) in [
            ("abc", "abc", true),
            ("abc", "abd", false),
            ("abc", "xbc", false),
            ("ab", "abc", false),
            ("abc", "", false),
        ] {
            assert_eq!(is_same(one.as_bytes(), other.as_bytes()), same, "{one} {other}");
        }
    }

    #[test]
    fn the_page_is_one_file() {
        // The name of SVG is fetched by nobody.
        let page = PAGE.replace("http://www.w3.org/2000/svg", "");
        for part in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(part), "it loads {part}");
        }
        assert!(PAGE.starts_with("<!doctype html>") && PAGE.len() < 64 << 10, "{}", PAGE.len());
    }

    #[test]
    fn events_are_one_line_each() {
        let end = end(3, "two\nlines\r\n");
        assert_eq!(end, "event: end\ndata: {\"code\":3,\"message\":\"two\\nlines\\r\\n\"}\n\n");
    }
}
