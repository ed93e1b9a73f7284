//! What tells velocities from other numbers, and their unit.

use super::{ModelErrorKind, Unit, VELOCITY_MAX, VELOCITY_MIN};

/// Values that are all below this are taken for km/s.
const KILOMETRES_BELOW: f32 = 20.0;

/// Turns `values`, `nz` of them per x, into m/s and checks that each is a velocity.
pub(super) fn to_metres_per_second(values: &mut [f32], nz: usize, unit: Unit) -> Result<(), ModelErrorKind> {
    let points = values.len();
    if let Some((at, count)) = find(values, |value| !(value.is_finite() && value > 0.0)) {
        let (ix, iz, value) = (at / nz, at % nz, values[at]);
        return Err(ModelErrorKind::NotPositive { ix, iz, value, count, points });
    }
    let fastest = values.iter().copied().fold(0.0, f32::max);
    let kilometers = match unit {
        Unit::Auto => fastest < KILOMETRES_BELOW,
        Unit::MetresPerSecond => false,
        Unit::KilometresPerSecond => true,
    };
    if kilometers {
        values.iter_mut().for_each(|value| *value *= 1000.0);
    }
    if let Some((at, count)) = find(values, |value| !(VELOCITY_MIN..=VELOCITY_MAX).contains(&value)) {
        let (ix, iz, value) = (at / nz, at % nz, values[at]);
        let unit = if kilometers { "km/s" } else { "m/s" };
        return Err(ModelErrorKind::Implausible { ix, iz, value, count, points, unit });
    }
    Ok(())
}

/// The place of the first value that is `bad`, and how many are.
fn find(values: &[f32], bad: impl Fn(f32) -> bool) -> Option<(usize, usize)> {
    let first = values.iter().position(|value| bad(*value))?;
    Some((first, values[first..].iter().filter(|value| bad(**value)).count()))
}
