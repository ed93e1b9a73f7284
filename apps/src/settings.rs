//! What the launcher tells the ranks of bundled apps: a value on both sides, text on the way. Names and defaults stand here and
//! nowhere else.

use ft_comm::World;
use ft_comm::settings::{SettingError, Settings};

/// What the launcher tells the ranks of bundled apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppSettings {
    /// Where random numbers come from.
    pub(crate) seed: u64,
    /// Somebody looks at the progress.
    pub(crate) progress: bool,
}

impl Default for AppSettings {
    fn default() -> Self {
        Self { seed: 1, progress: false }
    }
}

impl AppSettings {
    /// The name of the apps among the layers that have settings.
    pub(crate) const LAYER: &str = "app";

    /// The settings as the launcher hands them on.
    pub(crate) fn write(self) -> Settings {
        let Self { seed, progress } = self;
        let mut settings = Settings::default();
        settings.set("seed", seed);
        settings.set("progress", progress);
        settings
    }

    /// Reads what the launcher has handed on.
    fn read(mut settings: Settings) -> Result<Self, SettingError> {
        let default = Self::default();
        let read = Self {
            seed: settings.take("seed")?.unwrap_or(default.seed),
            progress: settings.take("progress")?.unwrap_or(default.progress),
        };
        settings.end().map(|()| read)
    }

    /// The settings of the job of `world`.
    ///
    /// # Errors
    /// [`SettingError`] with the name of a setting that is unknown, or whose value cannot be read.
    pub(crate) fn from_launcher(world: &World) -> Result<Self, SettingError> {
        Self::read(world.settings(Self::LAYER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let settings = AppSettings { seed: u64::MAX, progress: true };
        assert_eq!(AppSettings::read(settings.write()), Ok(settings));
        assert_eq!(AppSettings::read(Settings::default()), Ok(AppSettings::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (name, value, expected) in [
            ("seed", "-1", "setting seed: '-1'"),
            ("progress", "some", "setting progress: 'some'"),
            ("seeds", "1", "there is no setting 'seeds'"),
        ] {
            let mut settings = Settings::default();
            settings.set(name, value);
            let error = AppSettings::read(settings).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
