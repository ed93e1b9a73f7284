//! What a checkpoint of a job holds: the results of the sections that have ended, and the state of the one under way.
//!
//! The results are in the constant part, so a checkpoint within a section does not write them again. A section begins anew
//! with its first checkpoint, and so does what follows it with the one at its end.

use crate::region::{Field, Protect, ProtectError, StatePart, Walk, load, load_head, save};

/// What is over when a checkpoint is taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Past {
    /// Steps of all sections that have ended.
    pub(super) steps: u64,
    /// 1: the state of the next section follows; 0: it begins with `init`.
    under_way: u64,
    /// Where the result of each section ends, in order.
    ends: Vec<u64>,
    /// The results, one after the other.
    results: Vec<u8>,
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
        self.under_way == 1
    }

    /// The same past, as it is when the next section has a state.
    pub(super) fn with_state(&self) -> Self {
        Self { under_way: 1, ..self.clone() }
    }

    /// What is over when one more section has ended, after so many steps, with this result.
    pub(super) fn and<T: Field>(&self, steps: u64, result: T) -> Result<Self, ProtectError> {
        let mut bytes = Vec::new();
        save(&mut Value(result), StatePart::Variable, &mut bytes)?;
        let (mut ends, results) = (self.ends.clone(), [&self.results[..], &bytes].concat());
        ends.push(results.len() as u64);
        Ok(Self { steps: self.steps + steps, under_way: 0, ends, results })
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
                Field::walk(&mut self.under_way, walk)?;
                Field::walk(&mut self.ends, walk)?;
                Field::walk(&mut self.results, walk)
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
}

impl<S: Protect> Protect for Kept<S> {
    fn walk<W: Walk>(&mut self, part: StatePart, walk: &mut W) -> Result<(), ProtectError> {
        self.past.walk(part, walk)?;
        if part == StatePart::Variable {
            Field::walk(&mut self.step, walk)?;
        }
        self.state.walk(part, walk)
    }

    fn describe(text: &mut String) {
        S::describe(text);
    }
}

/// Steps of the job that were done when a checkpoint was taken, from the head of the parts of a rank's state.
pub(crate) fn steps_of(constant: &[u8], variable: &[u8]) -> Option<u64> {
    let mut step = Kept { past: Past::default(), step: 0, state: () };
    load_head(&mut step, StatePart::Variable, variable).ok()?;
    Past::read(constant).ok()?.steps.checked_add(step.step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_is_at_the_head_of_the_constant_part() {
        let past = Past::default().and(7, 2.5).unwrap().and(3, vec![1u8, 2]).unwrap();
        let mut kept = Kept { past: past.with_state(), step: 9, state: () };
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
}
