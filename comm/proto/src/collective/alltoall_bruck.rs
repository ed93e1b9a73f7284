//! Alltoall in a logarithmic number of rounds, for short parts (Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS
//! 8(11), 1997), without its two rotations: a part is packed from where it is and unpacked to where it belongs.

use super::{Cost, Span, Step};
use crate::rank::Rank;

/// Each rank's buffer gets `len` elements of each other rank's input: those at `r len` go to rank `r`, and come
/// from it in the same place.
///
/// A part that has `d` ranks upwards to go makes a step of `2^k` ranks in round `k` for every bit of `d`. All parts
/// with that bit travel as one message.
///
/// Cost per rank: `ceil(log2 size)` rounds of about `len size / 2` elements each way, as many copies, and
/// `len size / 2` elements of scratch for each round and once more.
pub fn alltoall_bruck(rank: Rank, size: usize, len: usize) -> Vec<Step> {
    let slot = |index: usize| index * len..(index + 1) * len;
    // Where the part with `d` ranks to go is now.
    let mut places: Vec<Span> = (0..size).map(|d| Span::input(slot((rank + d) % size))).collect();
    let mut steps = Vec::new();
    let mut arrivals = size / 2;
    let mut bit = 1;
    while bit < size {
        let traveling: Vec<usize> = (0..size).filter(|d| d & bit != 0).collect();
        let count = traveling.len();
        for (index, &d) in traveling.iter().enumerate() {
            steps.push(Step::copy(places[d].clone(), Span::scratch(slot(index))));
        }
        steps.push(Step::send((rank + bit) % size, Span::scratch(0..count * len)));
        let arrived = Span::scratch(arrivals * len..(arrivals + count) * len);
        steps.push(Step::recv((rank + size - bit) % size, arrived));
        for (index, &d) in traveling.iter().enumerate() {
            places[d] = Span::scratch(slot(arrivals + index));
            let there = d < 2 * bit;
            if there {
                steps.push(Step::copy(places[d].clone(), slot((rank + size - d) % size)));
            }
        }
        arrivals += count;
        bit *= 2;
    }
    steps
}

/// Cost with parts of `bytes` bytes.
pub fn cost(size: usize, bytes: f64) -> Cost {
    let rounds = size.next_power_of_two().ilog2();
    let traveling: u32 = (0..size).map(usize::count_ones).sum();
    let (traveling, unpacked) = (f64::from(traveling) * bytes, (size - 1) as f64 * bytes);
    Cost { rounds: rounds.into(), bytes: traveling, reduced: traveling + unpacked }
}
