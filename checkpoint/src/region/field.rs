//! Values that a walk knows how to visit without serde.

use std::marker::PhantomData;

use super::Walk;
use crate::error::ProtectError;

/// A value that can be protected as bytes.
///
/// There for numbers, `bool`, `char`, `String`, arrays, vectors, boxed slices, options and tuples of them, and (cargo
/// feature `nalgebra`) `DVector` and `DMatrix`. For plain types of your own, which are [`bytemuck::Pod`], use
/// [`plain!`](crate::plain); for everything else `#[protect(serde)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be protected as bytes",
    note = "mark the field `#[protect(serde)]`, `#[protect(nested)]` if it is `Protect` itself, or `#[protect(derived)]`",
    note = "for a type that is `bytemuck::Pod`: `ft_checkpoint::plain!(Type)`"
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

    /// Hands all `items` to `walk`, at once where the type allows it; their number is not written.
    ///
    /// # Errors
    ///
    /// Those of [`Field::walk`].
    fn walk_slice<W: Walk>(items: &mut [Self], walk: &mut W) -> Result<(), ProtectError> {
        items.iter_mut().try_for_each(|item| item.walk(walk))
    }
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
        }
    )+};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
}
