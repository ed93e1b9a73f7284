//! How a gather was modelled, for the people who find its file.

use std::path::Path;

use ft_seismic::Model;

use super::args::SeismicArgs;
use super::setup::Steps;

/// Lines for the textual header of each gather: wavelet, model and scheme. The same on all ranks.
pub(super) fn facts(args: &SeismicArgs, model: &Model, steps: &Steps) -> Vec<String> {
    let wavelet = match &args.wavelet {
        Some(file) => format!("FILE {}, TIME 0 AS IN IT", name(file)),
        None => format!("RICKER, PEAK FREQUENCY {} HZ, PEAK AT 0 MS", args.freq),
    };
    let medium = match (&args.model, args.synthetic) {
        (Some(file), _) => format!("FILE {}", name(file)),
        (None, kind) => kind.map_or("SYNTHETIC".into(), |kind| format!("SYNTHETIC {kind}")),
    };
    let slowest = model.velocity.iter().copied().fold(f32::INFINITY, f32::min);
    let fastest = model.velocity.iter().copied().fold(0.0, f32::max);
    vec![
        format!("WAVELET: {wavelet}"),
        format!("MODEL: {medium}"),
        format!("{} X {} POINTS, VELOCITIES FROM {slowest} TO {fastest} M/S", model.nx, model.nz),
        format!("SPACE ORDER {}, TIME STEP {:.6} MS, NO FREE SURFACE", steps.order, steps.dt * 1e3),
    ]
}

/// The name of a file without its folder, which says nothing elsewhere.
fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
