//! What a launcher says that makes no sense is an error of the program, with the name of the setting.

use std::collections::BTreeMap;

use ft_checkpoint::{LoopSettings, Protection};
use ft_comm::CommError;
use ft_comm::settings::{MessageSettings, Settings};
use ft_sim::{Config, run};

#[test]
fn a_setting_that_is_unknown_or_makes_no_sense_is_named() {
    for (name, value, expected) in [
        ("evry", "3", "there is no setting 'evry'"),
        ("every", "0", "setting every: '0'"),
        ("interval", "soon", "setting interval: 'soon'"),
    ] {
        let mut told = Settings::default();
        told.set(name, value);
        let layers = BTreeMap::from([(LoopSettings::LAYER.to_owned(), told)]);
        let outcome = run(Config { layers, ..Config::calm(2) }, |world| {
            let error = Protection::from_launcher(&world).expect_err(name).to_string();
            world.abort(2, error.clone());
            error
        });
        assert!(!outcome.finished.is_empty());
        for finished in outcome.finished {
            let error = finished.result.unwrap();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

#[test]
fn with_settings_of_messages_that_make_no_sense_nobody_joins() {
    let messages = MessageSettings { hosts: Some(vec![0]), ..MessageSettings::default() };
    let outcome = run(Config { messages, ..Config::calm(2) }, |_| ());
    assert!(!outcome.finished.is_empty());
    for finished in outcome.finished {
        let Err(CommError::Join(why)) = finished.result else { panic!("it has joined") };
        assert_eq!(why, "setting hosts: '[0]': must name a host for each of 2 ranks");
    }
}
