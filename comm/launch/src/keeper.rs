//! The keeper: the process on another host whose children the ranks there are, so that an agent may die.
//!
//! It does little, so that little can end it: it starts what its agent tells it to, tells what becomes of it, and holds what
//! the next agent needs of each process. When the agent is killed it starts another one, which gets all that, reports to the launcher, and goes
//! on; the ranks notice nothing. When the keeper dies the kernel kills the ranks. When the agent ends by itself, as it does when the job is over or the
//! launcher is gone, the keeper ends all that is left, as the guardian of a launcher does.
//!
//! It is what the launcher's command has started: that becomes the keeper, without an environment, by which other guardians would
//! find it. The environment is kept for the agents and the processes.

mod helm;
mod post;
mod words;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::MemfdFlags;

use crate::crew::LOOK;
use crate::executable::{ENV_EXECUTABLE, SELF};
use crate::guardian;
use crate::process::{self, Change, Files, Order, Process, Variables};
use crate::signals::{bell, rang, reset_signals};
use ft_comm::estate::ENV_GROUND;
use ft_comm::lifeline::ENV_LIFELINE;
use ft_comm::limits;
use ft_comm::transport::timespec;
use ft_proto::arbiter::Exit;
use ft_proto::rank::PeerId;
pub(super) use helm::{Handed, Helm, Kept};
use post::Post;
use words::{FromKeeper, ToKeeper};

/// Status of a process that has panicked, as Rust has it.
const PANICKED: i32 = 101;

/// So many agents in a row may die before the launcher has taken one for its own.
const IN_VAIN_MAX: u32 = 10;

/// What is kept of a process.
#[derive(Debug)]
struct Ward {
    process: Process,
    /// What it was told of last: an agent is told once.
    told: Option<Change>,
    output: [OwnedFd; 2],
    input: Option<OwnedFd>,
    lifeline: Option<OwnedFd>,
}

/// See the module.
struct Keeper {
    /// The word that makes this program an agent of a keeper, and the first two of its arguments.
    words: [&'static str; 2],
    invitation: String,
    environment: Variables,
    mark: String,
    wards: BTreeMap<PeerId, Ward>,
    ended: Vec<(PeerId, Exit)>,
    ground: Option<OwnedFd>,
    /// The file that ranks execute in their place.
    executable: Option<OwnedFd>,
}

/// Makes this process the keeper of a host, to which the invitation has come; `word` is the argument by which this program calls [`keep`].
/// Returns only if that cannot be.
pub(super) fn become_keeper(invitation: &str, word: &str) -> io::Error {
    let prepared = || {
        // An inheritance without a name: the key of the job is in it.
        let mut file =
            std::fs::File::from(rustix::fs::memfd_create("ftrun-invitation", MemfdFlags::CLOEXEC)?);
        file.write_all(invitation.as_bytes())?;
        for (name, value) in std::env::vars_os() {
            file.write_all(&[name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat())?;
        }
        file.rewind()?;
        Ok::<_, io::Error>(file)
    };
    match prepared() {
        Ok(file) => Command::new(SELF).arg0("ftrun").arg(word).env_clear().stdin(file).exec(),
        Err(error) => error,
    }
}

/// Makes this process the keeper that [`agent`](super::agent()) has started; its agents are this program with two arguments, `words`. Returns the status
/// of the last agent when nothing is left.
///
/// # Errors
/// It was started by something else.
pub fn keep(words: [&'static str; 2]) -> Result<u8, String> {
    reset_signals();
    let mut keeper =
        Keeper::new(words).map_err(|error| format!("no keeper can be here: {}", limits::explain(&error)))?;
    process::adopt_orphans();
    let trouble = |error: io::Error| format!("the keeper of this host: {}", limits::explain(&error));
    let child = bell(&[signal_hook::consts::SIGCHLD]).map_err(trouble)?;
    let status = keeper.stay(&child).map_err(trouble);
    process::end(std::mem::take(&mut keeper.wards).into_values().map(|ward| ward.process));
    guardian::end_all(&keeper.mark);
    process::end_orphans(&child);
    status
}

impl Keeper {
    fn new(words: [&'static str; 2]) -> io::Result<Self> {
        let mut text = vec![];
        std::io::stdin().lock().read_to_end(&mut text)?;
        let line = text.iter().position(|byte| *byte == b'\n').ok_or(io::ErrorKind::InvalidData)? + 1;
        let invitation = String::from_utf8(text[..line].to_vec()).map_err(io::Error::other)?;
        let variable = |text: &[u8]| {
            let at = text.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((owned(&text[..at]), owned(&text[at + 1..])))
        };
        Ok(Self {
            words,
            invitation,
            environment: text[line..].split(|byte| *byte == 0).filter_map(variable).collect(),
            mark: guardian::new_mark()?,
            wards: BTreeMap::new(),
            ended: vec![],
            ground: None,
            executable: None,
        })
    }

    /// As long as there is an agent; gives the status of the last one.
    fn stay(&mut self, child: &UnixStream) -> io::Result<u8> {
        let mut in_vain = 0;
        loop {
            let (mut agent, mut post) = self.begin_agent()?;
            let mut is_welcome = false;
            // Whatever is wrong with the line to it is found again at its other end.
            while self.attend(&mut post, child, &mut is_welcome).is_ok() {}
            drop(post);
            let status = agent.wait()?;
            in_vain = if is_welcome { 0 } else { in_vain + 1 };
            // Who ends by itself is not started again.
            let was_struck = status.signal().is_some() || status.code() == Some(PANICKED);
            if !was_struck || in_vain == IN_VAIN_MAX {
                return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
            }
        }
    }

    /// Starts an agent and hands over to it.
    fn begin_agent(&mut self) -> io::Result<(Child, Post)> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(SELF);
        // Out of the group of the keeper, which is ended as a whole where the launcher's command has become it: what is left then is the agent's.
        command.arg0("ftrun").args(self.words).process_group(0).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value))).stdin(OwnedFd::from(theirs));
        let agent = command.spawn()?;
        drop(command); // it has the other end
        let mut post = Post::new(ours)?;
        // If it is dead already, that shows.
        let _ = self.hand_over(&mut post);
        Ok((agent, post))
    }

