//! Operators on a grid with constant coefficients, without a matrix: nothing is read but the vector.
//!
//! Each point is coupled to points next to it, with zero boundary values outside of the grid. Sums run in ascending number
//! of the point, so the product has the bits of the matrix with the same entries ([`crate::Poisson`],
//! [`crate::gallery::Laplacian27`]). It is distributed as that matrix: blocks of points, and a halo by plan.

use std::ops::Range;
use std::sync::Arc;

use ft_checkpoint::{Field, Protect, Redistribute};
use ft_comm::Communicator;

use crate::{
    LinalgError, LinearOperator, Partition, Poisson, Sums, Workspace,
    error::agree,
    format::{Couplings, StencilRows},
    gallery::Laplacian27,
    halo::HaloPlan,
    operator::BlockSum,
    product::ProductPlan,
    solver::ProtectedOperator,
};

/// Steps from a point to it and to those around it, in ascending number of the point.
fn steps() -> impl Iterator<Item = [i64; 3]> {
    (0..27).map(|at| [at % 3 - 1, at / 3 % 3 - 1, at / 9 - 1])
}

/// Coefficients on a grid of `nx * ny * nz` points. Point `(i, j, k)` is row `(k ny + j) nx + i`.
#[derive(Clone, Debug, Default, PartialEq, Field)]
pub struct Stencil {
    points: [usize; 3],
    /// For each of [`steps`]; 0 where points are not coupled.
    coefficients: [f64; 27],
}

impl From<&Poisson> for Stencil {
    fn from(poisson: &Poisson) -> Self {
        let diagonal = poisson.diagonal();
        Self::on(poisson.points(), |step| match step.iter().map(|step| step.abs()).sum() {
            0 => diagonal,
            1 => -1.0,
            _ => 0.0,
        })
    }
}

impl From<&Laplacian27> for Stencil {
    fn from(laplacian: &Laplacian27) -> Self {
        Self::on(laplacian.points(), |step| if step == [0; 3] { 26.0 } else { -1.0 })
    }
}

impl Stencil {
    /// On `points`, the number of these in each direction. `coefficient` is asked for each step of -1 to 1 in the three
    /// directions, what the point there counts; with 0 it is not looked at.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new(points: [usize; 3], coefficient: impl FnMut([i64; 3]) -> f64) -> Result<Self, LinalgError> {
        let [nx, ny, nz] = points;
        Poisson::new_3d(nx, ny, nz)?;
        Ok(Self::on(points, coefficient))
    }

    fn on(points: [usize; 3], mut coefficient: impl FnMut([i64; 3]) -> f64) -> Self {
        let mut coefficients = [0.0; 27];
        coefficients.iter_mut().zip(steps()).for_each(|(to, step)| *to = coefficient(step));
        Self { points, coefficients }
    }

    /// Rows of the operator, one for each point.
    pub fn n(&self) -> usize {
        self.points.iter().product()
    }

    /// Entries that a matrix of it has.
    pub fn nonzeros(&self) -> u64 {
        let count = |step: [i64; 3]| -> u64 {
            self.points
                .iter()
                .zip(step)
                .map(|(n, step)| n.saturating_sub(step.unsigned_abs() as usize) as u64)
                .product()
        };
        self.entries().map(|(step, _)| count(step)).sum()
    }

    fn entries(&self) -> impl Iterator<Item = ([i64; 3], f64)> {
        steps().zip(self.coefficients).filter(|(_, coefficient)| *coefficient != 0.0)
    }

    fn offset(&self, step: [i64; 3]) -> i64 {
        let strides = [1, self.points[0] as i64, (self.points[0] * self.points[1]) as i64];
        step.iter().zip(strides).map(|(step, stride)| step * stride).sum()
    }

    fn couplings(&self) -> Couplings {
        let lists = (0..64).map(|inside| {
            let there = |step: &[i64; 3]| {
                (0..3).all(|d| match step[d] {
                    -1 => inside >> (2 * d) & 1 == 1,
                    1 => inside >> (2 * d + 1) & 1 == 1,
                    _ => true,
                })
            };
            let entries = self.entries().filter(|(step, _)| there(step));
            entries.map(|(step, coefficient)| (self.offset(step), coefficient)).unzip()
        });
        Couplings { points: self.points, lists: lists.collect() }
    }

    /// How far, in numbers of points, those may be that a point is coupled to.
    fn reach(&self) -> usize {
        let exists = |step: &[i64; 3]| (0..3).all(|d| step[d] == 0 || self.points[d] > 1);
        let steps = self.entries().map(|(step, _)| step).filter(exists);
        steps.map(|step| self.offset(step).unsigned_abs() as usize).max().unwrap_or(0)
    }
}

