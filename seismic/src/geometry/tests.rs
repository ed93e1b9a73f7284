use proptest::prelude::*;

use super::*;

/// 1200 m wide, 500 m deep, 10 m apart.
fn model() -> Model {
    Model { nx: 121, nz: 51, spacing: 10.0, velocity: vec![2000.0; 121 * 51] }
}

fn survey(text: &str) -> Result<Survey, GeometryError> {
    Geometry::from_toml(text)?.survey(&model())
}

fn error(text: &str) -> String {
    let text = survey(text).unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

fn sources(survey: &Survey) -> Vec<usize> {
    survey.shots.iter().map(|shot| shot.source.ix).collect()
}

fn receivers(shot: &Shot) -> Vec<usize> {
    shot.receivers.iter().map(|receiver| receiver.ix).collect()
}

#[test]
fn without_settings_one_shot_in_the_middle_is_recorded_everywhere() {
    let survey = survey("").unwrap();
    let [shot] = &survey.shots[..] else { panic!("{} shots", survey.shots.len()) };
    assert_eq!((shot.number, shot.source), (1, Node { ix: 60, iz: 2 }));
    assert_eq!(receivers(shot), (0..121).collect::<Vec<_>>());
    assert!(shot.receivers.iter().all(|receiver| receiver.iz == 2));
}

#[test]
fn a_fixed_spread_as_set() {
    let survey = survey(
        "kind = 'fixed-spread'\nshots = 3\nsource_depth_m = 30\nsource_first_m = 100\nsource_last_m = 1100\n\
         receiver_depth_m = 44.9\nreceiver_first_m = 200\nreceiver_last_m = 329\nreceiver_spacing_m = 30\n",
    )
    .unwrap();
    assert_eq!(sources(&survey), [10, 60, 110]);
    assert_eq!(survey.shots.iter().map(|shot| shot.number).collect::<Vec<_>>(), [1, 2, 3]);
    for shot in &survey.shots {
        assert_eq!(shot.source.iz, 3);
        assert_eq!(shot.receivers, [20, 23, 26, 29, 32].map(|ix| Node { ix, iz: 4 }));
    }
}

#[test]
fn what_the_grid_does_not_have_is_said() {
    let moved = |text: &str| {
        let moved = Geometry::from_toml(text).unwrap().moved(&model());
        moved.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(moved(""), [""; 0]);
    assert_eq!(moved("source_first_m = 100\nsource_depth_m = 30.000001\nreceiver_spacing_m = 30"), [""; 0]);
    assert_eq!(
        moved("source_first_m = 109\nreceiver_depth_m = 12.5\nreceiver_spacing_m = 25\nshots = 2"),
        [
            "source_first_m 109 is 110",
            "receiver_depth_m 12.5 is 10",
            "receiver_spacing_m 25 varies by a point"
        ]
    );
    // The last position is of no use to a single shot at the first.
    assert_eq!(moved("source_first_m = 100\nsource_last_m = 109"), [""; 0]);
    assert_eq!(moved("source_last_m = 109"), ["source_last_m 109 is 110"]);
}

#[test]
fn a_step_that_ends_past_the_model_by_a_rounding_error_ends_at_its_last_point() {
    let survey = survey("receiver_first_m = 0.0005\nreceiver_spacing_m = 1199.9999").unwrap();
    assert_eq!(receivers(&survey.shots[0]), [0, 120]);
}

#[test]
fn shots_spread_over_the_model_with_a_margin() {
    assert_eq!(sources(&survey("shots = 5").unwrap()), [12, 36, 60, 84, 108]);
    assert_eq!(sources(&survey("shots = 1\nsource_first_m = 70").unwrap()), [7]);
    assert_eq!(sources(&survey("shots = 1\nsource_last_m = 70").unwrap()), [7]);
    assert_eq!(sources(&survey("shots = 2\nsource_last_m = 70").unwrap()), [7, 7]);
}

#[test]
fn a_streamer_follows_its_source() {
    let survey = survey(
        "kind = 'towed-streamer'\nshots = 2\nnear_offset_m = 50\nreceiver_spacing_m = 20\nchannels = 4\n\
         source_first_m = 300\nsource_last_m = 1200\nreceiver_depth_m = 0\n",
    )
    .unwrap();
    assert_eq!(sources(&survey), [30, 120]);
    assert_eq!(receivers(&survey.shots[0]), [25, 23, 21, 19]);
    assert_eq!(receivers(&survey.shots[1]), [115, 113, 111, 109]);
    assert_eq!(survey.shots[1].receivers[0].iz, 0);
}

#[test]
fn a_streamer_by_default_fills_half_of_the_model_and_shoots_where_it_fits() {
    let survey = survey("kind = 'towed-streamer'\nshots = 3").unwrap();
    assert_eq!(sources(&survey), [60, 90, 120]);
    assert_eq!(receivers(&survey.shots[0]), (0..=56).rev().collect::<Vec<_>>());
}

#[test]
fn positions_go_to_the_nearest_point_and_ties_to_the_one_before() {
    let first = |x: f64| sources(&survey(&format!("source_first_m = {x:?}")).unwrap())[0];
    assert_eq!([0.0, 4.9, 5.0, 5.1, 14.999_999_9, 1195.1, 1200.0].map(first), [0, 0, 0, 1, 1, 120, 120]);
}

#[test]
fn positions_outside_are_named_with_what_fits() {
    assert_eq!(
        error("shots = 3\nsource_first_m = 0\nsource_last_m = 1300"),
        "source of shot 3 is 1300 m, outside the model: 0 .. 1200 m fit"
    );
    assert_eq!(
        error("receiver_last_m = 1201"),
        "receiver_last_m is 1201 m, outside the model: 0 .. 1200 m fit"
    );
    assert_eq!(
        error("receiver_first_m = -1"),
        "receiver_first_m is -1 m, outside the model: 0 .. 1200 m fit"
    );
    assert_eq!(error("source_depth_m = 501"), "source_depth_m is 501 m, outside the model: 0 .. 500 m fit");
    assert_eq!(error("receiver_depth_m = -5"), "receiver_depth_m is -5 m, outside the model: 0 .. 500 m fit");
    let towed = "kind = 'towed-streamer'\nnear_offset_m = 100\nchannels = 76\n";
    assert_eq!(
        error(&format!("{towed}shots = 2\nsource_first_m = 100\nsource_last_m = 1200")),
        "shot 1 with its source at x = 100 m has its last receiver at -750 m, outside the model: sources at 850 .. \
         1200 m fit"
    );
    assert_eq!(
        error(&format!("{towed}receiver_spacing_m = 25")),
        "the last of 76 channels is 1975 m behind the source, the model is 1200 m wide: 45 channels fit"
    );
    assert_eq!(
        error("kind = 'towed-streamer'\nnear_offset_m = 1300"),
        "the last of 1 channels is 1300 m behind the source, the model is 1200 m wide: reduce near_offset_m"
    );
    assert!(
        survey("kind = 'towed-streamer'\nchannels = 45\nnear_offset_m = 100\nreceiver_spacing_m = 25")
            .is_ok()
    );
}

#[test]
fn settings_that_contradict_are_refused() {
    assert_eq!(error("shots = 0"), "shots is 0, at least 1 is needed");
    assert_eq!(error("kind = 'towed-streamer'\nchannels = 0"), "channels is 0, at least 1 is needed");
    assert_eq!(error("source_first_m = nan"), "source_first_m is NaN, a finite number is needed");
    assert_eq!(error("source_last_m = -inf"), "source_last_m is -inf, a finite number is needed");
    let other =
        |setting| format!("{setting} does not go with this kind of survey, leave it out or change kind");
    assert_eq!(error("channels = 4"), other("channels"));
    assert_eq!(error("near_offset_m = 4"), other("near_offset_m"));
    assert_eq!(error("kind = 'towed-streamer'\nreceiver_last_m = 4"), other("receiver_last_m"));
    assert_eq!(
        error("source_first_m = 200\nsource_last_m = 100"),
        "source_last_m is 100 m, before source_first_m, 200 m"
    );
    assert_eq!(
        error("receiver_first_m = 200\nreceiver_last_m = 100"),
        "receiver_last_m is 100 m, before receiver_first_m, 200 m"
    );
    assert_eq!(
        error("receiver_spacing_m = 9.5"),
        "receiver_spacing_m is 9.5 m, less than the grid spacing of 10 m"
    );
    assert_eq!(
        error("kind = 'towed-streamer'\nnear_offset_m = -20"),
        "near_offset_m is -20 m, the streamer is behind the source: 0 m or more"
    );
    assert_eq!(
        error("shots = 1000000"),
        "1000000 shots of 121 receivers are 121000000 traces, at most 16777216 are possible"
    );
    // However few receivers there are.
    let one = "receiver_first_m = 100\nreceiver_last_m = 100\nshots = ";
    assert_eq!(error(&format!("{one}4000000000")), "4000000000 shots, at most 1048576 are possible");
}

#[test]
fn files_that_are_not_settings_are_refused_with_the_line() {
    assert_eq!(
        error("shots = 3\nsource_dept_m = 10\n"),
        "line 2: unknown field `source_dept_m`, expected one of `kind`, `shots`, `source_depth_m`, \
         `source_first_m`, `source_last_m`, `receiver_depth_m`, `receiver_first_m`, `receiver_last_m`, \
         `receiver_spacing_m`, `near_offset_m`, `channels`"
    );
    assert_eq!(error("\n\nshots = -3"), "line 3: invalid value: integer `-3`, expected u32");
    assert!(error("kind = 'spiral'").starts_with("line 1: unknown variant `spiral`"));
    assert!(error("shots = 3\nshots = 4").starts_with("line 2: duplicate key"));
}

/// Values within values as deep as a file of a MiB can have them.
#[test]
fn files_of_nothing_but_depth_are_refused() {
    for (start, deep, times) in [
        ("", "a.", 1 << 19),
        ("[", "a.", 1 << 19),
        ("x = ", "[", 1 << 20),
        ("x = ", "{a=", 1 << 18),
        ("x = {", "a.", 1 << 19),
    ] {
        let text = format!("{start}{}", deep.repeat(times));
        assert!(error(&text).starts_with("line 1: "), "{start}{deep}");
    }
}

#[test]
fn the_example_of_the_module_is_a_survey() {
    let module = include_str!("../geometry.rs");
    let example = module.split("```").nth(1).unwrap().strip_prefix("toml").unwrap().replace("//!", "");
    let model = Model { nx: 500, nz: 100, spacing: 25.0, velocity: Vec::new() };
    let survey = Geometry::from_toml(&example).unwrap().survey(&model).unwrap();
    assert_eq!((survey.shots.len(), survey.shots[0].receivers.len()), (24, 96));
}

#[test]
fn settings_survive_their_own_file() {
    let settings = Geometry { shots: 4, channels: Some(8), kind: Kind::TowedStreamer, ..Geometry::default() };
    assert_eq!(Geometry::from_toml(&toml::to_string(&settings).unwrap()).unwrap(), settings);
}

fn position() -> impl Strategy<Value = Option<f64>> {
    proptest::option::of(prop_oneof![-100.0..1400.0, any::<f64>()])
}

proptest! {
    #[test]
    fn random_text_never_panics(text in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = Geometry::from_toml(&text);
        let _ = Geometry::from_toml(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn every_survey_lies_within_its_model(
        towed in any::<bool>(), shots in 1u32..40, channels in proptest::option::of(1u32..200), first in position(),
        last in position(), depth in position(), step in position(), near in position(),
        nx in 1usize..60, nz in 1usize..20, spacing in 0.1..50.0,
    ) {
        let settings = Geometry {
            kind: if towed { Kind::TowedStreamer } else { Kind::FixedSpread },
            shots,
            channels: channels.filter(|_| towed),
            source_first_m: first,
            source_last_m: last,
            receiver_depth_m: depth,
            receiver_spacing_m: step,
            near_offset_m: near.filter(|_| towed),
            receiver_first_m: near.filter(|_| !towed),
            ..Geometry::default()
        };
        let model = Model { nx, nz, spacing, velocity: Vec::new() };
        if let Ok(survey) = settings.survey(&model) {
            prop_assert_eq!(survey.shots.len(), shots as usize);
            for shot in survey.shots {
                prop_assert!(!shot.receivers.is_empty());
                for node in shot.receivers.iter().chain([&shot.source]) {
                    prop_assert!(node.ix < nx && node.iz < nz);
                }
                let mut places = shot.receivers.clone();
                places.sort();
                places.dedup();
                prop_assert_eq!(places.len(), shot.receivers.len());
            }
        }
    }
}
