//! What a checkpoint of a job holds: the results of the sections that have ended, and the state of the one under way.
//!
//! The results are in the constant part, so a checkpoint within a section does not write them again. A section begins anew
//! with its first checkpoint, and so does what follows it with the one at its end.

use crate::region::{
    Field, Piece, Protect, ProtectError, Spread, StatePart, Walk, load, load_head, roles, save,
};

/// The state of the next section follows; without it that begins with `init`.
const UNDER_WAY: u64 = 1;
/// What is said of results follows them.
const ROLES: u64 = 2;

/// What is over when a checkpoint is taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Past {
    /// Steps of all sections that have ended.
    pub(super) steps: u64,
    /// [`UNDER_WAY`], [`ROLES`].
    flags: u64,
    /// Where the result of each section ends, in order.
    ends: Vec<u64>,
    /// The results, one after the other.
    results: Vec<u8>,
    /// Four words for each [`Piece`] of the results: the section, whether it is distributed, and where it is.
    roles: Vec<u64>,
}

impl Past {
    /// Reads it from the constant part of a checkpoint.
    pub(super) fn read(constant: &[u8]) -> Result<Self, ProtectError> {
        let mut past = Self::default();
        load_head(&mut past, StatePart::Constant, constant)?;
        Ok(past)
    }

    /// The number of sections that have ended.
    pub(super) fn sections(&self) -> usize {
        self.ends.len()
    }

    /// Whether the checkpoint has the state of the section that follows these.
    pub(super) fn is_under_way(&self) -> bool {
        self.flags & UNDER_WAY != 0
    }

    /// The same past, as it is when the next section has a state.
    pub(super) fn with_state(&self) -> Self {
        Self { flags: self.flags | UNDER_WAY, ..self.clone() }
    }

    /// What is over when one more section has ended, after so many steps, with this result.
    pub(super) fn and<T: Field>(&self, steps: u64, result: T) -> Result<Self, ProtectError> {
        let (mut value, mut bytes, part) = (Value(result), Vec::new(), StatePart::Variable);
        save(&mut value, part, &mut bytes)?;
        let past = Self { steps: self.steps + steps, flags: self.flags & !UNDER_WAY, ..self.clone() };
        Ok(past.with_result(&roles(&mut value, part)?, &bytes))
    }

    /// The same past with one more result, which has these pieces.
    pub(super) fn with_result(mut self, pieces: &[Piece], bytes: &[u8]) -> Self {
        let before = self.results.len();
        for piece in pieces {
            self.flags |= ROLES;
            let is_distributed = u64::from(piece.spread == Spread::Distributed);
            let [start, end] = [piece.start, piece.end].map(|at| (before + at) as u64);
            self.roles.extend([self.ends.len() as u64, is_distributed, start, end]);
        }
        self.results.extend_from_slice(bytes);
        self.ends.push(self.results.len() as u64);
        self
    }

    /// The same past without any result.
    pub(super) fn without_results(&self) -> Self {
        Self { steps: self.steps, flags: self.flags & UNDER_WAY, ..Self::default() }
    }

    /// The bytes of each result with its pieces; what lies in none is private to its rank. None if what is said of results does not fit them.
    pub(super) fn results(&self) -> Option<Vec<(Vec<Piece>, &[u8])>> {
        let (words, []) = self.roles.as_chunks::<4>() else { return None };
        let mut pieces = words.iter().peekable();
        let mut start = 0;
        let result = |(section, end): (usize, &u64)| {
            let end = usize::try_from(*end).ok()?;
            let bytes = self.results.get(start..end)?;
            let (mut own, mut at) = (vec![], start);
            while let Some([_, is_distributed, from, to]) = pieces.next_if(|piece| piece[0] == section as u64)
            {
                let (from, to) = (*from as usize, *to as usize);
                if from < at || to < from || to > end {
                    return None;
                }
                let spread = if *is_distributed == 1 { Spread::Distributed } else { Spread::Replicated };
                own.push(Piece { spread, start: from - start, end: to - start });
                at = to;
            }
            start = end;
            Some((own, bytes))
        };
        let results = self.ends.iter().enumerate().map(result).collect::<Option<Vec<_>>>()?;
        pieces.next().is_none().then_some(results)
    }

    /// The result of section `number`, counted from 0; none if it has not ended.
    pub(super) fn result<T: Field>(&self, number: usize) -> Option<Result<T, ProtectError>> {
        let end = *self.ends.get(number)? as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        let bytes = self.results.get(start..end)?;
        let mut value = Value(T::blank());
        Some(load(&mut value, StatePart::Variable, bytes).map(|()| value.0))
    }
}

impl Protect for Past {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        match part {
            StatePart::Constant => {
                Field::walk(&mut self.steps, walk)?;
                Field::walk(&mut self.flags, walk)?;
                Field::walk(&mut self.ends, walk)?;
                Field::walk(&mut self.results, walk)?;
                if self.flags & ROLES == 0 {
                    self.roles.clear();
                    return Ok(());
                }
                Field::walk(&mut self.roles, walk)
            }
            StatePart::Variable => Ok(()),
        }
    }
}

