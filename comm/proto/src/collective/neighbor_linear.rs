//! Exchange with any ranks, all at once (MPI 4.1, 8.7: neighborhood collectives).

use std::ops::Range;

use super::{Span, Step};
use crate::rank::Rank;

/// Sends elements of the input and receives elements of the buffer, in the order of the lists. If a
/// rank sends several messages to another, the first receive from that rank takes the first
/// message.
///
/// Cost: one message for each entry, with no order among them.
pub fn neighbor_linear(sends: &[(Rank, Range<usize>)], recvs: &[(Rank, Range<usize>)]) -> Vec<Step> {
    // Receives first: what arrives then has its place.
    let recvs = recvs.iter().map(|(from, range)| Step::recv(*from, range.clone()));
    let sends = sends.iter().map(|(to, range)| Step::send(*to, Span::input(range.clone())));
    recvs.chain(sends).collect()
}
