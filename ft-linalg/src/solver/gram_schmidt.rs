//! How a vector becomes orthogonal to a basis: classical Gram-Schmidt, twice, each time in one message; or once, as long as
//! that is enough ([`super::orthogonality`]).
//!
//! Source: Giraud, Langou, Rozloznik, van den Eshof: Rounding error analysis of the classical Gram-Schmidt orthogonalization
//! process, Numerische Mathematik 101, 2005: twice is enough.

use ft_comm::Communicator;

use crate::{LinalgError, MultiVector, Workspace};

/// What a vector has along each column of a basis, and the square of its norm: one round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Along {
    pub(super) factors: Vec<f64>,
    square: f64,
}

impl Along {
    /// Of `w` and an orthonormal `basis`. Collective: one reduction.
    pub(super) fn of(
        basis: &MultiVector,
        w: &[f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let pairs: Vec<_> = basis.iter().chain([w]).map(|column| (column, w)).collect();
        let mut factors = work.dots_many(basis.part(), &pairs, comm)?;
        let square = factors.pop().unwrap_or(0.0);
        Ok(Self { factors, square })
    }

    /// The square of what is left, as far as rounding shows it.
    fn left(&self) -> f64 {
        self.square - self.factors.iter().map(|factor| factor * factor).sum::<f64>()
    }

    /// The norm, and what is left of it.
    pub(super) fn norms(&self) -> (f64, f64) {
        (self.square.sqrt(), self.left().sqrt())
    }

    /// Takes it off.
    fn subtract(&self, basis: &MultiVector, w: &mut [f64]) {
        let factors: Vec<f64> = self.factors.iter().map(|factor| -factor).collect();
        basis.add_to(&factors, w);
    }
}

/// Rounds after which a vector that still loses much is taken for nothing beside rounding.
const ROUNDS_MAX: usize = 4;

/// Makes `w` orthogonal to `basis`, which is orthonormal, and says what was taken off along each column, and the norm that is
/// left: 0 if that is nothing beside rounding. Collective: two reductions, rarely more.
pub(super) fn orthogonalize(
    basis: &MultiVector,
    w: &mut [f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<(Vec<f64>, f64), LinalgError> {
    let first = Along::of(basis, w, comm, work)?;
    orthogonalize_on(basis, first, w, comm, work)
}

/// As [`orthogonalize`], where the first round has been summed. Collective: one reduction, rarely
/// more.
pub(super) fn orthogonalize_on(
    basis: &MultiVector,
    first: Along,
    w: &mut [f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<(Vec<f64>, f64), LinalgError> {
    first.subtract(basis, w);
    let mut taken = first.factors;
    let mut after = 0.0;
    for round in 1..=ROUNDS_MAX {
        let next = Along::of(basis, w, comm, work)?;
        next.subtract(basis, w);
        taken.iter_mut().zip(&next.factors).for_each(|(taken, factor)| *taken += factor);
        after = next.left();
        // Twice is enough, unless the first round left little but rounding.
        if after >= 0.5 * next.square || after.is_nan() {
            break;
        }
        if round == ROUNDS_MAX {
            after = 0.0;
        }
    }
    let is_nothing = after <= first.square * (1e2 * f64::EPSILON * f64::EPSILON);
    Ok((taken, if is_nothing { 0.0 } else { after.sqrt() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partition;

    #[test]
    fn what_is_left_is_orthogonal() {
        for size in [1, 3] {
            ft_sim::ranks(size, |comm| {
                let part = Partition::of(comm, 100);
                let column = |k: usize| part.range().map(|row| ((row * k) as f64).cos()).collect::<Vec<_>>();
                let (mut basis, mut work) = (MultiVector::zeros(part.clone(), 0), Workspace::default());
                for k in 0..5 {
                    let mut w = column(k);
                    let (taken, norm) = orthogonalize(&basis, &mut w, comm, &mut work).unwrap();
                    assert_eq!(taken.len(), k);
                    w.iter_mut().for_each(|w| *w /= norm);
                    basis.push(&w);
                }
                let gram = basis.dots(&basis, comm).unwrap();
                assert!((gram - nalgebra::DMatrix::identity(5, 5)).amax() < 1e-14);
                // Once is as good for one that has much else.
                let mut other = column(9);
                let along = Along::of(&basis, &other, comm, &mut work).unwrap();
                let (_, rest) = along.norms();
                let (taken, norm) = orthogonalize(&basis, &mut other, comm, &mut work).unwrap();
                assert!((rest - norm).abs() < 1e-13 * norm);
                assert!(along.factors.iter().zip(taken).all(|(along, taken)| (along - taken).abs() < 1e-13));
                // A vector of the space leaves nothing.
                let mut w = column(3);
                let (taken, norm) = orthogonalize(&basis, &mut w, comm, &mut work).unwrap();
                assert_eq!(norm, 0.0);
                let mut sum = vec![0.0; part.local_len()];
                basis.add_to(&taken, &mut sum);
                assert!(sum.iter().zip(column(3)).all(|(x, y)| (x - y).abs() < 1e-13));
            });
        }
    }
}