/// A result as a state.
struct Value<T>(T);

impl<T: Field> Protect for Value<T> {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        match part {
            StatePart::Constant => Ok(()),
            StatePart::Variable => self.0.walk(walk),
        }
    }
}

/// The state of a section with the number of steps done, which is restored with it, and what was over before.
#[derive(Default)]
pub(super) struct Kept<S> {
    /// Here for the length of a checkpoint that begins anew; in between it is nobody's business.
    pub(super) past: Past,
    pub(super) step: u64,
    pub(super) state: S,
    /// What belongs to the line of the state, where messages may cross lines.
    pub(super) line: Option<Line>,
    /// Where only the lost go back: what [`Program::rebuild`](super::Program::rebuild) receives, in the words of [`ft_comm::World::take_tape`].
    pub(super) tape: Option<Vec<u8>>,
}

/// What belongs to a line beside the state of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Not 0: the rank's work was done.
    pub(super) is_done: u64,
    /// What was under way, in the words of [`ft_comm::World::line_record`]. It is the last of all bytes, as it comes later than they.
    pub(super) record: Vec<u8>,
}

impl<S: Protect> Protect for Kept<S> {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        self.past.walk(part, walk)?;
        if part == StatePart::Variable {
            Field::walk(&mut self.step, walk)?;
        }
        self.state.walk(part, walk)?;
        if let Some(tape) = self.tape.as_mut().filter(|_| part == StatePart::Constant) {
            Field::walk(tape, walk)?;
        }
        match &mut self.line {
            Some(line) if part == StatePart::Variable => {
                Field::walk(&mut line.is_done, walk)?;
                Field::walk(&mut line.record, walk)
            }
            _ => Ok(()),
        }
    }

    fn describe(text: &mut String) {
        S::describe(text);
    }
}

/// Steps of the job that were done when a checkpoint was taken, from the head of the parts of a rank's state.
pub(crate) fn steps_of(constant: &[u8], variable: &[u8]) -> Option<u64> {
    let mut step = Kept::<()>::default();
    load_head(&mut step, StatePart::Variable, variable).ok()?;
    Past::read(constant).ok()?.steps.checked_add(step.step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Distributed, Replicated};

    #[test]
    fn the_past_is_at_the_head_of_the_constant_part() {
        let past = Past::default().and(7, 2.5).unwrap().and(3, vec![1u8, 2]).unwrap();
        let mut kept = Kept::<()> { past: past.with_state(), step: 9, ..Kept::default() };
        let mut constant = vec![];
        save(&mut kept, StatePart::Constant, &mut constant).unwrap();
        constant.extend(b"the constant part of a state");
        let read = Past::read(&constant).unwrap();
        assert_eq!((read.steps, read.sections(), read.is_under_way()), (10, 2, true));
        assert_eq!(read.result::<f64>(0), Some(Ok(2.5)));
        assert_eq!(read.result::<Vec<u8>>(1), Some(Ok(vec![1, 2])));
        assert_eq!(read.result::<()>(2), None);
        read.result::<f64>(1).unwrap().expect_err("another type");
        Past::read(&constant[..30]).expect_err("too short");
        assert!(!past.is_under_way());
    }

    #[test]
    fn what_results_are_to_the_other_ranks_is_told_with_them() {
        let past = Past::default().and(1, 7_u8).unwrap();
        let past = past.and(2, (Replicated(2.5), Distributed::new(vec![1_u16, 2]))).unwrap();
        let past = past.with_state().and(3, Replicated(())).unwrap().with_state();
        let mut constant = vec![];
        save(&mut past.clone(), StatePart::Constant, &mut constant).unwrap();
        let read = Past::read(&constant).unwrap();
        assert_eq!((read.clone(), read.is_under_way(), read.steps), (past.clone(), true, 6));
        let results = read.results().unwrap();
        let pieces = |number: usize| {
            let of = |piece: &Piece| (piece.spread, piece.start, piece.end);
            results[number].0.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!((pieces(0), results[0].1), (vec![], &[7][..]));
        assert_eq!(pieces(1), [(Spread::Replicated, 0, 8), (Spread::Distributed, 8, 8 + 16 + 4)]);
        assert_eq!((pieces(2), results[2].1), (vec![(Spread::Replicated, 0, 0)], &[][..]));
        // Put together again.
        let again = results
            .iter()
            .fold(past.without_results(), |past, (pieces, bytes)| past.with_result(pieces, bytes));
        assert_eq!(again, past);
        for roles in [&[1][..], &[1, 0, 1, 99], &[1, 1, 9, 3], &[0, 0, 0, 1, 0, 0, 0, 1], &[3, 0, 0, 0]] {
            assert_eq!(Past { roles: roles.to_vec(), ..past.clone() }.results(), None, "{roles:?}");
        }
    }
}
