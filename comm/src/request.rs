//! Requests: handles of non-blocking operations, which own their buffers (MPI 4.1, section 3.7).

mod record;

pub(crate) use self::record::Kind as Recorded;
pub use self::record::RequestRecord;

use crate::communicator::Communicator;
use crate::core::{Core, Door};
use crate::driver::{Buffer, Memory, Place};
use ft_proto::endpoint::{OpId, Outcome};
use ft_proto::error::CommError;
use ft_proto::matching::Envelope;
use ft_proto::plain::Plain;
use ft_proto::rank::{Generation, Rank, Status, Tag};

/// A send or receive under way (`MPI_Request`). It owns its buffer and gives it back when it is waited for.
///
/// Dropped without waiting, a receive that nothing has matched is withdrawn, and other operations finish
/// behind the program's back. A request that was waited for is gone, so it cannot be used again.
#[must_use = "a request is to be waited for"]
pub struct Request<T: Plain> {
    /// Its communicator is open as long as the request is.
    comm: Communicator,
    generation: Generation,
    aim: Aim,
    /// None when it was waited for.
    state: Option<State<T>>,
}

/// What a request is to do, with world ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// Send to this rank.
    To(u32),
    /// Receive from this rank, or any, with this tag, or any.
    From(Option<u32>, Option<Tag>),
}

impl Aim {
    /// Whose link is waited for.
    fn hint(self) -> Option<Rank> {
        match self {
            Self::To(rank) => Some(rank as Rank),
            Self::From(source, _) => source.map(|rank| rank as Rank),
        }
    }
}

/// Where an operation is.
#[derive(Clone, Debug)]
pub(crate) enum State<T> {
    /// Under way, or to be finished: with its buffer in the driver.
    Under(OpId),
    /// A send that had left when it was to begin.
    Left(Vec<T>, Envelope),
}

impl<T: Plain> std::fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let op = self.under_way();
        f.debug_struct("Request").field("op", &op).field("generation", &self.generation).finish()
    }
}

impl<T: Plain> Request<T> {
    pub(crate) fn new(comm: Communicator, generation: Generation, aim: Aim, state: State<T>) -> Self {
        Self { comm, generation, aim, state: Some(state) }
    }

    /// The operation that the driver has.
    fn under_way(&self) -> Option<OpId> {
        match &self.state {
            Some(State::Under(op)) => Some(*op),
            _ => None,
        }
    }

    /// What was there is done with. None: the driver has it.
    fn take_left(&mut self) -> Option<(Vec<T>, Status)> {
        match self.state.take() {
            Some(State::Left(buf, envelope)) => Some((buf, self.comm.found(envelope))),
            other => {
                self.state = other;
                None
            }
        }
    }

    /// The operation that the driver has, if the request is of this generation.
    fn current(&self, core: &Core) -> Result<Option<OpId>, CommError> {
        let now = core.driver.age(self.comm.context());
        match &self.state {
            Some(_) if now == self.generation => Ok(self.under_way()),
            _ => Err(CommError::Expired { started: self.generation, now }),
        }
    }

    /// Waits until the operation is finished; gives the buffer back, for a receive with what came at its
    /// start and the status of the message (`MPI_Wait`).
    ///
    /// # Errors
    /// A failure interrupts it, the message does not fit, or a repair has ended its generation. The buffer
    /// is lost then.
    #[inline]
    pub fn wait(mut self) -> Result<(Vec<T>, Status), CommError> {
        // Mostly that is all, and then it takes less time in the caller than what a call would have to hand back.
        match self.take_done() {
            Some(done) => Ok(done),
            None => self.wait_on(),
        }
    }

