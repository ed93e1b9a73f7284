//! The sockets of processes, as the kernel lists them.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddrV4};

use rustix::process::Pid;

/// Where a process can be connected to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Door {
    /// An address and a port.
    Tcp(SocketAddrV4),
    /// A name in the abstract namespace.
    Unix(String),
}

/// Sockets by what they are.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// Those that listen.
    pub(crate) doors: Vec<Door>,
    /// The addresses of those that listen for TCP.
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// The addresses of the other ends of TCP connections.
    pub(crate) others: Vec<Ipv4Addr>,
    /// Number of TCP connections.
    pub(crate) tcp: usize,
    /// Number of connections by Unix sockets.
    pub(crate) unix: usize,
    /// Unix sockets that are files.
    pub(crate) files: Vec<String>,
}

/// All sockets of these processes.
pub(crate) fn sockets(processes: &[Pid]) -> Sockets {
    let inodes: HashSet<String> = processes
        .iter()
        .filter_map(|process| std::fs::read_dir(format!("/proc/{process}/fd")).ok())
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = Sockets::default();
    for line in table("tcp") {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (address, state, inode) = (columns[1], columns[3], columns[9]);
        let port = u16::from_str_radix(address.split_once(':').unwrap().1, 16).unwrap();
        match state {
            _ if !inodes.contains(inode) => {}
            "0A" => {
                found.doors.push(Door::Tcp(SocketAddrV4::new(ip(address), port)));
                found.addresses.push(ip(address));
            }
            _ => {
                found.tcp += 1;
                found.others.push(ip(columns[2]));
            }
        }
    }
    for line in table("unix") {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (flags, state, inode, name) = (columns[3], columns[5], columns[6], columns.get(7));
        match (name.map(|name| name.strip_prefix('@').ok_or(name)), state) {
            _ if !inodes.contains(inode) => {}
            (Some(Err(file)), _) => found.files.push((*file).to_string()),
            (Some(Ok(name)), _) if flags == "00010000" => found.doors.push(Door::Unix(name.to_owned())),
            (_, "03") => found.unix += 1,
            _ => {}
        }
    }
    found
}

/// The address in front of the colon, whose bytes the kernel writes as a number of this machine.
fn ip(text: &str) -> Ipv4Addr {
    let number = u32::from_str_radix(text.split_once(':').unwrap().0, 16).unwrap();
    number.to_ne_bytes().into()
}

/// Whether a Unix socket of this name is there, whosever it is.
pub(crate) fn is_there(name: &str) -> bool {
    table("unix")
        .iter()
        .any(|line| line.split_whitespace().nth(7).and_then(|n| n.strip_prefix('@')) == Some(name))
}

fn table(kind: &str) -> Vec<String> {
    let text = std::fs::read(format!("/proc/net/{kind}")).unwrap();
    String::from_utf8_lossy(&text).lines().skip(1).map(str::to_owned).collect()
}
