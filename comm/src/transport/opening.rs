//! The two handshakes that open links as one: within a host ([`ft_proto::wire::handshake`]) and between hosts ([`super::noise`]).

use super::accept::nonce;
use super::accounts::Accounts;
use super::channel::{Carriage, Sealed};
use super::noise;
use ft_proto::rank::PeerId;
use ft_proto::wire::handshake::{self, HandshakeError, JobKey, MAGIC_SEALED, Opening, PREFIX_BYTES};

/// What a process of the job opens and accepts links with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Identity and secret of the job.
    pub key: JobKey,
    /// Whether nobody is to read what is sent between hosts; it is authenticated in any case.
    pub secret: bool,
}

/// The client's side.
#[derive(Debug)]
pub(super) enum Client {
    Near(handshake::Client),
    Far(noise::Client),
}

impl Client {
    pub(super) fn new(credentials: &Credentials, opening: Opening, is_far: bool) -> Self {
        match is_far {
            true => Self::Far(noise::Client::new(&credentials.key, opening, credentials.secret)),
            false => Self::Near(handshake::Client::new(&credentials.key, opening, nonce())),
        }
    }

    pub(super) fn hello(&self) -> &[u8] {
        match self {
            Self::Near(client) => client.hello(),
            Self::Far(client) => client.hello(),
        }
    }

    pub(super) fn reply_bytes(&self) -> usize {
        match self {
            Self::Near(_) => handshake::REPLY_BYTES,
            Self::Far(_) => noise::REPLY_BYTES,
        }
    }

    /// Checks the server's answer, of [`Client::reply_bytes`].
    pub(super) fn reply(self, reply: &[u8]) -> Result<Answered, HandshakeError> {
        match self {
            Self::Near(client) => {
                let reply = reply.try_into().map_err(|_| HandshakeError::Stranger)?;
                Ok(Answered { proof: client.reply(reply)?.to_vec(), carriage: Carriage::Bare, sent: 0 })
            }
            Self::Far(client) => {
                let (proof, sealed, sent) = client.reply(reply)?;
                Ok(Answered { proof, carriage: sealing(sealed), sent })
            }
        }
    }
}

/// What a client has after the server's answer.
pub(super) struct Answered {
    /// What it is to send, so that the link is open.
    pub(super) proof: Vec<u8>,
    /// What takes all that follows.
    pub(super) carriage: Carriage,
    /// Bytes that the server has sent to this process over links between hosts ([`super::accounts`]).
    pub(super) sent: u64,
}

/// The server's side, once the hello has arrived.
#[derive(Debug)]
pub(super) enum Server {
    Near(handshake::Server),
    Far(Box<noise::Server>),
}

impl Server {
    /// Bytes of the first message of a client that has said this much, or of what is to be judged first.
    pub(super) fn hello_bytes(heard: &[u8]) -> usize {
        match heard {
            heard if heard.len() < PREFIX_BYTES => PREFIX_BYTES,
            heard if heard.starts_with(&MAGIC_SEALED) => noise::HELLO_BYTES,
            _ => handshake::HELLO_BYTES,
        }
    }

    /// Reads the client's hello, of [`Server::hello_bytes`].
    pub(super) fn new(
        credentials: &Credentials,
        me: PeerId,
        hello: &[u8],
        accounts: &Accounts,
    ) -> Result<Self, HandshakeError> {
        let Credentials { key, secret } = credentials;
        if hello.starts_with(&MAGIC_SEALED) {
            let sent = |opening: &Opening| accounts.sent(opening.generation, opening.from);
            let server = noise::Server::new(key, me, *secret, hello, sent)?;
            return Ok(Self::Far(Box::new(server)));
        }
        let hello = hello.try_into().map_err(|_| HandshakeError::Stranger)?;
        handshake::Server::new(key, me, hello, nonce()).map(Self::Near)
    }

    /// The answer to send.
    pub(super) fn reply(&self) -> Vec<u8> {
        match self {
            Self::Near(server) => server.reply().to_vec(),
            Self::Far(server) => server.reply().to_vec(),
        }
    }

    pub(super) fn proof_bytes(&self) -> usize {
        match self {
            Self::Near(_) => handshake::PROOF_BYTES,
            Self::Far(_) => noise::PROOF_BYTES,
        }
    }

    /// Checks the client's proof, of [`Server::proof_bytes`]; the link is open.
    pub(super) fn proof(self, proof: &[u8]) -> Result<(Opening, Carriage), HandshakeError> {
        match self {
            Self::Near(server) => {
                let proof = proof.try_into().map_err(|_| HandshakeError::Stranger)?;
                Ok((server.proof(proof)?, Carriage::Bare))
            }
            Self::Far(server) => {
                let (opening, sealed) = server.proof(proof)?;
                Ok((opening, sealing(sealed)))
            }
        }
    }
}

fn sealing(sealed: Sealed) -> Carriage {
    Carriage::Sealed(Box::new(sealed))
}
