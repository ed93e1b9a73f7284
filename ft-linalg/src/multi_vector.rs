//! Several vectors of one partition: blocks of right-hand sides, bases of subspaces.
//!
//! A rank's elements lie column by column. Loops go through the blocks of [`crate::partition`] and use all columns of a
//! block while it is in cache; sums have the bits of those of [`DistVector::dot`], and all sums of a call are one
//! message.

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator};
use nalgebra::{DMatrix, DMatrixView, DMatrixViewMut};

use crate::{
    DistVector, Global, LinalgError, Partition,
    dot::{Reducer, block_dots},
    parallel::blocks,
    vector,
};

/// `columns()` vectors with one element for each row of a [`Partition`]; each rank holds those of its own rows.
///
/// ```
/// # use ft_linalg::{MultiVector, Partition};
/// # use ft_comm::World;
/// # let world = World::init()?;
/// # let comm = world.comm();
/// // The powers 1, x, x^2, x^3 on a grid, and the same space with an orthonormal basis.
/// let grid = Partition::of(comm, 1000);
/// let powers = MultiVector::from_fn(grid, 4, |row, power| (row.0 as f64 / 1000.0).powi(power as i32));
/// let mut basis = powers.clone();
/// let r = basis.orthonormalize(comm)?;
/// let gram = basis.dots(&basis, comm)?;
/// assert!((gram - nalgebra::DMatrix::identity(4, 4)).amax() < 1e-14);
/// assert!((basis.times(&r).as_nalgebra() - powers.as_nalgebra()).amax() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub struct MultiVector {
    #[protect(nested)]
    part: Partition,
    #[protect(replicated)]
    columns: usize,
    #[protect(private)]
    local: Vec<f64>,
}

impl Redistribute for MultiVector {
    fn extent(&self) -> usize {
        self.part.local_len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let columns = moves.replicated(parts.iter().map(|part| part.columns).collect())?;
        let mut local = Vec::with_capacity(columns * moves.range().len());
        for column in 0..columns {
            let pieces: Vec<&[f64]> = parts.iter().map(|part| part.column(column)).collect();
            local.extend(moves.run(&pieces, 1)?);
        }
        let part = Partition::redistribute(parts.into_iter().map(|part| part.part).collect(), moves)?;
        Ok(Self { part, columns, local })
    }
}

impl MultiVector {
    /// All elements 0. `8 n columns` bytes over all ranks.
    pub fn zeros(part: Partition, columns: usize) -> Self {
        Self { local: vec![0.0; part.local_len() * columns], part, columns }
    }

    /// Element `i` of column `j` is `value(i, j)`; only this rank's are asked for.
    pub fn from_fn(part: Partition, columns: usize, mut value: impl FnMut(Global, usize) -> f64) -> Self {
        let local = (0..columns).flat_map(|column| part.range().map(move |row| (Global(row), column)));
        let local = local.map(|(row, column)| value(row, column)).collect();
        Self { part, columns, local }
    }

    /// From this rank's rows as a matrix of nalgebra, which is not copied.
    ///
    /// # Errors
    /// [`LinalgError::Length`] unless it has one row for each row of this rank.
    pub fn from_nalgebra(part: Partition, local: DMatrix<f64>) -> Result<Self, LinalgError> {
        part.require_len("local part of a multi-vector", local.nrows())?;
        Ok(Self { part, columns: local.ncols(), local: local.data.into() })
    }

    /// This rank's rows as a matrix of nalgebra, without a copy.
    pub fn into_nalgebra(self) -> DMatrix<f64> {
        DMatrix::from_vec(self.part.local_len(), self.columns, self.local)
    }

