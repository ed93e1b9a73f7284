//! Vectors spread over the ranks, and the loops over slices that solvers are made of.

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator};
use nalgebra::{DVector, DVectorView, DVectorViewMut};

use crate::{Global, LinalgError, Partition, dot::Reducer, parallel::elements};

/// A power of two by which elements are far enough from where their squares overflow or underflow.
const FAR: i32 = 600;

/// `y = y + alpha x`, element by element.
///
/// # Panics
/// If the lengths differ.
pub fn axpy(alpha: f64, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len());
    elements(y.len(), y, |rows, y| y.iter_mut().zip(&x[rows]).for_each(|(y, x)| *y += alpha * x));
}

/// `y = x + beta y`, element by element.
///
/// # Panics
/// If the lengths differ.
pub fn xpby(x: &[f64], beta: f64, y: &mut [f64]) {
    assert_eq!(x.len(), y.len());
    elements(y.len(), y, |rows, y| y.iter_mut().zip(&x[rows]).for_each(|(y, x)| *y = x + beta * *y));
}

/// `x = factor x`, element by element.
pub fn scale(factor: f64, x: &mut [f64]) {
    elements(x.len(), x, |_, x| x.iter_mut().for_each(|x| *x *= factor));
}

/// `x = x / divisor`, element by element.
pub(crate) fn divide(x: &mut [f64], divisor: f64) {
    elements(x.len(), x, |_, x| x.iter_mut().for_each(|x| *x /= divisor));
}

/// A vector with one element for each row of a [`Partition`]; each rank holds those of its own rows.
///
/// The default, an empty one on no rank, only waits to be restored from a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub struct DistVector {
    #[protect(nested)]
    part: Partition,
    #[protect(distributed)]
    local: Vec<f64>,
}

impl Redistribute for DistVector {
    fn extent(&self) -> usize {
        self.local.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let (parts, local) = parts.into_iter().map(|vector| (vector.part, vector.local)).unzip();
        Ok(Self { part: Partition::redistribute(parts, moves)?, local: Vec::redistribute(local, moves)? })
    }
}

impl DistVector {
    /// All elements 0.
    pub fn zeros(part: Partition) -> Self {
        Self::constant(part, 0.0)
    }

    /// All elements `value`.
    pub fn constant(part: Partition, value: f64) -> Self {
        Self { local: vec![value; part.local_len()], part }
    }

    /// Element `i` is `value(i)`; only this rank's are asked for.
    pub fn from_fn(part: Partition, value: impl FnMut(Global) -> f64) -> Self {
        Self { local: part.range().map(Global).map(value).collect(), part }
    }

    /// From this rank's elements.
    ///
    /// # Errors
    /// [`LinalgError::Length`] unless there is one for each row of this rank.
    pub fn from_local(part: Partition, local: Vec<f64>) -> Result<Self, LinalgError> {
        part.require_len("local part of a vector", local.len())?;
        Ok(Self { part, local })
    }

    /// This rank's slice of a whole vector.
    ///
    /// # Errors
    /// [`LinalgError::Length`] unless `whole` has `n` elements.
    pub fn from_global(part: Partition, whole: &[f64]) -> Result<Self, LinalgError> {
        if whole.len() != part.n() {
            return Err(LinalgError::Length { what: "vector", expected: part.n(), found: whole.len() });
        }
        Ok(Self { local: whole[part.range()].to_vec(), part })
    }

    /// From this rank's elements as a vector of nalgebra, which is not copied.
    ///
    /// # Errors
    /// [`LinalgError::Length`] unless there is one for each row of this rank.
    pub fn from_nalgebra(part: Partition, local: DVector<f64>) -> Result<Self, LinalgError> {
        Self::from_local(part, local.data.into())
    }

    /// This rank's elements as a vector of nalgebra, without a copy.
    pub fn into_nalgebra(self) -> DVector<f64> {
        DVector::from_vec(self.local)
    }

    /// How elements are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// This rank's elements.
    pub fn local(&self) -> &[f64] {
        &self.local
    }

    /// This rank's elements.
    pub fn local_mut(&mut self) -> &mut [f64] {
        &mut self.local
    }

    /// This rank's elements, without the partition.
    pub fn into_local(self) -> Vec<f64> {
        self.local
    }

