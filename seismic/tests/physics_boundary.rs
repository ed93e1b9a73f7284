//! The absorbing boundaries: how much comes back, and that nothing ever grows.

use ft_seismic::check::largest_stable_dt;
use ft_seismic::{Model, Node, Propagator, Wavefield, ricker, shoot};

/// `20 log10(max|difference| / max|reference|)`
fn level_db(reference: &[f32], got: &[f32]) -> f32 {
    let largest = |values: &mut dyn Iterator<Item = f32>| values.map(f32::abs).fold(0.0, f32::max);
    let difference = largest(&mut reference.iter().zip(got).map(|(a, b)| a - b));
    20.0 * (difference / largest(&mut reference.iter().copied())).log10()
}

/// Levels of what comes back from the boundaries of a model of 81 x 81 points, 10 m and 2000 m/s: receivers where the
/// wave hits at normal incidence, at 45 degrees, and along the top, source and receiver 20 m below it.
fn reflection_levels_db(order: usize, f0_hz: f64) -> [f32; 3] {
    let uniform = |n: usize| Model { nx: n, nz: n, spacing: 10.0, velocity: vec![2000.0; n * n] };
    let (dt, steps) = (0.0015, 500);
    let wavelet = ricker(f0_hz, dt, steps);
    // 1500 m are traveled until the end: the small model's outermost points are heard twice over, the large one's not.
    let margin = 75;
    let [small, large] = [81, 81 + 2 * margin].map(|n| Propagator::new(&uniform(n), order, dt).unwrap());
    let traces = |(propagator, first): (&Propagator, usize)| {
        let at = |(ix, iz)| Node { ix: first + ix, iz: first + iz };
        let mut traces = shoot(propagator, at((40, 40)), &[at((74, 40)), at((74, 74))], &wavelet);
        traces.extend(shoot(propagator, at((5, 2)), &[at((75, 2))], &wavelet));
        traces
    };
    let (reference, got) = (traces((&large, margin)), traces((&small, 0)));
    let mut levels = reference.chunks(steps).zip(got.chunks(steps)).map(|(a, b)| level_db(a, b));
    std::array::from_fn(|_| levels.next().unwrap())
}

#[test]
fn at_most_50_db_come_back() {
    for (order, f0_hz) in [(4, 15.0), (8, 15.0), (16, 10.0)] {
        let levels = reflection_levels_db(order, f0_hz);
        assert!(levels.iter().all(|&level| level <= -60.0), "order {order}, {f0_hz} Hz: {levels:?} dB");
    }
    let levels = reflection_levels_db(2, 8.0);
    assert!(levels.iter().all(|&level| level <= -50.0), "order 2: {levels:?} dB");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn at_most_50_db_come_back_at_any_order_and_frequency() {
    for order in (2..=16).step_by(2) {
        for f0_hz in [7.0, 15.0, 25.0] {
            let levels = reflection_levels_db(order, f0_hz);
            println!("order {order}, {f0_hz} Hz: {levels:?} dB");
            assert!(levels.iter().all(|&level| level <= -50.0), "order {order}, {f0_hz} Hz: {levels:?} dB");
        }
    }
}

/// Layers and blocks from 1500 to 5500 m/s that run into the boundaries at all sides.
fn contrasts(nx: usize, nz: usize) -> Model {
    let velocity = |i: usize| match (i / nz / 13 + i % nz / 9) % 4 {
        0 => 1500.0,
        1 => 5500.0,
        2 => 2500.0,
        _ => 4000.0,
    };
    Model { nx, nz, spacing: 10.0, velocity: (0..nx * nz).map(velocity).collect() }
}

fn energy(field: &Wavefield) -> f64 {
    field.parts().into_iter().flat_map(|part| part.iter()).map(|&v| f64::from(v) * f64::from(v)).sum()
}

/// Energy at the end of the wavelet and after each of four equal parts of the run.
fn energies(order: usize, nx: usize, nz: usize, steps: usize) -> [f64; 5] {
    let model = contrasts(nx, nz);
    let dt = 0.99 * largest_stable_dt(&model, order).unwrap();
    let propagator = Propagator::new(&model, order, dt).unwrap();
    let source = Node { ix: 3, iz: nz / 2 };
    let mut field = propagator.still();
    let wavelet = ricker(15.0, dt, (0.2 / dt) as usize);
    for &amplitude in &wavelet {
        propagator.step(&mut field, source, amplitude);
    }
    std::array::from_fn(|part| {
        for _ in 0..if part == 0 { 0 } else { steps / 4 } {
            propagator.step(&mut field, source, 0.0);
        }
        energy(&field)
    })
}

#[test]
fn energy_leaves_a_model_of_strong_contrasts_and_does_not_come_back() {
    for order in [2, 8, 16] {
        let energies = energies(order, 40, 30, 4000);
        assert!(energies[0] > 0.0 && energies[1] < 1e-3 * energies[0], "order {order}: {energies:?}");
        assert!(energies.is_sorted_by(|before, after| after <= before), "order {order}: {energies:?}");
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn nothing_grows_in_a_hundred_thousand_steps() {
    for order in [2, 8, 16] {
        let energies = energies(order, 120, 90, 100_000);
        println!("order {order}: {energies:?}");
        assert!(energies.is_sorted_by(|before, after| after <= before), "order {order}: {energies:?}");
        assert!(energies[4] < 1e-8 * energies[0], "order {order}: {energies:?}");
    }
}
