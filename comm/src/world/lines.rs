//! Recovery lines for layers that keep the states of ranks (`ft_proto::lines`): ranks save their states at moments of their own, and go back to them together,
//! although messages were under way.
//!
//! All ranks that compute begin with lines at one place ([`World::begin_lines`], [`World::go_back_to_line`]). While the program is [inside](World::enter_lines), what it says on the
//! communicator of these ranks, and on those that it makes, may cross lines. A rank that has saved its state [draws](World::draw_line) its line, adds up with all others what each has sent
//! ([`World::line_is_drawn`]), and goes on; some time later there is a [record](World::line_record) that belongs to the state.

use super::World;
use crate::core::{Core, LineCounts};
use crate::driver::Memory;
use ft_proto::error::CommError;
use ft_proto::lines::{self, Crossings, Log, Signature, Swallowed};
use ft_proto::plain::Plain;
use ft_proto::planted;
use ft_proto::rank::Rank;
use ft_proto::reduction::Op;
use ft_proto::wire::wait::CONTEXT_COMPUTE;

/// Numbers that name an early message: its sender, context and tag, and which one it is.
const WORDS: usize = 4;

impl World {
    /// Whether algorithms of collectives may depend on the hosts of the ranks, as they do at first.
    /// They must not where messages cross lines: a rank that is replaced may come to another host,
    /// and then repeats calls of which others have made their part before. The same on all ranks,
    /// before they begin with lines. The results are the same to the bit.
    ///
    /// # Errors
    /// A panic has unwound through a call.
    pub fn choose_by_hosts(&self, chooses: bool) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.chooses_by_hosts = chooses || planted::has(planted::FOLLOWS_HOSTS);
        core.tables += 1; // the step lists that are kept are of no use any more
        Ok(())
    }

    /// From now on messages may cross lines; the first one is here, and no message has crossed it. The same on all ranks that compute, at one place. With a `journal` a rank that is lost
    /// may go back alone ([`World::go_back_alone`]); so many may be lost at once.
    ///
    /// # Errors
    /// A panic has unwound through a call.
    pub fn begin_lines(&self, journal: Option<usize>) -> Result<(), CommError> {
        let ranks = self.size();
        let core = &mut *self.core.enter()?;
        core.driver.forget();
        core.driver.engine.begin_lines(ranks, journal);
        core.begin_lines_of_communicators();
        self.compute.set_lined(0);
        Ok(())
    }

    /// Messages cross no lines any more; all that have crossed one, or might, have come then. Collective over the ranks that compute, and outside of what lines are drawn in.
    ///
    /// # Errors
    /// A failure.
    pub fn end_lines(&self) -> Result<(), CommError> {
        // What is said next is of no line, or of another one: nothing of this may be under way then.
        let mut sent = self.draw_line()?;
        let ranks = self.size();
        self.compute.reduce_scatter(&mut sent, &vec![1; ranks], Op::Sum)?;
        self.line_is_drawn(sent[self.rank()])?;
        loop {
            let moves = self.moves()?;
            if self.line_record(true)?.is_some() {
                break;
            }
            self.await_move(moves)?;
        }
        self.core.enter()?.driver.engine.end_lines();
        Ok(())
    }

    /// The program is inside what lines are drawn in, or leaves it. Outside, what ranks say to each other they say at one place of the program, and no line is drawn.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn enter_lines(&self, inside: bool) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.driver.engine.enter_lines(inside);
        if inside {
            core.driver.resume_here();
        }
        Ok(())
    }

    /// Whether this rank can draw a line: the last one is committed, none of its operations is under way, and what it does again is done.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn may_draw_line(&self) -> Result<bool, CommError> {
        let core = &mut *self.core.enter()?;
        // A collective that the library has begun for itself is not the program's, and of others the state may have records.
        let others = core.driver.lists.operations_beside_lines(&core.driver.engine);
        Ok(others.is_some_and(|others| core.driver.engine.may_draw_line(others)))
    }

    /// Whether this rank does something again that has come out in one way before.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn is_replaying(&self) -> Result<bool, CommError> {
        Ok(self.core.enter()?.driver.engine.is_replaying())
    }

    /// Whether a message was received that its sender has sent behind the next line: this rank is late with its own.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn is_behind_line(&self) -> Result<bool, CommError> {
        Ok(self.core.enter()?.driver.engine.is_behind_line())
    }

    /// The state of this rank is saved: its line is here. Gives how many messages each rank was sent before. The sums over all ranks are what each is to be told
    /// by [`World::line_is_drawn`].
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn draw_line(&self) -> Result<Vec<u64>, CommError> {
        let core = &mut *self.core.enter()?;
        core.draw_line_of_communicators();
        core.line.collectives.insert(CONTEXT_COMPUTE, self.compute.lined());
        // What exchanges have received is in their memory.
        core.driver.lists.advance(&mut core.driver.engine, &mut Memory::none());
        let (came, sent) = core.driver.lists.recorded(&core.driver.engine);
        Ok(core.driver.engine.draw_line(came, sent))
    }

    /// All ranks have drawn the line, and had sent so many messages to this one.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn line_is_drawn(&self, sent: u64) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        if let Some(lines) = core.driver.engine.lines_mut() {
            lines.handle_drawn(sent);
        }
        Ok(())
    }

    /// What belongs to the line beside the state, once all of it is here; after a look at the links. Late messages that were only announced come when the program
    /// receives them, or now if this `fetches` them. With it comes how much has crossed the line.
    ///
    /// # Errors
    /// A failure.
    pub fn line_record(&self, fetches: bool) -> Result<Option<(Vec<u8>, Crossings)>, CommError> {
        let core = &mut *self.core.enter()?;
        core.look()?;
        core.driver.engine.keep_late(fetches);
        let mut record = write(&core.line);
        Ok(core.driver.engine.write_line(&mut record).map(|crossings| (record, crossings)))
    }

    /// Counts what has moved on the links, for [`World::await_move`].
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn moves(&self) -> Result<u64, CommError> {
        Ok(self.core.enter()?.driver.engine.moves)
    }

    /// Waits until something has moved on the links since there was this [count](World::moves).
    ///
    /// # Errors
    /// A failure.
    pub fn await_move(&self, since: u64) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.driver.waiting.enter("line", 0, None);
        core.driver.await_change_since(since)
    }

    /// The line is whole on all ranks: nobody goes back behind it.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn line_is_committed(&self) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.driver.engine.line_is_committed();
        Ok(())
    }

    /// The line of this record begins here. Its messages are not there yet: what ranks tell each other before [`World::go_back_to_line`] or [`World::go_back_alone`] is told apart from them. Empty: no
    /// message had crossed the line. Outside of what lines are drawn in; `journal` is as in [`World::begin_lines`].
    ///
    /// # Errors
    /// A panic has unwound through a call; [`CommError::Line`]: this is no record.
    pub fn restore_line(&self, record: &[u8], journal: Option<usize>) -> Result<(), CommError> {
        let (counts, log) = read(record)?;
        self.compute.set_lined(counts.collectives.get(&CONTEXT_COMPUTE).copied().unwrap_or(0));
        let ranks = self.size();
        let core = &mut *self.core.enter()?;
        core.driver.forget();
        core.go_back_to_line_of_communicators(counts);
        let early = log.early.clone();
        core.restored = (early, core.driver.engine.restore_line(ranks, journal, log));
        Ok(())
    }

    /// Goes back to the line that was [restored](World::restore_line): the messages of then are there again, and what was received too early is not sent again. Collective over the ranks that
    /// compute, and outside of what lines are drawn in.
    ///
    /// # Errors
    /// A failure; [`CommError::Line`]: what the record says of outcomes cannot be.
    pub fn go_back_to_line(&self) -> Result<(), CommError> {
        let early = self.put_back()?;
        let told: Vec<u32> = early
            .iter()
            .flat_map(|(signature, numbers)| numbers.iter().map(|number| (*signature, *number)))
            .flat_map(|(Signature { peer, context, tag }, number)| [peer, context, tag, number])
            .collect();
        let swallowed = swallowed(&self.gather(&told)?, self.rank());
        let core: &mut Core = &mut *self.core.enter()?;
        // What comes out as the line says counts as it did, though nobody else has to know of it.
        core.driver.learn().map_err(|_| CommError::Line)?;
        if let Some(lines) = core.driver.engine.lines_mut() {
            lines.swallow(swallowed);
        }
        Ok(())
    }

    /// The messages of the line that was restored are there again. Gives those that were received
    /// too early.
    pub(super) fn put_back(&self) -> Result<Swallowed, CommError> {
        let core = &mut *self.core.enter()?;
        match core.missing_context() {
            Some(context) => Err(CommError::NotMadeAgain { context }),
            None => Ok(core.put_back()),
        }
    }

    /// What all ranks that compute say, each as much as it likes. Collective.
    pub(super) fn gather<T: Plain>(&self, own: &[T]) -> Result<Vec<Vec<T>>, CommError> {
        let mut counts = vec![0_u64; self.size()];
        self.compute.allgather(&[own.len() as u64], &mut counts)?;
        let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
        let start: usize = counts[..self.rank()].iter().sum();
        let mut all = vec![T::zeroed(); counts.iter().sum()];
        all[start..start + own.len()].copy_from_slice(own);
        self.compute.allgatherv(&mut all, &counts)?;
        let mut left = &all[..];
        let each = counts.into_iter().map(|count| {
            let (own, rest) = left.split_at(count);
            left = rest;
            own.to_vec()
        });
        Ok(each.collect())
    }
}