/// A [`Stencil`] whose points are spread over the ranks, an equal number each.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct DistStencil {
    #[protect(nested, distributed)]
    part: Partition,
    #[protect(constant, replicated)]
    stencil: Stencil,
    #[protect(derived)]
    plan: Option<ProductPlan>,
}

impl DistStencil {
    /// Collective; the cost is that of [`HaloPlan::build`].
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::TooLarge`], on all ranks.
    pub fn new(stencil: Stencil, comm: &Communicator) -> Result<Self, LinalgError> {
        let mut operator = Self { part: Partition::of(comm, stencil.n()), stencil, plan: None };
        operator.rebuild(comm)?;
        Ok(operator)
    }

    /// What it is on the whole grid.
    pub fn stencil(&self) -> &Stencil {
        &self.stencil
    }

    /// Columns of other ranks that may be needed: all that are in reach of the own rows.
    fn needed(&self) -> Vec<u64> {
        let (own, reach) = (self.part.range(), self.stencil.reach());
        if own.is_empty() {
            return Vec::new();
        }
        let below = own.start.saturating_sub(reach)..own.start;
        let above = own.end..(own.end + reach).min(self.part.n());
        below.chain(above).map(|col| col as u64).collect()
    }

    /// Which blocks read what an exchange gives, and where in it their columns are.
    fn plan(&self, mut halo: HaloPlan) -> ProductPlan {
        let (own, reach) = (self.part.range(), self.stencil.reach());
        let couplings = Arc::new(self.stencil.couplings());
        let blocks: Vec<_> =
            self.part.local_blocks().map(|rows| own.start + rows.start..own.start + rows.end).collect();
        let low = |rows: &Range<usize>| own.start > 0 && rows.start < own.start + reach;
        let high = |rows: &Range<usize>| own.end < self.part.n() && rows.end + reach > own.end;
        // Copies are needed of what is in reach of such rows, at both ends of the own range, which may meet.
        let (mut first_end, mut last_start) = (own.start, own.end);
        for rows in &blocks {
            if low(rows) {
                first_end = (rows.end + reach).min(own.end);
            }
            if high(rows) {
                last_start = last_start.min(rows.start.saturating_sub(reach).max(own.start));
            }
        }
        let local = |rows: Range<usize>| (rows.start - own.start) as u32..(rows.end - own.start) as u32;
        halo.copy(local(own.start..first_end).chain(local(last_start.max(first_end)..own.end)).collect());
        let place = |col: usize| halo.place(col as u64, &own) as i64 - col as i64;
        let blocks: Vec<_> = blocks
            .into_iter()
            .map(|rows| {
                let base = match (low(&rows), high(&rows)) {
                    (false, false) => -(own.start as i64),
                    (true, _) => place(own.start),
                    (false, true) => place(own.end - 1),
                };
                let stored = StencilRows { couplings: couplings.clone(), first: rows.start, base };
                (rows.start - own.start..rows.end - own.start, low(&rows) || high(&rows), stored)
            })
            .collect();
        ProductPlan::of_stencil(&self.part, halo, blocks.into_iter())
    }

    fn apply_then<S: Send>(
        &self,
        (x, y): (&[f64], &mut [f64]),
        sums: (&mut [S], impl Fn(Range<usize>, &[f64]) -> S + Sync),
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.part.require(comm)?;
        self.part.require_len("vector", x.len())?;
        let plan = self.plan.as_ref().ok_or(LinalgError::NotRebuilt)?;
        plan.apply(&[], (x, y), sums, &mut work.halo, comm)
    }
}

impl LinearOperator for DistStencil {
    fn part(&self) -> &Partition {
        &self.part
    }

    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.apply_then((x, y), (&mut self.part.no_sums(), |_, _| ()), comm, work)
    }

    fn apply_and_sum(
        &self,
        x: &[f64],
        y: &mut [f64],
        sum: BlockSum<'_>,
        sums: &mut [Sums],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.apply_then((x, y), (sums, sum), comm, work)
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(vec![self.stencil.coefficients[13]; self.part.local_len()])
    }
}

impl ProtectedOperator for DistStencil {
    fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError> {
        self.plan = None;
        let most = self.part.local_len() as u128 + 2 * self.stencil.reach() as u128;
        let fits = self.part.require(comm).and_then(|()| match u32::try_from(most) {
            Ok(_) => Ok(()),
            Err(_) => Err(LinalgError::TooLarge { what: "local index range", wanted: most }),
        });
        agree(fits, comm)?;
        let halo = HaloPlan::build(&self.part, self.needed(), comm)?;
        self.plan = Some(self.plan(halo));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CsrRows, DistVector, rhs};

    const GRIDS: [[usize; 3]; 11] = [
        [1, 1, 1],
        [7, 1, 1],
        [1, 9, 1],
        [1, 1, 70],
        [2, 2, 2],
        [33, 5, 1],
        [3, 1, 40],
        [1, 40, 3],
        [5, 6, 7],
        [40, 3, 4],
        [0, 3, 3],
    ];

    /// The product with the vector of all ranks, against that of the matrix in one piece.
    fn has_the_bits_of(stencil: &Stencil, rows: &CsrRows) {
        let n = stencil.n();
        assert_eq!((rows.len(), rows.nnz() as u64), (n, stencil.nonzeros()), "{stencil:?}");
        let x: Vec<f64> = (0..n).map(|i| 1.0 / (i as f64 + 0.3)).collect();
        let mut y = vec![0.0; n];
        rows.product_serial(&x, &mut y);
        for size in [1, 2, 3, 5, 8] {
            ft_sim::ranks(size, |comm| {
                let a = DistStencil::new(stencil.clone(), comm).unwrap();
                let x = DistVector::from_global(a.part().clone(), &x).unwrap();
                let mine = rhs::from_solution(&a, &x, comm).unwrap();
                let expected = y[a.part().range()].iter().map(|y| y.to_bits());
                assert!(mine.local().iter().map(|y| y.to_bits()).eq(expected), "{stencil:?} on {size} ranks");
            });
        }
    }

    #[test]
    fn model_problems_without_their_matrix() {
        for [nx, ny, nz] in GRIDS {
            let poisson = Poisson::new_3d(nx, ny, nz).unwrap();
            has_the_bits_of(&Stencil::from(&poisson), &poisson.rows(0..poisson.n()));
            let laplacian = Laplacian27::new(nx, ny, nz).unwrap();
            has_the_bits_of(&Stencil::from(&laplacian), &laplacian.rows(0..laplacian.n()));
        }
        let poisson = Poisson::new_2d(33, 5).unwrap();
        has_the_bits_of(&Stencil::from(&poisson), &poisson.rows(0..165));
    }

    #[test]
    fn coefficients_belong_to_their_steps() {
        let upwind = |step: [i64; 3]| match step {
            [0, 0, 0] => 5.0,
            [-1, 0, 0] => -2.0,
            [0, 1, 0] => 0.25,
            _ => 0.0,
        };
        let rows = CsrRows::build(0..40 * 30, 3, |row, cols, vals| {
            let (i, j) = (row % 40, row / 40);
            let entries = [(i > 0, row.wrapping_sub(1), -2.0), (true, row, 5.0), (j < 29, row + 40, 0.25)];
            for (_, col, val) in entries.into_iter().filter(|(inside, ..)| *inside) {
                cols.push(col as u64);
                vals.push(val);
            }
        });
        has_the_bits_of(&Stencil::new([40, 30, 1], upwind).unwrap(), &rows);
        assert!(Stencil::new([usize::MAX, 2, 2], upwind).is_err());
    }
}
