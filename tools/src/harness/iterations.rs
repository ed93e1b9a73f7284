//! How often something is done in a row to be timed.

/// Iterations of a batch at most.
const LIMIT: usize = 1 << 20;

/// A better number of iterations than these, which took `each_s` each, for a batch of `share_s`; none if they do.
pub fn more(iterations: usize, each_s: f64, share_s: f64) -> Option<usize> {
    if each_s * iterations as f64 > share_s / 2.0 {
        return None;
    }
    // One batch may have been lucky or not, so the steps are small.
    let wanted = (share_s / each_s.max(1e-9)) as usize;
    let next = wanted.min(4 * iterations).min(LIMIT);
    (next > iterations).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_grow_until_a_batch_is_long_enough() {
        assert_eq!(more(1, 1e-6, 1e-3), Some(4));
        assert_eq!(more(256, 1e-6, 1e-3), Some(1000));
        assert_eq!(more(1000, 1e-6, 1e-3), None);
        assert_eq!(more(1, 0.6e-3, 1e-3), None, "one is more than half");
        assert_eq!(more(LIMIT, 1e-12, 1.0), None);
        assert_eq!(more(1, 0.0, 1e-3), Some(4), "a clock that stands");
    }
}
