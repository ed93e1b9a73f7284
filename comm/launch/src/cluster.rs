//! The hosts of a job, as people write them, and which rank goes where.
//!
//! Two ways of writing are known: names with commas (`--hosts a,b,c:4`) and files with a host a line, as Open MPI
//! (`name slots=4`) and MPICH (`name:4`) have them. A host that is named again has its slots added.
//! What else such files may say is heeded too, or refused by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ft_comm::transport::{HOST_OF_LAUNCHER, is_label};

use crate::allocation::Allocation;
use crate::starter::Starter;

/// Most slots of one host.
pub(super) const SLOTS_MAX: usize = 1 << 16;

/// A host that processes can be started on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name, as it was given; it tells hosts apart.
    pub name: String,
    /// How many ranks it is given before the next host gets some; at least 1.
    pub slots: usize,
    /// How many ranks it may be given at the start, if that is limited.
    pub slots_max: Option<usize>,
}

impl Host {
    /// A host that a batch system names.
    pub(super) fn new(name: &str, slots: usize) -> Result<Self, HostError> {
        host_of(name).map(|host| Self { slots, ..host })
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        host_of(text)
    }
}

/// Hosts, at least one, each once, in the order in which they were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostList(Vec<Host>);

/// A text names no hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing is named.
    #[error("no host is named")]
    Empty,
    /// Not a name and perhaps slots.
    #[error("'{0}' is no host: write NAME or NAME:SLOTS")]
    Host(String),
    /// A number of slots that is none.
    #[error("'{text}' is no number of slots: write 1 to {SLOTS_MAX}")]
    Slots {
        /// What stands there.
        text: String,
    },
    /// A word of a line that is not understood.
    #[error("'{0}' is not understood: write NAME, NAME:SLOTS or NAME slots=SLOTS")]
    Word(String),
    /// A host has more slots than may be used.
    #[error("{slots} slots are more than the {max} that max_slots allows")]
    SlotsMax {
        /// How many there are.
        slots: usize,
        /// How many may be used.
        max: usize,
    },
    /// A port of SSH.
    #[error(
        "'{0}' cannot be heeded in a list of hosts: name the port in ~/.ssh/config, or a command with \
         --launcher-exec that starts things there"
    )]
    Port(String),
    /// An address whose colons are not told from that of the slots.
    #[error("'{0}' is an IPv6 address: write [{0}] or [{0}]:SLOTS")]
    Unbracketed(String),
    /// More hosts are to be spare than there can be.
    #[error("{spare} of {hosts} hosts cannot be spare: one at least has to run ranks")]
    Spare {
        /// How many are to be.
        spare: usize,
        /// How many there are.
        hosts: usize,
    },
    /// A line of a file.
    #[error("line {number}: {error}")]
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong.
        error: Box<HostError>,
    },
}

impl HostList {
    /// Reads a file's text: a host a line, `name`, `name:4` or `name slots=4`, the last perhaps
    /// with `max_slots=8` and `user=name`; `#` or `//` begins a comment.
    ///
    /// # Errors
    /// It names no host, or a line makes no sense.
    pub fn from_lines(text: &str) -> Result<Self, HostError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text); // as editors of Windows begin files
        let hosts = text.lines().zip(1..).filter_map(|(line, number)| {
            let in_line = |error| HostError::Line { number, error: Box::new(error) };
            host_of_line(line).map_err(in_line).transpose()
        });
        let hosts: Self = hosts.collect::<Result<_, _>>()?;
        if hosts.0.is_empty() { Err(HostError::Empty) } else { Ok(hosts) }
    }

    /// How many hosts there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number of slots of all hosts.
    pub fn slots(&self) -> usize {
        self.slots_without(0)
    }

    /// The number of slots if the last hosts, so many, are spare; those of one host at least.
    pub fn slots_without(&self, spare: usize) -> usize {
        let used = self.0.len().saturating_sub(spare).max(1);
        self.0.iter().take(used).map(|host| host.slots).sum()
    }

    /// Which of them this is, if it is one: hosts of a batch system may be named with their domain or without.
    pub(super) fn own(&self) -> Option<String> {
        let own = own_names();
        let label = |name: &str| name.split('.').next().map(str::to_owned).filter(|_| !is_address(name));
        let is_own =
            |name: &str| own.iter().any(|own| own == name || label(name).is_some_and(|name| name == *own));
        self.0.iter().find(|host| is_own(&host.name)).map(|host| host.name.clone())
    }

    /// All but the first, if there are several.
    pub(super) fn without_first(mut self) -> Self {
        if self.0.len() > 1 {
            self.0.remove(0);
        }
        self
    }

    /// The same hosts with so many slots each.
    #[must_use]
    pub fn with_slots(self, slots: usize) -> Self {
        Self(self.0.into_iter().map(|host| Host { slots, ..host }).collect())
    }
}

