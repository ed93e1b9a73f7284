//! The classes of the kernel CG of the NAS Parallel Benchmarks, and the matrices that they are about.
//!
//! A matrix is `sum_i s_i v_i v_i^T + (0.1 - shift) I` over `n` random sparse vectors, with weights `s_i` that fall from 1 to
//! 0.1 in a geometric sequence. Element `i` of `v_i` is 0.5; the others come from the generator `x_k = 5^13 x_(k-1) mod 2^46`
//! with `x_0 = 314159265`, a value and a place in turn; a place beyond the end, or one that is taken, is passed over.
//!
//! D. H. Bailey et al., The NAS Parallel Benchmarks, Int. J. Supercomputer Applications 5(3), 1991; the specification is
//! NPB 3 (NAS Technical Report NAS-99-011) with its procedures `makea` and `sprnvc`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use ft_linalg::{CsrRows, LinalgError};

const MULTIPLIER: u64 = 5_u64.pow(13);
const SEED: u64 = 314_159_265;
const MODULUS: u64 = 1 << 46;
/// The smallest weight of a vector, and the multiple of the identity that bounds the smallest eigenvalue.
const CONDITION: f64 = 0.1;

/// A size of the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    S,
    W,
    A,
    B,
    C,
}

/// What a class says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    /// Elements of a random vector besides the one on the diagonal.
    nonzeros: usize,
    /// Steps of the inverse power method.
    pub(crate) iterations: u64,
    pub(crate) shift: f64,
    /// The published estimate of the eigenvalue.
    pub(crate) zeta: f64,
}

impl Class {
    const ALL: [Self; 5] = [Self::S, Self::W, Self::A, Self::B, Self::C];

    pub(crate) fn size(self) -> Size {
        let (rows, nonzeros, iterations, shift, zeta) = match self {
            Self::S => (1400, 7, 15, 10.0, 8.597_177_507_864_8),
            Self::W => (7000, 8, 15, 12.0, 10.362_595_087_124),
            Self::A => (14_000, 11, 15, 20.0, 17.130_235_054_029),
            Self::B => (75_000, 13, 75, 60.0, 22.712_745_482_631),
            Self::C => (150_000, 15, 75, 110.0, 28.973_605_592_845),
        };
        Size { rows, nonzeros, iterations, shift, zeta }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_named = |class: &Self| class.to_string().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_named).ok_or_else(|| "the classes are S, W, A, B and C".into())
    }
}

/// Numbers in `(0, 1)`, one after the other.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> f64 {
        // Arithmetic modulo 2^64 keeps the lower 46 bits right.
        self.0 = self.0.wrapping_mul(MULTIPLIER) % MODULUS;
        self.0 as f64 / MODULUS as f64
    }
}

/// The random vectors in order, as places and values.
struct Vectors {
    size: Size,
    random: Generator,
    index: usize,
}

impl Iterator for Vectors {
    type Item = Vec<(usize, f64)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.size.rows {
            return None;
        }
        let power = self.size.rows.next_power_of_two() as f64;
        let mut vector: Vec<(usize, f64)> = Vec::with_capacity(self.size.nonzeros + 1);
        while vector.len() < self.size.nonzeros {
            let value = self.random.next();
            let place = (power * self.random.next()) as usize;
            if place < self.size.rows && vector.iter().all(|(other, _)| *other != place) {
                vector.push((place, value));
            }
        }
        match vector.iter_mut().find(|(place, _)| *place == self.index) {
            Some((_, value)) => *value = 0.5,
            None => vector.push((self.index, 0.5)),
        }
        self.index += 1;
        Some(vector)
    }
}

/// Rows `rows` of the matrix. Every rank goes through all vectors and keeps what falls to its own rows, so nothing is sent.
/// Contributions to an element are added in the order of the vectors.
pub(crate) fn rows(size: Size, rows: Range<usize>) -> Result<CsrRows, LinalgError> {
    let mut random = Generator(SEED);
    random.next(); // the specification throws the first number away
    let ratio = CONDITION.powf(1.0 / size.rows as f64);
    let mut weight = 1.0;
    let mut elements: Vec<Vec<(u64, f64)>> = vec![Vec::new(); rows.len()];
    for (index, vector) in (Vectors { size, random, index: 0 }).enumerate() {
        for &(row, left) in vector.iter().filter(|(row, _)| rows.contains(row)) {
            let scale = weight * left;
            elements[row - rows.start].extend(vector.iter().map(|&(col, right)| {
                let identity = if row == index && col == index { CONDITION - size.shift } else { 0.0 };
                (col as u64, right * scale + identity)
            }));
        }
        weight *= ratio;
    }
    let (mut starts, mut cols, mut vals) = (vec![0], Vec::new(), Vec::new());
    for mut row in elements {
        row.sort_by_key(|(col, _)| *col); // stable
        for same in row.chunk_by(|one, other| one.0 == other.0) {
            cols.push(same[0].0);
            vals.push(same.iter().skip(1).fold(same[0].1, |sum, (_, value)| sum + value));
        }
        starts.push(cols.len());
    }
    CsrRows::new(starts, cols, vals, size.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matrix_is_symmetric_and_does_not_depend_on_who_makes_it() {
        let size = Class::S.size();
        let whole = rows(size, 0..size.rows).unwrap();
        let part = rows(size, 700..900).unwrap();
        for row in 700..900 {
            assert_eq!(part.row(row - 700), whole.row(row));
        }
        for (row, (cols, vals)) in whole.iter().enumerate() {
            for (col, value) in cols.iter().zip(vals) {
                let (others, mirrored) = whole.row(*col as usize);
                let at = others.binary_search(&(row as u64)).expect("a symmetric pattern");
                assert!((mirrored[at] - value).abs() <= 1e-15 * value.abs().max(1.0));
            }
        }
    }

    #[test]
    fn classes_are_read_as_they_are_written() {
        for class in Class::ALL {
            assert_eq!(class.to_string().to_lowercase().parse(), Ok(class));
        }
        assert!("D".parse::<Class>().is_err());
    }
}
