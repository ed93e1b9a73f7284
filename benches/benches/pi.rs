//! Samples per second of counting hits in the quarter circle: Philox, a function of the sample's index, against
//! Xoshiro256++, a fast sequential generator with the same bits per number and the same comparison.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ft_montecarlo::{Estimate, hits};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SEED: u64 = 42;
const SAMPLES: u64 = 1 << 20;

fn xoshiro_hits(rng: &mut Xoshiro256PlusPlus, samples: u64) -> u64 {
    let unit = |bits: u64| (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
    let mut hits = 0;
    for _ in 0..samples {
        let (x, y) = (unit(rng.next_u64()), unit(rng.next_u64()));
        hits += u64::from(x * x + y * y <= 1.0);
    }
    hits
}

/// A generator that misses pi by ten standard errors is wrong, and its speed of no interest.
fn check(hits: u64) {
    let estimate = Estimate { samples: SAMPLES, hits };
    let miss = (estimate.pi() - std::f64::consts::PI).abs();
    assert!(miss < 10.0 * estimate.standard_error(), "{estimate:?} is {miss} from pi");
}

fn pi(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pi");
    group.throughput(Throughput::Elements(SAMPLES));

    check(hits(SEED, 0..SAMPLES));
    group.bench_function("philox", |bencher| {
        bencher.iter(|| hits(black_box(SEED), 0..black_box(SAMPLES)));
    });

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    check(xoshiro_hits(&mut rng, SAMPLES));
    group.bench_function("xoshiro", |bencher| {
        bencher.iter(|| xoshiro_hits(&mut rng, black_box(SAMPLES)));
    });
    group.finish();
}

fn config() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = config();
    targets = pi
}
criterion_main!(benches);
