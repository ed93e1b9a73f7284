//! Other orders of rows and columns: such that entries are near the diagonal, and cuts between ranks cross few of them.
//!
//! An order is found by rank 0, from the pattern of the whole matrix (values stay where they are), and so does not
//! depend on the number of ranks: neither do the bits of an answer in it. Rank 0 needs some 12 bytes for each entry
//! meanwhile; every rank keeps 8 bytes for each row. The rows in their new order are cut by nonzeros as any others.

use ft_checkpoint::Protect;
use ft_comm::Communicator;

use crate::{
    DistRows, DistVector, LinalgError, Partition,
    triplets::{self, triplet},
};
use graph::Graph;

mod graph;

/// An order of rows or columns `0..n`, whole on every rank. Constant data.
///
/// ```
/// # use ft_linalg::{DistRows, DistVector, Permutation};
/// # use ft_comm::World;
/// # let world = World::init()?;
/// # let comm = world.comm();
/// // A ring, numbered in leaps.
/// let n = 100;
/// let a = DistRows::from_fn(n, n, comm, |i, row| {
///     row.extend([((i + 37) % n, -1.0), (i, 2.5), ((i + n - 37) % n, -1.0)]);
/// })?;
/// let order = Permutation::reverse_cuthill_mckee(&a, comm)?;
/// let b = a.permuted(&order, &order, comm)?;
/// assert_eq!((a.bandwidth(comm)?, b.bandwidth(comm)?), (63, 2));
/// // A vector goes there and comes back.
/// let x = DistVector::from_fn(a.part().clone(), |row| row.0 as f64);
/// let there = order.apply(&x, b.part(), comm)?;
/// assert_eq!(order.undo(&there, a.part(), comm)?, x);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Protect)]
pub struct Permutation {
    /// By new index the old one.
    #[protect(constant)]
    old: Vec<u32>,
    /// By old index the new one.
    #[protect(constant)]
    new: Vec<u32>,
}

impl Permutation {
    /// From the old indices in their new order. Not collective, O(n).
    ///
    /// # Errors
    /// [`LinalgError::BadSelection`] with an index that is there twice or not below their number;
    /// [`LinalgError::TooLarge`] from 2^32 indices on.
    pub fn from_order(old: Vec<u32>) -> Result<Self, LinalgError> {
        let n = old.len();
        require_short(n)?;
        const NONE: u32 = u32::MAX;
        let mut new = vec![NONE; n];
        for (place, &index) in old.iter().enumerate() {
            match new.get_mut(index as usize) {
                Some(slot) if *slot == NONE => *slot = place as u32,
                _ => return Err(LinalgError::BadSelection { what: "index", index: index as usize, n }),
            }
        }
        Ok(Self { old, new })
    }

    /// All as it was.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] from 2^32 indices on.
    pub fn identity(n: usize) -> Result<Self, LinalgError> {
        require_short(n)?;
        Self::from_order((0..n as u32).collect())
    }

    /// The order of Cuthill and McKee, reversed, for the pattern of `A + A^T`: each connected part is traversed level by
    /// level, neighbors by degree, from a row at its edge; equal ones by index. Entries end up near the diagonal.
    /// Collective, see the module.
    ///
    /// Sources: Cuthill, McKee: Reducing the bandwidth of sparse symmetric matrices, ACM, 1969; George, Liu: An
    /// implementation of a pseudoperipheral node finder, ACM Trans. Math. Software 5, 1979.
    ///
    /// # Errors
    /// [`LinalgError::NotSquare`], [`LinalgError::TooLarge`] from 2^32 rows on, [`LinalgError::Comm`].
    pub fn reverse_cuthill_mckee(a: &DistRows, comm: &Communicator) -> Result<Self, LinalgError> {
        Self::found(a, comm, |graph| graph.reverse_cuthill_mckee())
    }

    /// Rows in `parts` groups one after the other, of about as many nonzeros each, with few entries between them; a power
    /// of two, else the next one. The rows are halved again and again, each time at a level of the traversal from a row
    /// at the edge; within a part the order is that of [`Permutation::reverse_cuthill_mckee`]. Collective, see the
    /// module.
    ///
    /// # Errors
    /// As [`Permutation::reverse_cuthill_mckee`].
    pub fn nested_bisection(a: &DistRows, parts: usize, comm: &Communicator) -> Result<Self, LinalgError> {
        Self::found(a, comm, |graph| graph.nested_bisection(parts))
    }

    fn found(
        a: &DistRows,
        comm: &Communicator,
        order: impl FnOnce(&Graph) -> Vec<u32>,
    ) -> Result<Self, LinalgError> {
        let n = a.require_square()?;
        require_short(n)?;
        let graph = Graph::gather(a, comm)?;
        let mut old = graph.map_or_else(|| vec![0; n], |graph| order(&graph));
        comm.bcast(&mut old, 0)?;
        Self::from_order(old)
    }

    /// Number of indices.
    pub fn len(&self) -> usize {
        self.old.len()
    }

    /// Whether there are no indices.
    pub fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    /// Where index `old` goes.
    ///
    /// # Panics
    /// If there is no such index.
    pub fn new_of(&self, old: usize) -> usize {
        self.new[old] as usize
    }

    /// Where index `new` comes from.
    ///
    /// # Panics
    /// If there is no such index.
    pub fn old_of(&self, new: usize) -> usize {
        self.old[new] as usize
    }

    /// The way back.
    pub fn inverse(self) -> Self {
        Self { old: self.new, new: self.old }
    }

    /// `x` in the new order, cut as `part`. Collective; each element is sent once, as 32 bytes.
    ///
    /// # Errors
    /// [`LinalgError::Length`], [`LinalgError::Comm`], [`LinalgError::WrongCommunicator`].
    pub fn apply(
        &self,
        x: &DistVector,
        part: &Partition,
        comm: &Communicator,
    ) -> Result<DistVector, LinalgError> {
        self.moved(x, part, comm, |old| self.new_of(old))
    }

    /// `x`, which is in the new order, back in the old one, cut as `part`. Collective, as [`Permutation::apply`].
    ///
    /// # Errors
    /// As there.
    pub fn undo(
        &self,
        x: &DistVector,
        part: &Partition,
        comm: &Communicator,
    ) -> Result<DistVector, LinalgError> {
        self.moved(x, part, comm, |new| self.old_of(new))
    }

    fn moved(
        &self,
        x: &DistVector,
        part: &Partition,
        comm: &Communicator,
        place: impl Fn(usize) -> usize,
    ) -> Result<DistVector, LinalgError> {
        self.require_len(x.part().n())?;
        self.require_len(part.n())?;
        x.part().require(comm)?;
        part.require(comm)?;
        let elements = x.part().range().zip(x.local());
        let entries = elements.map(|(index, value)| triplet(place(index), 0, 0, *value)).collect();
        let (_, sorted) = triplets::by_row(triplets::to_owners(entries, part, comm)?, part);
        DistVector::from_local(part.clone(), sorted.iter().map(triplets::value).collect())
    }

    pub(crate) fn require_len(&self, n: usize) -> Result<(), LinalgError> {
        let expected = self.len();
        if n == expected {
            return Ok(());
        }
        Err(LinalgError::Length { what: "what is to be permuted", expected, found: n })
    }
}

/// Indices are kept in 32 bits.
fn require_short(n: usize) -> Result<(), LinalgError> {
    if u32::try_from(n).is_ok() {
        return Ok(());
    }
    Err(LinalgError::TooLarge { what: "permutation", wanted: n as u128 })
}

#[cfg(test)]
mod tests;
