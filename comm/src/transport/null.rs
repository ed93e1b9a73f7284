//! The transport of a job of one rank, which has nobody to talk to.

use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;

use super::{LinkError, LinkId, Transport};
use ft_proto::rank::{Generation, PeerId};

/// The transport of a job of one rank: it has no links.
#[derive(Debug, Default)]
pub struct NullTransport;

impl Transport for NullTransport {
    fn change(&mut self, _: Generation, _: &[(PeerId, String)]) {}

    fn open(&mut self, peer: PeerId) -> Result<LinkId, LinkError> {
        Err(LinkError::Down(format!("process {} does not exist", peer.0)))
    }

    fn accepted(&mut self) -> Option<(PeerId, LinkId)> {
        None
    }

    fn send(&mut self, _: LinkId, _: &[IoSlice<'_>]) -> Result<usize, LinkError> {
        Ok(0)
    }

    fn receive(&mut self, _: LinkId, _: &mut [IoSliceMut<'_>]) -> Result<usize, LinkError> {
        Ok(0)
    }

    fn wait(&mut self, _: &[LinkId], timeout: Duration, _: &mut Vec<LinkId>) {
        std::thread::park_timeout(timeout);
    }

    fn relax(&mut self) {}

    fn close(&mut self, _: LinkId) {}
}
