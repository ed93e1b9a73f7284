//! All samples as comma-separated values, one row each; names have no commas.

use super::measured::Sample;

/// A table with a header, in the order in which it was measured.
pub(crate) fn csv(samples: &[Sample]) -> String {
    let row = |sample: &Sample| {
        let Sample { round, ranks, operation, bytes, algorithm, seconds, calls } = sample;
        format!("{round},{ranks},{operation},{bytes},{algorithm},{seconds},{calls}\n")
    };
    let header = "round,ranks,operation,bytes,algorithm,seconds,calls\n".to_owned();
    std::iter::once(header).chain(samples.iter().map(row)).collect()
}
