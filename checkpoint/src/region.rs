//! Protected state as bytes: one walk over the fields serves size, save and load.
//!
//! A state says *what* it consists of once, in [`Protect::walk`] (usually derived), and a [`Walk`] decides what
//! happens to each piece: it is counted, copied into a shard, or overwritten from one. So the three can never
//! disagree about the format. A fourth takes down which fields there are, where somebody may look at the shard who does not know the
//! type. The price is that `size` and `save` take `&mut` though they change nothing.
//!
//! The format is for the memory of ranks that run the same program on the same kind of processor: pieces follow
//! each other in the order of the fields, without names or padding, scalars in native byte order, each length as
//! a `u64`. Slices of plain data are one `memcpy`. Fields marked `#[protect(serde)]` go through postcard.
//!
//! Loading trusts nothing. Each length is checked against the bytes that are left before memory is taken for it,
//! so broken bytes give a [`ProtectError`]. (Behind `#[protect(serde)]` this is serde's and postcard's care, which is
//! the same but for sequences of zero-sized items.) Whether intact bytes are the *right* ones is for the checksums in
//! [`crate::store`].
//!
//! ```
//! use ft_checkpoint::{StatePart, Protect, load, save};
//!
//! #[derive(Protect)]
//! struct Cg {
//!     #[protect(constant)]
//!     b: Vec<f64>,
//!     x: Vec<f64>,
//!     iteration: u64,
//!     #[protect(derived)]
//!     factor: Vec<f64>,
//! }
//!
//! let mut state = Cg { b: vec![1.0; 4], x: vec![0.5; 4], iteration: 7, factor: vec![2.0] };
//! let mut shard = Vec::new();
//! save(&mut state, StatePart::Variable, &mut shard)?;
//! assert_eq!(shard.len(), 8 + 4 * 8 + 8);
//!
//! state.x.clear();
//! state.iteration = 8;
//! load(&mut state, StatePart::Variable, &shard)?;
//! assert_eq!((state.x, state.iteration), (vec![0.5; 4], 7));
//! # Ok::<(), ft_checkpoint::ProtectError>(())
//! ```

mod apart;
mod array;
mod error;

mod collections;
mod extract;
mod field;
#[cfg(feature = "nalgebra")]
mod nalgebra;
mod outline;
mod roles;
mod seams;
#[cfg(test)]
mod tests;
mod tracked;
mod walk;

pub(crate) use apart::{DOUBLE_BYTES, Strings, largest, load_apart, save_apart, size_apart};
pub use array::{Array, Element};
pub(crate) use extract::{Live, LiveApart, LivePart, LiveRef, take_stock};
pub use field::Field;
#[doc(hidden)]
pub use field::{describe_once, describe_plainly};
pub use ft_checkpoint_derive::{Field, Protect};
pub use outline::Spread;
pub(crate) use outline::{FieldOutline, outline, read_outline};
pub use roles::{Distributed, Replicated};
pub(crate) use roles::{Piece, roles};
pub(crate) use seams::{join, seams};
pub(crate) use tracked::Note;
pub use tracked::{Marks, Tracked};
pub use walk::{DEPTH_MAX, Walk};

use crate::changes::Changes;
use crate::store::lengthen;
pub use error::{ProtectError, ProtectErrorKind};
use walk::{Load, Save, Size};

/// The parts of a state that are protected; `derived` fields are in neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatePart {
    /// Protected once, straight after `init`.
    Constant,
    /// Protected with every checkpoint.
    Variable,
}

impl StatePart {
    /// Both of them, as they come in a checkpoint.
    pub(crate) const BOTH: [Self; 2] = [Self::Constant, Self::Variable];
}

