//! LOBPCG: the smallest or the largest eigenvalues of a symmetric `A`, a block of them at once, with a preconditioner for `A`,
//! symmetric positive definite.
//!
//! ```text
//! X = b and random vectors, orthonormal
//! until || A X - X Theta || is small:
//!     W = M^-1 (A X - X Theta), made orthogonal to [X P], orthonormal
//!     S = [X P W], G = S^T S, H = S^T A S                  all sums in one message
//!     Theta, C = the wanted eigenpairs of H in the metric G
//!     P = P C_p + W C_w, made orthogonal to S C, orthonormal
//!     X = S C
//! ```
//!
//! `k` products and four reductions per iteration; the state has `4 k` vectors, as `A X` and `A P`
//! are recurrences. Small problems are solved by every rank, from the same numbers. Three rules
//! keep rounding from growing:
//!
//! 1. `S` is orthonormal up to rounding before `H` is formed. Directions of `W` that depend on
//!    others, to about 1e-9, are left out. So the small problem is well-conditioned, and nothing in
//!    it is scaled up.
//! 2. New columns are products of `S` with orthonormal columns, and so are those of `A X` and `A
//!    P`: an error of these grows by what one iteration adds.
//! 3. The stopping rules look at the largest residual norm, measured by the largest `||A v||` of
//!    all unit vectors `v` that have been multiplied. `A` has at least that norm, whatever the
//!    recurrences carry. Where an eigenvalue is beyond twice that, and where the stopping rules end
//!    the iteration, `A X` is computed from scratch, and the eigenvalues and residuals from it. An
//!    iteration whose answer was only the recurrence's goes on.
//!
//! Sources: Knyazev: Toward the optimal preconditioned eigensolver: locally optimal block
//! preconditioned conjugate gradient method, SIAM J. Sci. Comput. 23, 2001, algorithm 5.1;
//! Hetmaniuk, Lehoucq: Basis selection in LOBPCG, J. Comput. Phys. 218, 2006, and Duersch, Shao,
//! Yang, Gu: A robust and efficient implementation of LOBPCG, SIAM J. Sci. Comput. 40, 2018
//! (orthonormal bases, and `P` from the small problem); Stathopoulos, Wu: A block orthogonalization
//! procedure with constant synchronization requirements, SIAM J. Sci. Comput. 23, 2002 (how
//! directions are left out).

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;
use nalgebra::{Cholesky, DMatrix};

use super::eigenpairs::{Measured, largest, multiply, require_count, residuals};
use super::gram_schmidt::orthogonalize;
use super::{Course, Solver, Step, System, norm2, require};
use crate::small_eigen::SmallEigen;
use crate::stop::Quantity;
use crate::vector::divide;
use crate::{LinalgError, MultiVector, StopCriteria, StopReason, Workspace};

/// A direction is left out of which less than this part is left, once those before it are taken
/// off.
const DEPENDENT: f64 = 1e-9;
/// Directions of which the matrix of cosines has an eigenvalue below this part of the largest
/// depend on each other.
const DEPENDENT_EACH_OTHER: f64 = 1e-9;
/// Coefficients that have moved less than this have not moved.
const UNMOVED: f64 = 1e-13;
/// An eigenvalue beyond this times the norm that products have shown is looked at again.
const BEYOND: f64 = 2.0;
/// Random vectors that are tried for each column of the first `X`.
const TRIES: u64 = 8;

/// What LOBPCG leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LobpcgOptions {
    /// When to stop.
    pub stop: StopCriteria,
    /// How many eigenpairs are wanted, at least 1.
    pub count: usize,
    /// The largest ones; else the smallest.
    pub largest: bool,
}

impl Default for LobpcgOptions {
    /// The smallest one, to 1e-6.
    fn default() -> Self {
        Self { stop: StopCriteria { rtol: 1e-6, ..StopCriteria::DEFAULT }, count: 1, largest: false }
    }
}

