//! SEG-Y: any headers and traces behind a textual header; and gathers that are written and read back.

#![no_main]

use arbitrary::Arbitrary;
use ft_fuzz::{BUFFERS, Held, Recording, consistent, same, within};
use ft_seismic::gather::read_gather;
use ft_seismic::load::{ModelOptions, read_model};
use ft_seismic::segy::write_segy;
use libfuzzer_sys::fuzz_target;

/// Bytes of the textual header, in which nothing is looked at.
const TEXT_BYTES: usize = 3200;
/// And of the binary one.
const BINARY_BYTES: usize = 400;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Recording(Recording),
    /// What stands behind the textual header.
    Bytes(&'a [u8]),
}

fuzz_target!(|input: Input<'_>| {
    let bytes = match input {
        Input::Recording(recording) => {
            return recording.with(|gather| {
                let mut bytes = Vec::new();
                if write_segy(gather, &mut bytes).is_ok() && !gather.shot.receivers.is_empty() {
                    same(
                        gather,
                        &read_gather(&Held::new("gather.sgy", &bytes).path()).expect("it was written"),
                    );
                }
            });
        }
        Input::Bytes(bytes) => [&[0x40; TEXT_BYTES], bytes].concat(),
    };
    let file = Held::new("gather.sgy", &bytes);
    let enough = BUFFERS + 16 * bytes.len();
    let gather = within(enough, || read_gather(&file.path()));
    let options = ModelOptions { spacing: Some(10.0), ..ModelOptions::default() };
    let model = within(enough, || read_model(&file.path(), &options));
    let Ok(gather) = gather else { return assert!(model.is_err(), "{model:?}") };
    consistent(&gather);
    let at = |byte: usize| u16::from_be_bytes([bytes[byte - 1], bytes[byte]]);
    // Other revisions have other records too, or leave open whether there are extended headers.
    if at(3501) >> 8 == 1 || at(3501) >> 8 != 2 && at(3505) == 0 {
        let traces = gather.headers.len() * (240 + 4 * gather.samples);
        assert_eq!(bytes.len(), TEXT_BYTES + BINARY_BYTES + usize::from(at(3505)) * TEXT_BYTES + traces);
    }
    if let Ok(model) = model {
        assert_eq!((model.nx, model.nz), (gather.headers.len(), gather.samples));
        let times = |factor: f32| model.velocity.iter().zip(&gather.traces).all(|(v, t)| *v == factor * t);
        assert!(times(1.0) || times(1000.0));
    }
});
