//! Collective operations (MPI 4.1, chapter 6): every rank of the communicator calls them in the same order, with
//! arguments that agree. The algorithms are step lists; which one runs depends on size, length, the hosts of the ranks and
//! the selection table of the job only.

use super::*;
use crate::driver::{SCRATCH_ALIGN, StepList};
use ft_proto::collective::{Operation as Kind, Order, Shape, equal_starts, gather_linear, scatter_linear};
use ft_proto::endpoint::{LINED_TAG, TAPED_TAG};
use ft_proto::reduction::Operation;

/// What one rank does in a collective call, before it is known whether the call waits.
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) steps: Steps,
    /// What all ranks must agree on, for the check of calls: count and root where they have to.
    pub(super) count: Option<usize>,
    pub(super) root: Option<Rank>,
}

fn call(name: &'static str, steps: impl Into<Steps>) -> Call {
    Call { name, steps: steps.into(), count: None, root: None }
}

impl Call {
    fn count(self, count: usize) -> Self {
        Self { count: Some(count), ..self }
    }

    fn root(self, root: Rank) -> Self {
        Self { root: Some(root), ..self }
    }
}

/// Where the part of each rank starts, and at last where the last one ends.
pub(super) fn starts_of(counts: &[usize]) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(counts.iter().scan(0usize, |end, count| {
        *end += count;
        Some(*end)
    }));
    starts
}

impl Communicator {
    /// No rank returns before every rank has called (`MPI_Barrier`).
    ///
    /// # Errors
    /// A failure.
    pub fn barrier(&self) -> Result<(), CommError> {
        self.run::<u8>(self.barrier_call()?, &[], &mut [], None)
    }

    /// All ranks get the `buf` of `root`; lengths are equal on all ranks (`MPI_Bcast`).
    ///
    /// # Errors
    /// A failure, or `root` does not exist.
    pub fn bcast<T: Plain>(&self, buf: &mut [T], root: Rank) -> Result<(), CommError> {
        self.run(self.bcast_call::<T>(buf.len(), root)?, &[], buf, None)
    }

    /// The `buf` of `root` becomes the elementwise reduction over all ranks; the others' are unspecified
    /// afterwards (`MPI_Reduce`, in place).
    ///
    /// # Errors
    /// A failure, `root` does not exist, or `op` has no meaning for `T` ([`CommError::Operation`]).
    pub fn reduce<T: Plain>(
        &self,
        buf: &mut [T],
        op: impl Operation<T>,
        root: Rank,
    ) -> Result<(), CommError> {
        self.run(self.reduce_call(buf.len(), &op, root)?, &[], buf, Some(&op))
    }

    /// `buf` becomes the elementwise reduction over all ranks, with the same bits everywhere
    /// (`MPI_Allreduce`, in place).
    ///
    /// # Errors
    /// A failure, or `op` has no meaning for `T` ([`CommError::Operation`]).
    pub fn allreduce<T: Plain>(&self, buf: &mut [T], op: impl Operation<T>) -> Result<(), CommError> {
        self.run(self.allreduce_call(buf.len(), &op)?, &[], buf, Some(&op))
    }

    /// `buf` becomes the elementwise reduction over the ranks up to this one (`MPI_Scan`, in place).
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn scan<T: Plain>(&self, buf: &mut [T], op: impl Operation<T>) -> Result<(), CommError> {
        self.run(self.scan_call(buf.len(), &op)?, &[], buf, Some(&op))
    }

    /// `buf` becomes the elementwise reduction over the ranks below this one; that of rank 0 stays as it is
    /// (`MPI_Exscan`, in place).
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn exscan<T: Plain>(&self, buf: &mut [T], op: impl Operation<T>) -> Result<(), CommError> {
        self.run(self.exscan_call(buf.len(), &op)?, &[], buf, Some(&op))
    }

