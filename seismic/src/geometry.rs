//! Where sources and receivers are: the survey, shot by shot.
//!
//! A survey is described by a few settings, in meters, by flags or in a file such as
//!
//! ```toml
//! kind = "towed-streamer"   # or "fixed-spread": receivers stay where they are
//! shots = 24
//! source_depth_m = 10.0
//! source_first_m = 3000.0   # of the first shot
//! source_last_m = 9000.0    # of the last shot
//! receiver_depth_m = 12.5
//! receiver_spacing_m = 25.0
//! near_offset_m = 100.0     # towed-streamer: from the source back to the first receiver
//! channels = 96             # towed-streamer: receivers
//! ```
//!
//! What is left out is chosen to fit the model, see [`Geometry`]. Positions go to the nearest point of the grid; one
//! outside the model is an error that says what would fit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Model, Node};

mod error;
mod spread;

pub use error::GeometryError;

/// Most shots of a survey, each of which is a file.
const SHOTS_MAX: u32 = 1 << 20;
/// Most traces of a survey. The places of all of them are in memory, at 16 bytes each.
const TRACES_MAX: u64 = 1 << 24;

/// All shots of a survey.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// In the order of their numbers.
    pub shots: Vec<Shot>,
}

/// One source and the receivers that record it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shot {
    /// From 1.
    pub number: u32,
    /// Where the source is.
    pub source: Node,
    /// Where the receivers are, in the order of the channels.
    pub receivers: Vec<Node>,
}

/// How sources and receivers move; in files `fixed-spread` or `towed-streamer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The receivers stay, the source moves.
    #[default]
    FixedSpread,
    /// The source moves towards larger x and tows the receivers behind it.
    TowedStreamer,
}

/// Settings of a survey; positions and distances in meters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Geometry {
    /// How sources and receivers move. Default: fixed-spread.
    pub kind: Kind,
    /// Number of shots, evenly spread from the first to the last position; a single one is at the first if that is
    /// given, else at the last, else in the middle. Default: 1.
    pub shots: u32,
    /// Default: 2 points of the grid, at most the depth of the model.
    pub source_depth_m: Option<f64>,
    /// x of the first source. Default: fixed-spread a tenth of the model from its left end, towed-streamer where the
    /// last receiver is just inside.
    pub source_first_m: Option<f64>,
    /// x of the last source. Default: fixed-spread a tenth of the model from its right end, towed-streamer at that
    /// end.
    pub source_last_m: Option<f64>,
    /// Default: 2 points of the grid, at most the depth of the model.
    pub receiver_depth_m: Option<f64>,
    /// Fixed-spread: x of the first receiver. Default: the left end of the model.
    pub receiver_first_m: Option<f64>,
    /// Fixed-spread: x that no receiver is beyond. Default: the right end of the model.
    pub receiver_last_m: Option<f64>,
    /// Distance of neighboring receivers. Default: that of the grid.
    pub receiver_spacing_m: Option<f64>,
    /// Towed-streamer: from the source to the first receiver. Default: 4 points of the grid.
    pub near_offset_m: Option<f64>,
    /// Towed-streamer: number of receivers. Default: as many as half of the model holds.
    pub channels: Option<u32>,
}

impl Default for Geometry {
    fn default() -> Self {
        Self {
            kind: Kind::default(),
            shots: 1,
            source_depth_m: None,
            source_first_m: None,
            source_last_m: None,
            receiver_depth_m: None,
            receiver_first_m: None,
            receiver_last_m: None,
            receiver_spacing_m: None,
            near_offset_m: None,
            channels: None,
        }
    }
}

