//! Why a survey cannot be shot.

use super::{SHOTS_MAX, TRACES_MAX};

/// Why settings do not make a survey. Positions and distances are in meters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// The file is no TOML, or has a setting that does not exist or is of the wrong type.
    #[error("line {line}: {message}")]
    Toml {
        /// Counted from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// Zero shots or channels.
    #[error("{setting} is 0, at least 1 is needed")]
    None {
        /// Which setting.
        setting: &'static str,
    },
    /// Infinity or NaN.
    #[error("{setting} is {value}, a finite number is needed")]
    NotFinite {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: f64,
    },
    /// A setting that would be without effect.
    #[error("{setting} does not go with this kind of survey, leave it out or change kind")]
    OtherKind {
        /// Which setting.
        setting: &'static str,
    },
    /// A position that the model does not have.
    #[error("{what} is {} m, outside the model: 0 .. {} m fit", round(*.at_m), round(*.last_m))]
    Outside {
        /// Which position.
        what: String,
        /// Where it is.
        at_m: f64,
        /// Where the model ends.
        last_m: f64,
    },
    /// The last position is before the first.
    #[error("{what}_last_m is {} m, before {what}_first_m, {} m", round(*.last_m), round(*.first_m))]
    Order {
        /// Source or receiver.
        what: &'static str,
        /// First position, as given or by default.
        first_m: f64,
        /// Last position, as given or by default.
        last_m: f64,
    },
    /// Receivers so close that two would share a point.
    #[error("receiver_spacing_m is {} m, less than the grid spacing of {} m", round(*.step_m), round(*.grid_m))]
    Step {
        /// Distance of receivers.
        step_m: f64,
        /// Distance of points.
        grid_m: f64,
    },
    /// A streamer in front of its ship.
    #[error("near_offset_m is {} m, the streamer is behind the source: 0 m or more", round(*.near_m))]
    NearOffset {
        /// From the source to the first receiver.
        near_m: f64,
    },
    /// A streamer that fits nowhere.
    #[error(
        "the last of {channels} channels is {} m behind the source, the model is {} m wide: {}",
        round(*.reach_m),
        round(*.width_m),
        if *.fitting == 0 { "reduce near_offset_m".to_owned() } else { format!("{fitting} channels fit") }
    )]
    StreamerTooLong {
        /// Number of receivers.
        channels: u32,
        /// From the source to the last receiver.
        reach_m: f64,
        /// Width of the model.
        width_m: f64,
        /// Most channels that fit.
        fitting: u64,
    },
    /// A shot whose streamer reaches out of the model.
    #[error(
        "shot {shot} with its source at x = {} m has its last receiver at {} m, outside the model: sources at \
         {} .. {} m fit",
        round(*.source_m),
        round(*.receiver_m),
        round(*.first_m),
        round(*.last_m)
    )]
    StreamerOutside {
        /// Number of the shot.
        shot: u32,
        /// x of its source.
        source_m: f64,
        /// x of its last receiver.
        receiver_m: f64,
        /// Least x of a source that fits.
        first_m: f64,
        /// Greatest x of a source that fits.
        last_m: f64,
    },
    /// More shots than a folder is to have files.
    #[error("{shots} shots, at most {SHOTS_MAX} are possible")]
    TooManyShots {
        /// Number of shots.
        shots: u32,
    },
    /// More traces than fit into memory together.
    #[error("{shots} shots of {receivers} receivers are {} traces, at most {TRACES_MAX} are possible",
        u64::from(*.shots) * receivers)]
    TooMany {
        /// Number of shots.
        shots: u32,
        /// Receivers of each.
        receivers: u64,
    },
}

/// Meters to the millimeter, so that rounding errors do not fill the line.
fn round(meters: f64) -> f64 {
    let rounded = (meters * 1000.0).round() / 1000.0;
    if rounded.is_finite() { rounded } else { meters }
}
