//! Chebyshev polynomials: `M^-1 = p(D^-1 A) D^-1` with the polynomial `p` that is best on an interval of eigenvalues.
//!
//! ```text
//! theta, delta = middle and half width of [upper / ratio, upper];  sigma = theta / delta,  rho = 1 / sigma
//! d = D^-1 r / theta,  z = d
//! repeated:  r = r - A d
//!            rho' = 1 / (2 sigma - rho),  d = rho' rho d + 2 rho' / delta D^-1 r,  z = z + d,  rho = rho'
//! ```
//!
//! Products are all that it needs, no sums over ranks: a use of degree `k` costs `k` products. `upper` is 1.1 times an
//! estimate of the largest eigenvalue of `D^-1 A` by a few steps of Lanczos. For symmetric positive definite `A`, `M` is
//! symmetric positive definite. A multigrid method smooths by the same steps.
//!
//! Sources: Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, section 12.3, algorithm 12.1;
//! Adams, Brezina, Hu, Tuminaro: Parallel multigrid smoothing: polynomial versus Gauss-Seidel, J. Comput. Phys. 188, 2003.

use std::ops::Range;

use ft_comm::Communicator;

use super::compact::{Products, Spread};
use super::domains::{DOMAINS, Domains};
use super::spectrum::{Largest, largest_eigenvalue, start};
use super::{Preconditioner, matrix_of, require_diagonal};
use crate::dot::block_dot;
use crate::parallel::elements;
use crate::{CsrRows, Global, LinalgError, LinearOperator, Partition, Workspace};

/// The interval of a preconditioner that stands alone ends at this part of its upper end.
const RATIO: f64 = 30.0;
/// An estimate from below becomes a bound from above.
const MARGIN: f64 = 1.1;

/// Chebyshev polynomials of a matrix, of which this has a copy with 32-bit columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Chebyshev {
    part: Partition,
    domains: Domains,
    steps: Steps,
    degree: usize,
}

impl Chebyshev {
    /// Of degree `degree`, for the symmetric positive definite matrix of `a`. Collective: a dozen products.
    ///
    /// # Errors
    /// On every rank: [`LinalgError::NotFinite`], naming the first such entry; [`LinalgError::BadDiagonal`],
    /// naming the first row whose diagonal entry is not positive and finite;
    /// [`LinalgError::Unfit`] for an operator that is no stored matrix, is not symmetric, or whose eigenvalues are not
    /// positive and finite.
    /// [`LinalgError::Comm`].
    pub fn new(a: &dyn LinearOperator, degree: usize, comm: &Communicator) -> Result<Self, LinalgError> {
        let a = matrix_of(a, "chebyshev", comm)?;
        let domains = Domains::new(a.part(), DOMAINS);
        let rows = domains.bring(a, comm)?;
        let steps = Steps::new("chebyshev", &rows, &domains, RATIO, comm)?;
        Ok(Self { part: a.part().clone(), domains, steps, degree })
    }
}

impl Preconditioner for Chebyshev {
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
            z.fill(0.0);
            self.steps.run(self.degree + 1, After::Nothing, &mut residual, z, comm, work)?;
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

/// What is wanted after the last step.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum After {
    Nothing,
    /// The residual, for one product more.
    Residual,
}

/// Steps of Chebyshev's iteration on the rows of domains.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steps {
    pub(super) a: Spread,
    /// Reciprocals of the diagonal.
    pub(super) reciprocals: Vec<f64>,
    /// The estimate of the largest eigenvalue of `D^-1 A`.
    pub(super) largest: f64,
    theta: f64,
    delta: f64,
}

