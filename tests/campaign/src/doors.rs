//! Sockets that the processes of a job listen at, and strangers who come there.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::process::Pid;

use crate::random::Random;

/// Where a process can be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Tcp(SocketAddr),
    /// A name in the abstract namespace.
    Unix(String),
}

/// What strangers say when they have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Silent,
    OneByte,
    Garbage,
    /// The beginning of what a browser says.
    Http,
}

/// Where these processes listen.
pub(crate) fn of(processes: &[Pid]) -> Vec<Door> {
    let inodes: HashSet<String> = processes
        .iter()
        .filter_map(|process| fs::read_dir(format!("/proc/{process}/fd")).ok())
        .flatten()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut doors = Vec::new();
    for line in table("tcp") {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, address, _, "0A", _, _, _, _, _, inode, ..] = columns[..] else { continue };
        if inodes.contains(inode) {
            doors.extend(tcp(address).map(Door::Tcp));
        }
    }
    for line in table("unix") {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, "00010000", _, _, inode, name] = columns[..] else { continue };
        if inodes.contains(inode) {
            doors.extend(name.strip_prefix('@').map(|name| Door::Unix(name.to_owned())));
        }
    }
    doors
}

fn table(kind: &str) -> Vec<String> {
    let text = fs::read(format!("/proc/net/{kind}")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().skip(1).map(str::to_owned).collect()
}

/// The kernel writes the bytes of an address as a number of this machine.
fn tcp(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let address: Ipv4Addr = u32::from_str_radix(address, 16).ok()?.to_ne_bytes().into();
    let address = if address.is_unspecified() { Ipv4Addr::LOCALHOST } else { address };
    Some((address, u16::from_str_radix(port, 16).ok()?).into())
}

/// Whether somebody still listens at a door in the abstract namespace.
pub(crate) fn is_there(door: &Door) -> bool {
    let Door::Unix(name) = door else { return false };
    let has_name = |line: &String| line.split_whitespace().nth(7)?.strip_prefix('@').map(|n| n == name);
    table("unix").iter().any(|line| has_name(line) == Some(true))
}

/// Strangers at doors. They stay until this is dropped.
#[derive(Debug)]
pub(crate) struct Crowd {
    _stay: Sender<()>,
}

impl Crowd {
    /// Sends `count` strangers to the doors in turn. It does not wait for them.
    pub(crate) fn gather(doors: Vec<Door>, manner: Manner, count: usize, mut random: Random) -> Self {
        let (stay, end) = channel::<()>();
        std::thread::spawn(move || {
            let come = |number: usize| connect(doors.get(number % doors.len().max(1))?);
            let mut guests: Vec<Box<dyn Write>> = (0..count).filter_map(come).collect();
            for guest in &mut guests {
                let _ = match manner {
                    Manner::Silent => Ok(()),
                    Manner::OneByte => guest.write_all(&[random.below(256) as u8]),
                    Manner::Garbage => {
                        let bytes: Vec<u8> = (0..200).map(|_| random.below(256) as u8).collect();
                        guest.write_all(&bytes)
                    }
                    Manner::Http => guest.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                };
            }
            // Nothing is ever sent: this is the end of the run.
            let _ = end.recv();
        });
        Self { _stay: stay }
    }
}

fn connect(door: &Door) -> Option<Box<dyn Write>> {
    match door {
        Door::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, Duration::from_secs(1)).ok()?;
            Some(Box::new(stream))
        }
        Door::Unix(name) => {
            let address = UnixAddr::from_abstract_name(name).ok()?;
            let stream = UnixStream::connect_addr(&address).ok()?;
            stream.set_nonblocking(true).ok()?;
            Some(Box::new(stream))
        }
    }
}
