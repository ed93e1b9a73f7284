//! Vectors side by side, as many as there are: a basis, or the columns of a block.

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator, Op};

use crate::vector::axpy;
use crate::{LinalgError, Partition, Workspace};

/// Local parts of vectors, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Protect)]
pub(super) struct Columns {
    count: usize,
    data: Vec<f64>,
}

impl Redistribute for Columns {
    fn extent(&self) -> usize {
        self.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        // A rank to which nothing fell has the number of columns from the others.
        let mut count = [parts.first().map_or(0, |part| part.count)];
        moves.comm().allreduce(&mut count, Op::Max)?;
        let mut columns = Self::default();
        for at in 0..count[0] {
            let of = |part: &Self| part.column(at).to_vec();
            columns.push(&Vec::redistribute(parts.iter().map(of).collect(), moves)?);
        }
        Ok(columns)
    }
}

impl Columns {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Elements of each.
    fn len(&self) -> usize {
        self.data.len().checked_div(self.count).unwrap_or(0)
    }

    pub(super) fn column(&self, at: usize) -> &[f64] {
        let len = self.len();
        &self.data[at * len..(at + 1) * len]
    }

    pub(super) fn column_mut(&mut self, at: usize) -> &mut [f64] {
        let len = self.len();
        &mut self.data[at * len..(at + 1) * len]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.count).map(|at| self.column(at))
    }

    pub(super) fn push(&mut self, column: &[f64]) {
        self.count += 1;
        self.data.extend_from_slice(column);
    }

    pub(super) fn clear(&mut self) {
        (self.count, self.data) = (0, Vec::new());
    }

    /// `y` plus the columns, each times its factor, from the first to the last.
    pub(super) fn add_to(&self, factors: &[f64], y: &mut [f64]) {
        self.iter().zip(factors).for_each(|(column, factor)| axpy(*factor, column, y));
    }

    /// Makes `w` orthogonal to the columns, which are orthonormal, and says what was taken off along each, and the norm that is
    /// left: 0 if that is nothing beside rounding. Collective: two reductions, rarely three.
    ///
    /// Classical Gram-Schmidt, twice, each in one reduction. Giraud, Langou, Rozloznik, van den Eshof: Rounding error analysis
    /// of the classical Gram-Schmidt orthogonalization process, Numerische Mathematik 101, 2005: twice is enough.
    pub(super) fn orthogonalize(
        &self,
        w: &mut [f64],
        part: &Partition,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(Vec<f64>, f64), LinalgError> {
        let mut taken = vec![0.0; self.count];
        let (mut before, mut after) = (0.0, 0.0);
        for _ in 0..2 {
            let w_now = &*w;
            let pairs: Vec<_> = self.iter().chain([w_now]).map(|column| (column, w_now)).collect();
            let mut sums = work.dots_many(part, &pairs, comm)?;
            let ww = sums.pop().unwrap_or(0.0);
            before = if before == 0.0 { ww } else { before };
            after = ww - sums.iter().map(|sum| sum * sum).sum::<f64>();
            for (at, column) in self.iter().enumerate() {
                axpy(-sums[at], column, w);
                taken[at] += sums[at];
            }
        }
        // Where much was taken off in the second round, the difference is rounding.
        if after < 0.5 * before {
            [after] = work.dots(part, [(w, w)], comm)?;
        }
        let is_nothing = after <= before * (1e2 * f64::EPSILON * f64::EPSILON);
        Ok((taken, if is_nothing { 0.0 } else { after.sqrt() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_orthogonal() {
        for size in [1, 3] {
            ft_sim::ranks(size, |comm| {
                let part = Partition::of(comm, 100);
                let column = |k: usize| part.range().map(|row| ((row * k) as f64).cos()).collect::<Vec<_>>();
                let (mut basis, mut work) = (Columns::default(), Workspace::default());
                for k in 0..5 {
                    let mut w = column(k);
                    let (taken, norm) = basis.orthogonalize(&mut w, &part, comm, &mut work).unwrap();
                    assert_eq!(taken.len(), k);
                    w.iter_mut().for_each(|w| *w /= norm);
                    basis.push(&w);
                }
                for (i, x) in basis.iter().enumerate() {
                    for (j, y) in basis.iter().enumerate() {
                        let [xy] = work.dots(&part, [(x, y)], comm).unwrap();
                        assert!((xy - f64::from(i == j)).abs() < 1e-14, "{i} {j}: {xy}");
                    }
                }
                // A vector of the space leaves nothing.
                let mut w = column(3);
                let (taken, norm) = basis.orthogonalize(&mut w, &part, comm, &mut work).unwrap();
                assert_eq!(norm, 0.0);
                let mut sum = vec![0.0; part.local_len()];
                basis.add_to(&taken, &mut sum);
                assert!(sum.iter().zip(column(3)).all(|(x, y)| (x - y).abs() < 1e-13));
            });
        }
    }
}
