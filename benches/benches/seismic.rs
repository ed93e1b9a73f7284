//! Points per second of a time step of the 2D acoustic wave equation, one core, absorbing layers included.
//!
//! The grids are 1040 x 1040 points (a model of 1000 x 1000 and layers of 20 points) and 541 x 191 (the Overthrust model's
//! 501 x 151), where the layers are a quarter of all; the wave field is that of a shot under way.
//! `benches/peers/devito_acoustic.py` prints the same number for Devito.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_seismic::{Model, Node, Propagator, ricker};

const TIME_STEP_S: f64 = 0.0012;
/// Steps before the first that is timed. The peak of the wave has then come nearly 800 m.
const STEPS_BEFORE: usize = 300;

fn step(criterion: &mut Criterion) {
    steps_in(criterion, "step", [1000, 1000]);
    steps_in(criterion, "small", [501, 151]);
}

/// Steps in a model of `nx` x `nz` points.
fn steps_in(criterion: &mut Criterion, name: &str, [nx, nz]: [usize; 2]) {
    let mut group = criterion.benchmark_group(name);
    let model = Model { nx, nz, spacing: 10.0, velocity: vec![3000.0; nx * nz] };
    let source = Node { ix: nx / 2, iz: nz / 2 };
    for order in [4, 8, 16] {
        let propagator = Propagator::new(&model, order, TIME_STEP_S).expect("stable");
        let mut field = propagator.still();
        for amplitude in ricker(15.0, TIME_STEP_S, STEPS_BEFORE) {
            propagator.step(&mut field, source, amplitude);
        }
        // The wave is symmetric, and has come as far as 800 m from the source.
        let at = |ix| propagator.sample(&field, Node { ix, iz: nz / 2 });
        let (left, right) = (at(nx / 2 - 80), at(nx / 2 + 80));
        assert!((left - right).abs() <= 1e-4 * left.abs() && left != 0.0, "{left} and {right}");

        group.throughput(Throughput::Elements(propagator.points() as u64));
        group.bench_function(BenchmarkId::new("order", order), |bencher| {
            bencher.iter(|| propagator.step(black_box(&mut field), source, 0.0));
        });
    }
    group.finish();
}

fn config() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(8))
}

criterion_group! {
    name = benches;
    config = config();
    targets = step
}
criterion_main!(benches);
