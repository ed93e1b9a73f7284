//! A relay for all TCP connections between the hosts, in the router's network.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::thread::LinkNameSpaceType;
use socket2::{Domain, Socket, Type};

use super::mischief::{Fate, Mischief};
use super::namespaces::PORTS;
use crate::clock::Clock;
use crate::random::Random;

/// How often it looks whether it is to end, and what is due.
const GLANCE: Duration = Duration::from_millis(5);
/// Bytes on their way, in one direction, with which no more are read.
const HELD_MAX: usize = 4 << 20;

/// A thread that relays, until it is told to end.
#[derive(Debug)]
pub(super) struct Relay {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Relay {
    /// # Errors
    /// It cannot listen in the network of the router.
    pub(super) fn start(router: &File, mischief: Mischief, random: Random) -> std::io::Result<Self> {
        let (router, over) = (router.try_clone()?, Arc::new(AtomicBool::new(false)));
        let (tell, told) = channel();
        let until = over.clone();
        let thread = std::thread::spawn(move || {
            let entered =
                rustix::thread::move_into_link_name_space(router.as_fd(), Some(LinkNameSpaceType::Network));
            let listeners = entered.map_err(std::io::Error::from).and_then(|()| PORTS.map(listen).collect());
            match listeners {
                Ok(listeners) => {
                    let _ = tell.send(Ok(()));
                    let clock = Clock::start();
                    let mut state = State { listeners, links: vec![], mischief, random, clock };
                    while !until.load(Ordering::Relaxed) {
                        state.turn();
                    }
                    state.mischief.done()
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    0
                }
            }
        });
        told.recv().map_err(std::io::Error::other)??;
        Ok(Self { over, thread })
    }

    /// How often it has done its mischief.
    pub(super) fn end(self) -> u32 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or(0)
    }
}

/// A socket for connections to that port of any address.
fn listen(port: u16) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_ip_transparent_v4(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    socket.listen(128)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// What is on its way, and when it may arrive.
    held: VecDeque<(Duration, Vec<u8>)>,
    bytes: usize,
    /// Nothing more comes.
    ended: bool,
    /// The receiver knows.
    told: bool,
}

/// A connection from one host to another: two connections, of which the first side opened one.
#[derive(Debug)]
struct Link {
    sides: [Socket; 2],
    /// From the first side to the second, and back.
    ways: [Way; 2],
    /// It is one of those that mischief is done to.
    struck: bool,
    broken: bool,
}

struct State {
    listeners: Vec<Socket>,
    links: Vec<Link>,
    mischief: Mischief,
    random: Random,
    clock: Clock,
}

impl State {
    fn turn(&mut self) {
        self.wait();
        self.accept();
        let now = self.clock.now();
        for link in &mut self.links {
            for way in 0..2 {
                link.read(way, now, &mut self.mischief, &mut self.random);
                link.write(way, now);
            }
        }
        self.links.retain(|link| !link.broken && !link.ways.iter().all(|way| way.told));
    }

    fn wait(&self) {
        let now = self.clock.now();
        let mut fds: Vec<PollFd<'_>> =
            self.listeners.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        for link in &self.links {
            for side in 0..2 {
                let (from, to) = (&link.ways[side], &link.ways[1 - side]);
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, !from.ended && from.bytes < HELD_MAX);
                flags.set(PollFlags::OUT, to.held.front().is_some_and(|(due, _)| *due <= now));
                if !flags.is_empty() {
                    fds.push(PollFd::new(&link.sides[side], flags));
                }
            }
        }
        let limit = Timespec { tv_sec: 0, tv_nsec: GLANCE.as_nanos() as i64 };
        let _ = rustix::event::poll(&mut fds, Some(&limit));
    }

    fn accept(&mut self) {
        for listener in &self.listeners {
            while let Ok((near, from)) = listener.accept() {
                let to = near.local_addr().ok().and_then(|to| to.as_socket());
                let Some((from, to)) = from.as_socket().zip(to) else { continue };
                let ends = [host(from), host(to)];
                let struck = self.mischief.between.iter().all(|host| ends.contains(host));
                if let Ok(far) = open(to, &near) {
                    self.links.push(Link {
                        sides: [near, far],
                        ways: Default::default(),
                        struck,
                        broken: false,
                    });
                }
            }
        }
    }
}

/// The number of the host that has this address.
fn host(address: SocketAddr) -> usize {
    match address {
        SocketAddr::V4(address) => address.ip().octets()[2].into(),
        SocketAddr::V6(_) => 0,
    }
}

/// A connection to where the other one was to go.
fn open(to: SocketAddr, near: &Socket) -> std::io::Result<Socket> {
    let far = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    for socket in [near, &far] {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
    }
    match far.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
            Err(error)
        }
        _ => Ok(far),
    }
}

impl Link {
    fn read(&mut self, way: usize, now: Duration, mischief: &mut Mischief, random: &mut Random) {
        let mut buffer = [0; 16 << 10];
        while !self.broken && !self.ways[way].ended && self.ways[way].bytes < HELD_MAX {
            match (&self.sides[way]).read(&mut buffer) {
                Ok(0) => self.ways[way].ended = true,
                Ok(count) => {
                    let bytes = buffer[..count].to_vec();
                    let fate = match self.struck {
                        true => mischief.meet(now, bytes, random),
                        false => Fate { bytes, due: now, ..Fate::default() },
                    };
                    let line = &mut self.ways[way];
                    line.bytes += fate.bytes.len();
                    // Bytes do not overtake each other.
                    let due = line.held.back().map_or(fate.due, |(before, _)| fate.due.max(*before));
                    line.held.push_back((due, fate.bytes));
                    line.ended |= fate.ends;
                    self.broken |= fate.cut;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.broken = true,
            }
        }
    }

    fn write(&mut self, way: usize, now: Duration) {
        let (line, to) = (&mut self.ways[way], &self.sides[1 - way]);
        while let Some((due, bytes)) = line.held.front_mut() {
            if *due > now {
                return;
            }
            if bytes.is_empty() {
                line.held.pop_front();
                continue;
            }
            match (&*to).write(bytes) {
                Ok(count) => {
                    bytes.drain(..count);
                    line.bytes -= count;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
        }
        if line.ended && !line.told {
            line.told = true;
            let _ = to.shutdown(Shutdown::Write);
        }
    }
}
