//! The preconditioner of HPCG: a V-cycle over grids of half the points a side, with a sweep of symmetric Gauss-Seidel before and
//! after.
//!
//! A sweep runs within fixed domains, not within what each rank holds: so the answer has the same bits on any number of ranks.
//!
//! Source: Dongarra, Heroux, Luszczek: HPCG benchmark, Tech. Rep. UT-EECS-15-736, 2015.

use ft_comm::Communicator;
use ft_linalg::gallery::Laplacian27;
use ft_linalg::precond::Inner;
use ft_linalg::solver::residual_of;
use ft_linalg::vector::axpy;
use ft_linalg::{
    DistMatrix, DistRows, LinalgError, LinearOperator, MakePreconditioner, Precond, Preconditioner,
    Workspace, precond::DOMAINS,
};

use super::gather::Gather;

/// Grids at most, as in HPCG.
pub(super) const LEVELS: u32 = 4;

/// One grid, and the way to the next coarser one.
struct Level {
    /// None on the finest grid, whose matrix belongs to who asks.
    a: Option<DistMatrix>,
    sweep: Box<dyn Preconditioner>,
    down: Option<Gather>,
    /// From this grid up to the finer one.
    up: Option<Gather>,
    nonzeros: u64,
}

/// The V-cycle. Derived data.
pub(super) struct Multigrid {
    levels: Vec<Level>,
}

/// The matrix of a grid of `side^3` points. Collective.
pub(super) fn matrix(side: usize, comm: &Communicator) -> Result<DistMatrix, LinalgError> {
    let grid = Laplacian27::new(side, side, side)?;
    let equal = ft_linalg::Partition::of(comm, grid.n());
    DistRows::new(equal.clone(), grid.n(), grid.rows(equal.range()), comm)?.into_matrix(comm)
}

/// The point of the finer grid, of `2 side` points a side, that is where `row` of the coarser one is.
fn finer(row: usize, side: usize) -> usize {
    let [i, j, k] = [row % side, row / side % side, row / (side * side)];
    (2 * k * 2 * side + 2 * j) * 2 * side + 2 * i
}

impl Multigrid {
    /// The cycle for `a`, a matrix on the grid of `side^3` points. Collective.
    pub(super) fn new(a: &DistMatrix, side: usize, comm: &Communicator) -> Result<Self, LinalgError> {
        let symmetric_gauss_seidel = Precond::BlockJacobi { inner: Inner::Ssor(1.0), domains: DOMAINS };
        let sweep = |a: &DistMatrix| symmetric_gauss_seidel.make(a, comm);
        let nonzeros = DistRows::of_matrix(a).nnz(comm)?;
        let mut levels = vec![Level { a: None, sweep: sweep(a)?, down: None, up: None, nonzeros }];
        let (mut side, mut fine) = (side, a.part().clone());
        while levels.len() < LEVELS as usize && side.is_multiple_of(2) {
            side /= 2;
            let coarse = matrix(side, comm)?;
            let part = coarse.part().clone();
            let (first, range) = (part.range().start, fine.range());
            let wanted = part.range().map(|row| (row - first, finer(row, side)));
            let last = levels.len() - 1;
            levels[last].down = Some(Gather::new(wanted, &fine, comm)?);
            let pairs = (0..part.n()).map(|row| (finer(row, side), row));
            let wanted = pairs.filter(|(at, _)| range.contains(at)).map(|(at, row)| (at - range.start, row));
            let up = Some(Gather::new(wanted, &part, comm)?);
            let (nonzeros, sweep) = (DistRows::of_matrix(&coarse).nnz(comm)?, sweep(&coarse)?);
            levels.push(Level { a: Some(coarse), sweep, down: None, up, nonzeros });
            fine = part;
        }
        Ok(Self { levels })
    }

    /// Nonzeros of each grid's matrix, finest first.
    pub(super) fn nonzeros(&self) -> impl Iterator<Item = u64> {
        self.levels.iter().map(|level| level.nonzeros)
    }

    /// The cycle from grid `at` on: `z` is approximately `A^-1 r` there.
    fn cycle(
        &self,
        at: usize,
        a: &dyn LinearOperator,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let level = &self.levels[at];
        level.sweep.apply(r, z, comm, work)?;
        let Some((down, below)) = level.down.as_ref().zip(self.levels.get(at + 1)) else { return Ok(()) };
        let (Some(coarse), Some(up)) = (&below.a, &below.up) else { return Ok(()) };

        let mut residual = work.take(r.len());
        residual_of(a, z, r, &mut residual, comm, work)?;
        let rows = coarse.part().local_len();
        let (mut coarse_r, mut coarse_z) = (work.take(rows), work.take(rows));
        down.each(&residual, comm, |place, value| coarse_r[place] = value)?;
        self.cycle(at + 1, coarse, &coarse_r, &mut coarse_z, comm, work)?;
        up.each(&coarse_z, comm, |place, value| z[place] += value)?;
        work.give(coarse_r);
        work.give(coarse_z);

        residual_of(a, z, r, &mut residual, comm, work)?;
        let mut correction = work.take(r.len());
        level.sweep.apply(&residual, &mut correction, comm, work)?;
        axpy(1.0, &correction, z);
        work.give(correction);
        work.give(residual);
        Ok(())
    }

    /// This cycle with `a` as the matrix of the finest grid.
    pub(super) fn with<'a>(&'a self, a: &'a DistMatrix) -> Cycle<'a> {
        Cycle { grids: self, a }
    }
}

/// A V-cycle as a preconditioner of its finest matrix.
pub(super) struct Cycle<'a> {
    grids: &'a Multigrid,
    a: &'a DistMatrix,
}

impl Preconditioner for Cycle<'_> {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.grids.cycle(0, self.a, r, z, comm, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_point_is_on_the_coarser_grid() {
        let point = |i: usize, j: usize, k: usize, side: usize| (k * side + j) * side + i;
        for (i, j, k) in [(0, 0, 0), (3, 1, 2), (3, 3, 3)] {
            assert_eq!(finer(point(i, j, k, 4), 4), point(2 * i, 2 * j, 2 * k, 8));
        }
    }
}
