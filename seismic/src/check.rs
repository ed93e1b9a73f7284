//! Whether a grid and a time step can carry a wave: the stability limit and the dispersion rule.

use thiserror::Error;

use crate::Model;
use crate::stencil::{ORDER_MAX, OrderError, radius, second_derivative};

/// The highest frequency in a Ricker wavelet worth carrying, in units of its peak frequency.
const HIGHEST_PER_PEAK_FREQUENCY: f64 = 2.5;

/// Why a run cannot be made, or would not give what it is made for. The texts name values that would be all right,
/// rounded down to four figures.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no such stencil.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The number of velocities is not the number of points, or there are none.
    #[error("{velocities} velocities for {nx} x {nz} points: there must be one for each, and at least one")]
    Points {
        /// Velocities given.
        velocities: usize,
        /// Points along the surface.
        nx: usize,
        /// Points in depth.
        nz: usize,
    },
    /// A velocity that no wave can have.
    #[error("velocity of {velocity} m/s at point ({ix}, {iz}): it must be above 0 and finite")]
    Velocity {
        /// The velocity in m/s.
        velocity: f32,
        /// Along the surface, from 0.
        ix: usize,
        /// In depth, from 0.
        iz: usize,
    },
    /// A length, time or frequency that is not above 0 and finite.
    #[error("{quantity} of {value}: it must be above 0 and finite")]
    NotPositive {
        /// What it is, with its unit.
        quantity: &'static str,
        /// What was given.
        value: f64,
    },
    /// The scheme would blow up.
    #[error(
        "time step {} ms is unstable: at most {} ms for velocities up to {v_max} m/s on a grid of {spacing} m at \
         space order {order}",
        dt * 1e3,
        down(dt_max * 1e3)
    )]
    Unstable {
        /// The time step in seconds.
        dt: f64,
        /// The largest stable one in seconds.
        dt_max: f64,
        /// The highest velocity of the model in m/s.
        v_max: f64,
        /// Distance of the points in meters.
        spacing: f64,
        /// Order in space.
        order: usize,
    },
    /// The grid is too coarse: short waves would arrive late and as a tail of wiggles.
    #[error(
        "grid of {spacing} m is too coarse for {f0_hz} Hz: {} points per shortest wavelength ({v_min} m/s at {} Hz), \
         space order {order} needs {needed}; {} would be fine",
        down(*points),
        HIGHEST_PER_PEAK_FREQUENCY * f0_hz,
        alternatives(*f0_max_hz, *spacing_max, *order_min)
    )]
    Dispersive {
        /// Peak frequency of the wavelet in Hz.
        f0_hz: f64,
        /// The lowest velocity of the model in m/s.
        v_min: f64,
        /// Distance of the points in meters.
        spacing: f64,
        /// Order in space.
        order: usize,
        /// Points per shortest wavelength.
        points: f64,
        /// As many are needed at this order.
        needed: f64,
        /// The highest peak frequency in Hz that this grid carries at this order.
        f0_max_hz: f64,
        /// The largest distance of points in meters for this frequency at this order.
        spacing_max: f64,
        /// The lowest order that would do for this grid and frequency, if one does.
        order_min: Option<usize>,
    },
}

/// The largest stable time step in seconds: `h / v_max * 2 / sqrt(2 (|c_0| + 2 sum_k |c_k|))` with the weights `c` of
/// the second derivative (Lines, Slawinski, Bording, "A recipe for stability of finite-difference wave-equation
/// computations", Geophysics 64 (1999)). The factor after `h / v_max` is 0.7071 at order 2, 0.6124 at 4, 0.5546 at 8
/// and 0.5189 at 16.
///
/// # Errors
/// When there is no such order or the model is not one.
pub fn largest_stable_dt(model: &Model, order: usize) -> Result<f64, CheckError> {
    let (_, v_max) = velocity_range(model)?;
    let weights = second_derivative(order)?;
    let sum = weights[0].abs() + 2.0 * weights[1..].iter().map(|weight| weight.abs()).sum::<f64>();
    Ok(model.spacing / v_max * 2.0 / (2.0 * sum).sqrt())
}

