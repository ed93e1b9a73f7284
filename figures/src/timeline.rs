//! What every rank did and when: a row per rank, in groups such as hosts, time to the right.

use crate::axis::{Along, Axis};
use crate::color::{FRAME, INK};
use crate::font::{LABEL, fit};
use crate::frame::{MARGIN, WIDTH, axis_below, bottom_room, grid_across, head, left_room, no_data};
use crate::legend::{Entry, Sample};
use crate::picture::Picture;
use crate::svg::{Anchor, Area, Svg};
use crate::symbol::Symbol;
use runs::Run;

mod runs;

/// Height of all rows together in px, where a row is neither at its lowest nor at its highest.
const HEIGHT: f64 = 560.0;
const LOWEST_ROW: f64 = 9.0;
const HIGHEST_ROW: f64 = 30.0;
/// Height of the name of a group in px.
const STRIP: f64 = 18.0;
/// Widest name of a row in px.
const WIDEST_NAME: f64 = 150.0;
const MARKS: [Symbol; 6] =
    [Symbol::Cross, Symbol::Down, Symbol::Diamond, Symbol::Star, Symbol::Circle, Symbol::Square];

/// What ranks did over the time of a run, and events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Title of the picture.
    pub title: String,
    /// The ranks, from top to bottom.
    pub groups: Vec<Group>,
    /// Where the time axis ends, in seconds; it begins at 0.
    pub end_s: f64,
}

/// Ranks that belong together, such as those of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Name above its rows; if it has none, there is no room for it either.
    pub label: String,
    /// One row per rank, from top to bottom.
    pub rows: Vec<Row>,
    /// Events that are about all of them, shown beside the name.
    pub marks: Vec<Mark>,
}

/// One rank of a timeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Name at the left.
    pub label: String,
    /// What it did. Times outside the time axis are cut off.
    pub spans: Vec<Span>,
    /// Events.
    pub marks: Vec<Mark>,
}

/// A time in which a rank did one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Begin in seconds.
    pub from_s: f64,
    /// End in seconds.
    pub to_s: f64,
    /// What was done.
    pub kind: Kind,
}

/// What a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The work the program is there for.
    Computing,
    /// Saving state.
    Checkpoint,
    /// Waiting for other ranks.
    Waiting,
    /// There is no process.
    Dead,
    /// Getting lost state back.
    Rebuilding,
}

impl Kind {
    /// All kinds, in the order of the legend.
    pub const ALL: [Self; 5] =
        [Self::Computing, Self::Checkpoint, Self::Waiting, Self::Dead, Self::Rebuilding];

    /// Name in the legend.
    pub fn name(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Checkpoint => "checkpoint",
            Self::Waiting => "waiting",
            Self::Dead => "dead",
            Self::Rebuilding => "rebuilding",
        }
    }

    fn color(self) -> &'static str {
        match self {
            Self::Computing => "#7cc0e8",
            Self::Checkpoint => "#e69f00",
            Self::Waiting => "#d4d4d4",
            Self::Dead => "#3a3a3a",
            Self::Rebuilding => "#b5489a",
        }
    }
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// When, in seconds.
    pub at_s: f64,
    /// What happened; events that say the same share a symbol and an entry of the legend.
    pub what: String,
}