/// A state that can be protected; usually derived with `#[derive(Protect)]`.
///
/// # Attributes of fields
///
/// What a checkpoint has of a field, at most one of:
///
/// | `#[protect(...)]` | saved | loaded | for |
/// |---|---|---|---|
/// | `variable`, or nothing | with every checkpoint | by every restore | what a step changes |
/// | `constant` | with the first checkpoint | by a restore on a rank that is new | matrix, right-hand side, a velocity model |
/// | `nested` | as its own [`Protect`] says | as that says | states within the state, with parts of their own |
/// | `derived` | never | never; made again in `Program::rebuild` | halo plans, factors: what the rest determines |
/// | `lasting` | never | never; its `Default` where the constant part is loaded | what the constant part alone determines: a rank that was there has it still |
/// | `skip` | never | never | caches, handles, counters of this process: nobody makes them again |
///
/// `derived` and `skip` are the same to the machine: no checkpoint has the field, a restore leaves it as it is on a
/// rank that was there, and a replacement has its `Default`. They tell a reader what to expect of `rebuild`. Where a
/// `lasting` field is not its `Default` there is nothing to be made again. None of the three is in [`fingerprint`].
///
/// How it is saved:
///
/// | | |
/// |---|---|
/// | nothing | as a [`Field`]: numbers, strings, vectors, options, maps, enums, arrays of nalgebra |
/// | `serde` | through serde and postcard; goes with `variable` and `constant` |
///
/// What it is to the other ranks, at most one of, read by `#[derive(Redistribute)]` (see [`crate::Redistribute`]), and by whoever takes the
/// field out of files. A field of a nested state of which nothing is said is what that state is:
///
/// | | on every rank | when ranks close up |
/// |---|---|---|
/// | `private`, or nothing | another value, of no meaning elsewhere | cannot be dealt out: an error of the compiler |
/// | `replicated` | the same value | stays |
/// | `distributed` | a block of one array, in the order of ranks | blocks are dealt out anew |
///
/// # Enums
///
/// For an enum the derive writes [`Protect`] and [`Field`], so that it can be a state, a field, or within other
/// values: an enum has no parts, it is saved as a whole. Its fields know `serde`, `skip` and `derived` only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a state that can be protected",
    note = "add `#[derive(ft_checkpoint::Protect)]` to it"
)]
pub trait Protect {
    /// Hands every field of `part` to `walk`, always in the same order.
    ///
    /// # Errors
    ///
    /// Those of `walk`, unchanged but for the name of the field.
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError>;

    /// As [`Walk::nested`], with the error that says what is no `Protect` at the place where the type stands; for the derive.
    ///
    /// # Errors
    ///
    /// Those of [`Protect::walk`].
    #[doc(hidden)]
    fn visit_nested<W: Walk>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        part: StatePart,
        walk: &mut W,
    ) -> Result<(), ProtectError>
    where
        Self: Sized,
    {
        walk.nested(name, spread, part, self)
    }

    /// Adds to `text` what the bytes of such a state mean: two states with the same text can be restored from each
    /// other. The derive writes down names, types, sizes and roles of all fields; this one knows the name of the type
    /// only.
    fn describe(text: &mut String) {
        *text += std::any::type_name::<Self>();
    }
}

/// The version of the format; to be raised whenever the same state gives other bytes.
const FORMAT: u32 = 1;

/// A number for what [`Protect::describe`] says of a state, and the version of the format. It travels with every
/// shard, beside one for the build of the program, and what does not fit is not loaded
/// ([`crate::CheckpointError::OtherState`], [`crate::CheckpointError::OtherBuild`]).
pub fn fingerprint<P: Protect>() -> u64 {
    let mut text = format!("format {FORMAT} ");
    P::describe(&mut text);
    crate::crc::crc64_nvme(text.as_bytes())
}

/// The state of a rank that has nothing to protect.
impl Protect for () {
    fn walk<W: Walk>(&mut self, _: StatePart, _: &mut W) -> Result<(), ProtectError> {
        Ok(())
    }
}

/// Returns the bytes that [`save`] will write for `part` of `state`, which is not changed.
///
/// # Errors
///
/// [`ProtectErrorKind::Serde`] if a field refuses to be serialized.
pub fn size<P: Protect>(state: &mut P, part: StatePart) -> Result<usize, ProtectError> {
    let mut walk = Size::default();
    state.walk(part, &mut walk)?;
    Ok(walk.offset())
}