    /// What it gives, if it is finished, and well, and there is no reason not to say so.
    #[inline]
    fn take_done(&mut self) -> Option<(Vec<T>, Status)> {
        let Self { comm, generation, state, .. } = self;
        let core = &mut *comm.door().pass()?;
        if core.driver.age(comm.context()) != *generation {
            return None;
        }
        let (buf, envelope) = match state {
            Some(State::Left(buf, envelope)) => (std::mem::take(buf), *envelope),
            Some(State::Under(op)) => {
                let (buffer, envelope) = core.driver.engine.finish_owned(*op)?;
                (own(Some(buffer)), envelope)
            }
            None => return None,
        };
        *state = None;
        core.driver.has_waited();
        Some((buf, comm.found(envelope)))
    }

    fn wait_on(self) -> Result<(Vec<T>, Status), CommError> {
        // The communicator may be gone with this request, and is to be closed behind the call.
        let comm = self.comm.clone();
        let core = &mut *comm.door().enter()?;
        let under_way = self.current(core)?;
        self.wait_in(core, under_way)
    }

    fn wait_in(mut self, core: &mut Core, under_way: Option<OpId>) -> Result<(Vec<T>, Status), CommError> {
        if let Some(left) = self.take_left() {
            return Ok(left);
        }
        let op = under_way.expect("what has not left is under way");
        core.driver.waiting.enter("wait", 0, None);
        let finished = core.wait(op, self.aim.hint(), &mut Memory::none());
        self.state = self.state.take().filter(|_| core.driver.engine.holds(op));
        let (outcome, place) = finished?;
        self.state = None;
        self.unpack(outcome, place)
    }

    /// Whether the operation is finished, after a look at the links: `Ok(Ok(..))` gives what
    /// [`Request::wait`] would, `Ok(Err(self))` gives the request back (`MPI_Test`).
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn test(mut self) -> Result<Result<(Vec<T>, Status), Self>, CommError> {
        // The communicator may be gone with this request, and is to be closed behind the call.
        let comm = self.comm.clone();
        let core = &mut *comm.door().enter()?;
        let under_way = self.current(core)?;
        match core.replays(self.comm.context())? {
            Some(0) => return Ok(Err(self)),
            Some(_) => return self.wait_in(core, under_way).map(Ok),
            None => core.look()?,
        }
        let left = self.take_left();
        let finished = under_way.and_then(|op| core.driver.engine.finish(op));
        core.driver.engine.note(self.comm.context(), u32::from(left.is_some() || finished.is_some()));
        match (left, finished) {
            (Some(left), _) => Ok(Ok(left)),
            (None, Some(finished)) => {
                self.state = None;
                let (outcome, place) = finished?;
                self.unpack(outcome, place).map(Ok)
            }
            (None, None) => Ok(Err(self)),
        }
    }

    /// Withdraws a receive that no message has matched, and gives its buffer back; otherwise gives the request back,
    /// which is to be waited for (`MPI_Cancel`). Sends cannot be withdrawn.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn cancel(mut self) -> Result<Result<Vec<T>, Self>, CommError> {
        // The communicator may be gone with this request, and is to be closed behind the call.
        let comm = self.comm.clone();
        let core = &mut *comm.door().enter()?;
        let under_way = self.current(core)?;
        match under_way.and_then(|op| core.driver.engine.cancel(op)) {
            Some(Some(Place::Owned(buffer))) => {
                self.state = None;
                Ok(Ok(own(Some(buffer))))
            }
            _ => Ok(Err(self)),
        }
    }

    fn unpack(&self, outcome: Outcome, place: Option<Place>) -> Result<(Vec<T>, Status), CommError> {
        let status = match outcome {
            // A send knows its own envelope only, in which the source is this rank.
            Outcome::Done(envelope) => self.comm.found(envelope),
            truncated => self.comm.members().status(truncated)?,
        };
        let Some(Place::Owned(buffer)) = place else { unreachable!("requests own their buffers") };
        Ok((own(Some(buffer)), status))
    }
}

