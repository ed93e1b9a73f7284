//! Where one rank's checkpoints lie: the layout of the job, the rank's home in it, and what it keeps there.
//!
//! A layout numbers the ranks as they were when it was made, their *homes*. As long as lost ranks are replaced these are
//! the ranks of the world. Where the survivors close up, homes become empty and ranks move; the layout stays until a
//! checkpoint is committed in a new one.

use ft_comm::{Membership, Rank, World};
use ft_encoders::Code;

use crate::error::{CheckpointError, LayoutError};
use crate::exchange::code;
use crate::layout::{Group, Layout};
use crate::scheme::Scheme;
use crate::store::Store;

/// See the module.
pub(crate) struct Placement {
    pub(crate) layout: Layout,
    /// Group, code, and index in the group; none without redundancy in memory.
    pub(crate) home: Option<(Group, Box<dyn Code>, usize)>,
    pub(crate) store: Store,
    /// By home the rank that lives there now.
    pub(crate) tenants: Vec<Option<Rank>>,
    /// The first epoch in it; none of it has been committed while this is there.
    pub(crate) first: Option<u32>,
}

impl Placement {
    /// A placement of all ranks of the world as they are now, of which `first` will be the first epoch.
    pub(crate) fn new(world: &World, layout: Layout, first: u32) -> Result<Self, CheckpointError> {
        let home = match layout.group_of(world.rank()) {
            Some((group, member)) => {
                let group = layout.groups[group].clone();
                let code = code(group.code)?;
                Some((group, code, member))
            }
            None => None,
        };
        Ok(Self {
            store: Store::new(home.as_ref().map_or(0, |(_, _, member)| *member)),
            layout,
            home,
            tenants: (0..world.total()).map(Some).collect(),
            first: Some(first),
        })
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

    /// By home who speaks for it: its tenant, or for an empty one a member of its group that lives and has `whole` data, the
    /// members in turn. None for a home that nobody needs to speak for, as it has no data.
    pub(crate) fn speakers(&self, lost: &[Rank]) -> Vec<Option<Rank>> {
        let mut speakers = self.tenants.clone();
        for group in &self.layout.groups {
            let able: Vec<Rank> = group
                .members
                .iter()
                .filter(|home| !lost.contains(home))
                .filter_map(|home| self.tenants[*home])
                .collect();
            let empty = group.members[..group.computing].iter().filter(|home| self.tenants[**home].is_none());
            for (at, home) in empty.enumerate() {
                speakers[*home] = able.get(at % able.len().max(1)).copied();
            }
        }
        speakers
    }
}

/// The layout of `ranks` ranks that compute, for as much of `scheme` as they can have: K is lowered first, then M; copies
/// are lowered too, and a rank that is alone has none. With what was given up, if anything.
pub(crate) fn reduced(
    scheme: &Scheme,
    ranks: usize,
    hosts: Option<&[usize]>,
) -> Result<(Layout, Option<String>), LayoutError> {
    let mut candidates = vec![scheme.clone()];
    match *scheme {
        Scheme::Xor { group: Some(_) } => candidates.push(Scheme::Xor { group: Some(ranks) }),
        Scheme::Neighbor { copies } => {
            candidates.extend((1..copies).rev().map(|copies| Scheme::Neighbor { copies }));
        }
        Scheme::Rs { data, parity } => {
            let fits = |data: usize, parity: usize| (data > 0).then_some(Scheme::Rs { data, parity });
            let fewer = (1..=parity).rev().filter_map(|m| fits(ranks.saturating_sub(m).min(data), m));
            candidates.extend(fewer);
        }
        Scheme::None | Scheme::Disk { .. } | Scheme::Xor { group: None } => {}
    }
    candidates.push(Scheme::None);
    let layouts = candidates.into_iter().map(|scheme| Layout::new(scheme, ranks, 0, hosts));
    let mut problem = None;
    for layout in layouts {
        match layout {
            Ok(layout) if layout.scheme() == scheme => return Ok((layout, None)),
            Ok(layout) => {
                let given_up = format!("{scheme} is {} with {} left", layout.scheme(), ranks_of(ranks));
                return Ok((layout, Some(given_up)));
            }
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.expect("a layout or an error"))
}

fn ranks_of(count: usize) -> String {
    if count == 1 { "1 rank".into() } else { format!("{count} ranks") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_lowered_first_then_m() {
        let of = |scheme: &str, ranks| {
            let (layout, given_up) = reduced(&scheme.parse().unwrap(), ranks, None).unwrap();
            (layout.scheme().to_string(), given_up.is_some())
        };
        assert_eq!(of("rs:4+2", 6), ("rs:4+2".into(), false));
        assert_eq!(of("rs:4+2", 5), ("rs:3+2".into(), true));
        assert_eq!(of("rs:4+2", 3), ("rs:1+2".into(), true));
        assert_eq!(of("rs:4+2", 2), ("rs:1+1".into(), true));
        assert_eq!(of("rs:4+2", 1), ("none".into(), true));
        assert_eq!(of("xor:4", 3), ("xor:3".into(), true));
        assert_eq!(of("xor", 2), ("xor".into(), false));
        assert_eq!(of("xor", 1), ("none".into(), true));
        assert_eq!(of("neighbor:3", 3), ("neighbor:2".into(), true));
        assert_eq!(of("none", 3), ("none".into(), false));
    }
}
