//! Memory of operations: lent by a blocking call, or owned by a non-blocking one.

use std::any::Any;
use std::ops::Range;
use std::rc::Rc;

use slotmap::{SecondaryMap, SlotMap, new_key_type};

use ft_proto::collective::{Order, Part, Space};
use ft_proto::endpoint::{BounceId, Landing, OpId};
use ft_proto::layout::Layout;
use ft_proto::plain::Plain;

/// Bytes that arrive for a reduction before they are combined with what is there, while they are in the cache.
const FOLD_BYTES: usize = 128 << 10;
/// Contiguous bytes from which on a payload goes straight to its place; shorter pieces are copied there.
pub(super) const DIRECT_BYTES: usize = 4 << 10;
/// Scratch that is kept for the next operation: bytes, and pieces.
const SPARE_BYTES: usize = 32 << 20;
const SPARE_PIECES: usize = 32;

new_key_type! {
    /// A step list under way, with its memory.
    pub(crate) struct ActivityId;
}

/// `into = op(into, from)` on elements as bytes, in the given order; both are aligned for the element.
pub(crate) type Combine<'a> = dyn Fn(&mut [u8], &[u8], Order) + 'a;

/// The memories of a schedule, for a computation.
#[derive(Debug)]
pub struct Spaces<'a> {
    /// What the caller sends and keeps.
    pub input: &'a [u8],
    /// What the caller gets.
    pub buffer: &'a mut [u8],
    /// At least as long as the highest part that a step names.
    pub scratch: &'a mut [u8],
}

/// Does the computation of this number.
pub(crate) type Apply = dyn Fn(usize, Spaces<'_>);

/// Memory that a blocking call lends to its operations.
pub(crate) struct Memory<'a> {
    pub(crate) read: &'a [u8],
    pub(crate) write: &'a mut [u8],
    pub(crate) combine: Option<&'a Combine<'a>>,
}

impl<'a> Memory<'a> {
    /// For operations that own theirs.
    pub(crate) fn none() -> Memory<'static> {
        Memory { read: &[], write: &mut [], combine: None }
    }

    pub(crate) fn of(read: &'a [u8], write: &'a mut [u8]) -> Self {
        Self { read, write, combine: None }
    }
}

