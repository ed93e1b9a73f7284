//! The launcher's end of an agent on another host.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::process::Signal;

use super::control::Control;
use super::spec::LaunchError;
use ft_comm::time::Time;
use ft_comm::transport::Channel;
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::{FromAgent, ToAgent};

#[derive(Debug)]
pub(super) struct Remote {
    /// The number of the agent.
    pub(super) peer: PeerId,
    /// The number of the invitation with which it comes, and so do those that its keeper starts when it dies.
    term: u32,
    host: String,
    command: String,
    /// When it has to be there.
    pub(super) until: Time,
    link: Option<Control>,
    /// What it is to be told when it is there.
    early: Vec<ToAgent>,
    /// Signals to all processes that count still: each agent is told of them.
    to_all: Vec<Signal>,
    /// It was told that the job is over.
    dismissed: bool,
    /// How its link ended: its keeper may have another one soon.
    broken: Option<String>,
}

impl Remote {
    pub(super) fn new(peer: PeerId, term: u32, host: String, command: String, until: Time) -> Self {
        let (link, early, to_all, dismissed, broken) = (None, vec![], vec![], false, None);
        Self { peer, term, host, command, until, link, early, to_all, dismissed, broken }
    }

    /// Whether an agent of these numbers is this one, or one that its keeper has started.
    pub(super) fn is(&self, peer: PeerId, term: u32) -> bool {
        (self.peer, self.term) == (peer, term)
    }

    /// It has proved that it belongs to the job.
    pub(super) fn connected(&mut self, channel: Channel) {
        let mut link = Control::new(channel);
        self.early.drain(..).for_each(|message| link.send(&message));
        self.link = Some(link);
    }

    /// Its link has ended: another agent is waited for until then.
    pub(super) fn breaks(&mut self, cause: String, until: Time) {
        self.link = None;
        self.until = until;
        self.broken = Some(cause);
    }

    /// How its link has ended, if another agent is waited for.
    pub(super) fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Another agent has come in its place, and is told all that the one before may have known.
    pub(super) fn resumes(&mut self, channel: Channel, known: Vec<ToAgent>) {
        self.early.retain(|message| matches!(message, ToAgent::End));
        let signals = self.to_all.iter().map(|signal| ToAgent::Signal { to: None, signal: signal.as_raw() });
        self.early.splice(..0, known.into_iter().chain(signals));
        self.broken = None;
        self.connected(channel);
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    pub(super) fn send(&mut self, message: ToAgent) {
        match &mut self.link {
            Some(link) => link.send(&message),
            None => self.early.push(message),
        }
    }

    /// Sends a signal to all its processes.
    pub(super) fn signal_all(&mut self, signal: Signal) {
        note(&mut self.to_all, signal);
        self.send(ToAgent::Signal { to: None, signal: signal.as_raw() });
    }

    pub(super) fn dismiss(&mut self) {
        if !std::mem::replace(&mut self.dismissed, true) {
            self.send(ToAgent::End);
        }
    }

    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed
    }

    pub(super) fn flush(&mut self) {
        self.link.iter_mut().for_each(Control::flush);
    }

    pub(super) fn link(&self) -> Option<&Control> {
        self.link.as_ref()
    }

    /// What it has said, and how its link ended if it did.
    pub(super) fn receive(&mut self) -> (Vec<FromAgent>, std::io::Result<()>) {
        let mut messages = Vec::new();
        let open = self.link.as_mut().map(|link| link.receive(|message| messages.push(message)));
        (messages, open.unwrap_or(Ok(())))
    }

    /// It did not come, or cannot do what it is there for.
    pub(super) fn refused(&self, why: &str) -> LaunchError {
        LaunchError::Host { host: self.host.clone(), command: self.command.clone(), why: why.into() }
    }
}

/// A signal comes behind those that count: of stops and continuations only the last one does.
fn note(signals: &mut Vec<Signal>, signal: Signal) {
    let pauses = |signal: &Signal| [Signal::STOP, Signal::CONT].contains(signal);
    signals.retain(|before| *before != signal && !(pauses(before) && pauses(&signal)));
    signals.push(signal);
}

/// The words after the host with which `program` becomes an agent there. `ssh` joins them with blanks and gives the line
/// to a shell; words that a shell would take as something else are quoted, others are left as they are, so that a
/// command that runs them without a shell may be used too.
pub(super) fn command(program: &Path, agent: &str) -> [OsString; 2] {
    [quoted(program.as_os_str()), agent.into()]
}

/// A word as a shell reads it.
pub fn quoted(word: &OsStr) -> OsString {
    let bytes = word.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,@%:=".contains(byte) || *byte >= 0x80;
    if bytes.iter().all(plain) && !bytes.is_empty() {
        return word.to_owned();
    }
    let mut quoted = b"'".to_vec();
    for byte in bytes {
        if *byte == b'\'' { quoted.extend_from_slice(b"'\\''") } else { quoted.push(*byte) }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn of_stops_and_continuations_the_last_one_counts() {
        let mut signals = vec![];
        let mut after = |signal| {
            note(&mut signals, signal);
            signals.clone()
        };
        assert_eq!(after(Signal::STOP), [Signal::STOP]);
        assert_eq!(after(Signal::CONT), [Signal::CONT]);
        assert_eq!(after(Signal::TERM), [Signal::CONT, Signal::TERM]);
        assert_eq!(after(Signal::STOP), [Signal::TERM, Signal::STOP]);
        assert_eq!(after(Signal::TERM), [Signal::STOP, Signal::TERM]);
    }

    #[test]
    fn words_survive_a_shell_that_gets_them_joined() {
        for program in
            ["/usr/bin/ftrun", "/a b/it's \"here\" $HOME `x` \\ ;&|<>(){}[]*?!~#", "/ä/ftrun", "/new\nline"]
        {
            let [word, agent] = command(Path::new(program), "--as-agent");
            let mut line = OsString::from("printf '%s|%s' ");
            line.push(&word);
            line.push(" ");
            line.push(&agent);
            let output = Command::new("/bin/sh").arg("-c").arg(&line).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{program}|--as-agent"));
        }
        assert_eq!(command(Path::new("/usr/bin/ftrun"), "--as-agent")[0], "/usr/bin/ftrun");
    }
}
