//! At which addresses the processes of a job find each other: the loopback interface, unless other hosts are named.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};

use super::cluster::Cluster;
use crate::transport::HOST_OF_LAUNCHER;

/// An address that a route leads to but nobody has (RFC 5737).
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Any port: nothing is sent.
const PORT: u16 = 9;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Where the launcher listens.
    pub(super) listen: IpAddr,
    /// By which address each host reaches the launcher.
    pub(super) launcher: Vec<IpAddr>,
    /// Where the ranks of the launcher's own host listen.
    pub(super) own: IpAddr,
}

impl Reach {
    /// Looks up the hosts of `cluster`, which takes as long as that takes.
    ///
    /// # Errors
    /// The operating system has no route to any other host.
    pub(super) fn new(cluster: &Cluster) -> std::io::Result<Self> {
        let launcher = cluster.hosts().iter().map(|host| match host.name.as_str() {
            HOST_OF_LAUNCHER => Ok(Ipv4Addr::LOCALHOST.into()),
            name => towards(name),
        });
        Ok(Self::of(launcher.collect::<std::io::Result<_>>()?))
    }

    fn of(launcher: Vec<IpAddr>) -> Self {
        let outside = launcher.iter().find(|ip| !ip.is_loopback()).copied();
        let six = launcher.iter().any(IpAddr::is_ipv6);
        let listen = match (outside.is_some(), six) {
            (false, false) => Ipv4Addr::LOCALHOST.into(),
            (true, false) => Ipv4Addr::UNSPECIFIED.into(),
            // It takes connections of the older kind too.
            (_, true) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self { listen, launcher, own: outside.unwrap_or(Ipv4Addr::LOCALHOST.into()) }
    }
}

/// The address of a name such as `me@host`; none if only the command that starts things there knows it.
fn address(name: &str) -> Option<IpAddr> {
    let host = name.rsplit('@').next().unwrap_or(name);
    let found: Vec<IpAddr> = (host, PORT).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    found.iter().find(|ip| ip.is_ipv4()).or(found.first()).copied()
}

/// Our own address on the way to a host.
fn towards(name: &str) -> std::io::Result<IpAddr> {
    let there = address(name).unwrap_or(NOBODY);
    if there.is_loopback() {
        return Ok(if there.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    let any: IpAddr =
        if there.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // A datagram socket that is connected has chosen its way; no datagram leaves.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((there, PORT))?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_interface_unless_others_are_named() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let cluster = |text: &str| Cluster::new(&text.parse().unwrap(), None);
        let reach = Reach::new(&cluster("localhost,127.0.0.2,me@127.0.0.3")).unwrap();
        assert_eq!(reach, Reach { listen: local, launcher: vec![local; 3], own: local });
        assert_eq!(Reach::new(&Cluster::here()).unwrap().listen, local);
    }

    #[test]
    fn other_hosts_reach_all_by_the_address_on_the_way_to_them() {
        let (local, out) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 1, 2, 3]));
        let reach = Reach::of(vec![local, out]);
        assert_eq!((reach.listen, reach.own), (IpAddr::from([0, 0, 0, 0]), out));
        let six: IpAddr = "fd00::7".parse().unwrap();
        assert_eq!(Reach::of(vec![six, local]).listen, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    }
}