impl FromIterator<Host> for HostList {
    fn from_iter<I: IntoIterator<Item = Host>>(hosts: I) -> Self {
        let (mut list, mut places) = (Vec::<Host>::new(), HashMap::new());
        for host in hosts {
            match places.entry(host.name.clone()) {
                Entry::Occupied(place) => {
                    let known: &mut Host = &mut list[*place.get()];
                    known.slots = (known.slots + host.slots).min(SLOTS_MAX);
                    let both = known.slots_max.zip(host.slots_max).map(|(one, other)| one + other);
                    known.slots_max = both.or(known.slots_max).or(host.slots_max);
                }
                Entry::Vacant(place) => {
                    place.insert(list.len());
                    list.push(host);
                }
            }
        }
        Self(list)
    }
}

impl FromStr for HostList {
    type Err = HostError;

    /// Reads names with commas in between, each with its slots behind a colon if it has more than one.
    fn from_str(text: &str) -> Result<Self, HostError> {
        if text.trim().is_empty() {
            return Err(HostError::Empty);
        }
        text.split(',').map(|host| host_of(host.trim())).collect()
    }
}

/// The host of a line of a file, unless it is blank or a comment.
fn host_of_line(line: &str) -> Result<Option<Host>, HostError> {
    let line = line.split('#').next().unwrap_or_default();
    let line = line.split("//").next().unwrap_or_default();
    // Blanks around = mean nothing.
    let line = line.split('=').map(str::trim).collect::<Vec<_>>().join("=");
    let mut words = line.split_whitespace();
    let Some(host) = words.next() else { return Ok(None) };
    let mut host = host_of(host)?;
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| HostError::Word(word.to_owned()))?;
        match name.to_ascii_lowercase().replace('-', "_").as_str() {
            "slots" | "cpus" | "cpu" | "count" => host.slots = slots_of(value)?,
            "max_slots" | "slots_max" => host.slots_max = Some(slots_of(value)?),
            "user" | "username" | "user_name" if !host.name.contains('@') => {
                host.name = host_of(&format!("{value}@{}", host.name))?.name;
            }
            "port" => return Err(HostError::Port(word.to_owned())),
            _ => return Err(HostError::Word(word.to_owned())),
        }
    }
    match host.slots_max.filter(|max| *max < host.slots) {
        Some(max) => Err(HostError::SlotsMax { slots: host.slots, max }),
        None => Ok(Some(host)),
    }
}

/// `NAME`, `NAME:SLOTS`, `[IPV6]` or `[IPV6]:SLOTS`.
fn host_of(text: &str) -> Result<Host, HostError> {
    let wrong = || HostError::Host(text.to_owned());
    if text.parse::<std::net::Ipv6Addr>().is_ok() {
        return Err(HostError::Unbracketed(text.to_owned()));
    }
    let (name, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']').ok_or_else(wrong)?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    // A name goes to a command as an argument: it must not look like an option, nor like several words to a shell.
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_@%:".contains(c);
    if !is_label(name) || name.starts_with('-') || !name.chars().all(fits) {
        return Err(wrong());
    }
    let slots = match rest.strip_prefix(':') {
        Some(slots) if !slots.contains(':') => slots_of(slots)?,
        None if rest.is_empty() => 1,
        _ => return Err(wrong()),
    };
    Ok(Host { name: name.to_owned(), slots, slots_max: None })
}

fn slots_of(text: &str) -> Result<usize, HostError> {
    let slots = text.parse().ok().filter(|slots| (1..=SLOTS_MAX).contains(slots));
    slots.ok_or_else(|| HostError::Slots { text: text.to_owned() })
}

/// In which order ranks take the slots of hosts (`ftrun --map-by`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// All slots of a host, then those of the next.
    #[default]
    Slot,
    /// A slot of each host in turn.
    Node,
}

