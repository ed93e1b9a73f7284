//! One long run of a ring in which several messages are always under way between neighbours, while rank after rank is killed: none may be lost, doubled or torn. Every message depends on all that its
//! sender has received, so one wrong word changes the answers of all.
//!
//! `FT_KILLS` says how many kills.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use ft_checkpoint::resilient::RankReport;
use ft_checkpoint::{Flow, Interval, Lines, Program, Protect, Protection, Recovery};
use ft_comm::{CommError, Communicator, Request, RequestRecord, World};
use ft_proto::arbiter::Event as ArbiterEvent;
use ft_proto::planted;
use ft_proto::settings::MessageSettings;
use ft_sim::{self as sim, Blow, Config, Fault, Faults, Network, Trigger};

use super::{Choices, Course, checker, finds_from, planted_or_little_credit};

/// Kills if nothing else is said.
const KILLS: u64 = 300;
/// Steps of a run for each kill, so that it lasts as long as there are some.
const STEPS_A_KILL: u64 = 125;

/// Messages that are under way between two neighbours, and their length.
#[derive(Clone)]
struct Shape {
    ranks: usize,
    /// Steps from the sending of a message to its receiving.
    depth: u64,
    /// Messages that each rank sends in a step.
    batch: u64,
    words: usize,
    /// Receives that are under way at each checkpoint.
    ahead: u64,
    /// Steps from one checkpoint to the next.
    every: u64,
    /// The next process is killed so long after a loss, in microseconds. Now and then a recovery is hit by one loss more, and by no third one, which the scheme would not make up for.
    delays: Range<u64>,
}

const SHALLOW: Shape =
    Shape { ranks: 4, depth: 3, batch: 1, words: 16, ahead: 0, every: 10, delays: 4_000..8_000 };
/// More is in the queue of a rank now and then than it gives credit back for at once, and never so much that a send would wait for its receive.
const DEEP: Shape =
    Shape { ranks: 3, depth: 3, batch: 14, words: 3000, ahead: 0, every: 5, delays: 40_000..100_000 };
/// Receives are under way at each checkpoint, and messages that no receive is there for yet.
const AHEAD: Shape = Shape { depth: 6, ahead: 3, every: 5, delays: 4_000..10_000, ..SHALLOW };

fn mix(value: u64) -> u64 {
    Choices(value).below(u64::MAX)
}

fn text(first: u64, words: usize) -> impl Iterator<Item = u64> {
    (0..words as u64).map(move |at| if at == 0 { first } else { mix(first ^ at) })
}

/// The first words of what a rank with this word sends in a step.
fn items(word: u64, step: u64, batch: u64) -> impl Iterator<Item = u64> {
    (0..batch).map(move |number| mix(word ^ step ^ number << 40))
}

/// What all ranks have at the end, without a message.
fn answers(steps: u64, Shape { ranks, depth, batch, .. }: &Shape) -> Vec<u64> {
    let mut words: Vec<u64> = (0..*ranks as u64).map(mix).collect();
    let mut sent = vec![vec![vec![]; *ranks]; *depth as usize];
    for step in 1..=steps + depth {
        let row = words.iter().map(|word| items(*word, step, *batch).collect::<Vec<_>>()).collect();
        let came = std::mem::replace(&mut sent[(step % depth) as usize], row);
        for (rank, word) in words.iter_mut().enumerate() {
            *word = came[(rank + ranks - 1) % ranks].iter().fold(*word, |word, item| mix(word ^ item));
        }
    }
    words
}

#[derive(Debug, Default, Protect)]
struct State {
    word: u64,
    /// The receives that are under way, and how many there were.
    #[protect(serde)]
    open: VecDeque<RequestRecord>,
    posted: u64,
}

struct Pipeline {
    steps: u64,
    shape: Shape,
    open: VecDeque<Request<u64>>,
    /// Receives are to be made again.
    is_back: bool,
}

impl Pipeline {
    fn new(steps: u64, shape: Shape) -> Self {
        Self { steps, shape, open: VecDeque::new(), is_back: false }
    }

