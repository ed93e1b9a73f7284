//! Raw velocity models: the reader takes what an independent rule of one line says, and nothing else.

#![no_main]

use arbitrary::Arbitrary;
use ft_fuzz::{BUFFERS, Held, within};
use ft_seismic::load::{ModelOptions, Unit, read_model};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    shape: Option<(u16, u16)>,
    spacing: Option<f64>,
    unit: u8,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let units = [Unit::Auto, Unit::MetresPerSecond, Unit::KilometresPerSecond];
    let options = ModelOptions {
        shape: input.shape.map(|(nx, nz)| (nx.into(), nz.into())),
        spacing: input.spacing,
        unit: units[usize::from(input.unit) % units.len()],
    };
    let file = Held::new("model.bin", input.bytes);
    let found = within(BUFFERS + 4 * input.bytes.len(), || read_model(&file.path(), &options));
    if input.bytes.starts_with(&[0x1f, 0x8b]) {
        return; // the target gz has these
    }
    let values: Vec<f32> =
        input.bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes"))).collect();
    let fastest = values.iter().copied().fold(0.0, f32::max);
    let kilometers = match options.unit {
        Unit::Auto => fastest < 20.0,
        unit => unit == Unit::KilometresPerSecond,
    };
    let factor = if kilometers { 1000.0 } else { 1.0 };
    let expected: Vec<f32> = values.iter().map(|value| value * factor).collect();
    let is_model = options.shape.is_some_and(|(nx, nz)| nx * nz > 0 && 4 * nx * nz == input.bytes.len())
        && options.spacing.is_some_and(|spacing| spacing.is_finite() && spacing > 0.0)
        && expected.iter().all(|velocity| (100.0..=15_000.0).contains(velocity));
    match found {
        Ok(model) => {
            assert!(is_model, "{model:?}");
            assert_eq!((Some((model.nx, model.nz)), Some(model.spacing)), (options.shape, options.spacing));
            assert_eq!(model.velocity, expected);
        }
        Err(error) => assert!(!is_model, "{error}"),
    }
});
