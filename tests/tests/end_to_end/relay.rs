//! Somebody on the way between the launcher and an agent, who changes, drops, repeats or reorders what passes. The agent is
//! invited to him instead of to the launcher; bytes of the handshake and of everything behind it are his.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use crate::common::{Outcome, POISSON, poisson_answer};
use crate::hosts::over;

/// As `ssh` would do it, but the agent on 127.0.0.3 is told that the launcher is at the port in `$RELAY`; the true address goes
/// to the file beside the script.
const MISLEADING: &str = r#"host=$1; shift
[ "$host" = 127.0.0.3 ] || exec sh -c "exec $*"
read -r version build key manner peer term launcher name
echo "$launcher" >"$0.launcher"
echo "$version $build $key $manner $peer $term 127.0.0.1:$RELAY $name" | exec sh -c "$*""#;

/// What becomes of bytes of a direction, by how many have passed.
type Change = fn(Vec<u8>, usize) -> Vec<u8>;

/// Bytes of the handshake, roughly: what follows is sealed by its keys.
const HANDSHAKE: usize = 200;

fn flip(mut bytes: Vec<u8>, passed: usize) -> Vec<u8> {
    let last = bytes.len() - 1;
    bytes[last] ^= if passed > HANDSHAKE { 4 } else { 0 };
    bytes
}

fn flip_at_once(mut bytes: Vec<u8>, passed: usize) -> Vec<u8> {
    bytes[0] ^= u8::from(passed == 0);
    bytes
}

fn drop_some(mut bytes: Vec<u8>, passed: usize) -> Vec<u8> {
    bytes.truncate(if passed > HANDSHAKE { bytes.len() / 2 } else { bytes.len() });
    bytes
}

fn repeat(bytes: Vec<u8>, passed: usize) -> Vec<u8> {
    bytes.repeat(if passed > HANDSHAKE { 2 } else { 1 })
}

fn reorder(mut bytes: Vec<u8>, passed: usize) -> Vec<u8> {
    bytes.rotate_left(usize::from(passed > HANDSHAKE));
    bytes
}

fn nothing(bytes: Vec<u8>, _: usize) -> Vec<u8> {
    bytes
}

/// Passes bytes on until one side has had enough.
fn pass(mut from: TcpStream, mut to: TcpStream, change: Change) {
    let (mut buffer, mut passed) = (vec![0; 64 << 10], 0);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = change(buffer[..count].to_vec(), passed);
        passed += count;
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

#[expect(clippy::disallowed_methods, reason = "he does not come through the library")]
fn connect(address: &str) -> TcpStream {
    TcpStream::connect(address).unwrap()
}

/// Serves one agent; says when it has come.
fn relay(listener: TcpListener, launcher: std::path::PathBuf, down: Change, up: Change) -> Receiver<()> {
    let (said, heard) = channel();
    std::thread::spawn(move || {
        while let Ok((agent, _)) = listener.accept() {
            let launcher = std::fs::read_to_string(&launcher).unwrap();
            let launcher = connect(launcher.trim());
            let back = (launcher.try_clone().unwrap(), agent.try_clone().unwrap());
            // Before anything passes, as the job may be over at any time then.
            if said.send(()).is_err() {
                return;
            }
            std::thread::spawn(move || pass(back.0, back.1, down));
            std::thread::spawn(move || pass(agent, launcher, up));
        }
    });
    heard
}

fn run(options: &str, down: Change, up: Change) -> Outcome {
    #[expect(clippy::disallowed_methods, reason = "he does not come through the library")]
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let hosts = "-n 4 --json --scheme rs:2+2 --hosts 127.0.0.2:2,127.0.0.3:2";
    let (folder, run) = over(MISLEADING, &format!("{hosts} {options} {POISSON}"));
    let came = relay(listener, folder.path().join("exec.launcher"), down, up);
    let outcome = run.variable("RELAY", port).limit(30).finish();
    assert!(came.try_recv().is_ok(), "nobody came by the relay: {outcome}");
    outcome
}

#[test]
fn who_only_passes_on_is_no_matter() {
    for options in ["", "--plain"] {
        let outcome = run(options, nothing, nothing).expect(0);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    }
}

/// The job goes on without that host, or ends before it has begun; what the launcher orders there is never changed unnoticed.
#[test]
fn who_changes_anything_only_loses_the_host() {
    for options in ["", "--plain"] {
        for change in [flip, flip_at_once, drop_some, repeat, reorder] {
            for (down, up) in [(change, nothing as Change), (nothing, change)] {
                let outcome = run(options, down, up);
                match outcome.status {
                    0 => assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}"),
                    _ => assert!(outcome.stderr.contains("host 127.0.0.3"), "{outcome}"),
                }
            }
        }
    }
}
