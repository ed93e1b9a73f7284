//! Recovery lines to which only those go back that were lost (`ft_proto::lines::Journal`), for layers that keep the states of ranks.

use std::rc::Rc;

use super::World;
use ft_proto::error::CommError;
use ft_proto::lines;
use ft_proto::rank::Rank;

impl World {
    /// Goes back to the line that was [restored](World::restore_line) alone, or with others that were `lost` too, while the rest goes on where it is ([`World::go_on_from_line`]): what this rank was sent since comes again, and what it sends
    /// again is swallowed. False: those that are left do not know enough of what came out; then all are to go back. Collective over the ranks that compute, and outside of what lines are drawn in.
    ///
    /// # Errors
    /// As [`World::go_back_to_line`].
    pub fn go_back_alone(&self, lost: &[Rank]) -> Result<bool, CommError> {
        self.put_back()?;
        self.settle_accounts(lost)
    }

    /// Goes on where this rank is, while those that were `lost` go back to the last line. If one was under way, it `is_committed`, or is given up. Where a call waits for the repair
    /// ([`World::set_repairs`]) it goes on by itself then, otherwise with [`World::enter_lines`]. As [`World::go_back_alone`].
    ///
    /// # Errors
    /// As [`World::go_back_to_line`].
    pub fn go_on_from_line(&self, is_committed: bool, lost: &[Rank]) -> Result<bool, CommError> {
        self.core.enter()?.driver.stay(is_committed);
        self.settle_accounts(lost)
    }

    /// All tell each other what has come of their messages, then those that have gone back what they have learned of themselves.
    fn settle_accounts(&self, lost: &[Rank]) -> Result<bool, CommError> {
        let (ranks, me) = (self.size(), self.rank());
        let told: Vec<Vec<u8>> = {
            let driver = &mut self.core.enter()?.driver;
            let tell = |of| if of == me { vec![] } else { lines::write_account(&driver.account(of, lost)) };
            (0..ranks).map(tell).collect()
        };
        let out_counts: Vec<usize> = told.iter().map(Vec::len).collect();
        let mut counts = vec![0_u64; ranks];
        let lengths: Vec<u64> = out_counts.iter().map(|count| *count as u64).collect();
        self.compute.alltoall(&lengths, &mut counts)?;
        let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
        let mut heard = vec![0; counts.iter().sum()];
        self.compute.alltoallv(&told.concat(), &out_counts, &mut heard, &counts)?;
        let learned = {
            let driver = &mut self.core.enter()?.driver;
            let mut left = &heard[..];
            for (from, count) in counts.into_iter().enumerate() {
                let (own, rest) = left.split_at(count);
                left = rest;
                if from != me {
                    let account = lines::read_account(own).ok_or(CommError::Line)?;
                    driver.settle_account(from, account, lost);
                }
            }
            let learned = lost.contains(&me).then(|| driver.learn());
            learned.map(|learned| learned.map_or_else(|_| vec![], |learned| lines::write_luggage(&learned)))
        };
        let learned = self.gather(&learned.unwrap_or_default())?;
        // Who does not know what came out says nothing.
        if lost.iter().any(|rank| learned[*rank].is_empty()) {
            return Ok(false);
        }
        let driver = &mut self.core.enter()?.driver;
        for rank in lost.iter().filter(|rank| **rank != me) {
            driver.hear(*rank, lines::read_luggage(&learned[*rank]).ok_or(CommError::Line)?);
        }
        Ok(true)
    }

    /// From now on `repairs` is called when a failure interrupts a call of the program that waits inside of lines: it is to repair the world, and all ranks are to go on from the line. Where it gives
    /// true the call waits on, otherwise it ends with what has interrupted it. None: it ends as ever.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn set_repairs(
        &self,
        repairs: Option<Rc<dyn Fn() -> Result<bool, CommError>>>,
    ) -> Result<(), CommError> {
        let door = self.core.clone();
        self.core.enter()?.set_repairs(repairs.map(|repairs| (door, repairs)));
        Ok(())
    }

    /// All ranks are to go back, although the world was repaired: calls end until [`World::goes_back`].
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn gives_way(&self) -> Result<(), CommError> {
        self.core.enter()?.driver.give_way();
        Ok(())
    }

    /// This rank goes back now: what it had under way is gone.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn goes_back(&self) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.driver.go_back();
        core.driver.forget();
        Ok(())
    }

    /// Bytes of messages that this rank keeps for those that may be lost.
    ///
    /// # Errors
    /// As [`World::begin_lines`].
    pub fn journal_bytes(&self) -> Result<u64, CommError> {
        Ok(self.core.read()?.driver.engine.journal_bytes())
    }
}
