//! Operators on a grid with constant coefficients, without a matrix: nothing is read but the vector.
//!
//! Each point is coupled to points next to it, with zero boundary values outside of the grid. Sums run in ascending number of the
//! point, so the product has the bits of the matrix that [`Stencil::rows`] gives. It is distributed as the matrix: the same partition, and a
//! halo by plan.

use std::ops::Range;
use std::sync::Arc;

use ft_comm::Communicator;

use crate::{
    CsrRows, DistVector, LinalgError, Partition, Poisson,
    error::agree,
    format::{Grid, StencilRows},
    halo::{HaloBuffers, HaloPlan},
    matrix::ProductPlan,
};

/// Coefficients on a grid of `nx * ny * nz` points. Point `(i, j, k)` is row `(k ny + j) nx + i`.
#[derive(Clone, Debug)]
pub struct Stencil {
    grid: Arc<Grid>,
    /// How far a point that another is coupled to may be from it, in numbers of points.
    reach: usize,
}

impl From<&Poisson> for Stencil {
    fn from(poisson: &Poisson) -> Self {
        let (points, diagonal) = (poisson.points(), poisson.diagonal());
        Self::new(points, |step| match step.iter().map(|step| step.abs()).sum() {
            0 => Some(diagonal),
            1 => Some(-1.0),
            _ => None,
        })
    }
}

impl Stencil {
    /// 27-point stencil: 26 on the diagonal, -1 for each of the neighbors, diagonal ones included. As in HPCG.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 points.
    pub fn new_27(nx: usize, ny: usize, nz: usize) -> Result<Self, LinalgError> {
        let points = Poisson::new_3d(nx, ny, nz)?.points();
        Ok(Self::new(points, |step| Some(if step == [0; 3] { 26.0 } else { -1.0 })))
    }

    /// `coefficient` is asked for each step of -1 to 1 in the three directions.
    fn new(points: [usize; 3], coefficient: impl Fn([i64; 3]) -> Option<f64>) -> Self {
        let strides = [1, points[0] as i64, (points[0] * points[1]) as i64];
        let mut entries = Vec::new();
        for step in (0..27).map(|at| [at % 3 - 1, at / 3 % 3 - 1, at / 9 - 1]) {
            let exists = (0..3).all(|d| step[d] == 0 || points[d] > 1);
            let offset: i64 = step.iter().zip(strides).map(|(step, stride)| step * stride).sum();
            entries.extend(coefficient(step).filter(|_| exists).map(|value| (offset, step, value)));
        }
        entries.sort_by_key(|(offset, ..)| *offset);
        let reach = entries.last().map_or(0, |(offset, ..)| *offset as usize);
        let lists = (0..64).map(|inside| {
            let there = |step: &[i64; 3]| {
                (0..3).all(|d| match step[d] {
                    -1 => inside >> (2 * d) & 1 == 1,
                    1 => inside >> (2 * d + 1) & 1 == 1,
                    _ => true,
                })
            };
            entries
                .iter()
                .filter(|(_, step, _)| there(step))
                .map(|(offset, _, value)| (*offset, *value))
                .unzip()
        });
        let lists = lists.collect();
        Self { grid: Arc::new(Grid { points, lists }), reach }
    }

    /// Rows of the operator, one for each point.
    pub fn n(&self) -> usize {
        self.grid.points.iter().product()
    }

    /// The rows of `range` as a matrix has them.
    ///
    /// # Panics
    /// If `range` does not lie within `0..n`.
    pub fn rows(&self, range: Range<usize>) -> CsrRows {
        assert!(range.end <= self.n(), "rows {range:?} of {}", self.n());
        let [nx, ny, _] = self.grid.points;
        let most = self.grid.lists.iter().map(|(offsets, _)| offsets.len()).max().unwrap_or(0);
        CsrRows::build(range, most, |row, cols, vals| {
            let at = [row % nx, row / nx % ny, row / (nx * ny)];
            let (offsets, coefficients) = &self.grid.lists[self.grid.inside(at)];
            cols.extend(offsets.iter().map(|offset| (row as i64 + offset) as u64));
            vals.extend(coefficients);
        })
    }

    /// Columns of other ranks that may be needed: all that are in reach of the own rows.
    fn needed(&self, part: &Partition) -> Vec<u64> {
        let own = part.range();
        if own.is_empty() {
            return Vec::new();
        }
        let below = own.start.saturating_sub(self.reach)..own.start;
        let above = own.end..(own.end + self.reach).min(self.n());
        below.chain(above).map(|col| col as u64).collect()
    }

