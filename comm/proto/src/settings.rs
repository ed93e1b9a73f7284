//! What a launcher tells the ranks of a job beside who they are. Each layer has settings of its own: those of messages are a
//! value here, those of layers above are carried by name, as text, for these layers to read.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of messages. The default is that of a launcher which was told nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSettings {
    /// How long a call may wait before its rank says so; never zero.
    pub watchdog: Option<Duration>,
    /// All ranks compare their collective calls before they make them.
    pub check: bool,
    /// Ranks say what they do, for a timeline.
    pub timeline: bool,
    /// A table of collective algorithms, as text; none is the builtin one.
    pub collectives: Option<String>,
    /// The host on which each rank is started first; none if all are on one.
    pub hosts: Option<Vec<usize>>,
    /// All ranks are started on one host, which has fewer cores than that.
    pub crowded: bool,
}

impl MessageSettings {
    /// Refuses what no launcher means.
    ///
    /// # Errors
    /// [`SettingError::Value`] with the first setting that makes no sense in a job of `total` ranks.
    pub fn validate(&self, total: usize) -> Result<(), SettingError> {
        if self.watchdog.is_some_and(|patience| patience.is_zero()) {
            return Err(SettingError::value("watchdog", "0", "must be a time above 0"));
        }
        match &self.hosts {
            Some(hosts) if hosts.len() != total => {
                let why = format!("must name a host for each of {total} ranks");
                Err(SettingError::value("hosts", format_args!("{hosts:?}"), why))
            }
            _ => Ok(()),
        }
    }
}

/// The settings of one layer, as text by name. What a layer does not set has the default of whoever reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Sets `name` to what `value` prints.
    pub fn set(&mut self, name: &str, value: impl Display) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// Sets `name` if there is a value.
    pub fn set_some(&mut self, name: &str, value: Option<impl Display>) {
        value.into_iter().for_each(|value| self.set(name, value));
    }

    /// Takes out `name`; none if it is not set.
    ///
    /// # Errors
    /// [`SettingError::Value`] if what it is set to cannot be read.
    pub fn take<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<Option<T>, SettingError> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|why: T::Err| SettingError::value(name, text, why))
    }

    /// Ends the reading: whoever reads has taken all that it knows.
    ///
    /// # Errors
    /// [`SettingError::Unknown`] if something is left.
    pub fn end(self) -> Result<(), SettingError> {
        self.0.into_keys().next().map_or(Ok(()), |name| Err(SettingError::Unknown { name }))
    }
}

/// What is wrong with the settings of a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// A value cannot be read, or makes no sense.
    #[error("setting {name}: '{value}': {why}")]
    Value {
        /// The setting.
        name: String,
        /// What it is set to.
        value: String,
        /// What is wrong with that.
        why: String,
    },
    /// The launcher has a setting that this program does not know.
    #[error("there is no setting '{name}' in this program: build it and the launcher from the same version")]
    Unknown {
        /// The setting.
        name: String,
    },
}

impl SettingError {
    /// A value that is wrong.
    pub fn value(name: &str, value: impl Display, why: impl Display) -> Self {
        Self::Value { name: name.to_owned(), value: value.to_string(), why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read_once() {
        let mut settings = Settings::default();
        settings.set("every", 10);
        settings.set_some("interval", None::<f64>);
        assert_eq!(settings.take("every"), Ok(Some(10u64)));
        assert_eq!(settings.take::<u64>("every"), Ok(None));
        assert_eq!(settings.take::<f64>("interval"), Ok(None));
        assert_eq!(settings.end(), Ok(()));
    }

    #[test]
    fn what_is_unknown_or_no_number_is_refused_by_name() {
        let mut settings = Settings::default();
        settings.set("every", "ten");
        settings.set("evry", 10);
        let error = settings.take::<u64>("every").unwrap_err();
        assert_eq!(error.to_string(), "setting every: 'ten': invalid digit found in string");
        assert_eq!(settings.end(), Err(SettingError::Unknown { name: "evry".into() }));
    }

    #[test]
    fn settings_of_messages_make_sense() {
        let good = MessageSettings { hosts: Some(vec![0, 0, 1]), ..MessageSettings::default() };
        assert_eq!(good.validate(3), Ok(()));
        assert!(good.validate(4).unwrap_err().to_string().starts_with("setting hosts: '[0, 0, 1]'"));
        let hasty = MessageSettings { watchdog: Some(Duration::ZERO), ..MessageSettings::default() };
        assert!(hasty.validate(1).unwrap_err().to_string().starts_with("setting watchdog: '0'"));
    }
}
