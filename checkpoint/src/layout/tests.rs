//! Properties of every scheme on 1 to 40 ranks, the refusals, and the golden pictures.

use std::collections::BTreeSet;

use super::*;
use proptest::prelude::*;

fn layout(scheme: &str, ranks: usize, parity_ranks: usize) -> GroupLayout {
    GroupLayout::new(scheme.parse().expect("a scheme"), ranks, parity_ranks, None).expect("fits")
}

fn refused(scheme: &str, ranks: usize, parity_ranks: usize) -> String {
    GroupLayout::new(scheme.parse().expect("a scheme"), ranks, parity_ranks, None)
        .expect_err("must not fit")
        .to_string()
}

/// Every layout that exists for small numbers, with and without hosts.
fn all_layouts() -> Vec<GroupLayout> {
    let mut schemes = vec![Scheme::None, Scheme::Xor { group: None }];
    schemes.extend((1..6).map(|copies| Scheme::Neighbor { copies }));
    schemes.extend((2..12).map(|group| Scheme::Xor { group: Some(group) }));
    schemes.extend((1..7).flat_map(|data| (1..5).map(move |parity| Scheme::Rs { data, parity })));
    schemes.extend((1..5).map(|parity| Scheme::Checksum { data: 3, parity }));
    let mut layouts = Vec::new();
    for scheme in schemes {
        for ranks in 1..=40 {
            for dedicated in [false, true] {
                let parity_ranks = match scheme {
                    Scheme::Rs { parity, .. } if dedicated => parity,
                    _ => usize::from(dedicated),
                };
                let hosts: Vec<usize> = (0..ranks).map(|rank| rank / 4).collect();
                layouts.extend(GroupLayout::new(scheme.clone(), ranks, parity_ranks, None));
                layouts.extend(GroupLayout::new(scheme.clone(), ranks, parity_ranks, Some(&hosts)));
            }
        }
    }
    assert!(layouts.len() > 3000, "{}", layouts.len());
    layouts
}

#[test]
fn every_rank_is_in_exactly_one_group() {
    for layout in all_layouts() {
        let mut seen: Vec<usize> = layout.groups.iter().flat_map(|g| g.members.clone()).collect();
        seen.sort_unstable();
        if *layout.scheme() == Scheme::None {
            assert!(seen.is_empty() && (0..layout.ranks()).all(|rank| layout.group_of(rank).is_none()));
            continue;
        }
        assert_eq!(seen, (0..layout.total_ranks()).collect::<Vec<_>>());
        for rank in 0..layout.total_ranks() {
            let (group, member) = layout.group_of(rank).expect("in a group");
            assert_eq!(layout.groups[group].members[member], rank);
            assert_eq!(member >= layout.groups[group].computing, rank >= layout.ranks());
        }
        assert_eq!(layout.group_of(layout.total_ranks()), None);
        let sizes: Vec<usize> = layout.groups.iter().map(|g| g.members.len()).collect();
        assert!(sizes.iter().max() <= sizes.iter().min().map(|s| s + 1).as_ref(), "{sizes:?}");
        let mut dedicated = layout.groups.iter().flat_map(|g| g.members[g.computing..].iter().copied());
        assert!(
            (layout.ranks()..layout.total_ranks()).all(|rank| dedicated.next() == Some(rank)),
            "group by group"
        );
    }
}

#[test]
fn every_chunk_is_in_exactly_one_stripe_and_blocks_lie_apart() {
    for layout in all_layouts() {
        for group in &layout.groups {
            let mut chunks: Vec<(usize, usize)> = group.stripes.iter().flat_map(|s| s.data.clone()).collect();
            chunks.sort_unstable();
            let all = (0..group.computing).flat_map(|m| (0..group.chunks).map(move |c| (m, c)));
            assert_eq!(chunks, all.collect::<Vec<_>>());
            let data = match group.code {
                CodeSpec::Mirror { .. } => 1,
                CodeSpec::Xor { data } | CodeSpec::Rs { data, .. } | CodeSpec::Checksum { data, .. } => data,
            };
            for stripe in &group.stripes {
                let on: BTreeSet<usize> =
                    stripe.data.iter().map(|d| d.0).chain(stripe.parity.clone()).collect();
                assert_eq!(on.len(), stripe.data.len() + stripe.parity.len());
                assert_eq!((stripe.data.len(), stripe.parity.len()), (data, group.tolerance()));
            }
        }
    }
}

