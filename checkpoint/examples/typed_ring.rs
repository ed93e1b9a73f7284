//! A soak: a ring of messages of many types and lengths in the resilient loop. A message is what its sender and its number
//! say, so that a lost, doubled or torn one is found by its receiver, in its step or by the digest of all at the end.
//!
//! `ftrun -n 4 --mtbf 0.05 --max-restarts 1000 target/release/examples/typed_ring --generations 100`
//!
//! Ends after the first step from `--steps N` on (200) in a world that was repaired `--generations G` times (0).

use std::fmt;

use ft_checkpoint::{Flow, MainError, Program, Protect, Protection};
use ft_comm::{
    CommError, Communicator, Layout, Op, Plain, Rank, Request, Source, Status, Tag, TagSel, World,
};
use serde::{Deserialize, Serialize};

/// Tags say the type and not the number, so that order matters.
const BYTES: Tag = 1;
const FLOATS: Tag = 2;
const WORDS: Tag = 3;
const PARCEL: Tag = 4;
const COLUMN: Tag = 5;
const PROBED: Tag = 6;
/// Messages that each rank gets in a step.
const MESSAGES: u64 = 8;
/// The one of them that comes from the right.
const BACK: u64 = 7;
/// Length of the rows of which a column is sent.
const ROW: usize = 7;
/// Exit status if a message was wrong.
const WRONG: i32 = 4;

/// Splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// From 0 up to `2^bits`; all orders of magnitude are as likely.
    fn size(&mut self, bits: usize) -> usize {
        let bits = self.below(bits + 1);
        self.below((1 << bits) + 1)
    }
}

/// What a message is made from: its sender, its step, and its number in that step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Number {
    from: u64,
    step: u64,
    nth: u64,
}

impl Number {
    fn numbers(self) -> Numbers {
        Numbers(Numbers(self.from << 56 ^ self.step << 8 ^ self.nth).next())
    }

    /// A slice of at most `2^bits` elements.
    fn slice<T: Plain>(self, bits: usize) -> Vec<T> {
        let mut numbers = self.numbers();
        let mut content = vec![T::zeroed(); numbers.size(bits)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut content);
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&numbers.next().to_le_bytes()[..piece.len()]);
        }
        content
    }

    fn parcel(self) -> Parcel {
        let numbers = &mut self.numbers();
        let entries = (0..numbers.size(10)).map(|_| (numbers.next() as u32, numbers.next())).collect();
        let name = "x".repeat(numbers.size(6));
        Parcel { number: self, name, entries, note: (numbers.below(2) == 0).then(|| numbers.next() as i64) }
    }

    fn column(self) -> Vec<u32> {
        self.slice(11)
    }

    /// The bytes of the message, of whatever type it is.
    fn content(self) -> Vec<u8> {
        match self.nth {
            0 => self.slice(17),
            1 => self.slice(9),
            2 | BACK => bytes_of(&self.slice::<f64>(12)),
            3 => bytes_of(&self.slice::<u64>(12)),
            4 => self.parcel().content(),
            5 => bytes_of(&self.column()),
            _ => bytes_of(&self.slice::<u16>(15)),
        }
    }

    /// Their number, but for the parcel the number of its entries.
    fn length(self) -> usize {
        let size = |bits| self.numbers().size(bits);
        match self.nth {
            0 => size(17),
            1 => size(9),
            2 | 3 | BACK => 8 * size(12),
            4 => size(10),
            5 => 4 * size(11),
            _ => 2 * size(15),
        }
    }
}

fn bytes_of<T: Plain>(elements: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(elements).to_vec()
}

/// A message that serde writes.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Parcel {
    number: Number,
    name: String,
    entries: Vec<(u32, u64)>,
    note: Option<i64>,
}

impl Parcel {
    fn content(&self) -> Vec<u8> {
        format!("{self:?}").into_bytes()
    }
}

/// What is protected: an account of everything that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Protect)]
struct Account {
    steps: u64,
    messages: u64,
    bytes: u64,
    /// Hangs on numbers and lengths of the messages, and on their order.
    digest: u64,
}

impl Account {
    /// Enters a message whose content is known to be right.
    fn enter(&mut self, number: Number) {
        let bytes = number.length() as u64;
        self.messages += 1;
        self.bytes += bytes;
        self.digest = Numbers(self.digest ^ number.numbers().next() ^ bytes).next();
    }
}

#[derive(Debug)]
enum Trouble {
    Comm(CommError),
    /// What came is not what was sent.
    Wrong(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comm(error) => write!(f, "{error}"),
            Self::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<CommError> for Trouble {
    fn from(error: CommError) -> Self {
        Self::Comm(error)
    }
}

/// The sender of a message, and its bytes.
type Came = (Rank, Vec<u8>);

/// A rank and its neighbors.
struct Place<'a> {
    comm: &'a Communicator,
    rank: Rank,
    left: Rank,
    right: Rank,
}

impl<'a> Place<'a> {
    fn of(comm: &'a Communicator) -> Self {
        let (rank, size) = (comm.rank(), comm.size());
        Self { comm, rank, left: (rank + size - 1) % size, right: (rank + 1) % size }
    }

