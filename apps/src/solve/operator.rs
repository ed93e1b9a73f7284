//! What a solver multiplies by: a matrix of a file or a grid, a grid without a matrix, or a matrix with its transpose.

use ft_comm::{Communicator, Op};
use ft_linalg::operator::WithTranspose;
use ft_linalg::solver::ProtectedOperator;
use ft_linalg::{
    DistMatrix, DistRows, DistStencil, Format, LinalgError, Partition, Poisson, Stencil, matrix_market,
};

use super::SolveArgs;

/// All calls are collective.
pub(super) trait Operator: ProtectedOperator {
    fn make(args: &SolveArgs, comm: &Communicator) -> Result<Self, LinalgError>;

    /// Entries of the matrix, stored or not.
    fn nonzeros(&self, comm: &Communicator) -> Result<u64, LinalgError>;

    /// How rows are stored for products.
    fn format(&self, comm: &Communicator) -> Result<String, LinalgError>;

    /// Has rows stored as it was told.
    fn store(&mut self, _: &SolveArgs) -> Result<(), LinalgError> {
        Ok(())
    }
}

impl SolveArgs {
    fn grid(&self) -> Result<Poisson, LinalgError> {
        match (self.poisson, self.poisson2d) {
            (Some(n), _) => Poisson::new_3d(n, n, n),
            (None, n) => Poisson::new_2d(n.unwrap_or(1), n.unwrap_or(1)),
        }
    }

    fn rows(&self, comm: &Communicator) -> Result<DistRows, LinalgError> {
        let rows = match &self.matrix {
            Some(file) => {
                let (rows, added) = matrix_market::read_rows_with(file, self.duplicates.into(), comm)?;
                if added > 0 && comm.rank() == 0 {
                    let file = file.display();
                    eprintln!(
                        "{file}: duplicate entries added: {added} ('--duplicates refuse' rejects them)"
                    );
                }
                rows
            }
            None => {
                let grid = self.grid()?;
                let part = Partition::of(comm, grid.n());
                DistRows::new(part.clone(), grid.n(), grid.rows(part.range()), comm)?
            }
        };
        if self.matrix.is_some() && self.solver.needs_symmetry() {
            rows.require_symmetric(comm)?;
        }
        Ok(rows)
    }
}

impl Operator for DistMatrix {
    fn make(args: &SolveArgs, comm: &Communicator) -> Result<Self, LinalgError> {
        args.rows(comm)?.into_matrix(comm)
    }

    fn nonzeros(&self, comm: &Communicator) -> Result<u64, LinalgError> {
        sum(self.rows().nnz() as u64, comm)
    }

    fn format(&self, comm: &Communicator) -> Result<String, LinalgError> {
        let is_mine = |format: Format| self.plan().is_ok_and(|plan| plan.format() == Some(format));
        let mut used = Format::ALL.map(|format| u64::from(is_mine(format)));
        comm.allreduce(&mut used, Op::Max)?;
        let names =
            Format::ALL.iter().zip(used).filter(|(_, used)| *used == 1).map(|(format, _)| format.name());
        Ok(names.collect::<Vec<_>>().join(" and "))
    }

    fn store(&mut self, args: &SolveArgs) -> Result<(), LinalgError> {
        if args.format.is_some() { self.store_as(args.format) } else { Ok(()) }
    }
}

impl Operator for DistStencil {
    fn make(args: &SolveArgs, comm: &Communicator) -> Result<Self, LinalgError> {
        Self::new(Stencil::from(&args.grid()?), comm)
    }

    fn nonzeros(&self, _: &Communicator) -> Result<u64, LinalgError> {
        Ok(self.stencil().nonzeros())
    }

    fn format(&self, _: &Communicator) -> Result<String, LinalgError> {
        Ok("a stencil".into())
    }
}

impl Operator for WithTranspose {
    fn make(args: &SolveArgs, comm: &Communicator) -> Result<Self, LinalgError> {
        Self::new(args.rows(comm)?, comm)
    }

    fn nonzeros(&self, comm: &Communicator) -> Result<u64, LinalgError> {
        self.rows().nnz(comm)
    }

    fn format(&self, _: &Communicator) -> Result<String, LinalgError> {
        Ok("csr, with the transpose".into())
    }
}

fn sum(mine: u64, comm: &Communicator) -> Result<u64, LinalgError> {
    let mut all = [mine];
    comm.allreduce(&mut all, Op::Sum)?;
    Ok(all[0])
}
