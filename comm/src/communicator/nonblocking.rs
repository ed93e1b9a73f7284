//! Non-blocking collectives (MPI 4.1, section 6.12): they own their buffers, go on whenever the program is in a call of
//! this crate, and several may be under way at once. All ranks start them in the same order.

use std::marker::PhantomData;

use super::checking::Check;
use super::collectives::Call;
use super::numbered::Numbered;
use super::*;
use crate::driver::{ActivityId, Combine, Own};
use crate::request::pending::{Pending, Process};
use ft_proto::collective::Order;
use ft_proto::reduction::Operation;

impl Communicator {
    /// Starts a [`Communicator::barrier`] (`MPI_Ibarrier`).
    ///
    /// # Errors
    /// A failure; later ones are returned by [`CollectiveRequest::wait`].
    pub fn ibarrier(&self) -> Result<CollectiveRequest<u8>, CommError> {
        self.begin(self.barrier_call()?, vec![], vec![], None)
    }

    /// Starts a [`Communicator::bcast`] (`MPI_Ibcast`).
    ///
    /// # Errors
    /// As [`Communicator::bcast`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn ibcast<T: Plain>(&self, buf: Vec<T>, root: Rank) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.bcast_call::<T>(buf.len(), root)?, vec![], buf, None)
    }

    /// Starts a [`Communicator::reduce`] (`MPI_Ireduce`).
    ///
    /// # Errors
    /// As [`Communicator::reduce`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn ireduce<T: Plain>(
        &self,
        buf: Vec<T>,
        op: impl Operation<T> + 'static,
        root: Rank,
    ) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.reduce_call(buf.len(), &op, root)?, vec![], buf, Some(combining(op)))
    }

    /// Starts a [`Communicator::allreduce`] (`MPI_Iallreduce`).
    ///
    /// # Errors
    /// As [`Communicator::allreduce`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iallreduce<T: Plain>(
        &self,
        buf: Vec<T>,
        op: impl Operation<T> + 'static,
    ) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.allreduce_call(buf.len(), &op)?, vec![], buf, Some(combining(op)))
    }

    /// Starts a [`Communicator::scan`] (`MPI_Iscan`).
    ///
    /// # Errors
    /// As [`Communicator::scan`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iscan<T: Plain>(
        &self,
        buf: Vec<T>,
        op: impl Operation<T> + 'static,
    ) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.scan_call(buf.len(), &op)?, vec![], buf, Some(combining(op)))
    }

    /// Starts a [`Communicator::exscan`] (`MPI_Iexscan`).
    ///
    /// # Errors
    /// As [`Communicator::exscan`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iexscan<T: Plain>(
        &self,
        buf: Vec<T>,
        op: impl Operation<T> + 'static,
    ) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.exscan_call(buf.len(), &op)?, vec![], buf, Some(combining(op)))
    }

    /// Starts a [`Communicator::reduce_scatter`] (`MPI_Ireduce_scatter`).
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn ireduce_scatter<T: Plain>(
        &self,
        buf: Vec<T>,
        counts: &[usize],
        op: impl Operation<T> + 'static,
    ) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.reduce_scatter_call(buf.len(), counts, &op)?, vec![], buf, Some(combining(op)))
    }

    /// Starts a [`Communicator::gather`] (`MPI_Igather`); the root's request gives all parts, the others' nothing.
    ///
    /// # Errors
    /// As [`Communicator::gather`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn igather<T: Plain>(&self, mine: Vec<T>, root: Rank) -> Result<CollectiveRequest<T>, CommError> {
        let call = self.gather_call::<T>(mine.len(), root)?;
        let all = self.gathered(&mine, root, mine.len() * self.size(), mine.len() * self.rank());
        self.begin(call, mine, all, None)
    }

    /// Starts a [`Communicator::gatherv`] (`MPI_Igatherv`); the root's request gives all parts, the others' nothing.
    ///
    /// # Errors
    /// As [`Communicator::gatherv`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn igatherv<T: Plain>(
        &self,
        mine: Vec<T>,
        counts: &[usize],
        root: Rank,
    ) -> Result<CollectiveRequest<T>, CommError> {
        let (call, starts) = self.gatherv_call(mine.len(), counts, root)?;
        let (end, own) = (starts.last().copied().unwrap_or(0), starts.get(self.rank()).copied().unwrap_or(0));
        let all = self.gathered(&mine, root, end, own);
        self.begin(call, mine, all, None)
    }

    /// Starts a [`Communicator::scatter`] (`MPI_Iscatter`); `len` is the length of a part.
    ///
    /// # Errors
    /// As [`Communicator::scatter`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iscatter<T: Plain>(
        &self,
        all: Vec<T>,
        len: usize,
        root: Rank,
    ) -> Result<CollectiveRequest<T>, CommError> {
        let call = self.scatter_call::<T>(all.len(), len, root)?;
        let mut mine = vec![T::zeroed(); len];
        if self.rank() == root {
            mine.copy_from_slice(&all[root * len..(root + 1) * len]);
        }
        self.begin(call, all, mine, None)
    }

    /// Starts a [`Communicator::scatterv`] (`MPI_Iscatterv`); `len` is the length of the own part.
    ///
    /// # Errors
    /// As [`Communicator::scatterv`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iscatterv<T: Plain>(
        &self,
        all: Vec<T>,
        counts: &[usize],
        len: usize,
        root: Rank,
    ) -> Result<CollectiveRequest<T>, CommError> {
        let (call, starts) = self.scatterv_call(all.len(), counts, len, root)?;
        let mut mine = vec![T::zeroed(); len];
        if self.rank() == root {
            mine.copy_from_slice(&all[starts[root]..starts[root + 1]]);
        }
        self.begin(call, all, mine, None)
    }

    /// Starts a [`Communicator::allgatherv`] (`MPI_Iallgatherv`, in place).
    ///
    /// # Errors
    /// As [`Communicator::allgatherv`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iallgatherv<T: Plain>(
        &self,
        buf: Vec<T>,
        counts: &[usize],
    ) -> Result<CollectiveRequest<T>, CommError> {
        self.begin(self.allgatherv_call::<T>(buf.len(), counts)?, vec![], buf, None)
    }

    /// Starts a [`Communicator::allgather`] (`MPI_Iallgather`).
    ///
    /// # Errors
    /// As [`Communicator::allgather`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn iallgather<T: Plain>(&self, mine: &[T]) -> Result<CollectiveRequest<T>, CommError> {
        let (rank, size, len) = (self.rank(), self.size(), mine.len());
        let mut all = vec![T::zeroed(); size * len];
        all[rank * len..(rank + 1) * len].copy_from_slice(mine);
        self.iallgatherv(all, &vec![len; size])
    }

    /// Starts a [`Communicator::alltoall`] (`MPI_Ialltoall`).
    ///
    /// # Errors
    /// As [`Communicator::alltoall`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn ialltoall<T: Plain>(&self, out: Vec<T>) -> Result<CollectiveRequest<T>, CommError> {
        let call = self.alltoall_call::<T>(out.len(), out.len())?;
        let mut buf = vec![T::zeroed(); out.len()];
        let len = out.len() / self.size();
        let own = self.rank() * len..(self.rank() + 1) * len;
        buf[own.clone()].copy_from_slice(&out[own]);
        self.begin(call, out, buf, None)
    }

    /// Starts a [`Communicator::alltoallv`] (`MPI_Ialltoallv`).
    ///
    /// # Errors
    /// As [`Communicator::alltoallv`]; later ones are returned by [`CollectiveRequest::wait`].
    pub fn ialltoallv<T: Plain>(
        &self,
        out: Vec<T>,
        out_counts: &[usize],
        counts: &[usize],
    ) -> Result<CollectiveRequest<T>, CommError> {
        let mut buf = vec![T::zeroed(); counts.iter().sum()];
        let (call, sent, received) = self.alltoallv_call(out.len(), out_counts, buf.len(), counts)?;
        buf[received].copy_from_slice(&out[sent]);
        self.begin(call, out, buf, None)
    }

    pub(super) fn begin<T: Plain>(
        &self,
        call: Call,
        input: Vec<T>,
        buf: Vec<T>,
        combine: Option<Box<Combine<'static>>>,
    ) -> Result<CollectiveRequest<T>, CommError> {
        let core = &mut *self.core.enter()?;
        self.current(core)?;
        core.enter_collective()?;
        let numbered = Numbered::begin(self, core, 1 + u32::from(core.checks_calls));
        let check = self.begin_check::<T>(core, &call, false)?;
        let (name, generation) = (call.name, core.driver.age(self.shared.context));
        let list = self.list::<T>(core, name, call.steps);
        let (input, buf) = (Some(Box::new(input) as _), Some(Box::new(buf) as _));
        let id = core.driver.start(list, Own { input, buffer: buf, combine }, &mut Memory::none())?;
        let comm = self.clone();
        Ok(CollectiveRequest { comm, name, generation, numbered, check, id: Some(id), element: PhantomData })
    }

    /// Begins a collective of this communicator again that was under way at the checkpoint to which this rank goes back: `begin` makes the same call, with the same arguments. It has a record, as before.
    ///
    /// # Errors
    /// As the call; [`CommError::TooSoon`]: this rank is not in a step.
    pub fn begin_again<T: Plain>(
        &self,
        record: &CollectiveRecord,
        begin: impl FnOnce(&Self) -> Result<CollectiveRequest<T>, CommError>,
    ) -> Result<CollectiveRequest<T>, CommError> {
        let request = self.begin_as(record, begin)?;
        request.record()?;
        Ok(request)
    }
}

