//! Matrices and vectors put together from contributions that come in any order, on any rank.
//!
//! Contributions to one place are added, and a sum keeps its bits only if its order is fixed. The order here is that of
//! the contributions' *keys*, and of their values (`f64::total_cmp`) where keys are equal; the sum starts with the
//! first. Neither who adds a contribution nor when it arrives matters, so the result has the same bits on any number of
//! ranks, as long as these add the same contributions together. A key is any number that does not depend on ranks, such
//! as that of a finite element; without one ([`Assembly::add`]: key 0) values alone decide, which is as good.
//!
//! A contribution takes 32 bytes. When it is finished each is sent once to the owner of its row, and memory is twice
//! that for a time. (What is cut are contributions, not places, so a rank holds and adds as many as others.) A matrix
//! that can be made row by row takes less: [`DistRows::from_fn`].

use ft_comm::Communicator;

use crate::{
    DistRows, DistVector, Global, LinalgError, Partition,
    error::{EntryFault, agree},
    rows::weigh,
    triplets::{self, Triplet, triplet},
};

/// A sparse matrix to be. Every rank adds what it has, then all of them finish it.
///
/// ```
/// # use ft_linalg::Assembly;
/// # use ft_comm::World;
/// # let world = World::init()?;
/// // A chain of springs: each of them pulls at both of its ends.
/// let (comm, n) = (world.comm(), 100);
/// let mut stiffness = Assembly::new(n, n);
/// for spring in (comm.rank()..n - 1).step_by(comm.size()) {
///     let ends = [spring, spring + 1];
///     stiffness.add_dense(spring as u64, &ends, &ends, &[1.0, -1.0, -1.0, 1.0]);
/// }
/// stiffness.add(0, 0, 1.0);
/// let a = stiffness.finish(comm)?.into_matrix(comm)?;
/// # assert_eq!(a.diagonal()[..2], [2.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Assembly {
    rows: usize,
    cols: usize,
    entries: Vec<Triplet>,
}

impl Assembly {
    /// A matrix of `rows` x `cols` without entries.
    pub fn new(rows: usize, cols: usize) -> Self {
        Self { rows, cols, entries: Vec::new() }
    }

    /// Adds `value` at (`row`, `col`). A value of 0 makes an entry too. What cannot be is refused when the matrix is
    /// finished.
    pub fn add(&mut self, row: usize, col: usize, value: f64) {
        self.add_keyed(0, row, col, value);
    }

    /// As [`Assembly::add`]; among the contributions to a place, those of lower `key` come first.
    pub fn add_keyed(&mut self, key: u64, row: usize, col: usize, value: f64) {
        self.entries.push(triplet(row, col, key, value));
    }

    /// Adds a dense matrix, row by row in `values`, such as that of a finite element: its rows are `rows` of this one,
    /// its columns `cols`.
    ///
    /// # Panics
    /// If there is not one value for each pair.
    pub fn add_dense(&mut self, key: u64, rows: &[usize], cols: &[usize], values: &[f64]) {
        assert_eq!(values.len(), rows.len() * cols.len(), "values of a dense matrix");
        let places = rows.iter().flat_map(|row| cols.iter().map(move |col| (*row, *col)));
        self.entries.extend(places.zip(values).map(|((row, col), value)| triplet(row, col, key, *value)));
    }

    /// Contributions of this rank so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether this rank has added nothing yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The matrix, cut by rows and contributions. Collective: an allreduce of a number for each block, and as
    /// [`Assembly::finish_on`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(self, comm: &Communicator) -> Result<DistRows, LinalgError> {
        self.check(comm)?;
        let part = weigh(self.rows, &self.entries, comm)?;
        self.deal(part, comm)
    }

    /// The matrix, cut as `part`, which every rank gives from its side. Collective; each contribution is sent once.
    ///
    /// # Errors
    /// On every rank the first contribution, or sum, by rows that cannot be: [`LinalgError::OutsideMatrix`],
    /// [`LinalgError::NotFinite`]. [`LinalgError::Length`] when `part` is of another number of rows,
    /// [`LinalgError::WrongCommunicator`], [`LinalgError::Comm`].
    pub fn finish_on(self, part: Partition, comm: &Communicator) -> Result<DistRows, LinalgError> {
        let (expected, found) = (self.rows, part.n());
        let fits = if expected == found {
            part.require(comm)
        } else {
            Err(LinalgError::Length { what: "partition", expected, found })
        };
        agree(fits, comm)?;
        self.check(comm)?;
        self.deal(part, comm)
    }

    fn check(&self, comm: &Communicator) -> Result<(), LinalgError> {
        let fault = triplets::fault(&self.entries, self.rows, self.cols);
        EntryFault::agree(fault, self.rows, self.cols, comm)
    }

    fn deal(self, part: Partition, comm: &Communicator) -> Result<DistRows, LinalgError> {
        let made = DistRows::deal_to(part, self.cols, self.entries, comm)?;
        // Finite numbers may have a sum that is not.
        let fault = made.rows().fault(Global(made.part().range().start));
        EntryFault::agree(fault, self.rows, self.cols, comm)?;
        Ok(made)
    }
}

/// A vector to be; as [`Assembly`], a matrix of one column. Where nothing is added it is 0.
#[derive(Clone, Debug)]
pub struct VectorAssembly {
    column: Assembly,
}

impl VectorAssembly {
    /// A vector of `n` elements, nothing added yet.
    pub fn new(n: usize) -> Self {
        Self { column: Assembly::new(n, 1) }
    }

    /// Adds `value` to element `row`.
    pub fn add(&mut self, row: usize, value: f64) {
        self.column.add(row, 0, value);
    }

    /// As [`VectorAssembly::add`]; among the contributions to an element, those of lower `key` come first.
    pub fn add_keyed(&mut self, key: u64, row: usize, value: f64) {
        self.column.add_keyed(key, row, 0, value);
    }

    /// The vector, cut as `part`, usually that of its matrix. Collective; each contribution is sent once.
    ///
    /// # Errors
    /// As [`Assembly::finish_on`]; the column that they name is the first.
    pub fn finish_on(self, part: Partition, comm: &Communicator) -> Result<DistVector, LinalgError> {
        let rows = self.column.finish_on(part.clone(), comm)?;
        let local = rows.rows().iter().map(|(_, vals)| vals.first().copied().unwrap_or(0.0)).collect();
        DistVector::from_local(part, local)
    }
}

#[cfg(test)]
mod tests;
