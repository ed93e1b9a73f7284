//! The memory of a step list, and what it does within that.

use std::ops::Range;

use slotmap::new_key_type;

use super::{Buffer, FOLD_BYTES, Memory, Scratch};
use ft_proto::collective::{Order, Space, Span};

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

/// Memory of a step list: lent by the call, or its own.
pub(crate) struct ListMemory {
    pub(super) input: Option<Box<dyn Buffer>>,
    pub(super) buffer: Option<Box<dyn Buffer>>,
    pub(super) scratch: Scratch,
    pub(super) combine: Option<Box<Combine<'static>>>,
}

impl ListMemory {
    pub(super) fn bytes<'a>(&'a self, space: Space, memory: &'a Memory<'_>) -> &'a [u8] {
        match space {
            Space::Input => self.input.as_ref().map_or(memory.read, |own| own.bytes()),
            Space::Buffer => self.buffer.as_ref().map_or(&*memory.write, |own| own.bytes()),
            Space::Scratch => self.scratch.bytes(),
        }
    }

    pub(super) fn bytes_mut<'a>(&'a mut self, space: Space, memory: &'a mut Memory<'_>) -> &'a mut [u8] {
        match space {
            Space::Input => unreachable!("steps only read the input"),
            Space::Buffer => self.buffer.as_mut().map_or(&mut *memory.write, |own| own.bytes_mut()),
            Space::Scratch => self.scratch.bytes_mut(),
        }
    }

    /// `into[to] = op(into[to], from)`.
    pub(super) fn combine(
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

    /// Does the computation of this number.
    pub(super) fn apply(&mut self, number: usize, apply: &Apply, memory: &mut Memory<'_>) {
        let input = self.input.as_ref().map_or(memory.read, |own| own.bytes());
        let buffer = self.buffer.as_mut().map_or(&mut *memory.write, |own| own.bytes_mut());
        apply(number, Spaces { input, buffer, scratch: self.scratch.bytes_mut() });
    }

    /// What `from` has goes to `to`, copied, or combined in an order.
    pub(super) fn local(
        &mut self,
        from: &Span,
        to: &Span,
        element: usize,
        order: Option<Order>,
        memory: &mut Memory<'_>,
        spare: &mut Scratch,
    ) {
        let bytes = |part: &Span| part.range.start * element..part.range.end * element;
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
