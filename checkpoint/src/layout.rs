//! Placement: which ranks form a parity group, and on whom each chunk and each redundant block lies.
//!
//! Every scheme is described by the same thing, *stripes* of a code: some data blocks, each a chunk of one member's
//! shard, and some parity blocks, each held by one member. All blocks of a stripe lie on different members, so the
//! loss of a member costs a stripe one block at most, and a stripe can be decoded as long as it has lost no more
//! blocks than it has parity. That one sentence decides survival for every scheme, copies included.
//!
//! ```text
//! neighbor:1 of 4        xor:4 rotated, 3 chunks   rs:3+1 of 4 dedicated
//! stripe  data  parity   stripe  parity  data      stripe  data          parity
//!      0  0.0        1        0       0  1.0 2.0 3.0    0  0.0 1.0 2.0        3
//!      1  1.0        2        1       1  0.0 2.1 3.1
//!      2  2.0        3        2       2  0.1 1.1 3.2       member.chunk
//!      3  3.0        0        3       3  0.2 1.2 2.2
//! ```
//!
//! Without hosts, groups are runs of consecutive ranks. With hosts, ranks sorted by host are dealt out to the groups
//! in turn. A host with no more ranks than there are groups then has at most one in each, and where it has more a
//! collision is unavoidable: no other division does better. When ranks have moved to other hosts a layout may be worse than
//! one over these ([`GroupLayout::relaid`]).

mod error;

#[cfg(test)]
mod tests;

use std::ops::Range;

use ft_encoders::Checksum;

use crate::scheme::Scheme;
pub use error::{BeyondTolerance, LayoutError};

/// The default `xor` makes one group of up to this many ranks, and groups of at least this many above.
const XOR_GROUP_DEFAULT: usize = 8;

/// Elements of the field that Reed-Solomon computes in, and so the most blocks a stripe can have.
const RS_BLOCKS_MAX: usize = 256;

/// The code of all stripes of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeSpec {
    /// Each parity block is a copy of the one data block.
    Mirror {
        /// Parity blocks a stripe.
        copies: usize,
    },
    /// One parity block, the sum of the data blocks in GF(2).
    Xor {
        /// Data blocks a stripe.
        data: usize,
    },
    /// Reed-Solomon over GF(2^8): any `parity` blocks may be lost.
    Rs {
        /// Data blocks a stripe.
        data: usize,
        /// Parity blocks a stripe.
        parity: usize,
    },
    /// Weighted sums for doubles, beside Reed-Solomon for all else: any `parity` blocks may be lost.
    Checksum {
        /// Data blocks a stripe.
        data: usize,
        /// Parity blocks a stripe.
        parity: usize,
    },
}

/// One codeword: blocks on different members of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripe {
    /// The data blocks in the order of the code, as (member index in the group, chunk index in its shard).
    pub data: Vec<(usize, usize)>,
    /// The member indices that hold the parity blocks, in the order of the code.
    pub parity: Vec<usize>,
}

/// Ranks that protect each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParityGroup {
    /// World ranks: those that compute, then the dedicated parity ranks. A member index counts in here.
    pub members: Vec<usize>,
    /// How many of `members` compute; the others have no shard.
    pub computing: usize,
    /// The number of equal chunks that each shard is cut into.
    pub chunks: usize,
    /// The code of every stripe.
    pub code: CodeSpec,
    /// Which blocks lie where.
    pub stripes: Vec<Stripe>,
}

impl ParityGroup {
    /// Returns the losses that the group survives wherever they strike.
    pub fn tolerance(&self) -> usize {
        match self.code {
            CodeSpec::Mirror { copies } => copies,
            CodeSpec::Xor { .. } => 1,
            CodeSpec::Rs { parity, .. } | CodeSpec::Checksum { parity, .. } => parity,
        }
    }

    /// Returns the member of whose whole shard the redundant blocks of `stripe` are copies, if that is what they are.
    pub fn copied(&self, stripe: usize) -> Option<usize> {
        match (self.code, &self.stripes[stripe].data[..]) {
            (CodeSpec::Mirror { .. }, [(member, _)]) if self.chunks == 1 => Some(*member),
            _ => None,
        }
    }

