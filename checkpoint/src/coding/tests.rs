//! The steps of all members, run against each other in one process.

use std::collections::{HashMap, VecDeque};

use ft_comm::Spaces;
use ft_encoders::Checksum;

use super::*;
use crate::changes::{Changes, Delta, Pages};
use crate::exchange::code;
use crate::layout::{CodeSpec, GroupLayout};
use crate::scheme::Scheme;

mod apart;

/// A member with its memories.
struct Process {
    recipe: Recipe,
    input: Vec<u8>,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    digests: Digests,
    at: usize,
    /// Receives that are posted.
    posted: Vec<(usize, Span)>,
}

impl Process {
    fn new(recipe: Recipe, input: Vec<u8>, buffer: Vec<u8>) -> Self {
        let parts = |step: &Step| match step {
            Step::Send { part, .. } | Step::Recv { part, .. } => vec![part.clone()],
            Step::Apply { reads, changes, .. } => [&reads[..], changes].concat(),
            _ => vec![],
        };
        let scratch = recipe.steps.iter().flat_map(parts).filter(|part| part.space == Space::Scratch);
        let scratch = vec![0xee; scratch.map(|part| part.range.end).max().unwrap_or(0)];
        Self { recipe, input, buffer, scratch, digests: Digests::default(), at: 0, posted: vec![] }
    }

    fn bytes(&mut self, part: &Span) -> &mut [u8] {
        match part.space {
            Space::Input => &mut self.input[part.range.clone()],
            Space::Buffer => &mut self.buffer[part.range.clone()],
            Space::Scratch => &mut self.scratch[part.range.clone()],
        }
    }
}

type Channels = HashMap<(usize, usize), VecDeque<Vec<u8>>>;

