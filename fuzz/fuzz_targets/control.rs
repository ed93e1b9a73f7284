//! Control messages and those of agents: arbitrary bytes never panic, what decodes is a message that encodes and decodes to itself, and
//! what a launcher makes of any messages of its ranks ends without a panic. Run it with `-malloc_limit_mb=16`: bytes
//! must not make the decoder allocate more than the longest message has.

#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use ft_comm::PeerId;
use ft_comm::settings::MessageSettings;
use ft_comm::time::Time;
use ft_proto::arbiter::{Arbiter, Config, OnFailure};
use ft_proto::member::Member;
use ft_proto::wire::agent::{FromAgent, ToAgent};
use ft_proto::wire::control::{CONTROL_BYTES_MAX, News, ToArbiter, decode, encode};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

const RANKS: u32 = 3;

/// All messages at the front of `bytes`, which come in two pieces, cut at `cut`.
fn messages<M: Serialize + DeserializeOwned>(bytes: &[u8], cut: usize, mut use_it: impl FnMut(M)) {
    let cut = cut.min(bytes.len());
    let mut pending = Vec::new();
    for piece in [&bytes[..cut], &bytes[cut..]] {
        pending.extend_from_slice(piece);
        loop {
            match decode::<M>(&mut pending) {
                Ok(Some(message)) => {
                    round_trip(&message);
                    use_it(message);
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    assert!(pending.len() < 4 + CONTROL_BYTES_MAX);
}

/// Bytes are compared, as numbers that are none do not equal themselves.
fn round_trip<M: Serialize + DeserializeOwned>(message: &M) {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    encode(message, &mut first);
    let again: M = decode(&mut first.clone()).expect("it was encoded").expect("it is whole");
    encode(&again, &mut second);
    assert_eq!(first, second);
}

fn config() -> Config {
    Config {
        compute: RANKS as usize,
        total: RANKS as usize,
        on_failure: OnFailure::Rebuild,
        spares: 0,
        cuts: vec![],
        joins: true,
        max_restarts: 3,
        interval: Duration::from_millis(100),
        timeout: Duration::from_secs(1),
        groups: vec![],
        messages: MessageSettings {
            watchdog: Some(Duration::from_millis(300)),
            ..MessageSettings::default()
        },
        layers: BTreeMap::new(),
        kills: vec![],
        mtbf: None,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [to_rank, cut, bytes @ ..] = bytes else { return };
    let cut = usize::from(*cut);
    let mut now = Time(0);
    match to_rank & 6 {
        2 => return messages(bytes, cut, |_: ToAgent| ()),
        4 => return messages(bytes, cut, |_: FromAgent| ()),
        _ => {}
    }
    if to_rank & 1 == 1 {
        let mut member = Member::new(now);
        messages(bytes, cut, |message: News| {
            now = now.after(Duration::from_millis(50));
            member.handle(now, message);
            member.tick(now);
            while member.poll_news().is_some() || member.poll_transmit().is_some() {}
        });
        return;
    }
    // Every message comes from another rank in turn.
    let mut arbiter = Arbiter::new(config(), now);
    for peer in 1..=RANKS {
        arbiter.connected(now, PeerId(peer));
        arbiter.handle(now, PeerId(peer), ToArbiter::Join { address: String::new(), report: 0 });
    }
    let mut from = 0;
    messages(bytes, cut, |message: ToArbiter| {
        now = now.after(Duration::from_millis(50));
        from = from % RANKS + 1;
        arbiter.handle(now, PeerId(from), message);
        arbiter.tick(now);
        while arbiter.poll_effect().is_some() {}
    });
});
