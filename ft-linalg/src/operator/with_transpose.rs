//! A stored matrix of any shape that can multiply with its transpose too, for least squares.

use ft_checkpoint::{Protect, Redistribute, Redistribution};
use ft_comm::{CommError, Communicator};

use super::LinearOperator;
use crate::error::agree;
use crate::halo::{HaloPlan, needed_columns};
use crate::solver::ProtectedOperator;
use crate::{DistRows, LinalgError, Partition, Workspace};

/// A matrix of any shape, and its transpose, each by rows: twice the memory of one. Both products are sums over rows, so no
/// bit of either depends on the number of ranks. Rows of both are constant data; what a product exchanges is derived.
#[derive(Debug, Default, Protect)]
pub struct WithTranspose {
    #[protect(nested)]
    a: Rows,
    #[protect(nested)]
    t: Rows,
}

/// Fewer ranks go on with a square one only: what moves with the rows cannot move with the columns.
impl Redistribute for WithTranspose {
    fn extent(&self) -> usize {
        self.a.rows.extent()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let is_square = |part: &Self| part.a.rows.n_rows() == part.a.rows.n_cols();
        if !moves.replicated(parts.iter().map(is_square).collect())? {
            return Err(CommError::Count("a rectangular matrix cannot be dealt out over fewer ranks".into()));
        }
        let (a, t) = parts.into_iter().map(|part| (part.a.rows, part.t.rows)).unzip();
        let of = |rows| Ok::<_, CommError>(Rows { rows: DistRows::redistribute(rows, moves)?, plan: None });
        Ok(Self { a: of(a)?, t: of(t)? })
    }
}

impl WithTranspose {
    /// Of the rows of a matrix. Collective, as [`DistRows::transpose`].
    ///
    /// # Errors
    /// As there; [`LinalgError::TooLarge`] when a rank has 2^32 or more elements of a vector.
    pub fn new(rows: DistRows, comm: &Communicator) -> Result<Self, LinalgError> {
        let t = rows.transpose(comm)?;
        let mut both = Self { a: Rows { rows, plan: None }, t: Rows { rows: t, plan: None } };
        both.rebuild(comm)?;
        Ok(both)
    }

    /// The rows of the matrix.
    pub fn rows(&self) -> &DistRows {
        &self.a.rows
    }
}

impl ProtectedOperator for WithTranspose {
    fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError> {
        self.a.rebuild(self.t.rows.part(), comm)?;
        self.t.rebuild(self.a.rows.part(), comm)
    }
}

impl LinearOperator for WithTranspose {
    fn part(&self) -> &Partition {
        self.a.rows.part()
    }

    fn col_part(&self) -> &Partition {
        self.t.rows.part()
    }

    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.a.product(self.col_part(), x, y, comm, work)
    }

    fn apply_transpose(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.t.product(self.part(), x, y, comm, work)
    }
}

/// One of the two.
#[derive(Debug, Default, Protect)]
struct Rows {
    #[protect(nested)]
    rows: DistRows,
    #[protect(lasting)]
    plan: Option<Plan>,
}

#[derive(Debug)]
struct Plan {
    halo: HaloPlan,
    /// For each entry: the place of an own element, or behind these that of a halo value.
    cols: Vec<u32>,
}

impl Rows {
    /// Makes the plan, if there is none. Whose rows are as they were has one, and helps those who make theirs.
    fn rebuild(&mut self, col_part: &Partition, comm: &Communicator) -> Result<(), LinalgError> {
        let (rows, kept) = (self.rows.rows(), self.plan.as_ref());
        let check = || if kept.is_some() { Ok(()) } else { rows.check(col_part.n()) };
        agree(self.rows.part().require(comm).and_then(|()| check()), comm)?;
        let needed = kept.map_or_else(|| needed_columns(rows, col_part), |plan| plan.halo.cols().to_vec());
        let halo = HaloPlan::build(col_part, needed, comm)?;
        if kept.is_some() {
            agree(Ok(()), comm)?;
            return Ok(());
        }
        let own = col_part.range();
        let place = |col: &u64| {
            let at = *col as usize;
            let of_halo = || own.len() + halo.cols().partition_point(|needed| needed < col);
            if own.contains(&at) { at - own.start } else { of_halo() }
        };
        let wanted = own.len() + halo.cols().len();
        let cols = match u32::try_from(wanted) {
            Ok(_) => Ok(rows.cols().iter().map(|col| place(col) as u32).collect()),
            Err(_) => Err(LinalgError::TooLarge { what: "local index range", wanted: wanted as u128 }),
        };
        let cols = agree(cols, comm)?;
        self.plan = Some(Plan { halo, cols });
        Ok(())
    }

    /// `y` = these rows times `x`. Collective.
    fn product(
        &self,
        col_part: &Partition,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.rows.part().require(comm)?;
        col_part.require_len("vector", x.len())?;
        self.rows.part().require_len("product", y.len())?;
        let Plan { halo, cols } = self.plan.as_ref().ok_or(LinalgError::NotRebuilt)?;
        let halo = work.halo.begin(halo, x, comm)?.finish()?;
        let (starts, vals) = (self.rows.rows().row_ptr(), self.rows.rows().vals());
        let value = |col: u32| *x.get(col as usize).unwrap_or_else(|| &halo[col as usize - x.len()]);
        for (y, row) in y.iter_mut().zip(starts.windows(2)) {
            let entries = cols[row[0]..row[1]].iter().zip(&vals[row[0]..row[1]]);
            *y = entries.fold(0.0, |sum, (col, val)| sum + val * value(*col));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MultiVector;
    use crate::gallery::LeastSquares;

    #[test]
    fn products_are_those_of_a_dense_matrix_on_any_number_of_ranks() {
        let curve = LeastSquares::new(90, 3.0).unwrap();
        let dense = curve.rows(0..179).to_dense(90);
        let x = |row: usize| 1.0 / (row as f64 + 0.3);
        for size in [1, 2, 5] {
            ft_sim::ranks(size, |comm| {
                let part = Partition::of(comm, 179);
                let rows = DistRows::new(part.clone(), 90, curve.rows(part.range()), comm).unwrap();
                let (a, mut work) = (WithTranspose::new(rows, comm).unwrap(), Workspace::default());
                let of = |part: &Partition| MultiVector::from_fn(part.clone(), 1, |row, _| x(row.0));
                let (short, long) = (of(a.col_part()), of(a.part()));
                let mut y = vec![0.0; long.column(0).len()];
                a.apply(short.column(0), &mut y, comm, &mut work).unwrap();
                let due = &dense * nalgebra::DVector::from_fn(90, |row, _| x(row));
                assert!(y.iter().zip(a.part().range()).all(|(y, row)| (y - due[row]).abs() < 1e-14));
                let mut y = vec![0.0; short.column(0).len()];
                a.apply_transpose(long.column(0), &mut y, comm, &mut work).unwrap();
                let due = dense.tr_mul(&nalgebra::DVector::from_fn(179, |row, _| x(row)));
                assert!(y.iter().zip(a.col_part().range()).all(|(y, row)| (y - due[row]).abs() < 1e-14));
            });
        }
    }
}