/// All subsets of `count` of `items`.
fn choose(items: &[usize], count: usize) -> Vec<Vec<usize>> {
    match (count, items) {
        (0, _) => vec![vec![]],
        (_, []) => vec![],
        (_, [first, rest @ ..]) => {
            let with = choose(rest, count - 1).into_iter().map(|tail| [&[*first][..], &tail].concat());
            with.chain(choose(rest, count)).collect()
        }
    }
}

#[test]
fn any_m_losses_a_group_survive_and_one_more_does_not() {
    for layout in all_layouts() {
        assert_eq!(layout.survives(&[]), Ok(()));
        for (index, group) in layout.groups.iter().enumerate() {
            if group.members.len() > 9 {
                continue;
            }
            let m = group.tolerance();
            for lost in choose(&group.members, m) {
                assert_eq!(layout.survives(&lost), Ok(()));
                assert!(group.tolerance_left(&lost).is_some());
            }
            if !matches!(group.code, CodeSpec::Mirror { .. }) {
                for lost in choose(&group.members, m + 1).into_iter().take(20) {
                    let beyond = layout.survives(&lost).expect_err("m + 1 lost");
                    assert_eq!((beyond.group, beyond.tolerance, beyond.lost), (index, m, lost));
                }
            }
        }
        // As many as every group bears, at once.
        let most: Vec<usize> = layout
            .groups
            .iter()
            .flat_map(|g| g.members[g.members.len() - g.tolerance()..].to_vec())
            .collect();
        assert_eq!(layout.survives(&most), Ok(()));
    }
}

#[test]
fn copies_are_lost_only_with_a_rank_and_all_its_holders() {
    for ranks in 2..=7usize {
        for copies in 1..ranks.min(4) {
            let layout = layout(&format!("neighbor:{copies}"), ranks, 0);
            for set in 0..1usize << ranks {
                let lost: Vec<usize> = (0..ranks).filter(|rank| set >> rank & 1 == 1).collect();
                let gone = (0..ranks).any(|i| (0..=copies).all(|c| set >> ((i + c) % ranks) & 1 == 1));
                assert_eq!(layout.survives(&lost).is_err(), gone, "{copies} copies, {ranks} ranks, {lost:?}");
            }
        }
    }
}

#[test]
fn suggestions_would_have_survived() {
    for layout in all_layouts().into_iter().filter(|layout| layout.ranks() < 14) {
        let total = layout.total_ranks();
        for lost in [vec![0], vec![0, 1], vec![0, 1, 2], vec![0, total - 1], (0..total).collect()] {
            let Err(beyond) = layout.survives(&lost) else { continue };
            if let Some((scheme, parity_ranks)) = beyond.suggestion.clone() {
                let better = GroupLayout::new(scheme, layout.ranks(), parity_ranks, layout.hosts.as_deref());
                let better = better.expect("fits");
                assert_eq!(better.survives(&lost), Ok(()), "{beyond}");
            }
        }
    }
}

#[test]
fn golden_rotated() {
    let group = &layout("xor", 4, 0).groups[0];
    assert_eq!((group.chunks, group.code), (3, CodeSpec::Xor { data: 3 }));
    let data = [
        [(1, 0), (2, 0), (3, 0)],
        [(0, 0), (2, 1), (3, 1)],
        [(0, 1), (1, 1), (3, 2)],
        [(0, 2), (1, 2), (2, 2)],
    ];
    for (index, stripe) in group.stripes.iter().enumerate() {
        assert_eq!(*stripe, Stripe { data: data[index].to_vec(), parity: vec![index] });
    }
    let group = &layout("rs:2+2", 4, 0).groups[0];
    assert_eq!(group.stripes[3], Stripe { data: vec![(1, 1), (2, 1)], parity: vec![3, 0] });
}

