//! The handshake that opens a link between hosts: Noise, pattern `NNpsk0` with the job key (The Noise Protocol Framework,
//! revision 34, section 9), by the crate `snow`. It gives both sides fresh keys for what follows ([`super::seal`]).
//!
//! ```text
//! client                                                                   server
//!   prefix, e, sealed (from, to, generation, versions, suites)  ->
//!   <-  e, sealed (versions, suites, bytes sent)
//!   the first record, empty  ->                                             the link is open
//! ```
//!
//! Only who knows the job key can say any of it. Both sides say what they speak inside what is sealed and take the best
//! that both know, so nobody between them can talk them into less. The empty record shows that the client lives: its first
//! message could be an old one. How many bytes the server has sent to the client over links that are open already is for those
//! who only ask ([`super::accounts`]).

use snow::{Builder, HandshakeState};

use super::channel::Sealed;
use super::seal::{FRAME_BYTES, Half, Suite};
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::{HandshakeError, JobKey, MAGIC_SEALED, Opening, PREFIX_BYTES, Versions};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// What the key of the job is used for here.
const PURPOSE: &str = "ft-comm 2026-11 links between hosts";

const KEY_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// What both sides say of themselves: versions and suites.
const OFFER_BYTES: usize = 4 + 1;
/// What the client says.
const WISH_BYTES: usize = Opening::BYTES + OFFER_BYTES;
/// What the server says.
const ANSWER_BYTES: usize = OFFER_BYTES + 8;

/// Bytes of the client's first message.
pub(super) const HELLO_BYTES: usize = PREFIX_BYTES + KEY_BYTES + WISH_BYTES + TAG_BYTES;
/// Bytes of the server's answer.
pub(super) const REPLY_BYTES: usize = KEY_BYTES + ANSWER_BYTES + TAG_BYTES;
/// Bytes of the client's proof.
pub(super) const PROOF_BYTES: usize = FRAME_BYTES;

fn prefix(key: &JobKey) -> Vec<u8> {
    [&MAGIC_SEALED[..], &key.job].concat()
}

fn state(key: &JobKey, is_client: bool) -> Box<HandshakeState> {
    let secret = blake3::derive_key(PURPOSE, &key.key);
    let (pattern, prefix) = (PATTERN.parse().expect("a pattern that snow knows"), prefix(key));
    let builder = Builder::new(pattern).psk(0, &secret).and_then(|builder| builder.prologue(&prefix));
    let state = builder.and_then(|b| if is_client { b.build_initiator() } else { b.build_responder() });
    Box::new(state.expect("the pattern needs nothing else"))
}

fn offer(secret: bool) -> [u8; OFFER_BYTES] {
    let [a, b, c, d] = Versions::OURS.to_bytes();
    [a, b, c, d, Suite::offered(secret)]
}

/// The suite that both sides take.
fn agree(secret: bool, theirs: [u8; OFFER_BYTES]) -> Result<Suite, HandshakeError> {
    let [a, b, c, d, suites] = theirs;
    Versions::OURS.agree(Versions::from_bytes([a, b, c, d]))?;
    Suite::best(Suite::offered(secret), suites).ok_or(HandshakeError::Secrecy)
}

/// The client's side of one handshake.
#[derive(Debug)]
pub(super) struct Client {
    state: Box<HandshakeState>,
    hello: Vec<u8>,
    secret: bool,
}

impl Client {
    /// Starts a handshake; `secret` says whether nobody is to read what will be sent.
    pub(super) fn new(key: &JobKey, opening: Opening, secret: bool) -> Self {
        let mut state = state(key, true);
        let wish = [&opening.to_bytes()[..], &offer(secret)].concat();
        let mut hello = prefix(key);
        hello.resize(HELLO_BYTES, 0);
        state
            .write_message(&wish, &mut hello[PREFIX_BYTES..])
            .expect("it is the client's turn, and there is room");
        Self { state, hello, secret }
    }

    pub(super) fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// Checks the server's answer; gives the proof to send, what seals and opens all that follows, and what the server has sent.
    pub(super) fn reply(mut self, reply: &[u8]) -> Result<(Vec<u8>, Sealed, u64), HandshakeError> {
        let mut answer = [0; ANSWER_BYTES];
        let read = self.state.read_message(reply, &mut answer);
        if read != Ok(ANSWER_BYTES) {
            return Err(HandshakeError::WrongKey);
        }
        let (theirs, sent) = answer.split_first_chunk().expect("the length is fixed");
        let sent = u64::from_le_bytes(sent.try_into().expect("the length is fixed"));
        let suite = agree(self.secret, *theirs)?;
        let (ours, theirs) = self.state.dangerously_get_raw_split();
        let mut sealer = Half::new(suite, &ours);
        let mut proof = vec![0; PROOF_BYTES];
        sealer.seal(&[], &mut proof).expect("the first record of a key has a number left");
        Ok((proof, Sealed::new(sealer, Half::new(suite, &theirs)), sent))
    }
}

/// The server's side of one handshake, once the hello has arrived.
#[derive(Debug)]
pub(super) struct Server {
    opening: Opening,
    reply: Vec<u8>,
    /// What follows, or why nothing does: the client is told what this side speaks all the same.
    halves: Result<(Half, Half), HandshakeError>,
}

