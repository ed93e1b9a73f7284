//! How long step lists take: a clock for all ranks, against which the formulas of costs are held.
//!
//! The machine is that of LogGP (D. Culler et al., LogP: Towards a realistic model of parallel computation, PPoPP 1993;
//! A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman, LogGP: Incorporating long messages into the LogP model, SPAA
//! 1995) where a rank also takes the bytes of one message at a time. Without overlap this is the line of R. W. Hockney
//! (The communication challenge for MPP, Parallel Computing 20(3), 1994), which R. Thakur, R. Rabenseifner, W. Gropp
//! (Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005) choose algorithms with.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::collective::hazard::{must_wait, read};
use crate::collective::{Cost, Step};
use crate::rank::Rank;

/// What messages cost between any two ranks, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    /// From when the first byte leaves to when it comes in (`L`).
    pub(super) latency_s: f64,
    /// CPU time of one message on each of its sides (`o`).
    pub(super) overhead_s: f64,
    /// Per byte sent (`G`); a rank sends one byte at a time and receives one at a time.
    pub(super) byte_s: f64,
    /// CPU time per byte reduced or copied in memory.
    pub(super) reduce_byte_s: f64,
}

impl Machine {
    /// Time of the critical path by formula: `rounds (L + 2 o) + bytes G + reduced R`.
    pub(super) fn seconds(&self, cost: &Cost) -> f64 {
        cost.rounds * (self.latency_s + 2.0 * self.overhead_s)
            + cost.bytes * self.byte_s
            + cost.reduced * self.reduce_byte_s
    }
}

/// Bytes that a step sends; bytes that it reduces or copies.
fn bytes(step: &Step, element: usize) -> (f64, f64) {
    match step {
        Step::Send { part, .. } => ((part.len() * element) as f64, 0.0),
        Step::RecvReduce { part, .. } | Step::Reduce { part, .. } | Step::Copy { to: part, .. } => {
            (0.0, (part.len() * element) as f64)
        }
        Step::Apply { changes, .. } => (0.0, changes.iter().map(|part| (part.len() * element) as f64).sum()),
        Step::Recv { .. } | Step::Fence => (0.0, 0.0),
    }
}

/// When the last rank is done with its list. All begin at once, with elements of `element` bytes.
///
/// A send takes `o` of the CPU, then the rank's way out for `G` a byte, and is done; `L` later the message begins to come
/// in, and takes the way in for `G` a byte from then on, or from when its receive has been posted; then it takes `o` of the
/// CPU, and what is reduced takes `R` a byte. Steps start and wait for each other as [`Step`] says.
///
/// Linear in the number of messages but for a logarithm.
///
/// # Panics
/// The lists do not come to an end.
pub(super) fn critical_s(lists: &[Vec<Step>], element: usize, machine: &Machine) -> f64 {
    let mut clock = Clock {
        machine,
        element,
        ranks: lists.iter().map(|steps| Progress::new(steps)).collect(),
        channels: BTreeMap::new(),
        events: BinaryHeap::new(),
        posted: 0,
    };
    (0..lists.len()).for_each(|rank| clock.start(rank, 0.0));
    while let Some(Reverse(Event { time, what, .. })) = clock.events.pop() {
        clock.happen(time, what);
    }
    assert!(clock.ranks.iter().all(Progress::is_done), "the lists do not come to an end");
    clock.ranks.iter().map(|rank| rank.last).fold(0.0, f64::max)
}

/// Where a rank is, and until when its CPU and its ways out and in are taken.
struct Progress<'a> {
    steps: &'a [Step],
    at: usize,
    pending: Vec<usize>,
    /// Received aside: their parts are still being sent.
    aside: Vec<usize>,
    cpu: f64,
    out: f64,
    into: f64,
    last: f64,
}

impl<'a> Progress<'a> {
    fn new(steps: &'a [Step]) -> Self {
        let (pending, aside) = (Vec::new(), Vec::new());
        Self { steps, at: 0, pending, aside, cpu: 0.0, out: 0.0, into: 0.0, last: 0.0 }
    }