    /// Which rows read what an exchange gives, and where in it their columns are.
    fn plan(&self, part: &Partition, mut halo: HaloPlan) -> ProductPlan {
        let own = part.range();
        let blocks: Vec<_> =
            part.local_blocks().map(|rows| own.start + rows.start..own.start + rows.end).collect();
        let low = |rows: &Range<usize>| own.start > 0 && rows.start < own.start + self.reach;
        let high = |rows: &Range<usize>| own.end < self.n() && rows.end + self.reach > own.end;
        // Copies are needed of what is in reach of such rows, at both ends of the own range, which may meet.
        let (mut first_end, mut last_start) = (own.start, own.end);
        for rows in &blocks {
            if low(rows) {
                first_end = (rows.end + self.reach).min(own.end);
            }
            if high(rows) {
                last_start = last_start.min(rows.start.saturating_sub(self.reach).max(own.start));
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
                let stored = StencilRows { grid: self.grid.clone(), first: rows.start, base };
                (rows.start - own.start..rows.end - own.start, low(&rows) || high(&rows), stored)
            })
            .collect();
        ProductPlan::of_stencil(halo, blocks.into_iter())
    }
}

/// A [`Stencil`] whose points are spread over the ranks.
#[derive(Clone, Debug)]
pub struct DistStencil {
    part: Partition,
    plan: ProductPlan,
}

impl DistStencil {
    /// Collective; the cost is that of [`HaloPlan::build`].
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::TooLarge`], on all ranks.
    pub fn new(stencil: &Stencil, comm: &Communicator) -> Result<Self, LinalgError> {
        let part = Partition::of(comm, stencil.n());
        let most = part.local_len() as u128 + 2 * stencil.reach as u128;
        let fits = u32::try_from(most)
            .map_err(|_| LinalgError::TooLarge { what: "local index range", wanted: most });
        agree(fits, comm)?;
        let halo = HaloPlan::build_for(&part, stencil.needed(&part), comm)?;
        let plan = stencil.plan(&part, halo);
        Ok(Self { part, plan })
    }

    /// How points are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// The product. What it takes as rows of a matrix is not read: `&CsrRows::default()`.
    pub fn plan(&self) -> &ProductPlan {
        &self.plan
    }

    /// `A x` with exchange and product in one, for code outside of loops. Collective.
    ///
    /// # Errors
    /// [`LinalgError::Comm`], [`LinalgError::Length`].
    pub fn multiply(&self, x: &DistVector, comm: &Communicator) -> Result<DistVector, LinalgError> {
        self.part.require_len("vector", x.local().len())?;
        let mut buffers = HaloBuffers::default();
        let exchange = buffers.begin(self.plan.halo(), x.local(), comm)?;
        let mut y = DistVector::zeros(self.part.clone());
        self.plan.product_during(&CsrRows::default(), x.local(), exchange, y.local_mut())?;
        Ok(y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grids() -> impl Iterator<Item = [usize; 3]> {
        [
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
        ]
        .into_iter()
    }

    #[test]
    fn rows_are_those_of_the_model_problem() {
        for [nx, ny, nz] in grids() {
            let mut models = vec![Poisson::new_3d(nx, ny, nz).unwrap()];
            models.extend((nz == 1).then(|| Poisson::new_2d(nx, ny).unwrap()));
            for poisson in models {
                let stencil = Stencil::from(&poisson);
                assert_eq!(stencil.rows(0..stencil.n()), poisson.rows(0..poisson.n()), "{poisson:?}");
            }
        }
    }

    #[test]
    fn twenty_seven_points_by_hand() {
        let stencil = Stencil::new_27(3, 3, 3).unwrap();
        let rows = stencil.rows(0..27);
        let middle: Vec<f64> = (0..27).map(|col| if col == 13 { 26.0 } else { -1.0 }).collect();
        assert_eq!(rows.row(13), (&(0..27).collect::<Vec<u64>>()[..], &middle[..]));
        assert_eq!(
            rows.row(0),
            (&[0, 1, 3, 4, 9, 10, 12, 13][..], &[26.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0][..])
        );
        assert!(Stencil::new_27(usize::MAX, 2, 2).is_err());
    }

    #[test]
    fn product_has_the_bits_of_the_matrix_on_any_number_of_ranks() {
        for [nx, ny, nz] in grids() {
            let poisson = Stencil::from(&Poisson::new_3d(nx, ny, nz).unwrap());
            for stencil in [poisson, Stencil::new_27(nx, ny, nz).unwrap()] {
                let x: Vec<f64> = (0..stencil.n()).map(|i| 1.0 / (i as f64 + 0.3)).collect();
                let mut y = vec![0.0; stencil.n()];
                stencil.rows(0..stencil.n()).product_serial(&x, &mut y);
                for size in [1, 2, 3, 5, 8] {
                    ft_sim::ranks(size, |comm| {
                        let a = DistStencil::new(&stencil, comm).unwrap();
                        let x = DistVector::from_global(a.part().clone(), &x).unwrap();
                        let mine = a.multiply(&x, comm).unwrap();
                        assert_eq!(mine.local(), &y[a.part().range()], "{nx} x {ny} x {nz} on {size} ranks");
                    });
                }
            }
        }
    }
}
