use std::collections::BTreeSet;

use super::*;
use proptest::prelude::*;

fn group(ranks: &[Rank]) -> Group {
    Group::new(ranks.to_vec()).unwrap()
}

fn any_group() -> impl Strategy<Value = Group> {
    let members = Just((0..9).collect::<Vec<Rank>>()).prop_shuffle();
    (members, 0usize..10).prop_map(|(members, size)| group(&members[..size]))
}

fn members(group: &Group) -> BTreeSet<Rank> {
    group.ranks().iter().copied().collect()
}

/// Whether the members of `part` are in the same order as in `whole`.
fn in_order_of(part: &Group, whole: &Group) -> bool {
    part.ranks().iter().map(|&rank| whole.rank_of(rank)).is_sorted()
}

#[test]
fn the_order_is_that_of_the_first_group() {
    let (one, two) = (group(&[5, 1, 3, 7]), group(&[7, 2, 5, 0]));
    assert_eq!(one.union(&two).ranks(), [5, 1, 3, 7, 2, 0]);
    assert_eq!(one.intersection(&two).ranks(), [5, 7]);
    assert_eq!(two.intersection(&one).ranks(), [7, 5]);
    assert_eq!(one.difference(&two).ranks(), [1, 3]);
    assert_eq!(one.include(&[3, 0]).unwrap().ranks(), [7, 5]);
    assert_eq!(one.exclude(&[3, 0]).unwrap().ranks(), [1, 3]);
    assert_eq!(one.translate(&[0, 1, 3, 4], &two), [Some(2), None, Some(0), None]);
}

#[test]
fn ranges_go_both_ways() {
    let world = group(&[10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    let ranks = |ranges: &[(Rank, Rank, isize)]| world.range_include(ranges).unwrap().ranks().to_vec();
    assert_eq!(ranks(&[(1, 8, 3), (9, 6, -4), (0, 0, 5)]), [11, 14, 17, 19, 10]);
}

#[test]
fn the_last_rank_of_a_range_need_not_be_met() {
    let three = group(&[4, 5, 6]);
    assert_eq!(three.range_include(&[(0, 3, 2)]).unwrap().ranks(), [4, 6]);
    assert_eq!(three.range_exclude(&[(2, 0, -2)]).unwrap().ranks(), [5]);
    assert_eq!(three.range_include(&[(1, usize::MAX, isize::MAX)]).unwrap_err(), out(usize::MAX));
}

fn out(rank: Rank) -> GroupError {
    GroupError::RankOutOfRange { rank, size: 3 }
}

#[test]
fn what_makes_no_group_is_refused() {
    assert_eq!(Group::new(vec![3, 1, 3]), Err(GroupError::Duplicate { rank: 3 }));
    let three = group(&[4, 5, 6]);
    assert_eq!(three.include(&[0, 3]), Err(out(3)));
    assert_eq!(three.exclude(&[usize::MAX]), Err(out(usize::MAX)));
    assert_eq!(three.include(&[1, 1]), Err(GroupError::Duplicate { rank: 1 }));
    assert_eq!(three.exclude(&[1, 1]), Err(GroupError::Duplicate { rank: 1 }));
    for (first, last, stride) in [(0, 1, 0), (1, 0, 1), (0, 1, -1)] {
        let error = GroupError::Range { first, last, stride };
        assert_eq!(three.range_include(&[(first, last, stride)]), Err(error));
    }
    assert_eq!(three.range_include(&[(0, usize::MAX, 1)]), Err(out(usize::MAX)));
    assert_eq!(three.range_include(&[(usize::MAX, 0, -1)]), Err(out(usize::MAX)));
    assert_eq!(three.range_exclude(&[(0, 2, 1), (2, 0, -1)]), Err(GroupError::Duplicate { rank: 2 }));
}

proptest! {
    #[test]
    fn a_member_is_found_at_its_place(one in any_group(), world in 0usize..10) {
        prop_assert_eq!(one.rank_of(world), one.ranks().iter().position(|&rank| rank == world));
    }

    #[test]
    fn they_are_sets(one in any_group(), two in any_group(), three in any_group()) {
        let (a, b) = (members(&one), members(&two));
        prop_assert_eq!(members(&one.union(&two)), &a | &b);
        prop_assert_eq!(members(&one.intersection(&two)), &a & &b);
        prop_assert_eq!(members(&one.difference(&two)), &a - &b);
        // Associative with their orders, and cut apart by the other group.
        prop_assert_eq!(one.union(&two).union(&three), one.union(&two.union(&three)));
        prop_assert_eq!(one.intersection(&two).intersection(&three), one.intersection(&two.intersection(&three)));
        prop_assert_eq!(one.difference(&two).difference(&three), one.difference(&two.union(&three)));
        let parts = one.intersection(&two).union(&one.difference(&two));
        prop_assert!(parts.compare(&one) != Comparison::Unequal);
        prop_assert!(one.union(&two).compare(&two.union(&one)) != Comparison::Unequal);
    }

    #[test]
    fn the_order_of_the_first_group_is_kept(one in any_group(), two in any_group()) {
        prop_assert!(in_order_of(&one.intersection(&two), &one));
        prop_assert!(in_order_of(&one.difference(&two), &one));
        let union = one.union(&two);
        prop_assert_eq!(&union.ranks()[..one.size()], one.ranks());
        let behind = group(&union.ranks()[one.size()..]);
        prop_assert_eq!(behind, two.difference(&one));
    }

    #[test]
    fn what_is_included_and_excluded_is_the_whole(one in any_group(), picks in proptest::collection::vec(0usize..9, 0..9)) {
        let mut picks: Vec<Rank> = picks.into_iter().filter(|&rank| rank < one.size()).collect();
        let mut seen = BTreeSet::new();
        picks.retain(|&rank| seen.insert(rank));
        let (picked, left) = (one.include(&picks).unwrap(), one.exclude(&picks).unwrap());
        prop_assert_eq!(&left, &one.difference(&picked));
        prop_assert!(picked.union(&left).compare(&one) != Comparison::Unequal);
        let ranks: Vec<Rank> = (0..picked.size()).collect();
        prop_assert_eq!(picked.translate(&ranks, &one), picks.into_iter().map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn comparison_sees_members_and_order(one in any_group(), two in any_group()) {
        let due = match (one.ranks() == two.ranks(), members(&one) == members(&two)) {
            (true, _) => Comparison::Identical,
            (false, true) => Comparison::Similar,
            (false, false) => Comparison::Unequal,
        };
        prop_assert_eq!(one.compare(&two), due);
        let mut backwards = one.ranks().to_vec();
        backwards.reverse();
        let due = if one.size() < 2 { Comparison::Identical } else { Comparison::Similar };
        prop_assert_eq!(one.compare(&group(&backwards)), due);
    }

    #[test]
    fn a_range_is_its_list_of_ranks(size in 1usize..12, first in 0usize..12, last in 0usize..12, stride in -4isize..5) {
        prop_assume!(first < size && last < size && stride != 0);
        let world = group(&(0..size).collect::<Vec<_>>());
        let between = |at: isize| (first as isize..=last as isize).contains(&at) || (last as isize..=first as isize).contains(&at);
        let list: Vec<Rank> = std::iter::successors(Some(first as isize), |at| Some(at + stride))
            .take_while(|&at| between(at)).map(|at| at as usize).collect();
        let is_way = (last as isize - first as isize) * stride.signum() >= 0;
        match world.range_include(&[(first, last, stride)]) {
            Ok(group) => prop_assert_eq!(group.ranks(), &list[..]),
            Err(error) => prop_assert!(!is_way, "{}", error),
        }
    }
}
