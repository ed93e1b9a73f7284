//! Exchanges with the neighbors in a topology (MPI 4.1, section 8.6): grids and graphs.

use std::ops::Range;

use super::exchange::{Plan, in_order};
use super::*;
use ft_proto::collective::neighbor_linear;
use ft_proto::topology::Graph;

/// Tag of messages that go up in a dimension is twice the dimension, of those that go down one more.
const UP: u32 = 0;
const DOWN: u32 = 1;
/// What neighborhood collectives are called in messages.
const NAME: &str = "neighbor_alltoall";

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
        Ok(comm.map(|comm| Cartesian::over(comm, grid)))
    }

    /// The grid of the communicator, if it has one.
    pub(super) fn grid(&self) -> Option<Rc<Grid>> {
        self.shared.grid.borrow().clone()
    }

    /// The communicator's ranks form this grid, or none.
    pub(super) fn set_grid(&self, grid: Option<Rc<Grid>>) {
        *self.shared.grid.borrow_mut() = grid;
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
        self.neighbors(graph, (mine, |_| 0..len), (buf, |at| at * len..(at + 1) * len))
    }

    /// The `d`-th destination of `graph` gets the `d`-th part of `out`; `buf` becomes what the sources sent, in their order.
    /// All parts are equally long (`MPI_Neighbor_alltoall`).
    ///
    /// If a rank is several destinations and sources of another, the first destination is the first
    /// source, and so on. On the communicator of a [`Cartesian`] the edges of its grid match by
    /// direction, as in MPI: in a periodic dimension of one or two ranks, the part from below is
    /// the part that the rank below has sent up.
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
            return self.or_refuse(NAME, Err(CommError::Count(text)));
        }
        self.neighbors(graph, (out, |at| sends[at]..sends[at + 1]), (buf, |at| recvs[at]..recvs[at + 1]))
    }

    /// As a collective: in the context of collectives, with a number that all ranks share. Parts
    /// are given by the positions of destinations and sources.
    fn neighbors<T: Plain>(
        &self,
        graph: &Graph,
        (out, sent): (&[T], impl Fn(usize) -> Range<usize>),
        (buf, received): (&mut [T], impl Fn(usize) -> Range<usize>),
    ) -> Result<(), CommError> {
        for rank in graph.sources().iter().chain(graph.destinations()) {
            self.or_refuse(NAME, self.world(*rank))?;
        }
        let sources = graph.sources();
        if (0..sources.len()).any(|at| received(at).end > buf.len()) {
            let (sources, len) = (sources.len(), buf.len());
            let text = format!("{sources} parts of neighbors into {len} elements");
            return self.or_refuse(NAME, Err(CommError::Count(text)));
        }
        let sends: Vec<_> =
            graph.destinations().iter().enumerate().map(|(at, rank)| (*rank, sent(at))).collect();
        let order = graph.in_order_of_arrival(self.grid().as_deref(), self.rank()).into_iter();
        let recvs: Vec<_> = order.map(|at| (sources[at], received(at))).collect();
        let steps = neighbor_linear(&sends, &recvs).into_iter().map(|step| (step, ()));
        let (steps, _) = in_order(steps.collect(), size_of::<T>());
        let call = super::collectives::Call { name: NAME, steps: steps.into(), count: None, root: None };
        self.run(call, out, buf, None)
    }
}

impl Cartesian {
    /// From now on the ranks of `comm`, which are as many as the grid has, form this grid.
    fn over(comm: Communicator, grid: Grid) -> Self {
        comm.set_grid(Some(Rc::new(grid.clone())));
        Self { comm, grid }
    }

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
        Ok(Self::over(comm, sub.grid))
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
