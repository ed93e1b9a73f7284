//! The agent's end of its keeper.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Error};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::post::Post;
use super::words::{FromKeeper, ToKeeper};
use crate::guardian;
use crate::process::{Change, Files, Order, Process};
use ft_comm::estate::Ground;
use ft_comm::lifeline::Lifeline;
use ft_proto::arbiter::Exit;
use ft_proto::rank::PeerId;

/// See the module.
#[derive(Debug)]
pub(crate) struct Helm {
    post: Post,
    mark: String,
    /// The keeper.
    keeper: Option<Process>,
    /// What has come while something else was awaited.
    changes: Vec<(PeerId, Change)>,
    /// Processes that were reaped before there was this agent.
    ended: BTreeMap<PeerId, Exit>,
    is_gone: bool,
}

/// A process that was started before there was this agent.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) peer: PeerId,
    pub(crate) process: Process,
    pub(crate) output: [OwnedFd; 2],
    pub(crate) input: Option<File>,
    pub(crate) lifeline: Option<Lifeline>,
}

/// All that an agent gets from its keeper.
pub(crate) struct Handed {
    pub(crate) helm: Helm,
    pub(crate) invitation: String,
    pub(crate) kept: Vec<Kept>,
    pub(crate) ground: Option<Ground>,
    /// The file that ranks execute in their place.
    pub(crate) executable: Option<OwnedFd>,
}

impl Helm {
    /// The keeper is at the other end of standard input.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn take() -> io::Result<Handed> {
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        let mut post = Post::new(UnixStream::from(socket))?;
        let Some(FromKeeper::Handover { invitation, mark, ground, executable, processes, ended }) =
            post.receive(true)?
        else {
            return Err(Error::other("the keeper of this host said something else first"));
        };
        let ground = if ground { post.files(1)?.pop().map(Ground::of) } else { None };
        let executable = if executable { post.files(1)?.pop() } else { None };
        let kept = (0..processes).map(|_| next(&mut post)).collect::<io::Result<_>>()?;
        let ended = ended.into_iter().collect();
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
        let keeper = parent.map(Process::of_another);
        let helm = Self { post, mark, keeper, changes: vec![], ended, is_gone: false };
        Ok(Handed { helm, invitation, kept, ground, executable })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.post.fd()
    }

    /// By what the processes of this host are found.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// The keeper is dead, and so are the processes.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// How a process has ended that is not there any more, and was before there was this agent.
    pub(crate) fn exit_of(&self, peer: PeerId) -> Option<Exit> {
        self.ended.get(&peer).copied()
    }

    /// The launcher has taken this agent for its own.
    pub(crate) fn welcome(&mut self) {
        self.send(&ToKeeper::Welcome, &[]);
    }

    /// Returns `true` if a signal has stopped the keeper.
    pub(crate) fn is_stopped(&self) -> bool {
        self.keeper.as_ref().is_some_and(Process::is_stopped)
    }

    /// The keeper is needed: if a signal has stopped it, it continues. Whoever has stopped it may
    /// have stopped its host, but not this agent, and without the keeper no end of a process of
    /// this host is known.
    pub(crate) fn wake(&self) {
        if let Some(keeper) = self.keeper.as_ref().filter(|keeper| keeper.is_stopped()) {
            let _ = keeper.signal_alone(Signal::CONT);
        }
    }

    fn send(&mut self, message: &ToKeeper, files: &[BorrowedFd<'_>]) {
        self.is_gone |= self.post.send(message, files).is_err();
    }

    /// Has a process started, and kept for the next agent with where its `output` is read and its `input`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn start(
        &mut self,
        peer: PeerId,
        order: &Order,
        files: &Files<OwnedFd>,
        output: &[OwnedFd; 2],
        input: Option<&OwnedFd>,
    ) -> io::Result<Process> {
        let start = ToKeeper::Start {
            peer,
            order: order.clone(),
            folder: std::env::current_dir()?.into_os_string(),
            inherited: files.inherited.iter().map(|(name, _)| name.clone()).collect(),
            reads: input.is_some(),
        };
        self.wake();
        let all = files.fds().chain(output.iter().chain(input).map(AsFd::as_fd));
        self.send(&start, &all.collect::<Vec<_>>());
        loop {
            match self.post.receive(true) {
                Ok(Some(FromKeeper::Started { pid })) => return Ok(Process::of_another(pid)),
                Ok(Some(FromKeeper::NotStarted { errno, why })) => {
                    return Err(errno.map_or_else(|| Error::other(why), Error::from_raw_os_error));
                }
                Ok(Some(FromKeeper::Changed { peer, change })) => self.changes.push((peer, change)),
                Ok(_) => return Err(Error::other("the keeper of this host is out of step")),
                Err(error) => {
                    self.is_gone = true;
                    return Err(error);
                }
            }
        }
    }

    /// What has become of processes since the last call.
    pub(crate) fn changes(&mut self) -> Vec<(PeerId, Change)> {
        while !self.is_gone {
            match self.post.receive(false) {
                Ok(Some(FromKeeper::Changed { peer, change })) => self.changes.push((peer, change)),
                Ok(None) => break,
                Ok(Some(_)) | Err(_) => self.is_gone = true,
            }
        }
        std::mem::take(&mut self.changes)
    }

    /// Standard input of a process ends.
    pub(crate) fn end_input(&mut self, peer: PeerId) {
        self.wake(); // it has the other copy of the pipe
        self.send(&ToKeeper::EndInput { peer }, &[]);
    }

    /// All that is to be known of the end of a process is known.
    pub(crate) fn reap(&mut self, peer: PeerId) {
        self.send(&ToKeeper::Reap { peer }, &[]);
    }

    /// The keeper sees to what is left when this agent has ended; if it is gone itself, that is done here.
    pub(crate) fn end(&mut self) {
        self.wake();
        self.changes();
        if self.is_gone {
            guardian::end_all(&self.mark);
        }
    }
}

fn next(post: &mut Post) -> io::Result<Kept> {
    let Some(FromKeeper::Process { peer, pid, reads, lifeline }) = post.receive(true)? else {
        return Err(Error::other("the keeper of this host has fewer processes than it said"));
    };
    let mut files = post.files(2 + usize::from(reads) + usize::from(lifeline))?.into_iter();
    let mut file = || files.next().ok_or(io::ErrorKind::UnexpectedEof);
    Ok(Kept {
        peer,
        process: Process::of_another(pid),
        output: [file()?, file()?],
        input: if reads { Some(file()?.into()) } else { None },
        lifeline: if lifeline { Lifeline::of(&file()?).ok() } else { None },
    })
}
