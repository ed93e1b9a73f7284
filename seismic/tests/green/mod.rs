//! The 2D Green's function of a homogeneous medium, convolved with a Ricker wavelet.

use std::f64::consts::{FRAC_PI_4, PI};

/// The pressure at distance `r` meters at times `dt, 2 dt, ..`: `F(w) (-i/4) H0^(2)(w r / v)` in the frequency domain,
/// with the spectrum of [`ft_seismic::ricker`] in closed form.
pub(crate) fn homogeneous_trace(r: f64, v: f64, f0_hz: f64, dt: f64, samples: usize) -> Vec<f64> {
    let (w0, delay) = (2.0 * PI * f0_hz, 1.5 / f0_hz);
    // The sum over frequencies repeats with this period; what runs over its end has decayed by then.
    let period = 8.0 * samples as f64 * dt;
    let dw = 2.0 * PI / period;
    let highest = (6.0 * w0 / dw) as usize;
    let spectrum: Vec<(f64, f64, f64)> = (1..=highest)
        .map(|i| {
            let w = i as f64 * dw;
            let ricker = 4.0 * PI.sqrt() * w * w / w0.powi(3) * (-(w / w0).powi(2)).exp();
            let (j0, y0) = bessel_0(w * r / v);
            // -i/4 (J0 - i Y0)
            (w, -ricker * y0 / 4.0, -ricker * j0 / 4.0)
        })
        .collect();
    (1..=samples)
        .map(|sample| {
            let t = sample as f64 * dt - delay;
            let term = |&(w, re, im): &(f64, f64, f64)| re * (w * t).cos() - im * (w * t).sin();
            dw / PI * spectrum.iter().map(term).sum::<f64>()
        })
        .collect()
}

/// `J0(x)` and `Y0(x)` for `x > 0` to about 1e-10: power series below 12, Hankel's asymptotic expansion above
/// (Abramowitz, Stegun 9.1.12, 9.1.13, 9.2.5 to 9.2.10).
fn bessel_0(x: f64) -> (f64, f64) {
    const EULER: f64 = 0.577_215_664_901_532_9;
    if x < 12.0 {
        let (mut term, mut j0, mut harmonic, mut rest) = (1.0, 1.0, 0.0, 0.0);
        for k in 1..60 {
            term *= -x * x / 4.0 / f64::from(k * k);
            harmonic += 1.0 / f64::from(k);
            j0 += term;
            rest -= harmonic * term;
        }
        return (j0, 2.0 / PI * (((x / 2.0).ln() + EULER) * j0 + rest));
    }
    let (mut p, mut q, mut term) = (0.0, 0.0, 1.0);
    for k in 0..20 {
        match k % 4 {
            0 => p += term,
            1 => q += term,
            2 => p -= term,
            _ => q -= term,
        }
        term *= -f64::from((2 * k + 1) * (2 * k + 1)) / (f64::from(k + 1) * 8.0 * x);
    }
    let (sin, cos) = (x - FRAC_PI_4).sin_cos();
    let scale = (2.0 / (PI * x)).sqrt();
    (scale * (p * cos - q * sin), scale * (p * sin + q * cos))
}

#[test]
fn bessel_functions_have_the_values_of_the_tables() {
    let table = [
        (0.1, 0.997_501_562_066_04, -1.534_238_651_350_37),
        (1.0, 0.765_197_686_557_967, 0.088_256_964_215_677),
        (10.0, -0.245_935_764_451_348, 0.055_671_167_283_599_4),
        (20.0, 0.167_024_664_340_583, 0.062_640_596_809_384),
    ];
    for (x, j0, y0) in table {
        let (got_j0, got_y0) = bessel_0(x);
        assert!((got_j0 - j0).abs() < 1e-9 && (got_y0 - y0).abs() < 1e-9, "at {x}: {got_j0}, {got_y0}");
    }
    // The two expansions meet.
    let (below, above) = (bessel_0(12.0_f64.next_down()), bessel_0(12.0));
    assert!((below.0 - above.0).abs() < 1e-9 && (below.1 - above.1).abs() < 1e-9, "{below:?}, {above:?}");
}
