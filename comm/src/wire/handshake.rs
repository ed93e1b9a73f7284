//! The handshake that opens every link: both sides prove that they know the key of the job, which never
//! crosses the wire, and agree on who they are and in which generation they speak.
//!
//! ```text
//! client                                       server
//!   Hello  version, job, from, to, generation, nonce  ->
//!   <-  Reply  nonce, proof("server", transcript)
//!   Proof  proof("client", transcript)                ->   the link is open
//! ```
//!
//! The transcript is the hello and the server's nonce; a proof is BLAKE3 keyed with the job key over a label
//! and the transcript. Fresh nonces on both sides make an old recording worthless, and the labels keep one
//! side's proof from serving as the other's. All messages have a fixed length, so a stranger can make the
//! server hold at most [`HELLO_BYTES`] bytes.

use crate::rank::{Generation, PeerId};

/// Bytes of the client's first message.
pub const HELLO_BYTES: usize = 4 + 16 + 4 + 4 + 4 + 32;
/// Bytes of the server's answer.
pub const REPLY_BYTES: usize = 64;
/// Bytes of the client's proof.
pub const PROOF_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"DKL\x01";

/// Identity and secret of a job.
#[derive(Clone, PartialEq, Eq)]
pub struct JobKey {
    /// Random identity of the job; no secret.
    pub job: [u8; 16],
    /// Random secret of the job.
    pub key: [u8; 32],
}

impl std::fmt::Debug for JobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobKey(job {})", hex(&self.job))
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl JobKey {
    /// Reads what [`JobKey::to_text`] wrote.
    pub fn from_text(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 96 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let byte = |i: usize| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..48).map(byte).collect::<Option<_>>()?;
        Some(Self { job: bytes[..16].try_into().ok()?, key: bytes[16..].try_into().ok()? })
    }

    /// Job and key as 96 hexadecimal digits.
    pub fn to_text(&self) -> String {
        hex(&self.job) + &hex(&self.key)
    }

    fn proof(&self, label: &str, hello: &[u8; HELLO_BYTES], nonce: &[u8; 32]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(label.as_bytes()).update(hello).update(nonce);
        hasher.finalize()
    }
}

/// Who opens a link to whom, in which generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The process that connects.
    pub from: PeerId,
    /// The process that it wants to reach.
    pub to: PeerId,
    /// The generation that the link will carry.
    pub generation: Generation,
}

/// Why a handshake was refused. The connection is to be closed; nothing else is affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// Not our protocol or another version of it.
    #[error("the other side does not speak this protocol")]
    Stranger,
    /// Another job.
    #[error("the other side belongs to another job")]
    OtherJob,
    /// The client wanted another process.
    #[error("the link is meant for another process")]
    WrongPeer,
    /// The other side does not know the key.
    #[error("the other side does not know the key of the job")]
    WrongKey,
}

/// The client's side of one handshake.
#[derive(Debug)]
pub struct Client {
    key: JobKey,
    hello: [u8; HELLO_BYTES],
}

impl Client {
    /// Starts a handshake; send [`Client::hello`] first. `nonce` must be fresh random bytes.
    pub fn new(key: &JobKey, opening: Opening, nonce: [u8; 32]) -> Self {
        let mut hello = [0; HELLO_BYTES];
        hello[..4].copy_from_slice(&MAGIC);
        hello[4..20].copy_from_slice(&key.job);
        hello[20..24].copy_from_slice(&opening.from.0.to_le_bytes());
        hello[24..28].copy_from_slice(&opening.to.0.to_le_bytes());
        hello[28..32].copy_from_slice(&opening.generation.to_le_bytes());
        hello[32..].copy_from_slice(&nonce);
        Self { key: key.clone(), hello }
    }

    /// The first message.
    pub fn hello(&self) -> &[u8; HELLO_BYTES] {
        &self.hello
    }

    /// Checks the server's reply and gives the proof to send; after it the link is open.
    ///
    /// # Errors
    /// [`HandshakeError::WrongKey`]: the server is an impostor.
    pub fn reply(&self, reply: &[u8; REPLY_BYTES]) -> Result<[u8; PROOF_BYTES], HandshakeError> {
        let nonce: [u8; 32] = reply[..32].try_into().expect("32 bytes");
        let theirs: [u8; 32] = reply[32..].try_into().expect("32 bytes");
        // blake3::Hash compares in constant time.
        if self.key.proof("server", &self.hello, &nonce) != theirs {
            return Err(HandshakeError::WrongKey);
        }
        Ok(*self.key.proof("client", &self.hello, &nonce).as_bytes())
    }
}

