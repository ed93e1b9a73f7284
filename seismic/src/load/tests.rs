use std::{
    fs,
    io::{Cursor, Write},
    path::PathBuf,
};

use flate2::{Compression, write::GzEncoder};
use tempfile::TempDir;

use super::*;
use crate::{
    gather::{Gather, tests::example_shot},
    segy::write_segy,
    su::write_su,
};

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn shaped(nx: usize, nz: usize) -> ModelOptions {
    ModelOptions { shape: Some((nx, nz)), spacing: Some(12.5), unit: Unit::Auto }
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn read(&self, name: &str, bytes: &[u8], options: ModelOptions) -> Result<Model, ModelError> {
        read_model(&self.write(name, bytes), &options)
    }

    /// The error without the path, which has to stand first.
    fn error(&self, name: &str, bytes: &[u8], options: ModelOptions) -> String {
        let text = self.read(name, bytes, options).unwrap_err().to_string();
        let path = format!("{}: ", self.0.path().join(name).display());
        assert!(!text.contains('\n'), "{text}");
        text.strip_prefix(&path).unwrap_or_else(|| panic!("{text} without {path}")).to_owned()
    }
}

#[test]
fn raw_files_whatever_their_name_plain_or_gzip() {
    let (files, values) = (Files::new(), [1500.0, 1600.0, 1700.0, 1800.0, 1900.0, 2000.0]);
    let expected = Model { nx: 2, nz: 3, spacing: 12.5, velocity: values.to_vec() };
    for name in ["a.bin", "a.raw", "a.vp", "noextension", "wrongly_named.gz"] {
        assert_eq!(files.read(name, &floats(&values), shaped(2, 3)).unwrap(), expected, "{name}");
    }
    for name in ["b.bin.gz", "b.bin", "b.GZ"] {
        assert_eq!(files.read(name, &gzip(&floats(&values)), shaped(2, 3)).unwrap(), expected, "{name}");
    }
}

#[test]
fn the_unit_is_recognized_or_given() {
    let files = Files::new();
    let read = |values: &[f32], unit| {
        let options = ModelOptions { unit, ..shaped(1, 2) };
        files.read("unit.bin", &floats(values), options).map(|model| model.velocity)
    };
    assert_eq!(read(&[1.5, 14.0], Unit::Auto).unwrap(), [1500.0, 14_000.0]);
    assert_eq!(read(&[150.0, 4500.0], Unit::Auto).unwrap(), [150.0, 4500.0]);
    assert_eq!(read(&[1.5, 4.5], Unit::KilometresPerSecond).unwrap(), [1500.0, 4500.0]);
    assert_eq!(
        files.error(
            "unit.bin",
            &floats(&[1.5, 4.5]),
            ModelOptions { unit: Unit::MetresPerSecond, ..shaped(1, 2) }
        ),
        "velocity at ix 0, iz 0 is 1.5 m/s, and 1 more of 2 are alike: outside 100 .. 15000 m/s with the file read \
         as m/s, check the file or give --unit"
    );
    assert_eq!(
        files.error("unit.bin", &floats(&[1.5, 19.0]), shaped(1, 2)),
        "velocity at ix 0, iz 1 is 19000 m/s: outside 100 .. 15000 m/s with the file read as km/s, check the file \
         or give --unit"
    );
    assert_eq!("km/s".parse(), Ok(Unit::KilometresPerSecond));
    assert_eq!("ft/s".parse::<Unit>().unwrap_err().to_string(), "\"ft/s\" is not one of auto, m/s or km/s");
}

#[test]
fn a_raw_file_needs_a_shape_that_fits() {
    let (files, bytes) = (Files::new(), floats(&[2000.0; 12]));
    let shapeless = ModelOptions { shape: None, ..shaped(1, 1) };
    let missing = "shape missing: give --shape NXxNZ; the file has 12 floats, e.g. 4x3 or 6x2";
    assert_eq!(files.error("m.bin", &bytes, shapeless), missing);
    assert_eq!(files.error("m.bin", &gzip(&bytes), shapeless), missing);
    assert_eq!(
        files.error("m.bin", &bytes[..47], shapeless),
        "shape missing: give --shape NXxNZ; the file has 47 bytes, not a whole number of 4-byte floats"
    );
    assert_eq!(
        files.error("m.bin", &bytes, shaped(4, 4)),
        "shape 4x4 needs 64 bytes of 4-byte floats, found 48; 4x3 or 3x4 would fit"
    );
    assert_eq!(
        files.error("m.bin", &gzip(&bytes), shaped(5, 2)),
        "shape 5x2 needs 40 bytes of 4-byte floats, found 48; 6x2 would fit"
    );
    assert_eq!(
        files.error("m.bin", &bytes[..46], shaped(4, 3)),
        "shape 4x3 needs 48 bytes of 4-byte floats, found 46"
    );
    assert_eq!(files.error("m.bin", b"", shaped(4, 3)), "shape 4x3 needs 48 bytes of 4-byte floats, found 0");
}