fn combining<T: Plain>(op: impl Operation<T> + 'static) -> Box<Combine<'static>> {
    Box::new(move |into, from, order: Order| {
        op.combine(bytemuck::cast_slice_mut(into), bytemuck::cast_slice(from), order);
    })
}

/// A collective under way. It owns its buffers. Dropped without being waited for, it ends behind the program's back.
#[must_use = "a request is to be waited for"]
#[derive(Debug)]
pub struct CollectiveRequest<T: Plain> {
    comm: Communicator,
    name: &'static str,
    generation: Generation,
    numbered: Numbered,
    check: Option<Check>,
    id: Option<ActivityId>,
    element: PhantomData<T>,
}

impl<T: Plain> CollectiveRequest<T> {
    /// Waits until this rank's part is done; gives the buffer that the blocking call would have filled.
    ///
    /// # Errors
    /// A failure, arguments of the ranks that do not agree, or a repair has come between.
    pub fn wait(mut self) -> Result<Vec<T>, CommError> {
        let core = &mut *self.comm.core.enter()?;
        let id = self.current(core)?;
        core.driver.waiting.enter(self.name, self.comm.shared.context, None);
        if let Some(check) = self.check.take() {
            core.wait_activity(check.id, &mut Memory::none())?;
            self.comm.verdict(core, check)?;
        }
        core.wait_activity(id, &mut Memory::none())?;
        self.id = None;
        let (_, buf) = core.driver.finish_activity(id)?;
        Ok(crate::request::own(buf))
    }

    /// The request as a value; from now on checkpoints are taken beside it.
    ///
    /// # Errors
    /// As [`CollectiveRequest::wait`].
    pub fn record(&self) -> Result<CollectiveRecord, CommError> {
        let core = &mut *self.comm.core.enter()?;
        self.current(core)?;
        Ok(self.numbered.record(core))
    }

    /// Whether [`CollectiveRequest::wait`] would return at once, after a look at the links.
    ///
    /// # Errors
    /// As [`CollectiveRequest::wait`].
    pub fn is_done(&mut self) -> Result<bool, CommError> {
        let context = self.comm.shared.context;
        let replayed = self.comm.core.enter()?.replays(context)?;
        if let Some(was_done) = replayed {
            return match was_done {
                0 => Ok(false),
                _ => self.until_done().map(|()| true),
            };
        }
        self.comm.core.enter()?.look()?;
        let is_done = Pending::is_done(self)?;
        self.comm.core.enter()?.driver.engine.note(context, u32::from(is_done));
        Ok(is_done)
    }

    /// Waits until it is done, and leaves it as it is.
    fn until_done(&mut self) -> Result<(), CommError> {
        let core = &mut *self.comm.core.enter()?;
        let id = self.current(core)?;
        for id in self.check.iter().map(|check| check.id).chain([id]) {
            core.wait_activity(id, &mut Memory::none())?;
        }
        Ok(())
    }

    fn current(&self, core: &Core) -> Result<ActivityId, CommError> {
        let now = core.driver.age(self.comm.shared.context);
        match self.id {
            Some(id) if now == self.generation => Ok(id),
            _ => Err(CommError::Expired { started: self.generation, now }),
        }
    }
}

impl<T: Plain> Pending for CollectiveRequest<T> {
    fn process(&self) -> Process {
        Process { core: self.comm.core.clone(), context: self.comm.shared.context }
    }

    fn is_done(&mut self) -> Result<bool, CommError> {
        let core = &mut *self.comm.core.enter()?;
        let id = self.current(core)?;
        if let Some(check) = self.check.take_if(|check| core.driver.lists.is_done(check.id)) {
            self.comm.verdict(core, check)?;
        }
        Ok(self.check.is_none() && core.driver.lists.is_done(id))
    }
}

impl<T: Plain> crate::Completion for CollectiveRequest<T> {
    type Output = Vec<T>;

    fn take(self) -> Result<Vec<T>, CommError> {
        self.wait()
    }
}

impl<T: Plain> Drop for CollectiveRequest<T> {
    fn drop(&mut self) {
        let Some(mut core) = self.comm.core.tidy() else { return };
        if core.driver.age(self.comm.shared.context) == self.generation {
            for id in self.id.into_iter().chain(self.check.as_ref().map(|check| check.id)) {
                core.driver.detach_activity(id);
            }
        }
    }
}
