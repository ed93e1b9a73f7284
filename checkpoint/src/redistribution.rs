//! Arrays that are spread over the ranks, dealt out anew over fewer of them.
//!
//! The rule is the simplest one: an array is its blocks on all ranks, one after the other in the order of ranks, and
//! will be again. [`Redistribution`] knows which indices each rank had and is to have; [`Redistribute`], usually
//! derived, puts a state together by it, field by field.

use std::ops::Range;

use ft_comm::{CommError, Communicator, Op, Part, Plain, Rank};
use serde::{Serialize, de::DeserializeOwned};

pub use ft_checkpoint_derive::Redistribute;

use crate::checkpointer::RankState;
use crate::region::ProtectError;
use crate::region::{self, Field, Protect, Tracked, Walk, load, save};

/// What can be dealt out over fewer ranks: a part of an array, or a state of which the derive knows what each field
/// is to the other ranks.
///
/// # The derive
///
/// Every field has a role, in the same attribute as for [`Protect`]:
///
/// * `#[protect(distributed)]`: this rank's block of an array that all ranks have together, in the order of ranks; a
///   `Vec` of plain data, or whatever is `Redistribute` itself. It may have any number of elements an index (a row of
///   a matrix), the same for all indices.
/// * `#[protect(replicated)]`: the same value on all ranks, which stays.
/// * `#[protect(derived)]` and `#[protect(skip)]`: the default; `Program::rebuild` follows.
/// * `#[protect(private)]`, or nothing: of no meaning on another rank. There is no rule for it, so the derive refuses
///   it.
///
/// A program whose state derives this and whose blocks are equal deals it out in one line:
///
/// ```
/// use ft_checkpoint::{Flow, Program, Protect, Redistribute, Redistribution, RankState};
/// use ft_comm::{CommError, Op, World};
///
/// #[derive(Default, Protect, Redistribute)]
/// struct Values {
///     #[protect(constant, replicated)]
///     factor: f64,
///     #[protect(distributed)]
///     x: Vec<f64>,
///     #[protect(derived)]
///     scratch: Vec<f64>,
/// }
///
/// struct Scaling;
///
/// impl Program for Scaling {
///     type State = Values;
///     type Error = CommError;
///     const SHRINKS: bool = true;
///
///     fn redistribute(
///         &mut self,
///         shares: Vec<RankState<Values>>,
///         before: usize,
///         world: &World,
///     ) -> Result<Values, CommError> {
///         Redistribution::equal_blocks(world.comm(), &shares, before)?.deal(shares)
///     }
///     # fn init(&mut self, _: &World) -> Result<Values, CommError> {
///     #     Ok(Values { factor: 0.5, x: vec![1.0; 10], scratch: vec![] })
///     # }
///     # fn step(&mut self, state: &mut Values, _: &World, number: u64) -> Result<Flow, CommError> {
///     #     state.x.iter_mut().for_each(|x| *x *= state.factor);
///     #     Ok(if number == 3 { Flow::Done } else { Flow::Continue })
///     # }
/// }
/// # let world = World::init()?;
/// # let protection = ft_checkpoint::Protection::from_launcher(&world)?;
/// # assert_eq!(ft_checkpoint::run(world, protection, &mut Scaling)?.unwrap().x, [0.125; 10]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Where blocks are not equal (whole rows of a plate, blocks of a matrix) the program gives the ranges:
/// [`Redistribution::new`] and then [`Redistribution::deal`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be dealt out over other ranks",
    note = "a distributed field is a `Vec` of plain data or a type with `#[derive(ft_checkpoint::Redistribute)]`",
    note = "a field that is the same on all ranks is `#[protect(replicated)]`"
)]
pub trait Redistribute: Sized {
    /// How many indices this part has; [`Redistribution::equal_blocks`] takes a state's from its first distributed
    /// field.
    fn extent(&self) -> usize;

    /// Puts this rank's new part together from the `parts` of old ranks that it holds, in the order in which `moves`
    /// was told of them. Collective.
    ///
    /// # Errors
    /// A failure; [`CommError::Count`] on all ranks if a part does not fit its indices.
    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError>;
}

/// As many elements an index as there are; the same on all ranks.
impl<T: Plain> Redistribute for Vec<T> {
    fn extent(&self) -> usize {
        self.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let width = moves.width(&parts.iter().map(Vec::len).collect::<Vec<_>>())?;
        moves.run(&parts.iter().map(|part| &part[..]).collect::<Vec<_>>(), width)
    }
}

