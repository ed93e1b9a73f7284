//! The choice for each operation, from what its call knows.

use super::{Operation, Selection, Shape, equal_starts};
use crate::collective::{Step, gather_linear, scatter_linear};
use crate::rank::Rank;

/// Every method gives the steps of rank `rank` of `size`; what is said of memory holds for the algorithms too.
impl Selection {
    /// `MPI_Barrier`: no memory.
    pub fn barrier(&self, rank: Rank, size: usize) -> Vec<Step> {
        self.steps(Operation::Barrier, &Shape::new(rank, size))
    }

    /// `MPI_Bcast` of the root's buffer of `len` elements.
    pub fn bcast(&self, rank: Rank, size: usize, root: Rank, len: usize, element_bytes: usize) -> Vec<Step> {
        self.steps(Operation::Bcast, &Shape { root, len, element_bytes, ..Shape::new(rank, size) })
    }

    /// `MPI_Reduce` of buffers of `len` elements, in place; those of ranks other than the root are unspecified
    /// afterwards.
    pub fn reduce(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        len: usize,
        element_bytes: usize,
        commutative: bool,
    ) -> Vec<Step> {
        let shape = Shape { root, len, element_bytes, commutative, ..Shape::new(rank, size) };
        self.steps(Operation::Reduce, &shape)
    }

    /// `MPI_Allreduce` of buffers of `len` elements, in place.
    pub fn allreduce(
        &self,
        rank: Rank,
        size: usize,
        len: usize,
        element_bytes: usize,
        commutative: bool,
    ) -> Vec<Step> {
        let shape = Shape { len, element_bytes, commutative, ..Shape::new(rank, size) };
        self.steps(Operation::Allreduce, &shape)
    }

    /// `MPI_Scan` of buffers of `len` elements, in place.
    pub fn scan(
        &self,
        rank: Rank,
        size: usize,
        len: usize,
        element_bytes: usize,
        commutative: bool,
    ) -> Vec<Step> {
        let shape = Shape { len, element_bytes, commutative, ..Shape::new(rank, size) };
        self.steps(Operation::Scan, &shape)
    }

    /// `MPI_Exscan` of buffers of `len` elements, in place; that of rank 0 is left as it is.
    pub fn exscan(
        &self,
        rank: Rank,
        size: usize,
        len: usize,
        element_bytes: usize,
        commutative: bool,
    ) -> Vec<Step> {
        let shape = Shape { len, element_bytes, commutative, ..Shape::new(rank, size) };
        self.steps(Operation::Exscan, &shape)
    }

    /// `MPI_Reduce_scatter` of buffers of `starts[size]` elements, in place: afterwards the elements
    /// `starts[rank]..starts[rank + 1]` are reduced, and the others unspecified.
    pub fn reduce_scatter(
        &self,
        rank: Rank,
        size: usize,
        starts: &[usize],
        element_bytes: usize,
        commutative: bool,
    ) -> Vec<Step> {
        let shape = Shape { starts, element_bytes, commutative, ..Shape::new(rank, size) };
        self.steps(Operation::ReduceScatter, &shape)
    }

    /// `MPI_Gather`, or `MPI_Gatherv` where all ranks know all lengths: from inputs into the root's buffer, where
    /// rank `r`'s part is `starts[r]..starts[r + 1]` and the root's own is there already.
    pub fn gather(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        starts: &[usize],
        element_bytes: usize,
    ) -> Vec<Step> {
        let len = starts[rank + 1] - starts[rank];
        let shape = Shape { root, len, starts, element_bytes, ..Shape::new(rank, size) };
        self.steps(Operation::Gather, &shape)
    }

    /// `MPI_Gatherv`: as [`Selection::gather`], but only the root knows where the parts start, and each rank the
    /// length of its own. There is no choice: it is linear.
    ///
    /// # Panics
    /// The root does not say where the parts start.
    pub fn gatherv(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        starts_at_root: Option<&[usize]>,
        own_len: usize,
    ) -> Vec<Step> {
        gather_linear(rank, size, root, own_len, known(rank, root, starts_at_root))
    }

    /// `MPI_Scatter`, or `MPI_Scatterv` where all ranks know all lengths: from the root's input, where rank `r`'s
    /// part is `starts[r]..starts[r + 1]`, into the front of the buffers of the others. The root's own part is not
    /// moved.
    pub fn scatter(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        starts: &[usize],
        element_bytes: usize,
    ) -> Vec<Step> {
        let len = starts[rank + 1] - starts[rank];
        let shape = Shape { root, len, starts, element_bytes, ..Shape::new(rank, size) };
        self.steps(Operation::Scatter, &shape)
    }

    /// `MPI_Scatterv`: as [`Selection::scatter`], but only the root knows where the parts start, and each rank the
    /// length of its own. There is no choice: it is linear.
    ///
    /// # Panics
    /// The root does not say where the parts start.
    pub fn scatterv(
        &self,
        rank: Rank,
        size: usize,
        root: Rank,
        starts_at_root: Option<&[usize]>,
        own_len: usize,
    ) -> Vec<Step> {
        scatter_linear(rank, size, root, own_len, known(rank, root, starts_at_root))
    }

    /// `MPI_Allgather`, `MPI_Allgatherv`, in place: rank `r`'s part of each buffer is `starts[r]..starts[r + 1]`.
    pub fn allgather(&self, rank: Rank, size: usize, starts: &[usize], element_bytes: usize) -> Vec<Step> {
        self.steps(Operation::Allgather, &Shape { starts, element_bytes, ..Shape::new(rank, size) })
    }

    /// `MPI_Alltoall` with parts of `len` elements, from the input into the buffer; the part of a rank for itself
    /// is not moved.
    pub fn alltoall(&self, rank: Rank, size: usize, len: usize, element_bytes: usize) -> Vec<Step> {
        let starts = equal_starts(size, len);
        let (starts, recv_starts) = (&starts[..], &starts[..]);
        let shape = Shape { len, element_bytes, starts, recv_starts, ..Shape::new(rank, size) };
        self.steps(Operation::Alltoall, &shape)
    }

    /// `MPI_Alltoallv`: `send_starts[r]..send_starts[r + 1]` of the input goes to rank `r`, which has
    /// `recv_starts[r]..recv_starts[r + 1]` of the buffer; the part of a rank for itself is not moved.
    pub fn alltoallv(
        &self,
        rank: Rank,
        size: usize,
        send_starts: &[usize],
        recv_starts: &[usize],
    ) -> Vec<Step> {
        let shape = Shape { starts: send_starts, recv_starts, ..Shape::new(rank, size) };
        self.steps(Operation::Alltoallv, &shape)
    }
}

/// Where the parts start, which is of no use but at the root.
fn known(rank: Rank, root: Rank, starts: Option<&[usize]>) -> &[usize] {
    if rank == root { starts.expect("the root knows where the parts start") } else { &[] }
}
