//! The two kinds of survey.

use super::{Geometry, GeometryError, Line, Shot, Survey, TRACES_MAX};
use crate::Node;

/// Receivers that stay where they are.
pub(super) fn fixed(settings: &Geometry, line: Line) -> Result<Survey, GeometryError> {
    let step = receiver_step(settings, line)?;
    let first = settings.receiver_first_m.unwrap_or(0.0);
    let last = settings.receiver_last_m.unwrap_or(line.width());
    line.ix(|| "receiver_first_m".to_owned(), first)?;
    line.ix(|| "receiver_last_m".to_owned(), last)?;
    in_order("receiver", first, last)?;
    let count = steps(last - first, step) + 1;

    let margin = line.width() / 10.0;
    let sources = sources(settings, margin, line.width() - margin, count)?;
    let (source_iz, iz) = depths(settings, line)?;
    let receivers: Result<Vec<Node>, _> = (0..count)
        .map(|channel| first + channel as f64 * step)
        // The last step may end past the model by a rounding error.
        .map(|x| Ok(Node { ix: line.ix(|| "receiver".to_owned(), x.min(line.width()))?, iz }))
        .collect();
    let receivers = receivers?;
    let shots = (1..).zip(sources).map(|(number, x)| {
        let ix = line.ix(|| format!("source of shot {number}"), x)?;
        Ok(Shot { number, source: Node { ix, iz: source_iz }, receivers: receivers.clone() })
    });
    Ok(Survey { shots: shots.collect::<Result<_, _>>()? })
}

/// Receivers that follow the source.
pub(super) fn towed(settings: &Geometry, line: Line) -> Result<Survey, GeometryError> {
    let step = receiver_step(settings, line)?;
    let near = settings.near_offset_m.unwrap_or(4.0 * line.spacing);
    if near < 0.0 {
        return Err(GeometryError::NearOffset { near_m: near });
    }
    let half = line.width() / 2.0;
    let channels = settings.channels.unwrap_or_else(|| (steps(half - near, step) + 1) as u32);
    let reach = near + f64::from(channels - 1) * step;
    if !line.contains(reach, 0.0, line.width()) {
        let fitting = if near > line.width() { 0 } else { steps(line.width() - near, step) + 1 };
        return Err(GeometryError::StreamerTooLong {
            channels,
            reach_m: reach,
            width_m: line.width(),
            fitting,
        });
    }

    let sources = sources(settings, reach, line.width(), channels.into())?;
    let (source_iz, iz) = depths(settings, line)?;
    let shots = (1..).zip(sources).map(|(number, x)| {
        let ix = line.ix(|| format!("source of shot {number}"), x)?;
        if !line.contains(x, reach, line.width()) {
            let (receiver_m, last_m) = (x - reach, line.width());
            return Err(GeometryError::StreamerOutside {
                shot: number,
                source_m: x,
                receiver_m,
                first_m: reach,
                last_m,
            });
        }
        let receivers = (0..channels)
            .map(|channel| x - near - f64::from(channel) * step)
            .map(|x| Ok(Node { ix: line.ix(|| format!("receiver of shot {number}"), x.max(0.0))?, iz }));
        Ok(Shot {
            number,
            source: Node { ix, iz: source_iz },
            receivers: receivers.collect::<Result<_, _>>()?,
        })
    });
    Ok(Survey { shots: shots.collect::<Result<_, _>>()? })
}

/// x of every source, evenly from the first to the last; `first` and `last` are the defaults.
fn sources(
    settings: &Geometry,
    first: f64,
    last: f64,
    receivers: u64,
) -> Result<impl Iterator<Item = f64> + use<>, GeometryError> {
    let shots = settings.shots;
    if u64::from(shots).saturating_mul(receivers) > TRACES_MAX {
        return Err(GeometryError::TooMany { shots, receivers });
    }
    let (given_first, given_last) = (settings.source_first_m, settings.source_last_m);
    // A default gives way to a given position beyond it.
    let first = given_first.unwrap_or_else(|| given_last.map_or(first, |last| first.min(last)));
    let last = given_last.unwrap_or(last.max(first));
    in_order("source", first, last)?;
    let single = given_first.or(given_last).unwrap_or((first + last) / 2.0);
    Ok((0..shots).map(move |shot| match shots {
        1 => single,
        _ => first + (last - first) * (f64::from(shot) / f64::from(shots - 1)),
    }))
}

fn depths(settings: &Geometry, line: Line) -> Result<(usize, usize), GeometryError> {
    let source = line.iz("source_depth_m", settings.source_depth_m)?;
    Ok((source, line.iz("receiver_depth_m", settings.receiver_depth_m)?))
}

fn receiver_step(settings: &Geometry, line: Line) -> Result<f64, GeometryError> {
    let step = settings.receiver_spacing_m.unwrap_or(line.spacing);
    let wide = step >= line.spacing * (1.0 - Line::TOLERANCE);
    if wide { Ok(step) } else { Err(GeometryError::Step { step_m: step, grid_m: line.spacing }) }
}

fn in_order(what: &'static str, first_m: f64, last_m: f64) -> Result<(), GeometryError> {
    if first_m <= last_m { Ok(()) } else { Err(GeometryError::Order { what, first_m, last_m }) }
}

/// How many whole steps a length has, one that is short of a rounding error included. None for negative lengths.
fn steps(length: f64, step: f64) -> u64 {
    (length / step + Line::TOLERANCE).floor() as u64
}
