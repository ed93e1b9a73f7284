//! GiB/s of encoding, of adding a shard to a redundant block, of updating it, and of rebuilding lost shards, by code and size.
//!
//! `encode` and `rebuild` count the bytes that are read, the `k` shards; the others those of the one shard. A rebuild makes its
//! combination anew. Each case checks its answer before it is timed.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_encoders::{Code, Combinations, Mirror, ReedSolomon, Xor};

/// Bytes of a shard: in the cache, past most second-level caches, and an odd one that no kernel is made for.
const SHARD_BYTES: [usize; 3] = [1 << 16, 1 << 20, (1 << 20) + 1];

fn codes() -> Vec<(&'static str, Box<dyn Code>)> {
    vec![
        ("mirror 1+1", Box::new(Mirror::new(1).expect("valid"))),
        ("xor 4+1", Box::new(Xor::new(4).expect("valid"))),
        ("xor 8+1", Box::new(Xor::new(8).expect("valid"))),
        ("reed-solomon 4+2", Box::new(ReedSolomon::new(4, 2).expect("valid"))),
        ("reed-solomon 8+2", Box::new(ReedSolomon::new(8, 2).expect("valid"))),
        ("reed-solomon 8+4", Box::new(ReedSolomon::new(8, 4).expect("valid"))),
    ]
}

fn data(code: &dyn Code, shard_bytes: usize) -> Vec<Vec<u8>> {
    (0..code.data())
        .map(|member| (0..shard_bytes).map(|i| (i * 31 + i / 251 + member * 97) as u8).collect())
        .collect()
}

fn encode_into(code: &dyn Code, data: &[Vec<u8>], blocks: &mut [Vec<u8>]) {
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut blocks: Vec<&mut [u8]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&data, &mut blocks).expect("as many shards as the code takes");
}

/// A whole stripe of `code`: data shards, then redundant blocks.
fn stripe(code: &dyn Code, shard_bytes: usize) -> Vec<Vec<u8>> {
    let mut stripe = data(code, shard_bytes);
    let mut blocks = vec![vec![0; shard_bytes]; code.redundant()];
    encode_into(code, &stripe, &mut blocks);
    stripe.extend(blocks);
    stripe
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for (name, code) in codes() {
        for shard_bytes in SHARD_BYTES {
            let data = data(&*code, shard_bytes);
            let mut blocks = vec![vec![0; shard_bytes]; code.redundant()];
            encode_into(&*code, &data, &mut blocks);
            // Taking every shard out of its redundant blocks again leaves zeros.
            for (block, into) in blocks.iter_mut().enumerate() {
                for (member, shard) in data.iter().enumerate() {
                    code.accumulate(block, member, shard, into).expect("in range");
                }
            }
            assert!(blocks.iter().flatten().all(|&byte| byte == 0), "{name}, {shard_bytes} bytes");

            group.throughput(Throughput::Bytes((code.data() * shard_bytes) as u64));
            group.bench_function(BenchmarkId::new(name, shard_bytes), |bencher| {
                bencher.iter(|| encode_into(&*code, black_box(&data), &mut blocks));
            });
        }
    }
    group.finish();
}

fn accumulate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("accumulate");
    for (name, code) in codes() {
        for shard_bytes in SHARD_BYTES {
            let stripe = stripe(&*code, shard_bytes);
            let (member, block) = (code.data() - 1, code.redundant() - 1);
            let mut into = stripe[code.data() + block].clone();
            for (member, shard) in stripe[..code.data()].iter().enumerate() {
                code.accumulate(block, member, shard, &mut into).expect("in range");
            }
            assert!(into.iter().all(|&byte| byte == 0), "{name}, {shard_bytes} bytes");

            group.throughput(Throughput::Bytes(shard_bytes as u64));
            group.bench_function(BenchmarkId::new(name, shard_bytes), |bencher| {
                bencher.iter(|| code.accumulate(block, member, black_box(&stripe[member]), &mut into));
            });
        }
    }
    group.finish();
}

fn update(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("update");
    for (name, code) in codes() {
        for shard_bytes in SHARD_BYTES {
            let old = stripe(&*code, shard_bytes);
            let new: Vec<u8> = old[0].iter().map(|byte| byte.wrapping_mul(7)).collect();
            let mut stripe = old.clone();
            let blocks = &mut stripe[code.data()..];
            let replace = |old: &[u8], new: &[u8], blocks: &mut [Vec<u8>]| {
                let mut blocks: Vec<&mut [u8]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
                code.update(0, old, new, &mut blocks).expect("in range");
            };
            replace(&old[0], &new, blocks);
            assert!(*blocks != old[code.data()..], "{name}, {shard_bytes} bytes");
            replace(&new, &old[0], blocks);
            assert!(*blocks == old[code.data()..], "{name}, {shard_bytes} bytes");

            group.throughput(Throughput::Bytes(shard_bytes as u64));
            group.bench_function(BenchmarkId::new(name, shard_bytes), |bencher| {
                bencher.iter(|| replace(black_box(&old[0]), &new, blocks));
            });
        }
    }
    group.finish();
}

fn rebuild(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rebuild");
    for (name, code) in codes() {
        let mut counts = vec![1, code.redundant()];
        counts.dedup();
        for lost in counts.into_iter().filter(|lost| *lost <= code.data()) {
            for shard_bytes in SHARD_BYTES {
                let stripe = stripe(&*code, shard_bytes);
                let mut made = vec![vec![0; shard_bytes]; lost];
                // The first blocks are lost, which are data shards, the dearest to rebuild.
                let present: Vec<bool> = (0..stripe.len()).map(|index| index >= lost).collect();
                let mut rebuild = |stripe: &[Vec<u8>]| {
                    let combinations = (0..lost).map(|wanted| code.combination(&present, wanted));
                    let combinations: Combinations =
                        combinations.collect::<Result<_, _>>().expect("within tolerance");
                    let sources: Vec<&[u8]> =
                        combinations.sources().iter().map(|index| &stripe[*index][..]).collect();
                    let mut into: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
                    combinations.rebuild(&sources, &mut into).expect("as planned");
                };
                rebuild(&stripe);
                group.throughput(Throughput::Bytes((code.data() * shard_bytes) as u64));
                group.bench_function(
                    BenchmarkId::new(format!("{name} lost {lost}"), shard_bytes),
                    |bencher| bencher.iter(|| rebuild(black_box(&stripe))),
                );
                assert_eq!(made, stripe[..lost], "{name}, {shard_bytes} bytes, {lost} lost");
            }
        }
    }
    group.finish();
}

fn config() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = encode, accumulate, update, rebuild
}
criterion_main!(benches);