    /// This rank's rows as a matrix of nalgebra, without a copy.
    pub fn as_nalgebra(&self) -> DMatrixView<'_, f64> {
        DMatrixView::from_slice(&self.local, self.part.local_len(), self.columns)
    }

    /// This rank's rows as a matrix of nalgebra, without a copy.
    pub fn as_nalgebra_mut(&mut self) -> DMatrixViewMut<'_, f64> {
        DMatrixViewMut::from_slice(&mut self.local, self.part.local_len(), self.columns)
    }

    /// How elements are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// This rank's elements of a column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, column: usize) -> &[f64] {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        &self.local[column * self.part.local_len()..][..self.part.local_len()]
    }

    /// This rank's elements of a column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column_mut(&mut self, column: usize) -> &mut [f64] {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        let len = self.part.local_len();
        &mut self.local[column * len..][..len]
    }

    /// This rank's elements of all columns, one after the other.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.columns).map(|column| self.column(column))
    }

    /// Appends a column.
    ///
    /// # Panics
    /// If it does not have one element for each row of this rank.
    pub fn push(&mut self, column: &[f64]) {
        assert_eq!(column.len(), self.part.local_len(), "length of the column");
        self.local.extend_from_slice(column);
        self.columns += 1;
    }

    /// Appends `w - self factors`, divided by `norm`. Not collective.
    pub(crate) fn push_rest(&mut self, w: &[f64], factors: &[f64], norm: f64) {
        let (len, columns) = (self.part.local_len(), self.columns);
        assert!(w.len() == len && factors.len() == columns);
        self.local.resize((columns + 1) * len, 0.0);
        let (before, rest) = self.local.split_at_mut(columns * len);
        let factors: Vec<f64> = factors.iter().map(|factor| -factor).collect();
        blocks(&self.part, rest, &mut self.part.no_sums(), |rows, y, _| {
            y.copy_from_slice(&w[rows.clone()]);
            add_columns(&factors, |column| &before[column * len..][rows.clone()], y);
            y.iter_mut().for_each(|y| *y /= norm);
        });
        self.columns += 1;
    }

    /// Removes all columns, and keeps their memory for others.
    pub fn clear(&mut self) {
        self.columns = 0;
        self.local.clear();
    }

    /// A copy of a column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn vector(&self, column: usize) -> DistVector {
        DistVector::from_local(self.part.clone(), self.column(column).to_vec()).expect("columns fit the rows")
    }

    /// Multiplies every element by `factor`.
    pub fn scale(&mut self, factor: f64) {
        vector::scale(factor, &mut self.local);
    }

    /// `self = self + alpha x`, column by column.
    ///
    /// # Panics
    /// If the partitions or the numbers of columns differ.
    pub fn axpy(&mut self, alpha: f64, x: &Self) {
        assert_eq!((&self.part, self.columns), (&x.part, x.columns));
        vector::axpy(alpha, &x.local, &mut self.local);
    }

    /// `self s`, with `s` of `columns()` rows: column `j` is the sum of the columns `i` of `self` times `s[(i, j)]`, in
    /// ascending `i`. Not collective.
    ///
    /// # Panics
    /// If `s` has another number of rows.
    pub fn times(&self, s: &DMatrix<f64>) -> Self {
        assert_eq!(s.nrows(), self.columns, "rows of the small matrix");
        let mut product = Self::zeros(self.part.clone(), s.ncols());
        let columns: Vec<&mut [f64]> = product.local.chunks_mut(self.part.local_len().max(1)).collect();
        blocks(&self.part, columns, &mut self.part.no_sums(), |rows, columns, _| {
            for (j, y) in columns.into_iter().enumerate() {
                (0..self.columns).for_each(|i| vector::axpy(s[(i, j)], &self.column(i)[rows.clone()], y));
            }
        });
        product
    }

    /// `y = y + self factors`, from the first column to the last; columns without a factor are left out. Not collective.
    ///
    /// # Panics
    /// If there are more factors than columns, or not one element of `y` for each row of this rank.
    pub fn add_to(&self, factors: &[f64], y: &mut [f64]) {
        assert!(factors.len() <= self.columns && y.len() == self.part.local_len());
        blocks(&self.part, y, &mut self.part.no_sums(), |rows, y, _| {
            add_columns(factors, |column| &self.column(column)[rows.clone()], y);
        });
    }

    /// The dot products of all columns `i` of `self` with all columns `j` of `other`, at `(i, j)`. Collective: one
    /// allgatherv. Each has the bits of [`DistVector::dot`].
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`].
    ///
    /// # Panics
    /// If the partitions differ.
    pub fn dots(&self, other: &Self, comm: &Communicator) -> Result<DMatrix<f64>, LinalgError> {
        assert_eq!(self.part, other.part);
        let pairs: Vec<_> = (0..other.columns).flat_map(|j| (0..self.columns).map(move |i| (i, j))).collect();
        let columns = pairs.iter().map(|&(i, j)| (self.column(i), other.column(j)));
        let sums = dots(&self.part, &columns.collect::<Vec<_>>(), comm)?;
        Ok(DMatrix::from_vec(self.columns, other.columns, sums))
    }

    /// Makes the columns orthonormal and returns the upper triangular `R` with `old = new R`, the same on all ranks. A
    /// column that depends on those before it, up to rounding, becomes 0, and so is its place on the diagonal of `R`.
    /// Collective: three messages a column.
    ///
    /// Classical Gram-Schmidt, twice: as orthogonal as Householder's, unless columns depend on each other within
    /// rounding. Squares of elements must neither overflow nor underflow.
    ///
    /// Source: Giraud, Langou, Rozloznik, van den Eshof: Rounding error analysis of the classical Gram-Schmidt
    /// orthogonalization process, Numer. Math. 101, 2005.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`].
    pub fn orthonormalize(&mut self, comm: &Communicator) -> Result<DMatrix<f64>, LinalgError> {
        let (len, k) = (self.part.local_len(), self.columns);
        let mut r = DMatrix::zeros(k, k);
        for j in 0..k {
            let (done, rest) = self.local.split_at_mut(j * len);
            let v = &mut rest[..len];
            let q = |i: usize| &done[i * len..(i + 1) * len];
            let mut before: Option<f64> = None;
            for _ in 0..2 {
                let pairs: Vec<(&[f64], &[f64])> = (0..j).map(|i| (q(i), &*v)).chain([(&*v, &*v)]).collect();
                let sums = dots(&self.part, &pairs, comm)?;
                before.get_or_insert(sums[j]);
                blocks(&self.part, &mut *v, &mut self.part.no_sums(), |rows, v, _| {
                    for (i, sum) in sums[..j].iter().enumerate() {
                        vector::axpy(-sum, &q(i)[rows.clone()], v);
                    }
                });
                (0..j).for_each(|i| r[(i, j)] += sums[i]);
            }
            let norm = dots(&self.part, &[(&*v, &*v)], comm)?[0].sqrt();
            if norm <= k as f64 * f64::EPSILON * before.unwrap_or(0.0).sqrt() {
                v.fill(0.0);
            } else {
                r[(j, j)] = norm;
                vector::divide(v, norm);
            }
        }
        Ok(r)
    }
}

