//! Element types that travel as bytes, and the operations of reductions.

use serde::{Deserialize, Serialize};

/// Plain data: any bit pattern is a value, no padding, no pointers. Travels without being serialised, in the
/// byte order of the machine (all ranks of a job run on machines of one byte order).
pub trait Plain: bytemuck::Pod {}

impl<T: bytemuck::Pod> Plain for T {}

/// Operation of a reduction. All are commutative; the order of evaluation depends on the algorithm and the
/// size of the communicator only, never on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Sum; wraps for integers.
    Sum,
    /// Product; wraps for integers.
    Prod,
    /// Minimum. For floats as `f64::min`: a NaN loses against a number.
    Min,
    /// Maximum. For floats as `f64::max`.
    Max,
}

/// Elements that can be reduced.
pub trait Reduce: Plain {
    /// `into[i] = op(into[i], from[i])` over slices of equal length.
    fn combine(op: Op, into: &mut [Self], from: &[Self]);
}

macro_rules! reduce {
    ($sum:expr, $prod:expr, $min:expr, $max:expr, $($t:ty)*) => {$(
        impl Reduce for $t {
            fn combine(op: Op, into: &mut [Self], from: &[Self]) {
                fn each<T: Copy>(into: &mut [T], from: &[T], f: impl Fn(T, T) -> T) {
                    for (a, b) in into.iter_mut().zip(from) {
                        *a = f(*a, *b);
                    }
                }
                match op {
                    Op::Sum => each::<$t>(into, from, $sum),
                    Op::Prod => each::<$t>(into, from, $prod),
                    Op::Min => each::<$t>(into, from, $min),
                    Op::Max => each::<$t>(into, from, $max),
                }
            }
        }
    )*};
}

reduce!(|a, b| a.wrapping_add(b), |a, b| a.wrapping_mul(b), |a, b| a.min(b), |a, b| a.max(b),
        u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
reduce!(|a, b| a + b, |a, b| a * b, |a, b| a.min(b), |a, b| a.max(b), f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combines_elementwise() {
        let mut a = [1.5, -2.0, 8.0];
        f64::combine(Op::Min, &mut a, &[2.0, -3.0, 8.0]);
        assert_eq!(a, [1.5, -3.0, 8.0]);
        let mut b = [u8::MAX, 2];
        u8::combine(Op::Sum, &mut b, &[2, 3]);
        assert_eq!(b, [1, 5]);
    }
}
