//! How a job goes on from checkpoints that another one has left in files.
//!
//! Where the loop would begin with `init` it reads the newest whole set instead, with the results of sections that had ended and the
//! state of the one under way. What was read is protected by a first checkpoint like what `init` makes; until that is committed a
//! failure brings the loop back here. The copies that this checkpoint makes are in the memory that was read into, as fresh memory
//! takes longer than a warm file. Nothing that is read is changed or removed, but for sets that are newer and not whole when the
//! job writes its own beside them.
//!
//! With other ranks than then, the states are read by ranks in equal shares, and dealt out by the program as after a shrink; results of
//! sections that had ended as each says itself.

use ft_comm::{Communicator, Op, Rank, World};

use super::dealing::deal;
use super::kept::Past;
use crate::build;
use crate::checkpointer::RankState;
use crate::disk::{DiskError, SavedSets, Shards};
use crate::error::CheckpointError;
use crate::region::{Protect, StatePart, load};
use crate::spill::Resume;

/// From what a job goes on.
#[derive(Debug)]
pub(super) struct Resuming {
    sets: SavedSets,
    accept_build: bool,
    /// The job writes into the same folder.
    continues: bool,
    /// Ranks that computed then.
    before: usize,
    /// States of ranks of then that fell to this rank, as they were read.
    shares: Vec<(Rank, Shards)>,
}

impl Resuming {
    /// `writes_into` is the name of the folder of the job itself, if it is known beforehand.
    pub(super) fn new(resume: &Resume, writes_into: Option<&str>) -> Result<Self, DiskError> {
        let sets = SavedSets::find(&resume.folder)?;
        let continues = writes_into.is_some_and(|name| sets.folder().file_name() == Some(name.as_ref()));
        Ok(Self { sets, accept_build: resume.accept_build, continues, before: 0, shares: vec![] })
    }

    /// Reads the newest set that is whole; gives its number, and what was over then. Collective.
    pub(super) fn read(&mut self, world: &World) -> Result<(u32, Past), CheckpointError> {
        let comm = world.comm();
        // Rank 0 proposes, so that all try the same; a number that is 0 ends its list.
        let mut numbers = if comm.rank() == 0 { self.sets.complete()? } else { vec![] }.into_iter();
        let mut tried = 0;
        loop {
            let number = numbers.next();
            let before = number.map_or(Ok(0), |number| self.sets.ranks(number));
            let mut word = [u64::from(number.unwrap_or(0)), before.as_ref().map_or(0, |ranks| *ranks as u64)];
            comm.bcast(&mut word, 0)?;
            let (number, ranks) = (word[0] as u32, word[1] as usize);
            if number == 0 {
                return Err(self.sets.none_whole(tried).into());
            }
            let read = before.and_then(|_| self.read_shares(number, ranks, comm));
            if let Err(error) = &read {
                let path = self.sets.path(number);
                eprintln!("the checkpoint in {} is not used: {error}", path.display());
            }
            let mut whole = [u8::from(read.is_ok() && ranks > 0)];
            comm.allreduce(&mut whole, Op::Min)?;
            if let (1, Ok(shares)) = (whole[0], read) {
                (self.before, self.shares) = (ranks, shares);
                let past = self.past(comm)?;
                if self.continues && comm.rank() == 0 {
                    self.sets.remove_after(number)?;
                }
                return Ok((number, past));
            }
            tried += 1;
        }
    }

    fn read_shares(
        &self,
        number: u32,
        before: usize,
        comm: &Communicator,
    ) -> Result<Vec<(Rank, Shards)>, DiskError> {
        let (now, me) = (comm.size(), comm.rank());
        let mine = (0..before).filter(|old| old * now / before == me);
        mine.map(|old| Ok((old, self.sets.read(number, old)?))).collect()
    }

    /// What was over then, [dealt out](super::dealing) where other ranks go on.
    fn past(&self, comm: &Communicator) -> Result<Past, CheckpointError> {
        let past = |(rank, [constant, _]): &(Rank, Shards)| {
            Ok::<_, CheckpointError>((*rank, Past::read(&constant.1)?))
        };
        let mut pasts: Vec<(Rank, Past)> =
            self.shares.iter().map(past).collect::<Result<_, CheckpointError>>()?;
        match pasts.pop() {
            Some((_, own)) if self.before == comm.size() => Ok(own),
            last => {
                pasts.extend(last);
                deal(comm, &pasts, self.before)
            }
        }
    }

    /// Ranks that computed then.
    pub(super) fn before(&self) -> usize {
        self.before
    }

    /// The states that fell to this rank, once after each [`Resuming::read`], and the memory that the last one was read into.
    pub(super) fn states<S: Protect + Default>(&mut self) -> Result<States<S>, CheckpointError> {
        let mut memory = [vec![], vec![]];
        let state = |(rank, [constant, variable]): (Rank, Shards)| {
            build::check_resumed::<S>(variable.0.kind, self.accept_build)?;
            let mut state = S::default();
            load(&mut state, StatePart::Constant, &constant.1)?;
            load(&mut state, StatePart::Variable, &variable.1)?;
            memory = [constant.1, variable.1];
            Ok::<_, CheckpointError>(RankState { rank, state })
        };
        let states = std::mem::take(&mut self.shares).into_iter().map(state).collect::<Result<_, _>>()?;
        Ok((states, memory))
    }
}

/// States of ranks, and memory for the two parts of one.
type States<S> = (Vec<RankState<S>>, [Vec<u8>; 2]);