/// `y = y + factor column`, one column after the other; several at a time, so that `y` is read and written less often.
fn add_columns<'a>(factors: &[f64], column: impl Fn(usize) -> &'a [f64], y: &mut [f64]) {
    let (fours, rest) = factors.as_chunks::<4>();
    for (at, [a, b, c, d]) in fours.iter().enumerate() {
        let [p, q, r, s] = std::array::from_fn(|k| &column(4 * at + k)[..y.len()]);
        for (i, y) in y.iter_mut().enumerate() {
            *y = *y + a * p[i] + b * q[i] + c * r[i] + d * s[i];
        }
    }
    let done = 4 * fours.len();
    rest.iter().enumerate().for_each(|(at, factor)| vector::axpy(*factor, column(done + at), y));
}

/// The dot product of each pair of local parts. Collective: one allgatherv.
fn dots(part: &Partition, pairs: &[(&[f64], &[f64])], comm: &Communicator) -> Result<Vec<f64>, LinalgError> {
    Reducer::new(part).sum_many(pairs.len(), &block_dots(part, pairs), comm)
}

#[cfg(test)]
mod tests {
    use ft_checkpoint::{StatePart, load, save};
    use proptest::prelude::*;

    use super::*;

    fn waves(part: Partition, columns: usize) -> MultiVector {
        MultiVector::from_fn(part, columns, |row, column| (row.0 as f64 * 0.37 + column as f64).sin() + 0.1)
    }

    #[test]
    fn by_hand() {
        ft_sim::ranks(2, |comm| {
            let part = Partition::of(comm, 40);
            let mut a = MultiVector::from_fn(
                part.clone(),
                2,
                |row, column| if column == 0 { 1.0 } else { row.0 as f64 },
            );
            assert_eq!(a.column(1), part.range().map(|row| row as f64).collect::<Vec<_>>());
            assert_eq!(a.dots(&a, comm).unwrap().as_slice(), [40.0, 780.0, 780.0, 20540.0]);
            let s = DMatrix::from_row_slice(2, 1, &[2.0, -1.0]);
            assert_eq!(a.times(&s).vector(0), DistVector::from_fn(part.clone(), |row| 2.0 - row.0 as f64));
            let mut y = vec![1.0; part.local_len()];
            a.add_to(&[2.0, -1.0], &mut y);
            assert_eq!(y, part.range().map(|row| 3.0 - row as f64).collect::<Vec<_>>());
            let mut grown = MultiVector::zeros(part.clone(), 0);
            (0..2).for_each(|at| grown.push(a.column(at)));
            assert_eq!(grown, a);
            grown.push_rest(a.column(0), &[2.0, 1.0], 4.0);
            assert_eq!(
                grown.column(2),
                part.range().map(|row| (-1.0 - row as f64) / 4.0).collect::<Vec<_>>()
            );
            grown.clear();
            assert_eq!(grown, MultiVector::zeros(part.clone(), 0));
            a.axpy(-1.0, &a.clone());
            assert!(a.column(0).iter().chain(a.column(1)).all(|value| *value == 0.0));
            a.column_mut(1).fill(3.0);
            a.scale(0.5);
            assert_eq!(a.vector(1), DistVector::constant(part, 1.5));
        });
    }

