//! Where a process accepts links, as text that the membership carries.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use socket2::SockAddr;

use super::options::is_label;

/// Longest name of a Unix socket in the abstract namespace, in bytes.
const UNIX_NAME_MAX: usize = 107;

/// Where a process accepts links: its own host at a Unix socket, everybody over TCP; it need not offer both.
///
/// As text: the label of the host, the TCP address and the name of the Unix socket, with a blank in between; `-` stands for
/// one that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    tcp: Option<SocketAddr>,
    unix: Option<String>,
}

/// A text is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address of a process")]
pub struct AddressError;

/// A socket of a process, and what lies on the way to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The socket.
    pub socket: SockAddr,
    /// Another host: what is sent has to be sealed.
    pub is_far: bool,
}

impl Address {
    /// A process on `host` that listens at `tcp` and at the abstract Unix socket `unix`. Host and name are short
    /// words of visible ASCII characters.
    ///
    /// # Errors
    /// They are not, or it listens nowhere.
    pub fn new(host: &str, tcp: Option<SocketAddr>, unix: Option<&str>) -> Result<Self, AddressError> {
        let fits = is_label(host) && unix.is_none_or(is_name) && (tcp.is_some() || unix.is_some());
        fits.then(|| Self { host: host.to_owned(), tcp, unix: unix.map(str::to_owned) }).ok_or(AddressError)
    }

    /// Where a process on the host with label `from` connects to: the Unix socket on the same host, if there is
    /// one, else TCP. None from another host if it does not listen for others.
    pub fn nearest(&self, from: &str) -> Option<Target> {
        let is_far = self.host != from;
        let unix = self.unix.as_deref().filter(|_| !is_far);
        let socket = unix.and_then(|name| abstract_socket(name).ok()).or(self.tcp.map(SockAddr::from))?;
        Some(Target { socket, is_far })
    }
}

/// The socket called `name` in the abstract namespace, which is no file: it ends with the process.
pub(super) fn abstract_socket(name: &str) -> std::io::Result<SockAddr> {
    SockAddr::unix(format!("\0{name}"))
}

/// Stands for a socket that is not there.
const NONE: &str = "-";

fn is_name(text: &str) -> bool {
    let fits = (1..=UNIX_NAME_MAX).contains(&text.len()) && text != NONE;
    fits && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tcp = self.tcp.map(|tcp| tcp.to_string());
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
        write!(f, "{} {} {}", self.host, word(&tcp), word(&self.unix))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let words: Vec<&str> = text.split(' ').collect();
        let [host, tcp, unix] = words[..] else { return Err(AddressError) };
        let there = |word: &'_ str| word != NONE;
        let tcp = there(tcp).then(|| tcp.parse().map_err(|_| AddressError)).transpose()?;
        Self::new(host, tcp, there(unix).then_some(unix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "local 127.0.0.1:4000 ftrun-00ff-3-9a";

    #[test]
    fn the_same_host_is_reached_by_its_unix_socket() {
        let tcp = Some("127.0.0.1:4000".parse().unwrap());
        let address: Address = TEXT.parse().unwrap();
        assert_eq!(address.to_string(), TEXT);
        let near = address.nearest("local").unwrap();
        assert_eq!(near.socket.as_abstract_namespace(), Some(&b"ftrun-00ff-3-9a"[..]));
        let far = address.nearest("elsewhere").unwrap();
        assert_eq!((far.socket.as_socket(), near.is_far, far.is_far), (tcp, false, true));
        let only_tcp: Address = "local 127.0.0.1:4000 -".parse().unwrap();
        let near = only_tcp.nearest("local").unwrap();
        assert_eq!((near.socket.as_socket(), near.is_far), (tcp, false));
        let only_unix: Address = "local - ftrun-00ff-3-9a".parse().unwrap();
        assert!(only_unix.nearest("local").is_some() && only_unix.nearest("elsewhere").is_none());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("local 127.0.0.1:4000 {}", "x".repeat(UNIX_NAME_MAX + 1));
        for text in [
            "",
            " ",
            "local",
            "127.0.0.1:4000",
            "local 127.0.0.1 -",
            "local 127.0.0.1:4000",
            "local localhost:4000 -",
            "local 127.0.0.1:70000 -",
            "local  127.0.0.1:4000",
            " 127.0.0.1:4000 -",
            "local 127.0.0.1:4000 ",
            "local 127.0.0.1:4000 name more",
            "local 127.0.0.1:4000 na\0me",
            "local\n 127.0.0.1:4000 -",
            "locäl 127.0.0.1:4000 -",
            "local - -",
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
            Just(NONE.to_owned()),
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
                let near = address.nearest(&address.host).unwrap();
                prop_assert!(near.socket.is_unix() == address.unix.is_some());
            }
        }

        #[test]
        fn what_is_written_is_read(host in "[!-~]{1,64}", ip in proptest::option::of(any::<std::net::IpAddr>()), port: u16, unix in
            proptest::option::of("[!-~]{2,107}")
        ) {
            let tcp = ip.map(|ip| SocketAddr::new(ip, port));
            prop_assume!(tcp.is_some() || unix.is_some());
            let address = Address::new(&host, tcp, unix.as_deref()).unwrap();
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }
    }
}