/// A time step in seconds to take when nobody says otherwise: 0.9 of the largest stable one, rounded down to whole
/// microseconds if that leaves any.
///
/// # Errors
/// Those of [`largest_stable_dt`].
pub fn default_dt(model: &Model, order: usize) -> Result<f64, CheckError> {
    let dt = 0.9 * largest_stable_dt(model, order)?;
    let microseconds = (dt * 1e6).floor();
    Ok(if microseconds >= 1.0 { microseconds / 1e6 } else { dt })
}

/// Is the scheme stable with time steps of `dt` seconds?
///
/// # Errors
/// [`CheckError::Unstable`] if not; when `dt` is no time step; those of [`largest_stable_dt`].
pub fn check_stability(model: &Model, order: usize, dt: f64) -> Result<(), CheckError> {
    let dt_max = largest_stable_dt(model, order)?;
    positive("time step in seconds", dt)?;
    if dt <= dt_max {
        return Ok(());
    }
    let (_, v_max) = velocity_range(model)?;
    Err(CheckError::Unstable { dt, dt_max, v_max, spacing: model.spacing, order })
}

/// Does the grid carry a Ricker wavelet of peak frequency `f0_hz`? The shortest wavelength, `v_min / (2.5 f0)`, must
/// have 10 points at order 2, 5 at order 4, 4 at order 6, and 3 at order 8 and above.
///
/// Orders 2 and 4 are from Alford, Kelly, Boore, "Accuracy of finite-difference modeling of the acoustic wave
/// equation", Geophysics 39 (1974), and Levander, "Fourth-order finite-difference P-SV seismograms", Geophysics 53
/// (1988); 3 points at high order from Dablain, "The application of high-order differencing to the scalar wave
/// equation", Geophysics 51 (1986); order 6 lies between. They hold for some tens of wavelengths of travel.
///
/// # Errors
/// [`CheckError::Dispersive`] if not; when `f0_hz` is no frequency; those of [`largest_stable_dt`].
pub fn check_dispersion(model: &Model, order: usize, f0_hz: f64) -> Result<(), CheckError> {
    let (v_min, _) = velocity_range(model)?;
    radius(order)?;
    positive("peak frequency in Hz", f0_hz)?;
    let spacing = model.spacing;
    let shortest = v_min / (HIGHEST_PER_PEAK_FREQUENCY * f0_hz);
    let (points, needed) = (shortest / spacing, points_needed(order));
    if points >= needed {
        return Ok(());
    }
    Err(CheckError::Dispersive {
        f0_hz,
        v_min,
        spacing,
        order,
        points,
        needed,
        f0_max_hz: v_min / (HIGHEST_PER_PEAK_FREQUENCY * needed * spacing),
        spacing_max: shortest / needed,
        order_min: (2..=ORDER_MAX).step_by(2).find(|&order| points >= points_needed(order)),
    })
}

/// Points per shortest wavelength that an order needs.
fn points_needed(order: usize) -> f64 {
    match order {
        ..=2 => 10.0,
        3..=4 => 5.0,
        5..=6 => 4.0,
        7.. => 3.0,
    }
}

/// The lowest and the highest velocity in m/s of a model that is one.
pub(crate) fn velocity_range(model: &Model) -> Result<(f64, f64), CheckError> {
    let Model { nx, nz, spacing, ref velocity } = *model;
    positive("distance of points in meters", spacing)?;
    if velocity.is_empty() || nx.checked_mul(nz) != Some(velocity.len()) {
        return Err(CheckError::Points { velocities: velocity.len(), nx, nz });
    }
    if let Some(bad) = velocity.iter().position(|v| !(v.is_finite() && *v > 0.0)) {
        return Err(CheckError::Velocity { velocity: velocity[bad], ix: bad / nz, iz: bad % nz });
    }
    let range = velocity.iter().fold((f32::MAX, 0.0_f32), |(low, high), &v| (low.min(v), high.max(v)));
    Ok((f64::from(range.0), f64::from(range.1)))
}

fn positive(quantity: &'static str, value: f64) -> Result<(), CheckError> {
    let positive = value.is_finite() && value > 0.0;
    positive.then_some(()).ok_or(CheckError::NotPositive { quantity, value })
}

/// Rounded down to four figures, so that a limit that is copied from a text is still below the limit.
fn down(value: f64) -> f64 {
    let unit = 10_f64.powf(3.0 - value.abs().log10().floor());
    if unit.is_finite() { (value * unit).floor() / unit } else { value }
}

