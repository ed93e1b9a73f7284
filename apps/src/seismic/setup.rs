//! From arguments to a survey: the model, who shoots where, the wavelet and the time steps, all of it checked.

use ft_seismic::geometry::{Geometry, Kind, Moved, Survey};
use ft_seismic::load::{ModelOptions, read_model};
use ft_seismic::synthetic::generate;
use ft_seismic::wavelet::{ricker, ricker_delay};
use ft_seismic::{Model, check, gather};

use super::args::SeismicArgs;
use crate::text_file::read_text;

/// Shape and spacing of generated models.
const SHAPE: (usize, usize) = (401, 201);
const SPACING: f64 = 10.0;
/// Default intervals of recording in microseconds: the longest that the wavelet allows.
const INTERVALS_US: [u16; 14] = [4000, 2000, 1000, 500, 250, 200, 125, 100, 50, 20, 10, 5, 2, 1];
/// Samples in the shortest period, the inverse of 2.5 times the peak frequency.
const SAMPLES_PER_PERIOD: f64 = 4.0;

/// All that does not change during a run.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) model: Model,
    pub(super) survey: Survey,
    pub(super) steps: Steps,
    /// Positions as given that went to other points of the grid.
    pub(super) moved: Vec<Moved>,
}

/// The time steps of every shot.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Steps {
    /// Space order.
    pub(super) order: usize,
    /// Time step in seconds.
    pub(super) dt: f64,
    /// One value a time step.
    pub(super) wavelet: Vec<f32>,
    /// Time steps from one sample to the next.
    pub(super) every: usize,
    /// Samples of a trace; the first is when the wavelet begins.
    pub(super) samples: usize,
    /// Seconds from there to time 0 of the traces: the peak of a Ricker wavelet, the beginning of a given one.
    pub(super) delay: f64,
}

impl Steps {
    /// Seconds between two samples.
    pub(super) fn interval(&self) -> f64 {
        self.dt * self.every as f64
    }
}

impl Setup {
    /// Reads and checks all inputs.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub(super) fn new(args: &SeismicArgs) -> Result<Self, String> {
        let model = model(args)?;
        let geometry = geometry(args)?;
        let survey = geometry.survey(&model).map_err(|error| error.to_string())?;
        let steps = steps(args, &model)?;
        let moved = geometry.moved(&model);
        Ok(Self { model, survey, steps, moved })
    }
}

fn model(args: &SeismicArgs) -> Result<Model, String> {
    if let Some(kind) = args.synthetic {
        let (nx, nz) = args.shape.unwrap_or(SHAPE);
        return generate(kind, nx, nz, args.spacing.unwrap_or(SPACING)).map_err(|error| error.to_string());
    }
    let file = args.model.as_deref().ok_or("no velocity model is given")?;
    let options = ModelOptions { shape: args.shape, spacing: args.spacing, unit: args.unit };
    read_model(file, &options).map_err(|error| error.to_string())
}

/// The file of `--geometry`, overruled by flags.
fn geometry(args: &SeismicArgs) -> Result<Geometry, String> {
    let file = match &args.geometry {
        None => Geometry::default(),
        Some(path) => {
            let place = |error: String| format!("{}: {error}", path.display());
            let text = read_text(path).map_err(place)?;
            Geometry::from_toml(&text).map_err(|error| place(error.to_string()))?
        }
    };
    Ok(Geometry {
        kind: if args.streamer { Kind::TowedStreamer } else { file.kind },
        shots: args.shots.unwrap_or(file.shots),
        source_depth_m: args.source_depth.or(file.source_depth_m),
        source_first_m: args.source_first.or(file.source_first_m),
        source_last_m: args.source_last.or(file.source_last_m),
        receiver_depth_m: args.receiver_depth.or(file.receiver_depth_m),
        receiver_first_m: args.receiver_first.or(file.receiver_first_m),
        receiver_last_m: args.receiver_last.or(file.receiver_last_m),
        receiver_spacing_m: args.receiver_spacing.or(file.receiver_spacing_m),
        near_offset_m: args.near_offset.or(file.near_offset_m),
        channels: args.channels.or(file.channels),
    })
}

/// Most time steps of a shot: the wavelet has a number for each.
const STEPS_MAX: usize = 100_000_000;

fn steps(args: &SeismicArgs, model: &Model) -> Result<Steps, String> {
    let order = args.order;
    let (dt, every) = intervals(args, model).map_err(|error| error.to_string())?;
    check::check_stability(model, order, dt).map_err(|error| error.to_string())?;
    check::check_dispersion(model, order, args.freq).map_err(|error| error.to_string())?;
    // Rounding must not cost the last step of 2 s in steps of 1 ms.
    let count = (args.time / dt + 1e-6).floor() as usize;
    if count < every {
        return Err(format!(
            "{} s are {count} time steps of {} ms, of which every {every} is recorded: that gives no sample",
            args.time,
            dt * 1e3
        ));
    }
    if count > STEPS_MAX {
        return Err(format!(
            "{} s are more than {STEPS_MAX} time steps of {} ms: shorten --time or lengthen --dt",
            args.time,
            dt * 1e3
        ));
    }
    // The first sample is that of the medium at rest.
    let samples = count / every + 1;
    gather::check_sampling(samples, dt * every as f64).map_err(|error| error.to_string())?;
    let count = (samples - 1) * every;
    let delay = if args.wavelet.is_none() { ricker_delay(args.freq) } else { 0.0 };
    gather::check_delay(delay).map_err(|error| error.to_string())?;
    let wavelet = match &args.wavelet {
        None => ricker(args.freq, dt, count),
        Some(path) => {
            let place = |error: String| format!("{}: {error}", path.display());
            let text = read_text(path).map_err(place)?;
            given_wavelet(&text, dt, count).map_err(place)?
        }
    };
    Ok(Steps { order, dt, wavelet, every, samples, delay })
}

