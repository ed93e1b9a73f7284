//! The results as one page that needs nothing but itself.

use ft_comm::collective::Operation;
use ft_figures::{ChartAxis, LineChart, Picture, Point, Section, Series, Table, html_page};

use super::measured::Case;
use super::results::Results;
use super::tables;

/// The page, in HTML 5.
pub(crate) fn page(results: &Results) -> String {
    let mut parts = vec![Chapter {
        paragraphs: [results.job(), results.place()].into_iter().chain(results.remarks()).collect(),
        ..Chapter::default()
    }];
    parts.extend(measured(results));
    parts.push(Chapter {
        heading: "Choices".into(),
        table: Some(tables::choices(&results.choices)),
        ..Chapter::default()
    });
    let sections: Vec<Section<'_>> = parts
        .iter()
        .map(|part| Section {
            heading: part.heading.clone(),
            paragraphs: part.paragraphs.clone(),
            picture: part.picture.as_ref(),
            table: part.table.clone(),
        })
        .collect();
    html_page("The fastest collective algorithms", &sections)
}

#[derive(Default)]
struct Chapter {
    heading: String,
    paragraphs: Vec<String>,
    picture: Option<Picture>,
    table: Option<Table>,
}

/// A chart for each operation and number of ranks.
fn measured(results: &Results) -> Vec<Chapter> {
    let groups = results.cases.chunk_by(|a, b| (a.operation, a.ranks) == (b.operation, b.ranks));
    let mut last = None;
    let part = |cases: &[Case]| {
        let Case { operation, ranks, .. } = cases[0];
        if operation == Operation::Barrier {
            return None;
        }
        let heading =
            if last.replace(operation) == Some(operation) { String::new() } else { operation.to_string() };
        let line = |name: &str| Series {
            name: name.to_owned(),
            points: cases
                .iter()
                .filter(|case| case.algorithm == name)
                .map(|case| dot(case, case.bytes))
                .collect(),
            ..Series::default()
        };
        let chart = LineChart {
            title: format!("{operation}, {ranks} ranks"),
            x: ChartAxis::log("bytes"),
            y: ChartAxis::log("time [µs]"),
            series: operation.algorithms().map(line).filter(|line| !line.points.is_empty()).collect(),
        };
        Some(Chapter { heading, picture: Some(chart.draw()), ..Chapter::default() })
    };
    groups.filter_map(part).collect()
}

/// A measured time in microseconds.
fn dot(case: &Case, x: usize) -> Point {
    let time = case.time;
    Point { x: x as f64, y: 1e6 * time.median, spread: Some((1e6 * time.low, 1e6 * time.high)) }
}
