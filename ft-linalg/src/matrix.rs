//! A square sparse matrix whose rows are spread over the ranks: what of it is checkpointed, and how it is made.
//!
//! Products run on what is derived from the rows, see [`crate::product`].

use ft_checkpoint::{Protect, Redistribute};
use ft_comm::Communicator;

use crate::{
    CsrRows, DistVector, Format, Global, LinalgError, Partition,
    error::agree,
    halo::{HaloPlan, needed_columns},
    matrix_market::Coordinates,
    partition::{block_len, weights_of_rows},
    product::ProductPlan,
    rhs,
};

/// A square matrix, rows spread over the ranks. The rows are constant data; the plan is derived from them.
#[derive(Clone, Debug, Default, Protect, Redistribute)]
pub struct DistMatrix {
    #[protect(nested, distributed)]
    part: Partition,
    #[protect(nested, distributed)]
    rows: CsrRows,
    /// What this rank's rows are stored as: told, or found out. A replacement need not find out again.
    #[protect(constant, replicated)]
    format: Option<Format>,
    #[protect(lasting)]
    plan: Option<ProductPlan>,
}

impl DistMatrix {
    /// A matrix from this rank's rows. Collective; the cost is that of [`HaloPlan::build`].
    ///
    /// # Errors
    /// On every rank when one rank's rows do not fit the partition or contradict themselves
    /// ([`LinalgError::Length`], [`LinalgError::BadRows`], [`LinalgError::TooLarge`]; [`LinalgError::OtherRank`] on
    /// the other ranks); [`LinalgError::Comm`].
    pub fn new(part: Partition, rows: CsrRows, comm: &Communicator) -> Result<Self, LinalgError> {
        let mut matrix = Self { part, rows, ..Self::default() };
        matrix.rebuild(comm)?;
        Ok(matrix)
    }

    /// A matrix from a list of its entries that every rank has, cut by nonzeros. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::new`], and [`LinalgError::NotSquare`].
    pub fn from_coordinates(entries: &Coordinates, comm: &Communicator) -> Result<Self, LinalgError> {
        let mine = entries.require_square().and_then(|n| {
            let mut weights = weights_of_rows(n, 0..n);
            let len = block_len(n);
            entries.entries().iter().for_each(|entry| weights[entry.row as usize / len] += 1);
            let part = Partition::weighed(n, weights, comm.size(), comm.rank())?;
            let rows = entries.to_rows(part.range())?;
            Ok((part, rows))
        });
        let (part, rows) = agree(mine, comm)?;
        Self::new(part, rows, comm)
    }

    /// Makes the derived part again, after a restore, on ranks that have lost it. Collective.
    ///
    /// # Errors
    /// As [`DistMatrix::new`]; the matrix then has no plan, unless it is [`LinalgError::Comm`].
    pub fn rebuild(&mut self, comm: &Communicator) -> Result<(), LinalgError> {
        let made = self.make_plan(comm);
        match &made {
            Ok(_) | Err(LinalgError::Comm(_)) => {}
            Err(_) => self.plan = None,
        }
        if let Some(plan) = made? {
            self.format = plan.format();
            self.plan = Some(plan);
        }
        Ok(())
    }

    /// The plan, if there is none. Whose rows are as they were has one, and helps those who make theirs.
    fn make_plan(&self, comm: &Communicator) -> Result<Option<ProductPlan>, LinalgError> {
        let kept = self.plan.as_ref();
        let check = || {
            self.part.require_len("list of rows", self.rows.len())?;
            self.rows.check(self.part.n())
        };
        let fits = self.part.require(comm).and_then(|()| if kept.is_some() { Ok(()) } else { check() });
        agree(fits, comm)?;
        let needed = || needed_columns(&self.rows, &self.part);
        let needed = kept.map_or_else(needed, |plan| plan.halo().cols().to_vec());
        let halo = HaloPlan::build(&self.part, needed, comm);
        if let Err(LinalgError::Comm(error)) = halo {
            return Err(error.into());
        }
        let plan = halo.and_then(|halo| match kept {
            Some(_) => Ok(None),
            None => ProductPlan::of_rows(&self.part, &self.rows, halo, self.format).map(Some),
        });
        agree(plan, comm)
    }

    /// Stores this rank's rows in `format` from now on, also when they come out of a checkpoint; where that is `None`, in
    /// the one that a short measurement finds to be the fastest, as new matrices are. Not collective.
    ///
    /// # Errors
    /// [`LinalgError::NotRebuilt`].
    pub fn store_as(&mut self, format: Option<Format>) -> Result<(), LinalgError> {
        let halo = self.plan.take().ok_or(LinalgError::NotRebuilt)?.into_halo();
        let plan = ProductPlan::of_rows(&self.part, &self.rows, halo, format)?;
        self.format = plan.format();
        self.plan = Some(plan);
        Ok(())
    }

    /// How rows are spread.
    pub fn part(&self) -> &Partition {
        &self.part
    }

    /// This rank's rows.
    pub fn rows(&self) -> &CsrRows {
        &self.rows
    }

    /// The derived part.
    ///
    /// # Errors
    /// [`LinalgError::NotRebuilt`] after a restore without [`DistMatrix::rebuild`].
    pub fn plan(&self) -> Result<&ProductPlan, LinalgError> {
        self.plan.as_ref().ok_or(LinalgError::NotRebuilt)
    }

    /// This rank's diagonal entries, 0 where none is stored.
    pub fn diagonal(&self) -> Vec<f64> {
        self.rows.diagonal(Global(self.part.range().start))
    }

    /// `A x`, for code outside of loops. Collective.
    ///
    /// # Errors
    /// As [`crate::LinearOperator::apply`].
    pub fn multiply(&self, x: &DistVector, comm: &Communicator) -> Result<DistVector, LinalgError> {
        rhs::from_solution(self, x, comm)
    }
}

#[cfg(test)]
mod tests;
