//! Chosen elements of a distributed vector, by their global rows: what goes from one grid to the next is a choice of elements,
//! both down and up.

use ft_comm::Communicator;
use ft_linalg::halo::{HaloBuffers, HaloPlan};
use ft_linalg::{LinalgError, Partition};

/// Which elements of a vector this rank needs, and for which of its places. Derived data.
pub(super) struct Gather {
    plan: HaloPlan,
    /// Place and local row.
    own: Vec<[u32; 2]>,
    /// Place and halo value.
    far: Vec<[u32; 2]>,
}

impl Gather {
    /// The elements of `wanted` rows, each once, of a vector that is spread as `part`; each comes with the place that it is for. Collective.
    pub(super) fn new(
        wanted: impl Iterator<Item = (usize, usize)>,
        part: &Partition,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let (places, rows): (Vec<usize>, Vec<u64>) = wanted.map(|(place, row)| (place, row as u64)).unzip();
        let (own, range) = (part.range(), 0..rows.len());
        let mut others: Vec<u64> =
            rows.iter().copied().filter(|row| !own.contains(&(*row as usize))).collect();
        others.sort_unstable();
        let plan = HaloPlan::build(part, others, comm)?;
        let is_own = |at: &usize| own.contains(&(rows[*at] as usize));
        let (near, far): (Vec<usize>, Vec<usize>) = range.partition(is_own);
        let halo = |row: u64| plan.cols().partition_point(|&col| col < row);
        let pair = |place: usize, source: usize| [place as u32, source as u32];
        Ok(Self {
            own: near.iter().map(|&at| pair(places[at], rows[at] as usize - own.start)).collect(),
            far: far.iter().map(|&at| pair(places[at], halo(rows[at]))).collect(),
            plan,
        })
    }

    /// Calls `put` with each place and the element of `x` that is for it. Collective.
    pub(super) fn each(
        &self,
        x: &[f64],
        comm: &Communicator,
        mut put: impl FnMut(usize, f64),
    ) -> Result<(), LinalgError> {
        let mut buffers = HaloBuffers::default();
        let halo = buffers.begin(&self.plan, x, comm)?.finish()?;
        self.own.iter().for_each(|&[place, row]| put(place as usize, x[row as usize]));
        self.far.iter().for_each(|&[place, at]| put(place as usize, halo[at as usize]));
        Ok(())
    }
}
