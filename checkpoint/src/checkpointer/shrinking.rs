//! Restoring a checkpoint on fewer ranks than it was taken on: survivors decode the states of the lost ranks.

use ft_comm::{Rank, Repair, World};
use ft_proto::planted;

use super::Checkpointer;
use crate::candidates::Candidates;
use crate::coding::choices::Missing;
use crate::error::CheckpointError;
use crate::exchange::Circle;
use crate::layout::{Group, Layout};
use crate::placement::{Placement, degraded, reduced};
use crate::protocol::{Event, choose};
use crate::region::{Part, Protect, load};
use crate::store::ShardMeta;

/// The state that one rank had at a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Share<S> {
    /// The rank, as ranks were numbered then.
    pub rank: Rank,
    /// Its state.
    pub state: S,
}

/// The state of a lost member that is to be decoded.
struct Wanted {
    target: usize,
    told: [Vec<ShardMeta>; 2],
    /// What its parts may be, at the rank that is to have it.
    candidates: Option<[Candidates; 2]>,
}

/// How many selections of redundant blocks are to be tried, of the group that has the most of them.
fn choices(layout: &Layout, lost: &[bool]) -> usize {
    let of = |group: &Group| {
        let gone: Vec<bool> = group.members.iter().map(|home| lost[*home]).collect();
        Missing { shards: &gone, blocks: &gone }.choices(group)
    };
    layout.groups.iter().filter_map(of).max().unwrap_or(0)
}

impl Checkpointer {
    /// After a repair that may have renumbered ranks; to be called once after each, before anything else.
    pub fn follow(&mut self, repair: &Repair) {
        self.current.follow(repair);
        self.next.iter_mut().for_each(|next| next.follow(repair));
        // If somebody has committed in the new placement, all hold that, and must not differ in which one is current;
        // otherwise all hold the old one still.
        let chosen = choose(&repair.reports).epoch.filter(|_| !planted::has(super::KEEPS_OLD_LAYOUT));
        if let Some(next) = self.next.take().filter(|next| chosen.is_some() && next.first == chosen) {
            self.current = Placement { first: None, ..next };
        }
    }

    /// Whether ranks are missing of those that took the last checkpoint.
    pub fn has_empty_homes(&self) -> bool {
        self.current.has_empty_homes()
    }

    /// The number of ranks that took the last checkpoint.
    pub fn ranks_before(&self) -> usize {
        self.current.layout.ranks()
    }

    /// Nothing is to be restored, as every rank keeps its live state: only agrees on what counts as committed.
    ///
    /// # Errors
    /// Never, unless the ledger is broken.
    pub fn pass_over(&mut self, repair: &Repair) -> Result<(), CheckpointError> {
        self.ledger.apply(Event::Interrupted)?;
        self.ledger.apply(Event::Restored(choose(&repair.reports).epoch.unwrap_or(0)))?;
        Ok(())
    }

