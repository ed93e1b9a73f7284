//! The real velocity models of the data folder.

use std::path::PathBuf;

use ft_seismic::{
    Model, Node,
    load::{ModelOptions, read_model},
};

/// A model of the data folder (`FT_DATA`, else `shared/data` beside the repository); `None`, with a word why, where
/// there is no such file.
fn data_model(name: &str, options: ModelOptions) -> Option<Model> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("FT_DATA").map_or_else(beside, PathBuf::from);
    let path = folder.join("velocity").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there, set FT_DATA to the data folder", path.display());
        return None;
    }
    Some(read_model(&path, &options).expect("a data file that can be read"))
}

/// Smallest, largest and mean velocity.
fn statistics(model: &Model) -> (f32, f32, f64) {
    assert_eq!(model.velocity.len(), model.nx * model.nz);
    let min = model.velocity.iter().copied().fold(f32::INFINITY, f32::min);
    let max = model.velocity.iter().copied().fold(0.0, f32::max);
    let sum: f64 = model.velocity.iter().copied().map(f64::from).sum();
    (min, max, sum / model.velocity.len() as f64)
}

/// The water at the surface: a model whose axes are exchanged would have it at its left side.
fn surface_is(model: &Model, velocity: f32) -> bool {
    (0..model.nx).all(|ix| model.at(Node { ix, iz: 0 }) == velocity)
}

#[test]
fn marmousi() {
    let options = ModelOptions { shape: Some((1601, 401)), spacing: Some(7.5), ..ModelOptions::default() };
    let Some(model) = data_model("marmousi_1601x401_7p5m_f32le.bin.gz", options) else { return };
    let (min, max, mean) = statistics(&model);
    assert!((min - 1028.0).abs() < 0.001 && max == 4700.0, "{min} .. {max}");
    assert!((mean - 2668.0).abs() < 0.5, "{mean}");
    assert!(surface_is(&model, 1500.0));
}

#[test]
fn marmousi_2() {
    let options = ModelOptions { spacing: Some(25.0), ..ModelOptions::default() };
    let Some(model) = data_model("marmousi2_481x141_25m.npy.gz", options) else { return };
    let (min, max, mean) = statistics(&model);
    assert_eq!((model.nx, model.nz, model.spacing), (481, 141, 25.0));
    assert!((min - 1132.75).abs() < 0.005 && max == 4700.0, "{min} .. {max}");
    assert!((mean - 2671.6).abs() < 0.05, "{mean}");
    assert!(surface_is(&model, 1500.0));
}

#[test]
fn foothill() {
    let shape = Some((801, 331));
    let options = ModelOptions { shape, spacing: Some(25.0), ..ModelOptions::default() };
    let Some(model) = data_model("foothill_801x331_25m.npy.gz", options) else { return };
    let (min, max, mean) = statistics(&model);
    assert_eq!((min, max), (1500.0, 6000.0));
    assert!((mean - 4643.9).abs() < 0.05, "{mean}");
    assert!(surface_is(&model, 1500.0));
}