#[test]
fn shapes_and_spacings_are_checked_before_the_file_is_read() {
    let options = |nx, nz, spacing| ModelOptions { spacing: Some(spacing), ..shaped(nx, nz) };
    let error = |options| read_model(Path::new("absent.bin"), &options).unwrap_err().to_string();
    assert_eq!(error(shaped(2, 3)), "absent.bin: file not found, check the path");
    let empty = "absent.bin: shape 2x0 has no points, give at least 1 in each direction";
    assert_eq!(error(shaped(2, 0)), empty);
    let large = "absent.bin: shape 65536x32769 is too large, at most 2147483648 points are read";
    assert_eq!(error(shaped(65_536, 32_769)), large);
    assert!(error(shaped(usize::MAX, 2)).ends_with("is too large, at most 2147483648 points are read"));
    for spacing in [0.0, -12.5, f64::NAN, f64::INFINITY] {
        let text = format!("absent.bin: grid spacing {spacing} m has to be positive and finite");
        assert_eq!(error(options(2, 3, spacing)), text);
    }
}

#[test]
fn a_spacing_is_needed() {
    let options = ModelOptions { spacing: None, ..shaped(1, 2) };
    let text = Files::new().error("m.bin", &floats(&[2000.0; 2]), options);
    assert_eq!(text, "grid spacing missing: give --spacing METERS");
}

#[test]
fn values_that_are_no_velocities_are_placed_and_counted() {
    let files = Files::new();
    for (bad, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (0.0, "0"), (-3.0, "-3")] {
        let values = [1500.0, 1500.0, 1500.0, 1500.0, bad, 1500.0];
        assert_eq!(
            files.error("v.bin", &floats(&values), shaped(2, 3)),
            format!("velocity at ix 1, iz 1 is {shown}: velocities have to be positive and finite")
        );
    }
    assert_eq!(
        files.error("v.bin", &floats(&[1500.0, 0.0, f32::NAN, -1.0]), shaped(1, 4)),
        "velocity at ix 0, iz 1 is 0, and 2 more of 4 are alike: velocities have to be positive and finite"
    );
}

#[test]
fn damaged_gzip_is_told_from_wrong_lengths() {
    let (files, whole) = (Files::new(), gzip(&floats(&[2000.0, 2001.0, 2002.0, 2003.0])));
    let cut = files.error("z.bin.gz", &whole[..whole.len() - 6], shaped(2, 2));
    assert!(cut.starts_with("gzip data are cut off or damaged ("), "{cut}");
    let mut damaged = whole.clone();
    let checksum = whole.len() - 8;
    damaged[checksum] ^= 1;
    let damaged = files.error("z.bin.gz", &damaged, shaped(2, 2));
    assert!(damaged.starts_with("gzip data are cut off or damaged ("), "{damaged}");
}

#[test]
fn zeros_after_gzip_data_are_skipped_and_other_bytes_refused() {
    let (files, values) = (Files::new(), [2000.0, 2001.0, 2002.0, 2003.0]);
    let padded = [gzip(&floats(&values)), vec![0; 512]].concat();
    assert_eq!(files.read("z.bin.gz", &padded, shaped(2, 2)).unwrap().velocity, values);
    let foreign = [&padded[..], b"more"].concat();
    assert_eq!(
        files.error("z.bin.gz", &foreign, shaped(2, 2)),
        "gzip data are cut off or damaged (bytes that are not gzip follow the end of the gzip data), fetch or compress \
         the file again"
    );
}

