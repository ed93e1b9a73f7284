//! Broadcast between the leaders of hosts, down a binomial tree, and from them to the ranks of each host.

use super::hosts::Hosts;
use super::{Cost, Span, Step, bcast_binomial};
use crate::rank::Rank;

/// All ranks get the `len` elements of `root`, which leads its host. `labels` tell the hosts of the ranks apart.
///
/// Cost with `h` hosts of `m` ranks: `ceil(log2 h)` rounds of the leaders, then `m - 1` messages out of each, all of `len` elements.
pub fn bcast_two_level(rank: Rank, size: usize, root: Rank, len: usize, labels: &[usize]) -> Vec<Step> {
    let hosts = Hosts::led_by(root, size, labels);
    let host = hosts.of(rank);
    let leader = hosts.leader(host);
    if rank != leader {
        return vec![Step::recv(leader, 0..len)];
    }
    let between = bcast_binomial(host, hosts.count(), hosts.of(root), len);
    let told = hosts.others(host).iter().map(|&to| Step::send(to, 0..len));
    hosts.among_leaders(between, Span::from).chain(told).collect()
}

/// Cost of [`bcast_two_level`] of `bytes` bytes on two hosts with half of the ranks each.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let (others, leaders) = Cost::of_halves(size);
    Cost { rounds: others + leaders, bytes: (others + leaders) * bytes, reduced: 0.0 }
}
