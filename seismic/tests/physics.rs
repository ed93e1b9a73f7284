//! The scheme against what is known of the wave equation: its Green's function, reciprocity, and that a run is
//! nothing but its state.

mod green;

use ft_seismic::{Model, Node, Propagator, Wavefield, ricker, shoot};
use green::homogeneous_trace;

const VELOCITY: f64 = 2000.0;
const F0_HZ: f64 = 15.0;

/// Relative L2 error of the trace of 0.55 s at 500 m from the source in a homogeneous medium.
fn green_error(order: usize, spacing: f64, dt: f64) -> f64 {
    // What comes back from the boundaries arrives after the trace has ended.
    let points = |meters: f64| (meters / spacing) as usize;
    let (nx, nz) = (points(1500.0) + 1, points(1000.0) + 1);
    let model = Model { nx, nz, spacing, velocity: vec![VELOCITY as f32; nx * nz] };
    let propagator = Propagator::new(&model, order, dt).unwrap();
    let samples = (0.55 / dt).round() as usize;
    let at = |x: f64| Node { ix: points(x), iz: points(500.0) };
    let trace = shoot(&propagator, at(500.0), &[at(1000.0)], &ricker(F0_HZ, dt, samples));

    let want = homogeneous_trace(500.0, VELOCITY, F0_HZ, dt, samples);
    let energy = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let mut differences = trace.iter().zip(&want).map(|(&got, want)| f64::from(got) - want);
    energy(&mut differences) / energy(&mut want.iter().copied())
}

#[test]
fn order_8_at_5_points_per_wavelength_is_within_4e_3_of_the_greens_function() {
    let error = green_error(8, 10.0, 0.0005);
    assert!(error <= 4e-3, "{error:e}");
}

#[test]
fn the_error_falls_with_the_square_of_the_time_step() {
    let errors = [0.002, 0.001, 0.0005].map(|dt| green_error(8, 10.0, dt));
    assert!(errors[0] / errors[1] >= 3.5 && errors[1] / errors[2] >= 3.5, "{errors:?}");
}

#[test]
fn the_error_falls_with_the_order_and_with_the_spacing() {
    let errors = [2, 4, 8].map(|order| green_error(order, 20.0, 0.002));
    assert!(errors[0] > 0.6 && errors[1] < 0.4 && errors[2] < 0.07, "{errors:?}");
    let error = green_error(4, 10.0, 0.001);
    assert!(error < 0.1 * errors[1], "{error:e}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn errors_of_all_kinds_of_runs_are_as_expected() {
    let runs = [
        (2, 10.0, 0.001, 0.4),
        (4, 20.0, 0.002, 0.34),
        (4, 10.0, 0.001, 0.017),
        (4, 5.0, 0.0005, 2.4e-3),
        (8, 20.0, 0.002, 0.06),
        (8, 10.0, 0.002, 0.062),
        (8, 10.0, 0.001, 0.016),
        (8, 10.0, 0.0005, 4e-3),
        (8, 5.0, 0.00025, 1.1e-3),
        (16, 10.0, 0.00025, 1.1e-3),
    ];
    for (order, spacing, dt, bound) in runs {
        let error = green_error(order, spacing, dt);
        println!("order {order}, {spacing} m, {} ms: {error:.2e}", dt * 1e3);
        assert!(error <= bound, "order {order}, {spacing} m, {dt} s: {error:e}");
    }
}

/// Random velocities from 1500 to 4500 m/s, from a linear congruential generator.
fn random_model(nx: usize, nz: usize) -> Model {
    let mut state = 1_u32;
    let velocity = (0..nx * nz).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1500.0 + 3000.0 * (state >> 8) as f32 / (1 << 24) as f32
    });
    Model { nx, nz, spacing: 10.0, velocity: velocity.collect() }
}

#[test]
fn source_and_receiver_can_be_exchanged() {
    let model = random_model(70, 50);
    let (a, b) = (Node { ix: 8, iz: 3 }, Node { ix: 60, iz: 41 });
    for order in [2, 4, 8, 16] {
        let propagator = Propagator::new(&model, order, 0.001).unwrap();
        let wavelet = ricker(15.0, 0.001, 600);
        let (there, back) = (shoot(&propagator, a, &[b], &wavelet), shoot(&propagator, b, &[a], &wavelet));
        let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>().sqrt();
        let difference = norm(&mut there.iter().zip(&back).map(|(a, b)| a - b));
        let relative = difference / norm(&mut there.iter().copied());
        assert!(relative <= 1e-5, "order {order}: {relative:e}");
    }
}

#[test]
fn a_restored_field_goes_on_with_the_same_bits() {
    let propagator = Propagator::new(&random_model(40, 33), 8, 0.001).unwrap();
    let wavelet = ricker(25.0, 0.001, 300);
    let source = Node { ix: 7, iz: 30 };
    let mut field = propagator.still();
    let mut saved = Wavefield::default();
    for (step, &amplitude) in wavelet.iter().enumerate() {
        if step == 151 {
            for (copy, part) in saved.parts_mut().into_iter().zip(field.parts()) {
                copy.clone_from(part);
            }
        }
        propagator.step(&mut field, source, amplitude);
    }
    assert!(propagator.fits(&saved));
    for &amplitude in &wavelet[151..] {
        propagator.step(&mut saved, source, amplitude);
    }
    let bits =
        |field: &Wavefield| field.parts().map(|part| part.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
    assert!(field.parts().iter().all(|part| part.iter().any(|&v| v != 0.0)));
    assert_eq!(bits(&field), bits(&saved));
}

/// The traces of a shot come receiver by receiver, and their samples are those of the field after each step.
#[test]
fn traces_are_receiver_major() {
    let propagator = Propagator::new(&random_model(20, 20), 4, 0.001).unwrap();
    let (source, receivers) = (Node { ix: 5, iz: 5 }, [Node { ix: 5, iz: 5 }, Node { ix: 15, iz: 9 }]);
    let traces = shoot(&propagator, source, &receivers, &ricker(30.0, 0.001, 80));
    let mut field = propagator.still();
    for (step, amplitude) in ricker(30.0, 0.001, 80).into_iter().enumerate() {
        propagator.step(&mut field, source, amplitude);
        assert_eq!(traces[step], propagator.sample(&field, receivers[0]));
        assert_eq!(traces[80 + step], propagator.sample(&field, receivers[1]));
    }
}