    /// Chooses the newest checkpoint that is whole, and gives this rank its own state of then, and those of the lost ranks
    /// that fall to it: each falls to one survivor of its parity group, in turn. Collective. `None`: nothing was
    /// committed before the failure. Nothing of the checkpoint changes, so that it serves again if this fails.
    ///
    /// A lost state costs its new holder `k` times its length in, for a code of `k` data blocks.
    ///
    /// # Errors
    /// A failure; [`CheckpointError::BeyondTolerance`]: too much is lost, the job is to be ended.
    pub fn gather<S: Protect + Default>(
        &mut self,
        world: &World,
        repair: &Repair,
    ) -> Result<Option<Vec<Share<S>>>, CheckpointError> {
        let _guard = self.comm.guard()?;
        let number = u64::from(world.generation());
        let point = |phase: &str| world.fault_point("restore", number, Some(phase));
        point("plan")?;
        self.ledger.apply(Event::Interrupted)?;
        let choice = choose(&repair.reports);
        let Some(epoch) = choice.epoch else {
            self.ledger.apply(Event::Restored(0))?;
            return Ok(None);
        };
        let Placement { layout, store, tenants, .. } = &self.current;
        // What is damaged in memory counts as lost.
        let whole = choice.holders[world.rank()] && self.verify(epoch);
        let flags = self.all(whole)?;
        let is_lost = |home: &Rank| tenants[*home].is_none_or(|rank| !flags[rank]);
        let lost: Vec<Rank> = (0..tenants.len()).filter(is_lost).collect();
        layout.survives(&lost)?;
        point("exchange")?;
        let speakers = self.current.speakers(&lost);
        let mut shares: Vec<(Rank, Vec<u8>, Vec<u8>)> = vec![];
        let me = tenants.iter().position(|tenant| *tenant == Some(world.rank()));
        if let (Some(home), true) = (me, whole) {
            shares.push((home, store.constant().shard().to_vec(), store.variable(epoch).shard().to_vec()));
        }
        if let Some((group, code, member)) = &self.current.home {
            let circle = Circle { comm: &self.comm, group, code: &**code, me: *member, clock: self.clock };
            let gone: Vec<bool> = group.members.iter().map(|home| lost.contains(home)).collect();
            let speakers: Vec<Option<Rank>> = group.members.iter().map(|home| speakers[*home]).collect();
            let mut wanted = vec![];
            for target in (0..group.computing).filter(|member| gone[*member]) {
                let Some(speaker) = speakers[target] else { continue };
                let teller = (0..gone.len())
                    .find(|member| !gone[*member])
                    .expect("decodable groups have a whole member");
                let told = self.tell_metas(epoch, speakers[teller], speaker)?;
                let candidates = || [&told[0], &told[1]].map(|metas| circle.candidates(metas[target]));
                let candidates = (speaker == world.rank()).then(candidates);
                wanted.push(Wanted { target, told, candidates });
            }
            // A block may have been damaged on its way to where it is held, and only what is computed from it shows that.
            let is_lost: Vec<bool> = (0..tenants.len()).map(|home| lost.contains(&home)).collect();
            for choice in 0..choices(layout, &is_lost) {
                let mut fits = true;
                for Wanted { target, told, candidates } in &mut wanted {
                    let slots = [store.constant(), store.variable(epoch)];
                    for (at, slot) in slots.into_iter().enumerate() {
                        let mut part = candidates.as_mut().map(|parts| &mut parts[at]);
                        let mut room = part.as_ref().map(|part| part.room()).unwrap_or_default();
                        let (metas, me) = (&told[at], world.rank());
                        circle.recover(slot, metas, &gone, *target, choice, &speakers, me, &mut room)?;
                        fits &= part.as_mut().is_none_or(|part| part.add(room));
                    }
                }
                if self.all(fits)?.iter().all(|fits| *fits) {
                    break;
                }
            }
            for Wanted { target, candidates, .. } in &wanted {
                let Some([constant, variable]) = candidates else { continue };
                let home = group.members[*target];
                let (Some(constant), Some(variable)) = (constant.found(), variable.found()) else {
                    // The others will hear that this rank has ended.
                    return Err(CheckpointError::Unsound { ranks: vec![home] });
                };
                shares.push((home, constant.to_vec(), variable.to_vec()));
            }
        }
        point("verify")?;
        self.comm.barrier()?;
        self.ledger.apply(Event::Restored(epoch))?;
        self.stats.committed = epoch;
        self.is_of::<S>(self.current.store.variable(epoch))?;
        let load = |(rank, constant, variable): (Rank, Vec<u8>, Vec<u8>)| {
            let mut state = S::default();
            load(&mut state, Part::Constant, &constant)?;
            load(&mut state, Part::Variable, &variable)?;
            Ok(Share { rank, state })
        };
        shares.into_iter().map(load).collect::<Result<Vec<_>, CheckpointError>>().map(Some)
    }

    /// What `teller` knows of the shards of its group, at the ranks `teller` and `speaker`; nothing at others.
    fn tell_metas(
        &self,
        epoch: u32,
        teller: Option<Rank>,
        speaker: Rank,
    ) -> Result<[Vec<ShardMeta>; 2], CheckpointError> {
        let store = &self.current.store;
        let own = || [store.constant().members().to_vec(), store.variable(epoch).members().to_vec()];
        let me = self.comm.rank();
        if teller == Some(me) && speaker != me {
            let bytes: Vec<u8> = own().iter().flatten().flat_map(|meta| meta.to_bytes()).collect();
            self.comm.send(&bytes, speaker, super::METAS)?;
        }
        let (Some(teller), Some((group, ..))) = (teller, &self.current.home) else { return Ok(own()) };
        if speaker != me || teller == me {
            return Ok(own());
        }
        let mut bytes = vec![0; 2 * group.computing * ShardMeta::BYTES];
        self.comm.recv(&mut bytes, teller, super::METAS)?;
        let mut metas: Vec<ShardMeta> = ShardMeta::read_all(&bytes).collect();
        let variable = metas.split_off(group.computing);
        Ok([metas, variable])
    }

    /// The next checkpoint is laid over the ranks that there are now, with as much of the scheme as they can have. The
    /// current one stays until that is committed.
    ///
    /// # Errors
    /// Nothing fits.
    pub fn lay_out_anew(&mut self, world: &World) -> Result<(), CheckpointError> {
        let layout = reduced(&self.scheme, world.size(), world.hosts().as_deref())?;
        self.stats.degraded = degraded(&self.shape, &layout);
        let placement = Placement::new(world, layout, self.ledger.next_epoch())?;
        if self.has_committed() {
            self.next = Some(placement);
        } else {
            (self.current, self.next) = (placement, None);
        }
        Ok(())
    }
}
