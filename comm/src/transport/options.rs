//! What the launcher tells a process about the links to its peers, through the environment.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::{Congestion, Waiting};

/// Environment: the label of the host that the process runs on. Processes with the same label are on one host.
pub const ENV_HOST: &str = "FTRUN_HOST";
/// Environment: the address of the host at which the process accepts links over TCP; not set, it does not.
pub const ENV_LISTEN: &str = "FTRUN_LISTEN";
/// Environment: what carries links, as [`Carrier`] is written.
pub const ENV_TRANSPORT: &str = "FTRUN_TRANSPORT";
/// Environment: there if what is sent between hosts may be read on the way.
pub const ENV_PLAIN: &str = "FTRUN_PLAIN";
/// Environment: how blocked callers wait, as [`Waiting`] is written.
pub const ENV_WAIT: &str = "FTRUN_WAIT";

/// The label of the host of the launcher.
pub const HOST_OF_LAUNCHER: &str = "local";

/// Longest label of a host in bytes; no host name is longer.
const LABEL_MAX: usize = 255;

/// What carries the links between ranks (`ftrun --transport`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// Unix sockets with memory beside them between ranks of one host, TCP between hosts; long messages within a host are read from the memory of
    /// their sender, where the kernel allows it.
    #[default]
    Auto,
    /// The same, but no memory is shared or read.
    Unix,
    /// TCP everywhere.
    Tcp,
    /// The MPI library that the program was built with (feature `mpi`), whose `mpirun` has started the ranks.
    Mpi,
}

impl Carrier {
    /// All, as they are written.
    pub const NAMES: [&str; 4] = ["auto", "unix", "tcp", "mpi"];
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "unix" => Ok(Self::Unix),
            "tcp" => Ok(Self::Tcp),
            "mpi" => Ok(Self::Mpi),
            _ => Err(format!("'{text}' is none of {}", Self::NAMES.join(", "))),
        }
    }
}

/// How a process links to its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// The label of its host.
    pub host: String,
    /// The address of its host at which it accepts links over TCP, if it does.
    pub listen: Option<IpAddr>,
    /// What carries its links.
    pub carrier: Carrier,
    /// How its callers wait.
    pub waiting: Waiting,
    /// The congestion control of TCP links within the host.
    pub congestion: Congestion,
}

impl LinkOptions {
    /// Reads what the launcher has put into the environment, of which `variable` gives one by name.
    ///
    /// # Errors
    /// One is missing or makes no sense; the text names it.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let value = |name: &str| variable(name).ok_or_else(|| format!("{name} is not set"));
        let named = |name: &'static str| move |error: String| format!("{name}: {error}");
        let host = value(ENV_HOST)?;
        if !is_label(&host) {
            return Err(format!("{ENV_HOST}: not a label of a host"));
        }
        let listen = variable(ENV_LISTEN).map(|text| text.parse()).transpose();
        Ok(Self {
            host,
            listen: listen.map_err(|_| format!("{ENV_LISTEN}: not an address of a host"))?,
            carrier: value(ENV_TRANSPORT)?.parse().map_err(named(ENV_TRANSPORT))?,
            waiting: value(ENV_WAIT)?.parse().map_err(named(ENV_WAIT))?,
            congestion: Congestion::from_environment()?,
        })
    }
}

/// Whether `text` can be the label of a host: a word of visible ASCII characters.
pub fn is_label(text: &str) -> bool {
    (1..=LABEL_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(host: &str, carrier: &str, waiting: &str) -> Result<LinkOptions, String> {
        let variables = [(ENV_HOST, host), (ENV_TRANSPORT, carrier), (ENV_WAIT, waiting)];
        LinkOptions::from_environment(|name| {
            let found = variables.iter().find(|(known, value)| *known == name && *value != "-");
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn links_are_accepted_at_the_address_that_is_named() {
        let read = |listen: Option<&str>| {
            LinkOptions::from_environment(|name| match name {
                ENV_HOST => Some("there".to_owned()),
                ENV_TRANSPORT | ENV_WAIT => Some("auto".to_owned()),
                ENV_LISTEN => listen.map(str::to_owned),
                _ => None,
            })
        };
        assert_eq!(read(None).unwrap().listen, None);
        assert_eq!(read(Some("127.0.0.3")).unwrap().listen, Some(IpAddr::from([127, 0, 0, 3])));
        assert_eq!(read(Some("there")).unwrap_err(), "FTRUN_LISTEN: not an address of a host");
    }

    #[test]
    fn the_environment_is_read_or_refused() {
        let options = read("local", "tcp", "sleep").unwrap();
        assert_eq!((options.host.as_str(), options.carrier), ("local", Carrier::Tcp));
        assert_eq!(options.waiting, Waiting::Sleep);
        for (variables, complaint) in [
            (("-", "tcp", "auto"), "FTRUN_HOST is not set"),
            (("two words", "tcp", "auto"), "FTRUN_HOST: not a label of a host"),
            (("", "tcp", "auto"), "FTRUN_HOST: not a label of a host"),
            (("local", "-", "auto"), "FTRUN_TRANSPORT is not set"),
            (("local", "udp", "auto"), "FTRUN_TRANSPORT: 'udp' is none of auto, unix, tcp, mpi"),
            (("local", "auto", "-"), "FTRUN_WAIT is not set"),
            (("local", "auto", "nap"), "FTRUN_WAIT: 'nap' is none of auto, spin, yield, sleep"),
        ] {
            let (host, carrier, waiting) = variables;
            assert_eq!(read(host, carrier, waiting).unwrap_err(), complaint);
        }
        for name in Carrier::NAMES {
            assert_eq!(name.parse::<Carrier>().unwrap().to_string(), name);
        }
    }
}
