//! Checkpoints that messages cross: the copy is this rank's line, and what was under way there belongs to it (`ft_comm::World::draw_line`).
//!
//! Two phases come before those of any checkpoint. All ranks add up what they had sent to each, so each knows how much is due, and that all have drawn their lines. Then
//! what is due comes, is kept, and becomes the end of the shard. Nobody has told anybody of the shard before, so nothing else changes: what was under way
//! is protected as the state is.

use ft_comm::{CollectiveRequest, Op, World};

use super::Checkpointer;
use super::under_way::{Phase, Staging};
use crate::error::CheckpointError;
use crate::region::Protect;

impl Checkpointer {
    /// As [`Checkpointer::begin`], of a state that ends with an empty list of bytes, in the place of which the record of the line comes. Whether there is
    /// a line: with scheme `none` there is none. A parity rank has no line of its own.
    pub(crate) fn begin_line<S: Protect>(
        &mut self,
        world: &World,
        state: &mut S,
        fetches: bool,
    ) -> Result<bool, CheckpointError> {
        let _guard = self.comm.guard()?;
        let Some((mut staging, _)) = self.open(world, state)? else { return Ok(false) };
        let mut sent = if world.is_parity() { vec![] } else { world.draw_line()? };
        let ranks = self.comm.size();
        sent.resize(ranks, 0);
        staging.fetches = fetches;
        let request = self.comm.ireduce_scatter(sent, &vec![1; ranks], Op::Sum)?;
        staging.held = self.clock.now().since(staging.started);
        self.staging = Some((Phase::Drawing(request), staging));
        Ok(true)
    }

    /// Waits until what was under way at the line of this rank is there, if there is a line.
    pub(crate) fn wait_for_line(&mut self, world: &World) -> Result<(), CheckpointError> {
        while let Some((Phase::Drawing(_) | Phase::Collecting, _)) = &self.staging {
            let moves = world.moves()?;
            if !self.go_on(world, false, None)? {
                world.await_move(moves)?;
            }
        }
        Ok(())
    }

    /// From now on this rank does not wait for the program to receive what is under way.
    pub(crate) fn fetch_line(&mut self) {
        if let Some((_, staging)) = &mut self.staging {
            staging.fetches = true;
        }
    }

    /// All have drawn their lines.
    pub(super) fn drawn(
        &mut self,
        world: &World,
        request: CollectiveRequest<u64>,
    ) -> Result<Phase, CheckpointError> {
        let sent = request.wait()?;
        world.line_is_drawn(sent[self.comm.rank()])?;
        Ok(Phase::Collecting)
    }

    /// Whether the record of the line is in the shard. Whoever `waits` does so for that.
    pub(super) fn collect(
        &mut self,
        world: &World,
        waits: bool,
        staging: &mut Staging,
    ) -> Result<bool, CheckpointError> {
        if world.is_parity() || staging.is_collected {
            return Ok(true);
        }
        let (record, crossings) = loop {
            let moves = world.moves()?;
            match world.line_record(staging.fetches || waits)? {
                Some(record) => break record,
                None if waits => world.await_move(moves)?,
                None => return Ok(false),
            }
        };
        staging.is_collected = true;
        self.stats.lines.add(&crossings);
        let unsaid = staging.unsaid.as_mut().expect("nobody was told of the shard");
        if staging.copied.is_ok() {
            let [_, meta] = &mut unsaid.metas;
            let slot = self.places.target_mut().store.variable_mut(staging.epoch);
            meta.crc = slot.end_with(&record, meta.crc);
            meta.len += record.len() as u64;
        }
        Ok(true)
    }
}
