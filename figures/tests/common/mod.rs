//! One picture of every kind, of sound data or with bad values among them.

use ft_figures::{
    AxisRange, BarSeries, ChartAxis, Density, Group, GroupedBars, Hue, Kind, LineChart, Mark, Marker,
    MarkerKind, Picture, Point, Row, Scale, Series, Span, StackedBars, StackedRow, Timeline, Wiggle,
};

/// What no picture may choke on.
pub(crate) const BAD: [f64; 4] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e308];

/// All kinds with every text being `text`; `bad` values are put among the data.
pub(crate) fn every_kind(text: &str, bad: &[f64]) -> Vec<(&'static str, Picture)> {
    let values: Vec<f32> =
        (0..12).map(|i| i as f32 - 6.0).chain(bad.iter().map(|&value| value as f32)).collect();
    vec![
        ("lines", lines(text, bad).draw()),
        ("grouped bars", grouped(text, bad).draw()),
        ("stacked bars", stacked(text, bad).draw()),
        ("timeline", timeline(text, bad).draw()),
        ("density", density(text, &values, Scale::Symmetric { percentile: 99.0 }).draw()),
        ("velocities", density(text, &values, Scale::Sequential).draw()),
        ("wiggle", wiggle(text, &values).draw()),
    ]
}

fn lines(text: &str, bad: &[f64]) -> LineChart {
    let sound =
        (1..9).map(|i| Point { x: f64::from(i * i), y: 3.0 / f64::from(i), spread: Some((0.1, 4.0)) });
    let unsound = bad.iter().flat_map(|&value| {
        let spread = Some((value, value));
        [
            Point { x: 3.0, y: value, spread: None },
            Point { x: value, y: 1.0, spread: None },
            Point { x: 2.0, y: 1.0, spread },
        ]
    });
    let series =
        Series { name: text.to_owned(), points: unsound.chain(sound).collect(), ..Series::default() };
    LineChart {
        title: text.to_owned(),
        x: ChartAxis::log(text),
        y: ChartAxis::linear(text),
        series: vec![series; 9],
    }
}

fn grouped(text: &str, bad: &[f64]) -> GroupedBars {
    let values: Vec<f64> = bad.iter().copied().chain([1.0, -2.0, 3.0]).collect();
    GroupedBars {
        title: text.to_owned(),
        group_title: text.to_owned(),
        value_title: text.to_owned(),
        groups: vec![text.to_owned(); values.len()],
        series: vec![BarSeries { name: text.to_owned(), values }; 3],
    }
}

fn stacked(text: &str, bad: &[f64]) -> StackedBars {
    let values: Vec<f64> = bad.iter().copied().chain([1.0, 2.0, -5.0]).collect();
    let row = |hue| StackedRow { label: text.to_owned(), values: values.clone(), hue };
    StackedBars {
        title: text.to_owned(),
        value_title: text.to_owned(),
        phases: vec![text.to_owned(); 8],
        rows: [Hue::Phases, Hue::Series(9), Hue::Gray].map(row).into(),
    }
}

pub(crate) fn timeline(text: &str, bad: &[f64]) -> Timeline {
    let sound = (0..20).map(|i| Span {
        from_s: f64::from(i),
        to_s: f64::from(i) + 0.8,
        kind: Kind::ALL[i as usize % Kind::ALL.len()],
    });
    let unsound = bad.iter().flat_map(|&value| {
        [
            Span { from_s: value, to_s: 3.0, kind: Kind::Dead },
            Span { from_s: 3.0, to_s: value, kind: Kind::Dead },
        ]
    });
    let mark = |at_s| Mark { at_s, what: text.to_owned() };
    let marks: Vec<Mark> = bad.iter().copied().chain([4.0]).map(mark).collect();
    let row = Row { label: text.to_owned(), spans: sound.chain(unsound).collect(), marks: marks.clone() };
    let group =
        |label: &str| Group { label: label.to_owned(), rows: vec![row.clone(); 3], marks: marks.clone() };
    Timeline { title: text.to_owned(), groups: vec![group(""), group(text)], end_s: 20.0 }
}

fn range(title: &str) -> AxisRange {
    AxisRange { from: -3.0, to: 3000.0, title: title.to_owned() }
}

pub(crate) fn density<'a>(text: &str, values: &'a [f32], scale: Scale) -> Density<'a> {
    let marker = |x, kind| Marker { x, z: 20.0, kind };
    let markers = BAD.iter().map(|&x| marker(x, MarkerKind::Source));
    Density {
        title: text.to_owned(),
        values,
        nx: values.len() / 4,
        nz: 4,
        x: range(text),
        z: range(text),
        scale,
        bar_title: text.to_owned(),
        markers: markers
            .chain([marker(5.0, MarkerKind::Source), marker(9.0, MarkerKind::Receiver)])
            .collect(),
    }
}

pub(crate) fn wiggle<'a>(text: &str, values: &'a [f32]) -> Wiggle<'a> {
    Wiggle {
        title: text.to_owned(),
        values,
        nx: values.len() / 4,
        nz: 4,
        x: AxisRange { from: f64::NAN, ..range(text) },
        z: range(text),
    }
}
