//! Barrier within hosts, and between their leaders.

use super::hosts::Hosts;
use super::{Cost, Span, Step, barrier_dissemination};
use crate::rank::Rank;

/// No rank is done before every rank has begun. `labels` tell the hosts of the ranks apart.
///
/// Cost with `h` hosts of `m` ranks: `m - 1` empty messages into the leader of each host one after another, `ceil(log2 h)` rounds of the
/// leaders, `m - 1` messages out.
pub fn barrier_two_level(rank: Rank, size: usize, labels: &[usize]) -> Vec<Step> {
    let hosts = Hosts::new(size, labels);
    let host = hosts.of(rank);
    let leader = hosts.leader(host);
    if rank != leader {
        return vec![Step::send(leader, 0..0), Step::recv(leader, 0..0)];
    }
    let mut steps: Vec<Step> = hosts.others(host).iter().map(|&from| Step::recv(from, 0..0)).collect();
    steps.push(Step::Fence);
    steps.extend(hosts.among_leaders(barrier_dissemination(host, hosts.count()), Span::from));
    steps.extend(hosts.others(host).iter().map(|&to| Step::send(to, 0..0)));
    steps
}

/// Cost of [`barrier_two_level`] on two hosts with half of the ranks each; `bytes` does not matter.
pub fn cost(size: usize, _bytes: f64) -> Cost {
    let (others, leaders) = Cost::of_halves(size);
    Cost { rounds: 2.0 * others + leaders, ..Cost::default() }
}
