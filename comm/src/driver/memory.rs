//! Memory of operations: lent by a blocking call, or owned by a non-blocking one.
//!
//! The [`Place`] of an operation says where its bytes are; the endpoint keeps it. What a place names beside its own memory is what the call lends
//! ([`Memory`]) and what step lists have, which is in the [`Stock`].

use std::any::Any;
use std::ops::Range;
use std::rc::Rc;

use slotmap::SlotMap;
use smallvec::{SmallVec, smallvec};

use ft_proto::collective::{Order, Space, Span};
use ft_proto::layout::Layout;
use ft_proto::plain::Plain;

mod fold;
mod list;
mod scratch;

use fold::Fold;
pub use list::Spaces;
pub(crate) use list::{ActivityId, Apply, Combine, ListMemory};
pub(crate) use scratch::SCRATCH_ALIGN;
use scratch::{Scratch, Spare};

/// Bytes that arrive for a reduction before they are combined with what is there, while they are in the cache.
const FOLD_BYTES: usize = 128 << 10;
/// Contiguous bytes from which on a payload goes straight to its place; shorter pieces are copied there.
pub(super) const DIRECT_BYTES: usize = 4 << 10;

/// Bytes of a message that the driver keeps. Few need no allocation, and a place no more room than others do.
pub(crate) type Kept = SmallVec<[u8; 24]>;

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

    fn of<'a>(&'a self, bytes: &'a [u8]) -> Source<'a> {
        match self {
            Self::Range(range) => Source::One(&bytes[range.clone()]),
            Self::Layout(layout) => Source::Pieces(bytes, layout),
        }
    }

    fn of_mut<'a>(&'a self, bytes: &'a mut [u8]) -> Target<'a> {
        match self {
            Self::Range(range) => Target::One(&mut bytes[range.clone()]),
            Self::Layout(layout) => Target::Pieces(bytes, layout),
        }
    }
}

/// Where the bytes of an operation are, or those of a message that came before its receive.
pub(crate) enum Place {
    /// In memory that the call lends for reading.
    Read(Extent),
    /// In memory that the call lends for writing (and reading).
    Write(Extent),
    /// The operation's own, from its start.
    Owned(Box<dyn Buffer>),
    /// The driver's own.
    Kept(Kept),
    /// In memory of a step list.
    Span(ActivityId, Space, Extent),
    /// Scratch, this many bytes: combined with its part when nothing is sent from there any more.
    Aside(Scratch, usize),
    /// Combined with a part as it comes. Boxed, as every operation takes the space of the largest place.
    Fold(Box<Fold>),
    /// So many bytes that nobody wants any more.
    Gone(usize),
}

impl Place {
    /// Memory for a message that comes before its receive.
    pub(crate) fn kept(bytes: usize) -> Self {
        Self::Kept(smallvec![0; bytes])
    }

    /// Length of a payload in this place.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Read(extent) | Self::Write(extent) | Self::Span(_, _, extent) => extent.len(),
            Self::Owned(buffer) => buffer.bytes().len(),
            Self::Kept(bytes) => bytes.len(),
            Self::Aside(_, bytes) | Self::Gone(bytes) => *bytes,
            Self::Fold(fold) => fold.len(),
        }
    }

    /// So many bytes of its payload have come, and it will come again from its start.
    pub(crate) fn skip(&mut self, bytes: usize) {
        if let Self::Fold(fold) = self {
            fold.skip = bytes;
        }
    }

    /// What comes there is wanted afterwards as it was ([`Stock::taken`]), also where it is combined with something at once.
    pub(crate) fn keep(&mut self) {
        if let Self::Fold(fold) = self {
            fold.kept.get_or_insert_default();
        }
    }

    /// How many bytes at the front of a payload are to be dropped.
    pub(crate) fn skipped(&self) -> usize {
        match self {
            Self::Fold(fold) => fold.skip,
            _ => 0,
        }
    }
}

/// What is sent from a place.
enum Source<'a> {
    One(&'a [u8]),
    Pieces(&'a [u8], &'a Layout),
}

