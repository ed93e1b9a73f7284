//! A stored matrix as an operator.

use ft_comm::Communicator;

use super::{BlockSum, LinearOperator, Sums};
use crate::{DistMatrix, LinalgError, Partition, Workspace};

impl LinearOperator for DistMatrix {
    fn part(&self) -> &Partition {
        self.part()
    }

    fn apply(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.part().require(comm)?;
        self.part().require_len("vector", x.len())?;
        let plan = self.plan()?;
        let halo = work.halo.exchange(plan.halo(), x, comm)?;
        plan.product(self.rows(), 0..self.rows().len(), x, halo, y);
        Ok(())
    }

    fn apply_and_sum(
        &self,
        x: &[f64],
        y: &mut [f64],
        sum: BlockSum<'_>,
        sums: &mut [Sums],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.part().require(comm)?;
        self.part().require_len("vector", x.len())?;
        let plan = self.plan()?;
        let halo = work.halo.exchange(plan.halo(), x, comm)?;
        for (rows, sums) in self.part().local_blocks().zip(sums) {
            plan.product(self.rows(), rows.clone(), x, halo, &mut y[rows.clone()]);
            *sums = sum(rows.clone(), &y[rows]);
        }
        Ok(())
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(self.diagonal())
    }

    fn matrix(&self) -> Option<&DistMatrix> {
        Some(self)
    }
}