#[test]
fn golden_sizes() {
    let sizes = |scheme: &str, ranks, parity_ranks| -> Vec<usize> {
        layout(scheme, ranks, parity_ranks).groups.iter().map(|g| g.members.len()).collect()
    };
    assert_eq!(sizes("xor", 8, 0), [8]);
    assert_eq!(sizes("xor", 15, 0), [15]);
    assert_eq!(sizes("xor", 17, 0), [8, 9]);
    assert_eq!(sizes("xor", 8, 1), [9]);
    assert_eq!(sizes("xor", 17, 1), [9, 10]);
    assert_eq!(sizes("xor:4", 4, 1), [5], "three ranks a group would do, so the fourth joins");
    assert_eq!(sizes("xor:4", 7, 1), [4, 5]);
    assert_eq!(sizes("rs:3+2", 11, 0), [5, 6]);
    assert_eq!(sizes("rs:3+2", 7, 2), [5, 6]);
    let grown = layout("rs:3+2", 11, 0);
    assert_eq!(grown.groups[1].code, CodeSpec::Rs { data: 4, parity: 2 }, "K grows and M stays");
    assert_eq!(grown.scheme_of(1), Scheme::Rs { data: 4, parity: 2 });
    assert_eq!(layout("rs:3+2", 7, 2).groups[1].members, [3, 4, 5, 6, 9, 10]);
    assert_eq!((layout("rs:3+2", 7, 2).parity_ranks(), layout("rs:3+2", 7, 2).total_ranks()), (4, 11));
}

#[test]
fn a_disk_survives_whatever_dies() {
    for ranks in [1, 4] {
        let layout = layout("disk:/x", ranks, 0);
        assert_eq!((layout.groups.len(), layout.total_ranks(), layout.group_of(0)), (0, ranks, None));
        assert_eq!(layout.survives(&(0..ranks).collect::<Vec<_>>()), Ok(()));
    }
}

#[test]
fn refusals_have_the_numbers() {
    assert_eq!(refused("rs:9+9", 4, 0), "rs:9+9 needs 18 ranks a group, there are 4");
    assert_eq!(refused("rs:9+9", 4, 9), "rs:9+9 needs 9 ranks that compute a group, there are 4");
    assert_eq!(refused("xor:5", 4, 0), "xor:5 needs 5 ranks a group, there are 4");
    assert_eq!(refused("xor:1", 4, 0), "xor:1 leaves no rank to hold the parity; at least xor:2 is needed");
    assert_eq!(refused("xor", 4, 2), "xor goes with 0 or 1 parity ranks a group, not 2");
    assert_eq!(refused("rs:2+2", 4, 1), "rs:2+2 goes with 0 or 2 parity ranks a group, not 1");
    assert_eq!(refused("neighbor", 4, 1), "neighbor:1 goes with 0 parity ranks a group, not 1");
    assert_eq!(refused("none", 4, 1), "none goes with 0 parity ranks a group, not 1");
    assert_eq!(refused("disk:/x", 4, 1), "disk:/x goes with 0 parity ranks a group, not 1");
    assert_eq!(refused("neighbor:4", 4, 0), "neighbor:4 needs more than 4 ranks, there are 4");
    assert_eq!(refused("xor", 1, 0), "xor needs at least 2 ranks, there is 1; use none");
    assert_eq!(refused("neighbor:0", 4, 0), "neighbor:0 with copies = 0; at least 1 is needed");
    assert_eq!(refused("rs:0+2", 4, 0), "rs:0+2 with data = 0; at least 1 is needed");
    assert_eq!(refused("rs:2+0", 4, 0), "rs:2+0 with parity = 0; at least 1 is needed");
    assert_eq!(refused("xor:0", 4, 0), "xor:0 with group = 0; at least 1 is needed");
    assert_eq!(refused("none", 0, 0), "none with ranks = 0; at least 1 is needed");
    let wide = "rs:200+57: a group of 200 data + 57 parity = 257 blocks a stripe is more than 256";
    assert_eq!(refused("rs:200+57", 1000, 0), wide);
    let grown = "rs:200+50: a group of 250 data + 50 parity = 300 blocks a stripe is more than 256";
    assert_eq!(refused("rs:200+50", 300, 0), grown);
    assert!(refused("rs:18446744073709551615+2", 4, 0).contains("more than 256"));
    let hosts = GroupLayout::new(Scheme::None, 4, 0, Some(&[0, 1])).expect_err("too few").to_string();
    assert_eq!(hosts, "2 hosts are given for 4 ranks");
}

