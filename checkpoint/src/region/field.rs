//! Values that a walk knows how to visit without serde.

use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use super::{Array, ProtectError, Spread, Walk};

/// A value that can be protected as bytes.
///
/// There for numbers, `bool`, `char`, `String`, `Duration`, and of all of these: arrays, tuples, `Vec`, `VecDeque`,
/// `Box`, `Option`, `Result`, `Range`, the maps and sets of `std`, and (cargo feature `nalgebra`) vectors and
/// matrices. For plain types of your own, which are [`bytemuck::Pod`], use [`plain!`](crate::plain); for enums
/// `#[derive(Protect)]`, for other structs `#[derive(Field)]`; for everything else `#[protect(serde)]`.
///
/// # The derive
///
/// A value is made while it is loaded, and saved as a whole. So its fields are `Field` too, but for those marked
/// `#[protect(serde)]` (through serde and postcard) and `#[protect(skip)]` or `#[protect(derived)]` (in no
/// checkpoint). Those have to be `Default`: what is loaded in the place of another value, as another variant of an
/// enum, has that there.
///
/// An enum travels as the index of its variant (a `u32`, in the order of the source) and the fields of that. Values
/// may hold others of their own type, up to 128 deep; the first variant of an enum that does not name the enum itself
/// is what a load starts with, and types that hold each other in a circle need one that ends.
///
/// ```
/// use ft_checkpoint::{Field, StatePart, Protect, load, save};
///
/// #[derive(Debug, PartialEq, Field)]
/// struct Task {
///     name: String,
///     tries: Vec<u32>,
/// }
///
/// #[derive(Debug, PartialEq, Protect)]
/// enum Phase {
///     Waiting,
///     Working { task: Task, done: f64 },
/// }
///
/// #[derive(Debug, PartialEq, Protect)]
/// struct State {
///     phases: Vec<Phase>,
/// }
///
/// let task = Task { name: "a".into(), tries: vec![3] };
/// let mut state = State { phases: vec![Phase::Waiting, Phase::Working { task, done: 0.5 }] };
/// let mut shard = Vec::new();
/// save(&mut state, StatePart::Variable, &mut shard)?;
/// let mut other = State { phases: vec![] };
/// load(&mut other, StatePart::Variable, &shard)?;
/// assert_eq!(other, state);
/// # Ok::<(), ft_checkpoint::ProtectError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be protected as bytes",
    note = "mark the field `#[protect(serde)]`, `#[protect(nested)]` if it is `Protect` itself, or `#[protect(derived)]`",
    note = "or make the type a value: an enum by `#[derive(Protect)]`, a struct by `#[derive(Field)]`, one that is `bytemuck::Pod` by \
            `ft_checkpoint::plain!(Type)`"
)]
pub trait Field: Sized {
    /// Bytes of every value of this type in a shard; 0 if they vary.
    const FIXED_BYTES: usize = 0;

    /// Returns some small value, for load to overwrite.
    fn blank() -> Self;

    /// Returns `len` small values, for load to overwrite.
    fn blanks(len: usize) -> Vec<Self> {
        std::iter::repeat_with(Self::blank).take(len).collect()
    }

    /// Hands this value to `walk`.
    ///
    /// # Errors
    ///
    /// Those of `walk`; [`Walk::invalid`] if the loaded bytes are no value of this type.
    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError>;

    /// As [`Walk::field`], with the error that says what is no `Field` at the place where the type stands; for the derive.
    ///
    /// # Errors
    ///
    /// Those of [`Field::walk`].
    #[doc(hidden)]
    fn visit_field<W: Walk>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        walk: &mut W,
    ) -> Result<(), ProtectError> {
        walk.field(name, spread, self)
    }

    /// Hands all `items` to `walk`, at once where the type allows it; their number is not written.
    ///
    /// # Errors
    ///
    /// Those of [`Field::walk`].
    fn walk_slice<W: Walk>(items: &mut [Self], walk: &mut W) -> Result<(), ProtectError> {
        items.iter_mut().try_for_each(|item| item.walk(walk))
    }

    /// Adds to `text` what the bytes of such a value mean, as [`Protect::describe`](crate::Protect::describe) does.
    fn describe(text: &mut String) {
        describe_plainly::<Self>(text);
    }

    /// Returns the array that every value of this type is, of as many numbers: for those who read a checkpoint without the program.
    fn fixed_array() -> Option<Array> {
        None
    }

    /// Returns the array that this value is; its last bytes in a shard are the elements.
    fn array(&self) -> Option<Array> {
        Self::fixed_array()
    }
}