impl Mapping {
    /// Both, as they are written.
    pub const NAMES: [&str; 2] = ["slot", "node"];
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "slot" => Ok(Self::Slot),
            "node" => Ok(Self::Node),
            _ if text.starts_with("ppr:") => {
                Err(format!("'{text}' is none of slot, node; --ppn N puts N ranks on each host"))
            }
            _ => Err(format!("'{text}' is none of {}", Self::NAMES.join(", "))),
        }
    }
}

/// On which host a rank is started again whose own is gone: no spare one, which come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placing {
    /// On the one with the fewest processes of the job.
    #[default]
    Processes,
    /// On the one that is the least busy, whoever keeps it so.
    Load,
}

impl Placing {
    /// Both, as they are written.
    pub const NAMES: [&str; 2] = ["processes", "load"];
}

impl fmt::Display for Placing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Placing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "processes" => Ok(Self::Processes),
            "load" => Ok(Self::Load),
            _ => Err(format!("'{text}' is none of {}", Self::NAMES.join(", "))),
        }
    }
}

/// Where the processes of a job are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The hosts. The one called [`HOST_OF_LAUNCHER`], if there is one, is this one.
    hosts: Vec<Host>,
    mapping: Mapping,
    placing: Placing,
    /// So many of the last ones get no ranks at the start.
    spare: usize,
    starter: Starter,
}

impl Cluster {
    /// A cluster of this host alone.
    pub fn here() -> Self {
        Self {
            hosts: vec![Host { name: HOST_OF_LAUNCHER.to_owned(), slots: 1, slots_max: None }],
            mapping: Mapping::Slot,
            placing: Placing::default(),
            spare: 0,
            starter: Starter::Ssh,
        }
    }

    /// A cluster of the hosts of `list`. Programs are started on others by `exec`, or by `ssh`; if `exec` is named it is used for all of
    /// them, else this host is known by its names and needs none.
    pub fn new(list: &HostList, exec: Option<PathBuf>) -> Self {
        let own = if exec.is_none() { own_names() } else { vec![] };
        let starter = exec.map_or(Starter::Ssh, Starter::Command);
        Self {
            hosts: known(list, &own),
            mapping: Mapping::Slot,
            placing: Placing::default(),
            spare: 0,
            starter,
        }
    }

    /// A cluster of what a batch system has given, which starts what is started on other hosts.
    pub fn allocated(allocation: &Allocation) -> Self {
        let own: Vec<String> = allocation.own.iter().cloned().collect();
        Self {
            hosts: known(&allocation.hosts, &own),
            mapping: Mapping::Slot,
            placing: Placing::default(),
            spare: 0,
            starter: allocation.starter.clone(),
        }
    }

    /// The same, with a rule for ranks whose host is gone.
    #[must_use]
    pub fn placed_by(self, placing: Placing) -> Self {
        Self { placing, ..self }
    }

    /// The rule for ranks whose host is gone.
    pub(super) fn placing(&self) -> Placing {
        self.placing
    }

    /// The same, where ranks take the slots in this order.
    #[must_use]
    pub fn mapped_by(self, mapping: Mapping) -> Self {
        Self { mapping, ..self }
    }

    /// The same, with so many of its last hosts for ranks whose host is lost: they get none at the start.
    ///
    /// # Errors
    /// No other host is left.
    pub fn with_spare_hosts(self, spare: usize) -> Result<Self, HostError> {
        match self.hosts.len() {
            hosts if spare >= hosts => Err(HostError::Spare { spare, hosts }),
            _ => Ok(Self { spare, ..self }),
        }
    }

    /// Whether the host at this place gets ranks only when another one is lost.
    pub(super) fn is_spare(&self, at: usize) -> bool {
        at >= self.hosts.len() - self.spare
    }

