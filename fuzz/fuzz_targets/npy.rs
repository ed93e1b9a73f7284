//! NumPy arrays as velocity models: what is read can be written as NumPy does it, and is read as the same.

#![no_main]

use ft_fuzz::{BUFFERS, Held, within};
use ft_seismic::Model;
use ft_seismic::load::{ModelError, ModelOptions, Unit, read_model};
use libfuzzer_sys::fuzz_target;

fn read(bytes: &[u8], unit: Unit) -> Result<Model, ModelError> {
    let options = ModelOptions { spacing: Some(10.0), unit, ..ModelOptions::default() };
    let file = Held::new("model.npy", bytes);
    // A header of the longest kind may be there; Fortran order takes a second array.
    within(BUFFERS + 16 * bytes.len(), || read_model(&file.path(), &options))
}

/// Version 1, little endian, x first.
fn written(model: &Model) -> Vec<u8> {
    let shape = (model.nx, model.nz);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape:?}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(model.velocity.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return; // the target gz has these
    }
    // Short for the head of a file: the magic bytes are always the same.
    let bytes = [b"\x93NUMPY", bytes].concat();
    let Ok(model) = read(&bytes, Unit::Auto) else { return };
    assert_eq!(model.velocity.len(), model.nx * model.nz);
    assert!(4 * model.velocity.len() < bytes.len(), "more values than bytes");
    let again = read(&written(&model), Unit::MetresPerSecond).expect("it was a model");
    assert_eq!(again, model);
});
