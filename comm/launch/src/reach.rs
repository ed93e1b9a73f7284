//! At which addresses the processes of a job find each other over TCP: at none, unless other hosts are named.
//!
//! A host may be known to `ssh` alone, by another name in its configuration; then `ssh` is asked for that. A name that nobody knows may be
//! that of a host that is just being set up: it is looked up again for as long as the caller has patience.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::process::{Command, Stdio};

use super::cluster::Cluster;
use super::starter::SSH;
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
    /// By which of our addresses hosts reach it that are not named: those on which `mpirun` has started something.
    pub(super) others: Option<IpAddr>,
}

/// The operating system does not lead to a host.
#[derive(Debug)]
pub(super) struct Unreachable {
    pub(super) host: String,
    pub(super) why: String,
}

/// What is known of the way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// It is this host.
    None,
    /// It has this address.
    To(IpAddr),
    /// Only the command that starts things there knows.
    Hidden,
    /// It has this name, which has no address.
    Unknown(String),
}

impl Reach {
    /// Looks up the hosts of `cluster`, which takes as long as that takes. `waits` is told which ones have no address, waits a while, and
    /// says whether they are to be looked up again.
    ///
    /// # Errors
    /// The operating system has no route to any other host.
    pub(super) fn new(
        cluster: &Cluster,
        mut waits: impl FnMut(&[&str]) -> bool,
    ) -> Result<Self, Unreachable> {
        let hosts = || cluster.hosts().iter().map(|host| &*host.name);
        let mut ways: Vec<Way> = hosts().map(|name| way(name, cluster.is_by_ssh())).collect();
        loop {
            let unknown = hosts().zip(&ways).filter(|(_, way)| matches!(way, Way::Unknown(_)));
            let unknown: Vec<&str> = unknown.map(|(name, _)| name).collect();
            if unknown.is_empty() || !waits(&unknown) {
                break;
            }
            ways.iter_mut().for_each(look_again);
        }
        let launcher = hosts().zip(&ways).map(|(name, way)| match way {
            Way::None => Ok(None),
            Way::To(there) => towards(*there).map(Some).map_err(|error| (name, error)),
            Way::Hidden | Way::Unknown(_) => towards(NOBODY).map(Some).map_err(|error| (name, error)),
        });
        let unreachable = |(host, error): (&str, std::io::Error)| Unreachable {
            host: host.to_owned(),
            why: format!("no address is known for it, or no way leads there: {error}"),
        };
        Ok(Self { launcher: launcher.collect::<Result<_, _>>().map_err(unreachable)?, others: None })
    }

    /// The same for hosts that nobody names.
    ///
    /// # Errors
    /// The operating system has no route to any other host.
    pub(super) fn for_all(self) -> std::io::Result<Self> {
        Ok(Self { others: Some(towards(NOBODY)?), ..self })
    }

    /// Where the launcher listens over TCP: at the addresses by which other hosts reach it, and nowhere else.
    pub(super) fn listen(&self) -> Vec<IpAddr> {
        let all: BTreeSet<IpAddr> = self.launcher.iter().chain([&self.others]).flatten().copied().collect();
        all.into_iter().collect()
    }

    /// Where the ranks of the launcher's own host listen over TCP, if they do: for other hosts, or because TCP is to carry
    /// all.
    pub(super) fn own(&self, carrier: Carrier) -> Option<IpAddr> {
        if carrier == Carrier::Mpi {
            return None;
        }
        let all = self.listen();
        let outside = all.iter().find(|ip| !ip.is_loopback()).or(all.first()).copied();
        outside.or((carrier == Carrier::Tcp).then_some(Ipv4Addr::LOCALHOST.into()))
    }
}