impl Timeline {
    /// The picture, or one that says "no data".
    ///
    /// Where spans are too narrow to be seen, a row is drawn in steps of half a px, dealt out so that every kind
    /// keeps its share of the time. O(spans), and at most some 100 kB of SVG for 64 busy rows.
    pub fn draw(&self) -> Picture {
        let names: Vec<String> = self.rows().map(|row| fit(&row.label, LABEL, WIDEST_NAME)).collect();
        let left = left_room("", names.iter().map(String::as_str)).ceil();
        let width = (WIDTH - left - 2.0 * MARGIN).floor();
        let runs: Vec<Vec<Run>> = self.rows().map(|row| runs::of(&row.spans, self.end_s, width)).collect();
        if runs.iter().all(Vec::is_empty) {
            return no_data(&self.title);
        }
        let (unit, factor) = unit(self.end_s);
        let axis = Axis::exactly(0.0, self.end_s * factor, Along::Width(width));

        let mut svg = Svg::default();
        let top = head(&mut svg, &self.title, &self.legend(&runs), WIDTH).round();
        let strips = STRIP * self.groups.iter().filter(|group| group.is_named()).count() as f64;
        let pitch = (HEIGHT / names.len() as f64).clamp(LOWEST_ROW, HIGHEST_ROW).floor();
        let area = Area::new(left, top, width, strips + pitch * names.len() as f64);
        grid_across(&mut svg, area, &axis);
        let named = ((LABEL + 1.0) / pitch).ceil() as usize;
        let mut rows = names.iter().zip(&runs);
        self.places(top, pitch).for_each(|(middle, part)| match part {
            Part::Name(group) => {
                svg.label((MARGIN, middle), Anchor::Start, &fit(&group.label, LABEL, WIDEST_NAME));
            }
            Part::Row(at, _) => {
                if let Some((name, runs)) = rows.next() {
                    if at % named == 0 {
                        svg.label((left - 8.0, middle), Anchor::End, name);
                    }
                    draw_row(&mut svg, runs, (left, middle), (0.76 * pitch).round());
                }
            }
        });
        svg.line((left, area.bottom()), (area.right(), area.bottom()), FRAME, 1.0);
        axis_below(&mut svg, area, &axis, &format!("time [{unit}]"));
        self.draw_marks(&mut svg, area, pitch);
        svg.finish(&self.title, WIDTH, area.bottom() + bottom_room("time"))
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// All that is drawn below `top`, with the height of its middle.
    fn places(&self, top: f64, pitch: f64) -> impl Iterator<Item = (f64, Part<'_>)> {
        let parts = self.groups.iter().flat_map(move |group| {
            let name = group.is_named().then_some((STRIP, Part::Name(group)));
            let rows = group.rows.iter().enumerate().map(move |(at, row)| (pitch, Part::Row(at, row)));
            name.into_iter().chain(rows)
        });
        parts.scan(top, |below, (height, part)| {
            *below += height;
            Some((*below - height / 2.0, part))
        })
    }

    /// What happened, each once, in the order of the marks.
    fn events(&self) -> Vec<&str> {
        let mut events: Vec<&str> = Vec::new();
        for (_, part) in self.places(0.0, 1.0) {
            for mark in part.marks() {
                if !events.contains(&mark.what.as_str()) {
                    events.push(&mark.what);
                }
            }
        }
        events
    }

    fn legend(&self, runs: &[Vec<Run>]) -> Vec<Entry> {
        let present = |kind: &Kind| runs.iter().flatten().any(|run| run.kind == *kind);
        let kinds = Kind::ALL.into_iter().filter(present).map(|kind| Entry {
            sample: Sample::Block { fill: kind.color().into() },
            name: kind.name().to_owned(),
        });
        let events = self.events().into_iter().enumerate().map(|(i, what)| Entry {
            sample: Sample::Symbol { symbol: MARKS[i % MARKS.len()], fill: INK, stroke: "#ffffff" },
            name: what.to_owned(),
        });
        kinds.chain(events).collect()
    }

    fn draw_marks(&self, svg: &mut Svg, area: Area, pitch: f64) {
        let (events, radius) = (self.events(), (0.4 * pitch).min(6.0));
        for (middle, part) in self.places(area.y, pitch) {
            for mark in part.marks() {
                let at = mark.at_s / self.end_s;
                if !(0.0..=1.0).contains(&at) {
                    continue;
                }
                let event = events.iter().position(|&what| what == mark.what).unwrap_or(0);
                svg.open(format_args!(""));
                svg.tip(&format!("{} at {} s", mark.what, mark.at_s));
                let place = (area.x + at * area.width, middle);
                MARKS[event % MARKS.len()].draw(svg, place, radius, INK, "#ffffff");
                svg.close();
            }
        }
    }
}

impl Group {
    fn is_named(&self) -> bool {
        !self.label.is_empty()
    }
}

/// What has a height of its own.
enum Part<'a> {
    Name(&'a Group),
    /// A row, and its number in its group.
    Row(usize, &'a Row),
}

impl<'a> Part<'a> {
    fn marks(&self) -> &'a [Mark] {
        match self {
            Self::Name(group) => &group.marks,
            Self::Row(_, row) => &row.marks,
        }
    }
}

/// Unit of a time axis of `end_s` seconds, and how many of it are a second.
fn unit(end_s: f64) -> (&'static str, f64) {
    match end_s {
        _ if end_s >= 1.0 => ("s", 1.0),
        _ if end_s >= 1e-3 => ("ms", 1e3),
        _ => ("µs", 1e6),
    }
}

/// Draws runs from `left` around `middle`. The kind of most time lies below the others as one piece, so that
/// thousands of neighbors neither make the file long nor let the ground shine through where they meet.
fn draw_row(svg: &mut Svg, runs: &[Run], (left, middle): (f64, f64), height: f64) {
    let time = |kind: Kind| -> f64 { runs.iter().filter(|run| run.kind == kind).map(Run::width).sum() };
    let Some(below) = Kind::ALL.into_iter().max_by(|&a, &b| time(a).total_cmp(&time(b))) else { return };
    let pieces = runs.chunk_by(|a, b| b.from - a.to < 1e-6);
    let whole = pieces.map(|piece| (piece[0].from, piece[piece.len() - 1].to)).collect();
    let others = Kind::ALL.into_iter().filter(|&kind| kind != below).map(|kind| {
        let runs = runs.iter().filter(|run| run.kind == kind);
        (kind.color(), runs.map(|run| (run.from, run.to)).collect())
    });
    let layers: Vec<_> = std::iter::once((below.color(), whole)).chain(others).collect();
    svg.band((left, middle), height, &layers);
}
