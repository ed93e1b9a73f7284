//! A stored matrix as an operator.

use std::ops::Range;

use ft_comm::Communicator;

use super::{BlockSum, LinearOperator, Sums};
use crate::{DistMatrix, LinalgError, Partition, Workspace};

impl DistMatrix {
    fn apply_then<S: Send>(
        &self,
        (x, y): (&[f64], &mut [f64]),
        sums: (&mut [S], impl Fn(Range<usize>, &[f64]) -> S + Sync),
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.part().require(comm)?;
        self.part().require_len("vector", x.len())?;
        self.plan()?.apply(self.rows().vals(), (x, y), sums, &mut work.halo, comm)
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
        self.apply_then((x, y), (&mut self.part().no_sums(), |_, _| ()), comm, work)
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
        self.apply_then((x, y), (sums, sum), comm, work)
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(self.diagonal())
    }

    fn matrix(&self) -> Option<&DistMatrix> {
        Some(self)
    }
}
