//! Smoothed aggregation: a multigrid method made of the matrix alone.
//!
//! ```text
//! setup, from each level to the next coarser one:
//!     aggregates of strongly coupled rows, within domains
//!     T = the near-null vectors, cut at the aggregates, orthonormal in each;  B of the coarse level = T^T B
//!     P = (1 - 4/3 / rho(D^-1 A) D^-1 A) T
//!     A of the coarse level = P^T A P
//! use, a V-cycle from z = 0:
//!     smooth z by Chebyshev steps;  r = r - A z;  solve with P^T r on the coarse level;  z = z + P of that;  smooth z
//!     on the coarsest level: Cholesky, on every rank; smoothing alone if it is large
//! ```
//!
//! Levels keep the domains and their owners ([`super::domains`]), so hierarchy, bits and iterations do not depend on the number of
//! ranks. Sums that cross ranks are formed by whoever owns the result, in the order of rows: `P^T` is stored. For symmetric
//! positive definite matrices; `M` is symmetric positive definite. Cost of a use: two products of the finest matrix for
//! each smoothing step, and about half as much again for all else; iterations hardly grow with the size of the problem.
//!
//! Source: Vanek, Mandel, Brezina: Algebraic multigrid by smoothed aggregation for second and fourth order elliptic problems,
//! Computing 56, 1996.

use std::borrow::Cow;

use ft_comm::Communicator;

use super::block::Solve;
use super::chebyshev::{After, Steps, subtract};
use super::compact::Spread;
use super::dense::Cholesky;
use super::domains::{DOMAINS, Domains};
use super::{Preconditioner, matrix_of};
use crate::{CsrRows, LinalgError, LinearOperator, Partition, Workspace, agree, parallel};

mod aggregates;
mod products;
mod tentative;

use aggregates::aggregates;
use products::{product, scaled_difference, transposed};
use tentative::Tentative;

/// A level of up to this many rows is not coarsened.
const COARSE: usize = 200;
/// A coarsest level of up to this many rows is solved by a dense factorization, on every rank: a
/// fraction of a second. A larger one has rows that hardly depend on each other, or aggregates
/// would have been found, and smoothing solves it.
const SOLVED_MAX: usize = 1000;
const LEVELS_MAX: usize = 16;
/// Smoothing is for eigenvalues from this part of the largest one on.
const SMOOTHED_RATIO: f64 = 10.0;
/// Smoothing steps on a coarsest level of more than [`SOLVED_MAX`] rows.
const COARSE_STEPS: usize = 16;

/// What a coarse level says that is not positive definite, as it is where the matrix is. Rows of coarse levels have no names.
const NOT_DEFINITE: LinalgError = LinalgError::Unfit { what: "amg", needs: "a positive definite matrix" };

/// What an [`Amg`] is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmgOptions {
    /// Entries are strong whose square is above this, squared, times both diagonal entries. It is halved from level to level.
    pub threshold: f64,
    /// Smoothing steps before and after the coarse level.
    pub smooth: usize,
}

impl Default for AmgOptions {
    fn default() -> Self {
        Self { threshold: 0.08, smooth: 2 }
    }
}

/// A hierarchy of levels; a use is one V-cycle.
#[derive(Debug)]
pub struct Amg {
    part: Partition,
    domains: Domains,
    smooth: usize,
    levels: Vec<Level>,
    coarsest: Coarsest,
}

/// All levels but the coarsest.
#[derive(Debug)]
struct Level {
    steps: Steps,
    /// From the coarse level, and to it.
    prolongation: Spread,
    restriction: Spread,
}

#[derive(Debug)]
enum Coarsest {
    /// The same on every rank, and how many of its rows each has.
    Solved {
        cholesky: Cholesky,
        counts: Vec<usize>,
        start: usize,
    },
    Smoothed(Steps),
}

/// A level as it is coarsened.
struct Grid<'a> {
    domains: Domains,
    /// Those of this rank's domains, as `near_null`.
    rows: Cow<'a, CsrRows>,
    /// Vectors that products make small.
    near_null: Vec<Vec<f64>>,
    /// Rows that belong together: where each such node begins, and the number of rows.
    nodes: Vec<usize>,
}

impl Amg {
    /// For the matrix of `a`, with the constant vector as near-null space. Collective.
    ///
    /// # Errors
    /// As [`Amg::with_near_null`].
    pub fn new(
        a: &dyn LinearOperator,
        options: &AmgOptions,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        Self::with_near_null(a, options, &[vec![1.0; a.part().local_len()]], comm)
    }

