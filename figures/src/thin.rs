//! Fewer points for the same line.

/// Points of a line, in px, without those that cannot be seen: of consecutive points in the same half px of the
/// first coordinate, the first, the lowest, the highest and the last stay (U. Jugel et al., M4: a
/// visualization-oriented time series data aggregation, VLDB 2014).
pub(crate) fn extremes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |point: &(f64, f64)| (2.0 * point.0).floor();
    points.chunk_by(|a, b| column(a) == column(b)).flat_map(corners).collect()
}

fn corners(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 4 {
        return points.to_vec();
    }
    let by_height = |&a: &usize, &b: &usize| points[a].1.total_cmp(&points[b].1);
    let lowest = (0..points.len()).min_by(by_height).unwrap_or(0);
    let highest = (0..points.len()).max_by(by_height).unwrap_or(0);
    let mut kept = [0, lowest.min(highest), lowest.max(highest), points.len() - 1].to_vec();
    kept.dedup();
    kept.into_iter().map(|i| points[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_stay_and_many_keep_their_outline() {
        let few: Vec<(f64, f64)> = (0..50).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        assert_eq!(extremes(&few), few);

        let many: Vec<(f64, f64)> =
            (0..10_000).map(|i| (f64::from(i) / 100.0, f64::from((i * 7919) % 1000))).collect();
        let thin = extremes(&many);
        assert!(thin.len() <= 4 * 201, "{}", thin.len());
        assert_eq!((thin.first(), thin.last()), (many.first(), many.last()));
        for column in 0..200 {
            let range = |points: &[(f64, f64)]| {
                let inside = points.iter().filter(|point| (2.0 * point.0).floor() == f64::from(column));
                inside.fold((f64::MAX, f64::MIN), |(low, high), point| (low.min(point.1), high.max(point.1)))
            };
            assert_eq!(range(&thin), range(&many));
        }
    }
}