/// LOBPCG.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Lobpcg {
    #[protect(nested, distributed)]
    x: MultiVector,
    #[protect(nested, distributed)]
    ax: MultiVector,
    /// Directions of the last iteration.
    #[protect(nested, distributed)]
    p: MultiVector,
    #[protect(nested, distributed)]
    ap: MultiVector,
    /// Eigenvalues so far, and the norm of the residual of each.
    #[protect(replicated)]
    values: Vec<(f64, f64)>,
    /// The largest `||A v||` of all unit vectors that have been multiplied: a lower bound of the
    /// norm of `A`.
    #[protect(replicated)]
    modulus: f64,
    /// The largest residual norm when `A X` was last computed from scratch.
    #[protect(replicated)]
    norm_from_scratch: f64,
    #[protect(constant, replicated)]
    largest: bool,
    /// Follows the largest residual norm.
    #[protect(nested, replicated)]
    course: Course,
}

impl Lobpcg {
    /// The eigenvalues, from the outermost on, and the residual norm of each: an eigenvalue of `A` is that near.
    pub fn eigenvalues(&self) -> &[(f64, f64)] {
        &self.values
    }

    /// The vector of an eigenvalue, own rows.
    ///
    /// # Panics
    /// If there is none.
    pub fn eigenvector(&self, at: usize) -> &[f64] {
        self.x.column(at)
    }