/// A buffer that an operation owns.
pub(crate) trait Buffer {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Input and buffer that a step list owned.
pub(crate) type Buffers = (Option<Box<dyn Buffer>>, Option<Box<dyn Buffer>>);

impl<T: Plain> Buffer for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Alignment of scratch memory; elements that ask for more cannot be reduced.
pub(crate) const SCRATCH_ALIGN: usize = 64;

#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; SCRATCH_ALIGN]);

/// Memory of the driver, aligned for any element.
#[derive(Default)]
pub(crate) struct Scratch(Vec<Line>);

impl Scratch {
    fn reserve(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(SCRATCH_ALIGN);
        if self.0.len() < lines {
            self.0.resize(lines, Line([0; SCRATCH_ALIGN]));
        }
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Which bytes of a memory.
#[derive(Clone)]
pub(crate) enum Extent {
    Range(Range<usize>),
    Layout(Rc<Layout>),
}

impl Extent {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Layout(layout) => layout.len(),
        }
    }
}

/// Where the bytes of an operation are.
pub(crate) enum Place {
    /// In memory that the call lends for reading.
    Read(Extent),
    /// In memory that the call lends for writing (and reading).
    Write(Extent),
    /// The operation's own, from its start.
    Owned(Box<dyn Buffer>),
    /// In memory of a step list.
    Part(ActivityId, Space, Extent),
    /// Scratch, this many bytes: combined with its part when nothing is sent from there any more.
    Aside(Scratch, usize),
    /// Combined with a part as it comes.
    Fold(Fold),
    /// So many bytes that nobody wants any more.
    Gone(usize),
}

/// Arriving bytes that are combined with a part piece by piece.
pub(crate) struct Fold {
    pub(crate) activity: ActivityId,
    pub(crate) space: Space,
    /// What is left to combine.
    pub(crate) range: Range<usize>,
    pub(crate) element: usize,
    pub(crate) order: Order,
    staging: Scratch,
    held: usize,
    /// Bytes at the front of the payload that have come already, another way.
    skip: usize,
}

/// Memory of a step list: lent by the call, or its own.
pub(crate) struct ListMemory {
    pub(crate) input: Option<Box<dyn Buffer>>,
    pub(crate) buffer: Option<Box<dyn Buffer>>,
    pub(crate) scratch: Scratch,
    pub(crate) combine: Option<Box<Combine<'static>>>,
}

impl ListMemory {
    fn bytes<'a>(&'a self, space: Space, memory: &'a Memory<'_>) -> &'a [u8] {
        match space {
            Space::Input => self.input.as_ref().map_or(memory.read, |own| own.bytes()),
            Space::Buffer => self.buffer.as_ref().map_or(&*memory.write, |own| own.bytes()),
            Space::Scratch => self.scratch.bytes(),
        }
    }

    fn bytes_mut<'a>(&'a mut self, space: Space, memory: &'a mut Memory<'_>) -> &'a mut [u8] {
        match space {
            Space::Input => unreachable!("steps only read the input"),
            Space::Buffer => self.buffer.as_mut().map_or(&mut *memory.write, |own| own.bytes_mut()),
            Space::Scratch => self.scratch.bytes_mut(),
        }
    }

    /// `into[to] = op(into[to], from)`.
    fn combine(
        &mut self,
        space: Space,
        to: Range<usize>,
        from: &[u8],
        order: Order,
        memory: &mut Memory<'_>,
    ) {
        let lent = memory.combine;
        let own = self.combine.take();
        let combine = own.as_deref().or(lent).expect("reductions have an operation");
        combine(&mut self.bytes_mut(space, memory)[to], from, order);
        self.combine = own;
    }

    /// What `from` has goes to `to`, copied, or combined in an order.
    pub(crate) fn local(
        &mut self,
        from: &Part,
        to: &Part,
        element: usize,
        order: Option<Order>,
        memory: &mut Memory<'_>,
        spare: &mut Scratch,
    ) {
        let bytes = |part: &Part| part.range.start * element..part.range.end * element;
        let (source, target) = (bytes(from), bytes(to));
        match order {
            None if from.space == to.space => {
                self.bytes_mut(to.space, memory).copy_within(source, target.start);
            }
            _ => {
                // The two may lie in one memory: the operand is put aside, a piece at a time.
                let step = FOLD_BYTES / element.max(1) * element.max(1);
                let step = step.max(element);
                for at in (0..source.len()).step_by(step.max(1)) {
                    let count = step.min(source.len() - at);
                    spare.reserve(count);
                    let piece = &mut spare.bytes_mut()[..count];
                    piece.copy_from_slice(
                        &self.bytes(from.space, memory)[source.start + at..source.start + at + count],
                    );
                    let range = target.start + at..target.start + at + count;
                    match order {
                        Some(order) => self.combine(to.space, range, piece, order, memory),
                        None => self.bytes_mut(to.space, memory)[range].copy_from_slice(piece),
                    }
                }
            }
        }
    }
}

/// All memory that operations use, but for what calls lend.
#[derive(Default)]
pub(crate) struct Stock {
    pub(crate) places: SecondaryMap<OpId, Place>,
    pub(crate) bounces: SecondaryMap<BounceId, Vec<u8>>,
    pub(crate) spaces: SlotMap<ActivityId, ListMemory>,
    spare: Vec<Scratch>,
}

impl Stock {
    /// Scratch of at least so many bytes.
    pub(crate) fn scratch(&mut self, bytes: usize) -> Scratch {
        // The smallest that is large enough, else the largest.
        let fits = |scratch: &Scratch| scratch.bytes().len() >= bytes;
        let order = |scratch: &Scratch| (fits(scratch), scratch.bytes().len());
        let best = self.spare.iter().enumerate().reduce(|best, other| {
            let ((fits, size), (other_fits, other_size)) = (order(best.1), order(other.1));
            let better = if fits { other_fits && other_size < size } else { other_fits || other_size > size };
            if better { other } else { best }
        });
        let at = best.map(|(at, _)| at);
        let mut scratch = at.map(|at| self.spare.swap_remove(at)).unwrap_or_default();
        scratch.reserve(bytes);
        scratch
    }

