//! One rank's sockets, one to each other rank.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use clap::ValueEnum;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};
use socket2::{Domain, SockAddr, Socket, Type};

/// What connects the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Sockets {
    /// TCP over the loopback device
    Tcp,
    /// Unix stream sockets
    Unix,
}

/// As the command line has it.
impl fmt::Display for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        })
    }
}

/// How a process waits.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Wait {
    /// Tries again at once, each process bound to a core
    Spin,
    /// Lets others run first, not bound
    Yield,
    /// The same, all bound to one core: what is sent stays in its cache
    Share,
    /// Sleeps until the kernel says that there is something to do
    Poll,
}

/// The links between ranks, and what is set on them.
#[derive(Debug, Clone)]
pub struct Wires<'a> {
    /// Number of ranks.
    pub ranks: usize,
    /// What they are.
    pub sockets: Sockets,
    /// Congestion control of TCP, by the name that the kernel has for it, or `default`.
    pub congestion: &'a str,
    /// Send buffer, and of TCP the receive buffer; none as the kernel chooses.
    pub buffer_bytes: Option<usize>,
    /// How to wait.
    pub wait: Wait,
}

/// Sockets that never block, and how to wait for them.
#[derive(Debug)]
pub struct Mesh {
    /// This process.
    pub rank: usize,
    /// All.
    pub size: usize,
    links: Vec<Option<Socket>>,
    wait: Wait,
}

impl Mesh {
    /// Connects to all lower ranks and is connected to by the higher ones. Addresses go out and come in as lines
    /// ([`super::start()`]). From now on this process ends with the one that started it.
    ///
    /// # Errors
    /// The operating system refuses something, or a rank is missing.
    pub fn new(wires: &Wires<'_>, rank: usize) -> io::Result<Self> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let size = wires.ranks;
        match wires.wait {
            Wait::Spin => bind_to_core(rank)?,
            Wait::Share => bind_to_core(0)?,
            Wait::Yield | Wait::Poll => {}
        }
        let listener = socket(wires)?;
        let own = match wires.sockets {
            Sockets::Tcp => "0".to_owned(),
            Sockets::Unix => format!("ft-raw-{}", std::process::id()),
        };
        listener.bind(&address(wires.sockets, &own)?)?;
        listener.listen(i32::try_from(size).unwrap_or(i32::MAX))?;
        match listener.local_addr()?.as_socket() {
            Some(address) => println!("{}", address.port()),
            None => println!("{own}"),
        }
        let all: Vec<String> = io::stdin().lines().collect::<Result<_, _>>()?;
        if all.len() != size {
            return Err(io::Error::other(format!("{} addresses for {size} ranks", all.len())));
        }
        let links = connect(wires, rank, &listener, &all)?;
        for link in links.iter().flatten() {
            link.set_nonblocking(true)?;
            match (wires.sockets, wires.buffer_bytes) {
                (Sockets::Tcp, _) => link.set_tcp_nodelay(true)?,
                // Not inherited from the listener.
                (Sockets::Unix, Some(bytes)) => link.set_send_buffer_size(bytes)?,
                (Sockets::Unix, None) => {}
            }
        }
        Ok(Self { rank, size, links, wait: wires.wait })
    }

    fn link(&self, peer: usize) -> &Socket {
        self.links[peer].as_ref().expect("a rank has no link to itself")
    }

    /// Sends all of `out`.
    ///
    /// # Errors
    /// The link is broken; so of all that follow.
    pub fn put(&self, to: usize, out: &[u8]) -> io::Result<()> {
        self.exchange(to, out, to, &mut [])
    }

    /// Fills `buf`.
    ///
    /// # Errors
    /// As [`Mesh::put`].
    pub fn get(&self, from: usize, buf: &mut [u8]) -> io::Result<()> {
        self.exchange(from, &[], from, buf)
    }