    /// Returns the bytes of chunk `chunk` in a shard of `shard_len` bytes.
    ///
    /// Chunks have `ceil(shard_len / chunks)` bytes; the last ones may be shorter or empty.
    pub fn chunk_range(&self, shard_len: usize, chunk: usize) -> Range<usize> {
        let bytes = shard_len.div_ceil(self.chunks);
        let at = |chunk: usize| chunk.saturating_mul(bytes).min(shard_len);
        at(chunk)..at(chunk + 1)
    }

    /// Returns the bytes of the blocks of `stripe` if member `i` has a shard of `shard_lens[i]` bytes: those of its
    /// longest chunk, to which the others are padded with zeros.
    ///
    /// # Panics
    ///
    /// If `stripe` is no stripe of this group, or a member that computes has no entry in `shard_lens`.
    pub fn block_len(&self, stripe: usize, shard_lens: &[usize]) -> usize {
        let chunk_len = |&(member, chunk): &(usize, usize)| self.chunk_range(shard_lens[member], chunk).len();
        self.stripes[stripe].data.iter().map(chunk_len).max().unwrap_or(0)
    }

    /// Returns the bytes that `member` keeps of one checkpoint of shards of these lengths: its own and its redundant blocks.
    ///
    /// With `k` data members and `m` blocks of stripes of equal shards of `S` bytes that is `S` and `m / k` of it with rotated
    /// parity, `S` on a dedicated parity rank, and `S` for each copy that it holds. A rank keeps two checkpoints of the variable
    /// part of its state and one of the constant part, beside the state itself; while it exchanges, segments of
    /// at most 512 KiB come to that: `2 (k + m - 1)` of them with rotated parity, `8 m` with dedicated. Of shards with doubles under a
    /// checksum scheme blocks have two parts, each as long as the longest of the members is, and up to 15 bytes to line them up.
    pub fn kept_bytes(&self, member: usize, shard_lens: &[usize]) -> usize {
        let held = self.stripes.iter().enumerate().filter(|(_, stripe)| stripe.parity.contains(&member));
        let blocks: usize = held.map(|(index, _)| self.block_len(index, shard_lens)).sum();
        shard_lens.get(member).copied().unwrap_or(0) + blocks
    }

    /// Returns how many more losses the group survives wherever they strike, with `lost` world ranks lost already;
    /// `None` if it is beyond tolerance.
    pub fn tolerance_left(&self, lost: &[usize]) -> Option<usize> {
        let is_lost: Vec<bool> = self.members.iter().map(|rank| lost.contains(rank)).collect();
        let left = |stripe: &Stripe| {
            let gone =
                stripe.data.iter().map(|(member, _)| member).chain(&stripe.parity).filter(|&&m| is_lost[m]);
            stripe.parity.len().checked_sub(gone.count())
        };
        self.stripes.iter().map(left).try_fold(usize::MAX, |least, left| Some(least.min(left?)))
    }

    /// Refuses more blocks a stripe than Reed-Solomon has elements, or there are weights for.
    fn require_narrow(&self, scheme: &Scheme) -> Result<(), LayoutError> {
        match self.code {
            CodeSpec::Rs { data, parity } if data + parity > RS_BLOCKS_MAX => {
                Err(LayoutError::TooWide { scheme: scheme.clone(), data, parity })
            }
            CodeSpec::Checksum { data, parity }
                if data > Checksum::DATA_MAX || parity > Checksum::REDUNDANT_MAX =>
            {
                Err(no_weights(scheme, data, parity))
            }
            _ => Ok(()),
        }
    }

    /// Whether two blocks of some stripe lie on one host.
    fn shares_hosts(&self, hosts: &[usize]) -> bool {
        self.stripes.iter().any(|stripe| {
            let blocks = stripe.data.iter().map(|(member, _)| member).chain(&stripe.parity);
            let mut on: Vec<&usize> = blocks.filter_map(|&member| hosts.get(self.members[member])).collect();
            on.sort_unstable();
            on.windows(2).any(|pair| pair[0] == pair[1])
        })
    }
}

