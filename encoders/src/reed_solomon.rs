//! Reed-Solomon: any number of losses, for as many redundant blocks, by one of two matrices over GF(2^8).
//!
//! A stripe survives the loss of any `m` blocks if every square part of the matrix of weights can be inverted.
//!
//! *Cauchy* ([`ReedSolomon::new`]): the weight of member `i` in block `j` is `1 / (x_j - y_i)`, where all `x` and `y` are different;
//! every square part of it is a matrix of the same kind, whose determinant is a product of differences (Roth and
//! Lempel; Blömer et al.). As in Intel's ISA-L (`gf_gen_cauchy1_matrix`) the `y` are `0..k` and the `x` are `k..k + m`. With one redundant block any
//! weights but 0 will do, and are 1, so that this block is the XOR of the shards.
//!
//! *Vandermonde* ([`ReedSolomon::vandermonde`]), as Reed and Solomon have it: take the `i`-th bytes of the `k` shards as the values of a
//! polynomial of degree below `k` at the points `0..k`; there is exactly one such polynomial. The `i`-th bytes of the redundant
//! blocks are its values at the points `k..k + m`. Any `k` of the `k + m` values determine the polynomial, and so all the
//! others. In matrices this is the Vandermonde matrix reduced until its first `k` rows are the identity, as in
//! Plank and Ding's note. Its weights are those of Lagrange's formula.
//!
//! Bytes are elements of GF(2^8), where addition is XOR and there are 256 points, hence `k + m <= 256`.

use crate::field;
use crate::shape::Shape;
use crate::{Code, CodeError};

/// Any `k` data members and `m` redundant blocks with `k + m <= 256`, over GF(2^8) with the polynomial
/// `0x11d`; survives any `m` losses.
#[derive(Clone)]
pub struct ReedSolomon {
    shape: Shape,
    /// That of `member` in `block` is at `block * k + member`. Never zero.
    weights: Vec<u8>,
}

impl ReedSolomon {
    /// Most blocks of a stripe, data and redundant together: one for each element of GF(2^8).
    pub const BLOCKS_MAX: usize = 256;

    /// A code of `data` data members and `redundant` redundant blocks, with a Cauchy matrix.
    ///
    /// The blocks are those of Intel's ISA-L; a single one is that of [`Xor`](crate::Xor).
    ///
    /// # Errors
    ///
    /// When one of the numbers is 0, their sum is more than [`Self::BLOCKS_MAX`], or `FT_KERNEL` names no kernel.
    pub fn new(data: usize, redundant: usize) -> Result<Self, CodeError> {
        let shape = Shape::new(data, redundant, Self::BLOCKS_MAX)?;
        Ok(Self::with(shape, |point, member| match redundant {
            1 => 1,
            _ => field::inverse(point ^ member),
        }))
    }

    /// A code of `data` data members and `redundant` redundant blocks, with a Vandermonde matrix made systematic.
    ///
    /// The blocks are those of the crate `reed-solomon-erasure`, version 6.
    ///
    /// # Errors
    ///
    /// As [`ReedSolomon::new`].
    pub fn vandermonde(data: usize, redundant: usize) -> Result<Self, CodeError> {
        let shape = Shape::new(data, redundant, Self::BLOCKS_MAX)?;
        let members = || (0..data).map(|member| member as u8);
        let product = |factors: &mut dyn Iterator<Item = u8>| factors.fold(1, field::product);
        // Lagrange: the polynomial that is 1 at one member's point and 0 at those of the others, at the point of a block.
        let denominators: Vec<u8> = members()
            .map(|member| {
                product(&mut members().filter(|other| *other != member).map(|other| member ^ other))
            })
            .collect();
        let numerators: Vec<u8> = (data..data + redundant)
            .map(|point| product(&mut members().map(|member| point as u8 ^ member)))
            .collect();
        Ok(Self::with(shape, |point, member| {
            let denominator = field::product(denominators[usize::from(member)], point ^ member);
            field::product(numerators[usize::from(point) - data], field::inverse(denominator))
        }))
    }

    /// `weight` gets the point of the block and that of the member, which are different.
    fn with(shape: Shape, weight: impl Fn(u8, u8) -> u8) -> Self {
        let weights = (shape.data..shape.data + shape.redundant)
            .flat_map(|point| (0..shape.data).map(move |member| (point as u8, member as u8)))
            .map(|(point, member)| weight(point, member))
            .collect();
        Self { shape, weights }
    }
}

impl Code for ReedSolomon {
    fn data(&self) -> usize {
        self.shape.data
    }

    fn redundant(&self) -> usize {
        self.shape.redundant
    }

    fn weight(&self, block: usize, member: usize) -> u8 {
        self.weights[block * self.shape.data + member]
    }
}

impl std::fmt::Debug for ReedSolomon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReedSolomon").field("shape", &self.shape).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_is_zero() {
        for (data, redundant) in [(1, 1), (4, 2), (17, 5), (128, 128), (255, 1), (1, 255)] {
            for code in [ReedSolomon::new(data, redundant), ReedSolomon::vandermonde(data, redundant)] {
                let code = code.unwrap();
                assert!(code.weights.iter().all(|&weight| weight != 0), "{code:?}");
            }
        }
    }

    #[test]
    fn one_member_is_mirrored_by_polynomials() {
        let code = ReedSolomon::vandermonde(1, 3).unwrap();
        assert!(code.weights.iter().all(|&weight| weight == 1));
    }

    #[test]
    fn the_field_limits_the_blocks() {
        let too_many = CodeError::TooManyBlocks { data: 250, redundant: 7, blocks_max: 256 };
        assert_eq!(ReedSolomon::new(250, 7).unwrap_err(), too_many);
        assert_eq!(ReedSolomon::vandermonde(250, 7).unwrap_err(), too_many);
        assert_eq!(ReedSolomon::new(0, 1).unwrap_err(), CodeError::Empty { data: 0, redundant: 1 });
        assert_eq!(ReedSolomon::vandermonde(0, 1).unwrap_err(), CodeError::Empty { data: 0, redundant: 1 });
        assert!(ReedSolomon::vandermonde(usize::MAX, 1).is_err());
    }

    #[test]
    fn debug_shows_the_shape_and_not_the_weights() {
        assert_eq!(format!("{:?}", ReedSolomon::new(4, 2).unwrap()), "ReedSolomon { shape: 4+2, .. }");
    }
}
