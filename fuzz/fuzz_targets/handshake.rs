//! The handshake between an honest client and an honest server whose bytes are changed on the way, and arbitrary bytes
//! to either: a link opens only if both hold the key and nothing was changed.

#![no_main]

use arbitrary::Arbitrary;
use ft_comm::PeerId;
use ft_proto::wire::handshake::{
    Client, HELLO_BYTES, JobKey, Opening, PREFIX_BYTES, PROOF_BYTES, REPLY_BYTES, Server, Versions,
};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    opening: (u32, u32, u32),
    me: u32,
    /// What is added to the bytes of each message on the way.
    hello: [u8; HELLO_BYTES],
    reply: [u8; REPLY_BYTES],
    proof: [u8; PROOF_BYTES],
    /// Messages of a stranger instead.
    raw: bool,
    same_key: bool,
    text: &'a str,
}

fn changed<const N: usize>(bytes: &[u8; N], by: &[u8; N]) -> [u8; N] {
    std::array::from_fn(|at| bytes[at].wrapping_add(by[at]))
}

fuzz_target!(|input: Input<'_>| {
    if let Some(key) = JobKey::from_text(input.text) {
        assert_eq!(key.to_text(), input.text.to_ascii_lowercase());
    }
    let ours = JobKey { job: [1; 16], key: [2; 32] };
    let theirs = JobKey { key: [if input.same_key { 2 } else { 3 }; 32], ..ours.clone() };
    let (from, to, generation) = input.opening;
    let opening = Opening { from: PeerId(from), to: PeerId(to), generation };
    let client = Client::new(&theirs, opening, [4; 32]);
    if input.raw {
        // The fuzzer sees what its bytes are compared with, so it gets to know even a proof; but no other one passes.
        let nonce = input.reply[..32].try_into().expect("32 bytes");
        let honest = Server::new(&theirs, PeerId(to), client.hello(), nonce).expect("an honest hello");
        let versions = Versions::OURS.to_bytes();
        if input.reply[32..36] == versions {
            assert_eq!(client.reply(&input.reply).is_ok(), honest.reply() == input.reply);
        }
        // The judgment by the first bytes refuses nobody who would be let in.
        let server = Server::new(&ours, PeerId(input.me), &input.hello, [5; 32]);
        let is_judged = (0..=HELLO_BYTES).all(|length| ours.judge(&input.hello[..length]).is_ok());
        assert!(server.is_err() || is_judged);
        if let Ok(server) = server
            && input.hello[32..36] == versions
        {
            let opening = &input.hello[PREFIX_BYTES..PREFIX_BYTES + Opening::BYTES];
            let opening = Opening::from_bytes(opening.try_into().expect("the length of an opening"));
            let client = Client::new(&ours, opening, input.hello[36..68].try_into().expect("32 bytes"));
            assert_eq!(*client.hello(), input.hello, "a hello is taken that no client sends");
            let proof = client.reply(&server.reply()).expect("both know the key");
            assert_eq!(server.proof(&input.proof).ok(), (proof == input.proof).then_some(opening));
        }
        return;
    }
    let hello = changed(client.hello(), &input.hello);
    let Ok(server) = Server::new(&ours, PeerId(input.me), &hello, [5; 32]) else {
        assert!(hello != *client.hello() || input.me != to || !input.same_key, "an honest client is refused");
        return;
    };
    let reply = changed(&server.reply(), &input.reply);
    let intact = hello == *client.hello() && reply == server.reply() && input.same_key;
    let Ok(proof) = client.reply(&reply) else {
        return assert!(!intact, "an honest server is refused");
    };
    assert!(intact, "a client opens a link over changed bytes");
    let sent = changed(&proof, &input.proof);
    match server.proof(&sent) {
        Ok(opened) => assert!(sent == proof && opened == opening),
        Err(_) => assert!(sent != proof, "an honest proof is refused"),
    }
});
