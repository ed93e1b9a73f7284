//! Every kind of picture is sound SVG, whatever the data and the texts are.

mod common;

use common::{BAD, density, every_kind, timeline, wiggle};
use ft_figures::{
    ChartAxis, Density, Group, GroupedBars, Hue, Kind, LineChart, Picture, Row, Scale, Series, Spacing, Span,
    StackedBars, StackedRow, Timeline,
};
use proptest::prelude::*;
use roxmltree::{Document, Node};
use ttf_parser::Face;

const HOSTILE: &str = "<&\">'</svg><script>]]>\u{0}\u{b}\u{ffff}";

/// What becomes of [`HOSTILE`] where XML has no room for a character.
const SHOWN: &str = "<&\">'</svg><script>]]>   ";

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// Left, top, right and bottom of a text, as a viewer with the font of the PNG shows it.
fn place(text: Node<'_, '_>) -> [f64; 4] {
    let font = Face::parse(epaint_default_fonts::UBUNTU_LIGHT, 0).unwrap();
    let scale = number(text, "font-size") / f64::from(font.units_per_em());
    let letters = text.text().unwrap_or_default().chars();
    let glyphs = letters.map(|letter| font.glyph_index(letter).unwrap_or_default());
    let width = scale * glyphs.map(|glyph| f64::from(font.glyph_hor_advance(glyph).unwrap())).sum::<f64>();
    let start = match text.attribute("text-anchor").unwrap() {
        "start" => 0.0,
        "middle" => -width / 2.0,
        _ => -width,
    };
    let (x, y) = (number(text, "x") + start, number(text, "y"));
    let (above, below) = (scale * f64::from(font.ascender()), -scale * f64::from(font.descender()));
    let Some(turn) = text.parent().and_then(|group| group.attribute("transform")) else {
        return [x, y - above, x + width, y + below];
    };
    let (at, rotation) = turn.strip_prefix("translate(").unwrap().split_once(')').unwrap();
    assert_eq!(rotation, " rotate(-90)");
    let (across, down) = at.split_once(' ').unwrap();
    let (across, down): (f64, f64) = (across.parse().unwrap(), down.parse().unwrap());
    [across + y - above, down - x - width, across + y + below, down - x]
}

/// Panics unless the SVG is well formed, of the size it says, without ids, and its numbers are numbers.
fn check(kind: &str, picture: &Picture) {
    let document = Document::parse(picture.svg()).unwrap();
    let (root, [width, height]) = (document.root_element(), [picture.width(), picture.height()]);
    assert_eq!([number(root, "width"), number(root, "height")], [width, height].map(f64::from), "{kind}");
    assert_eq!(root.attribute("viewBox"), Some(&*format!("0 0 {width} {height}")), "{kind}");
    for node in document.descendants() {
        for attribute in node.attributes().filter(|attribute| attribute.name() != "href") {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(name != "id", "{kind}: id {value}");
            assert!(!value.contains("NaN") && !value.contains("inf"), "{kind}: {name}={value}");
        }
        assert!(node.tag_name().name() != "script", "{kind}: text became an element");
    }
}

fn texts(picture: &Picture) -> Vec<String> {
    let document = Document::parse(picture.svg()).unwrap();
    let texts =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.filter_map(|node| node.text().map(str::to_owned)).collect()
}

/// All kinds without data.
fn every_kind_empty() -> Vec<(&'static str, Picture)> {
    let scale = Scale::Sequential;
    let wrong_size = Density { nx: 5, ..density("empty", &[1.0; 12], scale) };
    vec![
        ("lines", LineChart::default().draw()),
        ("lines of nothing positive", {
            let series = vec![Series::new("none", [(1.0, -1.0), (2.0, 0.0), (f64::NAN, 1.0)])];
            LineChart { y: ChartAxis::log("log"), series, ..LineChart::default() }.draw()
        }),
        ("grouped bars", GroupedBars { groups: vec!["a".into()], ..GroupedBars::default() }.draw()),
        ("stacked bars", StackedBars::default().draw()),
        ("timeline", Timeline::default().draw()),
        ("timeline without end", Timeline { end_s: f64::INFINITY, ..timeline("empty", &[]) }.draw()),
        ("density", density("empty", &[], scale).draw()),
        ("density of no values", density("empty", &[f32::NAN; 4], scale).draw()),
        ("density of a wrong size", wrong_size.draw()),
        ("wiggle", wiggle("empty", &[]).draw()),
    ]
}

