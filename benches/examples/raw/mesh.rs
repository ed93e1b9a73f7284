//! One rank's sockets, one to each other rank.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};
use socket2::{Domain, SockAddr, Socket, Type};

use super::{Options, Sockets, Wait};

/// Sockets that never block, and how to wait for them.
pub(super) struct Mesh {
    pub(super) rank: usize,
    pub(super) size: usize,
    links: Vec<Option<Socket>>,
    wait: Wait,
}

impl Mesh {
    /// Connects to all lower ranks and is connected to by the higher ones. Addresses go out and come in as lines.
    pub(super) fn new(options: &Options, rank: usize) -> io::Result<Self> {
        let size = options.ranks;
        if options.wait == Wait::Spin {
            bind_to_core(rank)?;
        }
        let listener = socket(options)?;
        let own = match options.sockets {
            Sockets::Tcp => "0".to_owned(),
            Sockets::Unix => format!("ft-raw-{}", std::process::id()),
        };
        listener.bind(&address(options.sockets, &own)?)?;
        listener.listen(i32::try_from(size).unwrap_or(i32::MAX))?;
        match listener.local_addr()?.as_socket() {
            Some(address) => println!("{}", address.port()),
            None => println!("{own}"),
        }
        let all: Vec<String> = io::stdin().lines().collect::<Result<_, _>>()?;
        if all.len() != size {
            return Err(io::Error::other(format!("{} addresses for {size} ranks", all.len())));
        }

        let mut links: Vec<Option<Socket>> = (0..size).map(|_| None).collect();
        for lower in 0..rank {
            let link = socket(options)?;
            link.connect(&address(options.sockets, &all[lower])?)?;
            (&link).write_all(&[u8::try_from(rank).map_err(io::Error::other)?])?;
            links[lower] = Some(link);
        }
        for _ in rank + 1..size {
            let (link, _) = listener.accept()?;
            let mut higher = [0];
            (&link).read_exact(&mut higher)?;
            links[usize::from(higher[0])] = Some(link);
        }
        for link in links.iter().flatten() {
            link.set_nonblocking(true)?;
            if options.sockets == Sockets::Tcp {
                link.set_tcp_nodelay(true)?;
            }
        }
        Ok(Self { rank, size, links, wait: options.wait })
    }

    fn link(&self, peer: usize) -> &Socket {
        self.links[peer].as_ref().expect("a rank has no link to itself")
    }

    /// Sends all of `out`.
    pub(super) fn put(&self, to: usize, out: &[u8]) -> io::Result<()> {
        self.exchange(to, out, to, &mut [])
    }

    /// Fills `buf`.
    pub(super) fn get(&self, from: usize, buf: &mut [u8]) -> io::Result<()> {
        self.exchange(from, &[], from, buf)
    }

    /// Sends all of `out` and fills `buf`, both at once.
    pub(super) fn exchange(
        &self,
        to: usize,
        mut out: &[u8],
        from: usize,
        mut buf: &mut [u8],
    ) -> io::Result<()> {
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
            if moved == 0 && self.wait == Wait::Yield {
                sched_yield();
            }
        }
        Ok(())
    }
}

fn none_yet(error: io::Error) -> io::Result<usize> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}

fn socket(options: &Options) -> io::Result<Socket> {
    let domain = match options.sockets {
        Sockets::Tcp => Domain::IPV4,
        Sockets::Unix => Domain::UNIX,
    };
    let socket = Socket::new(domain, Type::STREAM, None)?;
    if options.sockets == Sockets::Tcp && options.congestion != "default" {
        // Accepted sockets inherit it from the listener.
        let name = &options.congestion;
        let refused = |error| io::Error::other(format!("congestion control '{name}': {error}"));
        socket.set_tcp_congestion(name.as_bytes()).map_err(refused)?;
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
