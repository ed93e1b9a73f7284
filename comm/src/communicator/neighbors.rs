//! Exchanges with the neighbors in a topology (MPI 4.1, section 8.6): grids and graphs.

use super::exchange::{Part, Plan, in_order};
use super::*;
use ft_proto::collective::neighbor_linear;
use ft_proto::topology::{Graph, Grid};

/// Tag of messages that go up in a dimension is twice the dimension, of those that go down one more.
const UP: u32 = 0;
const DOWN: u32 = 1;

/// A communicator whose ranks form a grid (`MPI_Cart_create`); ranks are not reordered.
#[derive(Clone, Debug)]
pub struct Cartesian {
    comm: Communicator,
    grid: Grid,
}

impl Communicator {
    /// The first ranks as a grid, with a context of their own; a rank that the grid has no place for gets none
    /// (`MPI_Cart_create`).
    ///
    /// # Errors
    /// A failure, or the grid has more places than there are ranks ([`CommError::Count`]).
    pub fn cartesian(&self, grid: Grid) -> Result<Option<Cartesian>, CommError> {
        if grid.size() > self.size() {
            let (places, size) = (grid.size(), self.size());
            return Err(CommError::Count(format!("a grid of {places} places for {size} ranks")));
        }
        let inside = self.rank() < grid.size();
        let comm = self.split(inside.then_some(0), 0)?;
        Ok(comm.map(|comm| Cartesian { comm, grid }))
    }

    /// Every destination of `graph` gets `mine`; `buf` becomes what the sources sent, in their order, each as long as
    /// `mine` (`MPI_Neighbor_allgather`).
    ///
    /// # Errors
    /// A failure, or the lengths do not fit.
    pub fn neighbor_allgather<T: Plain>(
        &self,
        graph: &Graph,
        mine: &[T],
        buf: &mut [T],
    ) -> Result<(), CommError> {
        let len = mine.len();
        let sends: Vec<Part> = parts(graph.destinations(), |_| 0..len);
        let recvs = parts(graph.sources(), |at| at * len..(at + 1) * len);
        self.neighbors(mine, &sends, buf, &recvs)
    }

    /// The `d`-th destination of `graph` gets the `d`-th part of `out`; `buf` becomes what the sources sent, in their order.
    /// All parts are equally long (`MPI_Neighbor_alltoall`).
    ///
    /// # Errors
    /// As [`Communicator::neighbor_allgather`].
    pub fn neighbor_alltoall<T: Plain>(
        &self,
        graph: &Graph,
        out: &[T],
        buf: &mut [T],
    ) -> Result<(), CommError> {
        let even = |len: usize, parts: usize| len.checked_div(parts).unwrap_or(0);
        let (sent, received) =
            (even(out.len(), graph.destinations().len()), even(buf.len(), graph.sources().len()));
        let out_counts = vec![sent; graph.destinations().len()];
        self.neighbor_alltoallv(graph, out, &out_counts, buf, &vec![received; graph.sources().len()])
    }

    /// As [`Communicator::neighbor_alltoall`], with a length for each part (`MPI_Neighbor_alltoallv`).
    ///
    /// # Errors
    /// As [`Communicator::neighbor_allgather`].
    pub fn neighbor_alltoallv<T: Plain>(
        &self,
        graph: &Graph,
        out: &[T],
        out_counts: &[usize],
        buf: &mut [T],
        counts: &[usize],
    ) -> Result<(), CommError> {
        let (sends, recvs) =
            (super::collectives::starts_of(out_counts), super::collectives::starts_of(counts));
        if out_counts.len() != graph.destinations().len()
            || counts.len() != graph.sources().len()
            || sends.last() != Some(&out.len())
            || recvs.last() != Some(&buf.len())
        {
            let text = format!(
                "neighbor_alltoall of counts {out_counts:?} and {counts:?} over {} and {} elements to {} and from {} ranks",
                out.len(),
                buf.len(),
                graph.destinations().len(),
                graph.sources().len()
            );
            return Err(CommError::Count(text));
        }
        let sends = parts(graph.destinations(), |at| sends[at]..sends[at + 1]);
        let recvs = parts(graph.sources(), |at| recvs[at]..recvs[at + 1]);
        self.neighbors(out, &sends, buf, &recvs)
    }