/// Runs all to their ends; what was sent waits for who receives it. Gives the bytes that each has sent.
fn run_all(processes: &mut [Process]) -> Vec<usize> {
    let (mut channels, mut sent) = (Channels::new(), vec![0; processes.len()]);
    loop {
        let mut moved = false;
        for (me, process) in processes.iter_mut().enumerate() {
            while go_on(me, process, &mut channels, &mut sent) {
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for (me, process) in processes.iter().enumerate() {
        assert!(process.posted.is_empty(), "{me} waits for {:?}", process.posted);
        assert_eq!(process.at, process.recipe.steps.len(), "{me} is stuck");
    }
    assert!(channels.values().all(VecDeque::is_empty), "messages are left over");
    sent
}

/// A step further, if possible.
fn go_on(me: usize, process: &mut Process, channels: &mut Channels, sent: &mut [usize]) -> bool {
    // A receive is served when it is the oldest from its sender.
    for at in 0..process.posted.len() {
        let (from, part) = process.posted[at].clone();
        let is_oldest = process.posted[..at].iter().all(|(other, _)| *other != from);
        if let Some(bytes) = channels.entry((from, me)).or_default().pop_front_if(|_| is_oldest) {
            assert_eq!(bytes.len(), part.len(), "{me} got from {from}");
            process.bytes(&part).copy_from_slice(&bytes);
            process.posted.remove(at);
            return true;
        }
    }
    let Some(step) = process.recipe.steps.get(process.at).cloned() else { return false };
    let waits = |part: &Span| process.posted.iter().any(|(_, other)| other.overlaps(part));
    match step {
        Step::Send { part, .. } | Step::Recv { part, .. } if waits(&part) => return false,
        Step::Send { to, part } => {
            let bytes = process.bytes(&part).to_vec();
            sent[me] += bytes.len();
            channels.entry((me, to)).or_default().push_back(bytes);
        }
        Step::Recv { from, part } => process.posted.push((from, part)),
        Step::Apply { reads, changes, .. } if reads.iter().chain(&changes).any(waits) => return false,
        Step::Apply { number, .. } => {
            let Process { recipe, input, buffer, scratch, digests, .. } = process;
            perform(&recipe.works[number], Spaces { input, buffer, scratch }, digests);
        }
        Step::Copy { from, to } if waits(&from) || waits(&to) => return false,
        Step::Copy { from, to } => {
            let bytes = process.bytes(&from).to_vec();
            process.bytes(&to).copy_from_slice(&bytes);
        }
        other => panic!("{other:?} in a recipe"),
    }
    process.at += 1;
    true
}

fn shard(member: usize, len: usize) -> Vec<u8> {
    let mut word = member as u32 * 77 + 1;
    let next = || {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (word >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Where each block that a member holds is, and how long all are together.
fn places(view: View<'_>) -> (Vec<(usize, Range<usize>)>, usize) {
    let mut end = 0;
    let place = |(stripe, len): (usize, usize)| {
        let start = end;
        end = (start + len).next_multiple_of(64);
        (stripe, start..start + len)
    };
    let all = view.held().map(place).collect();
    (all, end)
}

fn block_in(places: &[(usize, Range<usize>)]) -> impl Fn(usize) -> Range<usize> {
    move |stripe| places.iter().find(|(other, _)| *other == stripe).expect("held").1.clone()
}

/// All shards and all redundancy of a group.
struct Whole {
    shards: Vec<Vec<u8>>,
    redundancy: Vec<Vec<u8>>,
}

/// Encodes the shards of a group with segments of so many bytes, in so many rounds, and checks every block.
fn encode(group: &ParityGroup, lens: &[usize], bytes: usize, rounds: usize) -> Whole {
    let code = code(group.code).unwrap();
    let members = group.members.len();
    let view = |me: usize| View { segment: bytes, ..View::new(group, Arithmetic::Field(&*code), me, lens) };
    let shards: Vec<Vec<u8>> =
        (0..members).map(|member| shard(member, lens.get(member).copied().unwrap_or(0))).collect();
    let mut redundancy: Vec<Vec<u8>> = (0..members).map(|me| vec![0xdd; places(view(me)).1]).collect();
    let mut digests: Vec<Digests> = (0..members).map(|_| Digests::default()).collect();
    let segments = view(0).segments();
    let mut sent = vec![0; members];
    for round in 0..rounds {
        let now = segments * round / rounds..segments * (round + 1) / rounds;
        let process = |me: usize| {
            // Every other round has its own piece of the shards alone.
            let view = if round % 2 == 1 { view(me).in_window(now.clone()) } else { view(me) };
            let recipe = encoding(view, block_in(&places(view).0), now.clone());
            let input = view.pieces().into_iter().flat_map(|piece| shards[me][piece].to_vec()).collect();
            let mut process = Process::new(recipe, input, redundancy[me].clone());
            process.digests = std::mem::take(&mut digests[me]);
            process
        };
        let mut processes: Vec<Process> = (0..members).map(process).collect();
        sent = run_all(&mut processes).iter().zip(sent).map(|(now, before)| now + before).collect();
        for (me, process) in processes.into_iter().enumerate() {
            (redundancy[me], digests[me]) = (process.buffer, process.digests);
        }
    }
    for (index, stripe) in group.stripes.iter().enumerate() {
        let chunks: Vec<&[u8]> =
            stripe.data.iter().map(|data| &shards[data.0][view(0).chunk(*data)]).collect();
        let len = group.block_len(index, lens);
        let mut blocks = vec![vec![0; len]; stripe.parity.len()];
        let mut into: Vec<&mut [u8]> = blocks.iter_mut().map(|block| &mut block[..]).collect();
        code.encode(&chunks, &mut into).unwrap();
        for (block, holder) in blocks.iter().zip(&stripe.parity) {
            let place = block_in(&places(view(*holder)).0)(index);
            assert!(redundancy[*holder][place] == **block, "stripe {index} at {holder} of {group:?}");
            if let Some(crc) = digests[*holder].of(index) {
                assert_eq!(crc, crate::crc::crc64_nvme(block), "stripe {index} at {holder}");
            }
        }
    }
    // Nobody sends more than its share: its shard, and what it passes on.
    let longest = lens.iter().max().copied().unwrap_or(0);
    let tolerance = group.tolerance();
    let most = match group.copied(0) {
        Some(_) => tolerance * longest,
        None if view(0).is_dedicated(0) => tolerance * longest,
        None => longest + (tolerance - 1) * longest.div_ceil(group.chunks),
    };
    assert!(sent.iter().all(|sent| *sent <= most), "{sent:?} sent, {most} at most: {group:?}");
    Whole { shards, redundancy }
}

/// Changes some pages of the shards of a group, and checks that what is sent of them renews every block; one that was damaged stays so.
fn renew(group: &ParityGroup, lens: &[usize], whole: &Whole, seed: u64) {
    let code = code(group.code).unwrap();
    let members = group.members.len();
    let view = |me: usize| View::new(group, Arithmetic::Field(&*code), me, lens);
    let mut word = seed;
    let mut random = |below: usize| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (word >> 33) as usize % below.max(1)
    };
    let change = |shard: &Vec<u8>| {
        let (mut new, mut there) = (shard.clone(), shard.clone());
        for _ in 0..random(6) {
            let (start, count) = (random(new.len()), random(9000));
            new.iter_mut()
                .skip(start)
                .take(count)
                .for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(7));
        }
        let mut changes = Changes::new(new.len(), usize::MAX, vec![]);
        changes.put(0, &new, &mut there);
        (new, changes.finish(crate::crc::crc64_nvme(shard)).0)
    };
    let (new, deltas): (Vec<Vec<u8>>, Vec<Delta>) = whole.shards.iter().map(change).unzip();
    let pages: Vec<Pages> = deltas.iter().map(|delta| delta.pages.clone()).collect();
    let spoiled = random(members);
    let mut processes: Vec<Process> = (0..members)
        .map(|me| {
            let (places, _) = places(view(me));
            let block = block_in(&places);
            let before = |stripe: usize| {
                let crc = crate::crc::crc64_nvme(&whole.redundancy[me][block(stripe)]);
                Some(if me == spoiled { crc ^ 1 } else { crc })
            };
            let recipe = updating(view(me), &pages, &block, before);
            Process::new(recipe, deltas[me].packed.clone(), whole.redundancy[me].clone())
        })
        .collect();
    run_all(&mut processes);
    for (index, stripe) in group.stripes.iter().enumerate() {
        let chunks: Vec<&[u8]> = stripe.data.iter().map(|data| &new[data.0][view(0).chunk(*data)]).collect();
        let mut blocks = vec![vec![0; group.block_len(index, lens)]; stripe.parity.len()];
        let mut into: Vec<&mut [u8]> = blocks.iter_mut().map(|block| &mut block[..]).collect();
        code.encode(&chunks, &mut into).unwrap();
        for (block, holder) in blocks.iter().zip(&stripe.parity) {
            let place = block_in(&places(view(*holder)).0)(index);
            assert!(processes[*holder].buffer[place] == **block, "stripe {index} at {holder} of {group:?}");
            if let Some(crc) = processes[*holder].digests.of(index) {
                let due = crate::crc::crc64_nvme(block);
                assert_eq!(crc, if *holder == spoiled { !due } else { due }, "stripe {index} at {holder}");
            }
        }
    }
}

/// Loses these members and checks that they come back.
fn rebuild(group: &ParityGroup, lens: &[usize], bytes: usize, whole: &Whole, lost: &[bool]) {
    let code = code(group.code).unwrap();
    let members = group.members.len();
    let view = |me: usize| View { segment: bytes, ..View::new(group, Arithmetic::Field(&*code), me, lens) };
    for wanted in [Wanted::Shards, Wanted::Blocks] {
        let process = |me: usize| {
            let recipe = rebuilding(view(me), lost, wanted, block_in(&places(view(me)).0)).unwrap();
            let (shard, redundancy) = (whole.shards[me].clone(), whole.redundancy[me].clone());
            match (lost[me], wanted) {
                (false, _) => Process::new(recipe, shard, redundancy),
                (true, Wanted::Shards) => Process::new(recipe, vec![], vec![0xcc; shard.len()]),
                (true, Wanted::Blocks) => Process::new(recipe, vec![], vec![0xdd; redundancy.len()]),
            }
        };
        let mut processes: Vec<Process> = (0..members).map(process).collect();
        run_all(&mut processes);
        for (me, process) in processes.iter().enumerate() {
            let due = match wanted {
                Wanted::Shards if lost[me] => &whole.shards[me],
                _ => &whole.redundancy[me],
            };
            assert!(process.buffer == *due, "{wanted:?} of {me} with {lost:?} lost of {group:?}");
            for (stripe, place) in places(view(me)).0 {
                if let Some(crc) = process.digests.of(stripe) {
                    assert_eq!(crc, crate::crc::crc64_nvme(&whole.redundancy[me][place]), "stripe {stripe}");
                }
            }
        }
    }
}

/// Every scheme that a job of so many ranks, and so many for parity alone, can have in one group.
fn groups(ranks: usize) -> Vec<ParityGroup> {
    let of = |scheme: Scheme, parity: usize| {
        let layout = GroupLayout::new(scheme, ranks - parity, parity, None).ok()?;
        layout.groups.into_iter().next()
    };
    let rs = |parity: usize| Scheme::Rs { data: ranks - parity, parity };
    let copies = (1..ranks.min(4)).map(|copies| of(Scheme::Neighbor { copies }, 0));
    let rotated = (1..ranks.min(5)).map(|parity| of(rs(parity), 0));
    let dedicated = (1..ranks.min(4)).map(|parity| of(rs(parity), parity));
    let xor = [of(Scheme::Xor { group: Some(ranks) }, 0), of(Scheme::Xor { group: Some(ranks) }, 1)];
    copies.chain(rotated).chain(dedicated).chain(xor).flatten().collect()
}

/// Subsets of the members, at most as large as the group survives.
fn losses(group: &ParityGroup) -> impl Iterator<Item = Vec<bool>> {
    let members = group.members.len();
    let tolerance = group.tolerance();
    (1u32..1 << members)
        .filter(move |set| set.count_ones() as usize <= tolerance)
        .map(move |set| (0..members).map(|member| set >> member & 1 == 1).collect())
}

#[test]
fn every_block_is_right_and_every_loss_within_tolerance_comes_back() {
    let mut patterns = 0;
    for ranks in 2..=8 {
        let groups = groups(ranks);
        assert!(groups.len() >= 3, "{groups:?}");
        for group in groups {
            let equal = vec![1000; group.computing];
            let unequal: Vec<usize> =
                (0..group.computing).map(|member| [0, 1, 777, 4099, 64][member % 5]).collect();
            for lens in [equal, unequal] {
                let whole = encode(&group, &lens, 192, 1);
                for lost in losses(&group) {
                    rebuild(&group, &lens, 192, &whole, &lost);
                    patterns += 1;
                }
            }
        }
    }
    assert!(patterns > 3000, "{patterns}");
}

#[test]
fn what_has_changed_renews_every_block() {
    for ranks in 2..=8 {
        for (seed, group) in (0u64..).zip(groups(ranks)) {
            for lens in [[40_000; 5], [0, 1, 77_777, 4099, 20_000]] {
                let lens: Vec<usize> = (0..group.computing).map(|member| lens[member % 5]).collect();
                let whole = encode(&group, &lens, 65536, 1);
                renew(&group, &lens, &whole, seed << 8 | ranks as u64);
            }
        }
    }
}

#[test]
fn rounds_make_the_same_blocks() {
    for group in groups(5) {
        let lens: Vec<usize> = (0..group.computing).map(|member| 5000 - 900 * member).collect();
        for rounds in [2, 3, 100] {
            encode(&group, &lens, 128, rounds);
        }
    }
}

#[test]
fn nothing_at_all_is_encoded_too() {
    for group in groups(4) {
        let whole = encode(&group, &vec![0; group.computing], 4096, 1);
        for lost in losses(&group) {
            rebuild(&group, &vec![0; group.computing], 4096, &whole, &lost);
        }
    }
}

#[test]
fn beyond_tolerance_there_is_no_recipe() {
    let groups = groups(4);
    let group = groups.iter().find(|group| group.tolerance() == 2).unwrap();
    let (code, lens) = (code(group.code).unwrap(), vec![100; group.computing]);
    let view = View::new(group, Arithmetic::Field(&*code), 0, &lens);
    let error = rebuilding(view, &[false, true, true, true], Wanted::Shards, |_| 0..0).unwrap_err();
    assert!(error.to_string().contains("lost"), "{error}");
}

/// Where the missing shards that come to rank `me` begin in its buffer, behind its redundancy.
fn rooms(
    group: &ParityGroup,
    lens: &[usize],
    shards: &[bool],
    me: usize,
    mut end: usize,
) -> Vec<(usize, usize)> {
    let here = (0..group.computing).filter(|member| shards[*member] && group.members[*member] == me);
    let room = |member: usize| {
        end += lens[member];
        (member, end - lens[member])
    };
    here.map(room).collect()
}

fn room_in(rooms: &[(usize, usize)]) -> impl Fn(usize) -> usize {
    move |member| rooms.iter().find(|(other, _)| *other == member).expect("it comes here").1
}

/// Computes the missing shards by this choice, and checks them where they come to; ranks that speak for nobody are gone.
fn try_choice(group: &ParityGroup, lens: &[usize], whole: &Whole, missing: Missing<'_>, choice: usize) {
    let code = code(group.code).unwrap();
    let view = |me: usize| View { segment: 192, ..View::new(group, Arithmetic::Field(&*code), me, lens) };
    let rooms = |me: usize| rooms(group, lens, missing.shards, me, whole.redundancy[me].len());
    let process = |me: usize| {
        if group.members[me] != me {
            return Process::new(Recipe::default(), vec![], vec![]);
        }
        let (rooms, held) = (rooms(me), places(view(me)).0);
        let recipe = trying(view(me), missing, choice, block_in(&held), room_in(&rooms)).unwrap();
        let (mut shard, mut buffer) = (whole.shards[me].clone(), whole.redundancy[me].clone());
        if missing.shards[me] {
            shard.fill(0xbb);
        }
        if missing.blocks[me] {
            buffer.fill(0xdd);
        }
        buffer.resize(rooms.last().map_or(buffer.len(), |(member, room)| room + lens[*member]), 0xcc);
        Process::new(recipe, shard, buffer)
    };
    let mut processes: Vec<Process> = (0..lens.len().max(group.members.len())).map(process).collect();
    run_all(&mut processes);
    for stripe in group.stripes.iter().filter(|stripe| missing.present(stripe, choice).is_some()) {
        for data in stripe.data.iter().filter(|(member, _)| missing.shards[*member]) {
            let (chunk, at) = (view(0).chunk(*data), group.members[data.0]);
            let room = room_in(&rooms(at))(data.0);
            let found = &processes[at].buffer[room + chunk.start..room + chunk.end];
            assert!(*found == whole.shards[data.0][chunk], "{missing:?} {choice} {group:?}");
        }
    }
    for (me, process) in processes.iter().enumerate().filter(|(me, _)| group.members[*me] == *me) {
        let before = &whole.redundancy[me];
        assert!(missing.blocks[me] || process.buffer[..before.len()] == **before, "{me} {missing:?}");
    }
}

/// Whether members have died and are replaced, only their shards are damaged, or survivors speak for them: each selection of
/// redundant blocks gives these shards, and none reads what is missing.
#[test]
fn every_choice_gives_the_missing_shards() {
    let mut tried = 0;
    for group in (3..=5).flat_map(groups) {
        let lens: Vec<usize> = (0..group.computing).map(|member| [777, 0, 1500, 64][member % 4]).collect();
        let whole = encode(&group, &lens, 192, 1);
        for lost in losses(&group) {
            let shards: Vec<bool> = (0..lost.len()).map(|me| lost[me] && me < group.computing).collect();
            let mut able = (0..lost.len()).filter(|member| !lost[*member]).cycle();
            let speaker =
                |member: usize| if lost[member] { able.next().expect("a survivor") } else { member };
            let closed_up = ParityGroup { members: (0..lost.len()).map(speaker).collect(), ..group.clone() };
            let nothing = vec![false; lost.len()];
            for (group, blocks) in [(&group, &lost), (&group, &nothing), (&closed_up, &lost)] {
                let missing = Missing { shards: &shards, blocks };
                for choice in 0..missing.choices(group).expect("it is within the tolerance") {
                    try_choice(group, &lens, &whole, missing, choice);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}
