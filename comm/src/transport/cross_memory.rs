//! Memory of other processes of this host, by the kernel's cross memory attach (`process_vm_readv`).
//!
//! The kernel lets a process read the memory of another one that it could debug: of the same user, and with the security module
//! Yama only of its descendants and of those who have allowed it. Where it does not, nothing is read, and messages go
//! over their links.

use std::io::IoSliceMut;

use nix::errno::Errno;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use rustix::process::{PTracer, getppid, set_ptracer};
use socket2::Socket;

/// A process whose memory may be in reach.
#[derive(Clone, Copy, Debug)]
pub struct Neighbor(Pid);

impl Neighbor {
    /// The memory of this process.
    pub fn myself() -> Self {
        Self(Pid::this())
    }

    /// Who is at the other end of a Unix socket, if it has a number here.
    pub(super) fn of(socket: &Socket) -> Option<Self> {
        if !socket.local_addr().ok()?.is_unix() {
            return None;
        }
        // Whoever is in another namespace of processes, and out of sight, has number 0.
        let process = getsockopt(socket, PeerCredentials).ok()?.pid();
        (process > 0).then(|| Self(Pid::from_raw(process)))
    }

    /// The number that the system has given to the process.
    pub(super) fn id(self) -> i32 {
        self.0.as_raw()
    }

    /// Fills `into` with its memory from the address `from` on.
    pub fn read(self, from: u64, into: &mut [u8]) -> bool {
        let mut done = 0;
        while done < into.len() {
            let Ok(base) = usize::try_from(from.saturating_add(done as u64)) else { return false };
            let len = into.len() - done;
            let mut local = [IoSliceMut::new(&mut into[done..])];
            match process_vm_readv(self.0, &mut local, &[RemoteIoVec { base, len }]) {
                Ok(count) if count > 0 => done += count,
                Err(Errno::EINTR) => {}
                _ => return false,
            }
        }
        true
    }
}

/// Lets the processes that have the same parent as this one read its memory.
pub(super) fn admit_siblings() {
    // Without Yama there is nothing to allow, and the kernel says so.
    if let Some(parent) = getppid() {
        let _ = set_ptracer(PTracer::ProcessID(parent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_where_there_is_some() {
        let bytes: Vec<u8> = (0..100_000).map(|i| (i * 7 / 3) as u8).collect();
        let mut into = vec![0; bytes.len() - 5];
        assert!(Neighbor::myself().read(bytes.as_ptr() as u64 + 5, &mut into));
        assert_eq!(into, bytes[5..]);
        assert!(!Neighbor::myself().read(8, &mut into), "nothing is there");
        assert!(!Neighbor::myself().read(u64::MAX - 3, &mut into));
    }

    #[test]
    fn the_other_end_of_a_unix_socket_is_known() {
        let (one, _other) = Socket::pair(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        let word = Box::new(0x1234_5678_9abc_def0_u64);
        let mut into = [0; 8];
        let neighbor = Neighbor::of(&one).expect("it is this process");
        assert!(neighbor.read(std::ptr::from_ref(&*word) as u64, &mut into));
        assert_eq!(u64::from_ne_bytes(into), *word);
    }
}