#[test]
fn hostile_texts_stay_texts() {
    for (kind, picture) in every_kind(HOSTILE, &[]) {
        check(kind, &picture);
        let document = Document::parse(picture.svg()).unwrap();
        let title = document.root_element().first_element_child().unwrap();
        assert_eq!((title.tag_name().name(), title.text()), ("title", Some(SHOWN)), "{kind}");
        assert!(texts(&picture).iter().any(|text| text.trim_end() == SHOWN.trim_end()), "{kind}");
    }
}

#[test]
fn bad_values_are_left_out() {
    for (kind, picture) in every_kind("title", &BAD) {
        check(kind, &picture);
        assert!(!texts(&picture).iter().any(|text| text.contains("NaN") || text.contains("inf")), "{kind}");
        assert!(!texts(&picture).iter().any(|text| text == "no data"), "{kind}");
    }
}

#[test]
fn no_data_says_so() {
    for (kind, picture) in every_kind_empty() {
        check(kind, &picture);
        assert!(texts(&picture).iter().any(|text| text == "no data"), "{kind}");
    }
}

#[test]
fn equal_data_give_equal_bytes() {
    for ((kind, a), (_, b)) in every_kind("title", &BAD).into_iter().zip(every_kind("title", &BAD)) {
        assert_eq!(a, b, "{kind}");
        assert_eq!(a.png().unwrap(), b.png().unwrap(), "{kind}");
    }
}

#[test]
fn no_text_reaches_over_the_border() {
    let long = "a title of an axis, a rank, a phase or a whole picture that says far more than there is room for, \
                and then goes on and on until nobody reads it any more, which is a pity";
    for text in ["time [s]", long, &long.replace(' ', "_")] {
        for (kind, picture) in every_kind(text, &[]) {
            let document = Document::parse(picture.svg()).unwrap();
            let texts = document.descendants().filter(|node| node.tag_name().name() == "text");
            let mut seen = 0;
            for text in texts {
                seen += 1;
                let [left, top, right, bottom] = place(text);
                let within = left >= 0.0
                    && top >= 0.0
                    && right <= f64::from(picture.width())
                    && bottom <= f64::from(picture.height());
                assert!(within, "{kind}: {:?} of {:?}", [left, top, right, bottom], text.text());
            }
            assert!(seen > 5, "{kind}: {seen} texts");
        }
    }
}

/// A reader who has learned a color in one chart knows it in the next.
#[test]
fn a_series_has_one_color_in_all_charts() {
    let (first, second) = ("#0072b2", "#d55e00");
    let series = ["a", "b"].map(|name| Series::new(name, [(1.0, 1.0), (2.0, 3.0)]));
    let lines = LineChart { series: series.into(), ..LineChart::default() }.draw();
    assert!(lines.svg().contains(first) && lines.svg().contains(second));
    let bars = |hue| {
        let row = StackedRow { label: "row".to_owned(), values: vec![1.0, 2.0], hue };
        StackedBars { phases: vec!["a".into(), "b".into()], rows: vec![row], ..StackedBars::default() }.draw()
    };
    let of_second = bars(Hue::Series(1));
    assert!(of_second.svg().contains(second) && !of_second.svg().contains(first));
    let of_nobody = bars(Hue::Gray);
    assert!(!of_nobody.svg().contains(second) && !of_nobody.svg().contains(first));
    let of_phases = bars(Hue::Phases);
    assert!(of_phases.svg().contains(second) && of_phases.svg().contains(first));
}

#[test]
fn busy_timeline_is_a_small_file() {
    let span = |i: usize| Span {
        from_s: i as f64,
        to_s: i as f64 + 1.0,
        kind: Kind::ALL[i * 7919 % 31 % Kind::ALL.len()],
    };
    let spans = |i: usize| (i..i + 1000).map(span).collect();
    let row = |i: usize| Row { label: format!("rank {i}"), spans: spans(i), ..Row::default() };
    let groups = vec![Group { rows: (0..64).map(row).collect(), ..Group::default() }];
    let timeline = Timeline { groups, end_s: 3000.0, title: "64 ranks".into() };
    let picture = timeline.draw();
    check("timeline", &picture);
    assert!(picture.svg().len() < 1_000_000, "{} bytes", picture.svg().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_numbers_can_be_drawn(
        points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..20), log_x: bool, log_y: bool
    ) {
        let axis = |log| ChartAxis {
            title: "any".to_owned(),
            spacing: if log { Spacing::Log } else { Spacing::Linear },
        };
        let series = vec![Series::new("any", points)];
        let chart = LineChart { title: "any".to_owned(), x: axis(log_x), y: axis(log_y), series };
        check("lines", &chart.draw());
    }
}
