//! Seismic Unix: any traces, of either byte order; and gathers that are written and read back.

#![no_main]

use arbitrary::Arbitrary;
use ft_fuzz::{BUFFERS, Held, Recording, consistent, same, within};
use ft_seismic::gather::read_gather;
use ft_seismic::load::{ModelOptions, read_model};
use ft_seismic::su::write_su;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Recording(Recording),
    Bytes(&'a [u8]),
}

fuzz_target!(|input: Input<'_>| {
    let bytes = match input {
        Input::Recording(recording) => {
            return recording.with(|gather| {
                let mut bytes = Vec::new();
                if write_su(gather, &mut bytes).is_ok() && !gather.shot.receivers.is_empty() {
                    same(
                        gather,
                        &read_gather(&Held::new("gather.su", &bytes).path()).expect("it was written"),
                    );
                }
            });
        }
        Input::Bytes(bytes) => bytes,
    };
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return; // the target gz has these
    }
    let file = Held::new("gather.su", bytes);
    let enough = BUFFERS + 16 * bytes.len();
    let gather = within(enough, || read_gather(&file.path()));
    let options = ModelOptions { spacing: Some(10.0), ..ModelOptions::default() };
    let model = within(enough, || read_model(&file.path(), &options));
    let Ok(gather) = gather else { return assert!(model.is_err(), "{model:?}") };
    consistent(&gather);
    assert_eq!(bytes.len(), gather.headers.len() * (240 + 4 * gather.samples));
    if let Ok(model) = model {
        assert_eq!((model.nx, model.nz), (gather.headers.len(), gather.samples));
        let times = |factor: f32| model.velocity.iter().zip(&gather.traces).all(|(v, t)| *v == factor * t);
        assert!(times(1.0) || times(1000.0));
    }
});
