//! LOBPCG: the smallest or the largest eigenvalues of a symmetric `A`, a block of them at once, with a preconditioner for `A`,
//! symmetric positive definite.
//!
//! ```text
//! X = b and random vectors
//! until || A X - X Theta || is small:
//!     W = M^-1 (A X - X Theta)
//!     S = [X W P], G = S^T S, H = S^T A S                  all sums in one message
//!     Theta, C = the wanted eigenpairs of H in the metric G
//!     P = W C_w + P C_p
//!     X = X C_x + P
//! ```
//!
//! `k` products and two reductions per iteration; the state has `4 k` vectors, as `A X` and `A P` are recurrences.
//! Directions in which `G` is next to singular are left out. The stopping rules look at the largest residual norm, measured
//! by the largest modulus of an eigenvalue of `H`. Small problems are solved by every rank, from the same numbers.
//!
//! Sources: Knyazev: Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient
//! method, SIAM J. Sci. Comput. 23, 2001, algorithm 5.1; Stathopoulos, Wu: A block orthogonalization procedure with constant
//! synchronization requirements, SIAM J. Sci. Comput. 23, 2002 (how directions are left out).

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;
use nalgebra::{DMatrix, DVector, SymmetricEigen};

use super::{Course, Solver, Step, System, norm2, require};
use crate::stop::Quantity;
use crate::vector::{axpy, divide};
use crate::{LinalgError, MultiVector, StopCriteria, StopReason, Workspace};

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

    /// Rayleigh-Ritz on `[X W P]`: the next `X` and `P`. The largest modulus of an eigenvalue; `None` if the space has become
    /// too small, or is not finite. Collective: one reduction.
    fn project(
        &mut self,
        w: &MultiVector,
        aw: &MultiVector,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Option<f64>, LinalgError> {
        let s: Vec<&[f64]> = self.x.iter().chain(w.iter()).chain(self.p.iter()).collect();
        let a_s: Vec<&[f64]> = self.ax.iter().chain(aw.iter()).chain(self.ap.iter()).collect();
        let (size, count) = (s.len(), self.x.columns());
        let mut pairs = Vec::with_capacity(size * (size + 1));
        for row in 0..size {
            for col in row..size {
                pairs.push((s[row], s[col]));
                pairs.push((s[row], a_s[col]));
            }
        }
        let sums = work.dots_many(system.a.part(), &pairs, comm)?;
        if sums.iter().any(|sum| !sum.is_finite()) {
            return Ok(None);
        }
        let (mut g, mut h) = (DMatrix::<f64>::zeros(size, size), DMatrix::<f64>::zeros(size, size));
        let mut sums = sums.chunks_exact(2);
        for row in 0..size {
            for (col, pair) in (row..size).zip(&mut sums) {
                (g[(row, col)], g[(col, row)]) = (pair[0], pair[0]);
                (h[(row, col)], h[(col, row)]) = (pair[1], pair[1]);
            }
        }
        let Some(basis) = whiten(&g) else { return Ok(None) };
        if basis.ncols() < count {
            return Ok(None);
        }
        let mut small = basis.transpose() * h * &basis;
        small = 0.5 * (&small + small.transpose());
        let SymmetricEigen { eigenvectors, eigenvalues } = small.symmetric_eigen();
        let mut order: Vec<usize> = (0..eigenvalues.len()).collect();
        order.sort_by(|i, j| eigenvalues[*i].total_cmp(&eigenvalues[*j]));
        if self.largest {
            order.reverse();
        }
        let combine = |columns: &[&[f64]], factors: &[f64]| {
            let mut sum = vec![0.0; columns[0].len()];
            columns.iter().zip(factors).for_each(|(column, factor)| axpy(*factor, column, &mut sum));
            sum
        };
        let [mut x, mut ax, mut p, mut ap] = [(); 4].map(|()| MultiVector::zeros(self.x.part().clone(), 0));
        let mut values = Vec::with_capacity(count);
        for &at in &order[..count] {
            let c: DVector<f64> = &basis * eigenvectors.column(at);
            let c = c.as_slice();
            values.push((eigenvalues[at], 0.0));
            if size > count {
                p.push(&combine(&s[count..], &c[count..]));
                ap.push(&combine(&a_s[count..], &c[count..]));
            }
            x.push(&combine(&s, c));
            ax.push(&combine(&a_s, c));
        }
        let modulus = eigenvalues.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        (self.x, self.ax, self.p, self.ap, self.values) = (x, ax, p, ap, values);
        Ok(Some(modulus))
    }

    /// `A X - X Theta`.
    fn residuals(&self) -> MultiVector {
        let mut r = MultiVector::zeros(self.x.part().clone(), 0);
        for (at, (value, _)) in self.values.iter().enumerate() {
            r.push(self.ax.column(at));
            axpy(-value, self.x.column(at), r.column_mut(at));
        }
        r
    }

    /// The norm of each residual. Collective: one reduction.
    fn measure(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let r = self.residuals();
        let pairs: Vec<_> = r.iter().map(|column| (column, column)).collect();
        let squares = work.dots_many(system.a.part(), &pairs, comm)?;
        self.values.iter_mut().zip(squares).for_each(|((_, norm), square)| *norm = square.sqrt());
        Ok(())
    }

    fn norm(&self) -> f64 {
        // Not a number stays one.
        self.values.iter().fold(0.0, |most, (_, norm)| if *norm <= most { most } else { *norm })
    }

    fn multiply(
        columns: &MultiVector,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<MultiVector, LinalgError> {
        let (mut products, mut y) =
            (MultiVector::zeros(columns.part().clone(), 0), vec![0.0; system.b.len()]);
        for column in columns.iter() {
            system.a.apply(column, &mut y, comm, work)?;
            products.push(&y);
        }
        Ok(products)
    }

    fn fail(&mut self, quantity: Quantity) -> Step {
        let iterations = self.course.progress().iterations;
        self.course.end(StopReason::Vanished { iterations, quantity })
    }
}

/// Columns that are orthonormal in the metric `g`, and span what it does not make next to singular.
fn whiten(g: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let scale = g.diagonal().map(|value| if value > 0.0 { 1.0 / value.sqrt() } else { 0.0 });
    let scaled = DMatrix::from_fn(g.nrows(), g.ncols(), |row, col| scale[row] * g[(row, col)] * scale[col]);
    if scaled.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let SymmetricEigen { mut eigenvectors, eigenvalues } = scaled.symmetric_eigen();
    let least = 1e-14 * eigenvalues.max();
    let kept: Vec<usize> = (0..eigenvalues.len()).filter(|at| eigenvalues[*at] > least).collect();
    for (row, scale) in scale.iter().enumerate() {
        eigenvectors.row_mut(row).scale_mut(*scale);
    }
    for at in &kept {
        eigenvectors.column_mut(*at).scale_mut(1.0 / eigenvalues[*at].sqrt());
    }
    Some(eigenvectors.select_columns(&kept))
}

/// Between -1 and 1, from a number: the first vectors, but for `b`, the same on any number of ranks.
fn random(seed: u64) -> f64 {
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

impl Solver for Lobpcg {
    type Options = LobpcgOptions;

    /// Starts from `b`, and random vectors beside it. `k` products, three reductions.
    fn start(
        options: &LobpcgOptions,
        system: &System<'_>,
        start: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        require(system, start, comm)?;
        let part = system.a.part();
        let count = options.count.clamp(1, part.n().max(1));
        let course = Course::new(options.stop, 1.0, 1.0);
        let none = MultiVector::zeros(part.clone(), 0);
        let [x, ax, p, ap] = [(); 4].map(|()| none.clone());
        let mut lobpcg = Self { x, ax, p, ap, values: vec![], largest: options.largest, course };
        let norm = norm2(part, system.b, comm)?;
        lobpcg.x.push(system.b);
        if lobpcg.course.need_nonzero(Quantity::Start, norm).is_some() {
            let _ = lobpcg.course.need_finite(Quantity::Start, part, system.b, comm)?;
            return Ok(lobpcg);
        }
        divide(lobpcg.x.column_mut(0), norm);
        for at in 1..count {
            let seed = |row| (row as u64).wrapping_add((at as u64) << 40);
            lobpcg.x.push(&part.range().map(|row| random(seed(row))).collect::<Vec<f64>>());
        }
        lobpcg.ax = Self::multiply(&lobpcg.x, system, comm, work)?;
        match lobpcg.project(&none, &none, system, comm, work)? {
            Some(modulus) => {
                lobpcg.measure(system, comm, work)?;
                lobpcg.course = Course::new(options.stop, modulus, lobpcg.norm());
            }
            None => {
                let quantity = Quantity::Product;
                let _ = lobpcg.course.end(StopReason::Breakdown { iterations: 0, quantity });
                for column in lobpcg.ax.iter() {
                    if lobpcg.course.need_finite(quantity, part, column, comm)?.is_some() {
                        break;
                    }
                }
            }
        }
        Ok(lobpcg)
    }

    /// `k` products, two reductions.
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
        let r = self.residuals();
        let (mut w, mut z) = (MultiVector::zeros(system.a.part().clone(), 0), vec![0.0; system.b.len()]);
        for column in r.iter() {
            system.m.apply(column, &mut z, comm, work)?;
            w.push(&z);
        }
        let aw = Self::multiply(&w, system, comm, work)?;
        let Some(modulus) = self.project(&w, &aw, system, comm, work)? else {
            return Ok(self.fail(Quantity::NextDirection));
        };
        self.measure(system, comm, work)?;
        self.course.measure_by(modulus);
        Ok(self.course.advance(self.norm()))
    }

    /// The first eigenvector.
    fn x(&self) -> &[f64] {
        self.x.column(0)
    }

    fn course(&self) -> &Course {
        &self.course
    }

    /// The largest `||A x - theta x||`.
    fn true_norm(
        &self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<f64, LinalgError> {
        let mut copy = self.clone();
        copy.ax = Self::multiply(&self.x, system, comm, work)?;
        copy.measure(system, comm, work)?;
        Ok(copy.norm())
    }
}
