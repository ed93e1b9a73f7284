//! Operations of reductions (MPI 4.1, section 6.9): those that MPI names, and the program's own.

use serde::{Deserialize, Serialize};

use crate::collective::Order;
use crate::error::CommError;
use crate::plain::Plain;

/// An operation of a reduction. It must be associative; the order of evaluation depends on algorithm, size and length
/// only, never on arrival, so the same call gives the same bits every time.
///
/// It runs within calls of its rank, and makes none itself ([`CommError::Nested`]). A panic in it fails the process, as any
/// other; a program that catches it around such a call can make no other one ([`CommError::Panicked`]).
pub trait Operation<T: Plain> {
    /// `into[i] = op(into[i], from[i])` over slices of equal length, or `op(from[i], into[i])` for
    /// [`Order::OtherFirst`].
    fn combine(&self, into: &mut [T], from: &[T], order: Order);

    /// Whether the operands may change places. If not, contributions are combined in the order of ranks.
    fn is_commutative(&self) -> bool {
        true
    }

    /// What is wrong with this operation on these elements, found before anything is sent.
    ///
    /// # Errors
    /// The operation has no meaning for them.
    fn check(&self) -> Result<(), CommError> {
        Ok(())
    }
}

/// The operations that MPI names. All are commutative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Sum; wraps for integers (`MPI_SUM`).
    Sum,
    /// Product; wraps for integers (`MPI_PROD`).
    Prod,
    /// Minimum. For floats as `f64::min`: a NaN loses against a number (`MPI_MIN`).
    Min,
    /// Maximum. For floats as `f64::max` (`MPI_MAX`).
    Max,
    /// 1 if both are not 0, else 0; integers only (`MPI_LAND`).
    LogicalAnd,
    /// 1 if one of the two is not 0, else 0; integers only (`MPI_LOR`).
    LogicalOr,
    /// 1 if exactly one of the two is not 0, else 0; integers only (`MPI_LXOR`).
    LogicalXor,
    /// Bits that both have; integers only (`MPI_BAND`).
    BitAnd,
    /// Bits that one of the two has; integers only (`MPI_BOR`).
    BitOr,
    /// Bits that exactly one of the two has; integers only (`MPI_BXOR`).
    BitXor,
    /// The smaller value with its index, of equal ones the one with the smaller index; [`LocatedF64`] and its kin only
    /// (`MPI_MINLOC`).
    MinLoc,
    /// The larger value with its index, of equal ones the one with the smaller index; [`LocatedF64`] and its kin only
    /// (`MPI_MAXLOC`).
    MaxLoc,
}

/// Elements that the operations of [`Op`] work on: integers, floats, and values with an index ([`LocatedF64`] and its kin).
pub trait Reduce: Plain {
    /// Whether `op` has a meaning for these elements.
    fn supports(op: Op) -> bool;

    /// `into[i] = op(into[i], from[i])` over slices of equal length, in the given order. An operation that is not
    /// supported changes nothing.
    fn combine(op: Op, into: &mut [Self], from: &[Self], order: Order);
}

impl<T: Reduce> Operation<T> for Op {
    fn combine(&self, into: &mut [T], from: &[T], order: Order) {
        T::combine(*self, into, from, order);
    }

    fn check(&self) -> Result<(), CommError> {
        if T::supports(*self) {
            return Ok(());
        }
        let element = std::any::type_name::<T>();
        Err(CommError::Operation(format!("{self:?} has no meaning for elements of type {element}")))
    }
}

/// An operation of the program's own (`MPI_Op_create`).
///
/// `comm.allreduce(&mut values, Custom::commutative(gcd))` leaves on all ranks what `gcd` makes of the values of all:
///
/// ```
/// use ft_proto::collective::Order;
/// use ft_proto::reduction::{Custom, Operation};
///
/// let gcd = Custom::commutative(|mut a: u64, mut b: u64| {
///     while b != 0 {
///         (a, b) = (b, a % b);
///     }
///     a
/// });
/// let mut mine = [12, 18];
/// gcd.combine(&mut mine, &[8, 27], Order::MineFirst);
/// assert_eq!(mine, [4, 9]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Custom<F> {
    op: F,
    commutative: bool,
}

impl<F> Custom<F> {
    /// An associative operation whose operands may change places.
    pub fn commutative(op: F) -> Self {
        Self { op, commutative: true }
    }

    /// An associative operation whose left operand is that of the lower ranks.
    pub fn ordered(op: F) -> Self {
        Self { op, commutative: false }
    }
}

impl<T: Plain, F: Fn(T, T) -> T> Operation<T> for Custom<F> {
    fn combine(&self, into: &mut [T], from: &[T], order: Order) {
        each(into, from, order, &self.op);
    }

    fn is_commutative(&self) -> bool {
        self.commutative
    }
}

