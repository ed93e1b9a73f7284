//! Points per second of a time step of the 2D acoustic wave equation, one core, absorbing layers included.
//!
//! The grid is 1040 x 1040 points (a model of 1000 x 1000 and layers of 20 points), the wave field that of a shot under
//! way. `benches/peers/devito_acoustic.py` prints the same number for Devito.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_seismic::{Model, Node, Propagator, ricker};

/// Points of the model in each direction.
const POINTS: usize = 1000;
const TIME_STEP_S: f64 = 0.0012;
/// Steps before the first that is timed. The peak of the wave has then come nearly 800 m.
const STEPS_BEFORE: usize = 300;

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("step");
    let model = Model { nx: POINTS, nz: POINTS, spacing: 10.0, velocity: vec![3000.0; POINTS * POINTS] };
    let source = Node { ix: POINTS / 2, iz: POINTS / 2 };
    for order in [4, 8, 16] {
        let propagator = Propagator::new(&model, order, TIME_STEP_S).expect("stable");
        let mut field = propagator.still();
        for amplitude in ricker(15.0, TIME_STEP_S, STEPS_BEFORE) {
            propagator.step(&mut field, source, amplitude);
        }
        // The wave is symmetric, and has come as far as 800 m from the source.
        let at = |ix| propagator.sample(&field, Node { ix, iz: POINTS / 2 });
        let (left, right) = (at(POINTS / 2 - 80), at(POINTS / 2 + 80));
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
