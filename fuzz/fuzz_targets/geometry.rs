//! The settings of a survey: any TOML; what is read can be written and read, and a survey lies within its model.

#![no_main]

use ft_fuzz::{BUFFERS, within};
use ft_seismic::Model;
use ft_seismic::geometry::Geometry;
use libfuzzer_sys::fuzz_target;

/// Most shots for which the target makes a survey.
const SHOTS_MAX: u32 = 1000;

fuzz_target!(|bytes: &[u8]| {
    let [nx, nz, quarter_metres, text @ ..] = bytes else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let read = within(BUFFERS + 1000 * text.len(), || Geometry::from_toml(text));
    let geometry = match read {
        Ok(geometry) => geometry,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    let written = toml::to_string(&geometry).expect("settings can be written");
    let again = Geometry::from_toml(&written).expect("they were settings");
    // Numbers that are none do not equal themselves.
    assert_eq!(format!("{again:?}"), format!("{geometry:?}"));
    if geometry.shots > SHOTS_MAX {
        return;
    }
    let (nx, nz) = (usize::from(*nx) + 1, usize::from(*nz) + 1);
    let spacing = (f64::from(*quarter_metres) + 1.0) / 4.0;
    let model = Model { nx, nz, spacing, velocity: vec![] };
    let Ok(survey) = geometry.survey(&model) else { return };
    assert_eq!(survey.shots.len(), geometry.shots as usize);
    for (number, shot) in (1..).zip(&survey.shots) {
        assert_eq!(shot.number, number);
        assert!(!shot.receivers.is_empty() && shot.receivers.len() <= nx);
        let mut nodes = shot.receivers.iter().chain([&shot.source]);
        assert!(nodes.all(|node| node.ix < nx && node.iz < nz), "outside of {nx} x {nz}: {shot:?}");
    }
});