    #[test]
    fn nalgebra_has_the_same_memory() {
        let part = Partition::new(10, 1, 0);
        let mut a = waves(part.clone(), 3);
        let place = a.column(0).as_ptr();
        a.as_nalgebra_mut()[(9, 2)] = 7.0;
        assert_eq!((a.column(2)[9], a.as_nalgebra()[(9, 2)]), (7.0, 7.0));
        let matrix = a.clone().into_nalgebra();
        assert_eq!(MultiVector::from_nalgebra(part.clone(), matrix).unwrap(), a);
        let matrix = a.into_nalgebra();
        assert_eq!(matrix.as_ptr(), place);
        assert_eq!(MultiVector::from_nalgebra(part.clone(), matrix).unwrap().column(0).as_ptr(), place);
        assert!(MultiVector::from_nalgebra(part, DMatrix::zeros(9, 1)).is_err());
    }

    #[test]
    fn dependent_columns_become_zero() {
        ft_sim::ranks(3, |comm| {
            let part = Partition::of(comm, 500);
            // The third is the sum of the first two, the last is zero.
            let mut a = waves(part.clone(), 5);
            let sum: Vec<f64> = a.column(0).iter().zip(a.column(1)).map(|(a, b)| a + b).collect();
            a.column_mut(2).copy_from_slice(&sum);
            a.column_mut(4).fill(0.0);
            let old = a.clone();
            let r = a.orthonormalize(comm).unwrap();
            assert_eq!((r[(2, 2)], r[(4, 4)]), (0.0, 0.0));
            assert!(r[(3, 3)] > 1e-3 && r[(3, 2)] == 0.0);
            assert!(a.column(2).iter().all(|value| *value == 0.0));
            assert!((a.times(&r).as_nalgebra() - old.as_nalgebra()).iter().all(|error| error.abs() < 1e-13));
            let mut empty = MultiVector::zeros(Partition::of(comm, 0), 2);
            assert_eq!(empty.orthonormalize(comm).unwrap(), DMatrix::zeros(2, 2));
        });
    }

    #[test]
    fn a_basis_that_is_nearly_dependent_is_orthonormal() {
        ft_sim::ranks(2, |comm| {
            // Powers up to the ninth on [0, 1]: condition number about 1e12.
            let part = Partition::of(comm, 1000);
            let mut a =
                MultiVector::from_fn(part, 10, |row, power| (row.0 as f64 / 999.0).powi(power as i32));
            let old = a.clone();
            let r = a.orthonormalize(comm).unwrap();
            let gram = a.dots(&a, comm).unwrap();
            assert!((gram - DMatrix::identity(10, 10)).amax() < 1e-14);
            assert!((a.times(&r).as_nalgebra() - old.as_nalgebra()).amax() < 1e-14);
        });
    }

    #[test]
    fn it_comes_out_of_a_checkpoint_and_is_dealt_out_over_fewer_ranks() {
        let a = |size, rank| waves(Partition::weighed(100, vec![3, 1, 1, 1], size, rank).unwrap(), 3);
        ft_sim::ranks(2, |comm| {
            let held = if comm.rank() == 0 { vec![0] } else { vec![2, 1] };
            let parts = held.iter().map(|rank| {
                let mut restored = MultiVector::default();
                for part in [StatePart::Constant, StatePart::Variable] {
                    let mut shard = vec![];
                    save(&mut a(3, *rank), part, &mut shard).unwrap();
                    load(&mut restored, part, &shard).unwrap();
                }
                restored
            });
            let parts: Vec<_> = parts.collect();
            let moves = Partition::moves(comm, parts.first().map(MultiVector::part), held).unwrap();
            assert_eq!(MultiVector::redistribute(parts, &moves).unwrap(), a(2, comm.rank()));
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn same_bits_on_any_number_of_ranks(n in 0usize..1500, columns in 1usize..5, heavy in 0usize..24) {
            let on = |size: usize| {
                ft_sim::ranks(size, |comm| {
                    let weights = (0..crate::partition::blocks(n)).map(|block| if block == heavy { 40 } else { 1 });
                    let part = Partition::weighed(n, weights.collect(), size, comm.rank()).unwrap();
                    let mut a = waves(part.clone(), columns);
                    let dots = a.dots(&a, comm).unwrap();
                    let plain = a.vector(0).dot(&a.vector(columns - 1), comm).unwrap();
                    assert_eq!(dots[(0, columns - 1)].to_bits(), plain.to_bits());
                    let r = a.orthonormalize(comm).unwrap();
                    let all: Vec<f64> =
                        (0..columns).flat_map(|column| a.vector(column).gather(comm).unwrap()).collect();
                    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                    (bits(dots.as_slice()), bits(r.as_slice()), bits(&all))
                })
                .remove(0)
            };
            let one = on(1);
            for size in [2, 3, 4, 7] {
                prop_assert_eq!(&on(size), &one);
            }
        }
    }
}