#[test]
fn beyond_tolerance_names_who_where_and_what_would_have_helped() {
    let text = |scheme: &str, ranks, parity_ranks, lost: &[usize]| {
        layout(scheme, ranks, parity_ranks).survives(lost).expect_err("beyond").to_string()
    };
    assert_eq!(
        text("xor", 4, 0, &[2, 1]),
        "ranks 1 and 2 of parity group 0 (ranks 0 1 2 3) are lost, xor:4 survives 1 loss a group; \
         rs:2+2 would have survived this"
    );
    assert_eq!(
        text("rs:2+2", 8, 0, &[0, 4, 5, 6]),
        "ranks 4, 5 and 6 of parity group 1 (ranks 4 5 6 7) are lost, rs:2+2 survives 2 losses a group; \
         rs:1+3 would have survived this"
    );
    assert_eq!(
        text("xor", 4, 1, &[3, 4]),
        "ranks 3 and 4 of parity group 0 (ranks 0 1 2 3 4) are lost, xor:5 survives 1 loss a group; \
         rs:4+2 with 2 parity ranks a group would have survived this"
    );
    assert_eq!(
        text("neighbor", 4, 0, &[3, 0]),
        "ranks 0 and 3 of parity group 0 (ranks 0 1 2 3) are lost, neighbor:1 survives 1 loss a group; \
         neighbor:2 would have survived this"
    );
    assert_eq!(
        text("xor", 3, 0, &[0, 1, 2]),
        "ranks 0, 1 and 2 of parity group 0 (ranks 0 1 2) are lost, xor:3 survives 1 loss a group; \
         no scheme would have survived 3 losses here"
    );
    assert_eq!(
        text("none", 3, 0, &[1]),
        "rank 1 is lost, scheme none survives no loss; xor would have survived this"
    );
    assert_eq!(
        text("none", 1, 0, &[0]),
        "rank 0 is lost, scheme none survives no loss; no scheme would have survived 1 loss here"
    );
}

#[test]
fn hosts_are_kept_apart_whenever_there_are_enough() {
    for (per_host, host_count) in [(4, 4), (2, 8), (1, 16), (3, 5), (5, 3)] {
        let hosts: Vec<usize> = (0..per_host * host_count).map(|rank| rank / per_host).collect();
        for size in 2..=hosts.len() {
            let scheme = Scheme::Xor { group: Some(size) };
            let laid = GroupLayout::new(scheme, hosts.len(), 0, Some(&hosts)).expect("fits");
            let enough = laid.groups.len() >= per_host;
            assert_eq!(laid.groups_sharing_hosts.is_empty(), enough, "{hosts:?} {size}");
        }
        for copies in 1..hosts.len() {
            let laid =
                GroupLayout::new(Scheme::Neighbor { copies }, hosts.len(), 0, Some(&hosts)).expect("fits");
            assert_eq!(laid.groups_sharing_hosts.is_empty(), copies < host_count, "{hosts:?} {copies}");
        }
    }
    let laid =
        GroupLayout::new(Scheme::Rs { data: 2, parity: 1 }, 4, 1, Some(&[0, 1, 0, 1, 1, 7])).expect("fits");
    assert_eq!(laid.groups[0].members, [0, 1, 4]);
}