    /// For the symmetric positive definite matrix of `a`. Products make `near_null` small: for elasticity, the rigid body modes.
    /// Each vector has an element for each of this rank's rows. Collective: some hundred messages.
    ///
    /// # Errors
    /// On every rank: [`LinalgError::NotFinite`], naming the first such entry; [`LinalgError::BadDiagonal`],
    /// naming the first row whose diagonal entry is not positive and finite;
    /// [`LinalgError::Unfit`] for an operator that is no stored matrix, not symmetric, or not positive definite. [`LinalgError::Length`];
    /// [`LinalgError::Comm`].
    pub fn with_near_null(
        a: &dyn LinearOperator,
        options: &AmgOptions,
        near_null: &[Vec<f64>],
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let a = matrix_of(a, "amg", comm)?;
        let (part, mut work) = (a.part().clone(), Workspace::default());
        let domains = Domains::new(&part, DOMAINS);
        let own = domains.range().len();
        let fit = near_null.iter().try_for_each(|given| part.require_len("near-null vector", given.len()));
        agree(fit, comm)?;
        let mut vectors = vec![vec![0.0; own]; near_null.len()];
        for (vector, given) in vectors.iter_mut().zip(near_null) {
            // The same way as at each use; what comes back is of no interest.
            let mut unread = vec![0.0; part.local_len()];
            domains.within(&part, given, &mut unread, comm, &mut work, |given, out, _| {
                vector.copy_from_slice(given);
                out.fill(0.0);
                Ok(())
            })?;
        }
        let rows = domains.bring(a, comm)?;
        let mut grid =
            Grid { rows, near_null: vectors, nodes: (0..=own).collect(), domains: domains.clone() };
        let (mut levels, mut threshold) = (Vec::new(), options.threshold);
        let mut steps = Steps::new("amg", &grid.rows, &grid.domains, SMOOTHED_RATIO, comm)?;
        while grid.domains.n() > COARSE && levels.len() < LEVELS_MAX {
            let Some((coarse, p, r)) = grid.coarsen(threshold, &steps, comm)? else { break };
            let prolongation = Spread::new(&p, coarse.domains.cuts(), comm)?;
            let restriction = Spread::new(&r, grid.domains.cuts(), comm)?;
            let coarse_steps = Steps::new("amg", &coarse.rows, &coarse.domains, SMOOTHED_RATIO, comm);
            let coarse_steps = coarse_steps.map_err(|error| match error {
                LinalgError::BadDiagonal { .. } | LinalgError::Unfit { .. } => NOT_DEFINITE,
                error => error,
            })?;
            levels.push(Level { steps, prolongation, restriction });
            (grid, steps) = (coarse, coarse_steps);
            threshold *= 0.5;
        }
        let coarsest = match grid.domains.n() <= SOLVED_MAX {
            true => grid.solved(comm)?,
            false => Coarsest::Smoothed(steps),
        };
        Ok(Self { part, domains, smooth: options.smooth, levels, coarsest })
    }

    /// Returns `true` if the coarsest level is solved, not smoothed.
    pub fn is_solved(&self) -> bool {
        matches!(self.coarsest, Coarsest::Solved { .. })
    }

    /// Number of levels.
    pub fn levels(&self) -> usize {
        self.levels.len() + 1
    }

    /// One V-cycle from level `at` on, from `z = 0`; `r` is used up.
    fn cycle(
        &self,
        at: usize,
        r: &mut [f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let Some(Level { steps, prolongation, restriction }) = self.levels.get(at) else {
            return self.coarsest.solve(r, z, comm, work);
        };
        z.fill(0.0);
        steps.run(self.smooth, After::Residual, r, z, comm, work)?;

        let coarse = restriction.rows.len();
        let (mut coarse_r, mut coarse_z) = (work.take(coarse), work.take(coarse));
        let extended = restriction.extended(r, comm, work)?;
        restriction.each(&extended, &mut coarse_r[..], |rows, r, products| {
            r.iter_mut().zip(rows).for_each(|(r, row)| *r = products.of(row));
        });
        work.give(extended);
        self.cycle(at + 1, &mut coarse_r, &mut coarse_z, comm, work)?;

        let extended = prolongation.extended(&coarse_z, comm, work)?;
        let mut correction = work.take(steps.a.fetch.extended_len());
        let own = &mut correction[steps.a.fetch.own()];
        prolongation.each(&extended, (own, &mut *z), |rows, (own, z), products| {
            for ((own, z), row) in own.iter_mut().zip(z).zip(rows) {
                *own = products.of(row);
                *z += *own;
            }
        });
        steps.a.fetch.fill(&mut correction, comm, work)?;
        steps.a.each(&correction, &mut *r, subtract);
        [extended, correction, coarse_r, coarse_z].into_iter().for_each(|vector| work.give(vector));
        steps.run(self.smooth, After::Nothing, r, z, comm, work)
    }
}

impl Preconditioner for Amg {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.domains.within(&self.part, r, z, comm, work, |r, z, work| {
            let mut residual = work.take(r.len());
            residual.copy_from_slice(r);
            self.cycle(0, &mut residual, z, comm, work)?;
            work.give(residual);
            Ok(())
        })
    }