/// The way to a host; what has no address here is asked of `ssh` if that starts things there.
fn way(name: &str, is_by_ssh: bool) -> Way {
    if name == HOST_OF_LAUNCHER {
        return Way::None;
    }
    let host = name.rsplit('@').next().unwrap_or(name);
    match address(host) {
        Some(there) => Way::To(there),
        None if !is_by_ssh => Way::Hidden,
        None => match by_ssh(name) {
            Some(host) => address(&host).map_or(Way::Unknown(host), Way::To),
            None => Way::Hidden,
        },
    }
}

fn look_again(way: &mut Way) {
    if let Way::Unknown(host) = way
        && let Some(there) = address(host)
    {
        *way = Way::To(there);
    }
}

fn address(host: &str) -> Option<IpAddr> {
    let found: Vec<IpAddr> = (host, PORT).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    found.iter().find(|ip| ip.is_ipv4()).or(found.first()).copied()
}

/// The name by which `ssh` looks up a host; none if it gets there by other means, or does not tell.
fn by_ssh(name: &str) -> Option<String> {
    let output =
        Command::new(SSH).args(["-G", name]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    target(&String::from_utf8_lossy(&output.stdout))
}

/// The same, of what `ssh -G` has printed.
fn target(configuration: &str) -> Option<String> {
    let value = |key: &str| configuration.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    match value("proxyjump").or(value("proxycommand")) {
        Some(_) => None,
        None => value("hostname").map(str::to_owned),
    }
}

/// Our own address on the way to another one.
fn towards(there: IpAddr) -> std::io::Result<IpAddr> {
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
        let never = |_: &[&str]| unreachable!("all are known");
        let reach = Reach::new(&Cluster::here(), never).unwrap();
        assert_eq!((reach.listen(), reach.own(Carrier::Auto)), (vec![], None));
        assert_eq!(reach.own(Carrier::Tcp), Some(local));
        let reach = Reach::new(&cluster("127.0.0.2,me@127.0.0.3"), never).unwrap();
        assert_eq!(reach, Reach { launcher: vec![Some(local); 2], others: None });
        assert_eq!((reach.listen(), reach.own(Carrier::Auto)), (vec![local], Some(local)));
    }

    #[test]
    fn other_hosts_reach_all_by_the_address_on_the_way_to_them() {
        let (local, out) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 1, 2, 3]));
        let six: IpAddr = "fd00::7".parse().unwrap();
        let launcher = vec![None, Some(out), Some(local), Some(six), Some(out)];
        let reach = Reach { launcher, others: None };
        assert_eq!(reach.listen(), [out, local, six]);
        assert_eq!((reach.own(Carrier::Auto), reach.own(Carrier::Mpi)), (Some(out), None));
        let reach = Reach { launcher: vec![None], others: Some(out) };
        assert_eq!(reach.listen(), [out]);
    }

    #[test]
    fn a_name_without_an_address_is_looked_up_until_the_caller_has_enough() {
        let unknown = Way::Unknown("no-such-host.invalid".into());
        let mut way = unknown.clone();
        look_again(&mut way);
        assert_eq!(way, unknown);
        let mut way = Way::Unknown("127.0.0.2".into());
        look_again(&mut way);
        assert_eq!(way, Way::To(IpAddr::from([127, 0, 0, 2])));
        // Another command may know more than this host.
        let cluster = Cluster::new(&"no-such-host.invalid".parse().unwrap(), Some("exec".into()));
        assert!(
            Reach::new(&cluster, |_| unreachable!("nobody waits"))
                .is_ok_and(|reach| reach.launcher.len() == 1)
        );
    }

    #[test]
    fn the_configuration_of_ssh_has_the_name_that_it_looks_up() {
        let told = "host b\nuser me\nhostname 10.0.0.5\nhostbasedauthentication no\n";
        assert_eq!(target(told).as_deref(), Some("10.0.0.5"));
        for proxy in ["proxyjump gate\n", "proxycommand nc %h %p\n"] {
            assert_eq!(target(&format!("{told}{proxy}")), None, "the name is one for the proxy");
        }
        assert_eq!(target(""), None);
    }
}