    fn mine(&self, step: u64, nth: u64) -> Number {
        Number { from: self.rank as u64, step, nth }
    }

    /// What comes here.
    fn due(&self, step: u64, nth: u64) -> Number {
        let from = if nth == BACK { self.right } else { self.left };
        Number { from: from as u64, step, nth }
    }

    /// Every other rank sends first: messages may wait for their receiver.
    fn in_turn(
        &self,
        send: impl FnOnce() -> Result<(), CommError>,
        receive: impl FnOnce() -> Result<(), CommError>,
    ) -> Result<(), CommError> {
        if self.rank.is_multiple_of(2) {
            send()?;
            return receive();
        }
        receive()?;
        send()
    }

    /// A step: every way to send and to receive that there is. Gives what came, by its number.
    fn exchange(&self, step: u64) -> Result<Vec<Came>, CommError> {
        let Self { comm, left, right, .. } = *self;
        let mine = |nth| self.mine(step, nth);

        // These are under way while others come and go; floats come from both sides, in any order.
        let long = comm.irecv(vec![0u8; 1 << 17], left, BYTES)?;
        let short = comm.irecv(vec![0u8; 1 << 9], Source::Any, BYTES)?;
        let floats = || comm.irecv(vec![0f64; 1 << 12], Source::Any, FLOATS);
        let floats = [floats()?, floats()?];
        let sent = [
            comm.isend(mine(0).slice::<u8>(17), right, BYTES)?,
            comm.isend(mine(1).slice::<u8>(9), right, BYTES)?,
        ];
        let sent_floats = [
            comm.isend(mine(2).slice::<f64>(12), right, FLOATS)?,
            comm.isend(mine(BACK).slice::<f64>(12), left, FLOATS)?,
        ];
        let others = [self.words(step)?, self.parcel(step)?, self.column(step)?, self.probed(step)?];

        let (long, short) = (finished(long)?, finished(short)?);
        let [from_left, from_right] = self.by_side(floats.map(finished))?;
        sent.into_iter().try_for_each(|request| request.wait().map(drop))?;
        sent_floats.into_iter().try_for_each(|request| request.wait().map(drop))?;
        // A message of the next step to a receive that takes any source could be earlier than one of this step.
        comm.barrier()?;
        Ok([vec![long, short, from_left], others.into(), vec![from_right]].concat())
    }

    /// What came from the left, and what from the right.
    fn by_side(&self, came: [Result<Came, CommError>; 2]) -> Result<[Came; 2], CommError> {
        let [first, second] = came;
        let (first, second) = (first?, second?);
        // From one and the same neighbor they come in order.
        let is_turned = self.left != self.right && first.0 == self.right;
        Ok(if is_turned { [second, first] } else { [first, second] })
    }

    /// Sent and received by one call.
    fn words(&self, step: u64) -> Result<Came, CommError> {
        let mut words = vec![0u64; 1 << 12];
        let mine = self.mine(step, 3).slice::<u64>(12);
        let status = self.comm.sendrecv(&mine, self.right, &mut words, Source::Any, WORDS)?;
        Ok(came(&words, status))
    }

    /// Written by serde.
    fn parcel(&self, step: u64) -> Result<Came, CommError> {
        let mut parcel = (self.left, vec![]);
        self.in_turn(
            || self.comm.send_value(&self.mine(step, 4).parcel(), self.right, PARCEL),
            || {
                let (value, status) = self.comm.recv_value::<Parcel>(self.left, TagSel::Any)?;
                parcel = (status.source, value.content());
                Ok(())
            },
        )?;
        Ok(parcel)
    }

    /// The first column of a matrix, which arrives as the last one of another.
    fn column(&self, step: u64) -> Result<Came, CommError> {
        let column = |rows: usize, at: usize| {
            Layout::strided(at, rows, 1, ROW).map_err(|error| CommError::Layout(error.to_string()))
        };
        let mut columns = (self.left, vec![]);
        self.in_turn(
            || {
                let content = self.mine(step, 5).column();
                let mut matrix = vec![0; content.len() * ROW];
                matrix.iter_mut().step_by(ROW).zip(&content).for_each(|(to, from)| *to = *from);
                self.comm.send_layout(&matrix, &column(content.len(), 0)?, self.right, COLUMN)
            },
            || {
                let rows = self.due(step, 5).column().len();
                let mut matrix = vec![0; rows * ROW];
                let layout = column(rows, ROW - 1)?;
                let status = self.comm.recv_layout(&mut matrix, &layout, self.left, COLUMN)?;
                let last: Vec<u32> = matrix.iter().copied().skip(ROW - 1).step_by(ROW).collect();
                // Nothing else of the matrix was touched, or it counts as a part of the message.
                let others = matrix.chunks(ROW).flat_map(|row| &row[..ROW - 1]).filter(|other| **other != 0);
                columns = came(&last, status);
                columns.1.extend(others.flat_map(|other| other.to_le_bytes()));
                Ok(())
            },
        )?;
        Ok(columns)
    }