/// A sparse file has any length, and costs whoever believes it memory and time.
#[test]
fn sparse_files_of_terabytes_are_refused_by_their_length() {
    let files = Files::new();
    let mut traces = Vec::new();
    let shot = example_shot();
    let gather = Gather {
        shot: &shot,
        spacing: 10.0,
        interval_s: 0.002,
        samples: 4,
        traces: &[2000.0; 12],
        delay_s: 0.0,
        facts: &[],
    };
    write_segy(&gather, &mut traces).unwrap();
    let npy =
        b"\x93NUMPY\x01\x00\x3c\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9, 9), }\n".to_vec();
    for (name, bytes, why) in [
        ("m.sgy", traces, "file has more than 2147483648 samples, too large"),
        ("m.npy", npy, "shape 9x9 needs 324 bytes of 4-byte floats, found 8796093022"),
        ("m.bin", vec![], "shape 9x9 needs 324 bytes of 4-byte floats, found 8796093022208"),
    ] {
        let path = files.write(name, &bytes);
        fs::File::options().write(true).open(&path).unwrap().set_len(8 << 40).unwrap();
        let options = ModelOptions { shape: Some((9, 9)), spacing: Some(10.0), unit: Unit::Auto };
        let error = read_model(&path, &options).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_folder_is_not_a_model() {
    let folder = TempDir::new().unwrap();
    let error = read_model(folder.path(), &shaped(2, 2)).unwrap_err();
    assert!(matches!(error.kind, ModelErrorKind::Source(SourceError::NoFile(_))), "{error}");
}

#[test]
fn a_shape_that_is_given_has_to_be_that_of_the_file() {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.bytes());
    npy.extend(floats(&[1.5; 6]));
    let files = Files::new();
    assert_eq!(files.read("m.npy.gz", &gzip(&npy), shaped(2, 3)).unwrap().velocity, [1500.0; 6]);
    assert_eq!(
        files.error("m.npy", &npy, shaped(3, 2)),
        "the file has shape 2x3, not 3x2: its axes are exchanged, x has to come first; store the transpose"
    );
    assert_eq!(
        files.error("m.npy", &npy, shaped(6, 1)),
        "the file has shape 2x3, not 6x1; leave out --shape or correct it"
    );
}

/// Three traces of four samples, velocities 2000, 2001, ...; source x 75 m throughout.
fn with_traces<T>(use_gather: impl FnOnce(&Gather<'_>) -> T) -> T {
    let traces: Vec<f32> = (0..12).map(|at| 2000.0 + at as f32).collect();
    let shot = example_shot();
    use_gather(&Gather {
        shot: &shot,
        spacing: 7.5,
        interval_s: 0.004,
        samples: 4,
        traces: &traces,
        delay_s: 0.0,
        facts: &[],
    })
}

#[test]
fn su_gives_the_same_model_as_segy() {
    let (files, mut segy, mut su) = (Files::new(), Vec::new(), Vec::new());
    with_traces(|gather| write_segy(gather, &mut segy)).unwrap();
    with_traces(|gather| write_su(gather, &mut su)).unwrap();
    let model = files.read("m.su.gz", &gzip(&su), shaped(3, 4)).unwrap();
    assert_eq!(model, files.read("m.sgy", &segy, shaped(3, 4)).unwrap());
    assert_eq!(model.velocity[..6], [2000.0, 2001.0, 2002.0, 2003.0, 2004.0, 2005.0]);
    assert_eq!(
        files.error("m.su", &su, shaped(4, 3)),
        "the file has shape 3x4, not 4x3: its axes are exchanged, x has to come first; store the transpose"
    );
}

#[test]
fn segy_gives_the_spacing_by_cdp_else_by_source() {
    let (files, trace) = (Files::new(), |index: usize| 3600 + index * 256);
    let spaceless = ModelOptions { shape: None, spacing: None, unit: Unit::Auto };
    let mut bytes = Vec::new();
    with_traces(|gather| write_segy(gather, &mut bytes)).unwrap();
    // The gather has common depth points at positions of its own.
    (0..3).for_each(|index| bytes[trace(index) + 180..][..4].fill(0));
    let missing = "grid spacing missing: give --spacing METERS";
    assert_eq!(files.error("m.sgy", &bytes, spaceless), missing);
    // The sources of the last two traces at 1 m and 3 m: not even.
    for (index, x) in [(0, 0i32), (1, 1000), (2, 3000)] {
        bytes[trace(index) + 72..][..4].copy_from_slice(&x.to_be_bytes());
    }
    assert_eq!(files.error("m.sgy", &bytes, spaceless), missing);
    for (byte, step) in [(73, 10.0), (181, 12.5)] {
        for index in 0..3 {
            let x = (1000.0 * step * index as f64) as i32;
            bytes[trace(index) + byte - 1..][..4].copy_from_slice(&x.to_be_bytes());
        }
        assert_eq!(files.read("m.sgy", &bytes, spaceless).unwrap().spacing, step);
        let given = ModelOptions { spacing: Some(5.0), ..spaceless };
        assert_eq!(files.read("m.segy", &bytes, given).unwrap().spacing, 5.0);
    }
    // As IBM floats: 2000 is 7d0 in base 16.
    bytes[3225] = 1;
    for index in 0..3 {
        for sample in bytes[trace(index) + 240..trace(index) + 256].chunks_exact_mut(4) {
            sample.copy_from_slice(&[0x43, 0x7d, 0x00, 0x00]);
        }
    }
    assert_eq!(files.read("m.sgy.gz", &gzip(&bytes), spaceless).unwrap().velocity, [2000.0; 12]);
}

#[test]
fn memory_is_set_aside_for_what_is_there() {
    for (bytes, length) in [(vec![0; 1000], Some(1000)), (gzip(&[0; 1000]), None)] {
        let mut source = Source::new(Cursor::new(bytes), length).unwrap();
        let mut values = Vec::new();
        let format = SampleFormat::Ieee32(ByteOrder::Little);
        let found = source.read_samples(format, 1 << 31, &mut values).unwrap();
        assert_eq!((found, values.len()), (1000, 250));
        assert!(values.capacity() <= 16_384, "{}", values.capacity());
    }
}
