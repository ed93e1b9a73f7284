//! Allgather within hosts, and between their leaders, for few bytes.

use super::hosts::Hosts;
use super::{Cost, Span, Step, allgather_dissemination};
use crate::rank::Rank;

/// All buffers get all parts; rank `r`'s part are the elements `starts[r]..starts[r + 1]`, and its own is in place already. `labels` tell
/// the hosts of the ranks apart.
///
/// Cost with `h` hosts of `m` ranks: `m - 1` parts into the leader of each host, `ceil(log2 h)` rounds of the leaders, and `m - 1` messages of
/// all elements out.
pub fn allgather_two_level(rank: Rank, size: usize, starts: &[usize], labels: &[usize]) -> Vec<Step> {
    let hosts = Hosts::new(size, labels);
    let host = hosts.of(rank);
    let leader = hosts.leader(host);
    let part = |of: Rank| starts[of]..starts[of + 1];
    if rank != leader {
        return vec![Step::send(leader, part(rank)), Step::recv(leader, 0..starts[size])];
    }
    // Leaders exchange parts host by host, which they are not in the buffer.
    let mut places = vec![0..0; size];
    let (mut end, mut firsts) = (0, vec![]);
    for of in hosts.ranks() {
        if of == hosts.leader(hosts.of(of)) {
            firsts.push(end);
        }
        places[of] = end..end + part(of).len();
        end = places[of].end;
    }
    firsts.push(end);
    let place = |of: Rank| Span::scratch(places[of].clone());
    let mut steps = vec![Step::copy(part(rank), place(rank))];
    steps.extend(hosts.others(host).iter().map(|&from| Step::recv(from, place(from))));
    let exchange = allgather_dissemination(host, hosts.count(), &firsts);
    steps.extend(hosts.among_leaders(exchange, Span::scratch));
    steps.extend((0..size).filter(|of| *of != rank).map(|of| Step::copy(place(of), part(of))));
    steps.extend(hosts.others(host).iter().map(|&to| Step::send(to, 0..starts[size])));
    steps
}

/// Cost with parts of `bytes` bytes on two hosts with half of the ranks each.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let (others, leaders) = Cost::of_halves(size);
    let (half, all) = ((others + 1.0) * bytes, size as f64 * bytes);
    Cost {
        rounds: 2.0 * others + leaders,
        bytes: others * bytes + leaders * half + others * all,
        reduced: all,
    }
}
