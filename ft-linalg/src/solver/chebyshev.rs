//! Chebyshev iteration, for symmetric positive definite `A` and `M` of which the eigenvalues of `M^-1 A` are known to lie
//! between two bounds.
//!
//! ```text
//! theta = (largest + smallest) / 2,  delta = (largest - smallest) / 2
//! r = b - A x,  d = M^-1 r / theta,  rho = delta / theta
//! until ||r|| is small:
//!     x = x + d
//!     r = r - A d
//!     rho' = 1 / (2 theta / delta - rho)
//!     d = rho' rho d + (2 rho' / delta) M^-1 r
//!     rho = rho'
//! ```
//!
//! One product per iteration, and one reduction, which only the stopping rule needs; three vectors, 104 bytes per row and
//! iteration besides those of the product. An eigenvalue above `largest` lets it diverge, one below `smallest` slows it down.
//!
//! Without bounds, they come from the tridiagonal matrix that 20 iterations of conjugate gradients for `b` make, the largest
//! one with 10 % on top, the smallest one with 10 % off.
//!
//! Sources: Golub, Varga: Chebyshev semi-iterative methods, Numerische Mathematik 3, 1961; Saad: Iterative Methods for Sparse
//! Linear Systems, 2nd edition, SIAM, 2003, algorithm 12.1 and section 6.7.3.

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;
use nalgebra::DMatrix;

use super::{Beginning, Course, Solver, Step, System, begin, require};
use crate::dot::block_dot;
use crate::parallel::blocks;
use crate::small_eigen::SmallEigen;
use crate::stop::Quantity;
use crate::vector::{axpy, divide, scale, xpby};
use crate::{LinalgError, StopCriteria, Sums, Workspace};

/// Iterations by which bounds are estimated.
const ESTIMATE: usize = 20;

/// What the Chebyshev iteration leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChebyshevOptions {
    /// When to stop.
    pub stop: StopCriteria,
    /// Smallest and largest eigenvalue of `M^-1 A`, or bounds of them; estimated where they are not given.
    pub bounds: Option<[f64; 2]>,
}

/// Chebyshev iteration.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct Chebyshev {
    #[protect(distributed)]
    x: Vec<f64>,
    /// Residual.
    #[protect(distributed)]
    r: Vec<f64>,
    /// Correction.
    #[protect(distributed)]
    d: Vec<f64>,
    #[protect(replicated)]
    rho: f64,
    /// Center of the bounds.
    #[protect(constant, replicated)]
    theta: f64,
    /// Half of their distance.
    #[protect(constant, replicated)]
    delta: f64,
    /// Follows `||r||`.
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Chebyshev {
    type Options = ChebyshevOptions;

    /// One product, two reductions; 20 products and 40 reductions more without bounds.
    fn start(
        options: &ChebyshevOptions,
        system: &System<'_>,
        x: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let Beginning { x, r, mut course } = begin(&options.stop, system, x, comm, work)?;
        let mut d = vec![0.0; r.len()];
        if course.done().is_some() {
            return Ok(Self { x, r, d, course, ..Self::default() });
        }
        let [smallest, largest] = match options.bounds {
            Some(bounds) => bounds,
            None => estimate(system, &r, comm, work)?,
        };
        let is_unfit = course.need_positive(Quantity::SmallestEigenvalue, smallest).is_some();
        if !is_unfit && (largest < smallest || !largest.is_finite()) {
            let needs = "bounds of eigenvalues, the smallest first";
            return Err(LinalgError::Unfit { what: "chebyshev", needs });
        }
        let (theta, delta) = (0.5 * (largest + smallest), 0.5 * (largest - smallest));
        system.m.apply(&r, &mut d, comm, work)?;
        divide(&mut d, theta);
        Ok(Self { x, r, d, rho: delta / theta, theta, delta, course })
    }

    /// One product, one reduction.
    fn step(
        &mut self,
        system: &System<'_>,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Step, LinalgError> {
        require(system, &self.x, comm)?;
        if let Some(done) = self.course.done() {
            return Ok(done);
        }
        let part = system.a.part();
        let (mut q, mut z) = (work.take(self.x.len()), work.take(self.x.len()));
        let mut sums = vec![Sums::default(); part.blocks_of(part.rank()).len()];
        system.a.apply(&self.d, &mut q, comm, work)?;
        let d = &self.d;
        blocks(part, (&mut self.x[..], &mut self.r[..]), &mut sums, |rows, (x, r), sums| {
            axpy(1.0, &d[rows.clone()], x);
            axpy(-1.0, &q[rows], r);
            *sums = [block_dot(r, r), 0.0, 0.0, 0.0];
        });
        let [rr] = work.sum(part, &sums, comm)?;
        system.m.apply(&self.r, &mut z, comm, work)?;
        // 2 rho' / delta and rho' rho, without the division by a delta of 0.
        let denominator = 2.0 * self.theta - self.delta * self.rho;
        let next = self.delta / denominator;
        scale(2.0 / denominator, &mut z);
        xpby(&z, next * self.rho, &mut self.d);
        self.rho = next;
        work.give(q);
        work.give(z);
        Ok(self.course.advance(rr.sqrt()))
    }

    fn x(&self) -> &[f64] {
        &self.x
    }

    fn course(&self) -> &Course {
        &self.course
    }
}

/// Bounds of the eigenvalues of `M^-1 A` that `r` has a part of; 0 if `A r` is 0. Collective.
fn estimate(
    system: &System<'_>,
    r: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<[f64; 2], LinalgError> {
    let part = system.a.part();
    let (mut r, mut z, mut q) = (r.to_vec(), vec![0.0; r.len()], vec![0.0; r.len()]);
    let mut p = z.clone();
    let (mut rz, mut beta, mut alpha) = (1.0, 0.0, 1.0);
    let mut t = DMatrix::<f64>::zeros(ESTIMATE, ESTIMATE);
    let mut size = 0;
    for at in 0..ESTIMATE {
        system.m.apply(&r, &mut z, comm, work)?;
        let [next] = work.dots(part, [(&r, &z)], comm)?;
        if at > 0 {
            beta = next / rz;
            let off = beta.sqrt() / alpha;
            (t[(at, at - 1)], t[(at - 1, at)]) = (off, off);
            t[(at, at)] = beta / alpha;
        }
        xpby(&z, beta, &mut p);
        system.a.apply(&p, &mut q, comm, work)?;
        let [curvature] = work.dots(part, [(&p, &q)], comm)?;
        let least = next.min(curvature);
        if least == 0.0 {
            // The space ends here.
            break;
        }
        if !(least > 0.0 && next.max(curvature).is_finite()) {
            // Indefinite, or not finite.
            return Ok([if least < 0.0 { least } else { f64::NAN }; 2]);
        }
        (rz, alpha) = (next, next / curvature);
        t[(at, at)] += 1.0 / alpha;
        size = at + 1;
        axpy(-alpha, &q, &mut r);
    }
    let eigen = SmallEigen::of(t.view((0, 0), (size, size)).into_owned());
    let Some(SmallEigen { values, .. }) = eigen else { return Ok([f64::NAN; 2]) };
    // No eigenvalue: the first direction is in the null space of A.
    let [smallest, largest] = [values.first(), values.last()].map(|value| value.copied().unwrap_or(0.0));
    Ok([0.9 * smallest, 1.1 * largest])
}