/// Replaces the contents of `shard` by `part` of `state`, which is not changed; exactly [`size`] bytes.
///
/// Memory is taken only when the capacity of `shard` is too small.
///
/// # Errors
///
/// [`ProtectErrorKind::Serde`] if a field refuses to be serialized; [`ProtectErrorKind::Short`] or
/// [`ProtectErrorKind::Trailing`] if a hand-written walk is not the same twice. The shard is then unspecified.
pub fn save<P: Protect>(state: &mut P, part: StatePart, shard: &mut Vec<u8>) -> Result<(), ProtectError> {
    save_with_crc(state, part, shard).map(|_| ())
}

/// As [`save`]; gives the checksum of the shard (CRC-64/NVME), which costs no further pass over memory.
pub(crate) fn save_with_crc<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &mut Vec<u8>,
) -> Result<u64, ProtectError> {
    lengthen(shard, size(state, part)?);
    save_into_with_crc(state, part, shard, None)
}

/// As [`save_into`]; gives the checksum of the shard (CRC-64/NVME), which costs no further pass over memory. `changes` are told what
/// differs from what was in the shard.
pub(crate) fn save_into_with_crc<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &mut [u8],
    changes: Option<&mut Changes>,
) -> Result<u64, ProtectError> {
    let mut walk = Save::new(shard, changes);
    state.walk(part, &mut walk)?;
    finish(walk.offset(), walk.left())?;
    Ok(walk.crc())
}

/// As [`save_into_with_crc`]; `notes` are what was noted beside what is in the shard, and become what is to be noted of the new copy.
pub(crate) fn save_with_notes<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &mut [u8],
    changes: Option<&mut Changes>,
    notes: &mut Vec<Note>,
) -> Result<u64, ProtectError> {
    let mut walk = Save::new(shard, changes).noting(std::mem::take(notes));
    state.walk(part, &mut walk)?;
    finish(walk.offset(), walk.left())?;
    *notes = walk.take_notes();
    Ok(walk.crc())
}

/// Writes `part` of `state`, which is not changed, into `shard` of exactly [`size`] bytes.
///
/// # Errors
///
/// Those of [`save`]; [`ProtectErrorKind::Short`] or [`ProtectErrorKind::Trailing`] if `shard` has another size.
pub fn save_into<P: Protect>(state: &mut P, part: StatePart, shard: &mut [u8]) -> Result<(), ProtectError> {
    save_into_with_crc(state, part, shard, None).map(|_| ())
}

/// Overwrites `part` of `state` with the contents of `shard`; lengths may change, other parts are untouched.
///
/// # Errors
///
/// Any [`ProtectErrorKind`]; `state` is then partly overwritten.
pub fn load<P: Protect>(state: &mut P, part: StatePart, shard: &[u8]) -> Result<(), ProtectError> {
    load_with_crc(state, part, shard, false, &[]).1
}

/// As [`load`], from a `shard` that goes on behind what is loaded.
pub(crate) fn load_head<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &[u8],
) -> Result<(), ProtectError> {
    state.walk(part, &mut Load::new(shard, false))
}

/// As [`load`], with the checksum of the shard (CRC-64/NVME), which costs no further pass over memory. Only if it is
/// the right one does an error of the load say something about the state and not about the shard. `spares`: much of
/// the state may be right already, and what is by `notes`, which were made beside the shard, is not looked at.
pub(crate) fn load_with_crc<P: Protect>(
    state: &mut P,
    part: StatePart,
    shard: &[u8],
    spares: bool,
    notes: &[Note],
) -> (u64, Result<(), ProtectError>) {
    let mut walk = Load::new(shard, spares).by_notes(notes);
    let walked = state.walk(part, &mut walk);
    let loaded = walked.and_then(|()| finish(walk.offset(), walk.left()));
    (walk.crc(), loaded)
}

fn finish(offset: usize, left: usize) -> Result<(), ProtectError> {
    match left {
        0 => Ok(()),
        left => Err(ProtectError::new(offset, ProtectErrorKind::Trailing { left })),
    }
}
