//! Allreduce within hosts, and between their leaders, for few bytes.

use super::combining::Combining;
use super::fold::Fold;
use super::hosts::Hosts;
use super::{Cost, Span, Step, allgather_dissemination};
use crate::rank::Rank;

/// All buffers of `len` elements become the reduction of all buffers. Keeps the order of ranks. `labels` tell the hosts of the ranks apart.
///
/// Each leader combines in the order of [`allreduce_recursive_doubling`](super::allreduce_recursive_doubling()), so the bits are those that
/// it gives, wherever ranks are.
///
/// Cost with `h` hosts of `m` ranks: `m - 1` messages into the leader of each host, `ceil(log2 h)` rounds of the leaders, `m - 1` messages out.
/// A leader gets from each other host one value of `len` elements, if the ranks there are a whole branch of the order, and up to `m` if not.
pub fn allreduce_two_level(rank: Rank, size: usize, len: usize, labels: &[usize]) -> Vec<Step> {
    let hosts = Hosts::new(size, labels);
    let host = hosts.of(rank);
    let leader = hosts.leader(host);
    if rank != leader {
        return vec![Step::send(leader, 0..len), Step::recv(leader, 0..len)];
    }
    let combining = Combining::new(&hosts, Fold::new(size).order(), len);
    let mut steps = combining.within(host);
    let exchange = allgather_dissemination(host, hosts.count(), &combining.starts);
    steps.extend(hosts.among_leaders(exchange, Span::scratch));
    steps.extend(combining.between());
    steps.extend(hosts.others(host).iter().map(|&to| Step::send(to, 0..len)));
    steps
}

/// Cost of [`allreduce_two_level`] of `bytes` bytes on two hosts with half of the ranks each, the lower and the upper ones.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let (others, leaders) = Cost::of_halves(size);
    // Of a number that is no power of two a half is several branches of the order.
    let branches = if size.is_power_of_two() { leaders } else { f64::from(size.ilog2()) };
    Cost {
        rounds: 2.0 * others + leaders,
        bytes: (2.0 * others + branches) * bytes,
        reduced: (others + branches + 2.0) * bytes,
    }
}
