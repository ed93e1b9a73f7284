//! Shards of exact bytes and doubles.

use super::*;
use crate::coding::apart::{Lens, Views, are_summed, within};
use crate::region::Strings;
use crate::store::Split;

/// Doubles of very different magnitudes, by `kind`.
fn doubles(member: usize, count: usize, kind: usize) -> Vec<f64> {
    let bits = shard(member, 8 * count);
    let unit = |at: usize| f64::from(u16::from_ne_bytes([bits[8 * at], bits[8 * at + 1]])) / 32768.0 - 1.0;
    let scale = |at: usize| match kind {
        0 => 1.0,
        1 => 10f64.powi((bits[8 * at + 2] % 60) as i32 - 30),
        2 => 10f64.powi(2 * (member % 3) as i32 - 40),
        _ => f64::MIN_POSITIVE * f64::from(bits[8 * at + 3]),
    };
    (0..count).map(|at| unit(at) * scale(at)).collect()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| value.abs().max(largest))
}

/// A group whose members have so many exact bytes and doubles.
struct Group<'a> {
    group: &'a ParityGroup,
    strings: Vec<Strings>,
    splits: Vec<Split>,
    shards: Vec<Vec<u8>>,
}

impl<'a> Group<'a> {
    fn new(
        group: &'a ParityGroup,
        exact: impl Fn(usize) -> usize,
        count: impl Fn(usize) -> usize,
        kind: usize,
    ) -> Self {
        let strings: Vec<Strings> = (0..group.computing)
            .map(|member| Strings { exact: exact(member), doubles: 8 * count(member) })
            .collect();
        let values: Vec<Vec<f64>> =
            (0..group.computing).map(|member| doubles(member, count(member), kind)).collect();
        let whole = |(member, strings): (usize, &Strings)| {
            let mut bytes = shard(member + 50, strings.exact);
            bytes.resize(strings.start(), 0);
            bytes.extend(values[member].iter().flat_map(|value| value.to_ne_bytes()));
            bytes
        };
        let shards = strings.iter().enumerate().map(whole).collect();
        let splits = strings.iter().zip(&values).map(|(strings, all)| Split::new(*strings, 0, largest(all)));
        Self { group, splits: splits.collect(), strings, shards }
    }

    fn lens(&self, sums: &Checksum, me: usize) -> Lens {
        Lens::new(self.shards.iter().map(Vec::len).collect(), Some(sums), &self.splits, me)
    }

    /// What each member makes of its views by `make`, run to its end in these buffers.
    fn run(
        &self,
        bytes: usize,
        buffers: impl Fn(usize, usize) -> (Vec<u8>, Vec<u8>),
        make: impl Fn(View<'_>, &dyn Fn(usize) -> Range<usize>) -> Result<Recipe, CheckpointError>,
    ) -> Vec<Vec<u8>> {
        let CodeSpec::Checksum { data, parity } = self.group.code else { panic!("another code") };
        let (code, sums) = (code(self.group.code).unwrap(), Checksum::new(data, parity).unwrap());
        let process = |me: usize| {
            let lens = self.lens(&sums, me);
            let mut views = Views::new(self.group, &*code, Some(&sums), me, &lens);
            views.exact.segment = bytes;
            views.doubles.iter_mut().for_each(|view| view.segment = bytes);
            let mut end = 0;
            let place = |(stripe, len, _): (usize, usize, _)| {
                let start = end;
                end = (start + len).next_multiple_of(64);
                (stripe, start..start + len)
            };
            let places: Vec<(usize, Range<usize>)> = views.held().into_iter().map(place).collect();
            let recipe = views.recipe(block_in(&places), &make).unwrap();
            let (input, buffer) = buffers(me, end);
            Process::new(recipe, input, buffer)
        };
        let mut processes: Vec<Process> = (0..self.group.members.len()).map(process).collect();
        run_all(&mut processes);
        processes.into_iter().map(|process| process.buffer).collect()
    }

    fn encode(&self, bytes: usize, rounds: usize) -> Vec<Vec<u8>> {
        let mut redundancy: Vec<Vec<u8>> = vec![vec![]; self.group.members.len()];
        for round in 0..rounds {
            let buffers = |me: usize, end: usize| {
                let mut before = redundancy[me].clone();
                before.resize(end, 0);
                (self.shards[me].clone(), before)
            };
            redundancy = self.run(bytes, buffers, |view, block| {
                let at = |round: usize| view.segments() * round / rounds;
                Ok(encoding(view, block, at(round)..at(round + 1)))
            });
        }
        redundancy
    }

    /// Loses these shards and blocks, and checks what comes back; gives the largest error over its bound.
    fn lose(&self, bytes: usize, redundancy: &[Vec<u8>], missing: Missing<'_>) -> f64 {
        let buffers = |me: usize, _| match missing.shards[me] {
            true => (vec![], vec![0xcc; self.shards[me].len()]),
            false if missing.blocks[me] => (self.shards[me].clone(), vec![0xdd; redundancy[me].len()]),
            false => (self.shards[me].clone(), redundancy[me].clone()),
        };
        let found = self.run(bytes, buffers, |view, block| restoring(view, missing, block));
        let CodeSpec::Checksum { data, parity } = self.group.code else { panic!("another code") };
        let sums = Checksum::new(data, parity).unwrap();
        let bounds = within(self.group, &sums, &self.splits, missing).unwrap();
        let is_exact = !are_summed(&sums, &self.splits);
        let mut worst = 0.0_f64;
        for member in (0..self.group.computing).filter(|member| missing.shards[*member]) {
            let (strings, due, is) = (self.strings[member], &self.shards[member], &found[member]);
            assert!(is[..strings.exact] == due[..strings.exact], "exact bytes of {member}: {missing:?}");
            let values =
                |bytes: &[u8]| -> Vec<f64> { bytemuck::pod_collect_to_vec(&bytes[strings.start()..]) };
            let pairs = values(is).into_iter().zip(values(due));
            let error = pairs.map(|(is, due)| (is - due).abs()).fold(0.0, f64::max);
            let Some(bound) = bounds.iter().find(|bound| bound.member == member) else {
                assert!(is_exact || strings.doubles == 0);
                assert!(is == due, "all of {member}: {missing:?}");
                continue;
            };
            assert!(
                error <= bound.absolute,
                "{error:e} off, {bound:?}, {missing:?} of {:?}",
                self.group.code
            );
            assert!(bound.absolute.is_finite() && bound.relative < 1e-6);
            worst = worst.max(error / bound.absolute);
        }
        worst
    }
}

fn checksum_groups() -> Vec<ParityGroup> {
    let shapes = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (4, 2), (4, 3), (3, 4), (6, 2)];
    let group = |(data, parity)| {
        let layout = GroupLayout::new(Scheme::Checksum { data, parity }, data + parity, 0, None).unwrap();
        layout.groups.into_iter().next().unwrap()
    };
    shapes.into_iter().map(group).collect()
}