    fn is_done(&self) -> bool {
        self.at == self.steps.len() && self.pending.is_empty()
    }

    fn under_way(&self) -> impl Iterator<Item = &'a Step> + Clone {
        self.pending.iter().map(|&step| &self.steps[step])
    }

    /// Takes the CPU from `time` on; gives the end.
    fn work(&mut self, time: f64, seconds: f64) -> f64 {
        self.cpu = self.cpu.max(time) + seconds;
        self.cpu
    }
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    /// The first byte of a message from a rank is here.
    Arrives { to: Rank, from: Rank },
    /// The last byte of a message is here.
    Received { rank: Rank, step: usize },
    /// A step is done.
    Done { rank: Rank, step: usize },
}

/// Events of the same time happen in the order in which they were found.
#[derive(PartialEq)]
struct Event {
    time: f64,
    number: u64,
    what: What,
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.time.total_cmp(&other.time).then(self.number.cmp(&other.number))
    }
}

/// Messages that have arrived and receives that have been posted, of one ordered pair of ranks.
#[derive(Default)]
struct Channel {
    arrived: usize,
    posted: VecDeque<usize>,
}

struct Clock<'a> {
    machine: &'a Machine,
    element: usize,
    ranks: Vec<Progress<'a>>,
    channels: BTreeMap<(Rank, Rank), Channel>,
    events: BinaryHeap<Reverse<Event>>,
    posted: u64,
}

impl Clock<'_> {
    fn at(&mut self, time: f64, what: What) {
        self.posted += 1;
        self.events.push(Reverse(Event { time, number: self.posted, what }));
    }

    fn happen(&mut self, time: f64, what: What) {
        match what {
            What::Arrives { to, from } => {
                self.channels.entry((from, to)).or_default().arrived += 1;
                self.meet(from, to, time);
            }
            What::Received { rank, step } => {
                let progress = &mut self.ranks[rank];
                let (Step::Recv { part, .. } | Step::RecvReduce { part, .. }) = &progress.steps[step] else {
                    unreachable!("only receives receive")
                };
                if read(part, progress.under_way()) {
                    progress.aside.push(step);
                } else {
                    self.take(rank, step, time);
                }
            }
            What::Done { rank, step } => {
                let progress = &mut self.ranks[rank];
                progress.pending.retain(|&pending| pending != step);
                progress.last = progress.last.max(time);
                for step in std::mem::take(&mut progress.aside) {
                    self.happen(time, What::Received { rank, step });
                }
                self.start(rank, time);
            }
        }
    }

    /// The CPU takes a message that is here.
    fn take(&mut self, rank: Rank, step: usize, time: f64) {
        let progress = &mut self.ranks[rank];
        let reduced = bytes(&progress.steps[step], self.element).1;
        let end = progress.work(time, self.machine.overhead_s + reduced * self.machine.reduce_byte_s);
        self.at(end, What::Done { rank, step });
    }

    /// The first message and the first receive of a channel come together, if there are both.
    fn meet(&mut self, from: Rank, to: Rank, time: f64) {
        let channel = self.channels.entry((from, to)).or_default();
        if channel.arrived == 0 {
            return;
        }
        let Some(step) = channel.posted.pop_front() else { return };
        channel.arrived -= 1;
        let progress = &mut self.ranks[to];
        let (Step::Recv { part, .. } | Step::RecvReduce { part, .. }) = &progress.steps[step] else {
            unreachable!("only receives are posted")
        };
        let length = (part.len() * self.element) as f64;
        progress.into = progress.into.max(time) + length * self.machine.byte_s;
        let end = progress.into;
        self.at(end, What::Received { rank: to, step });
    }

    /// Starts what a rank can start at a time.
    fn start(&mut self, rank: Rank, mut time: f64) {
        let Machine { latency_s, overhead_s, byte_s, reduce_byte_s, .. } = *self.machine;
        loop {
            let progress = &mut self.ranks[rank];
            let (step, steps) = (progress.at, progress.steps);
            let Some(next) = steps.get(step) else { return };
            if must_wait(next, progress.under_way()) {
                return;
            }
            progress.at += 1;
            let (sent, reduced) = bytes(next, self.element);
            match next {
                Step::Send { to, .. } => {
                    time = progress.work(time, overhead_s);
                    let begin = progress.out.max(time);
                    progress.out = begin + sent * byte_s;
                    let end = progress.out;
                    progress.pending.push(step);
                    self.at(begin + latency_s, What::Arrives { to: *to, from: rank });
                    self.at(end, What::Done { rank, step });
                }
                Step::Recv { from, .. } | Step::RecvReduce { from, .. } => {
                    progress.pending.push(step);
                    self.channels.entry((*from, rank)).or_default().posted.push_back(step);
                    self.meet(*from, rank, time);
                }
                Step::Copy { .. } | Step::Reduce { .. } | Step::Apply { .. } => {
                    time = progress.work(time, reduced * reduce_byte_s);
                    progress.last = progress.last.max(time);
                }
                Step::Fence => {}
            }
        }
    }
}