/// The time step, and how many of them make the interval of recording, as far as they are not given.
fn intervals(args: &SeismicArgs, model: &Model) -> Result<(f64, usize), check::CheckError> {
    let longest = 1.0 / (SAMPLES_PER_PERIOD * 2.5 * args.freq);
    let dt = match args.dt {
        Some(ms) => ms * 1e-3,
        None => check::default_dt(model, args.order)?,
    };
    if args.dt.is_none() && args.record_every.is_none() {
        return Ok(default_steps(dt, longest));
    }
    let longest = longest.min(f64::from(INTERVALS_US[0]) / 1e6);
    Ok((dt, args.record_every.unwrap_or(((longest / dt + 1e-6).floor() as usize).max(1))))
}

/// The longest time step up to `dt_max`, and how many of them make the interval of recording: a round one up to `longest`.
fn default_steps(dt_max: f64, longest: f64) -> (f64, usize) {
    let intervals = INTERVALS_US.map(|microseconds| f64::from(microseconds) / 1e6);
    let Some(interval) = intervals.into_iter().find(|interval| *interval <= longest) else {
        return (dt_max, 1);
    };
    let every = (interval / dt_max - 1e-9).ceil().max(1.0);
    (interval / every, every as usize)
}

/// A wavelet of `count` values at multiples of `dt` from lines of time and value, by linear interpolation; zero before
/// the first and after the last.
fn given_wavelet(text: &str, dt: f64, count: usize) -> Result<Vec<f32>, String> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_whitespace().map(|word| word.parse().ok().filter(|x: &f64| x.is_finite()));
        let (Some(Some(at)), Some(Some(value)), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!(
                "line {}: a time in seconds and a value are expected, not '{line}'",
                number + 1
            ));
        };
        if points.last().is_some_and(|(before, _)| at <= *before) {
            return Err(format!("line {}: times must grow, and {at} s does not", number + 1));
        }
        if !(value as f32).is_finite() {
            return Err(format!(
                "line {}: {value:e} is beyond what 32 bits hold, {:e}",
                number + 1,
                f32::MAX
            ));
        }
        points.push((at, value));
    }
    if points.len() < 2 {
        return Err("a wavelet has at least two lines, each with a time in seconds and a value".into());
    }
    Ok((0..count).map(|step| interpolate(&points, step as f64 * dt) as f32).collect())
}

fn interpolate(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.partition_point(|(time, _)| *time <= at);
    let (Some(&(t0, v0)), Some(&(t1, v1))) = (points[..after].last(), points.get(after)) else {
        return points.last().filter(|(time, _)| *time == at).map_or(0.0, |(_, value)| *value);
    };
    v0 + (v1 - v0) * (at - t0) / (t1 - t0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_wavelet_is_interpolated_and_zero_outside() {
        let wavelet = given_wavelet("0.001 0\n\n0.003 4\n0.004 -2\n", 0.0005, 10).unwrap();
        assert_eq!(wavelet, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 1.0, -2.0, 0.0]);
    }

    #[test]
    fn intervals_are_round_and_steps_stable() {
        for (dt_max, longest, expected) in [
            (3.326e-3, 6.67e-3, (2e-3, 2)),
            (1.4e-3, 6.67e-3, (4e-3 / 3.0, 3)),
            (5e-3, 6.67e-3, (4e-3, 1)),
            (2e-3, 6.67e-3, (2e-3, 2)),
            (1.4e-3, 3.9e-3, (1e-3, 2)),
            (1.4e-3, 1e-3, (1e-3, 1)),
            (1e-4, 1.3e-4, (1.25e-4 / 2.0, 2)),
            (1e-7, 2e-7, (1e-7, 1)),
        ] {
            assert_eq!(default_steps(dt_max, longest), expected, "{dt_max} {longest}");
        }
    }

    #[test]
    fn a_bad_wavelet_is_refused_with_its_line() {
        for (text, expected) in [
            ("0 1\n0 2\n", "line 2: times must grow, and 0 s does not"),
            ("0 1\n1\n", "line 2: a time in seconds and a value are expected, not '1'"),
            ("0 1 2\n", "line 1: a time in seconds and a value are expected, not '0 1 2'"),
            ("0 NaN\n", "line 1: a time in seconds and a value are expected, not '0 NaN'"),
            ("0 1\n0.1 -1e39\n", "line 2: -1e39 is beyond what 32 bits hold, 3.4028235e38"),
            ("0 1\n", "a wavelet has at least two lines, each with a time in seconds and a value"),
        ] {
            assert_eq!(given_wavelet(text, 0.001, 4).unwrap_err(), expected);
        }
    }
}
