//! Standard input on its way to ranks on other hosts: through a pipe to the launcher's own hands,
//! and in messages to the agent, never more than the agent has room for.

use std::collections::VecDeque;
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;

use super::{Door, Fleet};
use ft_proto::rank::PeerId;
use ft_proto::wire::agent::{INPUT_WINDOW, ToAgent};

/// Standard input on its way to a process on another host.
#[derive(Debug)]
pub(super) struct Inflow {
    pub(super) peer: PeerId,
    pub(super) at: usize,
    /// None when it has ended.
    pub(super) pipe: Option<PipeReader>,
    /// Bytes that the process has not taken yet.
    under_way: VecDeque<u8>,
}

impl Inflow {
    /// What to read next, if there is room for it.
    pub(super) fn source(&self) -> Option<&PipeReader> {
        self.pipe.as_ref().filter(|_| self.under_way.len() < INPUT_WINDOW)
    }

    /// The process has taken so many bytes.
    pub(super) fn taken(&mut self, bytes: usize) {
        self.under_way.drain(..bytes.min(self.under_way.len()));
    }

    /// What an agent has to know that takes the place of another.
    pub(super) fn again(&self) -> Vec<ToAgent> {
        let input = |bytes| ToAgent::Input { peer: self.peer, bytes };
        let bytes: Vec<u8> = self.under_way.iter().copied().collect();
        let end = self.pipe.is_none().then(|| input(vec![]));
        (!bytes.is_empty()).then(|| input(bytes)).into_iter().chain(end).collect()
    }
}

impl Fleet {
    /// A pipe for standard input of a process on another host.
    pub(super) fn inflow(&mut self, peer: PeerId, at: usize) -> std::io::Result<OwnedFd> {
        let (pipe, into) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        self.inflows.insert(peer, Inflow { peer, at, pipe: Some(pipe), under_way: VecDeque::new() });
        self.receivers.read_here();
        Ok(into.into())
    }

    /// Hands standard input on.
    pub(super) fn feed(&mut self) {
        for inflow in self.inflows.values_mut() {
            let Some(Door::Agent(remote)) = self.doors.get_mut(inflow.at) else { continue };
            let mut buffer = [0; 8 << 10];
            let room = buffer.len().min(INPUT_WINDOW - inflow.under_way.len().min(INPUT_WINDOW));
            let Some(pipe) = inflow.pipe.as_mut().filter(|_| room > 0) else { continue };
            if let Ok(count) = pipe.read(&mut buffer[..room]) {
                inflow.under_way.extend(&buffer[..count]);
                remote.send(ToAgent::Input { peer: inflow.peer, bytes: buffer[..count].to_vec() });
                if count == 0 {
                    inflow.pipe = None;
                }
            }
        }
    }
}
