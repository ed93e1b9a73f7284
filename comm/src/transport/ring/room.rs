//! How much memory a process has beside its links, all together. With very many ranks on a host the first pairs that talk have some, and the others
//! have their sockets alone: so neither memory nor the looks at it grow with the ranks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes for the links of a process within its host. It is mapped memory; what no message has touched is not there. All pairs of up to 400 ranks have a part. While
/// the links of one generation give way to those of the next both have some, so with more than some 60 ranks a few new ones may find none.
const ROOM_BYTES: usize = 8 << 20;

/// Bytes that are left; shared by the caller, who opens links, and the service thread, which accepts them.
#[derive(Clone, Debug)]
pub struct Room(Arc<AtomicUsize>);

impl Default for Room {
    fn default() -> Self {
        Self::of(ROOM_BYTES)
    }
}

impl Room {
    /// With so many bytes.
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes so many of them for as long as the claim lives.
    ///
    /// # Errors
    /// So many are not left.
    pub(super) fn claim(&self, bytes: usize) -> io::Result<Claim> {
        let takes = |left: usize| left.checked_sub(bytes);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, takes) {
            Ok(_) => Ok(Claim { room: self.clone(), bytes }),
            Err(_) => Err(io::Error::new(io::ErrorKind::OutOfMemory, "other links have it")),
        }
    }
}

/// A part of a [`Room`].
#[derive(Debug)]
pub(super) struct Claim {
    room: Room,
    bytes: usize,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.room.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_claimed_is_there_again_when_the_claim_ends() {
        let room = Room::of(100);
        let one = room.claim(60).unwrap();
        assert!(room.clone().claim(41).is_err(), "they have it together");
        let two = room.claim(40).unwrap();
        drop(one);
        assert!(room.claim(61).is_err());
        let _three = room.claim(60).unwrap();
        drop(two);
        assert!(room.claim(40).is_ok());
    }
}
