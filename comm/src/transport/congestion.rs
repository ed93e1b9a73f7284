//! Congestion control of TCP links within one host.
//!
//! BBR paces what it sends by its estimate of the path, which on the loopback interface is the speed of the
//! scheduler: large messages take half as long again to twice as long as with CUBIC. Where BBR is the default, links
//! between loopback addresses ask for CUBIC, or for Reno where that is refused. Real networks keep the default.

use std::fmt;
use std::str::FromStr;

use socket2::{Domain, Protocol, Socket, Type};

/// Environment: the congestion control of TCP links over the loopback interface, for measurements: one of
/// [`Congestion::NAMES`]. Unset, it is chosen.
pub const ENV_CONGESTION: &str = "FTRUN_CONGESTION";

/// What a TCP link over the loopback interface asks for. A refusal is no error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// What the system has, unless that is BBR.
    #[default]
    Auto,
    /// What the system has.
    System,
    /// CUBIC.
    Cubic,
    /// Reno.
    Reno,
    /// BBR.
    Bbr,
}

impl Congestion {
    /// All that can be asked for, as it is written.
    pub const NAMES: [&str; 4] = ["default", "cubic", "reno", "bbr"];

    /// What [`ENV_CONGESTION`] asks for.
    ///
    /// # Errors
    /// It is set to something else, which the text says.
    pub fn from_environment() -> Result<Self, String> {
        match std::env::var_os(ENV_CONGESTION) {
            None => Ok(Self::Auto),
            Some(value) => {
                value.to_string_lossy().parse().map_err(|error| format!("{ENV_CONGESTION}: {error}"))
            }
        }
    }

    /// The name of the congestion control that TCP links over the loopback interface get in this process.
    ///
    /// # Errors
    /// The operating system refuses a socket or does not tell.
    pub fn in_use(self) -> std::io::Result<String> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        self.apply(&socket);
        name(&socket)
    }

    /// Asks for it, on a TCP socket between two loopback addresses.
    pub(super) fn apply(self, socket: &Socket) {
        let ask = |name: &str| socket.set_tcp_congestion(name.as_bytes());
        // What is refused stays as it is: slower, but as good.
        let _ = match self {
            Self::System => Ok(()),
            Self::Auto if name(socket).is_ok_and(|name| name == "bbr") => {
                ask("cubic").or_else(|_| ask("reno"))
            }
            Self::Auto => Ok(()),
            Self::Cubic => ask("cubic"),
            Self::Reno => ask("reno"),
            Self::Bbr => ask("bbr"),
        };
    }
}

fn name(socket: &Socket) -> std::io::Result<String> {
    let bytes = socket.tcp_congestion()?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::System => "default",
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        })
    }
}

impl FromStr for Congestion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::System, Self::Cubic, Self::Reno, Self::Bbr];
        all.into_iter()
            .find(|congestion| congestion.to_string() == text)
            .ok_or_else(|| format!("'{text}' is none of {}", Self::NAMES.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap()
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let system = name(&socket()).unwrap();
        assert_eq!(Congestion::System.in_use().unwrap(), system);
        for asked in [Congestion::Cubic, Congestion::Reno, Congestion::Bbr] {
            let got = asked.in_use().unwrap();
            let allowed = socket().set_tcp_congestion(asked.to_string().as_bytes()).is_ok();
            assert_eq!(got, if allowed { asked.to_string() } else { system.clone() });
        }
    }

    #[test]
    fn bbr_is_replaced_and_nothing_else_is() {
        for before in ["bbr", "reno", "cubic"] {
            let socket = socket();
            if socket.set_tcp_congestion(before.as_bytes()).is_err() {
                continue;
            }
            Congestion::Auto.apply(&socket);
            let after = name(&socket).unwrap();
            match before {
                // Reno is always there and, as the name that needs no privilege, always allowed.
                "bbr" => assert!(["cubic", "reno"].contains(&after.as_str()), "{after}"),
                _ => assert_eq!(after, before),
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for name in Congestion::NAMES {
            assert_eq!(name.parse::<Congestion>().unwrap().to_string(), name);
        }
        assert_eq!(
            "vegas".parse::<Congestion>().unwrap_err(),
            "'vegas' is none of default, cubic, reno, bbr"
        );
    }
}