/// The placement of a whole job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLayout {
    /// The groups; every rank is in exactly one of them, or there are none with [`Scheme::None`] and
    /// [`Scheme::Disk`].
    pub groups: Vec<ParityGroup>,
    /// Indices of the groups in which two blocks of some stripe lie on one host.
    pub groups_sharing_hosts: Vec<usize>,
    scheme: Scheme,
    ranks: usize,
    parity_per_group: usize,
    hosts: Option<Vec<usize>>,
    homes: Vec<Option<(usize, usize)>>,
}

impl GroupLayout {
    /// Lays out `ranks` ranks that compute, and `parity_ranks` dedicated parity ranks a group (0: rotated).
    ///
    /// `hosts[rank]` is any number that names the host of `rank`, given for at least the ranks that compute; parity
    /// ranks without an entry count as being on hosts of their own. Equal input gives an equal layout on every rank.
    ///
    /// # Errors
    ///
    /// Any [`LayoutError`]: the scheme does not fit these numbers.
    pub fn new(
        scheme: Scheme,
        ranks: usize,
        parity_ranks: usize,
        hosts: Option<&[usize]>,
    ) -> Result<Self, LayoutError> {
        if let Some(hosts) = hosts.filter(|hosts| hosts.len() < ranks) {
            return Err(LayoutError::Hosts { hosts: hosts.len(), ranks });
        }
        let shape = Shape::new(&scheme, ranks, parity_ranks)?;
        let spread =
            hosts.map(|hosts| &hosts[..ranks]).filter(|hosts| hosts.iter().any(|host| *host != hosts[0]));
        let groups = shape.groups(ranks, spread);
        groups.iter().try_for_each(|group| group.require_narrow(&scheme))?;
        let mut homes = vec![None; ranks + parity_ranks * groups.len()];
        for (index, group) in groups.iter().enumerate() {
            for (member, &rank) in group.members.iter().enumerate() {
                homes[rank] = Some((index, member));
            }
        }
        let shares = |&index: &usize| hosts.is_some_and(|hosts| groups[index].shares_hosts(hosts));
        let groups_sharing_hosts = (0..groups.len()).filter(shares).collect();
        let hosts = hosts.map(<[usize]>::to_vec);
        Ok(Self { groups, groups_sharing_hosts, scheme, ranks, parity_per_group: parity_ranks, hosts, homes })
    }

    /// Returns the scheme as it was asked for.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Returns the scheme with the size of group `group` filled in, such as `xor:4` for `xor` on four ranks.
    ///
    /// # Panics
    ///
    /// If there is no such group.
    pub fn scheme_of(&self, group: usize) -> Scheme {
        match self.groups[group].code {
            CodeSpec::Mirror { copies } => Scheme::Neighbor { copies },
            CodeSpec::Xor { data } => Scheme::Xor { group: Some(data + 1) },
            CodeSpec::Rs { data, parity } => Scheme::Rs { data, parity },
            CodeSpec::Checksum { data, parity } => Scheme::Checksum { data, parity },
        }
    }

    /// Returns the groups in words: `rs:4+2` for `rs:2+2` on six ranks, `2 groups of xor:4`, `groups of xor:3 and xor:4`.
    pub fn shape(&self) -> String {
        let mut kinds: Vec<String> =
            (0..self.groups.len()).map(|group| self.scheme_of(group).to_string()).collect();
        let groups = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        match (&kinds[..], groups) {
            ([], _) => self.scheme.to_string(),
            ([kind], 1) => kind.clone(),
            ([kind], groups) => format!("{groups} groups of {kind}"),
            (kinds, _) => format!("groups of {}", kinds.join(" and ")),
        }
    }

    /// Returns (group index, member index) of a world rank; `None` if no group protects it.
    pub fn group_of(&self, rank: usize) -> Option<(usize, usize)> {
        self.homes.get(rank).copied().flatten()
    }

    /// Returns the number of ranks that compute.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the number of dedicated parity ranks of the whole job; they are numbered after those that compute.
    pub fn parity_ranks(&self) -> usize {
        self.parity_per_group * self.groups.len()
    }

    /// Returns the number of all ranks.
    pub fn total_ranks(&self) -> usize {
        self.ranks + self.parity_ranks()
    }