fn each<T: Copy>(into: &mut [T], from: &[T], order: Order, op: impl Fn(T, T) -> T) {
    let pairs = into.iter_mut().zip(from);
    match order {
        Order::MineFirst => pairs.for_each(|(a, b)| *a = op(*a, *b)),
        Order::OtherFirst => pairs.for_each(|(a, b)| *a = op(*b, *a)),
    }
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Reduce for $t {
            fn supports(op: Op) -> bool {
                !matches!(op, Op::MinLoc | Op::MaxLoc)
            }

            fn combine(op: Op, into: &mut [Self], from: &[Self], order: Order) {
                match op {
                    Op::Sum => each(into, from, order, <$t>::wrapping_add),
                    Op::Prod => each(into, from, order, <$t>::wrapping_mul),
                    Op::Min => each(into, from, order, <$t>::min),
                    Op::Max => each(into, from, order, <$t>::max),
                    Op::LogicalAnd => each(into, from, order, |a, b| <$t>::from(a != 0 && b != 0)),
                    Op::LogicalOr => each(into, from, order, |a, b| <$t>::from(a != 0 || b != 0)),
                    Op::LogicalXor => each(into, from, order, |a, b| <$t>::from((a != 0) != (b != 0))),
                    Op::BitAnd => each(into, from, order, |a, b| a & b),
                    Op::BitOr => each(into, from, order, |a, b| a | b),
                    Op::BitXor => each(into, from, order, |a, b| a ^ b),
                    Op::MinLoc | Op::MaxLoc => {}
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Reduce for $t {
            fn supports(op: Op) -> bool {
                matches!(op, Op::Sum | Op::Prod | Op::Min | Op::Max)
            }

            fn combine(op: Op, into: &mut [Self], from: &[Self], order: Order) {
                match op {
                    Op::Sum => each(into, from, order, |a, b| a + b),
                    Op::Prod => each(into, from, order, |a, b| a * b),
                    Op::Min => each(into, from, order, <$t>::min),
                    Op::Max => each(into, from, order, <$t>::max),
                    _ => {}
                }
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
floats!(f32 f64);

macro_rules! located {
    ($($name:ident $value:ty, $index:ty;)*) => {$(
        /// A value and where it was found, often a rank: elements of [`Op::MinLoc`] and [`Op::MaxLoc`]. A NaN loses
        /// against a number.
        #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub struct $name {
            /// The value.
            pub value: $value,
            /// Its index.
            pub index: $index,
        }

        impl $name {
            /// Whether `self` wins, if `better` says which of two different values does.
            fn wins(self, other: Self, better: impl Fn($value, $value) -> bool) -> bool {
                #[allow(clippy::eq_op)]
                let is_nan = |x: $value| x != x;
                match (is_nan(self.value), is_nan(other.value)) {
                    (false, true) => true,
                    (true, false) => false,
                    _ if better(self.value, other.value) => true,
                    _ if better(other.value, self.value) => false,
                    _ => self.index <= other.index,
                }
            }
        }

        impl Reduce for $name {
            fn supports(op: Op) -> bool {
                matches!(op, Op::MinLoc | Op::MaxLoc)
            }

            fn combine(op: Op, into: &mut [Self], from: &[Self], order: Order) {
                match op {
                    Op::MinLoc => each(into, from, order, |a, b| if a.wins(b, |x, y| x < y) { a } else { b }),
                    Op::MaxLoc => each(into, from, order, |a, b| if a.wins(b, |x, y| x > y) { a } else { b }),
                    _ => {}
                }
            }
        }
    )*};
}

located! {
    LocatedF64 f64, u64;
    LocatedF32 f32, u32;
    LocatedI64 i64, u64;
    LocatedI32 i32, u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined<T: Reduce>(op: Op, mut into: Vec<T>, from: &[T]) -> Vec<T> {
        T::combine(op, &mut into, from, Order::MineFirst);
        into
    }

    #[test]
    fn combines_elementwise() {
        assert_eq!(combined(Op::Min, vec![1.5, -2.0, 8.0], &[2.0, -3.0, 8.0]), [1.5, -3.0, 8.0]);
        assert_eq!(combined(Op::Sum, vec![u8::MAX, 2], &[2, 3]), [1, 5]);
        assert_eq!(combined(Op::LogicalXor, vec![5u32, 0, 7], &[0, 0, 9]), [1, 0, 0]);
        assert_eq!(combined(Op::LogicalAnd, vec![5i8, 0], &[-1, 3]), [1, 0]);
        assert_eq!(combined(Op::LogicalOr, vec![0i64, 0], &[-1, 0]), [1, 0]);
        assert_eq!(combined(Op::BitXor, vec![0b1100u16], &[0b1010]), [0b0110]);
        assert_eq!(combined(Op::BitAnd, vec![0b1100u16], &[0b1010]), [0b1000]);
        assert_eq!(combined(Op::BitOr, vec![0b1100u16], &[0b1010]), [0b1110]);
    }

    #[test]
    fn extremes_know_where_they_are() {
        let at = |value: f64, index| LocatedF64 { value, index };
        let mine = vec![at(1.0, 3), at(f64::NAN, 0), at(2.0, 5), at(-1.0, 1)];
        let other = [at(1.0, 2), at(9.0, 7), at(3.0, 1), at(-2.0, 4)];
        assert_eq!(
            combined(Op::MinLoc, mine.clone(), &other),
            [at(1.0, 2), at(9.0, 7), at(2.0, 5), at(-2.0, 4)]
        );
        assert_eq!(combined(Op::MaxLoc, mine, &other), [at(1.0, 2), at(9.0, 7), at(3.0, 1), at(-1.0, 1)]);
    }

    #[test]
    fn the_lower_rank_is_the_left_operand() {
        let keep_left = Custom::ordered(|a: u32, _: u32| a);
        let mut mine = [1u32];
        keep_left.combine(&mut mine, &[2], Order::MineFirst);
        assert_eq!(mine, [1]);
        keep_left.combine(&mut mine, &[2], Order::OtherFirst);
        assert_eq!(mine, [2]);
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        assert!(matches!(Operation::<f64>::check(&Op::BitAnd), Err(CommError::Operation(_))));
        assert!(matches!(Operation::<u32>::check(&Op::MinLoc), Err(CommError::Operation(_))));
        assert!(Operation::<LocatedF32>::check(&Op::MaxLoc).is_ok());
        assert!(matches!(Operation::<LocatedI32>::check(&Op::Sum), Err(CommError::Operation(_))));
    }
}
