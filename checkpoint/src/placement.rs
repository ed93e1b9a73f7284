//! Where one rank's checkpoints lie: the layout of the job, the rank's home in it, and what it keeps there.
//!
//! A layout numbers the ranks as they were when it was made, their *homes*. As long as lost ranks are replaced these are
//! the ranks of the world. Where the survivors close up, homes become empty and ranks move; the layout stays until a
//! checkpoint is committed in a new one.

use ft_comm::time::Clock;
use ft_comm::{Communicator, Membership, Rank};

use crate::buffer::Memory;
use crate::error::CheckpointError;
use crate::exchange::{GroupComm, code, sums};
use crate::layout::GroupLayout;
use crate::layout::LayoutError;
use crate::scheme::Scheme;
use crate::store::Store;

/// See the module.
pub(crate) struct Placement {
    pub(crate) layout: GroupLayout,
    /// The group of this rank; none without redundancy in memory.
    pub(crate) home: Option<GroupComm>,
    pub(crate) store: Store,
    /// By home the rank that lives there now.
    pub(crate) tenants: Vec<Option<Rank>>,
    /// The first epoch in it; none of it has been committed while this is there.
    pub(crate) first: Option<u32>,
}

impl Placement {
    /// A placement of all ranks of the world as they are now, of which `first` will be the first epoch.
    pub(crate) fn new(
        comm: &Communicator,
        clock: Clock,
        layout: GroupLayout,
        first: u32,
        memory: &Memory,
    ) -> Result<Self, CheckpointError> {
        let home = match layout.group_of(comm.rank()) {
            Some((group, me)) => {
                let group = layout.groups[group].clone();
                let (code, sums) = (code(group.code)?, sums(group.code)?);
                Some(GroupComm { code, sums, comm: comm.clone(), group, me, clock })
            }
            None => None,
        };
        Ok(Self {
            store: Store::in_memory(home.as_ref().map_or(0, |home| home.me), memory),
            layout,
            home,
            tenants: (0..comm.size()).map(Some).collect(),
            first: Some(first),
        })
    }

    /// The index of this rank in its group.
    pub(crate) fn member(&self) -> usize {
        self.home.as_ref().map_or(0, |home| home.me)
    }

    /// A repair has renumbered ranks.
    pub(crate) fn follow(&mut self, membership: &Membership) {
        for tenant in &mut self.tenants {
            *tenant = tenant.and_then(|rank| membership.before.iter().position(|was| *was == Some(rank)));
        }
    }

    /// Whether somebody is missing.
    pub(crate) fn has_empty_homes(&self) -> bool {
        self.tenants.contains(&None)
    }

    /// The group of this rank, with the ranks that speak for its members now: for a home its tenant, and for an empty one a tenant of
    /// another that `held` the checkpoint, these in turn. None if there is no group, or nobody who could speak.
    pub(crate) fn comm_of_speakers(&self, held: &[bool]) -> Option<GroupComm> {
        let home = self.home.as_ref()?;
        let tenants: Vec<Option<Rank>> = home.group.members.iter().map(|home| self.tenants[*home]).collect();
        let homes = home.group.members.iter().zip(&tenants);
        let able: Vec<Rank> =
            homes.filter(|(home, _)| held[**home]).filter_map(|(_, tenant)| *tenant).collect();
        let mut next = able.iter().cycle();
        let speaker = |tenant: Option<Rank>| tenant.or_else(|| next.next().copied());
        let speakers: Option<Vec<Rank>> = tenants.into_iter().map(speaker).collect();
        Some(home.spoken_for_by(speakers?))
    }
}

/// The layout of `ranks` ranks that compute, for as much of `scheme` as they can have: K is lowered first, then M; copies
/// are lowered too, and a rank that is alone has none.
pub(crate) fn reduced(
    scheme: &Scheme,
    ranks: usize,
    hosts: Option<&[usize]>,
) -> Result<GroupLayout, LayoutError> {
    let mut candidates = vec![scheme.clone()];
    match *scheme {
        Scheme::Xor { group: Some(_) } => candidates.push(Scheme::Xor { group: Some(ranks) }),
        Scheme::Neighbor { copies } => {
            candidates.extend((1..copies).rev().map(|copies| Scheme::Neighbor { copies }));
        }
        // Whoever closes up has no doubles apart (`resilient/setup.rs`).
        Scheme::Rs { data, parity } | Scheme::Checksum { data, parity } => {
            let fits = |data: usize, parity: usize| (data > 0).then_some(Scheme::Rs { data, parity });
            let fewer = (1..=parity).rev().filter_map(|m| fits(ranks.saturating_sub(m).min(data), m));
            candidates.extend(fewer);
        }
        Scheme::None | Scheme::Disk { .. } | Scheme::Xor { group: None } => {}
    }
    candidates.push(Scheme::None);
    let layouts = candidates.into_iter().map(|scheme| GroupLayout::new(scheme, ranks, 0, hosts));
    let mut problem = None;
    for layout in layouts {
        match layout {
            Ok(layout) => return Ok(layout),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.expect("what does not fit leaves an error"))
}

/// What has become of the groups that were of the shape `before`, if anything has.
pub(crate) fn degraded(before: &str, layout: &GroupLayout) -> Option<String> {
    let (now, ranks) = (layout.shape(), layout.ranks());
    let verb = if before.contains("groups") { "are" } else { "is" };
    let noun = if ranks == 1 { "rank" } else { "ranks" };
    (now != before).then(|| format!("{before} {verb} {now} with {ranks} {noun} left"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_lowered_first_then_m() {
        let of = |scheme: &str, ranks| {
            reduced(&scheme.parse().unwrap(), ranks, None).unwrap().scheme().to_string()
        };
        assert_eq!(of("rs:4+2", 6), "rs:4+2");
        assert_eq!(of("rs:4+2", 5), "rs:3+2");
        assert_eq!(of("rs:4+2", 3), "rs:1+2");
        assert_eq!(of("rs:4+2", 2), "rs:1+1");
        assert_eq!(of("rs:4+2", 1), "none");
        assert_eq!(of("xor:4", 3), "xor:3");
        assert_eq!(of("xor", 2), "xor");
        assert_eq!(of("xor", 1), "none");
        assert_eq!(of("neighbor:3", 3), "neighbor:2");
        assert_eq!(of("none", 3), "none");
    }

    #[test]
    fn groups_that_have_closed_up_are_told() {
        let of = |scheme: &str, before, now| {
            let scheme: Scheme = scheme.parse().unwrap();
            let shape = GroupLayout::new(scheme.clone(), before, 0, None).unwrap().shape();
            degraded(&shape, &reduced(&scheme, now, None).unwrap())
        };
        let told = |scheme, before, now| of(scheme, before, now).unwrap();
        assert_eq!(told("xor", 4, 3), "xor:4 is xor:3 with 3 ranks left");
        assert_eq!(told("xor:4", 8, 7), "2 groups of xor:4 are xor:7 with 7 ranks left");
        assert_eq!(told("xor:3", 7, 6), "groups of xor:3 and xor:4 are 2 groups of xor:3 with 6 ranks left");
        assert_eq!(told("rs:2+2", 6, 5), "rs:4+2 is rs:3+2 with 5 ranks left");
        assert_eq!(told("neighbor:3", 4, 3), "neighbor:3 is neighbor:2 with 3 ranks left");
        assert_eq!(told("xor", 2, 1), "xor:2 is none with 1 rank left");
        assert_eq!(of("neighbor:1", 4, 3), None);
        assert_eq!(of("none", 4, 3), None);
    }
}