    /// `buf` has `counts[r]` elements for each rank `r`, in order of ranks; the part of this rank becomes the
    /// elementwise reduction over all ranks, the others are unspecified afterwards (`MPI_Reduce_scatter`, in place).
    ///
    /// # Errors
    /// As [`Communicator::allreduce`], or the counts do not fit the buffer.
    pub fn reduce_scatter<T: Plain>(
        &self,
        buf: &mut [T],
        counts: &[usize],
        op: impl Operation<T>,
    ) -> Result<(), CommError> {
        self.run(self.reduce_scatter_call(buf.len(), counts, &op)?, &[], buf, Some(&op))
    }

    /// The root gets the `mine` of all ranks, in order of ranks; lengths are equal (`MPI_Gather`).
    ///
    /// # Errors
    /// A failure, or `root` does not exist.
    pub fn gather<T: Plain>(&self, mine: &[T], root: Rank) -> Result<Option<Vec<T>>, CommError> {
        let call = self.gather_call::<T>(mine.len(), root)?;
        let mut all = self.gathered(mine, root, mine.len() * self.size(), mine.len() * self.rank());
        self.run(call, mine, &mut all, None)?;
        Ok((self.rank() == root).then_some(all))
    }

    /// The root gets the `mine` of all ranks, in order of ranks; it has to know the lengths, `counts[r]` for rank `r`
    /// (the others' `counts` are ignored) (`MPI_Gatherv`).
    ///
    /// # Errors
    /// As [`Communicator::gather`], or the counts do not fit ([`CommError::Count`]).
    pub fn gatherv<T: Plain>(
        &self,
        mine: &[T],
        counts: &[usize],
        root: Rank,
    ) -> Result<Option<Vec<T>>, CommError> {
        let (call, starts) = self.gatherv_call(mine.len(), counts, root)?;
        let (end, own) = (starts.last().copied().unwrap_or(0), starts.get(self.rank()).copied().unwrap_or(0));
        let mut all = self.gathered(mine, root, end, own);
        self.run(call, mine, &mut all, None)?;
        Ok((self.rank() == root).then_some(all))
    }

    /// The buffer of the root of a gather, its own part in place.
    pub(super) fn gathered<T: Plain>(&self, mine: &[T], root: Rank, len: usize, own: usize) -> Vec<T> {
        if self.rank() != root {
            return vec![];
        }
        let mut all = vec![T::zeroed(); len];
        all[own..own + mine.len()].copy_from_slice(mine);
        all
    }

    /// Rank `r` gets the `r`-th part of the root's `all`; all parts are as long as `mine` (`MPI_Scatter`). The others'
    /// `all` is ignored.
    ///
    /// # Errors
    /// A failure, `root` does not exist, or the lengths do not fit.
    pub fn scatter<T: Plain>(&self, all: &[T], mine: &mut [T], root: Rank) -> Result<(), CommError> {
        let call = self.scatter_call::<T>(all.len(), mine.len(), root)?;
        if self.rank() == root {
            mine.copy_from_slice(&all[self.rank() * mine.len()..][..mine.len()]);
            return self.run(call, all, mine, None);
        }
        self.run(call, &[], mine, None)
    }

    /// Rank `r` gets `counts[r]` elements of the root's `all`, in order of ranks (`MPI_Scatterv`); `mine` is as long as
    /// the own part. The others' `all` and `counts` are ignored.
    ///
    /// # Errors
    /// As [`Communicator::scatter`].
    pub fn scatterv<T: Plain>(
        &self,
        all: &[T],
        counts: &[usize],
        mine: &mut [T],
        root: Rank,
    ) -> Result<(), CommError> {
        let (call, starts) = self.scatterv_call(all.len(), counts, mine.len(), root)?;
        if self.rank() == root {
            mine.copy_from_slice(&all[starts[root]..starts[root + 1]]);
            return self.run(call, all, mine, None);
        }
        self.run(call, &[], mine, None)
    }

    /// `all` becomes the `mine` of all ranks, in order of ranks; `all.len() == size * mine.len()`
    /// (`MPI_Allgather`).
    ///
    /// # Errors
    /// A failure, or the lengths do not fit.
    pub fn allgather<T: Plain>(&self, mine: &[T], all: &mut [T]) -> Result<(), CommError> {
        let (rank, size, len) = (self.rank(), self.size(), mine.len());
        if all.len() != size * len {
            let text = format!("allgather of {size} parts of {len} elements into {}", all.len());
            return self.or_refuse("allgather", Err(CommError::Count(text)));
        }
        all[rank * len..(rank + 1) * len].copy_from_slice(mine);
        self.allgatherv(all, &vec![len; size])
    }