#[test]
fn exact_bytes_come_back_as_they_were_and_doubles_within_their_bounds() {
    let (mut patterns, mut worst) = (0, 0.0_f64);
    for group in checksum_groups() {
        for kind in 0..4 {
            let equal = Group::new(&group, |_| 1001, |_| 130, kind);
            let unequal = Group::new(
                &group,
                |member| [0, 1, 777, 4099, 64][member % 5],
                |member| [77, 500, 0, 3][(member + kind) % 4],
                kind,
            );
            for whole in [equal, unequal] {
                let redundancy = whole.encode(192, 1);
                for lost in losses(&group) {
                    let missing = Missing { shards: &lost, blocks: &lost };
                    worst = worst.max(whole.lose(192, &redundancy, missing));
                    // Only the blocks of one more are damaged, where that is still within the tolerance.
                    let mut blocks = lost.clone();
                    blocks[lost.iter().position(|is_lost| !is_lost).unwrap()] = true;
                    let missing = Missing { shards: &lost, blocks: &blocks };
                    if missing.choices(&group).is_some() {
                        whole.lose(192, &redundancy, missing);
                    }
                    patterns += 1;
                }
            }
        }
    }
    assert!(patterns > 1500, "{patterns}");
    assert!(worst > 0.001, "errors are {worst} of their bounds at most: is anything computed in doubles?");
}

#[test]
fn what_is_small_beside_others_is_exact() {
    let sums = Checksum::new(4, 2).unwrap();
    let of = |largest: [f64; 4], doubles: [usize; 4]| {
        let split = |at: usize| Split::new(Strings { exact: 8, doubles: doubles[at] }, 0, largest[at]);
        are_summed(&sums, &[0, 1, 2, 3].map(split))
    };
    assert!(of([1.0; 4], [80; 4]));
    assert!(of([1e5, 1.0, 1e-2, 1e3], [80; 4]));
    assert!(!of([1e5, 1.0, 1e-5, 1e3], [80; 4]));
    assert!(!of([1.0, 1.0, 0.0, 1.0], [80; 4]), "zeros are as small as can be");
    assert!(of([1.0, 1.0, 0.0, 1.0], [80, 80, 0, 80]), "who has none is not asked");
    assert!(!of([0.0; 4], [0; 4]));
    assert!(of([0.0; 4], [80; 4]), "sums of zeros are zeros");
}

#[test]
fn bits_do_not_depend_on_segments_and_rounds() {
    for group in checksum_groups() {
        let whole = Group::new(&group, |member| 3000 - 300 * member, |member| 900 - 70 * member, 1);
        let once = whole.encode(4096, 1);
        for (bytes, rounds) in [(64, 1), (192, 1), (192, 3), (1024, 7)] {
            assert!(whole.encode(bytes, rounds) == once, "{bytes} {rounds} {:?}", group.code);
        }
    }
}

#[test]
fn without_doubles_blocks_are_those_of_reed_solomon() {
    for group in checksum_groups() {
        let whole = Group::new(&group, |member| 900 - 100 * member, |_| 0, 0);
        let CodeSpec::Checksum { data, parity } = group.code else { panic!("another code") };
        let rs = ParityGroup { code: CodeSpec::Rs { data, parity }, ..group.clone() };
        let lens: Vec<usize> = whole.shards.iter().map(Vec::len).collect();
        let code = code(rs.code).unwrap();
        let redundancy = whole.encode(192, 1);
        for (me, redundancy) in redundancy.iter().enumerate() {
            let view = View::new(&rs, Arithmetic::Field(&*code), me, &lens);
            for (index, place) in places(view).0 {
                let stripe = &rs.stripes[index];
                let chunks: Vec<&[u8]> =
                    stripe.data.iter().map(|data| &whole.shards[data.0][view.chunk(*data)]).collect();
                let mut blocks = vec![vec![0; place.len()]; stripe.parity.len()];
                let mut into: Vec<&mut [u8]> = blocks.iter_mut().map(|block| &mut block[..]).collect();
                code.encode(&chunks, &mut into).unwrap();
                let number = stripe.parity.iter().position(|holder| *holder == me).unwrap();
                assert!(redundancy[place] == *blocks[number], "stripe {index} at {me}");
            }
        }
    }
}
