//! Redundancy that is renewed by what has changed of the shards: each member sends the difference of a chunk to who holds redundant
//! blocks of its stripe, and these add it, times its weight.
//!
//! A member that holds one of `m` blocks gets it once, so each sends `m` times what has changed of its shard. Nothing is computed at the
//! one and passed on to the other: what has changed is little, or it is not done in this way.

use std::ops::Range;

use ft_comm::collective::Space;

use super::work::{Difference, Update};
use super::{Recipe, View, Work, part};
use crate::changes::Pages;

/// Renews the redundant blocks of all members, which lie where `block` says in [`Space::Buffer`], by what has changed of their shards:
/// `pages` says what that is, by member, and [`Space::Input`] is the difference of the own one. `crc` is the checksum that a block has
/// before.
pub(crate) fn updating(
    view: View<'_>,
    pages: &[Pages],
    block: impl Fn(usize) -> Range<usize>,
    crc: impl Fn(usize) -> Option<u64>,
) -> Recipe {
    let (mut recipe, mut works, mut end) = (Recipe::default(), vec![], 0);
    for (index, stripe) in view.group.stripes.iter().enumerate() {
        for (j, holder) in stripe.parity.iter().enumerate() {
            let mut sources = vec![];
            for (i, data) in stripe.data.iter().enumerate() {
                let (chunk, pages) = (view.chunk(*data), &pages[data.0]);
                let packed = pages.packed_range(&chunk);
                if data.0 == view.me {
                    recipe.send(view.rank(*holder), part(Space::Input, packed));
                } else if *holder == view.me && !packed.is_empty() {
                    let packed = end..end + packed.len();
                    end = packed.end;
                    recipe.recv(view.rank(data.0), part(Space::Scratch, packed.clone()));
                    sources.push(Difference {
                        packed,
                        runs: pages.runs(&chunk),
                        weight: view.code.field_weight(j, i),
                    });
                }
            }
            if !sources.is_empty() {
                // The checksum of a copy is that of its original.
                let before = if view.group.copied(index).is_some() { None } else { crc(index) };
                works.push(Work::Update(Update { stripe: index, block: block(index), sources, before }));
            }
        }
    }
    works.into_iter().for_each(|work| recipe.work(work));
    recipe
}