const MACHINE: Machine = Machine { latency_s: 100.0, overhead_s: 10.0, byte_s: 1.0, reduce_byte_s: 0.25 };

fn critical(lists: &[Vec<Step>]) -> f64 {
    critical_s(lists, 1, &MACHINE)
}

#[test]
fn there_and_back_takes_two_messages() {
    let lists =
        [vec![Step::send(1, 0..8), Step::recv(1, 0..8)], vec![Step::recv(0, 0..8), Step::send(0, 0..8)]];
    assert_eq!(critical(&lists), 2.0 * (10.0 + 100.0 + 8.0 + 10.0));
}

#[test]
fn a_rank_takes_one_message_at_a_time() {
    let root = vec![Step::recv(1, 0..20), Step::recv(2, 20..40)];
    let lists = [root, vec![Step::send(0, 0..20)], vec![Step::send(0, 0..20)]];
    assert_eq!(critical(&lists), 10.0 + 100.0 + 20.0 + 20.0 + 10.0);
}

#[test]
fn messages_of_one_sender_overlap_in_flight_only() {
    let to_both = |second: std::ops::Range<usize>| {
        vec![
            vec![Step::send(1, 0..8), Step::send(2, second)],
            vec![Step::recv(0, 0..8)],
            vec![Step::recv(0, 0..8)],
        ]
    };
    // The second one has its overhead while the bytes of the first leave.
    assert_eq!(critical(&to_both(8..16)), 10.0 + 10.0 + 8.0 + 100.0 + 10.0);
    // The same part leaves for one rank after the other.
    assert_eq!(critical(&to_both(0..8)), 10.0 + 8.0 + 10.0 + 8.0 + 100.0 + 10.0);
}

#[test]
fn hazards_fences_and_reductions_take_their_time() {
    // The copy waits for the receive, the reduction for the copy, and the fence keeps the last message back.
    let first = vec![
        Step::recv(1, 0..8),
        Step::copy(0..8, super::Span::scratch(0..8)),
        Step::reduce(super::Span::scratch(0..4), 0..4, super::Order::MineFirst),
        Step::recv(1, 0..0),
        Step::Fence,
        Step::send(1, 0..0),
    ];
    let second = vec![Step::send(0, 0..8), Step::send(0, 0..0), Step::recv(0, 0..0)];
    let here = 10.0 + 100.0 + 8.0 + 10.0;
    let worked = here + 2.0 + 1.0;
    // The second message is there already and costs its overhead.
    assert_eq!(critical(&[first, second]), worked + 10.0 + 10.0 + 100.0 + 10.0);
}

#[test]
#[should_panic(expected = "do not come to an end")]
fn a_deadlock_has_no_time() {
    critical(&[vec![Step::recv(1, 0..0)], vec![Step::recv(0, 0..0)]]);
}
