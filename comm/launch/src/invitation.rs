//! What an agent is told on its standard input: with it comes the key of the job, which no command line, no file and no
//! environment of the command that starts it has in it.

use std::net::SocketAddr;

use ft_comm::transport::{Credentials, is_label};
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::JobKey;

/// Version of what launcher and agents say to each other.
const VERSION: &str = concat!("ftrun-agent-", env!("CARGO_PKG_VERSION"));

/// How it says that nobody is to read what is sent between hosts.
const SECRET: &str = "secret";
/// How it says the opposite.
const PLAIN: &str = "plain";

/// See the module. As text: one line of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Invitation {
    pub(super) credentials: Credentials,
    /// The number of the launcher's build; 0: it does not know.
    pub(super) build: u32,
    /// The number of the agent.
    pub(super) peer: PeerId,
    /// That of this invitation: a host that was lost and is tried again gets another one.
    pub(super) term: u32,
    /// Where the launcher listens, as seen from the agent's host.
    pub(super) launcher: SocketAddr,
    /// The name of the host.
    pub(super) host: String,
}

impl Invitation {
    pub(super) fn to_text(&self) -> String {
        let Credentials { key, secret } = &self.credentials;
        let manner = if *secret { SECRET } else { PLAIN };
        let Self { build, peer, term, launcher, host, .. } = self;
        format!("{VERSION} {build:08x} {} {manner} {} {term} {launcher} {host}\n", key.to_text(), peer.0)
    }

    /// # Errors
    /// The line is none, or of another version.
    pub(super) fn from_text(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [VERSION, build, key, manner @ (SECRET | PLAIN), peer, term, launcher, host] => {
                let key = JobKey::from_text(key);
                let invitation = || {
                    Some(Self {
                        credentials: Credentials { key: key?, secret: manner == SECRET },
                        build: u32::from_str_radix(build, 16).ok()?,
                        peer: PeerId(peer.parse().ok()?),
                        term: term.parse().ok()?,
                        launcher: launcher.parse().ok()?,
                        host: is_label(host).then(|| host.to_owned())?,
                    })
                };
                invitation().ok_or_else(|| "the launcher's invitation cannot be read".to_owned())
            }
            [VERSION, ..] => Err("the launcher's invitation cannot be read".to_owned()),
            [other, ..] if other.starts_with("ftrun-agent-") => {
                Err(format!("the launcher speaks {other}, this host has {VERSION}"))
            }
            _ => Err("no launcher has invited this process on its standard input".to_owned()),
        }
    }

    /// Refuses a launcher of another build than this process is of, `own`, if both are known: the ranks here would be of another one than
    /// the others.
    ///
    /// # Errors
    /// Both builds by their numbers.
    pub(super) fn require_build(&self, own: u32) -> Result<(), String> {
        let theirs = self.build;
        if theirs == own || theirs == 0 || own == 0 {
            return Ok(());
        }
        Err(format!(
            "the launcher is build {theirs:08x} of {VERSION}, this host has build {own:08x}: install the same file on all hosts"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let invitation = Invitation {
            credentials: Credentials { key: JobKey { job: [3; 16], key: [0xab; 32] }, secret: true },
            build: 0x1a2b,
            peer: PeerId(u32::MAX),
            term: 3,
            launcher: "[::1]:4000".parse().unwrap(),
            host: "me@there".into(),
        };
        let text = invitation.to_text();
        assert_eq!(Invitation::from_text(&text), Ok(invitation.clone()));
        let credentials = Credentials { secret: false, ..invitation.credentials.clone() };
        let plain = Invitation { credentials, ..invitation };
        assert_eq!(Invitation::from_text(&plain.to_text()), Ok(plain));
        for (text, complaint) in [
            ("", "no launcher has invited this process on its standard input"),
            ("hello\n", "no launcher has invited this process on its standard input"),
            (&text.replace("4000", "port"), "the launcher's invitation cannot be read"),
            (&text.replace("abab", "ab"), "the launcher's invitation cannot be read"),
            (&text.replace("secret", "open"), "the launcher's invitation cannot be read"),
            (&text.replace("00001a2b", "build"), "the launcher's invitation cannot be read"),
            (VERSION, "the launcher's invitation cannot be read"),
            (
                &text.replacen(VERSION, "ftrun-agent-9999", 1),
                "the launcher speaks ftrun-agent-9999, this host has",
            ),
        ] {
            let error = Invitation::from_text(text).unwrap_err();
            assert!(error.starts_with(complaint), "{text}: {error}");
        }
    }

    #[test]
    fn another_build_is_refused_if_both_are_known() {
        let text = format!("{VERSION} 00001a2b {} plain 1 0 127.0.0.1:9 n2", "ab".repeat(48));
        let of = |own| Invitation::from_text(&text).unwrap().require_build(own);
        assert_eq!((of(0x1a2b), of(0)), (Ok(()), Ok(())));
        let said = of(7).unwrap_err();
        assert!(said.contains("build 00001a2b of") && said.contains("has build 00000007"), "{said}");
        let unknown = Invitation { build: 0, ..Invitation::from_text(&text).unwrap() };
        assert_eq!(unknown.require_build(7), Ok(()));
    }

    proptest! {
        #[test]
        fn any_line_is_refused_or_is_written_as_the_same(
            key in "[0-9a-fA-F]{96}|\\PC{0,96}", peer in "[0-9]{1,11}( [0-9]{1,10})?",
            launcher in "[0-9]{1,3}(\\.[0-9]{1,3}){3}:[0-9]{1,6}|\\[[0-9a-f:]{2,9}\\]:[0-9]{1,5}|\\PC{0,9}",
            host in "[!-~]{1,20}|\\PC{0,9}", build in "[0-9a-f]{1,9}",
        ) {
            let line = format!("{VERSION} {build} {key} {peer} {launcher} {host}");
            if let Ok(invitation) = Invitation::from_text(&line) {
                prop_assert_eq!(Invitation::from_text(&invitation.to_text()), Ok(invitation));
            }
        }
    }
}