    /// Rank `r` has `counts[r]` elements of `buf`, in order of ranks, in place already; all ranks get all of
    /// them (`MPI_Allgatherv`, in place).
    ///
    /// # Errors
    /// A failure, or the counts do not fit.
    pub fn allgatherv<T: Plain>(&self, buf: &mut [T], counts: &[usize]) -> Result<(), CommError> {
        self.run(self.allgatherv_call::<T>(buf.len(), counts)?, &[], buf, None)
    }

    /// Rank `r` gets the `r`-th part of every rank's `out`; `buf` becomes the parts for this rank, in order of the ranks
    /// that they come from. All parts are equally long (`MPI_Alltoall`).
    ///
    /// # Errors
    /// A failure, or the lengths differ or are no multiple of the size.
    pub fn alltoall<T: Plain>(&self, out: &[T], buf: &mut [T]) -> Result<(), CommError> {
        let call = self.alltoall_call::<T>(out.len(), buf.len())?;
        let own = self.rank() * (out.len() / self.size())..(self.rank() + 1) * (out.len() / self.size());
        buf[own.clone()].copy_from_slice(&out[own]);
        self.run(call, out, buf, None)
    }

    /// As [`Communicator::alltoall`], in place: the parts of `buf` are sent and then overwritten.
    ///
    /// # Errors
    /// As [`Communicator::alltoall`].
    pub fn alltoall_in_place<T: Plain>(&self, buf: &mut [T]) -> Result<(), CommError> {
        let out = buf.to_vec();
        self.alltoall(&out, buf)
    }

    /// This rank sends `out_counts[r]` elements of `out` to rank `r` and gets `counts[r]` from it, both in order of ranks
    /// (`MPI_Alltoallv`).
    ///
    /// # Errors
    /// A failure, or the counts do not fit the buffers, or each other ([`CommError::Count`]).
    pub fn alltoallv<T: Plain>(
        &self,
        out: &[T],
        out_counts: &[usize],
        buf: &mut [T],
        counts: &[usize],
    ) -> Result<(), CommError> {
        let (call, sent, received) = self.alltoallv_call(out.len(), out_counts, buf.len(), counts)?;
        buf[received].copy_from_slice(&out[sent]);
        self.run(call, out, buf, None)
    }

    // ---- what the blocking and the non-blocking calls share ----

