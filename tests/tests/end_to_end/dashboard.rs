//! `--dashboard`: what a job shows to browsers, as it goes over the wire and as one shows it.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::Running;
use crate::console::{LONG, Session, ends_well, fetched, interrupt};
use browser::Browser;

mod browser;

/// A job with a dashboard, and its whole address.
fn job(session: &Session, arguments: &str) -> (Running, String) {
    let job = session.job(&format!("--dashboard 0 {arguments}"));
    let address = shown_at(session, &job);
    (job, address)
}

/// The whole address of the dashboard of a job.
fn shown_at(session: &Session, job: &Running) -> String {
    let status = session.await_status(job, |status| status["state"] == "running");
    status["dashboard"].as_str().expect("it says where").to_owned()
}

/// Where to go, and what to ask there: the path and the token.
fn parts(address: &str) -> (SocketAddr, &str) {
    let (at, token) = address.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    (at.parse().unwrap(), token)
}

fn get(address: SocketAddr, target: &str) -> String {
    fetched(address, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

/// A stream of events, and the number behind the last entry that was heard.
struct Stream(BufReader<TcpStream>, u64);

impl Stream {
    fn open(address: &str, head: &str) -> Self {
        let (at, token) = parts(address);
        #[expect(clippy::disallowed_methods, reason = "a stranger does not come through the library")]
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request = format!("GET /events?token={token} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert_eq!(line, "HTTP/1.1 200 OK\r\n");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        Self(stream, 0)
    }

    /// The next event: its name, its data, and the number that it carries if it does. None at the end.
    fn next(&mut self) -> Option<(String, Value, Option<u64>)> {
        let (mut name, mut data, mut id) = (String::new(), Value::Null, None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("event", text)) => name = text.to_owned(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                Some(("id", text)) => id = Some(text.parse().unwrap()),
                Some(("retry", _)) => {}
                Some(other) => panic!("{other:?}"),
                None if name.is_empty() => {}
                None => return Some((name, data, id)),
            }
        }
    }

    /// Takes down all that happens until something of this kind has, which may be in `entries` already, as several things are told at once; gives that,
    /// and the number behind all that was heard.
    fn await_entry(&mut self, kind: &str, entries: &mut Vec<Value>) -> (Value, u64) {
        loop {
            if let Some(entry) = entries.iter().find(|entry| !entry[kind].is_null()) {
                return (entry.clone(), self.1);
            }
            let (name, data, id) = self.next().expect("the stream goes on");
            assert_ne!(name, "end", "the job ends before {kind} is told: {data}, after {entries:?}");
            if name == "log" {
                entries.extend_from_slice(data.as_array().unwrap());
                self.1 = id.expect("entries have numbers");
            }
        }
    }
}

#[test]
fn a_dashboard_is_for_those_who_know_its_token() {
    let session = Session::new();
    let mut job = session.ftrun(&format!("--dashboard 0 -q {LONG}")).start();
    job.await_text("dashboard at http://127.0.0.1:");
    let status = session.await_status(&job, |status| status["state"] == "running");
    let address = status["dashboard"].as_str().unwrap().to_owned();
    assert_eq!(job.printed(&address), 1);
    assert!(session.ask("status").expect(0).stdout.contains(&format!("\n  dashboard at {address}\n")));
    let (at, token) = parts(&address);
    assert!(token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    let wrong = token.replace(&token[..1], if token.starts_with('0') { "1" } else { "0" });
    for target in [
        "/",
        "/events",
        "/metrics",
        &format!("/?token={wrong}"),
        "/events?token=",
        &format!("/?token={token}0"),
        &format!("/?Token={token}"),
        &format!("/events?token={}", &token[..31]),
    ] {
        let answer = get(at, target);
        assert!(
            answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && !answer.contains("cg --poisson"),
            "{target}: {answer}"
        );
    }
    assert!(get(at, &format!("/metrics?token={token}")).starts_with("HTTP/1.1 404 "));
    assert!(fetched(at, &format!("POST /?token={token} HTTP/1.1\r\n\r\n")).starts_with("HTTP/1.1 405 "));
    assert!(fetched(at, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let page = get(at, &format!("/?token={token}"));
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"), "{head}");
    assert!(
        head.contains("default-src 'none'") && head.contains("no-referrer") && head.contains("no-store"),
        "{head}"
    );
    assert!(body.starts_with("<!doctype html>") && !body.contains(token));
    let taken = session.ftrun(&format!("--dashboard {at} {LONG}")).finish().expect(2);
    assert!(taken.stderr.contains(&format!("--dashboard {at}: ")), "{taken}");
    let unknown = session.ftrun(&format!("--dashboard localhost {LONG}")).finish().expect(2);
    assert!(unknown.stderr.contains("must be IP:PORT, NAME:PORT, or a port"), "{unknown}");
    interrupt(job);
}

#[test]
fn what_happens_is_told_as_it_happens() {
    let session = Session::new();
    let (job, address) = job(&session, LONG);
    let (mut stream, mut entries) = (Stream::open(&address, ""), vec![]);
    stream.await_entry("mark", &mut entries);
    let places: Vec<u64> = entries.iter().filter_map(|entry| entry["stands"]["rank"].as_u64()).collect();
    assert_eq!(places, [0, 1, 2, 3], "who comes late hears of the begin: {entries:?}");
    session.ask(&format!("kill {} 2", job.launcher())).expect(0);
    let (lost, _) = stream.await_entry("lost", &mut entries);
    assert_eq!((&lost["lost"]["rank"], &lost["lost"]["cause"]), (&2.into(), &"killed by signal 9".into()));
    let (resumed, number) = stream.await_entry("resumed", &mut entries);
    assert!(resumed["at"].as_f64() > lost["at"].as_f64(), "{resumed}");
    // What a rank does it says itself, so that may be told later than what became of it.
    let does = |entries: &[Value], what: &str| {
        entries.iter().any(|entry| entry["does"] == serde_json::json!({ "rank": 2, "what": what }))
    };
    while !(does(&entries, "computing") && does(&entries, "checkpoint")) {
        let (name, data, _) = stream.next().expect("the stream goes on");
        assert_ne!(name, "end", "the job ends before rank 2 has said what it does: {data}, {entries:?}");
        if name == "log" {
            entries.extend_from_slice(data.as_array().unwrap());
        }
    }
    // Whoever was away hears what it has missed, and no more.
    let (mut again, mut missed) = (Stream::open(&address, &format!("Last-Event-ID: {number}\r\n")), vec![]);
    again.await_entry("mark", &mut missed);
    assert!(
        missed.iter().all(|entry| entry["at"].as_f64() >= resumed["at"].as_f64() && entry["lost"].is_null()),
        "{missed:?}"
    );
    let value = loop {
        let (name, data, _) = stream.next().expect("the stream goes on");
        if name == "value" {
            break data;
        }
    };
    assert_eq!(value["name"], "relative residual");
    session.ask(&format!("stop {}", job.launcher())).expect(0);
    let mut last = Value::Null;
    let end = loop {
        match stream.next().expect("the end is told") {
            (name, data, _) if name == "end" => break data,
            (name, data, _) if name == "state" => last = data,
            _ => {}
        }
    };
    assert_eq!(end["code"], 143);
    assert!(end["message"].as_str().unwrap().contains("terminated (SIGTERM)"), "{end}");
    assert_eq!(stream.next(), None);
    assert_eq!(
        (&last["status"]["state"], &last["status"]["failures"]["recovered"]),
        (&"ending".into(), &1.into())
    );
    assert_eq!(last["hosts"][0]["host"], "local");
    job.finish().expect(143);
}

#[test]
fn onlookers_hold_up_nothing() {
    let session = Session::new();
    let job = session.at_work("--dashboard 0 --kill 2@step=40");
    let address = shown_at(&session, &job);
    let (at, token) = parts(&address);
    // One that reads, one that will not read before the end, and a crowd that says nothing.
    let (mut reader, mut paused) = (Stream::open(&address, ""), Stream::open(&address, ""));
    #[expect(clippy::disallowed_methods, reason = "a stranger does not come through the library")]
    let come = || TcpStream::connect(at).unwrap();
    let silent: Vec<TcpStream> = (0..100).map(|_| come()).collect();
    let half = come();
    (&half).write_all(b"GET /events?token=").unwrap();
    let mut long = come();
    let _ = long.write_all(&[b'x'; 1 << 16]);
    // There is room for eight that look on.
    let more: Vec<Stream> = (0..6).map(|_| Stream::open(&address, "")).collect();
    assert!(get(at, &format!("/events?token={token}")).starts_with("HTTP/1.1 503 "));
    assert!(get(at, &format!("/?token={token}")).starts_with("HTTP/1.1 200 "));
    assert_eq!(session.ask("status").expect(0).stderr, "");
    let (lost, _) = reader.await_entry("lost", &mut vec![]);
    assert_eq!(lost["lost"]["rank"], 2);
    session.await_status(&job, |status| status["failures"]["recovered"] == 1);
    ends_well(job, [0, 0, 1, 0]);
    for stream in [&mut reader, &mut paused] {
        let mut names = vec![];
        while let Some((name, data, _)) = stream.next() {
            names.push((name, data));
        }
        assert_eq!(
            names.last().unwrap(),
            &("end".to_owned(), serde_json::json!({ "code": 0, "message": "" }))
        );
    }
    drop((silent, half, more));
}

/// What a page says, once it says it.
fn await_shown(browser: &mut Browser, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    browser.await_value(what, |value| value.as_str().is_some_and(&is_wanted)).as_str().unwrap().to_owned()
}

#[test]
#[ignore = "needs Chromium: .ci/run runs it"]
fn a_browser_shows_ranks_and_a_failure_as_it_happens() {
    let Some(mut browser) = Browser::start() else {
        return eprintln!("skipped: no chromium in $PATH");
    };
    let session = Session::new();
    let (job, address) = job(&session, LONG);
    browser.go(&address);
    let text = |id: &str| format!("document.getElementById('{id}').innerText");
    await_shown(&mut browser, &text("up"), |text| text == "4 of 4");
    await_shown(&mut browser, &text("state"), |text| text == "running");
    await_shown(&mut browser, &text("command"), |text| text.starts_with("cg --poisson 32"));
    let rows = "[...document.querySelectorAll('.rows .row')].map(row => row.innerText.split(/\\s+/).join(' ')).join('|')";
    await_shown(&mut browser, rows, |text| {
        let rows: Vec<&str> = text.split('|').collect();
        rows.len() == 4 && (0..4).all(|rank| rows[rank].starts_with(&format!("{rank} ")))
    });
    // Something is drawn, also of the value.
    let drawn = "[...document.querySelectorAll('.rows canvas, #plot')].map(canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size > 8).join(' ')";
    await_shown(&mut browser, drawn, |text| text == "true true");
    await_shown(&mut browser, &text("checkpoints"), |text| text.parse::<u64>().is_ok_and(|count| count > 0));
    await_shown(&mut browser, &text("name"), |text| text == "Relative residual");

    session.ask(&format!("kill {} 2", job.launcher())).expect(0);
    await_shown(&mut browser, &text("news"), |text| {
        text.contains("Rank 2 is lost killed by signal 9") && text.contains("All ranks work again")
    });
    assert_eq!(browser.value(&text("failures")), "1");
    await_shown(&mut browser, rows, |text| text.split('|').nth(2).is_some_and(|row| row.contains(" 1× ")));
    // Both looks, both widths: nothing sticks out, and nothing goes wrong.
    for (width, is_dark) in [(1200, false), (1200, true), (400, false), (400, true)] {
        browser.look(width, is_dark);
        let ground = if is_dark { "rgb(16, 20, 24)" } else { "rgb(245, 246, 248)" };
        await_shown(&mut browser, "getComputedStyle(document.body).backgroundColor", |color| color == ground);
        assert_eq!(browser.value("document.documentElement.scrollWidth"), width, "at {width}");
    }

    session.ask(&format!("stop {}", job.launcher())).expect(0);
    await_shown(&mut browser, &text("state"), |text| text == "ended with status 143");
    let end = browser.value(&text("end"));
    assert!(
        end.as_str().unwrap().contains("survived 1 failure") && end.as_str().unwrap().contains("SIGTERM"),
        "{end}"
    );
    job.finish().expect(143);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A launcher that is killed says nothing more.
#[test]
#[ignore = "needs Chromium: .ci/run runs it"]
fn a_browser_says_that_a_job_is_gone() {
    let Some(mut browser) = Browser::start() else {
        return eprintln!("skipped: no chromium in $PATH");
    };
    let session = Session::new();
    let (job, address) = job(&session, LONG);
    browser.go(&address);
    let state = "document.getElementById('state').innerText";
    await_shown(&mut browser, state, |text| text == "running");
    job.signal(Signal::KILL);
    await_shown(&mut browser, state, |text| text == "no connection");
    job.finish_killed().expect(137);
    // What it has left is cleaned by whoever asks next.
    assert_eq!(session.ask("ps --json").expect(0).stdout, "[]\n");
}
