//! The model with the survey, and gathers, as pictures.

use std::path::Path;

use ft_comm::limits;
use ft_figures::{AxisRange, Density, Marker, MarkerKind, Picture, Scale, Wiggle};
use ft_seismic::gather::{OwnedGather, read_gather};
use ft_seismic::geometry::Survey;
use ft_seismic::{Model, Node};

use super::args::SeismicArgs;
use super::gathers;
use super::setup::Setup;

/// Share of the samples, in percent, whose colors are not cut off.
const PERCENTILE: f64 = 98.5;

/// `model.png`, and a picture beside each gather.
pub(super) fn of_survey(setup: &Setup, args: &SeismicArgs, out: &Path) -> Result<(), String> {
    let save = |picture: &Picture, path: &Path| picture.save(path).map_err(|error| limits::explain(&error));
    save(&model(&setup.model, Some(&setup.survey)), &out.join("model.png"))?;
    for shot in &setup.survey.shots {
        let gather =
            read_gather(&gathers::path(out, shot.number, "sgy")).map_err(|error| error.to_string())?;
        save(&self::gather(&gather, args.wiggle), &gathers::path(out, shot.number, "png"))?;
    }
    Ok(())
}

/// Velocities, with sources and receivers.
pub(crate) fn model(model: &Model, survey: Option<&Survey>) -> Picture {
    let axis = |points: usize, title: &str| AxisRange {
        from: 0.0,
        to: points.saturating_sub(1) as f64 * model.spacing,
        title: title.into(),
    };
    let marker = |node: &Node, kind| Marker {
        x: node.ix as f64 * model.spacing,
        z: node.iz as f64 * model.spacing,
        kind,
    };
    let shots = survey.map_or(&[][..], |survey| &survey.shots);
    let mut receivers: Vec<Node> = shots.iter().flat_map(|shot| &shot.receivers).copied().collect();
    receivers.sort_unstable();
    receivers.dedup();
    let sources = shots.iter().map(|shot| marker(&shot.source, MarkerKind::Source));
    let markers = sources.chain(receivers.iter().map(|node| marker(node, MarkerKind::Receiver))).collect();
    Density {
        title: "Velocity model".into(),
        values: &model.velocity,
        nx: model.nx,
        nz: model.nz,
        x: axis(model.nx, "x [m]"),
        z: axis(model.nz, "depth [m]"),
        scale: Scale::Sequential,
        bar_title: "velocity [m/s]".into(),
        markers,
    }
    .draw()
}

/// A gather, its receivers across and time downwards.
pub(crate) fn gather(gather: &OwnedGather, wiggle: bool) -> Picture {
    let (first, last) = (gather.headers.first(), gather.headers.last());
    let title = first.map_or("Gather".into(), |header| {
        format!(
            "Shot {}, source at {:.0} m, {:.0} m deep",
            header.shot,
            header.source_x(),
            header.source_depth()
        )
    });
    let at = |header: Option<&ft_seismic::trace_header::TraceHeader>| header.map_or(0.0, |h| h.receiver_x());
    let x = AxisRange { from: at(first), to: at(last), title: "receiver x [m]".into() };
    let seconds = gather.samples as f64 * gather.interval_us * 1e-6;
    let from = first.map_or(0.0, |header| f64::from(header.delay_ms) * 1e-3);
    let z = AxisRange { from, to: from + seconds, title: "time [s]".into() };
    let (values, nx, nz) = (&gather.traces[..], gather.headers.len(), gather.samples);
    if wiggle {
        return Wiggle { title, values, nx, nz, x, z }.draw();
    }
    let scale = Scale::Symmetric { percentile: PERCENTILE };
    Density { title, values, nx, nz, x, z, scale, bar_title: "pressure".into(), markers: vec![] }.draw()
}