    /// What all calls on elements of this type have in common.
    fn shape<T: Plain>(&self) -> Shape<'static> {
        Shape { element_bytes: size_of::<T>(), ..Shape::new(self.rank(), self.size()) }
    }

    /// The step list of a call, from the table of the job.
    fn steps(&self, operation: Kind, shape: &Shape<'_>) -> Result<Vec<Step>, CommError> {
        let (members, core) = (self.members(), self.core.read()?);
        let hosts = if core.chooses_by_hosts { &members.hosts[..] } else { &[] };
        Ok(core.selection.steps(operation, &Shape { hosts, ..*shape }))
    }

    /// The same, kept for a program that repeats itself. Parts, if the call has any, are all of `shape.len` elements.
    fn kept_steps(&self, operation: Kind, shape: &Shape<'_>) -> Result<Steps, CommError> {
        let Shape { len, root, element_bytes: element, commutative, .. } = *shape;
        let table = self.core.read()?.tables;
        let key = ListKey { operation, len, root, element, commutative, table };
        let lists = &mut *self.shared.lists.borrow_mut();
        if let Some((_, steps)) = lists.iter().find(|(known, _)| *known == key) {
            return Ok(steps.clone());
        }
        let steps = Steps::kept(self.steps(operation, shape)?);
        if lists.len() == LISTS_MAX {
            lists.remove(0);
        }
        lists.push((key, steps.clone()));
        Ok(steps)
    }

    pub(super) fn barrier_call(&self) -> Result<Call, CommError> {
        Ok(call("barrier", self.kept_steps(Kind::Barrier, &self.shape::<u8>())?))
    }

    pub(super) fn bcast_call<T: Plain>(&self, len: usize, root: Rank) -> Result<Call, CommError> {
        self.check_root("bcast", root)?;
        let shape = Shape { root, len, ..self.shape::<T>() };
        Ok(call("bcast", self.kept_steps(Kind::Bcast, &shape)?).count(len).root(root))
    }

    pub(super) fn reduce_call<T: Plain>(
        &self,
        len: usize,
        op: &impl Operation<T>,
        root: Rank,
    ) -> Result<Call, CommError> {
        self.check_root("reduce", root)?;
        self.check_operation("reduce", op)?;
        let shape = Shape { root, len, commutative: op.is_commutative(), ..self.shape::<T>() };
        Ok(call("reduce", self.kept_steps(Kind::Reduce, &shape)?).count(len).root(root))
    }

    pub(super) fn allreduce_call<T: Plain>(
        &self,
        len: usize,
        op: &impl Operation<T>,
    ) -> Result<Call, CommError> {
        self.check_operation("allreduce", op)?;
        let shape = Shape { len, commutative: op.is_commutative(), ..self.shape::<T>() };
        Ok(call("allreduce", self.kept_steps(Kind::Allreduce, &shape)?).count(len))
    }

    pub(super) fn scan_call<T: Plain>(&self, len: usize, op: &impl Operation<T>) -> Result<Call, CommError> {
        self.check_operation("scan", op)?;
        let shape = Shape { len, commutative: op.is_commutative(), ..self.shape::<T>() };
        Ok(call("scan", self.kept_steps(Kind::Scan, &shape)?).count(len))
    }

    pub(super) fn exscan_call<T: Plain>(
        &self,
        len: usize,
        op: &impl Operation<T>,
    ) -> Result<Call, CommError> {
        self.check_operation("exscan", op)?;
        let shape = Shape { len, commutative: op.is_commutative(), ..self.shape::<T>() };
        Ok(call("exscan", self.kept_steps(Kind::Exscan, &shape)?).count(len))
    }

    pub(super) fn reduce_scatter_call<T: Plain>(
        &self,
        len: usize,
        counts: &[usize],
        op: &impl Operation<T>,
    ) -> Result<Call, CommError> {
        self.check_operation("reduce_scatter", op)?;
        let starts = self.starts("reduce_scatter", counts, len)?;
        let shape = Shape { starts: &starts, commutative: op.is_commutative(), ..self.shape::<T>() };
        Ok(call("reduce_scatter", self.steps(Kind::ReduceScatter, &shape)?).count(len))
    }

    pub(super) fn gather_call<T: Plain>(&self, len: usize, root: Rank) -> Result<Call, CommError> {
        self.check_root("gather", root)?;
        let starts = equal_starts(self.size(), len);
        let shape = Shape { root, len, starts: &starts, ..self.shape::<T>() };
        Ok(call("gather", self.steps(Kind::Gather, &shape)?).count(len).root(root))
    }

    pub(super) fn gatherv_call(
        &self,
        mine: usize,
        counts: &[usize],
        root: Rank,
    ) -> Result<(Call, Vec<usize>), CommError> {
        self.check_root("gatherv", root)?;
        let starts = if self.rank() == root { self.parts("gatherv", counts, mine)? } else { vec![] };
        // Only the root knows where the parts start, so there is no choice.
        let steps = gather_linear(self.rank(), self.size(), root, mine, &starts);
        Ok((call("gatherv", steps).root(root), starts))
    }

    pub(super) fn scatter_call<T: Plain>(
        &self,
        all: usize,
        mine: usize,
        root: Rank,
    ) -> Result<Call, CommError> {
        self.check_root("scatter", root)?;
        if self.rank() == root && all != mine * self.size() {
            let size = self.size();
            let text = format!("scatter of {all} elements to {size} parts of {mine}");
            return self.or_refuse("scatter", Err(CommError::Count(text)));
        }
        let starts = equal_starts(self.size(), mine);
        let shape = Shape { root, len: mine, starts: &starts, ..self.shape::<T>() };
        Ok(call("scatter", self.steps(Kind::Scatter, &shape)?).count(mine).root(root))
    }

    pub(super) fn scatterv_call(
        &self,
        all: usize,
        counts: &[usize],
        mine: usize,
        root: Rank,
    ) -> Result<(Call, Vec<usize>), CommError> {
        self.check_root("scatterv", root)?;
        let mut starts = vec![];
        if self.rank() == root {
            starts = self.parts("scatterv", counts, mine)?;
            if starts.last() != Some(&all) {
                let text = format!("scatterv of counts {counts:?} from {all} elements");
                return self.or_refuse("scatterv", Err(CommError::Count(text)));
            }
        }
        // As with gatherv.
        let steps = scatter_linear(self.rank(), self.size(), root, mine, &starts);
        Ok((call("scatterv", steps).root(root), starts))
    }

    pub(super) fn allgatherv_call<T: Plain>(&self, len: usize, counts: &[usize]) -> Result<Call, CommError> {
        let starts = self.starts("allgatherv", counts, len)?;
        let shape = Shape { len: counts[0], starts: &starts, ..self.shape::<T>() };
        let steps = match counts.iter().all(|count| *count == counts[0]) {
            true => self.kept_steps(Kind::Allgather, &shape)?,
            false => self.steps(Kind::Allgather, &shape)?.into(),
        };
        Ok(call("allgather", steps).count(len))
    }

    pub(super) fn alltoall_call<T: Plain>(&self, out: usize, buf: usize) -> Result<Call, CommError> {
        let size = self.size();
        if out != buf || !out.is_multiple_of(size) {
            let text = format!("alltoall of {size} ranks over buffers of {out} and {buf} elements");
            return self.or_refuse("alltoall", Err(CommError::Count(text)));
        }
        let starts = equal_starts(size, out / size);
        let shape = Shape { len: out / size, starts: &starts, recv_starts: &starts, ..self.shape::<T>() };
        Ok(call("alltoall", self.kept_steps(Kind::Alltoall, &shape)?).count(out))
    }

    pub(super) fn alltoallv_call(
        &self,
        out: usize,
        out_counts: &[usize],
        buf: usize,
        counts: &[usize],
    ) -> Result<(Call, std::ops::Range<usize>, std::ops::Range<usize>), CommError> {
        let sends = self.starts("alltoallv", out_counts, out)?;
        let receives = self.starts("alltoallv", counts, buf)?;
        let (rank, size) = (self.rank(), self.size());
        if out_counts[rank] != counts[rank] {
            let (to, from) = (out_counts[rank], counts[rank]);
            let text = format!("alltoallv of {to} elements to itself, {from} from itself");
            return self.or_refuse("alltoallv", Err(CommError::Count(text)));
        }
        let shape = Shape { starts: &sends, recv_starts: &receives, ..Shape::new(rank, size) };
        let steps = self.steps(Kind::Alltoallv, &shape)?;
        let (sent, received) = (sends[rank]..sends[rank + 1], receives[rank]..receives[rank + 1]);
        Ok((call("alltoallv", steps), sent, received))
    }

    /// Where the parts start, if there is one for each rank and they fill `len` elements.
    fn starts(&self, name: &'static str, counts: &[usize], len: usize) -> Result<Vec<usize>, CommError> {
        let starts = starts_of(counts);
        if counts.len() != self.size() || starts.last() != Some(&len) {
            let text = format!("{name} of counts {counts:?} over {len} elements");
            return self.or_refuse(name, Err(CommError::Count(text)));
        }
        Ok(starts)
    }

    /// Where the parts start, if there is one for each rank and this rank's own is `mine` long.
    fn parts(&self, name: &'static str, counts: &[usize], mine: usize) -> Result<Vec<usize>, CommError> {
        if counts.len() != self.size() || counts[self.rank()] != mine {
            let text = format!("{name} of counts {counts:?} with an own part of {mine} elements");
            return self.or_refuse(name, Err(CommError::Count(text)));
        }
        Ok(starts_of(counts))
    }

    fn check_root(&self, name: &'static str, root: Rank) -> Result<(), CommError> {
        self.or_refuse(name, self.world(root).map(|_| ()))
    }

    fn check_operation<T: Plain>(&self, name: &'static str, op: &impl Operation<T>) -> Result<(), CommError> {
        self.or_refuse(name, checked(op))
    }

    /// Counts a collective call whose arguments this rank refuses, before it returns the error: the
    /// other ranks may have accepted theirs, and their messages must not be those of this rank's
    /// next collective.
    pub(super) fn or_refuse<R>(
        &self,
        name: &'static str,
        result: Result<R, CommError>,
    ) -> Result<R, CommError> {
        if result.is_err()
            && let Ok(mut core) = self.core.enter()
        {
            self.refuse(&mut core, name);
        }
        result
    }

    /// As [`Communicator::or_refuse`], in a call. If calls are checked, the other ranks learn of
    /// the refusal from the check.
    pub(super) fn refuse(&self, core: &mut Core, name: &'static str) {
        if self.current(core).is_err() {
            return;
        }
        if let Ok(Some(check)) = self.begin_check::<u8>(core, &call(name, vec![]), true) {
            core.driver.detach_activity(check.id);
        }
        self.next_tag(core);
    }

    /// Runs the steps of this rank and waits for their end.
    pub(super) fn run<T: Plain>(
        &self,
        call: Call,
        input: &[T],
        buf: &mut [T],
        op: Option<&dyn Operation<T>>,
    ) -> Result<(), CommError> {
        let Some(mut core) = self.core.pass() else { return Err(self.core.refusal()) };
        let core = &mut *core;
        self.current(core)?;
        core.enter_collective()?;
        core.driver.waiting.enter(call.name, self.shared.context, None);
        let check = self.begin_check::<T>(core, &call, false)?;
        let list = self.list::<T>(core, call.name, call.steps);
        self.await_check(core, check)?;
        let combine = |into: &mut [u8], from: &[u8], order: Order| {
            if let Some(op) = op {
                op.combine(bytemuck::cast_slice_mut(into), bytemuck::cast_slice(from), order);
            }
        };
        let mut memory = Memory {
            read: bytemuck::cast_slice(input),
            write: bytemuck::cast_slice_mut(buf),
            combine: op.is_some().then_some(&combine),
        };
        core.run(list, &mut memory)
    }

    /// The tag of the messages of the next collective.
    #[inline]
    fn next_tag(&self, core: &Core) -> Tag {
        // Those that may cross recovery lines are counted through repairs, by all ranks as they come by.
        if core.driver.engine.is_lined(self.shared.context) {
            let number = self.shared.lined.get();
            self.shared.lined.set(number.wrapping_add(1));
            return LINED_TAG | number;
        }
        if core.driver.engine.is_taped(self.shared.context) {
            let (tape, number) = self.shared.taped.get();
            let number = if tape == core.tapes { number } else { 0 };
            self.shared.taped.set((core.tapes, number.wrapping_add(1)));
            return TAPED_TAG | number;
        }
        let (generation, (started, number)) = (core.generation(), self.shared.sequence.get());
        let tag = if started == generation { number } else { 0 };
        self.shared.sequence.set((generation, tag.wrapping_add(1)));
        tag
    }

    /// A step list of the next collective of this communicator.
    pub(super) fn list<T: Plain>(
        &self,
        core: &Core,
        name: &'static str,
        steps: impl Into<Steps>,
    ) -> StepList {
        let tag = self.next_tag(core);
        StepList {
            name,
            steps: steps.into(),
            world: self.members().world.clone(),
            // Collectives have a context of their own beside that of the point-to-point messages.
            context: self.shared.context + 1,
            tag,
            messages: None,
            element: size_of::<T>(),
            apply: None,
        }
    }
}

fn checked<T: Plain>(op: &impl Operation<T>) -> Result<(), CommError> {
    if align_of::<T>() > SCRATCH_ALIGN {
        let element = std::any::type_name::<T>();
        let text = format!("elements of type {element} are aligned to more than {SCRATCH_ALIGN} bytes");
        return Err(CommError::Operation(text));
    }
    op.check()
}