    /// Says whether all shards can still be decoded without the `lost` world ranks.
    ///
    /// # Errors
    ///
    /// [`BeyondTolerance`] for the first group of which a stripe has lost more blocks than it has parity.
    pub fn survives(&self, lost: &[usize]) -> Result<(), BeyondTolerance> {
        let Some(group) = self.undecodable(lost) else { return Ok(()) };
        let members = match self.groups.get(group) {
            Some(group) => group.members.clone(),
            None => (0..self.ranks).collect(),
        };
        let mut own: Vec<usize> = members.iter().copied().filter(|rank| lost.contains(rank)).collect();
        own.sort_unstable();
        Err(BeyondTolerance {
            scheme: self.groups.get(group).map_or(Scheme::None, |_| self.scheme_of(group)),
            group,
            tolerance: self.groups.get(group).map_or(0, ParityGroup::tolerance),
            suggestion: self.suggest(group, own.len(), lost),
            members,
            lost: own,
        })
    }

    /// Returns the same scheme and ranks over other `hosts`, as [`GroupLayout::new`] takes them.
    ///
    /// # Errors
    ///
    /// [`LayoutError::Hosts`]: there are fewer hosts than ranks.
    pub fn over(&self, hosts: Option<&[usize]>) -> Result<Self, LayoutError> {
        Self::new(self.scheme.clone(), self.ranks, self.parity_per_group, hosts)
    }

    /// Returns the hosts whose loss could not be survived, ascending, if `hosts[rank]` is where each rank is now.
    pub fn fatal_hosts(&self, hosts: &[usize]) -> Vec<usize> {
        let mut fatal = hosts.to_vec();
        fatal.sort_unstable();
        fatal.dedup();
        let ranks_on = |host: usize| (0..hosts.len()).filter(|rank| hosts[*rank] == host).collect::<Vec<_>>();
        fatal.retain(|host| self.undecodable(&ranks_on(*host)).is_some());
        fatal
    }

    /// Returns the layout over `hosts`, where the ranks are now, if it survives the loss of more of them than this one does.
    pub fn relaid(&self, hosts: &[usize]) -> Option<Self> {
        let fatal = self.fatal_hosts(hosts).len();
        let other = if fatal > 0 { self.over(Some(hosts)).ok() } else { None };
        other.filter(|other| other.fatal_hosts(hosts).len() < fatal)
    }

    /// Returns the host of each rank over which this is laid, if hosts were given.
    pub fn hosts(&self) -> Option<&[usize]> {
        self.hosts.as_deref()
    }

    /// The first group that cannot be decoded; 0 without any group.
    fn undecodable(&self, lost: &[usize]) -> Option<usize> {
        match self.groups.is_empty() {
            true if matches!(self.scheme, Scheme::Disk { .. }) => None,
            true => lost.iter().any(|&rank| rank < self.ranks).then_some(0),
            false => self.groups.iter().position(|group| group.tolerance_left(lost).is_none()),
        }
    }

    /// The cheapest scheme of the same kind that would have survived `lost`, of which `own` are in `group`.
    ///
    /// Each candidate is laid out and asked, because another size of group divides the ranks in another way.
    fn suggest(&self, group: usize, own: usize, lost: &[usize]) -> Option<(Scheme, usize)> {
        let size = self.groups.get(group).map_or(self.ranks, |group| group.members.len());
        let rs = |size: usize, parity: usize| {
            (size.checked_sub(parity).filter(|data| *data > 0)).map(|data| Scheme::Rs { data, parity })
        };
        let candidates: Vec<Option<(Scheme, usize)>> = match (&self.scheme, self.parity_per_group) {
            (Scheme::Neighbor { copies }, _) => {
                (*copies + 1..self.ranks).map(|copies| Some((Scheme::Neighbor { copies }, 0))).collect()
            }
            (Scheme::None, _) => std::iter::once(Some((Scheme::Xor { group: None }, 0)))
                .chain((2..self.ranks).map(|parity| Some((rs(self.ranks, parity)?, 0))))
                .collect(),
            (_, 0) => (own..size)
                .map(|parity| rs(size, parity))
                .chain((own..self.ranks).map(|parity| rs(self.ranks, parity)))
                .map(|scheme| Some((scheme?, 0)))
                .collect(),
            (_, dedicated) => {
                let data = size - dedicated;
                (own..=own + data).map(|parity| Some((Scheme::Rs { data, parity }, parity))).collect()
            }
        };
        candidates.into_iter().flatten().find(|(scheme, parity_ranks)| {
            Self::new(scheme.clone(), self.ranks, *parity_ranks, self.hosts.as_deref())
                .is_ok_and(|other| other.undecodable(lost).is_none())
        })
    }
}

