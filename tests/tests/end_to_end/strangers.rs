//! Strangers on the ports and Unix sockets of the launcher and of the ranks: bytes without sense, connections that say nothing,
//! and more of them than a process may have open files.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use crate::common::{Outcome, PATIENT, Report, Run, Running, built};
use crate::hosts::{LIKE_SSH, over};
use crate::sockets::{Door, sockets};

trait Connection: Read + Write {
    /// Nothing more is written.
    fn close(&self);
}

impl Connection for TcpStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Connection for UnixStream {
    fn close(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

fn connect(door: &Door) -> Option<Box<dyn Connection>> {
    let limit = Some(Duration::from_secs(10));
    match door {
        Door::Tcp(address) => {
            #[expect(clippy::disallowed_methods, reason = "a stranger does not come through the library")]
            let stream = TcpStream::connect(address).ok()?;
            stream.set_read_timeout(limit).unwrap();
            Some(Box::new(stream))
        }
        Door::Unix(name) => {
            let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).ok()?;
            stream.set_read_timeout(limit).unwrap();
            Some(Box::new(stream))
        }
    }
}

/// Sends `bytes`, closes its side, and waits until the other has had enough.
fn pester(door: &Door, bytes: &[u8]) {
    let Some(mut stream) = connect(door) else { return };
    let _ = stream.write_all(bytes);
    stream.close();
    let _ = stream.read_to_end(&mut Vec::new());
}

const JOB: &str = "cg --poisson 64";

/// On one host, where all listen at Unix sockets; on two, where they listen for TCP too.
const HOSTS: [&str; 2] = ["", "--hosts 127.0.0.2:2,127.0.0.3:2"];

/// A job that works; the folder has to live as long.
fn start(hosts: &str, options: &str) -> (TempDir, Running) {
    let (folder, run) = over(LIKE_SSH, hosts);
    let run = if hosts.is_empty() { Run::ftrun("") } else { run };
    let options = format!("-n 4 -v --json {PATIENT} {options} {JOB}");
    let mut running = options.split_whitespace().fold(run, Run::arg).usual_transport().start();
    running.await_text("all ranks have joined");
    (folder, running)
}

fn undisturbed() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| start("", "").1.finish().expect(0).report())
}

/// It has lost one rank, as it was to, and has the right answer.
fn check(outcome: &Outcome) {
    let report = outcome.report();
    assert_eq!(report.answer(), undisturbed().answer(), "{outcome}");
    assert_eq!(report.failures().len(), 1, "{outcome}");
}

/// Ten thousand connections that say nothing, at all doors in turn, while a rank is lost and comes back.
#[test]
fn in_a_crowd_keep_nobody_out() {
    for hosts in HOSTS {
        let (_folder, mut running) = start(hosts, "--kill 2@step=60");
        let doors = sockets(&running.processes()).doors;
        let mut crowd = std::collections::VecDeque::new();
        for number in 0..10_000 {
            crowd.extend(connect(&doors[number % doors.len()]));
            if crowd.len() > 600 {
                crowd.pop_front();
            }
        }
        running.await_text("all ranks are done");
        check(&running.finish().expect(0));
    }
}

/// Connections that say the one byte with which the protocol begins, more at each door than a process may have files open.
#[test]
fn cannot_use_up_the_files_of_a_process() {
    const FILES: usize = 128;
    let (folder, _) = over(LIKE_SSH, "");
    let shell = format!("ulimit -n {FILES}; exec \"$0\" \"$@\"");
    let run = Run::program(Path::new("/bin/sh"), "-c").arg(shell).arg(built().join("ftrun"));
    let run = run.arg("--launcher-exec").arg(folder.path().join("exec"));
    let options = format!("-n 4 -v --json {PATIENT} {} --kill 2@step=60 {JOB}", HOSTS[1]);
    let mut running = options.split_whitespace().fold(run, Run::arg).usual_transport().start();
    running.await_text("all ranks have joined");
    let doors = sockets(&running.processes()).doors;
    let ports: Vec<&Door> = doors.iter().filter(|door| matches!(door, Door::Tcp(_))).collect();
    assert_eq!(ports.len(), 5, "a launcher and four ranks listen for TCP: {doors:?}");
    let mut crowd = Vec::new();
    for port in ports {
        for _ in 0..FILES + 50 {
            // Rank 2, which is lost meanwhile, may listen no more.
            let Some(mut stranger) = connect(port) else { continue };
            let _ = stranger.write_all(b"D");
            crowd.push(stranger);
        }
    }
    assert!(crowd.len() >= 4 * (FILES + 50), "only {} connections", crowd.len());
    check(&running.finish().expect(0));
}

#[test]
fn on_every_socket_hurt_nothing() {
    for (hosts, recovery) in
        [(HOSTS[0], ""), (HOSTS[1], ""), (HOSTS[0], "--recovery local"), (HOSTS[1], "--recovery local")]
    {
        let outcome = pestered(hosts, recovery);
        check(&outcome);
        assert!(outcome.report().0["strangers_refused"].as_u64().unwrap() > 0, "{outcome}");
        assert!(outcome.stderr.contains(" refused by a rank"), "{outcome}");
    }
    // Connections of those who were killed are none of strangers.
    let killed =
        start("", "--kill 2@step=60 --kill 1,3@step=80 --scheme rs:2+2").1.finish().expect(0).report();
    assert_eq!(killed.0["strangers_refused"], 0);
}

fn pestered(hosts: &str, recovery: &str) -> Outcome {
    let (_folder, running) = start(hosts, &format!("{recovery} --kill 2@step=60"));
    let doors = sockets(&running.processes()).doors;
    let unix = doors.iter().filter(|door| matches!(door, Door::Unix(_))).count();
    let tcp = if hosts.is_empty() { 0 } else { 5 };
    assert_eq!((unix, doors.len()), (5, 5 + tcp), "a launcher and four ranks listen: {doors:?}");

    // Half-open ones stay until the end of the test.
    let silent: Vec<Box<dyn Connection>> =
        doors.iter().flat_map(|door| (0..20).map(|_| connect(door))).flatten().collect();
    assert!(silent.len() >= 20 * 4, "only {} connections", silent.len());
    let mut random = 1u64;
    let mut bytes = |count: usize| -> Vec<u8> {
        let mut byte = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        };
        (0..count).map(|_| byte()).collect()
    };
    for door in &doors {
        for count in [1, 64, 200, 100_000] {
            pester(door, &bytes(count));
        }
        pester(door, &[0; 4096]);
        pester(door, &[0xff; 4096]);
        pester(door, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(10).as_slice());
    }
    running.finish().expect(0)
}
