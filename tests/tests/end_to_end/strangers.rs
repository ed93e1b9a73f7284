//! Strangers on the ports and Unix sockets of the launcher and of the ranks: bytes without sense, and connections that say nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use crate::common::{Run, Running};
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
        Door::Tcp(port) => {
            #[expect(clippy::disallowed_methods, reason = "a stranger does not come through the library")]
            let stream = TcpStream::connect(("127.0.0.1", *port)).ok()?;
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

fn start(options: &str) -> Running {
    let mut running = Run::ftrun(&format!("-n 4 -v --json {options} {JOB}")).start();
    running.await_text("all ranks have joined");
    running
}

/// Ten thousand connections that say nothing, at all doors in turn, while a rank is lost and comes back.
#[test]
fn in_a_crowd_keep_nobody_out() {
    let undisturbed = start("").finish().expect(0).report();
    let mut running = start("--kill 2@step=60");
    let doors = sockets(&running.processes()).doors;
    let mut crowd = std::collections::VecDeque::new();
    for number in 0..10_000 {
        crowd.extend(connect(&doors[number % doors.len()]));
        if crowd.len() > 600 {
            crowd.pop_front();
        }
    }
    running.await_text("all ranks are done");
    let outcome = running.finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.answer(), undisturbed.answer(), "{outcome}");
    assert_eq!(report.failures().len(), 1, "{outcome}");
}

#[test]
fn on_every_socket_hurt_nothing() {
    let undisturbed = start("").finish().expect(0).report();
    let running = start("--kill 2@step=60");
    let doors = sockets(&running.processes()).doors;
    let unix = doors.iter().filter(|door| matches!(door, Door::Unix(_))).count();
    assert!(doors.len() >= 9 && unix >= 4, "a launcher and four ranks listen, the ranks twice: {doors:?}");

    // Half-open ones stay until the end of the test.
    let silent: Vec<Box<dyn Connection>> =
        doors.iter().flat_map(|door| (0..20).map(|_| connect(door))).flatten().collect();
    assert!(silent.len() >= 20 * 7, "only {} connections", silent.len());
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

    let outcome = running.finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.answer(), undisturbed.answer(), "{outcome}");
    assert_eq!(report.failures().len(), 1, "{outcome}");
    let refused = |report: &crate::common::Report| report.0["strangers_refused"].as_u64().unwrap();
    assert!(refused(&report) > 0, "{outcome}");
    assert!(outcome.stderr.contains("connections of strangers are refused by a rank"), "{outcome}");
    assert_eq!(refused(&undisturbed), 0);
}
