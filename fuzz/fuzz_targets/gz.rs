//! Compressed files: whatever is compressed, in one piece or two, is read as the plain file is; damaged streams are errors
//! that take no more memory than their bytes can stand for.

#![no_main]

use std::io::Write;

use arbitrary::Arbitrary;
use flate2::Compression;
use flate2::write::GzEncoder;
use ft_fuzz::{BUFFERS, Held, within};
use ft_linalg::matrix_market::{parse_matrix, parse_vector};
use ft_seismic::gather::read_gather;
use ft_seismic::load::{ModelOptions, read_model};
use libfuzzer_sys::fuzz_target;

/// Bytes that one byte of deflate can stand for.
const INFLATION: usize = 1032;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    kind: u8,
    /// The bytes are compressed already, or claim to be.
    as_is: bool,
    shape: Option<(u8, u8)>,
    cut: u8,
    bytes: &'a [u8],
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(bytes).expect("memory");
    gz.finish().expect("memory")
}

/// What a reader makes of a file; errors by their words, without the path and the length, which only a plain file is
/// known to have before it is read.
fn outcome(kind: u8, shape: Option<(u8, u8)>, bytes: &[u8], enough: usize) -> Option<String> {
    let shape = shape.map(|(nx, nz)| (nx.into(), nz.into()));
    let options = ModelOptions { shape, spacing: Some(10.0), ..ModelOptions::default() };
    let names = ["model.npy", "model.sgy", "model.bin", "model.su", "gather.sgy", "gather.su"];
    let name = names.get(usize::from(kind) % 8);
    let file = name.map(|name| Held::new(name, bytes));
    within(enough, || match (&file, kind % 8) {
        (Some(file), 0..=3) => read_model(&file.path(), &options).ok().map(|model| format!("{model:?}")),
        (Some(file), _) => read_gather(&file.path()).ok().map(|gather| format!("{gather:?}")),
        (None, 6) => parse_matrix(bytes).ok().map(|matrix| format!("{matrix:?}")),
        (None, _) => parse_vector(bytes).ok().map(|vector| format!("{vector:?}")),
    })
}

fuzz_target!(|input: Input<'_>| {
    let Input { kind, as_is, shape, cut, bytes } = input;
    if as_is {
        let bytes = [&[0x1f, 0x8b, 8], bytes].concat();
        let enough = BUFFERS + 256 * INFLATION * bytes.len();
        outcome(kind, shape, &bytes, enough);
        return;
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    let enough = BUFFERS + 256 * bytes.len();
    let plain = outcome(kind, shape, bytes, enough);
    let (first, second) = bytes.split_at(bytes.len().min(cut.into()));
    let whole = compressed(bytes);
    let cut_off = &whole[..whole.len() - 1 - usize::from(cut) % 8];
    let pieces = [compressed(first), compressed(second)].concat();
    // The byte order of a Seismic Unix file is told by the length too, where that is known.
    if kind % 8 != 3 && kind % 8 != 5 {
        assert_eq!(outcome(kind, shape, &whole, enough), plain);
        assert_eq!(outcome(kind, shape, &pieces, enough), plain);
    }
    assert_eq!(outcome(kind, shape, cut_off, enough), None, "the end of the stream is missing");
});
