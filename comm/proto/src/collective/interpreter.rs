//! Runs the step lists of all ranks in one thread, by the letter of the rules of [`Step`], and panics where an executor
//! would hang or compute nonsense.

use std::collections::{BTreeMap, VecDeque};

use super::hazard::{must_wait, read};
use super::{Order, Space, Span, Step};
use crate::rank::Rank;

/// When a send is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// At once: there is room for any number of messages.
    Buffered,
    /// When its receive has been posted: there is room for none.
    Synchronous,
}

/// A set of ranks, one bit each.
pub(super) type Ranks = u128;

struct Message<T> {
    elements: Vec<T>,
    heard: Ranks,
    /// The step of the sender that waits for its receive.
    step: Option<usize>,
}

/// Messages and receives of one ordered pair of ranks that have not met yet.
struct Channel<T> {
    sent: VecDeque<Message<T>>,
    posted: VecDeque<usize>,
}

struct Process<T> {
    steps: Vec<Step>,
    at: usize,
    /// Steps that are under way; a receive with its message if that has come but cannot be taken yet.
    pending: Vec<(usize, Option<Vec<T>>)>,
    input: Vec<T>,
    buffer: Vec<T>,
    scratch: Vec<Option<T>>,
    heard: Ranks,
}

impl<T: Clone> Process<T> {
    fn new(rank: Rank, steps: Vec<Step>, input: Vec<T>, buffer: Vec<T>) -> Self {
        Self { steps, at: 0, pending: Vec::new(), input, buffer, scratch: Vec::new(), heard: 1 << rank }
    }

    fn under_way(&self) -> impl Iterator<Item = &Step> + Clone {
        self.pending.iter().map(|(step, _)| &self.steps[*step])
    }

    fn load(&self, part: &Span) -> Vec<T> {
        let range = part.range.clone();
        match part.space {
            Space::Input => self.input[range].to_vec(),
            Space::Buffer => self.buffer[range].to_vec(),
            Space::Scratch => range
                .map(|at| self.scratch.get(at).cloned().flatten())
                .collect::<Option<_>>()
                .unwrap_or_else(|| panic!("{part:?} is read and has not been written")),
        }
    }

    fn store(&mut self, part: &Span, elements: Vec<T>) {
        assert_eq!(part.len(), elements.len(), "both sides agree on the length of {part:?}");
        let range = part.range.clone();
        match part.space {
            Space::Input => panic!("{part:?} is only read"),
            Space::Buffer => self.buffer[range].clone_from_slice(&elements),
            Space::Scratch => {
                let length = self.scratch.len().max(range.end);
                self.scratch.resize(length, None);
                self.scratch[range].iter_mut().zip(elements).for_each(|(to, from)| *to = Some(from));
            }
        }
    }

    fn reduce(&mut self, part: &Span, other: &[T], order: Order, op: &impl Fn(&T, &T) -> T) {
        assert_eq!(part.len(), other.len(), "both sides agree on the length of {part:?}");
        let mine = self.load(part);
        let pairs = mine.iter().zip(other);
        let elements = match order {
            Order::MineFirst => pairs.map(|(mine, other)| op(mine, other)).collect(),
            Order::OtherFirst => pairs.map(|(mine, other)| op(other, mine)).collect(),
        };
        self.store(part, elements);
    }

    /// Takes the messages that have come and whose part is not being sent any more; false if there is none.
    fn take(&mut self, op: &impl Fn(&T, &T) -> T) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.pending.len() {
            let (step, ref arrived) = self.pending[at];
            let step = self.steps[step].clone();
            let (Step::Recv { part, .. } | Step::RecvReduce { part, .. }) = &step else {
                at += 1;
                continue;
            };
            if arrived.is_none() || read(part, self.under_way()) {
                at += 1;
                continue;
            }
            let elements = self.pending.remove(at).1.expect("it has arrived");
            match &step {
                Step::RecvReduce { part, order, .. } => self.reduce(part, &elements, *order, op),
                _ => self.store(part, elements),
            }
            moved = true;
        }
        moved
    }
}

struct Network<T> {
    channels: BTreeMap<(Rank, Rank), Channel<T>>,
    mode: Mode,
}

impl<T: Clone> Network<T> {
    fn channel(&mut self, from: Rank, to: Rank) -> &mut Channel<T> {
        assert_ne!(from, to, "nobody sends to itself");
        self.channels
            .entry((from, to))
            .or_insert_with(|| Channel { sent: VecDeque::new(), posted: VecDeque::new() })
    }

    /// Starts as many steps of a rank as can be; false if none.
    fn start(&mut self, rank: Rank, process: &mut Process<T>, op: &impl Fn(&T, &T) -> T) -> bool {
        let begun = process.at;
        while let Some(step) = process.steps.get(process.at).cloned() {
            if must_wait(&step, process.under_way()) {
                break;
            }
            let at = process.at;
            match &step {
                Step::Send { to, part } => {
                    let waits = (self.mode == Mode::Synchronous).then_some(at);
                    let message = Message { elements: process.load(part), heard: process.heard, step: waits };
                    self.channel(rank, *to).sent.push_back(message);
                    process.pending.extend(waits.map(|at| (at, None)));
                }
                Step::Recv { from, .. } | Step::RecvReduce { from, .. } => {
                    self.channel(*from, rank).posted.push_back(at);
                    process.pending.push((at, None));
                }
                Step::Copy { from, to } => {
                    assert!(!from.overlaps(to), "{step:?} overlaps itself");
                    process.store(to, process.load(from));
                }
                Step::Reduce { other, part, order } => {
                    assert!(!other.overlaps(part), "{step:?} overlaps itself");
                    process.reduce(part, &process.load(other), *order, op);
                }
                Step::Apply { .. } => unreachable!("no collective computes by itself"),
                Step::Fence => {}
            }
            process.at += 1;
        }
        process.at > begun
    }