impl<T: Plain> Redistribute for Tracked<T> {
    fn extent(&self) -> usize {
        self.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let parts = parts.into_iter().map(Self::into_vec).collect();
        Ok(Self::from(Vec::redistribute(parts, moves)?))
    }
}

#[cfg(feature = "nalgebra")]
impl<T: Plain + nalgebra::Scalar> Redistribute for nalgebra::DVector<T> {
    fn extent(&self) -> usize {
        self.len()
    }

    fn redistribute(parts: Vec<Self>, moves: &Redistribution<'_>) -> Result<Self, CommError> {
        let parts = parts.into_iter().map(|part| part.data.into()).collect();
        Ok(Self::from_vec(Vec::redistribute(parts, moves)?))
    }
}

/// Where each index was, and where it is to be. Old ranks are numbered as at the checkpoint; the part that an old rank
/// had is now held by the rank that it fell to ([`crate::RankState`]).
#[derive(Debug)]
pub struct Redistribution<'a> {
    comm: &'a Communicator,
    /// Old ranks whose parts are here.
    held: Vec<Rank>,
    /// By old rank who has its part.
    holder: Vec<Rank>,
    from: Vec<Range<usize>>,
    to: Vec<Range<usize>>,
}

/// Where the indices of `rank` start, if all ranks have as many.
pub(crate) fn cut(indices: usize, rank: Rank, ranks: usize) -> usize {
    (indices as u128 * rank as u128 / ranks as u128) as usize
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// A field as a state of its own.
struct Whole<T>(T);

impl<T: Field> Protect for Whole<T> {
    fn walk<W: Walk>(&mut self, part: region::StatePart, walk: &mut W) -> Result<(), ProtectError> {
        if part == region::StatePart::Variable { self.0.walk(walk) } else { Ok(()) }
    }
}

impl<'a> Redistribution<'a> {
    /// `from` has the indices of each old rank, `to` those of each rank of `comm`; this rank has the parts of `held`.
    /// Collective, an allreduce.
    ///
    /// # Errors
    /// A failure.
    pub fn new(
        comm: &'a Communicator,
        held: Vec<Rank>,
        from: Vec<Range<usize>>,
        to: Vec<Range<usize>>,
    ) -> Result<Self, CommError> {
        let mut holder = vec![0u64; from.len()];
        held.iter().for_each(|old| holder[*old] = comm.rank() as u64 + 1);
        comm.allreduce(&mut holder, Op::Max)?;
        let holder = holder.into_iter().map(|rank| (rank as Rank).saturating_sub(1)).collect();
        Ok(Self { comm, held, holder, from, to })
    }

    /// The indices are those of the arrays in `shares` ([`Redistribute::extent`]), which fell to this rank, of
    /// `before` old ranks in all; from now on every rank has as many as any other, or one more. Collective, two
    /// allreduces.
    ///
    /// # Errors
    /// A failure.
    pub fn equal_blocks<S: Redistribute>(
        comm: &'a Communicator,
        shares: &[RankState<S>],
        before: usize,
    ) -> Result<Self, CommError> {
        let mut extents = vec![0; before];
        shares.iter().for_each(|share| extents[share.rank] = share.state.extent());
        comm.allreduce(&mut extents, Op::Max)?;
        let mut end = 0;
        let block = |extent: &usize| {
            end += extent;
            end - extent..end
        };
        let from = extents.iter().map(block).collect();
        let to = (0..comm.size())
            .map(|rank| cut(end, rank, comm.size())..cut(end, rank + 1, comm.size()))
            .collect();
        Self::new(comm, shares.iter().map(|share| share.rank).collect(), from, to)
    }

    /// This rank's new state, from those that fell to it. Collective; every element is sent once.
    ///
    /// # Errors
    /// As [`Redistribute::redistribute`].
    ///
    /// # Panics
    /// If `shares` are not those that this was made for, in the same order.
    pub fn deal<S: Redistribute>(&self, shares: Vec<RankState<S>>) -> Result<S, CommError> {
        let _guard = self.comm.guard()?;
        assert!(shares.iter().map(|share| share.rank).eq(self.held.iter().copied()), "shares of other ranks");
        S::redistribute(shares.into_iter().map(|share| share.state).collect(), self)
    }

    /// The ranks of this communicator have the new parts.
    pub fn comm(&self) -> &'a Communicator {
        self.comm
    }

    /// Indices in all.
    pub fn len(&self) -> usize {
        self.to.last().map_or(0, |range| range.end)
    }

    /// Whether there are no indices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements an index, where the parts held here have so many elements. Collective, an allreduce.
    ///
    /// # Errors
    /// A failure; [`CommError::Count`] on all ranks if some part has no whole number of elements an index, or another
    /// one than others.
    pub fn width(&self, lengths: &[usize]) -> Result<usize, CommError> {
        // The widest, the narrowest turned round, and the last old rank, counted from 1, whose part fits no width.
        let mut widths = [0, 0, 0];
        for (old, length) in self.held.iter().zip(lengths) {
            let indices = self.from[*old].len();
            if length.checked_rem(indices).unwrap_or(*length) > 0 {
                widths[2] = widths[2].max(old + 1);
            } else if let Some(width) = length.checked_div(indices) {
                widths = [widths[0].max(width), widths[1].max(usize::MAX - width), widths[2]];
            }
        }
        self.comm.allreduce(&mut widths, Op::Max)?;
        let [widest, turned, odd] = widths;
        if odd > 0 {
            let (old, indices) = (odd - 1, self.from[odd - 1].len());
            return Err(CommError::Count(format!(
                "the part of old rank {old} has no whole number of elements for each of its {indices} indices"
            )));
        }
        // Nobody has any index.
        if turned == 0 {
            return Ok(0);
        }
        match usize::MAX - turned {
            narrowest if narrowest == widest => Ok(widest),
            narrowest => Err(CommError::Count(format!(
                "one old rank has {narrowest} elements an index of a distributed array, another one {widest}"
            ))),
        }
    }

    /// The value of a field that is the same on all ranks: the first of `parts`. A rank to which nothing fell (its own
    /// memory was damaged) has it from another one. Collective, but messages are sent only in that case.
    ///
    /// # Errors
    /// A failure; [`CommError::Value`].
    pub fn replicated<T: Field>(&self, parts: Vec<T>) -> Result<T, CommError> {
        let parts = parts.into_iter().map(Whole).collect();
        self.same(parts, || Whole(T::blank())).map(|Whole(value)| value)
    }

    /// As [`Redistribution::replicated`], of a state within the state.
    ///
    /// # Errors
    /// As there.
    pub fn replicated_state<T: Protect + Default>(&self, parts: Vec<T>) -> Result<T, CommError> {
        self.same(parts, T::default)
    }

    /// As [`Redistribution::replicated`], through serde.
    ///
    /// # Errors
    /// As there.
    pub fn replicated_by_serde<T: Serialize + DeserializeOwned>(
        &self,
        parts: Vec<T>,
    ) -> Result<T, CommError> {
        let first = parts.into_iter().next();
        match self.root_for_others() {
            Some(root) => {
                let given = self.comm.bcast_value(first.as_ref(), root)?;
                Ok(first.unwrap_or(given))
            }
            None => Ok(first.expect("every rank holds a part")),
        }
    }

    fn same<T: Protect>(&self, parts: Vec<T>, blank: impl FnOnce() -> T) -> Result<T, CommError> {
        let mut first = parts.into_iter().next();
        let Some(root) = self.root_for_others() else { return Ok(first.expect("every rank holds a part")) };
        let wrong =
            |error: ProtectError| CommError::Value { from: root, what: format!("cannot be loaded: {error}") };
        let saved = |value: &mut T| -> Result<[Vec<u8>; 2], ProtectError> {
            let mut shards = [vec![], vec![]];
            save(value, region::StatePart::Constant, &mut shards[0])?;
            save(value, region::StatePart::Variable, &mut shards[1])?;
            Ok(shards)
        };
        // A state that cannot be saved is an error on all ranks: they wait for it in this
        // broadcast.
        let shards = match &mut first {
            Some(value) if self.comm.rank() == root => {
                saved(value).map_err(|error| format!("cannot be saved: {error}"))
            }
            _ => Ok([vec![], vec![]]),
        };
        let shards = self.comm.bcast_value(Some(&shards), root)?;
        let shards = shards.map_err(|what| CommError::Value { from: root, what })?;
        if let Some(first) = first {
            return Ok(first);
        }
        let mut value = blank();
        load(&mut value, region::StatePart::Constant, &shards[0]).map_err(wrong)?;
        load(&mut value, region::StatePart::Variable, &shards[1]).map_err(wrong)?;
        Ok(value)
    }

    /// A rank that holds something, if there is one that holds nothing.
    fn root_for_others(&self) -> Option<Rank> {
        let all_hold = (0..self.comm.size()).all(|rank| self.holder.contains(&rank));
        self.holder.first().filter(|_| !all_hold).copied()
    }

    /// The indices of this rank from now on.
    pub fn range(&self) -> Range<usize> {
        self.to[self.comm.rank()].clone()
    }

    /// Moves `width` elements an index: `parts` in the order of `held`. Collective; every element is sent once.
    ///
    /// # Errors
    /// A failure.
    pub fn run<T: Plain>(&self, parts: &[&[T]], width: usize) -> Result<Vec<T>, CommError> {
        let even = |count: usize| (0..=count).map(|index| index * width).collect::<Vec<_>>();
        let offsets: Vec<Vec<usize>> = self.held.iter().map(|old| even(self.from[*old].len())).collect();
        self.run_ragged(parts, &offsets, &even(self.range().len()))
    }

    /// Moves any number of elements an index: those of index `i` of a part are at `offsets[i]..offsets[i + 1]` in it,
    /// and will be at such a place of `new_offsets` here. Collective.
    ///
    /// # Errors
    /// A failure; offsets that do not fit each other ([`CommError::Count`], [`CommError::Truncated`]).
    pub fn run_ragged<T: Plain>(
        &self,
        parts: &[&[T]],
        offsets: &[Vec<usize>],
        new_offsets: &[usize],
    ) -> Result<Vec<T>, CommError> {
        let mine = self.range();
        let tag = |old: Rank| u32::try_from(old).expect("a job has fewer than 2^32 ranks");
        let mut sends = vec![];
        let mut base = 0;
        for ((old, part), offsets) in self.held.iter().zip(parts).zip(offsets) {
            let from = &self.from[*old];
            for (peer, to) in self.to.iter().enumerate() {
                let piece = overlap(from, to);
                if !piece.is_empty() {
                    let at = |index: usize| base + offsets[index - from.start];
                    sends.push(Part { peer, tag: tag(*old), range: at(piece.start)..at(piece.end) });
                }
            }
            base += part.len();
        }
        let mut recvs = vec![];
        for (old, from) in self.from.iter().enumerate() {
            let piece = overlap(from, &mine);
            if !piece.is_empty() {
                let range = new_offsets[piece.start - mine.start]..new_offsets[piece.end - mine.start];
                recvs.push(Part { peer: self.holder[old], tag: tag(old), range });
            }
        }
        let out = parts.concat();
        let mut new = vec![T::zeroed(); new_offsets.last().copied().unwrap_or(0)];
        self.comm.exchange(&out, &sends, &mut new, &recvs)?;
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_sim as sim;

    /// Cuts `count` indices into `ranks` ranges.
    fn cuts(count: usize, ranks: usize) -> Vec<Range<usize>> {
        (0..ranks).map(|rank| rank * count / ranks..(rank + 1) * count / ranks).collect()
    }

    #[test]
    fn every_element_is_where_it_belongs() {
        for (count, before, after) in [(10, 4, 3), (3, 5, 2), (17, 3, 1), (1, 4, 4), (0, 2, 1), (64, 8, 7)] {
            let whole: Vec<u64> = (0..count as u64).collect();
            // Index i has i % 3 elements.
            let ragged = |range: Range<usize>| {
                let values: Vec<u64> = range.clone().flat_map(|i| vec![i as u64; i % 3]).collect();
                let mut offsets = vec![0];
                range.for_each(|i| offsets.push(offsets.last().unwrap() + i % 3));
                (values, offsets)
            };
            sim::ranks(after, |comm| {
                let from = cuts(count, before);
                // Old rank r fell to rank r % after.
                let held: Vec<usize> = (0..before).filter(|old| old % after == comm.rank()).collect();
                let to = cuts(count, after);
                let moved = Redistribution::new(comm, held.clone(), from.clone(), to.clone()).unwrap();
                let mine = to[comm.rank()].clone();
                let parts: Vec<&[u64]> = held.iter().map(|old| &whole[from[*old].clone()]).collect();
                assert_eq!(moved.run(&parts, 1).unwrap(), whole[mine.clone()]);
                let twice: Vec<Vec<u64>> =
                    parts.iter().map(|part| part.iter().flat_map(|x| [*x, x + 100]).collect()).collect();
                let got = moved.run(&twice.iter().map(|part| &part[..]).collect::<Vec<_>>(), 2).unwrap();
                assert!(got.chunks(2).zip(mine.clone()).all(|(pair, i)| pair == [i as u64, i as u64 + 100]));
                let (parts, offsets): (Vec<_>, Vec<_>) =
                    held.iter().map(|old| ragged(from[*old].clone())).unzip();
                let parts: Vec<&[u64]> = parts.iter().map(|part| &part[..]).collect();
                let (expected, new_offsets) = ragged(mine);
                assert_eq!(moved.run_ragged(&parts, &offsets, &new_offsets).unwrap(), expected);
            });
        }
    }

    #[derive(Clone, Debug, Default, PartialEq, Protect)]
    struct Settings {
        #[protect(constant)]
        tolerance: f64,
        names: Vec<String>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Protect)]
    enum Mode {
        Cold,
        Hot { degrees: u32 },
    }

    #[derive(Clone, Debug, PartialEq, Protect, Redistribute)]
    struct Wide<T: Plain> {
        #[protect(constant, distributed)]
        rows: Vec<T>,
    }

    impl<T: Plain> Default for Wide<T> {
        fn default() -> Self {
            Self { rows: vec![] }
        }
    }

    /// A field of every kind.
    #[derive(Clone, Debug, PartialEq, Protect, Redistribute)]
    struct All {
        #[protect(replicated)]
        mode: Mode,
        #[protect(distributed)]
        x: Vec<u64>,
        #[protect(nested, distributed)]
        wide: Wide<[u32; 2]>,
        #[protect(nested, replicated)]
        settings: Settings,
        #[protect(serde, constant, replicated)]
        note: Option<String>,
        #[protect(skip)]
        cache: Vec<u8>,
        #[protect(derived)]
        plan: Option<u8>,
    }

    /// The state of one of `ranks` ranks, three rows an index in `wide`.
    fn state(range: Range<usize>) -> All {
        All {
            mode: Mode::Hot { degrees: 40 },
            x: range.clone().map(|i| i as u64).collect(),
            wide: Wide { rows: range.flat_map(|i| [[i as u32, 0], [i as u32, 1], [i as u32, 2]]).collect() },
            settings: Settings { tolerance: 0.5, names: vec!["a".into(), "b".into()] },
            note: Some("note".into()),
            cache: vec![],
            plan: None,
        }
    }

    #[test]
    fn a_derived_state_is_dealt_out_by_the_roles_of_its_fields() {
        // The last one: rank 0 holds everything, the others nothing.
        for (count, before, after, spread) in
            [(10, 4, 3, true), (3, 5, 2, true), (17, 3, 1, true), (0, 2, 2, true), (9, 3, 4, false)]
        {
            sim::ranks(after, |comm| {
                let me = comm.rank();
                let falls_here = |old: &usize| if spread { old % after == me } else { me == 0 };
                let share = |rank: usize| {
                    let state =
                        All { cache: vec![1], plan: Some(2), ..state(cuts(count, before)[rank].clone()) };
                    RankState { rank, state }
                };
                let shares: Vec<RankState<All>> = (0..before).rev().filter(falls_here).map(share).collect();
                let moves = Redistribution::equal_blocks(comm, &shares, before).unwrap();
                assert_eq!((moves.len(), moves.is_empty()), (count, count == 0));
                assert_eq!(moves.deal(shares).unwrap(), state(cuts(count, after)[me].clone()));
            });
        }
    }

    #[test]
    fn parts_that_do_not_fit_their_indices_are_refused_on_all_ranks() {
        sim::ranks(2, |comm| {
            let me = comm.rank();
            let refused = |lengths: [usize; 2], text: &str| {
                let moves = Redistribution::new(comm, vec![me], cuts(8, 2), cuts(8, 2)).unwrap();
                let error = Vec::<u8>::redistribute(vec![vec![0; lengths[me]]], &moves).unwrap_err();
                assert!(matches!(&error, CommError::Count(found) if found.contains(text)), "{error}");
            };
            refused([8, 9], "old rank 1 has no whole number of elements for each of its 4 indices");
            refused([8, 12], "2 elements an index of a distributed array, another one 3");
            // Nothing belongs to a rank without indices.
            let moves = Redistribution::new(comm, vec![me], vec![0..4, 4..4], cuts(4, 2)).unwrap();
            let error = moves.width(&[[4, 1][me]]).unwrap_err();
            assert!(error.to_string().contains("old rank 1"), "{error}");
        });
    }
}
