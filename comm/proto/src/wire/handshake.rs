//! The handshake that opens a link within a host: both sides prove that they know the key of the job, which never
//! crosses the wire, and agree on who they are, in which generation they speak, and in which version of the protocol.
//!
//! ```text
//! client                                       server
//!   Hello  job, from, to, generation, versions, nonce, proof("hello")  ->
//!   <-  Reply  nonce, versions, proof("server", transcript)
//!   Proof  proof("client", transcript)                ->   the link is open
//! ```
//!
//! The transcript is the hello, the server's nonce and its versions; a proof is BLAKE3 keyed with the job key over a label
//! and the transcript. Fresh nonces on both sides make an old recording worthless, and the labels keep one
//! side's proof from serving as the other's. All messages have a fixed length, so a stranger can make the
//! server hold at most [`HELLO_BYTES`] bytes; and as a hello is proved itself, a stranger gets no further than that.
//!
//! What follows the handshake is as safe as the host that both sides are on. Between hosts there is another one, which
//! makes the keys for what follows (`transport/noise.rs`); both begin with the same [`PREFIX_BYTES`].

use crate::rank::{Generation, PeerId};

/// Bytes that every first message begins with: the manner of the link ([`MAGIC`], [`MAGIC_SEALED`]) and the job.
pub const PREFIX_BYTES: usize = 4 + 16;
/// Bytes of the client's first message.
pub const HELLO_BYTES: usize = SIGNED_BYTES + 32;
/// Bytes of it that its proof is for.
const SIGNED_BYTES: usize = PREFIX_BYTES + 4 + 4 + 4 + 4 + 32;
/// Bytes of the server's answer.
pub const REPLY_BYTES: usize = 32 + 4 + 32;
/// Bytes of the client's proof.
pub const PROOF_BYTES: usize = 32;

/// How the first message of a link within a host begins.
pub const MAGIC: [u8; 4] = *b"DKLn";
/// How that of a link between hosts begins.
pub const MAGIC_SEALED: [u8; 4] = *b"DKLs";

/// The versions of the protocol that one side speaks, from the first to the last. They are told inside what is authenticated,
/// so nobody on the way can talk two sides into an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Versions {
    /// Those of this crate.
    pub const OURS: Self = Self { first: 10, last: 10 };

    /// The version that two sides speak: the last that both know.
    ///
    /// # Errors
    /// [`HandshakeError::Version`]: there is none.
    pub fn agree(self, theirs: Self) -> Result<u16, HandshakeError> {
        let last = self.last.min(theirs.last);
        if last >= self.first.max(theirs.first) {
            Ok(last)
        } else {
            Err(HandshakeError::Version { ours: self, theirs })
        }
    }

    /// As bytes on the wire.
    pub fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.first.to_le_bytes(), self.last.to_le_bytes());
        [a, b, c, d]
    }

    /// From bytes on the wire.
    pub fn from_bytes([a, b, c, d]: [u8; 4]) -> Self {
        Self { first: u16::from_le_bytes([a, b]), last: u16::from_le_bytes([c, d]) }
    }
}

impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{} to {}", self.first, self.last)
        }
    }
}

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
    /// Bytes that [`JobKey::to_text`] writes.
    pub const TEXT_BYTES: usize = 96;

    /// Reads what [`JobKey::to_text`] wrote.
    pub fn from_text(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != Self::TEXT_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
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

    /// Whether what a client has said so far is how a first message of this job begins.
    ///
    /// # Errors
    /// It is not: whatever follows, nobody of the job is at the other end.
    pub fn judge(&self, heard: &[u8]) -> Result<(), HandshakeError> {
        let begins = |expected: &[u8], heard: &[u8]| heard.iter().zip(expected).all(|(a, b)| a == b);
        if !begins(&MAGIC, heard) && !begins(&MAGIC_SEALED, heard) {
            return Err(HandshakeError::Stranger);
        }
        if !begins(&self.job, heard.get(MAGIC.len()..).unwrap_or_default()) {
            return Err(HandshakeError::OtherJob);
        }
        Ok(())
    }

    fn proof(&self, label: &str, parts: [&[u8]; 3]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(label.as_bytes());
        for part in parts {
            hasher.update(part);
        }
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
    /// Not our protocol.
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
    /// There is no version of the protocol that both sides speak.
    #[error(
        "the other side speaks version {theirs} of the protocol, this one {ours}: build launcher and program from the same release"
    )]
    Version {
        /// What this side speaks.
        ours: Versions,
        /// What the other side speaks.
        theirs: Versions,
    },
    /// One side wants what is sent to be secret, the other one does not.
    #[error("the other side does not agree on whether messages are secret")]
    Secrecy,
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the length of a message is fixed")
}