/// What is before the log in a record, as numbers of 32 bits: the next context, how many communicators there are, and context and collectives of each.
fn write(counts: &LineCounts) -> Vec<u8> {
    let head = [counts.contexts, counts.collectives.len() as u32];
    let each = counts.collectives.iter().flat_map(|(context, number)| [*context, *number]);
    head.into_iter().chain(each).flat_map(u32::to_le_bytes).collect()
}

/// What a line has of communicators, and its log.
fn read(record: &[u8]) -> Result<(LineCounts, Log<Vec<u8>>), CommError> {
    if record.is_empty() {
        return Ok((LineCounts::default(), Log::empty(0)));
    }
    let read = || {
        let mut left = record;
        let mut word = || {
            let (word, rest) = left.split_first_chunk()?;
            left = rest;
            Some(u32::from_le_bytes(*word))
        };
        let (contexts, count) = (word()?, word()?);
        let collectives = (0..count).map(|_| Some((word()?, word()?))).collect::<Option<_>>()?;
        Some((LineCounts { contexts, collectives }, lines::read(left)?))
    };
    read().ok_or(CommError::Line)
}

/// What all receivers have told of the messages of rank `me`.
fn swallowed(told: &[Vec<u32>], me: Rank) -> Swallowed {
    let mut swallowed = Swallowed::new();
    for (receiver, told) in told.iter().enumerate() {
        for [sender, context, tag, number] in told.as_chunks::<WORDS>().0 {
            if *sender as Rank == me {
                let signature = Signature { peer: receiver as u32, context: *context, tag: *tag };
                swallowed.entry(signature).or_default().insert(*number);
            }
        }
    }
    swallowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_hears_of_its_own_messages_from_those_who_have_them() {
        let told = [vec![1, 4, 7, 0, 1, 4, 7, 2, 0, 4, 7, 1], vec![], vec![1, 5, 9, 3]];
        let swallowed = swallowed(&told, 1);
        let of = |peer, context, tag| {
            swallowed[&Signature { peer, context, tag }].iter().copied().collect::<Vec<_>>()
        };
        assert_eq!((of(0, 4, 7), of(2, 5, 9), swallowed.len()), (vec![0, 2], vec![3], 2));
    }

    #[test]
    fn what_a_line_has_of_communicators_comes_back() {
        let counts = LineCounts { contexts: 70_000, collectives: [(2, 9), (65_536, 3)].into() };
        let mut record = write(&counts);
        lines::write(&Log::<Vec<u8>>::empty(4), |bytes| bytes, &mut record);
        assert_eq!(read(&record).unwrap(), (counts, Log::empty(4)));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert_eq!(read(&[]).unwrap(), (LineCounts::default(), Log::empty(0)));
        for bytes in [&[1][..], &[0; 4], &[0; 20], &[9; 100], &[255; 8]] {
            assert_eq!(read(bytes).unwrap_err(), CommError::Line, "{bytes:?}");
        }
    }
}