    /// A host more, which gets ranks when another one is lost.
    pub(super) fn add(&mut self, host: Host) {
        self.hosts.push(host);
        self.spare += 1;
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Whether `ssh` starts what is started on other hosts.
    pub(super) fn is_by_ssh(&self) -> bool {
        self.starter == Starter::Ssh
    }

    /// The command that starts `program` as an agent on another host, and its arguments.
    pub(super) fn starter(&self, host: &str, program: &Path, agent: &str) -> (PathBuf, Vec<OsString>) {
        self.starter.command(host, program, agent)
    }

    /// The same command as people read it.
    pub(super) fn command(&self, host: &str, program: &Path, agent: &str) -> String {
        let (exec, arguments) = self.starter(host, program, agent);
        let words = std::iter::once(exec.into_os_string()).chain(arguments);
        words.map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
    }

    /// The first host that would be given more of `ranks` ranks than it may be, how many, and how
    /// many it may be.
    pub fn overfull(&self, ranks: usize) -> Option<(&Host, usize, usize)> {
        let mut given = vec![0; self.hosts.len()];
        self.place(ranks).into_iter().for_each(|at| given[at] += 1);
        let overfull = self.hosts.iter().zip(given);
        overfull
            .filter_map(|(host, given)| Some((host, given, host.slots_max?)))
            .find(|(_, given, max)| given > max)
    }

    /// The host of each of `ranks` ranks, by position, as the mapping has it; when all slots are taken it starts again. Spare hosts
    /// get none.
    pub fn place(&self, ranks: usize) -> Vec<usize> {
        let hosts = self.hosts.iter().enumerate().filter(|(at, _)| !self.is_spare(*at)).take(ranks);
        let slots = hosts.flat_map(|(at, host)| (0..host.slots.min(ranks)).map(move |slot| (slot, at)));
        let mut round: Vec<(usize, usize)> = match self.mapping {
            Mapping::Slot => slots.take(ranks).collect(),
            Mapping::Node => slots.collect(),
        };
        if self.mapping == Mapping::Node {
            round.sort_unstable();
        }
        round.into_iter().map(|(_, at)| at).cycle().take(ranks).collect()
    }
}

/// The hosts of a list, where this one is known by its `own` names.
fn known(list: &HostList, own: &[String]) -> Vec<Host> {
    let hosts = list.0.iter().map(|host| {
        let here = own.iter().any(|name| name.eq_ignore_ascii_case(&host.name));
        let name = if here { HOST_OF_LAUNCHER } else { &host.name };
        Host { name: name.to_owned(), ..host.clone() }
    });
    hosts.collect::<HostList>().0
}

fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

/// What this host is called.
fn own_names() -> Vec<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let short = name.split('.').next().unwrap_or_default();
    let names = ["localhost", "127.0.0.1", "::1", name, short];
    names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(list: &HostList) -> Vec<(&str, usize)> {
        list.0.iter().map(|host| (host.name.as_str(), host.slots)).collect()
    }

    #[test]
    fn names_with_commas() {
        let list: HostList = "a,b.example.org:3, me@c ,[fe80::1%eth0]:2,10.0.0.7,a:4".parse().unwrap();
        let expected = [("a", 5), ("b.example.org", 3), ("me@c", 1), ("fe80::1%eth0", 2), ("10.0.0.7", 1)];
        assert_eq!(pairs(&list), expected);
        assert_eq!(list.slots(), 12);
    }

    #[test]
    fn files_of_both_kinds() {
        let text = "# the front end is not used\n\nnode1 slots=4 # Open MPI\nnode2:2\t\n  node3\nnode1\n";
        assert_eq!(pairs(&HostList::from_lines(text).unwrap()), [("node1", 5), ("node2", 2), ("node3", 1)]);
    }

    #[test]
    fn files_of_other_launchers_are_read() {
        let text = "\u{feff}node1 slots=2 max_slots=4\r\nme@node2 slots = 3\r\n// none\nnode3 user=you cpus=2 # x\n\
                    node1 max-slots=2 // again\n";
        let list = HostList::from_lines(text).unwrap();
        assert_eq!(pairs(&list), [("node1", 3), ("me@node2", 3), ("you@node3", 2)]);
        assert_eq!(list.0.iter().map(|host| host.slots_max).collect::<Vec<_>>(), [Some(6), None, None]);
    }

    #[test]
    fn a_host_with_a_limit_is_not_given_more_ranks() {
        let list = HostList::from_lines("a slots=2 max_slots=3\nb\n").unwrap();
        let cluster = Cluster::new(&list, Some("exec".into()));
        assert_eq!(cluster.overfull(4), None, "a, a, b, a");
        let (host, given, max) = cluster.overfull(5).unwrap();
        assert_eq!((host.name.as_str(), given, max), ("a", 4, 3));
    }