    /// Rayleigh-Ritz on `S = [X P W]`, which is orthonormal up to rounding: the next `X` and `P`.
    /// The products of the columns from `fresh` on have just been computed. Returns false, and
    /// changes nothing, if a sum is not finite, or `S` is not of full rank. Collective: one
    /// reduction.
    fn project(
        &mut self,
        w: &MultiVector,
        aw: &MultiVector,
        fresh: usize,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<bool, LinalgError> {
        let s = joined([&self.x, &self.p, w]);
        let a_s = joined([&self.ax, &self.ap, aw]);
        let (size, count) = (s.columns(), self.x.columns());
        let mut pairs = Vec::with_capacity(size * (size + 2));
        for row in 0..size {
            for col in row..size {
                pairs.push((s.column(row), s.column(col)));
                // A recurrence stands on the left of a fresh product, never on the right.
                pairs.push((s.column(row), a_s.column(col)));
            }
        }
        pairs.extend((fresh..size).map(|at| (a_s.column(at), a_s.column(at))));
        let sums = work.dots_many(self.x.part(), &pairs, comm)?;
        let (sums, squares) = sums.split_at(size * (size + 1));
        if sums.iter().any(|sum| !sum.is_finite()) {
            return Ok(false);
        }
        let (mut g, mut h) = (DMatrix::<f64>::zeros(size, size), DMatrix::<f64>::zeros(size, size));
        let mut sums = sums.chunks_exact(2);
        for row in 0..size {
            for (col, pair) in (row..size).zip(&mut sums) {
                (g[(row, col)], g[(col, row)]) = (pair[0], pair[0]);
                (h[(row, col)], h[(col, row)]) = (pair[1], pair[1]);
            }
        }
        let Some((modes, c)) = solve_small(&g, h, count, self.largest) else { return Ok(false) };
        for (at, square) in (fresh..size).zip(squares) {
            let norm = (square / g[(at, at)]).sqrt();
            self.modulus = if norm.is_finite() { self.modulus.max(norm) } else { self.modulus };
        }
        self.values = modes.iter().map(|value| (*value, 0.0)).collect();
        let x = c.columns(0, count).into_owned();
        let p = c.columns(count, c.ncols() - count).into_owned();
        (self.x, self.ax, self.p, self.ap) = (s.times(&x), a_s.times(&x), s.times(&p), a_s.times(&p));
        Ok(true)
    }

    fn residuals(&self) -> MultiVector {
        let values: Vec<f64> = self.values.iter().map(|(value, _)| *value).collect();
        residuals(&self.ax, &self.x, &values)
    }

    /// Computes the norm of each residual. Collective: one reduction.
    fn measure(&mut self, comm: &Communicator, work: &mut Workspace) -> Result<(), LinalgError> {
        let r = self.residuals();
        let pairs: Vec<_> = r.iter().map(|column| (column, column)).collect();
        let squares = work.dots_many(r.part(), &pairs, comm)?;
        self.values.iter_mut().zip(squares).for_each(|((_, norm), square)| *norm = square.sqrt());
        Ok(())
    }

    fn norm(&self) -> f64 {
        largest(self.values.iter().map(|(_, norm)| *norm))
    }

    /// Computes `A X` from scratch, and eigenvalues and residuals from it; the directions of the
    /// last iteration are forgotten. Returns false if that cannot be done, as with
    /// [`Lobpcg::project`]. Collective: `k` products, two reductions.
    fn refresh(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<bool, LinalgError> {
        let none = MultiVector::zeros(self.x.part().clone(), 0);
        self.ax = multiply(&self.x, system, comm, work)?;
        (self.p, self.ap) = (none.clone(), none.clone());
        let is_done = self.project(&none, &none, 0, comm, work)?;
        if is_done {
            self.measure(comm, work)?;
            self.norm_from_scratch = self.norm();
            self.course.measure_by(self.modulus);
        }
        Ok(is_done)
    }

    fn fail(&mut self, quantity: Quantity) -> Step {
        let iterations = self.course.progress().iterations;
        self.course.end(StopReason::Breakdown { iterations, quantity })
    }
}

/// Solves the projected problem: the wanted eigenvalues, and the coefficients of the next `X` and,
/// after them, those of the next `P`. `None` if `g` is not positive definite, or a number not
/// finite.
fn solve_small(
    g: &DMatrix<f64>,
    h: DMatrix<f64>,
    count: usize,
    largest: bool,
) -> Option<(Vec<f64>, DMatrix<f64>)> {
    let size = g.nrows();
    let l = Cholesky::new(g.clone())?.l();
    // L^-1 H L^-T
    let half = l.solve_lower_triangular(&h)?;
    let mut small = l.solve_lower_triangular(&half.transpose())?;
    small = 0.5 * (&small + small.transpose());
    let eigen = SmallEigen::of(small)?;
    let wanted = eigen.outermost(count, largest);
    let mut y = eigen.vectors.select_columns(&wanted);
    let x = l.tr_solve_lower_triangular(&y)?;

    // What X has gained besides itself; in the basis in which the metric is 1.
    let mut gained = x.clone();
    gained.rows_mut(0, count).fill(0.0);
    let gained = l.tr_mul(&gained);
    for column in gained.column_iter() {
        let norm = column.norm();
        if norm <= UNMOVED || y.ncols() == size {
            continue;
        }
        let mut column = column / norm;
        for _ in 0..2 {
            column -= &y * y.tr_mul(&column);
        }
        let rest = column.norm();
        if rest > DEPENDENT {
            column /= rest;
            column -= &y * y.tr_mul(&column);
            column /= column.norm();
            let at = y.ncols();
            y = y.insert_column(at, 0.0);
            y.set_column(at, &column);
        }
    }
    let values = wanted.iter().map(|at| eigen.values[*at]).collect();
    Some((values, l.tr_solve_lower_triangular(&y)?))
}

/// The columns of several, one after the other.
fn joined(parts: [&MultiVector; 3]) -> MultiVector {
    let mut all = parts[0].clone();
    parts[1..].iter().flat_map(|part| part.iter()).for_each(|column| all.push(column));
    all
}

/// Makes `w` orthogonal to the orthonormal `basis`, and orthonormal. Directions that depend on the
/// basis or on each other are left out, and there may be none left. `None` if a sum is not finite.
/// Collective: two reductions.
fn directions(
    mut w: MultiVector,
    basis: &MultiVector,
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<Option<MultiVector>, LinalgError> {
    for is_last in [false, true] {
        let Some((along, gram)) = products(basis, &w, comm, work)? else { return Ok(None) };
        // What is left once that along the basis is taken off: of unit vectors without any, in the
        // second round.
        let rest = if is_last { &gram - along.tr_mul(&along) } else { gram };
        let least = if is_last { DEPENDENT * DEPENDENT } else { 0.0 };
        let kept: Vec<usize> = (0..w.columns()).filter(|at| rest[(*at, *at)] > least).collect();
        let mut next = MultiVector::zeros(w.part().clone(), 0);
        for (to, &at) in kept.iter().enumerate() {
            let factors: Vec<f64> = along.column(at).iter().map(|factor| -factor).collect();
            next.push(w.column(at));
            basis.add_to(&factors, next.column_mut(to));
            divide(next.column_mut(to), rest[(at, at)].sqrt());
        }
        w = next;
        if is_last {
            let cosine = |i: usize, j: usize| {
                let (i, j) = (kept[i], kept[j]);
                rest[(i, j)] / (rest[(i, i)] * rest[(j, j)]).sqrt()
            };
            let Some(eigen) = SmallEigen::of(DMatrix::from_fn(kept.len(), kept.len(), cosine)) else {
                return Ok(None);
            };
            let least = DEPENDENT_EACH_OTHER * eigen.modulus();
            let good: Vec<usize> = (0..kept.len()).filter(|at| eigen.values[*at] > least).collect();
            let mut factors = eigen.vectors.select_columns(&good);
            for (mut column, at) in factors.column_iter_mut().zip(&good) {
                column /= eigen.values[*at].sqrt();
            }
            w = w.times(&factors);
        }
    }
    Ok(Some(w))
}

/// `basis^T w` and `w^T w`.
type Products = (DMatrix<f64>, DMatrix<f64>);

/// Returns both products; `None` if a sum is not finite. Collective: one reduction.
fn products(
    basis: &MultiVector,
    w: &MultiVector,
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<Option<Products>, LinalgError> {
    let (m, k) = (basis.columns(), w.columns());
    let mut pairs = Vec::with_capacity(k * (m + k));
    for col in 0..k {
        pairs.extend(basis.iter().map(|column| (column, w.column(col))));
        pairs.extend((0..=col).map(|row| (w.column(row), w.column(col))));
    }
    let sums = work.dots_many(w.part(), &pairs, comm)?;
    if sums.iter().any(|sum| !sum.is_finite()) {
        return Ok(None);
    }
    let (mut along, mut gram) = (DMatrix::zeros(m, k), DMatrix::zeros(k, k));
    let mut sums = sums.into_iter();
    for col in 0..k {
        along.column_mut(col).iter_mut().zip(&mut sums).for_each(|(to, sum)| *to = sum);
        for (row, sum) in (0..=col).zip(&mut sums) {
            (gram[(row, col)], gram[(col, row)]) = (sum, sum);
        }
    }
    Ok(Some((along, gram)))
}

/// Between -1 and 1, from a number: the first vectors, but for `b`, the same on any number of ranks.
fn random(seed: u64) -> f64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

impl Lobpcg {
    /// Adds random columns to `X`, which has `b`, until there are `count`, all orthonormal. Returns
    /// false if that is not possible. Collective: two reductions a column.
    fn fill(&mut self, count: usize, comm: &Communicator, work: &mut Workspace) -> Result<bool, LinalgError> {
        for at in 1..count as u64 {
            let is_added = 'tries: {
                for again in 0..TRIES {
                    let seed = |row| (row as u64).wrapping_add((at + again * count as u64) << 40);
                    let mut column: Vec<f64> = self.x.part().range().map(|row| random(seed(row))).collect();
                    let (taken, rest) = orthogonalize(&self.x, &mut column, comm, work)?;
                    let whole = taken.iter().map(|taken| taken * taken).sum::<f64>().sqrt().max(rest);
                    if rest > DEPENDENT * whole {
                        divide(&mut column, rest);
                        self.x.push(&column);
                        break 'tries true;
                    }
                }
                false
            };
            if !is_added {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Solver for Lobpcg {
    type Options = LobpcgOptions;

    /// Starts from `b`, and random vectors beside it. `k` products, about two reductions a vector.
    fn start(
        options: &LobpcgOptions,
        system: &System<'_>,
        start: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        require(system, start, comm)?;
        let part = system.a.part();
        let count = options.count.max(1);
        require_count(count, system)?;
        let course = Course::new(options.stop, 1.0, 1.0);
        let none = MultiVector::zeros(part.clone(), 0);
        let [x, ax, p, ap] = [(); 4].map(|()| none.clone());
        let mut lobpcg = Self { x, ax, p, ap, largest: options.largest, course, ..Self::default() };
        let norm = norm2(part, system.b, comm)?;
        lobpcg.x.push(system.b);
        if lobpcg.course.need_nonzero(Quantity::Start, norm).is_some() {
            let _ = lobpcg.course.need_finite(Quantity::Start, part, system.b, comm)?;
            return Ok(lobpcg);
        }
        divide(lobpcg.x.column_mut(0), norm);
        if !lobpcg.fill(count, comm, work)? {
            let _ =
                lobpcg.course.end(StopReason::Vanished { iterations: 0, quantity: Quantity::NextDirection });
            return Ok(lobpcg);
        }
        let products = multiply(&lobpcg.x, system, comm, work)?;
        for column in products.iter() {
            // Also where squares overflow or underflow.
            lobpcg.modulus = lobpcg.modulus.max(norm2(part, column, comm)?);
        }
        if lobpcg.refresh(system, comm, work)? {
            lobpcg.course = Course::new(options.stop, lobpcg.modulus, lobpcg.norm());
        } else {
            let _ = lobpcg.fail(Quantity::Product);
            for column in products.iter() {
                if lobpcg.course.need_finite(Quantity::Product, part, column, comm)?.is_some() {
                    break;
                }
            }
        }
        Ok(lobpcg)
    }

    /// `k` products, four reductions; `k` products and two reductions more where `A X` is computed
    /// from scratch.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        require(system, self.x(), comm)?;
        if let Some(done) = self.course.done() {
            return Ok(done);
        }
        let none = MultiVector::zeros(system.a.part().clone(), 0);
        let r = self.residuals();
        let (mut w, mut z) = (none.clone(), work.take(system.b.len()));
        for column in r.iter() {
            system.m.apply(column, &mut z, comm, work)?;
            w.push(&z);
        }
        work.give(z);
        let basis = joined([&self.x, &self.p, &none]);
        let Some(w) = directions(w, &basis, comm, work)? else {
            return Ok(self.fail(Quantity::NextDirection));
        };
        if w.columns() == 0 {
            // The space is invariant up to rounding, and a residual from scratch that is still too
            // large is rounding.
            if !self.refresh(system, comm, work)? {
                return Ok(self.fail(Quantity::Product));
            }
            let (iterations, quantity) = (self.course.progress().iterations, Quantity::NextDirection);
            return Ok(match self.course.correct(self.norm()) {
                Step::Continue => self.course.end(StopReason::Vanished { iterations, quantity }),
                done => done,
            });
        }
        let aw = multiply(&w, system, comm, work)?;
        let fresh = basis.columns();
        if !self.project(&w, &aw, fresh, comm, work)? {
            return Ok(self.fail(Quantity::Product));
        }
        self.measure(comm, work)?;
        let is_beyond = self.values.iter().any(|(value, _)| value.abs() > BEYOND * self.modulus);
        if is_beyond && !self.refresh(system, comm, work)? {
            return Ok(self.fail(Quantity::Product));
        }
        self.course.measure_by(self.modulus);
        let step = self.course.advance(self.norm());
        if step == Step::Continue {
            return Ok(step);
        }
        let before = self.norm_from_scratch;
        if !self.refresh(system, comm, work)? {
            return Ok(self.fail(Quantity::Product));
        }
        Ok(self.course.verify(self.norm(), before))
    }

    /// The first eigenvector.
    fn x(&self) -> &[f64] {
        self.x.column(0)
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// Computes eigenvalues and residuals from scratch.
    fn settle(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.refresh(system, comm, work).map(|_| ())
    }

    /// The largest `||A x - theta x||`, and what the vectors lack of being orthonormal.
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        if self.values.is_empty() {
            return Ok(self.course.progress().residual_norm);
        }
        let values: Vec<f64> = self.values.iter().map(|(value, _)| *value).collect();
        Ok(Measured::of(&self.x, &values, system, comm, work)?.norm(self.modulus))
    }
}