    /// Scratch that is not needed now is kept for the next call, within limits.
    pub(crate) fn put_back(&mut self, scratch: Scratch) {
        let bytes = scratch.bytes().len();
        if bytes == 0 || self.spare.len() == SPARE_PIECES {
            return;
        }
        let kept: usize = self.spare.iter().map(|scratch| scratch.bytes().len()).sum();
        if kept + bytes <= SPARE_BYTES {
            self.spare.push(scratch);
        }
    }

    pub(crate) fn fold(
        &mut self,
        activity: ActivityId,
        space: Space,
        range: Range<usize>,
        element: usize,
        order: Order,
    ) -> Place {
        let staging = self.scratch(range.len().min(FOLD_BYTES).max(element));
        Place::Fold(Fold { activity, space, range, element, order, staging, held: 0, skip: 0 })
    }

    /// Length of a payload in this place.
    pub(crate) fn len(&self, place: &Place) -> usize {
        match place {
            Place::Read(extent) | Place::Write(extent) | Place::Part(_, _, extent) => extent.len(),
            Place::Owned(buffer) => buffer.bytes().len(),
            Place::Aside(_, bytes) | Place::Gone(bytes) => *bytes,
            Place::Fold(fold) => fold.range.len(),
        }
    }

    /// The memory of a place and which bytes of it are its payload.
    fn view<'a>(&'a self, place: &'a Place, memory: &'a Memory<'_>) -> (&'a [u8], Extent) {
        match place {
            Place::Read(extent) => (memory.read, extent.clone()),
            Place::Write(extent) => (memory.write, extent.clone()),
            Place::Part(id, space, extent) => {
                let spaces = self.spaces.get(*id).expect("a part has its step list");
                (spaces.bytes(*space, memory), extent.clone())
            }
            Place::Owned(buffer) => (buffer.bytes(), Extent::Range(0..buffer.bytes().len())),
            Place::Aside(scratch, bytes) => (scratch.bytes(), Extent::Range(0..*bytes)),
            Place::Fold(_) | Place::Gone(_) => unreachable!("nothing is sent from there"),
        }
    }

    /// The payload of `op`, if it is in one piece.
    pub(crate) fn contiguous<'a>(&'a self, op: OpId, memory: &'a Memory<'_>) -> Option<&'a [u8]> {
        match self.view(self.places.get(op)?, memory) {
            (bytes, Extent::Range(range)) => Some(&bytes[range]),
            (_, Extent::Layout(_)) => None,
        }
    }

    /// The bytes of a place, if they are in one piece and there are any.
    pub(crate) fn in_one_piece<'a>(&'a self, place: &'a Place, memory: &'a Memory<'_>) -> Option<&'a [u8]> {
        match self.view(place, memory) {
            (bytes, Extent::Range(range)) if !range.is_empty() => Some(&bytes[range]),
            _ => None,
        }
    }

    /// So many bytes of the payload of `op` have come, and it will come again from its start.
    pub(crate) fn skip(&mut self, op: OpId, bytes: usize) {
        if let Some(Place::Fold(fold)) = self.places.get_mut(op) {
            fold.skip = bytes;
        }
    }

    /// How many bytes at the front of a payload are to be dropped.
    pub(crate) fn skipped(&self, landing: Landing) -> usize {
        match landing {
            Landing::Op(op) => match self.places.get(op) {
                Some(Place::Fold(fold)) => fold.skip,
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Packs the payload of `op` from `offset` on, at most so many bytes.
    pub(crate) fn pack(&self, op: OpId, offset: usize, memory: &Memory<'_>, into: &mut Vec<u8>, most: usize) {
        into.clear();
        let Some(place) = self.places.get(op) else { return };
        let (bytes, Extent::Layout(layout)) = self.view(place, memory) else { return };
        for piece in layout.iter_from(offset) {
            let count = piece.len().min(most - into.len());
            into.extend_from_slice(&bytes[piece.start..piece.start + count]);
            if into.len() == most {
                break;
            }
        }
    }

    /// The whole payload of `op` in memory of its own.
    pub(crate) fn copy(&self, op: OpId, memory: &Memory<'_>) -> Vec<u8> {
        let Some(place) = self.places.get(op) else { return vec![] };
        let mut out = Vec::with_capacity(self.len(place));
        match self.view(place, memory) {
            (bytes, Extent::Range(range)) => out.extend_from_slice(&bytes[range]),
            (bytes, Extent::Layout(layout)) => {
                layout.iter().for_each(|piece| out.extend_from_slice(&bytes[piece]));
            }
        }
        out
    }

    /// Memory for the bytes of a payload from `offset` on, if they should go straight there.
    pub(crate) fn direct<'a>(
        &'a mut self,
        landing: Landing,
        offset: usize,
        length: usize,
        memory: &'a mut Memory<'_>,
    ) -> Option<&'a mut [u8]> {
        let straight = |bytes: &'a mut [u8], extent: Extent| match extent {
            Extent::Range(range) => Some(&mut bytes[range.start + offset..range.start + length]),
            Extent::Layout(layout) => {
                let (k, inside) = layout.locate(offset);
                let piece = layout.piece(k);
                let rest = piece.start + inside..piece.end;
                (rest.len() >= DIRECT_BYTES).then(|| &mut bytes[rest])
            }
        };
        match landing {
            Landing::Nowhere | Landing::Sink => None,
            Landing::Bounce(bounce) => self.bounces.get_mut(bounce).map(|bytes| &mut bytes[offset..length]),
            Landing::Op(op) => match self.places.get_mut(op)? {
                Place::Write(extent) => straight(&mut *memory.write, extent.clone()),
                Place::Owned(buffer) => straight(buffer.bytes_mut(), Extent::Range(0..length)),
                Place::Aside(scratch, bytes) => {
                    let bytes = *bytes;
                    straight(scratch.bytes_mut(), Extent::Range(0..bytes))
                }
                Place::Part(id, space, extent) => {
                    let (space, extent) = (*space, extent.clone());
                    straight(self.spaces.get_mut(*id)?.bytes_mut(space, memory), extent)
                }
                Place::Fold(fold) => {
                    let room = FOLD_BYTES.min(fold.range.len()).max(fold.element);
                    let end = room.min(fold.held + length - offset);
                    Some(&mut fold.staging.bytes_mut()[fold.held..end])
                }
                Place::Read(_) | Place::Gone(_) => None,
            },
        }
    }

    /// So many bytes were put where [`Stock::direct`] said.
    pub(crate) fn landed(&mut self, landing: Landing, count: usize, memory: &mut Memory<'_>) {
        let Landing::Op(op) = landing else { return };
        let Some(Place::Fold(fold)) = self.places.get_mut(op) else { return };
        fold.held += count;
        let room = FOLD_BYTES.min(fold.range.len()).max(fold.element);
        if fold.held < room {
            return;
        }
        let whole = fold.held / fold.element * fold.element;
        let target = fold.range.start..fold.range.start + whole;
        if let Some(spaces) = self.spaces.get_mut(fold.activity) {
            spaces.combine(fold.space, target, &fold.staging.bytes()[..whole], fold.order, memory);
        }
        fold.range.start += whole;
        let held = fold.held;
        fold.staging.bytes_mut().copy_within(whole..held, 0);
        fold.held -= whole;
    }

    /// Copies bytes of a payload, from `offset` on, to their place.
    pub(crate) fn put(&mut self, landing: Landing, offset: usize, bytes: &[u8], memory: &mut Memory<'_>) {
        if let Landing::Op(op) = landing {
            match self.places.get_mut(op) {
                Some(Place::Fold(_)) => return self.put_fold(landing, bytes, memory),
                None | Some(Place::Gone(_)) => return,
                Some(_) => {}
            }
            if let Some(layout) = self.layout(op) {
                let target = match self.places.get_mut(op) {
                    Some(Place::Write(_)) => &mut *memory.write,
                    Some(Place::Part(id, space, _)) => {
                        let spaces = self.spaces.get_mut(*id).expect("a part has its step list");
                        spaces.bytes_mut(*space, memory)
                    }
                    _ => unreachable!("only these have layouts"),
                };
                let mut rest = bytes;
                for piece in layout.iter_from(offset) {
                    let (now, later) = rest.split_at(piece.len().min(rest.len()));
                    target[piece.start..piece.start + now.len()].copy_from_slice(now);
                    rest = later;
                    if rest.is_empty() {
                        break;
                    }
                }
                return;
            }
        }
        if let Some(target) = self.direct(landing, offset, offset + bytes.len(), memory) {
            target.copy_from_slice(bytes);
        }
    }

    fn put_fold(&mut self, landing: Landing, mut bytes: &[u8], memory: &mut Memory<'_>) {
        while !bytes.is_empty() {
            let Some(room) = self.direct(landing, 0, bytes.len(), memory) else { return };
            let (now, later) = bytes.split_at(room.len());
            room.copy_from_slice(now);
            self.landed(landing, now.len(), memory);
            bytes = later;
        }
    }

    fn layout(&self, op: OpId) -> Option<Rc<Layout>> {
        match self.places.get(op)? {
            Place::Write(Extent::Layout(layout)) | Place::Part(_, _, Extent::Layout(layout)) => {
                Some(layout.clone())
            }
            _ => None,
        }
    }

    /// Forgets the place of `op`; scratch is kept for others.
    pub(crate) fn forget(&mut self, op: OpId) -> Option<Place> {
        match self.places.remove(op)? {
            Place::Fold(fold) => {
                self.put_back(fold.staging);
                None
            }
            Place::Aside(scratch, _) => {
                self.put_back(scratch);
                None
            }
            other => Some(other),
        }
    }

    /// Combines what was received aside with its part.
    pub(crate) fn combine_aside(
        &mut self,
        op: OpId,
        activity: ActivityId,
        space: Space,
        target: Range<usize>,
        order: Order,
        memory: &mut Memory<'_>,
    ) {
        let Some(Place::Aside(scratch, bytes)) = self.places.remove(op) else { return };
        if let Some(spaces) = self.spaces.get_mut(activity) {
            spaces.combine(space, target, &scratch.bytes()[..bytes], order, memory);
        }
        self.put_back(scratch);
    }

    /// Does a computation of a step list.
    pub(crate) fn apply(&mut self, id: ActivityId, number: usize, apply: &Apply, memory: &mut Memory<'_>) {
        let Some(ListMemory { input, buffer, scratch, .. }) = self.spaces.get_mut(id) else { return };
        let input = input.as_ref().map_or(memory.read, |own| own.bytes());
        let buffer = buffer.as_mut().map_or(&mut *memory.write, |own| own.bytes_mut());
        apply(number, Spaces { input, buffer, scratch: scratch.bytes_mut() });
    }

    /// What `from` has goes to `to`, both in memory of a step list, copied, or combined in an order.
    pub(crate) fn local(
        &mut self,
        id: ActivityId,
        from: &Part,
        to: &Part,
        element: usize,
        order: Option<Order>,
        memory: &mut Memory<'_>,
    ) {
        let mut aside = self.scratch(0);
        if let Some(spaces) = self.spaces.get_mut(id) {
            spaces.local(from, to, element, order, memory, &mut aside);
        }
        self.put_back(aside);
    }

    /// A step list is gone; gives its own input and buffer.
    pub(crate) fn take_spaces(&mut self, id: ActivityId) -> Buffers {
        let Some(spaces) = self.spaces.remove(id) else { return (None, None) };
        self.put_back(spaces.scratch);
        (spaces.input, spaces.buffer)
    }

    /// Nothing is under way any more.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.bounces.clear();
        self.spaces.clear();
    }

    pub(crate) fn spaces_with(
        &mut self,
        input: Option<Box<dyn Buffer>>,
        buffer: Option<Box<dyn Buffer>>,
        scratch_bytes: usize,
        combine: Option<Box<Combine<'static>>>,
    ) -> ActivityId {
        let scratch = if scratch_bytes > 0 { self.scratch(scratch_bytes) } else { Scratch::default() };
        self.spaces.insert(ListMemory { input, buffer, scratch, combine })
    }
}

#[cfg(test)]
mod tests;