fn no_weights(scheme: &Scheme, data: usize, parity: usize) -> LayoutError {
    let (data_max, parity_max) = (Checksum::DATA_MAX, Checksum::REDUNDANT_MAX);
    LayoutError::NoWeights { scheme: scheme.clone(), data, parity, data_max, parity_max }
}

/// A scheme with its numbers checked against the job.
enum Shape {
    None,
    Ring { copies: usize },
    Groups(Division),
}

/// Groups of `size` ranks that compute, or more, with parity.
struct Division {
    size: usize,
    parity: usize,
    /// The parity has ranks of its own, which `size` does not count.
    dedicated: bool,
    kind: Kind,
}

/// How the parity of a group is computed.
enum Kind {
    Xor,
    Rs,
    Checksum,
}

impl Shape {
    fn new(scheme: &Scheme, ranks: usize, parity_ranks: usize) -> Result<Self, LayoutError> {
        let zero = |what| LayoutError::Zero { scheme: scheme.clone(), what };
        let refuse = |allows| LayoutError::ParityRanks { scheme: scheme.clone(), allows, parity_ranks };
        if ranks == 0 {
            return Err(zero("ranks"));
        }
        let dedicated = parity_ranks > 0;
        let (group, parity) = match *scheme {
            Scheme::None | Scheme::Disk { .. } | Scheme::Neighbor { .. } | Scheme::Checksum { .. }
                if dedicated =>
            {
                return Err(refuse(0));
            }
            Scheme::None | Scheme::Disk { .. } => return Ok(Self::None),
            Scheme::Neighbor { copies: 0 } => return Err(zero("copies")),
            Scheme::Xor { group: Some(0) } => return Err(zero("group")),
            Scheme::Xor { group: Some(1) } => return Err(LayoutError::XorOfOne),
            Scheme::Rs { data: 0, .. } | Scheme::Checksum { data: 0, .. } => return Err(zero("data")),
            Scheme::Rs { parity: 0, .. } | Scheme::Checksum { parity: 0, .. } => return Err(zero("parity")),
            Scheme::Xor { .. } if dedicated && parity_ranks != 1 => return Err(refuse(1)),
            Scheme::Rs { parity, .. } if dedicated && parity_ranks != parity => return Err(refuse(parity)),
            Scheme::Rs { data, parity } if data.saturating_add(parity) > RS_BLOCKS_MAX => {
                return Err(LayoutError::TooWide { scheme: scheme.clone(), data, parity });
            }
            Scheme::Checksum { data, parity }
                if data > Checksum::DATA_MAX || parity > Checksum::REDUNDANT_MAX =>
            {
                return Err(no_weights(scheme, data, parity));
            }
            _ if ranks == 1 && !dedicated => return Err(LayoutError::OneRank { scheme: scheme.clone() }),
            Scheme::Neighbor { copies } if copies >= ranks => {
                return Err(LayoutError::TooManyCopies { copies, ranks });
            }
            Scheme::Neighbor { copies } => return Ok(Self::Ring { copies }),
            Scheme::Xor { group: None } => (XOR_GROUP_DEFAULT.min(ranks) + usize::from(dedicated), 1),
            Scheme::Xor { group: Some(group) } => (group, 1),
            Scheme::Rs { data, parity } | Scheme::Checksum { data, parity } => (data + parity, parity),
        };
        let size = if dedicated { group - parity } else { group };
        if ranks < size {
            return Err(LayoutError::TooFew { scheme: scheme.clone(), needs: size, ranks, dedicated });
        }
        let kind = match scheme {
            Scheme::Xor { .. } => Kind::Xor,
            Scheme::Checksum { .. } => Kind::Checksum,
            _ => Kind::Rs,
        };
        Ok(Self::Groups(Division { size, parity, dedicated, kind }))
    }