#[test]
fn ranks_that_have_moved_are_laid_over_their_hosts_if_that_survives_more() {
    let laid = |scheme: &str, hosts: &[usize]| {
        GroupLayout::new(scheme.parse().unwrap(), hosts.len(), 0, Some(hosts)).expect("fits")
    };
    let old = laid("xor:2", &[0, 0, 1, 2]);
    let members = |layout: &GroupLayout| layout.groups.iter().map(|g| g.members.clone()).collect::<Vec<_>>();
    assert_eq!((members(&old), old.fatal_hosts(&[0, 0, 1, 2])), (vec![vec![0, 2], vec![1, 3]], vec![]));
    assert_eq!(old.relaid(&[0, 0, 1, 2]), None);
    let moved = [1, 2, 1, 2];
    assert_eq!(old.fatal_hosts(&moved), [1, 2]);
    let new = old.relaid(&moved).expect("it survives more");
    assert_eq!((members(&new), new.fatal_hosts(&moved)), (vec![vec![0, 1], vec![2, 3]], vec![]));
    assert_eq!(new.hosts(), Some(&moved[..]));
    // Three of six on one host are too many wherever they are; on one host nothing can be done.
    assert_eq!(laid("rs:4+2", &[0, 0, 1, 1, 2, 2]).relaid(&[0, 0, 0, 2, 2, 2]), None);
    assert_eq!((old.relaid(&[1; 4]), laid("none", &[0, 1]).relaid(&[0, 0])), (None, None));
    // Copies go to the next in a row of hosts that take turns.
    let copies = laid("neighbor:1", &[0, 0, 1, 1]).relaid(&[0, 1, 0, 1]).expect("it survives more");
    assert_eq!(copies.fatal_hosts(&[0, 1, 0, 1]), []);
}

proptest! {
    #[test]
    fn a_layout_over_the_hosts_of_now_is_never_the_worse_one(
        scheme in 0usize..4, before in proptest::collection::vec(0usize..4, 6..10), seed: u64,
    ) {
        let scheme: Scheme = ["neighbor:2", "xor:2", "xor:3", "rs:2+2"][scheme].parse().unwrap();
        let are_groups = !matches!(scheme, Scheme::Neighbor { .. });
        let now: Vec<usize> = (0..before.len()).map(|rank| (seed >> (2 * rank)) as usize % 4).collect();
        let old = GroupLayout::new(scheme, before.len(), 0, Some(&before)).unwrap();
        let (was, over) = (old.fatal_hosts(&now), old.over(Some(&now)).unwrap());
        let fatal = over.fatal_hosts(&now);
        prop_assert_eq!(old.relaid(&now), Some(over).filter(|_| fatal.len() < was.len()));
        prop_assert!(!are_groups || fatal.iter().all(|host| was.contains(host)), "{:?} {:?}", fatal, was);
    }

    #[test]
    fn chunks_cover_the_shard(shard_len in 0usize..5000, group in 2usize..40) {
        let group = &layout(&format!("xor:{group}"), group, 0).groups[0];
        let mut end = 0;
        for chunk in 0..group.chunks {
            let range = group.chunk_range(shard_len, chunk);
            prop_assert_eq!(range.start, end);
            prop_assert!(range.len() <= shard_len.div_ceil(group.chunks));
            end = range.end;
        }
        prop_assert_eq!(end, shard_len);
        prop_assert_eq!(group.chunk_range(shard_len, 0).len(), shard_len.div_ceil(group.chunks));
        let lens: Vec<usize> = (0..group.computing).map(|member| if member == 1 { shard_len } else { 0 }).collect();
        prop_assert_eq!(group.block_len(0, &lens), shard_len.div_ceil(group.chunks));
        prop_assert_eq!(group.block_len(1, &lens), 0);
    }
}
