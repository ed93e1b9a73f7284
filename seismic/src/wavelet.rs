//! Source time functions.

use std::f64::consts::PI;

/// The Ricker wavelet `(1 - 2 a) exp(-a)`, `a = (pi f0 (t - t0))^2`, of `samples` samples: the one at index `k` is at
/// time `k dt`.
///
/// `f0_hz` is the peak frequency of its amplitude spectrum; above `2.5 f0` there is practically nothing. The peak, of
/// height 1, is at `t0 = 1.5 / f0`: the wavelet starts at 1e-8 of it, so that nothing is switched on. With `1 / f0`,
/// which is common too, it would be 1e-3.
pub fn ricker(f0_hz: f64, dt_s: f64, samples: usize) -> Vec<f32> {
    let delay_s = ricker_delay(f0_hz);
    let value = |sample: usize| {
        let a = (PI * f0_hz * (sample as f64 * dt_s - delay_s)).powi(2);
        ((1.0 - 2.0 * a) * (-a).exp()) as f32
    };
    (0..samples).map(value).collect()
}

/// Time of the peak of [`ricker`], `1.5 / f0`, in seconds.
pub fn ricker_delay(f0_hz: f64) -> f64 {
    1.5 / f0_hz
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_from_nothing_peaks_at_the_delay_and_has_no_mean() {
        let wavelet = ricker(15.0, 0.001, 300);
        assert_eq!(wavelet.len(), 300);
        assert!(wavelet[0].abs() < 2e-8);
        assert_eq!(wavelet[100], 1.0);
        assert!((1..=100).all(|k| (wavelet[100 - k] - wavelet[100 + k]).abs() < 1e-6));
        assert!(wavelet.iter().map(|&v| f64::from(v)).sum::<f64>().abs() < 1e-5);
    }

    /// The spectrum is `f^2 exp(-f^2)` in units of the peak frequency.
    #[test]
    fn the_spectrum_peaks_at_the_frequency_asked_for() {
        let (f0, dt) = (20.0, 0.001);
        let wavelet = ricker(f0, dt, 400);
        let amplitude = |f: f64| {
            let (mut re, mut im) = (0.0, 0.0);
            for (k, &v) in wavelet.iter().enumerate() {
                let (sin, cos) = (2.0 * PI * f * k as f64 * dt).sin_cos();
                (re, im) = (re + f64::from(v) * cos, im + f64::from(v) * sin);
            }
            re.hypot(im)
        };
        let peak = amplitude(f0);
        for f in [0.25_f64, 0.5, 0.8, 1.2, 1.5, 2.5] {
            let want = f * f * (1.0 - f * f).exp();
            assert!((amplitude(f * f0) / peak - want).abs() < 1e-4, "at {f} f0");
        }
    }
}