fn alternatives(f0_max_hz: f64, spacing_max: f64, order_min: Option<usize>) -> String {
    let order = order_min.map(|order| format!(", or order {order}")).unwrap_or_default();
    format!("up to {} Hz, or up to {} m{order}", down(f0_max_hz), down(spacing_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(spacing: f64, velocity: Vec<f32>) -> Model {
        Model { nx: 1, nz: velocity.len(), spacing, velocity }
    }

    #[test]
    fn stability_limits_are_those_of_the_textbooks() {
        let model = model(10.0, vec![1500.0, 2500.0]);
        for (order, courant) in [(2, 0.5_f64.sqrt()), (4, 0.612_372), (8, 0.554_632), (16, 0.518_932)] {
            let dt = largest_stable_dt(&model, order).unwrap();
            assert!((dt * 2500.0 / 10.0 - courant).abs() < 1e-6, "order {order}: {dt}");
        }
    }

    #[test]
    fn an_unstable_step_is_refused_with_one_that_is_not() {
        let model = model(10.0, vec![1500.0, 3000.0]);
        let refusal = check_stability(&model, 8, 0.0025).unwrap_err().to_string();
        let text = "time step 2.5 ms is unstable: at most 1.848 ms for velocities up to 3000 m/s on a grid of 10 m at \
                    space order 8";
        assert_eq!(refusal, text);
        assert_eq!(check_stability(&model, 8, 0.001_848), Ok(()));
    }

    #[test]
    fn a_coarse_grid_is_refused_with_all_three_ways_out() {
        let model = model(10.0, vec![1500.0, 3000.0]);
        let refusal = check_dispersion(&model, 4, 15.0).unwrap_err();
        let text = "grid of 10 m is too coarse for 15 Hz: 4 points per shortest wavelength (1500 m/s at 37.5 Hz), space \
                    order 4 needs 5; up to 12 Hz, or up to 8 m, or order 6 would be fine";
        assert_eq!(refusal.to_string(), text);
        assert_eq!(check_dispersion(&model, 4, 12.0), Ok(()));
        assert_eq!(check_dispersion(&Model { spacing: 8.0, ..model.clone() }, 4, 15.0), Ok(()));
        assert_eq!(check_dispersion(&model, 6, 15.0), Ok(()));
        let hopeless = check_dispersion(&model, 16, 60.0).unwrap_err().to_string();
        assert!(hopeless.ends_with("up to 20 Hz, or up to 3.333 m would be fine"), "{hopeless}");
    }

    #[test]
    fn the_default_step_is_below_the_limit_in_whole_microseconds() {
        assert_eq!(default_dt(&model(10.0, vec![3000.0]), 8), Ok(0.001_663));
        let tiny = model(1e-6, vec![3000.0]);
        let dt = default_dt(&tiny, 8).unwrap();
        assert!(dt > 0.0 && check_stability(&tiny, 8, dt).is_ok());
    }

    #[test]
    fn what_is_no_model_or_time_step_is_refused() {
        let good = model(10.0, vec![2000.0; 4]);
        let fails = |model: &Model, dt| check_stability(model, 8, dt).unwrap_err();
        assert_eq!(fails(&model(10.0, vec![]), 1e-3), CheckError::Points { velocities: 0, nx: 1, nz: 0 });
        let short = Model { nx: 2, ..good.clone() };
        assert_eq!(fails(&short, 1e-3), CheckError::Points { velocities: 4, nx: 2, nz: 4 });
        let bad = CheckError::Velocity { velocity: -1.0, ix: 0, iz: 1 };
        assert_eq!(fails(&model(10.0, vec![1500.0, -1.0]), 1e-3), bad);
        assert!(matches!(fails(&model(10.0, vec![f32::NAN]), 1e-3), CheckError::Velocity { .. }));
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(fails(&model(nothing, vec![2e3]), 1e-3), CheckError::NotPositive { .. }));
            assert!(matches!(fails(&good, nothing), CheckError::NotPositive { .. }));
            assert!(matches!(check_dispersion(&good, 8, nothing), Err(CheckError::NotPositive { .. })));
        }
        assert_eq!(check_stability(&good, 7, 1e-3), Err(OrderError { order: 7 }.into()));
    }
}