    /// The matrix is symmetric, so is this.
    fn apply_transpose(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.apply(r, z, comm, work)
    }
}

impl Grid<'_> {
    /// The next level, with `P` and its transpose; `None` where aggregates are no help. Collective.
    fn coarsen(
        &self,
        threshold: f64,
        steps: &Steps,
        comm: &Communicator,
    ) -> Result<Option<(Grid<'static>, CsrRows, CsrRows)>, LinalgError> {
        let first = self.domains.range().start;
        let tentative = |domain: usize| {
            let rows = self.domains.rows(domain).start - first..self.domains.rows(domain).end - first;
            let found = aggregates(&self.rows, first, rows.clone(), &self.nodes, threshold);
            Tentative::new(rows, &self.nodes, &found, &self.near_null)
        };
        let tentatives = parallel::map(self.rows.nnz(), self.domains.own().collect(), tentative);

        // Where the coarse rows of each domain begin.
        let mut counts = vec![0u64; self.domains.count()];
        self.domains.own().zip(&tentatives).for_each(|(domain, t)| counts[domain] = t.coarse_rows() as u64);
        comm.allgatherv(&mut counts, &self.domains.counts())?;
        let sum = |end: &mut usize, count: &u64| {
            *end += *count as usize;
            Some(*end)
        };
        let domains = self.domains.of_rows(std::iter::once(0).chain(counts.iter().scan(0, sum)).collect());
        if domains.n() == 0 || domains.n() * 10 > self.domains.n() * 9 {
            return Ok(None);
        }

        let t = Tentative::rows_of(&tentatives, domains.range().start, self.domains.range().len());
        let nodes = Tentative::nodes_of(&tentatives);
        let near_null = (0..self.near_null.len())
            .map(|k| tentatives.iter().flat_map(|t| t.near_null(k)).copied().collect())
            .collect();

        let fetched = steps.a.fetch.rows(&t, comm)?;
        let damping = 4.0 / 3.0 / steps.largest;
        let others = (steps.a.fetch.wanted(), &fetched);
        let p = scaled_difference(&t, damping, &steps.reciprocals, &self.rows, first, others, domains.n());
        let fetched = steps.a.fetch.rows(&p, comm)?;
        let ap = product(&self.rows, (first, &p), (steps.a.fetch.wanted(), &fetched), domains.n());
        let r = transposed(&p, first, domains.cuts(), comm)?;
        let fetch = super::fetch::Fetch::new(
            self.domains.cuts(),
            super::compact::outside(&r, &(first as u64..first as u64 + self.rows.len() as u64)),
            comm,
        )?;
        let fetched = fetch.rows(&ap, comm)?;
        let rows = product(&r, (first, &ap), (fetch.wanted(), &fetched), domains.n());
        Ok(Some((Grid { domains, rows: Cow::Owned(rows), near_null, nodes }, p, r)))
    }

    /// All of a small level on every rank. Collective.
    fn solved(&self, comm: &Communicator) -> Result<Coarsest, LinalgError> {
        let (n, cuts) = (self.domains.n(), self.domains.cuts());
        let counts: Vec<usize> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut dense = vec![0.0; n * n];
        for (row, (cols, vals)) in self.domains.range().zip(self.rows.iter()) {
            cols.iter().zip(vals).for_each(|(&col, val)| dense[row * n + col as usize] = *val);
        }
        comm.allgatherv(&mut dense, &counts.iter().map(|count| count * n).collect::<Vec<usize>>())?;
        // The matrix is symmetric: its rows are its columns. All ranks have the same, and find the same.
        let cholesky = Cholesky::of(n, dense).map_err(|_| NOT_DEFINITE)?;
        Ok(Coarsest::Solved { cholesky, counts, start: self.domains.range().start })
    }
}

impl Coarsest {
    fn solve(
        &self,
        r: &mut [f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        match self {
            Self::Solved { cholesky, counts, start } => {
                let n = counts.iter().sum();
                let (mut all_r, mut all_z) = (work.take(n), work.take(n));
                let own = *start..*start + r.len();
                all_r[own.clone()].copy_from_slice(r);
                comm.allgatherv(&mut all_r, counts)?;
                cholesky.solve(&all_r, &mut all_z);
                z.copy_from_slice(&all_z[own]);
                work.give(all_r);
                work.give(all_z);
                Ok(())
            }
            Self::Smoothed(steps) => {
                z.fill(0.0);
                steps.run(COARSE_STEPS, After::Nothing, r, z, comm, work)
            }
        }
    }
}