/// What can be filled at a place.
enum Target<'a> {
    One(&'a mut [u8]),
    Pieces(&'a mut [u8], &'a Layout),
    /// Pieces of any length, one after the other.
    Fold(&'a mut Fold),
    Nothing,
}

/// What places name and what they are made of: the memory of step lists, and scratch.
#[derive(Default)]
pub(crate) struct Stock {
    pub(crate) spaces: SlotMap<ActivityId, ListMemory>,
    spare: Spare,
}

impl Stock {
    /// A place for a payload that waits until what it is combined with was sent.
    pub(crate) fn aside(&mut self, bytes: usize) -> Place {
        Place::Aside(self.spare.take(bytes), bytes)
    }

    /// A place for a payload that is combined with a part as it comes.
    pub(crate) fn fold(
        &mut self,
        activity: ActivityId,
        space: Space,
        range: Range<usize>,
        element: usize,
        order: Order,
    ) -> Place {
        let staging = self.spare.take(range.len().min(FOLD_BYTES).max(element));
        Place::Fold(Box::new(Fold::new(activity, space, range, element, order, staging)))
    }

    /// Takes back what a place has of the scratch; gives other places back.
    #[inline]
    pub(crate) fn reclaim(&mut self, place: Place) -> Option<Place> {
        match place {
            Place::Fold(fold) => self.spare.put_back(fold.into_staging()),
            Place::Aside(scratch, _) => self.spare.put_back(scratch),
            other => return Some(other),
        }
        None
    }

    fn source<'a>(&'a self, place: &'a Place, memory: &'a Memory<'_>) -> Source<'a> {
        match place {
            Place::Read(extent) => extent.of(memory.read),
            Place::Write(extent) => extent.of(&*memory.write),
            Place::Span(id, space, extent) => {
                let spaces = self.spaces.get(*id).expect("a part has its step list");
                extent.of(spaces.bytes(*space, memory))
            }
            Place::Owned(buffer) => Source::One(buffer.bytes()),
            Place::Kept(bytes) => Source::One(bytes),
            Place::Aside(scratch, bytes) => Source::One(&scratch.bytes()[..*bytes]),
            Place::Fold(_) | Place::Gone(_) => unreachable!("nothing is sent from there"),
        }
    }

    fn target<'a>(&'a mut self, place: &'a mut Place, memory: &'a mut Memory<'_>) -> Target<'a> {
        match place {
            Place::Write(extent) => extent.of_mut(&mut *memory.write),
            Place::Span(id, space, extent) => match self.spaces.get_mut(*id) {
                Some(spaces) => extent.of_mut(spaces.bytes_mut(*space, memory)),
                None => Target::Nothing,
            },
            Place::Owned(buffer) => Target::One(buffer.bytes_mut()),
            Place::Kept(bytes) => Target::One(bytes),
            Place::Aside(scratch, bytes) => Target::One(&mut scratch.bytes_mut()[..*bytes]),
            Place::Fold(fold) => Target::Fold(fold),
            Place::Read(_) | Place::Gone(_) => Target::Nothing,
        }
    }

    /// The payload at a place, if it is in one piece.
    pub(crate) fn in_one_piece<'a>(&'a self, place: &'a Place, memory: &'a Memory<'_>) -> Option<&'a [u8]> {
        match self.source(place, memory) {
            Source::One(bytes) => Some(bytes),
            Source::Pieces(..) => None,
        }
    }

    /// Packs the payload at a place from `offset` on, at most so many bytes.
    pub(crate) fn pack(
        &self,
        place: &Place,
        offset: usize,
        memory: &Memory<'_>,
        into: &mut Vec<u8>,
        most: usize,
    ) {
        into.clear();
        match self.source(place, memory) {
            Source::One(bytes) => into.extend_from_slice(&bytes[offset..bytes.len().min(offset + most)]),
            Source::Pieces(bytes, layout) => {
                for piece in layout.iter_from(offset) {
                    let count = piece.len().min(most - into.len());
                    into.extend_from_slice(&bytes[piece.start..piece.start + count]);
                    if into.len() == most {
                        break;
                    }
                }
            }
        }
    }

    /// The whole payload at a place in memory of its own.
    pub(crate) fn copy(&self, place: &Place, memory: &Memory<'_>) -> Kept {
        let mut out = Kept::with_capacity(place.len());
        match self.source(place, memory) {
            Source::One(bytes) => out.extend_from_slice(bytes),
            Source::Pieces(bytes, layout) => {
                layout.iter().for_each(|piece| out.extend_from_slice(&bytes[piece]));
            }
        }
        out
    }

    /// So many bytes as they have come to a place.
    pub(crate) fn taken(&self, place: &mut Place, bytes: usize, memory: &Memory<'_>) -> Kept {
        let mut taken = match place {
            Place::Fold(fold) => fold.kept.take().unwrap_or_default().into(),
            Place::Read(_) | Place::Gone(_) => Kept::new(),
            _ => self.copy(place, memory),
        };
        taken.resize(bytes, 0);
        taken
    }

    /// Memory for the bytes of a payload from `offset` on, if they should go straight there.
    pub(crate) fn direct<'a>(
        &'a mut self,
        place: &'a mut Place,
        offset: usize,
        length: usize,
        memory: &'a mut Memory<'_>,
    ) -> Option<&'a mut [u8]> {
        match self.target(place, memory) {
            Target::One(bytes) => Some(&mut bytes[offset..length]),
            Target::Pieces(bytes, layout) => {
                let (k, inside) = layout.locate(offset);
                let piece = layout.piece(k);
                let rest = piece.start + inside..piece.end;
                (rest.len() >= DIRECT_BYTES).then(|| &mut bytes[rest])
            }
            Target::Fold(fold) => Some(fold.room(length - offset)),
            Target::Nothing => None,
        }
    }

    /// So many bytes were put where [`Stock::direct`] said.
    pub(crate) fn landed(&mut self, place: &mut Place, count: usize, memory: &mut Memory<'_>) {
        if let Place::Fold(fold) = place {
            fold.landed(count, &mut self.spaces, memory);
        }
    }

    /// Copies bytes of a payload, from `offset` on, to their place.
    pub(crate) fn put(&mut self, place: &mut Place, offset: usize, bytes: &[u8], memory: &mut Memory<'_>) {
        if let Place::Fold(fold) = place {
            return fold.put(bytes, &mut self.spaces, memory);
        }
        match self.target(place, memory) {
            Target::One(target) => target[offset..offset + bytes.len()].copy_from_slice(bytes),
            Target::Pieces(target, layout) => {
                let mut rest = bytes;
                for piece in layout.iter_from(offset) {
                    let (now, later) = rest.split_at(piece.len().min(rest.len()));
                    target[piece.start..piece.start + now.len()].copy_from_slice(now);
                    rest = later;
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            Target::Fold(_) | Target::Nothing => {}
        }
    }

    /// Copies a message that came before its receive to the place of that, or came again after a part of it had got there.
    pub(crate) fn copy_kept(&mut self, from: &Place, to: &mut Place, memory: &mut Memory<'_>) {
        if let Place::Kept(bytes) = from {
            let skip = to.skipped().min(bytes.len());
            self.put(to, skip, &bytes[skip..], memory);
        }
    }

    /// Combines what was received aside with its part.
    pub(crate) fn combine_aside(
        &mut self,
        place: Place,
        activity: ActivityId,
        space: Space,
        target: Range<usize>,
        order: Order,
        memory: &mut Memory<'_>,
    ) {
        self.combine_in(&place, activity, space, target, order, memory);
        self.reclaim(place);
    }

    /// The same, and the place may receive again.
    pub(crate) fn combine_in(
        &mut self,
        place: &Place,
        activity: ActivityId,
        space: Space,
        target: Range<usize>,
        order: Order,
        memory: &mut Memory<'_>,
    ) {
        if let Place::Aside(scratch, bytes) = place
            && let Some(spaces) = self.spaces.get_mut(activity)
        {
            spaces.combine(space, target, &scratch.bytes()[..*bytes], order, memory);
        }
    }

    /// Combines what was received aside with a part of lent memory.
    pub(crate) fn combine_lent(
        &self,
        place: &Place,
        to: Range<usize>,
        order: Order,
        memory: &mut Memory<'_>,
    ) {
        if let Place::Aside(scratch, bytes) = place {
            let combine = memory.combine.expect("reductions have an operation");
            combine(&mut memory.write[to], &scratch.bytes()[..*bytes], order);
        }
    }

    /// Does a computation of a step list.
    pub(crate) fn apply(&mut self, id: ActivityId, number: usize, apply: &Apply, memory: &mut Memory<'_>) {
        if let Some(spaces) = self.spaces.get_mut(id) {
            spaces.apply(number, apply, memory);
        }
    }

    /// What `from` has goes to `to`, both in memory of a step list, copied, or combined in an order.
    pub(crate) fn local(
        &mut self,
        id: ActivityId,
        from: &Span,
        to: &Span,
        element: usize,
        order: Option<Order>,
        memory: &mut Memory<'_>,
    ) {
        let mut aside = self.spare.take(0);
        if let Some(spaces) = self.spaces.get_mut(id) {
            spaces.local(from, to, element, order, memory, &mut aside);
        }
        self.spare.put_back(aside);
    }

    /// A step list begins, with input and buffer of its own or those that calls lend.
    pub(crate) fn spaces_with(
        &mut self,
        input: Option<Box<dyn Buffer>>,
        buffer: Option<Box<dyn Buffer>>,
        scratch_bytes: usize,
        combine: Option<Box<Combine<'static>>>,
    ) -> ActivityId {
        let scratch = if scratch_bytes > 0 { self.spare.take(scratch_bytes) } else { Scratch::default() };
        self.spaces.insert(ListMemory { input, buffer, scratch, combine })
    }

    /// A step list is gone; gives its own input and buffer.
    pub(crate) fn take_spaces(&mut self, id: ActivityId) -> Buffers {
        let Some(spaces) = self.spaces.remove(id) else { return (None, None) };
        self.spare.put_back(spaces.scratch);
        (spaces.input, spaces.buffer)
    }

    /// No step list is under way any more.
    pub(crate) fn clear(&mut self) {
        self.spaces.clear();
    }
}

#[cfg(test)]
mod tests;
