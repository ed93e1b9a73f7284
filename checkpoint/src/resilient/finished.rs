//! The end of a run.

use std::ops::Deref;

use ft_comm::Rank;

/// The last state of a run, with the rank of this process at its end. Under
/// [`OnFailure::Shrink`](ft_comm::OnFailure::Shrink) survivors get other ranks: the process that
/// started as rank 1 ends as rank 0 if rank 0 is lost. So code that lets one rank print the answer
/// compares this `rank`, not one taken before the run. It dereferences to the state.
///
/// ```
/// # use ft_checkpoint::{CommError, Flow, MainError, Program, Protect, Protection, run};
/// # use ft_comm::World;
/// # #[derive(Default, Protect)]
/// # struct Total { sum: u64 }
/// # struct Sum;
/// # impl Program for Sum {
/// #     type State = Total;
/// #     type Error = CommError;
/// #     fn init(&mut self, _: &World) -> Result<Total, CommError> { Ok(Total { sum: 3 }) }
/// #     fn step(&mut self, _: &mut Total, _: &World, _: u64) -> Result<Flow, CommError> { Ok(Flow::Done) }
/// # }
/// # fn main() -> Result<(), MainError> {
/// # let world = World::init()?;
/// # let protection = Protection::from_launcher(&world)?;
/// let finished = run(world, protection, &mut Sum)?;
/// if let Some(finished) = finished.filter(|finished| finished.rank == 0) {
///     println!("the sum is {}", finished.sum);
/// #   assert_eq!((finished.sum, finished.size), (3, 1));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<S> {
    /// The state after the last step.
    pub state: S,
    /// The rank of this process at the end.
    pub rank: Rank,
    /// The number of ranks that compute at the end.
    pub size: usize,
}

impl<S> Finished<S> {
    /// Replaces the state by what `make` makes of it.
    pub fn map<T>(self, make: impl FnOnce(S) -> T) -> Finished<T> {
        Finished { state: make(self.state), rank: self.rank, size: self.size }
    }
}

impl<S> Deref for Finished<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}
