//! GiB/s of adding a shard to a redundant block, and of recovering lost shards, by code and size.
//!
//! `accumulate` counts the bytes of the shard; `recover` those of the shards filled in, the time including the
//! memory for them. Each case checks its answer before it is timed.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_encoders::{Code, Mirror, ReedSolomon, Xor, encode};

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

/// A whole stripe of `code`: data shards, then redundant blocks.
fn stripe(code: &dyn Code, shard_bytes: usize) -> Vec<Vec<u8>> {
    let mut stripe: Vec<Vec<u8>> = (0..code.data())
        .map(|member| (0..shard_bytes).map(|i| (i * 31 + i / 251 + member * 97) as u8).collect())
        .collect();
    let shards: Vec<&[u8]> = stripe.iter().map(Vec::as_slice).collect();
    let redundant = encode(code, &shards).expect("as many shards as the code takes");
    stripe.extend(redundant);
    stripe
}

fn accumulate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("accumulate");
    for (name, code) in codes() {
        for shard_bytes in SHARD_BYTES {
            let stripe = stripe(&*code, shard_bytes);
            let (member, block) = (code.data() - 1, code.redundant() - 1);

            // Taking every shard out of its redundant block again leaves zeros.
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

fn recover(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("recover");
    for (name, code) in codes() {
        let mut counts = vec![1, code.redundant()];
        counts.dedup();
        for lost in counts {
            for shard_bytes in SHARD_BYTES {
                let stripe = stripe(&*code, shard_bytes);
                let mut shards: Vec<Option<Vec<u8>>> = stripe.iter().cloned().map(Some).collect();
                // The first blocks are lost, which are data shards, the dearest to recover.
                let lose_and_recover = |shards: &mut [Option<Vec<u8>>]| {
                    shards[..lost].fill(None);
                    code.recover(shards).expect("within tolerance");
                };
                lose_and_recover(&mut shards);
                assert!(shards.iter().flatten().eq(&stripe), "{name}, {shard_bytes} bytes, {lost} lost");

                group.throughput(Throughput::Bytes((lost * shard_bytes) as u64));
                group.bench_function(
                    BenchmarkId::new(format!("{name} lost {lost}"), shard_bytes),
                    |bencher| {
                        bencher.iter(|| lose_and_recover(black_box(&mut shards)));
                    },
                );
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
    targets = accumulate, recover
}
criterion_main!(benches);
