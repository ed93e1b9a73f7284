//! How methods for `min ||b - A x||` begin, and what they are judged by.

use ft_comm::Communicator;

use super::{Course, System, norm2, require, residual_norm, residual_of};
use crate::stop::{Quantity, relative};
use crate::{LinalgError, StopCriteria, Workspace};

pub(super) struct Beginning {
    /// The first approximation; 0 if `A^T b` is.
    pub(super) x: Vec<f64>,
    /// `b - A x`.
    pub(super) r: Vec<f64>,
    /// `A^T r`.
    pub(super) s: Vec<f64>,
    /// Follows `||A^T r||`, measured by `||A^T b||`.
    pub(super) course: Course,
}

/// As [`super::begin`].
pub(super) fn begin(
    stop: &StopCriteria,
    system: &System<'_>,
    x: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<Beginning, LinalgError> {
    require(system, x, comm)?;
    let (a, b, cols) = (system.a, system.b, system.a.col_part());
    let (mut x, mut r, mut s) = (x.to_vec(), b.to_vec(), vec![0.0; x.len()]);
    a.apply_transpose(b, &mut s, comm, work)?;
    let reference = norm2(cols, &s, comm)?;
    if reference == 0.0 {
        x.fill(0.0);
        return Ok(Beginning { x, r, s, course: Course::new(*stop, 0.0, 0.0) });
    }
    residual_of(a, &x, b, &mut r, comm, work)?;
    a.apply_transpose(&r, &mut s, comm, work)?;
    let [ss] = work.dots(cols, [(&s, &s)], comm)?;
    let mut course = Course::new(*stop, reference, ss.sqrt());
    if !(ss.is_finite() && reference.is_finite()) {
        let _ = course.need_finite(Quantity::Product, cols, &s, comm)?;
        let _ = course.need_finite(Quantity::Product, a.part(), &r, comm)?;
        let _ = course.need_finite(Quantity::FirstApproximation, cols, &x, comm)?;
        let _ = course.need_finite(Quantity::RightHandSide, a.part(), b, comm)?;
    }
    Ok(Beginning { x, r, s, course })
}

/// `||A^T (b - A x)||`. Collective.
pub(super) fn norm(
    system: &System<'_>,
    x: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<f64, LinalgError> {
    let (mut r, mut s) = (work.take(system.b.len()), work.take(x.len()));
    residual_of(system.a, x, system.b, &mut r, comm, work)?;
    system.a.apply_transpose(&r, &mut s, comm, work)?;
    let norm = norm2(system.a.col_part(), &s, comm)?;
    work.give(r);
    work.give(s);
    Ok(norm)
}

/// `||b - A x|| / ||b||`. Collective.
pub(super) fn relative_residual(
    system: &System<'_>,
    x: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<f64, LinalgError> {
    let norm = residual_norm(system.a, x, system.b, comm, work)?;
    Ok(relative(norm, norm2(system.a.part(), system.b, comm)?))
}