/// What can be said of any type.
#[doc(hidden)]
pub fn describe_plainly<T>(text: &mut String) {
    *text += &format!(" {} of {} bytes,", std::any::type_name::<T>(), size_of::<T>());
}

/// What is said of a type that may hold others of its own: all the first time, then its name.
#[doc(hidden)]
pub fn describe_once<T>(text: &mut String, describe: impl FnOnce(&mut String)) {
    let opening = format!(" {} {{", std::any::type_name::<T>());
    let is_known = text.contains(&opening);
    *text += &opening;
    if !is_known {
        describe(text);
    }
    *text += " }";
}

/// Says that there are values of type `T` in a `what`.
pub(super) fn describe_many<T: Field>(what: &str, text: &mut String) {
    *text += what;
    T::describe(text);
}

/// Makes types that are [`bytemuck::Pod`] protectable, as single fields and in slices, as their bytes.
///
/// ```
/// #[repr(C)]
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// struct Particle { position: [f64; 3], mass: f64 }
///
/// ft_checkpoint::plain!(Particle);
///
/// #[derive(ft_checkpoint::Protect)]
/// struct State { particles: Vec<Particle> }
/// ```
#[macro_export]
macro_rules! plain {
    ($($plain:ty),+ $(,)?) => {$(
        impl $crate::Field for $plain {
            const FIXED_BYTES: usize = ::core::mem::size_of::<$plain>();

            fn blank() -> Self {
                $crate::bytemuck::Zeroable::zeroed()
            }

            fn blanks(len: usize) -> ::std::vec::Vec<Self> {
                $crate::bytemuck::zeroed_vec(len)
            }

            fn walk<W: $crate::Walk>(&mut self, walk: &mut W) -> ::core::result::Result<(), $crate::ProtectError> {
                walk.plain(::core::slice::from_mut(self))
            }

            fn walk_slice<W: $crate::Walk>(
                items: &mut [Self],
                walk: &mut W,
            ) -> ::core::result::Result<(), $crate::ProtectError> {
                walk.plain(items)
            }

            fn fixed_array() -> ::core::option::Option<$crate::Array> {
                $crate::Array::one::<Self>()
            }
        }
    )+};
}

plain!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

impl Field for bool {
    const FIXED_BYTES: usize = 1;

    fn blank() -> Self {
        false
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut byte = u8::from(*self);
        byte.walk(walk)?;
        *self = match byte {
            0 => false,
            1 => true,
            _ => return Err(walk.invalid("bool")),
        };
        Ok(())
    }

    fn fixed_array() -> Option<Array> {
        Array::one::<Self>()
    }
}

impl Field for char {
    const FIXED_BYTES: usize = 4;

    fn blank() -> Self {
        '\0'
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut code = u32::from(*self);
        code.walk(walk)?;
        *self = char::from_u32(code).ok_or_else(|| walk.invalid("char"))?;
        Ok(())
    }
}

impl Field for String {
    fn blank() -> Self {
        Self::new()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut bytes = std::mem::take(self).into_bytes();
        let walked = bytes.walk(walk);
        // Only a load can leave bytes that are no string, and then they are dropped.
        match Self::from_utf8(bytes) {
            Ok(string) => *self = string,
            Err(_) => return walked.and_then(|()| Err(walk.invalid("UTF-8 string"))),
        }
        walked
    }
}

impl<T: Field> Field for Vec<T> {
    fn blank() -> Self {
        Self::new()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let len = walk.length(self.len(), T::FIXED_BYTES)?;
        self.truncate(len);
        if T::FIXED_BYTES > 0 {
            if self.capacity() < len {
                *self = T::blanks(len);
            }
            self.resize_with(len, T::blank);
            return T::walk_slice(self, walk);
        }
        // The length may be a lie, so one item at a time. An item without bytes (`[f64; 0]`) is written as one zero,
        // else such a lie would cost an endless loop.
        for index in 0..len {
            if index == self.len() {
                self.push(T::blank());
            }
            let start = walk.offset();
            self[index].walk(walk)?;
            if walk.offset() == start {
                walk.bytes(&mut [0])?;
            }
        }
        Ok(())
    }

    fn describe(text: &mut String) {
        describe_many::<T>(" vector of", text);
    }

    fn array(&self) -> Option<Array> {
        T::fixed_array()?.times(self.len())
    }
}