    /// Brings together what was sent and what is to be received; false if nothing was.
    fn deliver(&mut self, processes: &mut [Process<T>]) -> bool {
        let mut moved = false;
        for (&(from, to), channel) in &mut self.channels {
            while !channel.sent.is_empty() && !channel.posted.is_empty() {
                let message = channel.sent.pop_front().expect("it is not empty");
                let posted = channel.posted.pop_front().expect("it is not empty");
                processes[from].pending.retain(|(step, _)| Some(*step) != message.step);
                let receive = processes[to].pending.iter_mut().find(|(step, _)| *step == posted);
                receive.expect("a posted receive is under way").1 = Some(message.elements);
                processes[to].heard |= message.heard;
                moved = true;
            }
        }
        moved
    }
}

/// Runs the lists of all ranks to their ends; `inputs` is empty or one for each rank. Gives for each rank the ranks
/// that it has heard from, directly or not. Steps start as early, and messages arrive as late as can be.
///
/// # Panics
/// On deadlock, messages left over, scratch that is read before it is written, parts outside their memory, a message
/// to oneself, lengths that differ, a change of the input.
pub(super) fn run<T: Clone>(
    lists: Vec<Vec<Step>>,
    inputs: &[Vec<T>],
    buffers: &mut [Vec<T>],
    op: impl Fn(&T, &T) -> T,
    mode: Mode,
) -> Vec<Ranks> {
    assert!(lists.len() == buffers.len() && lists.len() <= Ranks::BITS as usize);
    let memory = |rank: Rank| (inputs.get(rank).cloned().unwrap_or_default(), buffers[rank].clone());
    let process = |(rank, steps)| {
        let (input, buffer) = memory(rank);
        Process::new(rank, steps, input, buffer)
    };
    let mut processes: Vec<Process<T>> = lists.into_iter().enumerate().map(process).collect();
    let mut network = Network { channels: BTreeMap::new(), mode };
    loop {
        let mut moved = false;
        for (rank, process) in processes.iter_mut().enumerate() {
            moved |= network.start(rank, process, &op);
        }
        moved |= network.deliver(&mut processes);
        for process in &mut processes {
            moved |= process.take(&op);
        }
        if !moved {
            break;
        }
    }
    for (rank, process) in processes.iter().enumerate() {
        let stuck: Vec<&Step> = process.under_way().chain(process.steps.get(process.at)).collect();
        assert!(stuck.is_empty(), "deadlock: rank {rank} is at {stuck:?}");
    }
    let empty = |channel: &Channel<T>| channel.sent.is_empty() && channel.posted.is_empty();
    assert!(network.channels.values().all(empty), "messages left over");
    for (buffer, process) in buffers.iter_mut().zip(&mut processes) {
        *buffer = std::mem::take(&mut process.buffer);
    }
    processes.iter().map(|process| process.heard).collect()
}

mod rules {
    use super::*;

    fn add(lists: Vec<Vec<Step>>, buffers: &mut [Vec<u64>], mode: Mode) -> Vec<Ranks> {
        run(lists, &[], buffers, |a, b| a + b, mode)
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn an_exchange_in_place_deadlocks_without_room_for_messages() {
        let lists = vec![
            vec![Step::send(1, 0..1), Step::recv(1, 0..1)],
            vec![Step::send(0, 0..1), Step::recv(0, 0..1)],
        ];
        add(lists, &mut [vec![1], vec![2]], Mode::Synchronous);
    }

    #[test]
    fn an_exchange_that_reduces_sends_the_old_values() {
        for mode in [Mode::Buffered, Mode::Synchronous] {
            let list =
                |other| vec![Step::send(other, 0..1), Step::recv_reduce(other, 0..1, Order::MineFirst)];
            let mut buffers = [vec![1], vec![2]];
            add(vec![list(1), list(0)], &mut buffers, mode);
            assert_eq!(buffers, [vec![3], vec![3]]);
        }
    }

    #[test]
    #[should_panic(expected = "left over")]
    fn messages_are_received() {
        add(vec![vec![Step::send(1, 0..1)], vec![]], &mut [vec![1], vec![2]], Mode::Buffered);
    }

    #[test]
    #[should_panic(expected = "agree on the length")]
    fn lengths_agree() {
        let lists = vec![vec![Step::send(1, 0..1)], vec![Step::recv(0, 0..2)]];
        add(lists, &mut [vec![1, 2], vec![3, 4]], Mode::Buffered);
    }

    #[test]
    #[should_panic(expected = "has not been written")]
    fn scratch_is_written_before_it_is_read() {
        add(vec![vec![Step::copy(Span::scratch(0..1), 0..1)]], &mut [vec![1]], Mode::Buffered);
    }

    #[test]
    #[should_panic(expected = "itself")]
    fn nobody_sends_to_itself() {
        add(vec![vec![Step::send(0, 0..1)]], &mut [vec![1]], Mode::Buffered);
    }

    #[test]
    fn without_a_fence_an_empty_message_leaves_at_once() {
        let chain = |fence: bool| {
            let mut middle = vec![Step::recv(0, 0..0)];
            middle.extend(fence.then_some(Step::Fence));
            middle.push(Step::send(2, 0..0));
            vec![vec![Step::send(1, 0..0)], middle, vec![Step::recv(1, 0..0)]]
        };
        let heard = |fence| add(chain(fence), &mut [vec![], vec![], vec![]], Mode::Buffered)[2];
        assert_eq!((heard(false), heard(true)), (0b110, 0b111));
    }
}