    /// This rank's elements as a nalgebra vector, without a copy.
    pub fn as_nalgebra(&self) -> DVectorView<'_, f64> {
        DVectorView::from_slice(&self.local, self.local.len())
    }

    /// This rank's elements as a nalgebra vector, without a copy.
    pub fn as_nalgebra_mut(&mut self) -> DVectorViewMut<'_, f64> {
        let len = self.local.len();
        DVectorViewMut::from_slice(&mut self.local, len)
    }

    /// All elements on every rank. Collective; `8 n` bytes.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`].
    pub fn gather(&self, comm: &Communicator) -> Result<Vec<f64>, LinalgError> {
        self.part.require(comm)?;
        let counts: Vec<usize> = (0..comm.size()).map(|rank| self.part.range_of(rank).len()).collect();
        let mut whole = vec![0.0; self.part.n()];
        whole[self.part.range()].copy_from_slice(&self.local);
        comm.allgatherv(&mut whole, &counts)?;
        Ok(whole)
    }

    /// Multiplies every element by `factor`.
    pub fn scale(&mut self, factor: f64) {
        scale(factor, &mut self.local);
    }

    /// `self = self + alpha x`.
    ///
    /// # Panics
    /// If the partitions differ.
    pub fn axpy(&mut self, alpha: f64, x: &Self) {
        assert_eq!(self.part, x.part);
        axpy(alpha, &x.local, &mut self.local);
    }

    /// `self = x + beta self`.
    ///
    /// # Panics
    /// If the partitions differ.
    pub fn xpby(&mut self, x: &Self, beta: f64) {
        assert_eq!(self.part, x.part);
        xpby(&x.local, beta, &mut self.local);
    }

    /// Dot product, with the same bits on any number of ranks (see [`crate::dot`]). Collective.
    ///
    /// Loops that form many of them keep a [`Reducer`] instead, which keeps its buffers and fuses sums.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`].
    ///
    /// # Panics
    /// If the partitions differ.
    pub fn dot(&self, other: &Self, comm: &Communicator) -> Result<f64, LinalgError> {
        assert_eq!(self.part, other.part);
        Reducer::new(&self.part).dot(&self.local, &other.local, comm)
    }

    /// Euclidean norm, as [`DistVector::dot`]. Where squares overflow or underflow, as they do if it is 0, it costs a second
    /// sum, of elements that are scaled by a power of two: so only a vector of zeros has norm 0.
    ///
    /// # Errors
    /// As [`DistVector::dot`].
    pub fn norm2(&self, comm: &Communicator) -> Result<f64, LinalgError> {
        let squared = self.dot(self, comm)?;
        // Every rank has the same sum, so all take the same way.
        if squared.is_normal() || squared.is_nan() {
            return Ok(squared.sqrt());
        }
        let factor = 2f64.powi(if squared > 1.0 { -FAR } else { FAR });
        let mut scaled = self.clone();
        scaled.scale(factor);
        Ok(scaled.dot(&scaled, comm)?.sqrt() / factor)
    }
}

#[cfg(test)]
mod tests {
    use ft_checkpoint::{RankState, StatePart, load, save};
    use ft_sim as sim;

    use super::*;

    #[test]
    fn a_vector_comes_out_of_a_checkpoint_and_is_dealt_out_over_fewer_ranks() {
        const N: usize = 200;
        let vector = |size, rank| DistVector::from_fn(Partition::new(N, size, rank), |row| row.0 as f64);
        let ranges = |size| (0..size).map(|rank| Partition::new(N, size, rank).range()).collect();
        let restored = |size, rank| {
            let (mut was, mut is, mut shard) = (vector(size, rank), DistVector::default(), vec![]);
            for part in [StatePart::Constant, StatePart::Variable] {
                save(&mut was, part, &mut shard).unwrap();
                load(&mut is, part, &shard).unwrap();
            }
            assert_eq!(is, was);
            is
        };
        sim::ranks(2, |comm| {
            let held: Vec<usize> = (0..3).filter(|old| old % 2 == comm.rank()).collect();
            let shares =
                held.iter().map(|rank| RankState { rank: *rank, state: restored(3, *rank) }).collect();
            let moves = Redistribution::new(comm, held, ranges(3), ranges(2)).unwrap();
            assert_eq!(moves.deal(shares).unwrap(), vector(2, comm.rank()));
        });
    }

    #[test]
    fn norms_are_right_where_squares_are_not() {
        for unit in [f64::from_bits(1), 1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e200, 1e307] {
            let norms = sim::ranks(2, |comm| {
                let v = DistVector::from_global(Partition::of(comm, 2), &[3.0 * unit, -4.0 * unit]).unwrap();
                v.norm2(comm).unwrap()
            });
            assert!(norms.iter().all(|norm| (norm / unit - 5.0).abs() < 1e-9), "{unit:e}: {norms:?}");
        }
        for (value, expected) in [(0.0, 0.0), (f64::INFINITY, f64::INFINITY), (f64::MAX, f64::INFINITY)] {
            sim::ranks(2, |comm| {
                let v = DistVector::constant(Partition::of(comm, 80), value);
                assert_eq!(v.norm2(comm).unwrap(), expected);
            });
        }
    }

    #[test]
    fn updates_by_hand() {
        let mut y = [1.0, 2.0, 3.0];
        axpy(2.0, &[1.0, 0.0, -1.0], &mut y);
        assert_eq!(y, [3.0, 2.0, 1.0]);
        xpby(&[1.0, 1.0, 1.0], -1.0, &mut y);
        assert_eq!(y, [-2.0, -1.0, 0.0]);
    }

    #[test]
    fn slices_of_a_whole_vector() {
        let whole: Vec<f64> = (0..100).map(f64::from).collect();
        let part = Partition::new(100, 3, 2);
        let v = DistVector::from_global(part.clone(), &whole).unwrap();
        assert_eq!(v, DistVector::from_fn(part.clone(), |row| row.0 as f64));
        assert_eq!(v.as_nalgebra().sum(), v.local().iter().sum::<f64>());
        let (place, nalgebra) = (v.local().as_ptr(), v.into_nalgebra());
        let v = DistVector::from_nalgebra(part.clone(), nalgebra).unwrap();
        assert_eq!(v.local().as_ptr(), place);
        assert!(matches!(
            DistVector::from_global(part.clone(), &whole[1..]),
            Err(LinalgError::Length { expected: 100, found: 99, .. })
        ));
        assert!(DistVector::from_local(part, vec![]).is_err());
    }
}