/// The server's side of one handshake, once the hello has arrived.
#[derive(Debug)]
pub struct Server {
    key: JobKey,
    hello: [u8; HELLO_BYTES],
    nonce: [u8; 32],
    opening: Opening,
}

impl Server {
    /// Reads the client's hello. `me` is this process, `nonce` fresh random bytes.
    ///
    /// # Errors
    /// The hello is not for this process of this job.
    pub fn new(
        key: &JobKey,
        me: PeerId,
        hello: &[u8; HELLO_BYTES],
        nonce: [u8; 32],
    ) -> Result<Self, HandshakeError> {
        if hello[..4] != MAGIC {
            return Err(HandshakeError::Stranger);
        }
        if hello[4..20] != key.job {
            return Err(HandshakeError::OtherJob);
        }
        let u32_at = |at: usize| u32::from_le_bytes(hello[at..at + 4].try_into().expect("4 bytes"));
        let opening = Opening { from: PeerId(u32_at(20)), to: PeerId(u32_at(24)), generation: u32_at(28) };
        if opening.to != me {
            return Err(HandshakeError::WrongPeer);
        }
        Ok(Self { key: key.clone(), hello: *hello, nonce, opening })
    }

    /// The answer to send.
    pub fn reply(&self) -> [u8; REPLY_BYTES] {
        let mut out = [0; REPLY_BYTES];
        out[..32].copy_from_slice(&self.nonce);
        out[32..].copy_from_slice(self.key.proof("server", &self.hello, &self.nonce).as_bytes());
        out
    }

    /// Checks the client's proof; the link is open.
    ///
    /// # Errors
    /// [`HandshakeError::WrongKey`].
    pub fn proof(&self, proof: &[u8; PROOF_BYTES]) -> Result<Opening, HandshakeError> {
        if self.key.proof("client", &self.hello, &self.nonce) == *proof {
            Ok(self.opening)
        } else {
            Err(HandshakeError::WrongKey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fill: u8) -> JobKey {
        JobKey { job: [1; 16], key: [fill; 32] }
    }

    const OPENING: Opening = Opening { from: PeerId(2), to: PeerId(3), generation: 4 };

    #[test]
    fn both_sides_agree() {
        let client = Client::new(&key(7), OPENING, [8; 32]);
        let server = Server::new(&key(7), PeerId(3), client.hello(), [9; 32]).unwrap();
        let proof = client.reply(&server.reply()).unwrap();
        assert_eq!(server.proof(&proof), Ok(OPENING));
    }

    #[test]
    fn strangers_are_refused() {
        let client = Client::new(&key(7), OPENING, [8; 32]);
        let other = Client::new(&JobKey { job: [2; 16], key: [7; 32] }, OPENING, [8; 32]);
        let refused = |hello: &[u8; HELLO_BYTES], me| Server::new(&key(7), me, hello, [9; 32]).err();
        assert_eq!(refused(&[0; HELLO_BYTES], PeerId(3)), Some(HandshakeError::Stranger));
        assert_eq!(refused(other.hello(), PeerId(3)), Some(HandshakeError::OtherJob));
        assert_eq!(refused(client.hello(), PeerId(4)), Some(HandshakeError::WrongPeer));
        // Wrong key on the client's, then on the server's side.
        let server = Server::new(&key(6), PeerId(3), client.hello(), [9; 32]).unwrap();
        assert_eq!(client.reply(&server.reply()), Err(HandshakeError::WrongKey));
        assert_eq!(server.proof(&[0; 32]), Err(HandshakeError::WrongKey));
    }

    #[test]
    fn a_replayed_proof_is_refused() {
        let client = Client::new(&key(7), OPENING, [8; 32]);
        let first = Server::new(&key(7), PeerId(3), client.hello(), [9; 32]).unwrap();
        let proof = client.reply(&first.reply()).unwrap();
        let second = Server::new(&key(7), PeerId(3), client.hello(), [10; 32]).unwrap();
        assert_eq!(second.proof(&proof), Err(HandshakeError::WrongKey));
        // Nor does the server's own proof, reflected, serve as the client's.
        let reflected: [u8; 32] = second.reply()[32..].try_into().unwrap();
        assert_eq!(second.proof(&reflected), Err(HandshakeError::WrongKey));
    }

    #[test]
    fn key_text() {
        let key = JobKey { job: [0xab; 16], key: [0x01; 32] };
        assert_eq!(JobKey::from_text(&key.to_text()), Some(key.clone()));
        assert_eq!(JobKey::from_text("00"), None);
        assert!(!format!("{key:?}").contains("0101"), "the key must not be printed");
    }
}