impl Geometry {
    /// Reads settings from the text of a TOML file.
    ///
    /// # Errors
    /// [`GeometryError::Toml`] with the line, also for a name that is none of the settings.
    pub fn from_toml(text: &str) -> Result<Self, GeometryError> {
        toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
            GeometryError::Toml { line, message: error.message().replace('\n', ", ") }
        })
    }

    /// Places sources and receivers in a model. O(traces).
    ///
    /// # Errors
    /// [`GeometryError`] when a setting is no number, does not belong to the kind of survey, puts something outside
    /// the model, or asks for more than 2^20 shots or 2^24 traces.
    pub fn survey(&self, model: &Model) -> Result<Survey, GeometryError> {
        self.check()?;
        let line = Line { nx: model.nx, nz: model.nz, spacing: model.spacing };
        match self.kind {
            Kind::FixedSpread => spread::fixed(self, line),
            Kind::TowedStreamer => spread::towed(self, line),
        }
    }

    /// The given positions that are no points of the grid.
    pub fn moved(&self, model: &Model) -> Vec<Moved> {
        let line = Line { nx: model.nx, nz: model.nz, spacing: model.spacing };
        let uses_last = self.shots > 1 || self.source_first_m.is_none();
        let positions = [
            ("source_depth_m", self.source_depth_m),
            ("source_first_m", self.source_first_m),
            ("source_last_m", self.source_last_m.filter(|_| uses_last)),
            ("receiver_depth_m", self.receiver_depth_m),
            ("receiver_first_m", self.receiver_first_m),
        ];
        let distances =
            [("receiver_spacing_m", self.receiver_spacing_m), ("near_offset_m", self.near_offset_m)];
        let moved = |(setting, asked_m, is_position): (&'static str, Option<f64>, bool)| {
            let asked_m = asked_m?;
            let to_m = line.nearest(asked_m) as f64 * line.spacing;
            let is_off = (to_m - asked_m).abs() > Line::TOLERANCE * line.spacing;
            is_off.then_some(Moved { setting, asked_m, to_m: is_position.then_some(to_m) })
        };
        let positions = positions.map(|(setting, asked_m)| (setting, asked_m, true));
        let distances = distances.map(|(setting, asked_m)| (setting, asked_m, false));
        positions.into_iter().chain(distances).filter_map(moved).collect()
    }

    /// What can be said without a model.
    fn check(&self) -> Result<(), GeometryError> {
        if self.shots == 0 {
            return Err(GeometryError::None { setting: "shots" });
        }
        if self.channels == Some(0) {
            return Err(GeometryError::None { setting: "channels" });
        }
        if self.shots > SHOTS_MAX {
            return Err(GeometryError::TooManyShots { shots: self.shots });
        }
        let (fixed, towed) = (Kind::FixedSpread, Kind::TowedStreamer);
        for (setting, value, only) in [
            ("source_depth_m", self.source_depth_m, None),
            ("source_first_m", self.source_first_m, None),
            ("source_last_m", self.source_last_m, None),
            ("receiver_depth_m", self.receiver_depth_m, None),
            ("receiver_first_m", self.receiver_first_m, Some(fixed)),
            ("receiver_last_m", self.receiver_last_m, Some(fixed)),
            ("receiver_spacing_m", self.receiver_spacing_m, None),
            ("near_offset_m", self.near_offset_m, Some(towed)),
            ("channels", self.channels.map(f64::from), Some(towed)),
        ] {
            let Some(value) = value else { continue };
            if !value.is_finite() {
                return Err(GeometryError::NotFinite { setting, value });
            }
            if only.is_some_and(|only| only != self.kind) {
                return Err(GeometryError::OtherKind { setting });
            }
        }
        Ok(())
    }
}

/// A setting that the grid does not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Its name.
    pub setting: &'static str,
    /// What was given.
    pub asked_m: f64,
    /// The point in its place; none for a distance, which differs from one pair of points to the next.
    pub to_m: Option<f64>,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { setting, asked_m, to_m } = self;
        match to_m {
            Some(to_m) => write!(f, "{setting} {asked_m} is {to_m}"),
            None => write!(f, "{setting} {asked_m} varies by a point"),
        }
    }
}

/// The grid that positions in meters go to.
#[derive(Clone, Copy)]
struct Line {
    nx: usize,
    nz: usize,
    spacing: f64,
}

impl Line {
    /// Part of a grid step that positions may be off through rounding.
    const TOLERANCE: f64 = 1e-6;

    /// x of the right end.
    fn width(self) -> f64 {
        self.nx.saturating_sub(1) as f64 * self.spacing
    }

    fn depth(self) -> f64 {
        self.nz.saturating_sub(1) as f64 * self.spacing
    }

    fn contains(self, position: f64, first: f64, last: f64) -> bool {
        let tolerance = Self::TOLERANCE * self.spacing;
        position >= first - tolerance && position <= last + tolerance
    }

    fn ix(self, what: impl FnOnce() -> String, x: f64) -> Result<usize, GeometryError> {
        self.index(what, x, self.width())
    }

    fn iz(self, what: &'static str, z: Option<f64>) -> Result<usize, GeometryError> {
        let z = z.unwrap_or((2.0 * self.spacing).min(self.depth()));
        self.index(|| what.to_owned(), z, self.depth())
    }

    fn index(self, what: impl FnOnce() -> String, at_m: f64, last_m: f64) -> Result<usize, GeometryError> {
        if !self.contains(at_m, 0.0, last_m) {
            return Err(GeometryError::Outside { what: what(), at_m, last_m });
        }
        Ok(self.nearest(at_m))
    }

    /// The nearest point; in the middle between two, the one before, so that rounding errors do not decide.
    fn nearest(self, at_m: f64) -> usize {
        // Truncates to 0 what lies just before the first point.
        (at_m / self.spacing + 0.5 - Self::TOLERANCE).floor() as usize
    }
}

#[cfg(test)]
mod tests;
