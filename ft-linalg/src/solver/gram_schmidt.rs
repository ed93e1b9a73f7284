//! How a vector becomes orthogonal to a basis: classical Gram-Schmidt, twice, each time in one message.
//!
//! Source: Giraud, Langou, Rozloznik, van den Eshof: Rounding error analysis of the classical Gram-Schmidt orthogonalization
//! process, Numerische Mathematik 101, 2005: twice is enough.

use ft_comm::Communicator;

use crate::{LinalgError, MultiVector, Workspace};

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