    /// Nobody has said how long this one is.
    fn probed(&self, step: u64) -> Result<Came, CommError> {
        let sent = self.comm.isend(self.mine(step, 6).slice::<u16>(15), self.right, PROBED)?;
        let mut message = self.comm.mprobe(Source::Any, PROBED)?;
        let mut found = vec![0u16; message.status().bytes / 2];
        let status = message.recv(&mut found)?;
        sent.wait()?;
        Ok(came(&found, status))
    }
}

/// A message at the front of `room`.
fn came<T: Plain>(room: &[T], status: Status) -> Came {
    let bytes: &[u8] = bytemuck::cast_slice(room);
    (status.source, bytes[..status.bytes.min(bytes.len())].to_vec())
}

fn finished<T: Plain>(request: Request<T>) -> Result<Came, CommError> {
    let (room, status) = request.wait()?;
    Ok(came(&room, status))
}

struct Ring {
    steps: u64,
    generations: u32,
}

impl Ring {
    /// Ends the job: an error alone could pass for the consequence of a failure, and be forgotten.
    fn wrong(&self, world: &World, what: String) -> Trouble {
        world.abort(WRONG, what.clone());
        Trouble::Wrong(what)
    }
}

impl Program for Ring {
    type State = Account;
    type Error = Trouble;

    fn init(&mut self, _: &World) -> Result<Account, Trouble> {
        Ok(Account::default())
    }

    fn step(&mut self, account: &mut Account, world: &World, step: u64) -> Result<Flow, Trouble> {
        let place = Place::of(world.comm());
        let messages = match place.exchange(step) {
            Err(error) if !error.is_failure() && !matches!(error, CommError::Ended { .. }) => {
                return Err(self.wrong(world, format!("rank {}, step {step}: {error}", place.rank)));
            }
            other => other?,
        };
        for (nth, (source, content)) in (0..MESSAGES).zip(messages) {
            let due = place.due(step, nth);
            if source as u64 != due.from || content != due.content() {
                let (got, expected) = (content.len(), due.content().len());
                let what =
                    format!("{got} bytes from rank {source} in place of {expected}, {due:?}, or others");
                return Err(self.wrong(world, format!("rank {}: {what}", place.rank)));
            }
            account.enter(due);
        }
        account.steps = step;
        let is_over = step >= self.steps && world.generation() >= self.generations;
        Ok(if is_over { Flow::Done } else { Flow::Continue })
    }

    fn output(&mut self, account: &mut Account, world: &World) -> Result<Vec<u8>, Trouble> {
        let (place, comm) = (Place::of(world.comm()), world.comm());
        let mut expected = Account { steps: account.steps, ..Account::default() };
        for step in 1..=account.steps {
            for due in (0..MESSAGES).map(|nth| place.due(step, nth)) {
                expected.enter(due);
            }
        }
        if *account != expected {
            return Err(
                self.wrong(world, format!("rank {}: {account:?} in place of {expected:?}", place.rank))
            );
        }
        // What was sent twice has come by now, as there is one link from a rank to another.
        comm.barrier()?;
        if let Some(status) = comm.iprobe(Source::Any, TagSel::Any)? {
            return Err(self.wrong(world, format!("rank {}: {status:?} is left over", place.rank)));
        }
        let mut total = [account.messages, account.bytes, account.digest];
        comm.allreduce(&mut total[..2], Op::Sum)?;
        comm.allreduce(&mut total[2..], Op::BitXor)?;
        if comm.rank() == 0 {
            let [messages, bytes, digest] = total;
            let (steps, generation) = (account.steps, world.generation());
            println!(
                "{steps} steps, {messages} messages, {bytes} bytes, {generation} repairs, digest {digest:016x}: right"
            );
        }
        Ok(vec![])
    }

    fn status(&self, _: &Trouble) -> i32 {
        WRONG
    }
}

fn option(name: &str) -> Option<u32> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).map(|value| value.parse().expect("a number"))
}

fn main() -> Result<(), MainError> {
    let steps = option("--steps").unwrap_or(200).into();
    let generations = option("--generations").unwrap_or(0);
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    ft_checkpoint::run(world, protection, &mut Ring { steps, generations })?;
    Ok(())
}
