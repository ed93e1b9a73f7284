//! A stored matrix as an operator.

use std::ops::Range;

use ft_comm::Communicator;

use super::{BlockSum, LinearOperator, Sums};
use crate::{DistMatrix, LinalgError, Partition, Workspace};

impl DistMatrix {
    fn apply_then(
        &self,
        x: &[f64],
        y: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
        then: impl FnMut(usize, Range<usize>, &[f64]),
    ) -> Result<(), LinalgError> {
        self.part().require(comm)?;
        self.part().require_len("vector", x.len())?;
        self.plan()?.apply(self.rows().vals(), x, y, &mut work.halo, comm, then)
    }
}

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
        self.apply_then(x, y, comm, work, |_, _, _| ())
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
        self.apply_then(x, y, comm, work, |block, rows, y| sums[block] = sum(rows, y))
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(self.diagonal())
    }

    fn matrix(&self) -> Option<&DistMatrix> {
        Some(self)
    }
}
