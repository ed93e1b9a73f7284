//! The results as one page that needs nothing but itself.

use ft_comm::collective::Operation;
use ft_figures::{ChartAxis, LineChart, Picture, Point, Section, Series, Table, html_page};

use super::measured::Case;
use super::results::{Fitted, Results};
use super::tables;
use crate::recovery::bytes;

const MODEL_WORDS: [&str; 2] = [
    "Lines are what the model says of ranks on this host and its cores, dots are measured. A message takes 2 o + L + n G: \
     overhead on both sides, latency, and a time for each byte; what is reduced takes R a byte (LogGP, Alexandrov, Ionescu, \
     Schauser, Scheiman, 1995). G comes from messages of 8 bytes and 1 MiB, o from a row of messages of 8 bytes, L is what \
     is left of one, R is a reduction in memory.",
    "The time of an algorithm is that of its critical path, by the formula of its module; with more ranks than cores no \
     less than the work of all ranks on all cores. Waiting for a core that another rank has is not in it.",
];

/// The page, in HTML 5.
pub(crate) fn page(results: &Results) -> String {
    let mut parts = vec![Part {
        paragraphs: [results.job(), results.place()].into_iter().chain(results.remarks()).collect(),
        ..Part::default()
    }];
    let title = match &results.fitted {
        Some(fitted) => {
            parts.extend(model(results, fitted));
            "Collective operations by the model and by the clock"
        }
        None => {
            parts.extend(measured(results));
            parts.push(Part {
                heading: "Choices".into(),
                table: Some(tables::choices(&results.choices)),
                ..Part::default()
            });
            "The fastest collective algorithms"
        }
    };
    let sections: Vec<Section<'_>> = parts
        .iter()
        .map(|part| Section {
            heading: part.heading.clone(),
            paragraphs: part.paragraphs.clone(),
            picture: part.picture.as_ref(),
            table: part.table.clone(),
        })
        .collect();
    html_page(title, &sections)
}

#[derive(Default)]
struct Part {
    heading: String,
    paragraphs: Vec<String>,
    picture: Option<Picture>,
    table: Option<Table>,
}

/// A chart for each operation and number of ranks.
fn measured(results: &Results) -> Vec<Part> {
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
        Some(Part { heading, picture: Some(chart.draw()), ..Part::default() })
    };
    groups.filter_map(part).collect()
}

/// A chart for each operation and size, and the tables.
fn model(results: &Results, fitted: &Fitted) -> Vec<Part> {
    let mut parts = vec![Part {
        heading: "The model".into(),
        paragraphs: MODEL_WORDS.map(str::to_owned).into(),
        table: Some(tables::machine(&fitted.machine)),
        ..Part::default()
    }];
    let mut last = None;
    for group in fitted.predictions.chunk_by(|a, b| (a.operation, a.bytes) == (b.operation, b.bytes)) {
        let (operation, size) = (group[0].operation, group[0].bytes);
        let heading =
            if last.replace(operation) == Some(operation) { String::new() } else { operation.to_string() };
        let series = group.iter().map(|of| {
            let cases = results.cases.iter().filter(|case| {
                (case.operation, case.bytes) == (operation, size) && case.algorithm == of.algorithm
            });
            let line = of.points.iter().map(|point| (point.ranks as f64, 1e6 * point.one_host_s));
            Series {
                dots: cases.map(|case| dot(case, case.ranks)).collect(),
                ..Series::new(of.algorithm.clone(), line)
            }
        });
        let of = if operation == Operation::Barrier {
            String::new()
        } else {
            format!(" of {}", bytes(size as u64))
        };
        let chart = LineChart {
            title: format!("{operation}{of}"),
            x: ChartAxis::log("ranks"),
            y: ChartAxis::log("time [µs]"),
            series: series.collect(),
        };
        parts.push(Part { heading, picture: Some(chart.draw()), ..Part::default() });
    }
    let table =
        |heading: &str, table: Table| Part { heading: heading.into(), table: Some(table), ..Part::default() };
    parts.push(table("Measured beside predicted", tables::checks(&fitted.checks)));
    parts.push(table(
        "Predicted, all ranks on this host",
        tables::predictions(&fitted.predictions, |at| at.one_host_s),
    ));
    parts.push(table(
        "Predicted, one rank a host, links as fast as within this host",
        tables::predictions(&fitted.predictions, |at| at.many_hosts_s),
    ));
    parts
}

/// A measured time in microseconds.
fn dot(case: &Case, x: usize) -> Point {
    let time = case.time;
    Point { x: x as f64, y: 1e6 * time.median, spread: Some((1e6 * time.low, 1e6 * time.high)) }
}