    fn hand_over(&mut self, post: &mut Post) -> io::Result<()> {
        let handover = FromKeeper::Handover {
            invitation: self.invitation.clone(),
            mark: self.mark.clone(),
            ground: self.ground.is_some(),
            executable: self.executable.is_some(),
            processes: self.wards.len(),
            ended: self.ended.clone(),
        };
        let files = self.ground.iter().chain(&self.executable).map(AsFd::as_fd);
        post.send(&handover, &files.collect::<Vec<_>>())?;
        for (peer, ward) in &mut self.wards {
            ward.told = None;
            let (reads, lifeline) = (ward.input.is_some(), ward.lifeline.is_some());
            let files = ward.output.iter().chain(&ward.input).chain(&ward.lifeline);
            let files: Vec<BorrowedFd<'_>> = files.map(AsFd::as_fd).collect();
            let process = FromKeeper::Process { peer: *peer, pid: ward.process.id(), reads, lifeline };
            post.send(&process, &files)?;
        }
        self.tell(post)
    }

    /// Waits for something to do, and does it.
    ///
    /// # Errors
    /// The agent is gone.
    fn attend(&mut self, post: &mut Post, child: &UnixStream, is_welcome: &mut bool) -> io::Result<()> {
        let mut fds = [PollFd::new(child, PollFlags::IN), PollFd::from_borrowed_fd(post.fd(), PollFlags::IN)];
        let heard = rustix::event::poll(&mut fds, Some(&timespec(LOOK)));
        if rang(child) || heard == Ok(0) {
            self.tell(post)?;
        }
        while let Some(message) = post.receive(false)? {
            match message {
                ToKeeper::Welcome => *is_welcome = true,
                ToKeeper::Start { peer, order, folder, inherited, reads } => {
                    let answer = match self.start(post, peer, &order, &folder, inherited, reads) {
                        Ok(pid) => FromKeeper::Started { pid },
                        Err(error) => {
                            FromKeeper::NotStarted { errno: error.raw_os_error(), why: error.to_string() }
                        }
                    };
                    post.send(&answer, &[])?;
                }
                ToKeeper::EndInput { peer } => {
                    self.wards.get_mut(&peer).into_iter().for_each(|ward| ward.input = None);
                }
                ToKeeper::Reap { peer } => self.reap(peer),
            }
        }
        Ok(())
    }

    /// Says what has become of processes.
    fn tell(&mut self, post: &mut Post) -> io::Result<()> {
        for (peer, ward) in &mut self.wards {
            // What cannot be known is not told: the agent sees by itself that it dies.
            let change = ward.process.change().ok().flatten();
            if let Some(change) = change.filter(|change| ward.told != Some(*change)) {
                ward.told = Some(change);
                post.send(&FromKeeper::Changed { peer: *peer, change }, &[])?;
            }
        }
        Ok(())
    }

    fn start(
        &mut self,
        post: &mut Post,
        peer: PeerId,
        order: &Order,
        folder: &OsStr,
        names: Vec<String>,
        reads: bool,
    ) -> io::Result<u32> {
        let mut files = post.files(5 + names.len() + usize::from(reads))?.into_iter();
        let mut next = || files.next().ok_or(io::ErrorKind::UnexpectedEof);
        let streams = [next()?, next()?, next()?];
        let mut inherited = vec![];
        for name in names {
            inherited.push((name, next()?));
        }
        let (output, input) = ([next()?, next()?], if reads { Some(next()?) } else { None });
        let of = |wanted: &str| inherited.iter().find(|(name, _)| name == wanted).map(|(_, file)| file);
        let copy = |file: Option<&OwnedFd>| file.map(OwnedFd::try_clone).transpose();
        let (lifeline, ground) = (copy(of(ENV_LIFELINE))?, copy(of(ENV_GROUND))?);
        let executable = copy(of(ENV_EXECUTABLE))?;
        let files = Files { streams, inherited };
        let process = process::start(order, files, Some(&self.environment), Some(folder))?;
        self.ground = self.ground.take().or(ground);
        self.executable = self.executable.take().or(executable);
        let pid = process.id();
        self.wards.insert(peer, Ward { process, told: None, output, input, lifeline });
        Ok(pid)
    }

    fn reap(&mut self, peer: PeerId) {
        let Some(mut ward) = self.wards.remove(&peer) else { return };
        match ward.process.change() {
            Ok(Some(Change::Ended(exit))) => self.ended.push((peer, exit)),
            _ => {
                self.wards.insert(peer, ward);
                return;
            }
        }
        ward.process.reap();
    }
}