impl Opening {
    /// Bytes of it on the wire.
    pub const BYTES: usize = 12;

    /// As bytes on the wire.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(&self.from.0.to_le_bytes());
        out[4..8].copy_from_slice(&self.to.0.to_le_bytes());
        out[8..].copy_from_slice(&self.generation.to_le_bytes());
        out
    }

    /// From bytes on the wire.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let number = |at| u32::from_le_bytes(chunk(bytes, at));
        Self { from: PeerId(number(0)), to: PeerId(number(4)), generation: number(8) }
    }
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
        let versions = Versions::OURS.to_bytes();
        let signed = [&MAGIC[..], &key.job, &opening.to_bytes(), &versions, &nonce].concat();
        let mut hello = [0; HELLO_BYTES];
        hello[..SIGNED_BYTES].copy_from_slice(&signed);
        hello[SIGNED_BYTES..].copy_from_slice(key.proof("hello", [&signed, &[], &[]]).as_bytes());
        Self { key: key.clone(), hello }
    }

    /// The first message.
    pub fn hello(&self) -> &[u8; HELLO_BYTES] {
        &self.hello
    }

    /// Checks the server's reply and gives the proof to send; after it the link is open.
    ///
    /// # Errors
    /// [`HandshakeError::WrongKey`]: the server is an impostor. [`HandshakeError::Version`].
    pub fn reply(&self, reply: &[u8; REPLY_BYTES]) -> Result<[u8; PROOF_BYTES], HandshakeError> {
        let parts = [&self.hello[..], &reply[..32], &reply[32..36]];
        // blake3::Hash compares in constant time.
        if self.key.proof("server", parts) != chunk::<32>(reply, 36) {
            return Err(HandshakeError::WrongKey);
        }
        Versions::OURS.agree(Versions::from_bytes(chunk(reply, 32)))?;
        Ok(*self.key.proof("client", parts).as_bytes())
    }
}

/// The server's side of one handshake, once the hello has arrived.
#[derive(Debug)]
pub struct Server {
    key: JobKey,
    hello: [u8; HELLO_BYTES],
    nonce: [u8; 32],
    ours: Versions,
    opening: Opening,
}

impl Server {
    /// Reads the client's hello. `me` is this process, `nonce` fresh random bytes.
    ///
    /// # Errors
    /// The hello is not for this process of this job, or nobody of the job has made it.
    pub fn new(
        key: &JobKey,
        me: PeerId,
        hello: &[u8; HELLO_BYTES],
        nonce: [u8; 32],
    ) -> Result<Self, HandshakeError> {
        if hello[..4] != MAGIC {
            return Err(HandshakeError::Stranger);
        }
        key.judge(hello)?;
        let (signed, proof) = hello.split_at(SIGNED_BYTES);
        if key.proof("hello", [signed, &[], &[]]) != chunk::<32>(proof, 0) {
            return Err(HandshakeError::WrongKey);
        }
        let opening = Opening::from_bytes(&chunk(hello, PREFIX_BYTES));
        if opening.to != me {
            return Err(HandshakeError::WrongPeer);
        }
        Ok(Self { key: key.clone(), hello: *hello, nonce, ours: Versions::OURS, opening })
    }

    /// The same for a side that speaks other versions.
    #[cfg(test)]
    fn speaking(self, ours: Versions) -> Self {
        Self { ours, ..self }
    }

    fn proof_of(&self, label: &str) -> blake3::Hash {
        self.key.proof(label, [&self.hello, &self.nonce, &self.ours.to_bytes()])
    }

    /// The answer to send.
    pub fn reply(&self) -> [u8; REPLY_BYTES] {
        let mut out = [0; REPLY_BYTES];
        out[..32].copy_from_slice(&self.nonce);
        out[32..36].copy_from_slice(&self.ours.to_bytes());
        out[36..].copy_from_slice(self.proof_of("server").as_bytes());
        out
    }