impl<T: Field> Field for Box<[T]> {
    fn blank() -> Self {
        Self::default()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut items = std::mem::take(self).into_vec();
        let walked = items.walk(walk);
        *self = items.into_boxed_slice();
        walked
    }

    fn describe(text: &mut String) {
        describe_many::<T>(" slice of", text);
    }

    fn array(&self) -> Option<Array> {
        T::fixed_array()?.times(self.len())
    }
}

impl<T: Field> Field for Box<T> {
    const FIXED_BYTES: usize = T::FIXED_BYTES;

    fn blank() -> Self {
        Self::new(T::blank())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        T::walk(self, walk)
    }

    fn describe(text: &mut String) {
        T::describe(text);
    }

    fn fixed_array() -> Option<Array> {
        T::fixed_array()
    }

    fn array(&self) -> Option<Array> {
        T::array(self)
    }
}

impl<T: Field, const N: usize> Field for [T; N] {
    const FIXED_BYTES: usize = N * T::FIXED_BYTES;

    fn blank() -> Self {
        std::array::from_fn(|_| T::blank())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        T::walk_slice(self, walk)
    }

    fn walk_slice<W: Walk>(items: &mut [Self], walk: &mut W) -> Result<(), ProtectError> {
        T::walk_slice(items.as_flattened_mut(), walk)
    }

    fn describe(text: &mut String) {
        describe_many::<T>(&format!(" array of {N}"), text);
    }

    fn fixed_array() -> Option<Array> {
        T::fixed_array()?.times(N)
    }
}

impl<T: Field> Field for Option<T> {
    fn blank() -> Self {
        None
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let mut some = self.is_some();
        some.walk(walk)?;
        if !some {
            *self = None;
            return Ok(());
        }
        self.get_or_insert_with(T::blank).walk(walk)
    }

    fn describe(text: &mut String) {
        describe_many::<T>(" option of", text);
    }
}

impl<T: Field, E: Field> Field for Result<T, E> {
    fn blank() -> Self {
        Ok(T::blank())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let was = self.is_ok();
        let mut is = was;
        is.walk(walk)?;
        if is != was {
            *self = if is { Ok(T::blank()) } else { Err(E::blank()) };
        }
        match self {
            Ok(value) => value.walk(walk),
            Err(error) => error.walk(walk),
        }
    }

    fn describe(text: &mut String) {
        describe_many::<T>(" result of", text);
        describe_many::<E>(" or", text);
    }
}

impl<T: Field> Field for Range<T> {
    const FIXED_BYTES: usize = 2 * T::FIXED_BYTES;

    fn blank() -> Self {
        T::blank()..T::blank()
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        self.start.walk(walk)?;
        self.end.walk(walk)
    }

    fn describe(text: &mut String) {
        describe_many::<T>(" range of", text);
    }
}

impl Field for Duration {
    const FIXED_BYTES: usize = 12;

    fn blank() -> Self {
        Self::ZERO
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let (mut seconds, mut nanos) = (self.as_secs(), self.subsec_nanos());
        seconds.walk(walk)?;
        nanos.walk(walk)?;
        if nanos >= 1_000_000_000 {
            return Err(walk.invalid("duration"));
        }
        *self = Self::new(seconds, nanos);
        Ok(())
    }
}

impl Field for () {
    fn blank() -> Self {}

    fn walk<W: Walk>(&mut self, _: &mut W) -> Result<(), ProtectError> {
        Ok(())
    }
}

impl<T> Field for PhantomData<T> {
    fn blank() -> Self {
        PhantomData
    }

    fn walk<W: Walk>(&mut self, _: &mut W) -> Result<(), ProtectError> {
        Ok(())
    }
}

/// The sum of sizes, or 0 as soon as one of them varies.
const fn sum(sizes: &[usize]) -> usize {
    let (mut total, mut index) = (0, 0);
    while index < sizes.len() {
        if sizes[index] == 0 {
            return 0;
        }
        total += sizes[index];
        index += 1;
    }
    total
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))+) => {$(
        impl<$($name: Field),+> Field for ($($name,)+) {
            const FIXED_BYTES: usize = sum(&[$($name::FIXED_BYTES),+]);

            fn blank() -> Self {
                ($($name::blank(),)+)
            }

            fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
                $(self.$index.walk(walk)?;)+
                Ok(())
            }

            fn describe(text: &mut String) {
                *text += " (";
                $($name::describe(text);)+
                *text += " )";
            }
        }
    )+};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
