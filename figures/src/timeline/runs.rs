//! From the spans of a row to what can be seen of them.

use super::{Kind, Span};

/// A span narrower than this many px cannot be seen.
const NARROW: f64 = 1.0 / 3.0;
/// Cells per px of a row with narrow spans: those of a PNG of twice as many pixels.
const CELLS: f64 = 2.0;

/// A piece of a row, in px from its beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) kind: Kind,
}

impl Run {
    pub(super) fn width(&self) -> f64 {
        self.to - self.from
    }
}

/// Runs of a row of `width` px that stands for `end_s` seconds, ascending. As the spans are when all can be seen,
/// otherwise in cells of half a px, where the time of each kind differs by less than one px.
pub(super) fn of(spans: &[Span], end_s: f64, width: f64) -> Vec<Run> {
    if !(end_s.is_finite() && end_s > 0.0) {
        return Vec::new();
    }
    let place = |at_s: f64| at_s.clamp(0.0, end_s) / end_s * width;
    let visible = spans.iter().filter(|span| span.from_s.is_finite() && span.to_s.is_finite());
    let runs = visible.map(|span| Run { from: place(span.from_s), to: place(span.to_s), kind: span.kind });
    let mut runs: Vec<Run> = runs.filter(|run| run.width() > 0.0).collect();
    runs.sort_by(|a, b| a.from.total_cmp(&b.from));
    let runs = joined(runs);
    if runs.iter().all(|run| run.width() >= NARROW) { runs } else { in_cells(&runs, width) }
}

/// Neighbors of one kind become one run.
fn joined(runs: Vec<Run>) -> Vec<Run> {
    let mut joined: Vec<Run> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.kind == run.kind && run.from - last.to < 1e-6 => last.to = last.to.max(run.to),
            _ => joined.push(run),
        }
    }
    joined
}

/// Every cell shows one kind, or nothing: the one that is most in debt, when each is owed its part of every cell
/// so far and has been paid those that show it. The debt is what was owed and not shown, so times stay right
/// where the larger part of each cell would always win.
fn in_cells(runs: &[Run], width: f64) -> Vec<Run> {
    let count = (width * CELLS) as usize;
    let parts = parts(runs, count);
    let mut debt = [0.0; Kind::ALL.len() + 1];
    let mut cells = Vec::with_capacity(count);
    for (i, parts) in parts.iter().enumerate() {
        debt.iter_mut().zip(parts).for_each(|(debt, part)| *debt += part);
        let shown = (0..debt.len()).rev().max_by(|&a, &b| debt[a].total_cmp(&debt[b])).unwrap_or(0);
        debt[shown] -= 1.0;
        if let Some(&kind) = Kind::ALL.get(shown) {
            cells.push(Run { from: i as f64 / CELLS, to: (i + 1) as f64 / CELLS, kind });
        }
    }
    joined(cells)
}

/// What part of each of `count` cells each kind takes, and last what nothing takes.
fn parts(runs: &[Run], count: usize) -> Vec<[f64; Kind::ALL.len() + 1]> {
    let mut parts = vec![[0.0; Kind::ALL.len() + 1]; count];
    for run in runs {
        let (from, to) = (run.from * CELLS, run.to * CELLS);
        for (i, part) in parts.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
            let inside = to.min((i + 1) as f64) - from.max(i as f64);
            part[run.kind as usize] += inside.max(0.0);
        }
    }
    for part in &mut parts {
        let [taken @ .., free] = part;
        let sum: f64 = taken.iter().sum();
        // Spans that overlap share the cell.
        taken.iter_mut().for_each(|part| *part /= sum.max(1.0));
        *free = (1.0 - sum).max(0.0);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTH: f64 = 600.0;

    fn time(runs: &[Run], kind: Kind) -> f64 {
        runs.iter().filter(|run| run.kind == kind).map(Run::width).sum()
    }

    fn span(from_s: f64, to_s: f64, kind: Kind) -> Span {
        Span { from_s, to_s, kind }
    }

    /// Spans one after the other, of the given lengths.
    fn in_turn(lengths: &[(f64, usize)]) -> (Vec<Span>, f64) {
        let mut now = 0.0;
        let spans = lengths.iter().filter_map(|&(length, kind)| {
            let from = now;
            now += length;
            Kind::ALL.get(kind).map(|&kind| span(from, now, kind))
        });
        let spans = spans.collect();
        (spans, now)
    }

    #[test]
    fn wide_spans_stay_as_they_are() {
        let spans = [
            span(2.0, 3.0, Kind::Dead),
            span(0.0, 1.0, Kind::Computing),
            span(1.0, 2.0, Kind::Computing),
            span(9.5, 77.0, Kind::Waiting),
            span(f64::NAN, 4.0, Kind::Checkpoint),
            span(5.0, 4.0, Kind::Checkpoint),
        ];
        let run = |from, to, kind| Run { from, to, kind };
        let wanted = [
            run(0.0, 120.0, Kind::Computing),
            run(120.0, 180.0, Kind::Dead),
            run(570.0, 600.0, Kind::Waiting),
        ];
        assert_eq!(of(&spans, 10.0, WIDTH), wanted);
        assert!(of(&spans, 0.0, WIDTH).is_empty());
        assert!(of(&spans, f64::NAN, WIDTH).is_empty());
    }

    #[test]
    fn the_smaller_part_of_every_cell_is_not_lost() {
        let lengths: Vec<(f64, usize)> =
            (0..40_000).map(|i| if i % 2 == 0 { (0.9, 0) } else { (0.1, 1) }).collect();
        let (spans, end) = in_turn(&lengths);
        let runs = of(&spans, end, WIDTH);
        assert!(runs.len() <= 1200);
        assert!((time(&runs, Kind::Checkpoint) - 60.0).abs() < 1.0);
    }

    proptest! {
        #[test]
        fn every_kind_keeps_its_time(lengths in prop::collection::vec((0.001..1.0f64, 0usize..6), 800..3000)) {
            let (spans, end) = in_turn(&lengths);
            let runs = of(&spans, end, WIDTH);
            for kind in Kind::ALL {
                let owed: f64 =
                    spans.iter().filter(|span| span.kind == kind).map(|span| span.to_s - span.from_s).sum();
                let (owed, shown) = (owed / end * WIDTH, time(&runs, kind));
                prop_assert!((owed - shown).abs() < 1.0, "{kind:?}: {owed} px, shown {shown} px");
            }
            prop_assert!(runs.windows(2).all(|pair| pair[0].to <= pair[1].from + 1e-6));
            prop_assert!(runs.last().is_none_or(|run| run.to <= WIDTH + 1e-6));
        }
    }
}
