//! What the launcher has to do for a job on many hosts: messages, bytes and processor time of its side of the protocol, for a start, a
//! second of work, and the loss of a host. The arbiter is the real one, and so is what is written for a link; the ranks answer at once, and
//! there are no sockets. A call of the system for each message is counted with what `--message-us` says, and bytes with `--bytes-us`.
//!
//! `target/release/examples/launcher --hosts 16,64,256 --ranks 8`

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Parser;
use ft_comm::time::Time;
use ft_comm::{OnFailure, PeerId, Rank};
use ft_proto::arbiter::{Arbiter, Config, Effect};
use ft_proto::settings::MessageSettings;
use ft_proto::wire::control::{News, ToArbiter, encode};
use rustix::time::{ClockId, clock_gettime};

#[derive(Parser)]
struct Arguments {
    /// Numbers of hosts
    #[arg(long, value_delimiter = ',', default_value = "2,4,8,16,64,256")]
    hosts: Vec<usize>,
    /// Ranks on each
    #[arg(long, default_value_t = 8)]
    ranks: usize,
    /// Microseconds that a message costs besides: to be sealed and given to the system, or taken from it
    #[arg(long, default_value_t = 4.0)]
    message_us: f64,
    /// Microseconds that a kilobyte of them costs
    #[arg(long, default_value_t = 0.5)]
    kilobyte_us: f64,
}

/// What was done for something.
#[derive(Clone, Copy, Default)]
struct Work {
    messages: u64,
    bytes: u64,
    /// Processor time of the arbiter and of what is written.
    own: Duration,
}

impl Work {
    fn row(&self, arguments: &Arguments) -> String {
        let Self { messages, bytes, own } = *self;
        let (own_ms, kilobytes) = (own.as_secs_f64() * 1e3, bytes as f64 / 1024.0);
        let wire_ms = (messages as f64 * arguments.message_us + kilobytes * arguments.kilobyte_us) / 1e3;
        format!("{messages} | {kilobytes:.0} | {own_ms:.1} | {:.1}", own_ms + wire_ms)
    }
}

struct Job {
    arbiter: Arbiter,
    now: Time,
    /// The process of each rank.
    peers: BTreeMap<Rank, PeerId>,
    total: usize,
    text: Vec<u8>,
}

const INTERVAL: Duration = Duration::from_millis(100);

impl Job {
    fn new(hosts: usize, ranks: usize) -> Self {
        let (total, now) = (hosts * ranks, Time(1));
        let places = (0..total).map(|rank| rank / ranks).collect();
        let config = Config {
            compute: total,
            total,
            on_failure: OnFailure::Rebuild,
            spares: 0,
            max_restarts: 3,
            interval: INTERVAL,
            timeout: 10 * INTERVAL,
            groups: vec![],
            joins: true,
            messages: MessageSettings { hosts: Some(places), ..MessageSettings::default() },
            layers: BTreeMap::new(),
            kills: vec![],
            cuts: vec![],
            mtbf: None,
        };
        let arbiter = Arbiter::new(config, now);
        Self { arbiter, now, peers: BTreeMap::new(), total, text: vec![] }
    }

    /// Does `events` and all that follows from them, with the messages that come in counted by the caller.
    fn work(&mut self, came: u64, events: impl FnOnce(&mut Self)) -> Work {
        let begun = processor_time();
        let mut work = Work { messages: came, ..Work::default() };
        events(self);
        while let Some(effect) = self.arbiter.poll_effect() {
            match effect {
                Effect::Send { message, .. } => {
                    self.text.clear();
                    encode(&message, &mut self.text);
                    work.messages += 1;
                    work.bytes += self.text.len() as u64;
                    assert!(!matches!(message, News::Ended { .. }), "nobody ends the job");
                }
                Effect::Start { rank, peer, .. } => {
                    // The agent of the host is told.
                    work.messages += 1;
                    self.peers.insert(rank, peer);
                    self.arbiter.started(self.now, peer);
                }
                _ => {}
            }
        }
        work.own = processor_time() - begun;
        work
    }

    /// These ranks come, and say so.
    fn join(&mut self, ranks: std::ops::Range<Rank>) {
        for rank in ranks {
            let peer = self.peers[&rank];
            assert!(self.arbiter.connected(self.now, peer));
            let address = format!(
                "node{:03} 10.0.{}.{}:40000 ftrun-0011223344556677-{rank}",
                rank / 8,
                rank >> 8,
                rank & 255
            );
            self.arbiter.handle(self.now, peer, ToArbiter::Join { address, report: 0 });
        }
    }

    fn say(&mut self, ranks: std::ops::Range<Rank>, message: &ToArbiter) {
        for rank in ranks {
            self.arbiter.handle(self.now, self.peers[&rank], message.clone());
        }
    }
}

/// Of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() {
    let arguments = Arguments::parse();
    println!("| hosts | ranks | what | messages | KiB sent | arbiter, ms | with the system, ms |");
    println!("|---|---|---|---|---|---|---|");
    for hosts in &arguments.hosts {
        let total = hosts * arguments.ranks;
        let mut job = Job::new(*hosts, arguments.ranks);
        let tell =
            |what: &str, work: Work| println!("| {hosts} | {total} | {what} | {} |", work.row(&arguments));
        job.work(0, |_| {});
        // Each rank's link is opened by a handshake of two messages.
        tell("start", job.work(3 * total as u64, |job| job.join(0..job.total)));
        let mut second = Work::default();
        for _ in 0..10 {
            job.now = job.now.after(INTERVAL);
            let work = job.work(total as u64, |job| {
                job.say(0..job.total, &ToArbiter::Beat { step: 7 });
                let now = job.now;
                job.arbiter.tick(now);
            });
            second.messages += work.messages;
            second.bytes += work.bytes;
            second.own += work.own;
        }
        tell("a second of work", second);
        let (lost, left) = (arguments.ranks, arguments.ranks..total);
        let peers: Vec<PeerId> = (0..lost).map(|rank| job.peers[&rank]).collect();
        let noticed = job.work(1, |job| {
            let now = job.now;
            job.arbiter.host_lost(now, 0, &peers, "its link broke");
        });
        tell("a host is lost: all are told", noticed);
        let agreed = job.work(left.len() as u64, |job| {
            job.say(left, &ToArbiter::Ready { generation: 0, report: 1 });
        });
        tell("all have stopped", agreed);
        tell("others have joined: all are told", job.work(3 * lost as u64, |job| job.join(0..lost)));
    }
}