impl Server {
    /// Reads the hello; `sent` says how many bytes this process has sent to the client.
    pub(super) fn new(
        key: &JobKey,
        me: PeerId,
        secret: bool,
        hello: &[u8],
        sent: impl FnOnce(&Opening) -> u64,
    ) -> Result<Self, HandshakeError> {
        key.judge(hello)?;
        let mut state = state(key, false);
        let mut wish = [0; WISH_BYTES];
        let read = state.read_message(&hello[PREFIX_BYTES..], &mut wish);
        if read != Ok(WISH_BYTES) {
            return Err(HandshakeError::WrongKey);
        }
        let (opening, theirs) = wish.split_first_chunk().expect("the length is fixed");
        let opening = Opening::from_bytes(opening);
        if opening.to != me {
            return Err(HandshakeError::WrongPeer);
        }
        let mut reply = vec![0; REPLY_BYTES];
        let answer = [&offer(secret)[..], &sent(&opening).to_le_bytes()].concat();
        state.write_message(&answer, &mut reply).expect("it is the server's turn, and there is room");
        let suite = agree(secret, theirs.try_into().expect("the length is fixed"));
        let halves = suite.map(|suite| {
            let (theirs, ours) = state.dangerously_get_raw_split();
            (Half::new(suite, &ours), Half::new(suite, &theirs))
        });
        Ok(Self { opening, reply, halves })
    }

    pub(super) fn reply(&self) -> &[u8] {
        &self.reply
    }

    /// Checks the client's proof; the link is open.
    pub(super) fn proof(self, proof: &[u8]) -> Result<(Opening, Sealed), HandshakeError> {
        let (sealer, mut opener) = self.halves?;
        match opener.open(proof, &mut []) {
            Ok(()) => Ok((self.opening, Sealed::new(sealer, opener))),
            Err(_) => Err(HandshakeError::WrongKey),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: Opening = Opening { from: PeerId(2), to: PeerId(3), generation: 4 };

    fn key(fill: u8) -> JobKey {
        JobKey { job: [1; 16], key: [fill; 32] }
    }

    fn server(hello: &[u8]) -> Result<Server, HandshakeError> {
        Server::new(&key(7), PeerId(3), true, hello, |_| 0)
    }

    #[test]
    fn both_sides_agree_and_nothing_is_to_be_read_on_the_way() {
        for secret in [true, false] {
            let client = Client::new(&key(7), OPENING, secret);
            let sent = |opening: &Opening| u64::from(opening.generation) << 40;
            let server = Server::new(&key(7), PeerId(3), secret, client.hello(), sent).unwrap();
            let heard = [client.hello(), server.reply()].concat();
            for part in [&key(7).key[..8], &OPENING.to_bytes()[..]] {
                assert!(!heard.windows(part.len()).any(|window| window == part));
            }
            let (proof, _, sent) = client.reply(server.reply()).unwrap();
            assert_eq!(sent, 4 << 40);
            assert_eq!(server.proof(&proof).unwrap().0, OPENING);
        }
    }

    #[test]
    fn strangers_are_refused() {
        let hello = |key: &JobKey| Client::new(key, OPENING, true).hello().to_vec();
        assert_eq!(server(&[0; HELLO_BYTES]).unwrap_err(), HandshakeError::Stranger);
        let other = JobKey { job: [2; 16], ..key(7) };
        assert_eq!(server(&hello(&other)).unwrap_err(), HandshakeError::OtherJob);
        assert_eq!(server(&hello(&key(6))).unwrap_err(), HandshakeError::WrongKey);
        let elsewhere = Server::new(&key(7), PeerId(4), true, &hello(&key(7)), |_| 0);
        assert_eq!(elsewhere.unwrap_err(), HandshakeError::WrongPeer);
    }

    #[test]
    fn no_byte_of_a_handshake_can_be_changed() {
        let client = Client::new(&key(7), OPENING, true);
        for at in 0..HELLO_BYTES {
            let mut hello = client.hello().to_vec();
            hello[at] ^= 1;
            assert!(server(&hello).is_err(), "hello, byte {at}");
        }
        for at in 0..REPLY_BYTES {
            let client = Client::new(&key(7), OPENING, true);
            let mut reply = server(client.hello()).unwrap().reply().to_vec();
            reply[at] ^= 1;
            assert!(client.reply(&reply).is_err(), "reply, byte {at}");
        }
        for at in 0..PROOF_BYTES {
            let client = Client::new(&key(7), OPENING, true);
            let server = server(client.hello()).unwrap();
            let (mut proof, ..) = client.reply(server.reply()).unwrap();
            proof[at] ^= 1;
            assert!(server.proof(&proof).is_err(), "proof, byte {at}");
        }
    }

    #[test]
    fn an_old_handshake_opens_nothing() {
        let client = Client::new(&key(7), OPENING, true);
        let hello = client.hello().to_vec();
        let first = server(&hello).unwrap();
        let (proof, ..) = client.reply(first.reply()).unwrap();
        assert_eq!(server(&hello).unwrap().proof(&proof).unwrap_err(), HandshakeError::WrongKey);
        assert!(first.proof(&proof).is_ok());
    }

    #[test]
    fn sides_that_do_not_both_want_secrecy_say_so() {
        let client = Client::new(&key(7), OPENING, false);
        let server = server(client.hello()).unwrap();
        assert_eq!(client.reply(server.reply()).unwrap_err(), HandshakeError::Secrecy);
        assert_eq!(server.proof(&[0; PROOF_BYTES]).unwrap_err(), HandshakeError::Secrecy);
    }
}
