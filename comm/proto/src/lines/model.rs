//! Random programs over random networks, with lines at random moments and ranks that go back to the last committed one at any moment. At the end each message must have been
//! received once, in order, and with the bytes that its sender's last history has: what ranks did is what they might have done without any failure.

use std::collections::BTreeSet;

use crate::rank::Rank;

mod job;
mod local;
mod log;

/// splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
struct Choices(u64);

fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) % end as u64) as usize
    }
}

/// What a rank does next, whatever its state is.
#[derive(Clone, Copy, Debug)]
enum Action {
    Send(Rank, u32),
    /// From this rank, or from any.
    Receive(Option<Rank>, u32),
    /// Asks whether a message with this tag has come.
    Ask(u32),
    /// A line may be drawn here, at the end of this round.
    Boundary(usize),
}

/// For each rank what it does. Messages of a round are received in that or one of the next two.
fn program(choices: &mut Choices, size: usize, rounds: usize) -> Vec<Vec<Action>> {
    let mut actions = vec![vec![vec![]; rounds + 3]; size];
    for round in 0..rounds {
        for _ in 0..choices.below(3 * size) {
            let (from, to) = (choices.below(size), choices.below(size));
            let tag = (2 * round + choices.below(2)) as u32;
            if from == to {
                continue;
            }
            // All receives of a tag are from any rank, or all name theirs.
            let names = mix(u64::from(tag) << 8 | to as u64).is_multiple_of(2);
            actions[from][round].insert(0, Action::Send(to, tag));
            let later = round + mix(u64::from(tag) << 8 | 1 << 40 | to as u64) as usize % 3;
            actions[to][later].push(Action::Receive(names.then_some(from), tag));
            if choices.below(2) == 0 {
                actions[to][later].push(Action::Ask(tag));
            }
        }
    }
    for rank in &mut actions {
        for (number, round) in rank.iter_mut().enumerate() {
            // Sends stay first, so nobody waits for ever.
            let sends = round.iter().filter(|action| matches!(action, Action::Send(..))).count();
            for at in (sends + 1..round.len()).rev() {
                round.swap(at, sends + choices.below(at - sends + 1));
            }
            round.push(Action::Boundary(number));
        }
    }
    actions.into_iter().map(|rounds| rounds.concat()).collect()
}

/// What a rank saves at its line.
#[derive(Clone, Debug, Default)]
struct State {
    digest: u64,
    at: usize,
    /// What it has sent and received so far; the model's, not the program's.
    sent: Vec<(Rank, u32, u64)>,
    received: Vec<(Rank, u32, u64)>,
}

impl State {
    /// What a rank says in a message that it sends now.
    fn says(&mut self, to: Rank, tag: u32) -> u64 {
        let bytes = mix(self.digest ^ (to as u64) << 32 ^ u64::from(tag) ^ self.at as u64);
        self.sent.push((to, tag, bytes));
        bytes
    }

    fn take(&mut self, from: Rank, tag: u32, bytes: u64) {
        self.received.push((from, tag, bytes));
        self.digest = mix(self.digest ^ bytes ^ (from as u64) << 17);
        self.at += 1;
    }

    fn hear(&mut self, answer: bool) {
        self.digest = mix(self.digest ^ u64::from(answer));
    }
}

/// Whether each message was received once, in order of its sender and tag, with the bytes that were sent.
fn judge(states: &[&State]) -> Result<(), String> {
    for (from, sender) in states.iter().enumerate() {
        for (to, receiver) in states.iter().enumerate() {
            let tags: BTreeSet<u32> = sender.sent.iter().map(|(_, tag, _)| *tag).collect();
            for tag in tags {
                let of = |all: &[(Rank, u32, u64)], other: Rank| -> Vec<u64> {
                    let is = |message: &&(Rank, u32, u64)| message.0 == other && message.1 == tag;
                    all.iter().filter(is).map(|(_, _, bytes)| *bytes).collect()
                };
                let (sent, received) = (of(&sender.sent, to), of(&receiver.received, from));
                if sent != received {
                    return Err(format!("{from} to {to}, tag {tag}: sent {sent:x?}, received {received:x?}"));
                }
            }
        }
    }
    Ok(())
}

fn seeds() -> u64 {
    std::env::var("FT_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000)
}