    /// As many as a file of some MiB can name: each is looked up, not looked for.
    #[test]
    fn many_hosts_are_read_at_once() {
        let text: String = (0..400_000).map(|number| format!("n{}\n", number % 300_000)).collect();
        let list = HostList::from_lines(&text).unwrap();
        assert_eq!((list.0.len(), list.slots()), (300_000, 400_000));
        assert_eq!(pairs(&list)[..2], [("n0", 2), ("n1", 2)]);
        assert_eq!(Cluster::new(&list, Some("exec".into())).place(2), [0, 0]);
    }

    #[test]
    fn what_names_no_hosts_is_refused() {
        for (text, complaint) in [
            ("", "no host is named"),
            (" ", "no host is named"),
            ("a,", "'' is no host: write NAME or NAME:SLOTS"),
            ("a,,b", "'' is no host: write NAME or NAME:SLOTS"),
            ("a b", "'a b' is no host: write NAME or NAME:SLOTS"),
            ("-oProxyCommand=x", "'-oProxyCommand=x' is no host: write NAME or NAME:SLOTS"),
            ("a;b", "'a;b' is no host: write NAME or NAME:SLOTS"),
            ("$(b)", "'$(b)' is no host: write NAME or NAME:SLOTS"),
            ("a:1:2", "'a:1:2' is no host: write NAME or NAME:SLOTS"),
            ("fd82::2", "'fd82::2' is an IPv6 address: write [fd82::2] or [fd82::2]:SLOTS"),
            ("[::1", "'[::1' is no host: write NAME or NAME:SLOTS"),
            ("[::1]2", "'[::1]2' is no host: write NAME or NAME:SLOTS"),
            (":2", "':2' is no host: write NAME or NAME:SLOTS"),
            ("a:", "'' is no number of slots: write 1 to 65536"),
            ("a:0", "'0' is no number of slots: write 1 to 65536"),
            ("a:-1", "'-1' is no number of slots: write 1 to 65536"),
            ("a:65537", "'65537' is no number of slots: write 1 to 65536"),
        ] {
            assert_eq!(text.parse::<HostList>().unwrap_err().to_string(), complaint, "{text:?}");
        }
        for (text, complaint) in [
            ("# nothing\n\n", "no host is named"),
            ("a\nb slot=2", "line 2: 'slot=2' is not understood: write NAME, NAME:SLOTS or NAME slots=SLOTS"),
            ("a slots=", "line 1: '' is no number of slots: write 1 to 65536"),
            ("a slots=0", "line 1: '0' is no number of slots: write 1 to 65536"),
            ("a,b", "line 1: 'a,b' is no host: write NAME or NAME:SLOTS"),
            ("a slots=2 max_slots=1", "line 1: 2 slots are more than the 1 that max_slots allows"),
            ("a user=b;c", "line 1: 'b;c@a' is no host: write NAME or NAME:SLOTS"),
            (
                "a port=2222",
                "line 1: 'port=2222' cannot be heeded in a list of hosts: name the port in ~/.ssh/config, or a command with \
                 --launcher-exec that starts things there",
            ),
            ("a rank=0", "line 1: 'rank=0' is not understood: write NAME, NAME:SLOTS or NAME slots=SLOTS"),
        ] {
            assert_eq!(HostList::from_lines(text).unwrap_err().to_string(), complaint, "{text:?}");
        }
    }

    #[test]
    fn slots_are_filled_one_host_after_the_other_and_then_again() {
        let cluster = |text: &str| Cluster::new(&text.parse().unwrap(), Some("exec".into()));
        assert_eq!(cluster("a:2,b:2").place(4), [0, 0, 1, 1]);
        assert_eq!(cluster("a:2,b").place(7), [0, 0, 1, 0, 0, 1, 0]);
        assert_eq!(cluster("a,b,c").place(5), [0, 1, 2, 0, 1]);
        assert_eq!(cluster("a:9,b").place(3), [0, 0, 0]);
        assert_eq!(Cluster::here().place(3), [0, 0, 0]);
        assert_eq!(Cluster::here().place(0), [0; 0]);
    }

    #[test]
    fn or_a_slot_of_each_host_in_turn() {
        let place = |text: &str, ranks| {
            let cluster = Cluster::new(&text.parse().unwrap(), Some("exec".into()));
            cluster.mapped_by(Mapping::Node).place(ranks)
        };
        assert_eq!(place("a:2,b:2", 4), [0, 1, 0, 1]);
        assert_eq!(
            place("a:3,b,c:2", 8),
            [0, 1, 2, 0, 2, 0, 0, 1],
            "a full host is left out until all are full"
        );
        assert_eq!(place("a:9,b,c", 2), [0, 1]);
    }