    /// So many receives are under way, as long as something comes.
    fn post(&mut self, state: &mut State, comm: &Communicator, ahead: u64) -> Result<(), CommError> {
        let left = (comm.rank() + comm.size() - 1) % comm.size();
        while (self.open.len() as u64) < ahead && state.posted < self.steps * self.shape.batch {
            let receive = comm.irecv(vec![0; self.shape.words], left, 0)?;
            state.open.push_back(receive.record()?);
            self.open.push_back(receive);
            state.posted += 1;
        }
        Ok(())
    }
}

impl Program for Pipeline {
    type State = State;
    type Error = CommError;
    const ALONE: bool = true;

    fn init(&mut self, world: &World) -> Result<State, CommError> {
        Ok(State { word: mix(world.rank() as u64), ..State::default() })
    }

    fn rebuild(&mut self, _: &mut State, _: &World) -> Result<(), CommError> {
        *self = Self { is_back: true, ..Self::new(self.steps, self.shape.clone()) };
        Ok(())
    }

    fn step(&mut self, state: &mut State, world: &World, number: u64) -> Result<Flow, CommError> {
        let (rank, size) = (world.rank(), world.size());
        let Shape { depth, batch, words, ahead, .. } = self.shape;
        if std::mem::take(&mut self.is_back) {
            for record in &state.open {
                self.open.push_back(world.comm().request(record, vec![0; words])?);
            }
        }
        if number <= self.steps {
            for item in items(state.word, number, batch) {
                let item: Vec<u64> = text(item, words).collect();
                world.comm().send(&item, (rank + 1) % size, 0)?;
            }
        }
        for _ in (0..batch).filter(|_| number > depth) {
            self.post(state, world.comm(), ahead.max(1))?;
            state.open.pop_front();
            let (item, status) = self.open.pop_front().expect("it is under way").wait()?;
            let is_whole = status.bytes == 8 * words && item.iter().copied().eq(text(item[0], words));
            state.word = mix(state.word ^ if is_whole { item[0] } else { !0 });
        }
        self.post(state, world.comm(), ahead)?;
        Ok(if number == self.steps + depth { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, state: &mut State, _: &World) -> Result<Vec<u8>, CommError> {
        Ok(state.word.to_le_bytes().to_vec())
    }
}

/// In small pieces, and nearly as fast as loopback.
fn network() -> Network {
    Network {
        latency: (Duration::from_micros(5), Duration::from_micros(60)),
        start: Duration::from_millis(1),
        ..Network::rough()
    }
}

/// So many kills in one run; how many losses there were.
fn check(
    seed: u64,
    (kills, steps): (u64, u64),
    shape: Shape,
    recovery: Recovery,
    bug: &'static str,
) -> Result<u64, String> {
    let mut choices = Choices(seed);
    let explicit = (0..kills).map(|losses| {
        let Range { start, end } = shape.delays;
        // Now and then nobody is killed for a while, or the next kill would set a job free that hangs.
        let pause = if losses % 50 == 49 { 6 * end } else { 0 };
        let delay = Duration::from_micros(start + choices.below(end - start) + pause);
        let trigger = match losses {
            0 => Trigger::At(delay),
            _ => Trigger::AfterLoss { losses: losses as u32, delay },
        };
        Fault { trigger, blow: Blow::Kill(vec![choices.below(shape.ranks as u64) as usize]) }
    });
    let faults = Faults { explicit: explicit.collect(), ..Faults::default() };
    let config = Config {
        faults,
        messages: MessageSettings {
            watchdog: Some(Duration::from_micros(4 * shape.delays.end)),
            ..MessageSettings::default()
        },
        network: network(),
        // Sends of much would wait for their receives, and all ranks send first.
        bug: if shape.words < 100 { planted_or_little_credit(seed, bug) } else { bug },
        restarts_max: u32::MAX,
        time_max: Duration::from_micros(10 * shape.delays.end * (kills + 10)),
        events_max: u64::MAX,
        ..Config::rough(seed, shape.ranks)
    };
    let scheme = format!("rs:{}+2", shape.ranks - 2).parse().expect("a scheme");
    let protection =
        Protection { lines: Lines::Log, recovery, ..Protection::new(scheme, Interval::Steps(shape.every)) };
    let outcome = sim::run(config, |world| {
        ft_checkpoint::run(world, protection.clone(), &mut Pipeline::new(steps, shape.clone()))
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let stalled = |event: &ArbiterEvent| match event {
        ArbiterEvent::Stalled { account } => Some(account.clone()),
        _ => None,
    };
    if let Some(account) = checker::launcher(&outcome).find_map(stalled) {
        return Err(account);
    }
    let lost = checker::launcher(&outcome).filter(|event| matches!(event, ArbiterEvent::Lost { .. })).count();
    match checker::status(&outcome)? {
        (0, _) => {}
        (code, why) => return Err(format!("after {lost} losses it ends with {code}: {why}")),
    }
    let outputs = checker::outputs(&outcome).ok_or("no outputs")?;
    let words: Vec<u64> = outputs
        .iter()
        .map(|bytes| RankReport::read(bytes).expect("a report").output)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("a word")))
        .collect();
    let is_right = words == answers(steps, &shape);
    is_right.then_some(lost as u64).ok_or(format!("after {lost} losses the answers are wrong"))
}

fn run(recovery: Recovery) {
    let kills = std::env::var("FT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let lost = check(1, (kills, kills * STEPS_A_KILL), SHALLOW, recovery, "").unwrap();
    println!("{recovery:?}: {lost} losses of {kills} kills");
    assert!(lost >= kills / 10 * 9, "only {lost} losses of {kills} kills");
}

#[test]
fn no_message_of_a_pipeline_is_lost_where_all_go_back() {
    run(Recovery::Global);
}

#[test]
fn no_message_of_a_pipeline_is_lost_where_only_the_lost_go_back() {
    run(Recovery::Local);
}

/// So many seeds, however many other tests take: each of these takes long.
fn of(count: usize) -> Vec<u64> {
    super::seeds(count as u64).into_iter().take(count).collect()
}

/// A few kills of a run with much in the queues.
fn check_deep(seed: u64, recovery: Recovery, bug: &'static str) -> Result<Course, String> {
    match check(seed, (6, 150), DEEP, recovery, bug)? {
        0 => Ok(Course::Undisturbed),
        _ => Ok(Course::Repaired),
    }
}

#[test]
fn no_message_is_lost_of_many() {
    super::for_all(of(12), "no_message_is_lost_of_many", &[Course::Repaired], |seed| {
        check_deep(seed, if seed % 4 == 0 { Recovery::Global } else { Recovery::Local }, "")
    });
}

/// Messages of one sender are in the places of receives that were made again, and behind them in the queue, when the next line is drawn.
#[test]
fn no_message_changes_places_with_one_that_a_receive_under_way_has() {
    super::for_all(of(40), "no_message_changes_places", &[Course::Repaired], |seed| {
        let recovery = if seed % 2 == 0 { Recovery::Global } else { Recovery::Local };
        check(seed, (8, 400), AHEAD, recovery, "").map(|lost| match lost {
            0 => Course::Undisturbed,
            _ => Course::Repaired,
        })
    });
}

#[test]
fn planted_numbers_that_begin_anew_are_caught() {
    finds_from(20, planted::NUMBERS_ANEW, |seed| check_deep(seed, Recovery::Local, planted::NUMBERS_ANEW));
}

/// Whoever waits for a message to leave goes on when it has, however it left, and does not sleep to the end of its time first.
#[test]
fn nobody_sleeps_behind_what_has_left() {
    let (depth, words) = (60, DEEP.words);
    super::for_all(of(60), "nobody_sleeps_behind", &[Course::Undisturbed], |seed| {
        let config =
            Config { network: network(), time_max: Duration::from_secs(1), ..Config::rough(seed, 4) };
        let outcome = sim::run(config, |mut world| {
            let (rank, size) = (world.rank(), world.size());
            for number in 1..=400 + depth {
                if number <= 400 {
                    world.comm().send(&vec![number; words], (rank + 1) % size, 0)?;
                }
                if number > depth {
                    world.comm().recv(&mut vec![0_u64; words], (rank + size - 1) % size, 0)?;
                }
            }
            world.finalize(vec![])
        });
        match checker::status(&outcome)? {
            (0, _) => Ok(Course::Undisturbed),
            (code, why) => Err(format!("{code}: {why}")),
        }
    });
}
