//! How a vector becomes orthogonal to a basis: classical Gram-Schmidt, twice, each time in one message; or once, where what is
//! left is no rounding.
//!
//! Sources: Giraud, Langou, Rozloznik, van den Eshof: Rounding error analysis of the classical Gram-Schmidt orthogonalization
//! process, Numerische Mathematik 101, 2005: twice is enough. Daniel, Gragg, Kaufman, Stewart: Reorthogonalization and stable
//! algorithms for updating the Gram-Schmidt QR factorization, Mathematics of Computation 30, 1976: when once is.

use ft_comm::Communicator;

use crate::{LinalgError, MultiVector, Workspace};

/// The least part of the square of a norm that is left where once is enough: rounding grows by the root of its inverse.
const LEFT: f64 = 0.01;

/// What `w` has along each column of `basis`, which is orthonormal, and the norm of the rest; `None` if that is so small that
/// only [`orthogonalize`] finds it. Collective: one reduction.
pub(super) fn project(
    basis: &MultiVector,
    w: &[f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<Option<(Vec<f64>, f64)>, LinalgError> {
    let pairs: Vec<_> = basis.iter().chain([w]).map(|column| (column, w)).collect();
    let mut along = work.dots_many(basis.part(), &pairs, comm)?;
    let before = along.pop().unwrap_or(0.0);
    let left = before - along.iter().map(|sum| sum * sum).sum::<f64>();
    Ok((left > LEFT * before).then(|| (along, left.sqrt())))
}

/// Makes `w` orthogonal to `basis`, which is orthonormal, and says what was taken off along each column, and the norm that is
/// left: 0 if that is nothing beside rounding. Collective: two reductions, rarely three.
pub(super) fn orthogonalize(
    basis: &MultiVector,
    w: &mut [f64],
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<(Vec<f64>, f64), LinalgError> {
    let part = basis.part();
    let mut taken = vec![0.0; basis.columns()];
    let (mut norms, mut off) = ([0.0; 2], 0.0);
    for before in &mut norms {
        let w_now = &*w;
        let pairs: Vec<_> = basis.iter().chain([w_now]).map(|column| (column, w_now)).collect();
        let mut sums = work.dots_many(part, &pairs, comm)?;
        *before = sums.pop().unwrap_or(0.0);
        off = sums.iter().map(|sum| sum * sum).sum();
        taken.iter_mut().zip(&sums).for_each(|(taken, sum)| *taken += sum);
        sums.iter_mut().for_each(|sum| *sum = -*sum);
        basis.add_to(&sums, w);
    }
    // Where much was taken off in the second round, the difference is rounding.
    let mut after = norms[1] - off;
    if after < 0.5 * norms[1] {
        [after] = work.dots(part, [(w, w)], comm)?;
    }
    let is_nothing = after <= norms[0] * (1e2 * f64::EPSILON * f64::EPSILON);
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
                // Once is enough for one that has much else, and only for such a one.
                let mut other = column(9);
                let (along, rest) = project(&basis, &other, comm, &mut work).unwrap().unwrap();
                let (taken, norm) = orthogonalize(&basis, &mut other, comm, &mut work).unwrap();
                assert!((rest - norm).abs() < 1e-13 * norm);
                assert!(along.iter().zip(taken).all(|(along, taken)| (along - taken).abs() < 1e-13));
                assert_eq!(project(&basis, &column(3), comm, &mut work).unwrap(), None);
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