    /// Sends all of `out` and fills `buf`, both at once.
    ///
    /// # Errors
    /// As [`Mesh::put`].
    pub fn exchange(&self, to: usize, mut out: &[u8], from: usize, mut buf: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() || !buf.is_empty() {
            let mut moved = 0;
            if !out.is_empty() {
                let sent = self.link(to).write(out).or_else(none_yet)?;
                out = &out[sent..];
                moved += sent;
            }
            if !buf.is_empty() {
                let got = match self.link(from).read(buf) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    result => result.or_else(none_yet)?,
                };
                buf = &mut buf[got..];
                moved += got;
            }
            if moved == 0 {
                self.give_way((!out.is_empty()).then_some(to), (!buf.is_empty()).then_some(from))?;
            }
        }
        Ok(())
    }

    /// All ranks are here before one goes on: dissemination (D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier
    /// synchronization, International Journal of Parallel Programming 17(1), 1988).
    ///
    /// # Errors
    /// As [`Mesh::put`].
    pub fn meet(&self) -> io::Result<()> {
        let mut distance = 1;
        while distance < self.size {
            let (to, from) =
                ((self.rank + distance) % self.size, (self.rank + self.size - distance) % self.size);
            self.exchange(to, &[0], from, &mut [0])?;
            distance *= 2;
        }
        Ok(())
    }

    fn give_way(&self, to: Option<usize>, from: Option<usize>) -> io::Result<()> {
        match self.wait {
            Wait::Spin => {}
            Wait::Yield | Wait::Share => sched_yield(),
            Wait::Poll => {
                let wanted = [(to, PollFlags::OUT), (from, PollFlags::IN)];
                let wanted = wanted.into_iter().filter_map(|(peer, flags)| Some((peer?, flags)));
                let mut wanted: Vec<PollFd<'_>> =
                    wanted.map(|(peer, flags)| PollFd::new(self.link(peer), flags)).collect();
                match poll(&mut wanted, None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

/// A link to each other rank; lower ones are connected to where they listen.
fn connect(
    wires: &Wires<'_>,
    rank: usize,
    listener: &Socket,
    all: &[String],
) -> io::Result<Vec<Option<Socket>>> {
    let mut links: Vec<Option<Socket>> = all.iter().map(|_| None).collect();
    for lower in 0..rank {
        let link = socket(wires)?;
        link.connect(&address(wires.sockets, &all[lower])?)?;
        (&link).write_all(&[u8::try_from(rank).map_err(io::Error::other)?])?;
        links[lower] = Some(link);
    }
    for _ in rank + 1..all.len() {
        let (link, _) = listener.accept()?;
        let mut higher = [0];
        (&link).read_exact(&mut higher)?;
        links[usize::from(higher[0])] = Some(link);
    }
    Ok(links)
}

fn none_yet(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

fn socket(wires: &Wires<'_>) -> io::Result<Socket> {
    let domain = match wires.sockets {
        Sockets::Tcp => Domain::IPV4,
        Sockets::Unix => Domain::UNIX,
    };
    let socket = Socket::new(domain, Type::STREAM, None)?;
    if wires.sockets == Sockets::Tcp {
        // Accepted sockets inherit all of it from the listener.
        if wires.congestion != "default" {
            let name = wires.congestion;
            let refused = |error| io::Error::other(format!("congestion control '{name}': {error}"));
            socket.set_tcp_congestion(name.as_bytes()).map_err(refused)?;
        }
        if let Some(bytes) = wires.buffer_bytes {
            socket.set_send_buffer_size(bytes)?;
            socket.set_recv_buffer_size(bytes)?;
        }
    }
    Ok(socket)
}

/// A port, or a name that is no file.
fn address(sockets: Sockets, text: &str) -> io::Result<SockAddr> {
    match sockets {
        Sockets::Tcp => {
            Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, text.parse().map_err(io::Error::other)?).into())
        }
        Sockets::Unix => SockAddr::unix(format!("\0{text}")),
    }
}

/// Two that spin on one core would wait for whole time slices.
fn bind_to_core(rank: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
    let own =
        cores.nth(rank).ok_or_else(|| io::Error::other(format!("rank {rank} has no core to spin on")))?;
    let mut only = CpuSet::new();
    only.set(own);
    Ok(sched_setaffinity(None, &only)?)
}