    /// As a collective: in the context of collectives, with a number that all ranks share.
    fn neighbors<T: Plain>(
        &self,
        out: &[T],
        sends: &[Part],
        buf: &mut [T],
        recvs: &[Part],
    ) -> Result<(), CommError> {
        for part in recvs.iter().chain(sends) {
            self.world(part.peer)?;
        }
        if recvs.iter().any(|part| part.range.end > buf.len()) {
            let (sources, len) = (recvs.len(), buf.len());
            return Err(CommError::Count(format!("{sources} parts of neighbors into {len} elements")));
        }
        let edges =
            |parts: &[Part]| -> Vec<_> { parts.iter().map(|part| (part.peer, part.range.clone())).collect() };
        let steps = neighbor_linear(&edges(sends), &edges(recvs)).into_iter().map(|step| (step, ()));
        let (steps, _) = in_order(steps.collect(), size_of::<T>());
        let call = super::collectives::Call {
            name: "neighbor_alltoall",
            steps: steps.into(),
            count: None,
            root: None,
        };
        self.run(call, out, buf, None)
    }
}

fn parts(peers: &[Rank], range: impl Fn(usize) -> std::ops::Range<usize>) -> Vec<Part> {
    peers.iter().enumerate().map(|(at, &peer)| Part { peer, tag: 0, range: range(at) }).collect()
}

impl Cartesian {
    /// The communicator of the ranks of the grid.
    pub fn comm(&self) -> &Communicator {
        &self.comm
    }

    /// The grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Where this rank is in the grid (`MPI_Cart_coords`).
    pub fn coords(&self) -> Vec<usize> {
        self.grid.coords(self.comm.rank())
    }

    /// The ranks to receive from and to send to for a shift (`MPI_Cart_shift`); none beyond an open border.
    ///
    /// # Panics
    /// The grid has no such dimension.
    pub fn shift(&self, dimension: usize, displacement: isize) -> (Option<Rank>, Option<Rank>) {
        self.grid.shift(self.comm.rank(), dimension, displacement)
    }

    /// The communicator of the ranks that differ from this one in the kept dimensions only, as a grid of those
    /// (`MPI_Cart_sub`).
    ///
    /// # Errors
    /// A failure, or `keep` has not one value for each dimension.
    pub fn sub(&self, keep: &[bool]) -> Result<Self, CommError> {
        let sub = self.grid.sub(keep).map_err(|error| CommError::Count(error.to_string()))?;
        let (color, key) = (sub.colors[self.comm.rank()], sub.keys[self.comm.rank()]);
        let comm = self.comm.split(Some(color as u32), key as i64)?.expect("it has a color");
        Ok(Self { comm, grid: sub.grid })
    }

    /// Plans the exchange of the faces of a block with the neighbors in all dimensions: `sends[2 d]` goes down in
    /// dimension `d`, `sends[2 d + 1]` up, and `recvs[2 d]` comes from below, `recvs[2 d + 1]` from above. Beyond an open
    /// border nothing is sent or received.
    ///
    /// # Errors
    /// There are not two layouts for each dimension, or one to receive into names an element twice.
    pub fn plan_faces<T: Plain>(
        &self,
        sends: &[crate::Layout],
        recvs: &[crate::Layout],
    ) -> Result<Plan<T>, CommError> {
        let faces = 2 * self.grid.dimensions();
        if sends.len() != faces || recvs.len() != faces {
            let (sent, received) = (sends.len(), recvs.len());
            return Err(CommError::Count(format!("{sent} and {received} faces of a block of {faces}")));
        }
        let (mut out, mut into) = (vec![], vec![]);
        for dimension in 0..self.grid.dimensions() {
            // With two ranks in a ring both neighbors are one, and only the direction tells the messages apart.
            let (below, above) = self.shift(dimension, 1);
            let tag = |direction: u32| 2 * dimension as u32 + direction;
            let mut add = |peer: Option<Rank>, sent: u32, received: u32, face: usize| {
                let piece = |tag, layout: &crate::Layout| {
                    peer.map(|peer| super::exchange::Piece { peer, tag, layout: layout.clone() })
                };
                out.extend(piece(tag(sent), &sends[face]));
                into.extend(piece(tag(received), &recvs[face]));
            };
            add(below, DOWN, UP, 2 * dimension);
            add(above, UP, DOWN, 2 * dimension + 1);
        }
        self.comm.plan(&out, &into)
    }
}