    /// Checks the client's proof; the link is open.
    ///
    /// # Errors
    /// [`HandshakeError::WrongKey`], [`HandshakeError::Version`].
    pub fn proof(&self, proof: &[u8; PROOF_BYTES]) -> Result<Opening, HandshakeError> {
        if self.proof_of("client") != *proof {
            return Err(HandshakeError::WrongKey);
        }
        self.ours.agree(Versions::from_bytes(chunk(&self.hello, PREFIX_BYTES + Opening::BYTES)))?;
        Ok(self.opening)
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
        // Wrong key on the client's side, at its first and at its last word, then on the server's.
        let wrong = Client::new(&key(6), OPENING, [8; 32]);
        assert_eq!(refused(wrong.hello(), PeerId(3)), Some(HandshakeError::WrongKey));
        let server = Server::new(&key(7), PeerId(3), client.hello(), [9; 32]).unwrap();
        assert_eq!(server.proof(&[0; 32]), Err(HandshakeError::WrongKey));
        let impostor = Server { key: key(6), ..server };
        assert_eq!(client.reply(&impostor.reply()), Err(HandshakeError::WrongKey));
    }

    #[test]
    fn no_byte_of_a_handshake_can_be_changed() {
        let client = Client::new(&key(7), OPENING, [8; 32]);
        let server = Server::new(&key(7), PeerId(3), client.hello(), [9; 32]).unwrap();
        let proof = client.reply(&server.reply()).unwrap();
        for at in 0..HELLO_BYTES {
            let mut hello = *client.hello();
            hello[at] ^= 1;
            assert!(Server::new(&key(7), PeerId(3), &hello, [9; 32]).is_err(), "hello, byte {at}");
        }
        for at in 0..REPLY_BYTES {
            let mut reply = server.reply();
            reply[at] ^= 1;
            assert_eq!(client.reply(&reply), Err(HandshakeError::WrongKey), "reply, byte {at}");
        }
        for at in 0..PROOF_BYTES {
            let mut proof = proof;
            proof[at] ^= 1;
            assert_eq!(server.proof(&proof), Err(HandshakeError::WrongKey), "proof, byte {at}");
        }
    }

    #[test]
    fn a_stranger_is_known_by_the_first_byte_that_does_not_fit() {
        let hello = *Client::new(&key(7), OPENING, [8; 32]).hello();
        for length in 0..=HELLO_BYTES {
            assert_eq!(key(7).judge(&hello[..length]), Ok(()), "{length} bytes");
        }
        for at in 0..PREFIX_BYTES {
            let mut forged = hello;
            forged[at] ^= 0x40;
            assert!(
                key(7).judge(&forged[..at]).is_ok() && key(7).judge(&forged[..=at]).is_err(),
                "byte {at}"
            );
        }
        assert_eq!(key(7).judge(b"G"), Err(HandshakeError::Stranger));
        assert_eq!(key(7).judge(&[&MAGIC_SEALED[..], &[2]].concat()), Err(HandshakeError::OtherJob));
    }

    #[test]
    fn the_last_version_that_both_speak_is_spoken() {
        let versions = |first, last| Versions { first, last };
        assert_eq!(versions(2, 5).agree(versions(4, 9)), Ok(5));
        assert_eq!(versions(4, 9).agree(versions(2, 5)), Ok(5));
        assert_eq!(versions(3, 3).agree(versions(3, 3)), Ok(3));
        let (old, new) = (versions(1, 2), versions(3, 4));
        assert_eq!(old.agree(new), Err(HandshakeError::Version { ours: old, theirs: new }));
        assert_eq!(Versions::from_bytes(new.to_bytes()), new);

        let client = Client::new(&key(7), OPENING, [8; 32]);
        let server = Server::new(&key(7), PeerId(3), client.hello(), [9; 32]).unwrap();
        let server = server.speaking(versions(40, 41));
        let error = client.reply(&server.reply()).unwrap_err();
        let (said, ours) = (error.to_string(), Versions::OURS);
        let expected = format!("the other side speaks version 40 to 41 of the protocol, this one {ours}:");
        assert!(said.starts_with(&expected), "{said}");
    }

    #[test]
    fn a_replayed_proof_is_refused() {
        let client = Client::new(&key(7), OPENING, [8; 32]);
        let first = Server::new(&key(7), PeerId(3), client.hello(), [9; 32]).unwrap();
        let proof = client.reply(&first.reply()).unwrap();
        let second = Server::new(&key(7), PeerId(3), client.hello(), [10; 32]).unwrap();
        assert_eq!(second.proof(&proof), Err(HandshakeError::WrongKey));
        // Nor does the server's own proof, reflected, serve as the client's.
        let reflected: [u8; 32] = second.reply()[36..].try_into().unwrap();
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
