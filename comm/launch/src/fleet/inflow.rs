//! Standard input on its way to rank 0 on another host: through a pipe to the launcher's own hands, and in messages to
//! the agent, never more than the agent has room for.

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
    pub(super) pipe: PipeReader,
    /// Bytes that the process has not taken yet.
    pub(super) under_way: usize,
}

impl Fleet {
    /// A pipe for standard input of a process on another host.
    pub(super) fn inflow(&mut self, peer: PeerId, at: usize) -> std::io::Result<OwnedFd> {
        let (pipe, into) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        self.inflow = Some(Inflow { peer, at, pipe, under_way: 0 });
        Ok(into.into())
    }

    /// Hands standard input on.
    pub(super) fn feed(&mut self) {
        let Some(inflow) = &mut self.inflow else { return };
        let Some(Door::Agent(remote)) = self.doors.get_mut(inflow.at) else { return };
        let mut buffer = [0; 8 << 10];
        let room = buffer.len().min(INPUT_WINDOW - inflow.under_way.min(INPUT_WINDOW));
        if room == 0 {
            return;
        }
        let (peer, read) = (inflow.peer, inflow.pipe.read(&mut buffer[..room]));
        if let Ok(count) = read {
            inflow.under_way += count;
            remote.send(ToAgent::Input { peer, bytes: buffer[..count].to_vec() });
            if count == 0 {
                self.inflow = None;
            }
        }
    }
}