impl<T: Plain> Drop for Request<T> {
    fn drop(&mut self) {
        if let Some(op) = self.under_way()
            && let Some(mut core) = self.comm.door().tidy()
            && core.driver.age(self.comm.context()) == self.generation
        {
            core.driver.engine.detach(op);
        }
    }
}

/// The vector that an operation owned.
pub(crate) fn own<T: Plain>(buffer: Option<Box<dyn Buffer>>) -> Vec<T> {
    let buffer = buffer.expect("a request owns its buffers");
    *buffer.into_any().downcast::<Vec<T>>().expect("the type is the request's")
}

/// A non-blocking operation, for [`wait_any`] and the like: [`Request`] and [`crate::CollectiveRequest`].
pub trait Completion: pending::Pending + Sized {
    /// What waiting gives.
    type Output;

    /// Waits until it is finished.
    ///
    /// # Errors
    /// As the `wait` of the request.
    fn take(self) -> Result<Self::Output, CommError>;
}

/// What this crate asks its own requests.
pub(crate) mod pending {
    use super::*;

    /// The process whose links a request waits for, and the context of its communicator.
    #[derive(Clone)]
    pub struct Process {
        pub(crate) core: Door,
        pub(crate) context: u32,
    }

    pub trait Pending {
        fn process(&self) -> Process;
        fn is_done(&mut self) -> Result<bool, CommError>;
    }

    impl Process {
        pub(crate) fn look(&self) -> Result<(), CommError> {
            self.core.enter()?.look()
        }

        /// Which of several requests were done when the program asked for the first time, if it asks again.
        pub(crate) fn replays(&self) -> Result<Option<u32>, CommError> {
            self.core.enter()?.replays(self.context)
        }

        /// Which were done.
        pub(crate) fn note(&self, which: u32) -> Result<(), CommError> {
            self.core.enter()?.driver.engine.note(self.context, which);
            Ok(())
        }

        /// Waits until something has moved.
        pub(crate) fn wait(&self) -> Result<(), CommError> {
            let core = &mut *self.core.enter()?;
            core.driver.waiting.enter("wait", 0, None);
            core.await_change()
        }
    }
}

impl<T: Plain> pending::Pending for Request<T> {
    fn process(&self) -> pending::Process {
        pending::Process { core: self.comm.door().clone(), context: self.comm.context() }
    }

    fn is_done(&mut self) -> Result<bool, CommError> {
        let core = self.comm.door().enter()?;
        Ok(self.current(&core)?.is_none_or(|op| core.driver.engine.is_finished(op)))
    }
}

impl<T: Plain> Completion for Request<T> {
    type Output = (Vec<T>, Status);

    fn take(self) -> Result<Self::Output, CommError> {
        self.wait()
    }
}

/// Waits for all (`MPI_Waitall`); gives what they give, in order.
///
/// # Errors
/// The first error; the other requests are dropped.
pub fn wait_all<R: Completion>(requests: impl IntoIterator<Item = R>) -> Result<Vec<R::Output>, CommError> {
    requests.into_iter().map(Completion::take).collect()
}

/// Waits until one is finished, takes it out of `requests` and gives its place and what it gives (`MPI_Waitany`); none if
/// there are no requests.
///
/// # Errors
/// The error of a request, which is gone then.
pub fn wait_any<R: Completion>(requests: &mut Vec<R>) -> Result<Option<(usize, R::Output)>, CommError> {
    let Some(process) = requests.first().map(pending::Pending::process) else { return Ok(None) };
    if let Some(which) = process.replays()? {
        return take_again(requests, which).map(Some);
    }
    loop {
        if let Some(found) = take_first(&process, requests)? {
            return Ok(Some(found));
        }
        process.wait()?;
    }
}

