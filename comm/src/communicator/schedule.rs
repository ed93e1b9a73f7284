//! Schedules: steps of the caller's own making, with computations between the messages, run as collectives are (the schedules
//! of T. Hoefler, A. Lumsdaine and W. Rehm, Implementation and performance analysis of non-blocking collective operations for
//! MPI, SC 2007). They go on whenever the program is in a call of this crate.

use std::any::Any;
use std::marker::PhantomData;

use super::exchange::UnderWay;
use super::numbered::Numbered;
use super::*;
use crate::driver::{Apply, Buffer, Own, Spaces, StepList};
use ft_proto::collective::{Space, hazard};

/// What one rank does in an exchange of bytes that all ranks of a communicator take part in; ranks with nothing to do have an
/// empty one.
pub struct Schedule {
    steps: Rc<[Step]>,
    apply: Rc<Apply>,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl Schedule {
    /// `steps` name bytes; `apply` does the computation of a [`Step::Apply`] with this number.
    pub fn new(steps: Vec<Step>, apply: impl Fn(usize, Spaces<'_>) + 'static) -> Self {
        Self { steps: steps.into(), apply: Rc::new(apply) }
    }

    /// Bytes of input and buffer that its steps name.
    fn room(&self) -> (usize, usize) {
        let end = |space: Space| {
            let parts = self.steps.iter().flat_map(|step| {
                let (reads, changes) = hazard::parts(step);
                reads.iter().chain(changes)
            });
            parts.filter(|part| part.space == space).map(|part| part.range.end).max().unwrap_or(0)
        };
        (end(Space::Input), end(Space::Buffer))
    }
}

impl Communicator {
    /// Runs this rank's part of a schedule; collective.
    ///
    /// # Errors
    /// A failure; a message has another length than its receiver expects; a rank does not exist; the memory is too short
    /// ([`CommError::Count`]).
    pub fn run_schedule(
        &self,
        schedule: &Schedule,
        input: &[u8],
        buffer: &mut [u8],
    ) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        self.enter_schedule(core, schedule, (input.len(), buffer.len()))?;
        let list = self.schedule_list(core, schedule);
        core.driver.waiting.enter(list.name, self.shared.context, None);
        let mut memory = Memory::of(input, buffer);
        core.run(list, &mut memory)
    }

    /// Starts it with memory that it owns, which [`ScheduleRequest::wait`] gives back.
    ///
    /// # Errors
    /// As [`Communicator::run_schedule`]; later ones are returned by [`ScheduleRequest::wait`].
    pub fn start_schedule<B: AsRef<[u8]> + AsMut<[u8]> + 'static>(
        &self,
        schedule: &Schedule,
        input: B,
        buffer: B,
    ) -> Result<ScheduleRequest<B>, CommError> {
        let core = &mut *self.core.enter()?;
        let room = (input.as_ref().len(), buffer.as_ref().len());
        self.enter_schedule(core, schedule, room)?;
        let numbered = Numbered::begin(self, core, 1);
        let list = self.schedule_list(core, schedule);
        let (input, buffer) = (Some(Box::new(Given(input)) as _), Some(Box::new(Given(buffer)) as _));
        let id = core.driver.start(list, Own { input, buffer, combine: None }, &mut Memory::none())?;
        let under_way = UnderWay::new(self, core.driver.age(self.shared.context), id);
        Ok(ScheduleRequest { numbered, under_way, memory: PhantomData })
    }

    /// Starts a schedule of this communicator again that was under way at the checkpoint to which this rank goes back, with memory as that of then. It has a record, as before.
    ///
    /// # Errors
    /// As [`Communicator::start_schedule`]; [`CommError::TooSoon`]: this rank is not in a step.
    pub fn start_schedule_again<B: AsRef<[u8]> + AsMut<[u8]> + 'static>(
        &self,
        record: &CollectiveRecord,
        schedule: &Schedule,
        input: B,
        buffer: B,
    ) -> Result<ScheduleRequest<B>, CommError> {
        let request = self.begin_as(record, |comm| comm.start_schedule(schedule, input, buffer))?;
        request.record()?;
        Ok(request)
    }

    fn enter_schedule(
        &self,
        core: &mut Core,
        schedule: &Schedule,
        room: (usize, usize),
    ) -> Result<(), CommError> {
        self.current(core)?;
        let fits = self.fits_schedule(schedule, room);
        fits.inspect_err(|_| self.refuse(core, "schedule"))?;
        core.enter_collective()
    }

    fn fits_schedule(&self, schedule: &Schedule, (input, buffer): (usize, usize)) -> Result<(), CommError> {
        for step in &*schedule.steps {
            if let Step::Send { to: peer, .. }
            | Step::Recv { from: peer, .. }
            | Step::RecvReduce { from: peer, .. } = step
            {
                self.world(*peer)?;
            }
        }
        let room = schedule.room();
        if input < room.0 || buffer < room.1 {
            let (due, given) = (format!("{} and {}", room.0, room.1), format!("{input} and {buffer}"));
            return Err(CommError::Count(format!("a schedule over {due} bytes got {given}")));
        }
        Ok(())
    }

    fn schedule_list(&self, core: &Core, schedule: &Schedule) -> StepList {
        let list = self.list::<u8>(core, "schedule", schedule.steps.clone());
        StepList { apply: Some(schedule.apply.clone()), ..list }
    }
}

/// A schedule under way. Dropped without being waited for, it ends behind the program's back.
#[must_use = "a request is to be waited for"]
#[derive(Debug)]
pub struct ScheduleRequest<B> {
    numbered: Numbered,
    under_way: UnderWay,
    memory: PhantomData<B>,
}

impl<B: AsRef<[u8]> + AsMut<[u8]> + 'static> ScheduleRequest<B> {
    /// Waits until all steps are done; gives input and buffer back.
    ///
    /// # Errors
    /// A failure, a message of another length, or a repair has come between.
    pub fn wait(self) -> Result<(B, B), CommError> {
        let (input, buffer) = self.under_way.wait("schedule")?;
        Ok((given(input), given(buffer)))
    }

    /// The request as a value; from now on checkpoints are taken beside it.
    ///
    /// # Errors
    /// As [`ScheduleRequest::wait`].
    pub fn record(&self) -> Result<CollectiveRecord, CommError> {
        let core = &mut *self.under_way.enter()?;
        Ok(self.numbered.record(core))
    }

    /// Whether [`ScheduleRequest::wait`] would return at once, after a look at the links.
    ///
    /// # Errors
    /// As [`ScheduleRequest::wait`].
    pub fn is_done(&self) -> Result<bool, CommError> {
        self.under_way.is_done()
    }
}

/// Memory of whatever kind that the caller gives away until the schedule is done.
struct Given<B>(B);

impl<B: AsRef<[u8]> + AsMut<[u8]> + 'static> Buffer for Given<B> {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn given<B: 'static>(buffer: Option<Box<dyn Buffer>>) -> B {
    let buffer = buffer.expect("a schedule owns its memory");
    buffer.into_any().downcast::<Given<B>>().expect("the type is the request's").0
}