    #[test]
    fn mappings_are_read_as_they_are_written() {
        for name in Mapping::NAMES {
            assert_eq!(name.parse::<Mapping>().unwrap().to_string(), name);
        }
        let refused = |text: &str| text.parse::<Mapping>().unwrap_err();
        assert_eq!(refused("core"), "'core' is none of slot, node");
        assert_eq!(
            refused("ppr:2:node"),
            "'ppr:2:node' is none of slot, node; --ppn N puts N ranks on each host"
        );
    }

    #[test]
    fn the_last_hosts_may_be_spare() {
        let cluster = |text: &str, spare| {
            Cluster::new(&text.parse().unwrap(), Some("exec".into())).with_spare_hosts(spare)
        };
        let two = cluster("a:2,b:2,c:8,d:8", 2).unwrap();
        assert_eq!(two.place(6), [0, 0, 1, 1, 0, 0]);
        assert_eq!([0, 1, 2, 3].map(|at| two.is_spare(at)), [false, false, true, true]);
        assert!(!cluster("a", 0).unwrap().is_spare(0));
        let error = cluster("a,b", 2).unwrap_err().to_string();
        assert_eq!(error, "2 of 2 hosts cannot be spare: one at least has to run ranks");
        let list: HostList = "a:2,b:3,c:8".parse().unwrap();
        assert_eq!([0, 1, 2, 9].map(|spare| list.slots_without(spare)), [13, 5, 2, 2]);
    }

    #[test]
    fn this_host_is_known_unless_a_command_is_named() {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let list: HostList = format!("localhost:2,b,{},127.0.0.2", own.trim()).parse().unwrap();
        let names = |cluster: &Cluster| -> Vec<(String, usize)> {
            cluster.hosts().iter().map(|host| (host.name.clone(), host.slots)).collect()
        };
        let known = names(&Cluster::new(&list, None));
        assert_eq!(known, [("local".into(), 3), ("b".into(), 1), ("127.0.0.2".into(), 1)]);
        assert_eq!(names(&Cluster::new(&list, Some("rsh".into()))).len(), 4);
    }

    #[test]
    fn an_allocation_says_which_host_this_is_and_what_starts_agents() {
        let allocation = |own: Option<&str>| Allocation {
            name: "Slurm job 1".into(),
            hosts: "n1:2,n2:2".parse().unwrap(),
            own: own.map(str::to_owned),
            starter: Starter::Slurm,
        };
        let allocated = Cluster::allocated(&allocation(Some("n1")));
        assert_eq!(allocated.hosts()[0].name, HOST_OF_LAUNCHER);
        assert_eq!(allocated.hosts()[1].name, "n2");
        assert_eq!(allocated.starter("n2", Path::new("ftrun"), "--as-agent").0, Path::new("srun"));
        assert_eq!(Cluster::allocated(&allocation(None)).hosts()[0].name, "n1");
    }

    #[test]
    fn a_batch_system_may_name_this_host_with_its_domain() {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let own = own.trim().split('.').next().unwrap();
        let list = |text: &str| text.parse::<HostList>().unwrap();
        let full = format!("{own}.example.org");
        assert_eq!(list(&format!("n7,{full},n8")).own(), Some(full));
        assert_eq!(list(&format!("n7,{own}")).own().as_deref(), Some(own));
        assert_eq!(list(&format!("n7,{own}x,127.0.0.2")).own(), None);
        assert_eq!(list("n1:2,n2").without_first(), list("n2"));
        assert_eq!(list("n1").without_first(), list("n1"));
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_names_hosts_that_can_be_given_to_a_command(
            text in "[-a.:,\\[\\]@ 0-9=#\n]{0,24}|\\PC{0,12}"
        ) {
            for list in [text.parse::<HostList>(), HostList::from_lines(&text)].into_iter().flatten() {
                prop_assert!(!list.0.is_empty() && list.slots() >= list.0.len());
                for host in &list.0 {
                    prop_assert!(!host.name.starts_with('-') && !host.name.contains([' ', ';', '$', '\'', '"']));
                }
            }
        }
    }
}