impl Steps {
    /// For the matrix of which `rows` are those of this rank's domains. `what` names the
    /// preconditioner in errors. Collective.
    pub(super) fn new(
        what: &'static str,
        rows: &CsrRows,
        domains: &Domains,
        ratio: f64,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let first = domains.range().start;
        let diagonal = rows.diagonal(Global(first));
        require_diagonal(&diagonal, first, comm)?;
        let a = Spread::new(rows, domains.cuts(), comm)?;
        // D^-1 A has the eigenvalues of the symmetric D^-1/2 A D^-1/2.
        let roots: Vec<f64> = diagonal.iter().map(|value| 1.0 / value.sqrt()).collect();
        let apply = |x: &[f64], y: &mut [f64], work: &mut Workspace| {
            let mut extended = work.take(a.fetch.extended_len());
            let own = extended[a.fetch.own()].iter_mut();
            own.zip(x).zip(&roots).for_each(|((to, x), root)| *to = x * root);
            a.fetch.fill(&mut extended, comm, work)?;
            a.each(&extended, y, |rows, y, products| {
                y.iter_mut().zip(rows).for_each(|(y, row)| *y = roots[row] * products.of(row));
            });
            work.give(extended);
            Ok(())
        };
        let dot = |x: &[f64], y: &[f64]| dot(domains, x, y, comm);
        let random = domains.range().map(start).collect();
        let unfit = |needs| Err(LinalgError::Unfit { what, needs });
        let largest = match largest_eigenvalue(random, apply, dot, &mut Workspace::default())? {
            Largest::Of(largest) if domains.n() == 0 || (largest > 0.0 && largest.is_finite()) => largest,
            Largest::Of(_) => return unfit("eigenvalues that are positive and finite"),
            Largest::NotSymmetric => return unfit("symmetry"),
        };
        let upper = MARGIN * largest;
        let (theta, delta) = (0.5 * (upper + upper / ratio), 0.5 * (upper - upper / ratio));
        let reciprocals = diagonal.iter().map(|value| 1.0 / value).collect();
        Ok(Self { a, reciprocals, largest, theta, delta })
    }

    /// Takes `count` steps from the approximation `z`, of which `r` is the residual. `r` is used up, unless it is wanted.
    /// Collective.
    pub(super) fn run(
        &self,
        count: usize,
        after: After,
        r: &mut [f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let (own, len) = (self.a.fetch.own(), self.a.fetch.extended_len());
        let (mut d, mut next) = (work.take(len), work.take(len));
        elements(own.len(), (&mut d[own.clone()], &mut *z), |rows, (d, z)| {
            let (r, reciprocals) = (&r[rows.clone()], &self.reciprocals[rows]);
            for (((d, z), r), reciprocal) in d.iter_mut().zip(z).zip(r).zip(reciprocals) {
                *d = reciprocal * r / self.theta;
                *z += *d;
            }
        });
        let sigma = self.theta / self.delta;
        let mut rho = 1.0 / sigma;
        for _ in 1..count {
            self.a.fetch.fill(&mut d, comm, work)?;
            let new_rho = 1.0 / (2.0 * sigma - rho);
            let (of_d, of_r) = (new_rho * rho, 2.0 * new_rho / self.delta);
            let (old, new) = (&d[own.clone()], &mut next[own.clone()]);
            self.a.each(&d, (&mut *r, new, &mut *z), |rows, (r, new, z), products| {
                for (i, row) in rows.enumerate() {
                    r[i] -= products.of(row);
                    new[i] = of_d * old[row] + of_r * self.reciprocals[row] * r[i];
                    z[i] += new[i];
                }
            });
            (d, next, rho) = (next, d, new_rho);
        }
        if after == After::Residual {
            self.a.fetch.fill(&mut d, comm, work)?;
            self.a.each(&d, r, subtract);
        }
        work.give(d);
        work.give(next);
        Ok(())
    }
}

/// Subtracts products from what belongs to their rows.
pub(super) fn subtract(rows: Range<usize>, from: &mut [f64], products: Products<'_>) {
    from.iter_mut().zip(rows).for_each(|(from, row)| *from -= products.of(row));
}

/// A dot product of the rows of all domains, added up in the order of domains. Collective.
fn dot(domains: &Domains, x: &[f64], y: &[f64], comm: &Communicator) -> Result<f64, LinalgError> {
    let (mut partials, start) = (vec![0.0; domains.count()], domains.range().start);
    for domain in domains.own() {
        let rows = domains.rows(domain).start - start..domains.rows(domain).end - start;
        let chunks = x[rows.clone()].chunks(4096).zip(y[rows].chunks(4096));
        partials[domain] = chunks.fold(0.0, |sum, (x, y)| sum + block_dot(x, y));
    }
    comm.allgatherv(&mut partials, &domains.counts())?;
    Ok(partials.iter().sum())
}
