//! Reduction within hosts, and from their leaders to the root, for few bytes.

use super::combining::Combining;
use super::hosts::Hosts;
use super::{Cost, Span, Step, reduce_binomial};
use crate::rank::Rank;

/// The root's buffer becomes the reduction of all buffers of `len` elements; those of other ranks are unspecified afterwards. Keeps the
/// order of ranks. The root leads its host; `labels` tell the hosts of the ranks apart.
///
/// Values are combined in the order of [`reduce_binomial`](super::reduce_binomial()), so the bits are those that it gives, wherever ranks are.
///
/// Cost with `h` hosts of `m` ranks: `m - 1` messages into the leader of each host, `h - 1` messages of leaders into the root.
pub fn reduce_two_level(rank: Rank, size: usize, root: Rank, len: usize, labels: &[usize]) -> Vec<Step> {
    let hosts = Hosts::led_by(root, size, labels);
    let host = hosts.of(rank);
    let leader = hosts.leader(host);
    if rank != leader {
        return vec![Step::send(leader, 0..len)];
    }
    let combining = Combining::new(&hosts, reduce_binomial::order(size), len);
    let given = |host: usize| Span::scratch(combining.starts[host]..combining.starts[host + 1]);
    let mut steps = combining.within(host);
    if rank != root {
        steps.push(Step::send(root, given(host)));
        return steps;
    }
    let elsewhere = (0..hosts.count()).filter(|from| *from != host);
    steps.extend(elsewhere.map(|from| Step::recv(hosts.leader(from), given(from))));
    steps.extend(combining.between());
    steps
}

/// Cost of [`reduce_two_level`] of `bytes` bytes to rank 0 on two hosts with half of the ranks each, the lower and the upper ones.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let (others, leaders) = Cost::of_halves(size);
    // Of a number that is no power of two a half is several branches of the order.
    let branches = if size.is_power_of_two() { leaders } else { f64::from(size.ilog2()) };
    Cost {
        rounds: others + leaders,
        bytes: (others + branches) * bytes,
        reduced: (others + branches + 2.0) * bytes,
    }
}