/// As [`wait_any`], but returns at once: none if no request is finished, after a look at the links (`MPI_Testany`).
///
/// # Errors
/// As [`wait_any`].
pub fn test_any<R: Completion>(requests: &mut Vec<R>) -> Result<Option<(usize, R::Output)>, CommError> {
    let Some(process) = requests.first().map(pending::Pending::process) else { return Ok(None) };
    match process.replays()? {
        Some(NONE) => return Ok(None),
        Some(which) => return take_again(requests, which).map(Some),
        None => process.look()?,
    }
    let found = take_first(&process, requests)?;
    if found.is_none() {
        process.note(NONE)?;
    }
    Ok(found)
}

/// Waits until one is finished, and takes all that are out of `requests`, with the places that they had
/// (`MPI_Waitsome`).
///
/// # Errors
/// As [`wait_any`].
pub fn wait_some<R: Completion>(requests: &mut Vec<R>) -> Result<Vec<(usize, R::Output)>, CommError> {
    let Some(process) = requests.first().map(pending::Pending::process) else { return Ok(vec![]) };
    if let Some(count) = process.replays()? {
        return take_all_again(&process, requests, count);
    }
    loop {
        let done = take_done(&process, requests)?;
        if !done.is_empty() {
            return Ok(done);
        }
        process.wait()?;
    }
}

/// As [`wait_some`], but returns at once (`MPI_Testsome`).
///
/// # Errors
/// As [`wait_any`].
pub fn test_some<R: Completion>(requests: &mut Vec<R>) -> Result<Vec<(usize, R::Output)>, CommError> {
    let Some(process) = requests.first().map(pending::Pending::process) else { return Ok(vec![]) };
    match process.replays()? {
        Some(count) => return take_all_again(&process, requests, count),
        None => process.look()?,
    }
    let done = take_done(&process, requests)?;
    if done.is_empty() {
        process.note(0)?;
    }
    Ok(done)
}

/// No request was done.
const NONE: u32 = u32::MAX;

/// Takes the request that was done first when this was asked for the first time.
fn take_again<R: Completion>(requests: &mut Vec<R>, which: u32) -> Result<(usize, R::Output), CommError> {
    let at = which as usize;
    if at >= requests.len() {
        return Err(CommError::Diverged);
    }
    requests.remove(at).take().map(|output| (at, output))
}

/// Takes those that were done when this was asked for the first time.
fn take_all_again<R: Completion>(
    process: &pending::Process,
    requests: &mut Vec<R>,
    count: u32,
) -> Result<Vec<(usize, R::Output)>, CommError> {
    let mut done = vec![];
    for _ in 0..count {
        let at = process.replays()?.ok_or(CommError::Diverged)? as usize;
        done.push((at, take_again(requests, (at - done.len()) as u32)?.1));
    }
    Ok(done)
}

fn take_first<R: Completion>(
    process: &pending::Process,
    requests: &mut Vec<R>,
) -> Result<Option<(usize, R::Output)>, CommError> {
    for at in 0..requests.len() {
        match requests[at].is_done() {
            Ok(false) => {}
            Ok(true) => {
                process.note(at as u32)?;
                return requests.remove(at).take().map(|output| Some((at, output)));
            }
            Err(error) => {
                requests.remove(at);
                return Err(error);
            }
        }
    }
    Ok(None)
}

fn take_done<R: Completion>(
    process: &pending::Process,
    requests: &mut Vec<R>,
) -> Result<Vec<(usize, R::Output)>, CommError> {
    let mut done = Vec::new();
    let mut left = Vec::with_capacity(requests.len());
    let mut result = Ok(());
    for (at, mut request) in std::mem::take(requests).into_iter().enumerate() {
        match request.is_done() {
            Ok(true) if result.is_ok() => match request.take() {
                Ok(output) => done.push((at, output)),
                Err(error) => result = Err(error),
            },
            Ok(_) => left.push(request),
            Err(error) => result = result.and(Err(error)),
        }
    }
    *requests = left;
    result?;
    if let Ok(count @ 1..) = u32::try_from(done.len()) {
        process.note(count)?;
        done.iter().try_for_each(|(at, _)| process.note(*at as u32))?;
    }
    Ok(done)
}
