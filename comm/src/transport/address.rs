//! Where a process accepts links, as text that the membership carries.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use socket2::SockAddr;

use super::options::is_label;

/// Longest name of a Unix socket in the abstract namespace, in bytes.
const UNIX_NAME_MAX: usize = 107;

/// Where a process accepts links: everybody over TCP, its own host over a Unix socket too, if it offers one.
///
/// As text: the label of the host, the TCP address and, if there is one, the name of the Unix socket, with a blank in
/// between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    tcp: SocketAddr,
    unix: Option<String>,
}

/// A text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of a process")]
pub struct AddressError;

impl Address {
    /// A process on `host` that listens at `tcp` and at the abstract Unix socket `unix`. Host and name are short
    /// words of visible ASCII characters.
    ///
    /// # Errors
    /// They are not.
    pub fn new(host: &str, tcp: SocketAddr, unix: Option<&str>) -> Result<Self, AddressError> {
        if is_label(host) && unix.is_none_or(is_name) {
            Ok(Self { host: host.to_owned(), tcp, unix: unix.map(str::to_owned) })
        } else {
            Err(AddressError)
        }
    }

    /// Where a process on the host with label `from` connects to: the Unix socket on the same host, if there is
    /// one, else TCP.
    pub fn nearest(&self, from: &str) -> SockAddr {
        let unix = self.unix.as_deref().filter(|_| self.host == from);
        let unix = unix.and_then(|name| abstract_socket(name).ok());
        unix.unwrap_or_else(|| self.tcp.into())
    }
}

/// The socket called `name` in the abstract namespace, which is no file: it ends with the process.
pub(super) fn abstract_socket(name: &str) -> std::io::Result<SockAddr> {
    SockAddr::unix(format!("\0{name}"))
}

fn is_name(text: &str) -> bool {
    (1..=UNIX_NAME_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.tcp)?;
        self.unix.iter().try_for_each(|name| write!(f, " {name}"))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let mut words = text.split(' ');
        let host = words.next().ok_or(AddressError)?;
        let tcp = words.next().and_then(|tcp| tcp.parse().ok()).ok_or(AddressError)?;
        let unix = words.next();
        if words.next().is_some() {
            return Err(AddressError);
        }
        Self::new(host, tcp, unix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "local 127.0.0.1:4000 ftrun-00ff-3-9a";

    #[test]
    fn the_same_host_is_reached_by_its_unix_socket() {
        let address: Address = TEXT.parse().unwrap();
        assert_eq!(address.to_string(), TEXT);
        let near = address.nearest("local");
        assert_eq!(near.as_abstract_namespace(), Some(&b"ftrun-00ff-3-9a"[..]));
        let tcp = Some("127.0.0.1:4000".parse().unwrap());
        assert_eq!(address.nearest("elsewhere").as_socket(), tcp);
        let without: Address = "local 127.0.0.1:4000".parse().unwrap();
        assert_eq!(without.nearest("local").as_socket(), tcp);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("local 127.0.0.1:4000 {}", "x".repeat(UNIX_NAME_MAX + 1));
        for text in [
            "",
            " ",
            "local",
            "127.0.0.1:4000",
            "local 127.0.0.1",
            "local localhost:4000",
            "local 127.0.0.1:70000",
            "local  127.0.0.1:4000",
            " 127.0.0.1:4000",
            "local 127.0.0.1:4000 ",
            "local 127.0.0.1:4000 name more",
            "local 127.0.0.1:4000 na\0me",
            "local\n 127.0.0.1:4000",
            "locäl 127.0.0.1:4000",
            &long,
        ] {
            assert_eq!(text.parse::<Address>(), Err(AddressError), "{text:?}");
        }
        assert!(long[..long.len() - 1].parse::<Address>().is_ok());
    }

    /// Addresses with some words in the wrong place, too long or not there.
    fn almost() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("127.0.0.1:1".to_owned()),
            Just("[::1]:65535".to_owned()),
            "[ -~]{0,5}",
            "[!-~]{100,120}",
            any::<String>(),
        ];
        proptest::collection::vec(word, 0..5).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn hostile_text_is_refused_or_means_what_it_says(text in almost()) {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address.clone()));
                prop_assert!(address.nearest(&address.host).is_unix() == address.unix.is_some());
            }
        }

        #[test]
        fn what_is_written_is_read(host in "[!-~]{1,64}", ip in any::<std::net::IpAddr>(), port: u16, unix in
            proptest::option::of("[!-~]{1,107}")
        ) {
            let address = Address::new(&host, SocketAddr::new(ip, port), unix.as_deref()).unwrap();
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }
    }
}
