//! At which addresses the processes of a job find each other over TCP: at none, unless other hosts are named.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};

use super::cluster::Cluster;
use ft_comm::transport::{Carrier, HOST_OF_LAUNCHER};

/// An address that a route leads to but nobody has (RFC 5737).
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Any port: nothing is sent.
const PORT: u16 = 9;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// By which of our addresses each host reaches the launcher; none for the launcher's own.
    pub(super) launcher: Vec<Option<IpAddr>>,
}

impl Reach {
    /// Looks up the hosts of `cluster`, which takes as long as that takes.
    ///
    /// # Errors
    /// The operating system has no route to any other host.
    pub(super) fn new(cluster: &Cluster) -> std::io::Result<Self> {
        let launcher = cluster.hosts().iter().map(|host| match host.name.as_str() {
            HOST_OF_LAUNCHER => Ok(None),
            name => towards(name).map(Some),
        });
        Ok(Self { launcher: launcher.collect::<std::io::Result<_>>()? })
    }

    /// Where the launcher listens over TCP: at the addresses by which other hosts reach it, and nowhere else.
    pub(super) fn listen(&self) -> Vec<IpAddr> {
        let all: BTreeSet<IpAddr> = self.launcher.iter().flatten().copied().collect();
        all.into_iter().collect()
    }

    /// Where the ranks of the launcher's own host listen over TCP, if they do: for other hosts, or because TCP is to carry
    /// all.
    pub(super) fn own(&self, carrier: Carrier) -> Option<IpAddr> {
        let all = self.listen();
        let outside = all.iter().find(|ip| !ip.is_loopback()).or(all.first()).copied();
        outside.or((carrier == Carrier::Tcp).then_some(Ipv4Addr::LOCALHOST.into()))
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
    fn nobody_listens_unless_other_hosts_are_named() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let cluster = |text: &str| Cluster::new(&text.parse().unwrap(), None);
        let reach = Reach::new(&Cluster::here()).unwrap();
        assert_eq!((reach.listen(), reach.own(Carrier::Auto)), (vec![], None));
        assert_eq!(reach.own(Carrier::Tcp), Some(local));
        let reach = Reach::new(&cluster("127.0.0.2,me@127.0.0.3")).unwrap();
        assert_eq!(reach, Reach { launcher: vec![Some(local); 2] });
        assert_eq!((reach.listen(), reach.own(Carrier::Auto)), (vec![local], Some(local)));
    }

    #[test]
    fn other_hosts_reach_all_by_the_address_on_the_way_to_them() {
        let (local, out) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 1, 2, 3]));
        let six: IpAddr = "fd00::7".parse().unwrap();
        let reach = Reach { launcher: vec![None, Some(out), Some(local), Some(six), Some(out)] };
        assert_eq!(reach.listen(), [out, local, six]);
        assert_eq!(reach.own(Carrier::Auto), Some(out));
    }
}