    fn groups(&self, ranks: usize, hosts: Option<&[usize]>) -> Vec<ParityGroup> {
        match self {
            Self::None => Vec::new(),
            Self::Ring { copies } => vec![ring(ring_order(ranks, hosts), *copies)],
            Self::Groups(division) => {
                let divided = divide(ranks, division.size, hosts).into_iter().enumerate();
                divided.map(|(index, members)| division.group(index, members, ranks)).collect()
            }
        }
    }
}

impl Division {
    /// The group with this number, of these ranks that compute. Dedicated parity ranks are numbered after all `ranks` that
    /// do.
    fn group(&self, index: usize, mut members: Vec<usize>, ranks: usize) -> ParityGroup {
        let (computing, parity) = (members.len(), self.parity);
        if self.dedicated {
            members.extend((0..parity).map(|p| ranks + index * parity + p));
        }
        let data = members.len() - parity;
        let code = match self.kind {
            Kind::Xor => CodeSpec::Xor { data },
            Kind::Rs => CodeSpec::Rs { data, parity },
            Kind::Checksum => CodeSpec::Checksum { data, parity },
        };
        let (chunks, stripes) = match self.dedicated {
            true => (1, vec![one_stripe(computing, parity)]),
            false => (data, rotated(computing, parity)),
        };
        ParityGroup { members, computing, chunks, code, stripes }
    }
}

/// Divides `ranks` ranks into `floor(ranks / size)` groups whose sizes differ by at most one.
fn divide(ranks: usize, size: usize, hosts: Option<&[usize]>) -> Vec<Vec<usize>> {
    let count = ranks / size;
    match hosts {
        None => (0..count).map(|g| (g * ranks / count..(g + 1) * ranks / count).collect()).collect(),
        Some(hosts) => {
            let mut groups = vec![Vec::new(); count];
            for (place, rank) in by_host(hosts).into_iter().enumerate() {
                groups[place % count].push(rank);
            }
            groups.iter_mut().for_each(|group| group.sort_unstable());
            groups
        }
    }
}

fn by_host(hosts: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hosts.len()).collect();
    order.sort_by_key(|&rank| (hosts[rank], rank));
    order
}

/// The order in which each rank's copies go to the next ones: by rank, or so that the next ones are on other hosts.
///
/// Ranks sorted by host are dealt into as many rows as the fullest host has ranks. So each row has each host at most
/// once, and with equally full hosts all of them in the same order.
fn ring_order(ranks: usize, hosts: Option<&[usize]>) -> Vec<usize> {
    let Some(hosts) = hosts else { return (0..ranks).collect() };
    let fullest =
        hosts.iter().map(|host| hosts.iter().filter(|other| *other == host).count()).max().unwrap_or(1);
    let sorted = by_host(hosts);
    (0..fullest).flat_map(|row| sorted.iter().copied().skip(row).step_by(fullest)).collect()
}

fn ring(members: Vec<usize>, copies: usize) -> ParityGroup {
    let ranks = members.len();
    let stripe =
        |i: usize| Stripe { data: vec![(i, 0)], parity: (1..=copies).map(|c| (i + c) % ranks).collect() };
    let stripes = (0..ranks).map(stripe).collect();
    ParityGroup { members, computing: ranks, chunks: 1, code: CodeSpec::Mirror { copies }, stripes }
}

fn one_stripe(data: usize, parity: usize) -> Stripe {
    Stripe { data: (0..data).map(|member| (member, 0)).collect(), parity: (data..data + parity).collect() }
}

/// One stripe a member; in stripe `s` the parity is at `s .. s + parity`, the others add their next chunk each.
fn rotated(members: usize, parity: usize) -> Vec<Stripe> {
    let mut chunks_used = vec![0; members];
    let mut stripes = Vec::with_capacity(members);
    for s in 0..members {
        let holders: Vec<usize> = (s..s + parity).map(|member| member % members).collect();
        let mut data = Vec::with_capacity(members - parity);
        for (member, next) in
            chunks_used.iter_mut().enumerate().filter(|(member, _)| !holders.contains(member))
        {
            data.push((member, *next));
            *next += 1;
        }
        stripes.push(Stripe { data, parity: holders });
    }
    stripes
}
