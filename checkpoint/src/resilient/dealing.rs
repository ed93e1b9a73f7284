//! Results of protected runs that have ended, on other ranks than they are of.
//!
//! They are dealt out when a job is resumed, before `main` has come to any of the runs, so nobody knows their types. But each says what it
//! is to the other ranks ([`Replicated`](crate::Replicated), [`Distributed`](crate::Distributed)): what all have is what rank 0 had, and an array is
//! its blocks in the order of ranks, cut anew. What says nothing is private to its rank, and cannot be dealt out.

use std::ops::Range;

use ft_comm::{CommError, Communicator, Op, Rank};

use super::kept::Past;
use crate::error::CheckpointError;
use crate::redistribution::{Redistribution, cut};
use crate::region::{Piece, Spread, StatePart, save};

/// Bytes of a number.
const WORD: usize = size_of::<u64>();

/// Why results cannot be dealt out; the largest that any rank has found counts.
const WHY: [&str; 3] = [
    "a protected run that has ended has given each rank something of its own: what it gives has to be `Replicated` or `Distributed`",
    "what a protected run has given as `Replicated` is not the same on all ranks",
    "ranks have been through other protected runs than others",
];

/// A block of a distributed array, as its bytes have it: how many items stay together, how many there are, and these.
struct Block<'a> {
    unit: usize,
    items: usize,
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (unit, bytes) = bytes.split_first_chunk()?;
        let (items, bytes) = bytes.split_first_chunk::<WORD>()?;
        let [unit, items] = [unit, items].map(|word| u64::from_ne_bytes(*word) as usize);
        (unit > 0).then_some(Self { unit, items, bytes })
    }
}

/// The past of a job of `before` ranks on those of `comm`; `pasts` are those of old ranks that fell to this one. Rank 0 has that of rank 0.
/// Collective.
///
/// # Errors
/// A failure; [`CheckpointError::ResumedRanks`] on all ranks if it cannot be dealt out.
pub(super) fn deal(
    comm: &Communicator,
    pasts: &[(Rank, Past)],
    before: usize,
) -> Result<Past, CheckpointError> {
    let _guard = comm.guard()?;
    // If rank 0 cannot save its past, all ranks return that error: they wait for it in this
    // broadcast.
    let mut first = vec![];
    let saved = match pasts.first().filter(|_| comm.rank() == 0) {
        Some((_, past)) => save(&mut past.clone(), StatePart::Constant, &mut first),
        None => Ok(()),
    };
    let saved = saved.map(|()| first).map_err(|error| format!("cannot be saved: {error}"));
    let first = comm.bcast_value(Some(&saved), 0)?;
    let first = Past::read(&first.map_err(|what| CommError::Value { from: 0, what })?)?;
    let mut found = [pasts.iter().map(|(_, past)| fault(&first, past)).max().unwrap_or(0)];
    comm.allreduce(&mut found, Op::Max)?;
    if let Some(why) = found[0].checked_sub(1).and_then(|at| WHY.get(at).copied()) {
        return Err(CheckpointError::ResumedRanks { before, now: comm.size(), why });
    }
    let all: Vec<(Rank, Vec<_>)> = pasts.iter().map(|(rank, past)| (*rank, results(past))).collect();
    let mut dealt = first.without_results();
    for (number, (pieces, bytes)) in results(&first).into_iter().enumerate() {
        let (mut new_pieces, mut new_bytes) = (vec![], vec![]);
        for (at, Piece { spread, start, end }) in pieces.into_iter().enumerate() {
            let from = new_bytes.len();
            if spread == Spread::Distributed {
                let unit = Block::read(&bytes[start..end]).map_or(1, |block| block.unit);
                let mut blocks = vec![];
                for (rank, results) in &all {
                    let (pieces, bytes) = &results[number];
                    let block = Block::read(&bytes[pieces[at].start..pieces[at].end]);
                    blocks.extend(block.map(|block| (*rank, block.items, block.bytes)));
                }
                new_bytes.extend(deal_array(comm, unit, &blocks, before)?);
            } else {
                new_bytes.extend_from_slice(&bytes[start..end]);
            }
            new_pieces.push(Piece { spread, start: from, end: new_bytes.len() });
        }
        dealt = dealt.with_result(&new_pieces, &new_bytes);
    }
    Ok(dealt)
}

/// As [`Past::results`], where that is known to be sound.
fn results(past: &Past) -> Vec<(Vec<Piece>, &[u8])> {
    past.results().expect("they were looked at")
}

/// What is wrong with the past of a rank beside that of the first one; 0: nothing, else 1 and more: [`WHY`].
fn fault(first: &Past, past: &Past) -> usize {
    let (Some(due), Some(is)) = (first.results(), past.results()) else { return 3 };
    if (first.steps, first.is_under_way(), due.len()) != (past.steps, past.is_under_way(), is.len()) {
        return 3;
    }
    due.iter().zip(&is).map(|(due, is)| fault_of_result(due, is)).max().unwrap_or(0)
}

fn fault_of_result((due, due_bytes): &(Vec<Piece>, &[u8]), (is, bytes): &(Vec<Piece>, &[u8])) -> usize {
    let ends = is.iter().map(|piece| piece.end);
    let starts = is.iter().map(|piece| piece.start).chain([bytes.len()]);
    if !std::iter::once(0).chain(ends).eq(starts) {
        return 1;
    }
    if !due.iter().map(|piece| piece.spread).eq(is.iter().map(|piece| piece.spread)) {
        return 3;
    }
    let of = |piece: &Piece, bytes: &'_ [u8]| bytes[piece.start..piece.end].to_vec();
    let is_as_due = |(due, is): (&Piece, &Piece)| match is.spread {
        Spread::Distributed => {
            let [due, is] = [of(due, due_bytes), of(is, bytes)];
            Block::read(&due).zip(Block::read(&is)).is_some_and(|(due, is)| due.unit == is.unit)
        }
        _ => of(due, due_bytes) == of(is, bytes),
    };
    if due.iter().zip(is).all(is_as_due) { 0 } else { 2 }
}

/// An array of which these blocks, of old ranks, are here, in units that stay together; gives the bytes of this rank's new block. Collective.
fn deal_array(
    comm: &Communicator,
    unit: usize,
    blocks: &[(Rank, usize, &[u8])],
    before: usize,
) -> Result<Vec<u8>, CommError> {
    let mut lengths = vec![0; before];
    blocks.iter().for_each(|(rank, items, _)| lengths[*rank] = *items);
    comm.allreduce(&mut lengths, Op::Max)?;
    let mut total = 0;
    let range = |length: &usize| {
        total += length;
        total - length..total
    };
    let from: Vec<Range<usize>> = lengths.iter().map(range).collect();
    let start = |rank: Rank| (cut(total.div_ceil(unit), rank, comm.size()) * unit).min(total);
    let to = (0..comm.size()).map(|rank| start(rank)..start(rank + 1)).collect();
    let moves = Redistribution::new(comm, blocks.iter().map(|(rank, ..)| *rank).collect(), from, to)?;
    let parts: Vec<&[u8]> = blocks.iter().map(|(.., bytes)| *bytes).collect();
    let width = moves.width(&parts.iter().map(|part| part.len()).collect::<Vec<_>>())?;
    let items = moves.run(&parts, width)?;
    let head = [unit as u64, moves.range().len() as u64].map(u64::to_ne_bytes);
    Ok([head.as_flattened(), &items].concat())
}
