//! Strangers on the ports of the launcher and of the ranks: bytes without sense, and connections that say nothing.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustix::process::Pid;

use crate::common::{Run, Running};

/// Ports of the loopback interface at which these processes listen.
fn ports(processes: &[Pid]) -> Vec<u16> {
    let sockets: HashSet<String> = processes
        .iter()
        .filter_map(|process| std::fs::read_dir(format!("/proc/{process}/fd")).ok())
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let listening = table.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (address, state, inode) = (columns[1], columns[3], columns[9]);
        let port = address.split_once(':')?.1;
        (state == "0A" && sockets.contains(inode)).then(|| u16::from_str_radix(port, 16).unwrap())
    });
    listening.collect()
}

fn connect(port: u16) -> Option<TcpStream> {
    #[expect(clippy::disallowed_methods, reason = "a stranger does not come through the library")]
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    Some(stream)
}

/// Sends `bytes`, closes its side, and waits until the other has had enough.
fn pester(port: u16, bytes: &[u8]) {
    let Some(mut stream) = connect(port) else { return };
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

const JOB: &str = "cg --poisson 64";

fn start(options: &str) -> Running {
    let mut running = Run::ftrun(&format!("-n 4 -v --json {options} {JOB}")).start();
    running.await_text("all ranks have joined");
    running
}

#[test]
fn on_every_port_hurt_nothing() {
    let undisturbed = start("").finish().expect(0).report();
    let running = start("--kill 2@step=60");
    let ports = ports(&running.processes());
    assert!(ports.len() >= 5, "a launcher and four ranks listen: {ports:?}");

    // Half-open ones stay until the end of the test.
    let silent: Vec<TcpStream> =
        ports.iter().flat_map(|port| (0..20).map(|_| connect(*port))).flatten().collect();
    assert!(silent.len() >= 20 * 4, "only {} connections", silent.len());
    let mut random = 1u64;
    let mut bytes = |count: usize| -> Vec<u8> {
        let mut byte = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        };
        (0..count).map(|_| byte()).collect()
    };
    for port in &ports {
        for count in [1, 64, 200, 100_000] {
            pester(*port, &bytes(count));
        }
        pester(*port, &[0; 4096]);
        pester(*port, &[0xff; 4096]);
        pester(*port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(10).as_slice());
    }

    let outcome = running.finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.answer(), undisturbed.answer(), "{outcome}");
    assert_eq!(report.failures().len(), 1, "{outcome}");
    let refused = |report: &crate::common::Report| report.0["strangers_refused"].as_u64().unwrap();
    assert!(refused(&report) > 0, "{outcome}");
    assert_eq!(refused(&undisturbed), 0);
}
