//! Bounds of rounding errors, and what they are computed from.
//!
//! Arithmetic is that of IEEE 754, rounded to nearest: `fl(a + b) = (a + b)(1 + d)` and `fl(a b) = a b (1 + d) + h` with `|d| <= u = 2^-53` and
//! `|h| <= 2^-1075`. A sum of `n` products, in any order, is off by at most `gamma(n)` times the sum of their magnitudes, with
//! `gamma(n) = n u / (1 - n u)` (Higham 2002, lemma 8.4), besides what underflows.

/// `u`, the unit roundoff of doubles.
const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// The smallest double above 0, twice what a product can lose by underflow.
pub(super) const SMALLEST: f64 = f64::from_bits(1);

/// Bounds are computed in doubles too: sums of at most some hundred terms that are not negative, off by far less than this factor, which
/// every coefficient gets.
const SLACK: f64 = 1.0 + 1e-9;

/// How far the elements of a slice can be from what they ought to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The most that any element is off.
    pub absolute: f64,
    /// [`Bound::absolute`] over the largest magnitude of the slice as it was rebuilt, or over the smallest normal double where all
    /// are smaller than that.
    pub relative_to_largest: f64,
}

impl Bound {
    /// No error at all.
    pub const EXACT: Self = Self { absolute: 0.0, relative_to_largest: 0.0 };
    /// As a limit, one that refuses nothing.
    pub const UNLIMITED: Self = Self { absolute: f64::INFINITY, relative_to_largest: f64::INFINITY };

    /// As a limit: no element off by more than `absolute`.
    pub fn absolute(absolute: f64) -> Self {
        Self { absolute, ..Self::UNLIMITED }
    }

    /// As a limit: no element off by more than `relative` times the largest of the slice.
    pub fn relative_to_largest(relative: f64) -> Self {
        Self { relative_to_largest: relative, ..Self::UNLIMITED }
    }

    /// Both numbers are at most those of `limit`.
    pub fn is_within(&self, limit: &Self) -> bool {
        self.absolute <= limit.absolute && self.relative_to_largest <= limit.relative_to_largest
    }

    /// That of a slice with errors of up to `absolute` and magnitudes of up to `largest`.
    pub(super) fn of(absolute: f64, largest: f64) -> Self {
        Self { absolute, relative_to_largest: absolute / largest.max(f64::MIN_POSITIVE) }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1e} ({:.1e} of the largest value)", self.absolute, self.relative_to_largest)
    }
}

/// How far checksum blocks can be from those that are encoded anew, because of updates: one number a block, which grows with each.
///
/// It belongs to the blocks of one stripe: whoever keeps updated blocks keeps it with them, and hands it to
/// [`Recovery::with_drift`](crate::Recovery::with_drift). Encoding again begins at 0 again.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    of: Vec<f64>,
}

impl Drift {
    /// That of `redundant` blocks which were just encoded.
    pub fn none(redundant: usize) -> Self {
        Self { of: vec![0.0; redundant] }
    }

    /// The most that any element of each block is off.
    pub fn as_slice(&self) -> &[f64] {
        &self.of
    }

    /// Adds errors of up to `more` to a block.
    pub(super) fn add(&mut self, block: usize, more: f64) {
        if more > 0.0 {
            self.of[block] = (self.of[block] + more).next_up();
        }
    }
}

/// As received from another process: one number a block.
impl From<Vec<f64>> for Drift {
    fn from(of: Vec<f64>) -> Self {
        Self { of }
    }
}

/// `gamma(n)`, a little too large: errors of a sum of `n` products over the sum of their magnitudes.
pub(super) fn gamma(n: usize) -> f64 {
    let nu = n as f64 * UNIT_ROUNDOFF;
    SLACK * nu / (1.0 - nu)
}

/// `value`, as much too large as any bound may be.
pub(super) fn rounded_up(value: f64) -> f64 {
    SLACK * value
}

/// What a difference `change` that is added to a block times `weight`, and gives `sum` there, adds to its drift, in a code of `data` members.
///
/// Difference and product are rounded, by `gamma(2)` of the product together, and the sum by `u` of itself. What is counted as the
/// error of encoding when a member is rebuilt are `gamma(k)` times the magnitudes of now: those of before differ by the change.
pub(super) fn drifted(data: usize, weight: f64, change: f64, sum: f64) -> f64 {
    if change == 0.0 {
        return 0.0;
    }
    gamma(data + 3) * (weight * change).abs() + SLACK * UNIT_ROUNDOFF * sum.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_is_a_little_more_than_n_units() {
        assert!(gamma(1) > UNIT_ROUNDOFF && gamma(1) < 1.0001 * UNIT_ROUNDOFF);
        assert!(gamma(60) > 60.0 * UNIT_ROUNDOFF && gamma(60) < 60.01 * UNIT_ROUNDOFF);
    }

    #[test]
    fn a_limit_holds_for_both_numbers_and_no_number_is_within_nothing() {
        let bound = Bound::of(1e-12, 100.0);
        assert_eq!(bound.to_string(), "1.0e-12 (1.0e-14 of the largest value)");
        assert!(bound.is_within(&bound) && bound.is_within(&Bound::UNLIMITED));
        assert!(bound.is_within(&Bound::absolute(2e-12)) && !bound.is_within(&Bound::absolute(0.9e-12)));
        assert!(!bound.is_within(&Bound::relative_to_largest(0.9e-14)));
        assert!(!bound.is_within(&Bound::absolute(f64::NAN)));
    }

    #[test]
    fn a_slice_of_zeros_is_near_to_zero() {
        assert!(Bound::of(100.0 * SMALLEST, 0.0).relative_to_largest < 1e-13);
        assert_eq!(Bound::of(0.0, 0.0), Bound::EXACT);
    }

    #[test]
    fn what_has_not_changed_does_not_drift() {
        let mut drift = Drift::none(2);
        drift.add(1, drifted(4, 7.0, 0.0, 1e300));
        assert_eq!(drift, Drift::none(2));
        drift.add(1, drifted(4, 7.0, 1.0, 8.0));
        // Of the change its difference, its product, and the 4 roundings of an encoding; of the sum one.
        let least = (6.0 * 7.0 + 8.0) * UNIT_ROUNDOFF;
        assert!(drift.as_slice()[1] > least && drift.as_slice()[1] < 1.2 * least);
        assert_eq!(drift.as_slice()[0], 0.0);
        let once = drift.as_slice()[1];
        drift.add(1, once);
        assert!(drift.as_slice()[1] >= 2.0 * once);
    }
}
