//! What a launcher tells the resilient loop: a value on both sides, text on the way. Names and defaults stand here and
//! nowhere else.

use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use ft_comm::World;
use ft_comm::settings::{SettingError, Settings};

use crate::error::CheckpointError;
use crate::pace::Interval;
use crate::protection::{Checkpoints, Level, Lines, MemoryUse, Protection, Recovery};
use crate::scheme::Scheme;
use crate::spill::{Resume, Spill};
use crate::trial::Trial;

/// What a launcher tells the resilient loop. The default is what a program without a launcher does: nothing is protected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopSettings {
    /// How the program is protected.
    pub protection: Protection,
    /// When a run is over that is only measured; never if it is not.
    pub trial: Trial,
    /// A step begins no sooner than so many seconds after the one before: for who looks on.
    pub pace: Option<f64>,
    /// From what the job goes on; none: from its start.
    pub resume: Option<Resume>,
    /// The program and its arguments, in one line, as files are to say of which job they are; none where there are no files.
    pub command: Option<String>,
}

impl LoopSettings {
    /// The name of the loop among the layers that have settings.
    pub const LAYER: &str = "loop";

    /// Steps between two checkpoints, if nothing else is asked for.
    pub const EVERY: u64 = 10;

    /// The settings as a launcher hands them on.
    pub fn write(&self) -> Settings {
        let Self { protection, trial: Trial { seconds, steps }, pace, resume, command } = self;
        let Protection { scheme, interval, checkpoints, throttle, incremental, .. } = protection;
        let Protection { memory_use, scrub, memory, levels, spill, .. } = protection;
        let Protection { lines, recovery, log_memory, .. } = protection;
        let mut settings = Settings::default();
        settings.set("scheme", scheme);
        match interval {
            Interval::Steps(steps) => settings.set("every", steps),
            Interval::Seconds(seconds) => settings.set("interval", seconds),
            Interval::Auto { mtbf } => {
                settings.set("interval", AUTO);
                settings.set_some("expect-mtbf", *mtbf);
            }
        }
        settings.set("checkpoints", checkpoints.name());
        settings.set("lines", lines.name());
        settings.set("recovery", recovery.name());
        settings.set_some("log-memory", *log_memory);
        settings.set_some("throttle", *throttle);
        settings.set("incremental", incremental);
        settings.set("memory", memory_use.name());
        settings.set("scrub", scrub);
        settings.set_some("checkpoint-memory", *memory);
        settings.set("checksum-limit", protection.checksum_limit);
        if !levels.is_empty() {
            let levels: Vec<String> = levels.iter().map(Level::to_string).collect();
            settings.set("levels", levels.join(","));
        }
        if let Some(Spill { dir, folder, every, keep }) = spill {
            settings.set("spill", dir.display());
            settings.set_some("spill-folder", folder.as_ref());
            settings.set("spill-every", every);
            settings.set("spill-keep", keep);
        }
        if let Some(Resume { folder, accept_build }) = resume {
            settings.set("resume", folder.display());
            settings.set("accept-build", accept_build);
        }
        settings.set_some("command", command.as_ref());
        settings.set_some("trial-seconds", *seconds);
        settings.set_some("trial-steps", *steps);
        settings.set_some("pace", *pace);
        settings
    }

    /// Reads what a launcher has handed on.
    ///
    /// # Errors
    /// [`SettingError`] with the name of a setting that is unknown, or whose value cannot be read.
    pub fn read(mut settings: Settings) -> Result<Self, SettingError> {
        let default = Protection::default();
        let read = Self {
            protection: Protection {
                scheme: settings.take("scheme")?.unwrap_or(default.scheme),
                interval: interval(&mut settings)?.unwrap_or(default.interval),
                checkpoints: settings.take("checkpoints")?.unwrap_or(default.checkpoints),
                lines: settings.take("lines")?.unwrap_or(default.lines),
                recovery: settings.take("recovery")?.unwrap_or(default.recovery),
                log_memory: settings.take("log-memory")?,
                throttle: settings.take("throttle")?,
                incremental: settings.take("incremental")?.unwrap_or(default.incremental),
                memory_use: settings.take("memory")?.unwrap_or(default.memory_use),
                scrub: settings.take("scrub")?.unwrap_or(default.scrub),
                memory: settings.take("checkpoint-memory")?,
                checksum_limit: positive(&mut settings, "checksum-limit")?.unwrap_or(default.checksum_limit),
                levels: levels(&mut settings)?,
                spill: spill(&mut settings)?,
            },
            trial: Trial {
                seconds: positive(&mut settings, "trial-seconds")?,
                steps: settings.take::<NonZero<u64>>("trial-steps")?.map(NonZero::get),
            },
            pace: positive(&mut settings, "pace")?,
            resume: None,
            command: None,
        };
        let resume = resume(&mut settings)?;
        let command = settings.take("command")?;
        settings.end().map(|()| Self { resume, command, ..read })
    }

    /// The settings of the job of `world`.
    ///
    /// # Errors
    /// See [`LoopSettings::read`].
    pub fn from_launcher(world: &World) -> Result<Self, SettingError> {
        // The launcher has set this one in the environment, where who knows nothing of launchers finds it too.
        ft_threads::wanted().map_err(|error| {
            SettingError::value(ft_threads::ENV_THREADS, error.text, "is no number of threads from 1 to 1024")
        })?;
        Self::read(world.settings(Self::LAYER))
    }
}

/// The word for an interval that follows what is measured.
const AUTO: &str = "auto";

/// Reads how often checkpoints are taken; none if that is not set.
fn interval(settings: &mut Settings) -> Result<Option<Interval>, SettingError> {
    if let Some(steps) = settings.take::<NonZero<u64>>("every")? {
        return Ok(Some(Interval::Steps(steps.get())));
    }
    let Some(text) = settings.take::<String>("interval")? else { return Ok(None) };
    if text == AUTO {
        return Ok(Some(Interval::Auto { mtbf: positive(settings, "expect-mtbf")? }));
    }
    above_0("interval", &text).map(|seconds| Some(Interval::Seconds(seconds)))
}

/// Reads the levels of protection above the first.
fn levels(settings: &mut Settings) -> Result<Vec<Level>, SettingError> {
    let Some(text) = settings.take::<String>("levels")? else { return Ok(vec![]) };
    let levels: Result<Vec<Level>, _> = text.split(',').map(str::parse).collect();
    levels.map_err(|_| {
        SettingError::value("levels", &text, "must be schemes with how often each is used: rs:6+2@10")
    })
}

/// Reads where checkpoints are written to files; none if that is not set.
fn spill(settings: &mut Settings) -> Result<Option<Spill>, SettingError> {
    let Some(dir) = settings.take::<PathBuf>("spill")? else { return Ok(None) };
    Ok(Some(Spill {
        dir,
        folder: settings.take("spill-folder")?,
        every: settings.take("spill-every")?.unwrap_or_default(),
        keep: settings.take("spill-keep")?.unwrap_or(Spill::KEEP),
    }))
}

/// Reads from what the job goes on; none if that is not set.
fn resume(settings: &mut Settings) -> Result<Option<Resume>, SettingError> {
    let Some(folder) = settings.take::<PathBuf>("resume")? else { return Ok(None) };
    Ok(Some(Resume { folder, accept_build: settings.take("accept-build")?.unwrap_or(false) }))
}

/// Takes out a number above 0, if it is set.
fn positive(settings: &mut Settings, name: &str) -> Result<Option<f64>, SettingError> {
    settings.take::<String>(name)?.map(|text| above_0(name, &text)).transpose()
}

fn above_0(name: &str, text: &str) -> Result<f64, SettingError> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| SettingError::value(name, text, "must be a number above 0"))
}

impl Protection {
    /// As the launcher was told (`--scheme`, `--every`, `--interval`, `--expect-mtbf`, `--checkpoints`, `--lines`, `--recovery`, `--log-memory`, `--throttle`,
    /// `--incremental`, `--memory`, `--levels`, `--scrub`, `--checkpoint-memory`, `--checksum-limit`); without it, or with one rank, nothing is protected.
    ///
    /// # Errors
    /// [`CheckpointError::Setting`]: the launcher was told what this version does not know, or what makes no sense.
    pub fn from_launcher(world: &World) -> Result<Self, CheckpointError> {
        Ok(LoopSettings::from_launcher(world)?.protection)
    }
}

impl Default for Protection {
    /// No redundancy, and blocking checkpoints after every [`LoopSettings::EVERY`] steps.
    fn default() -> Self {
        Self::new(Scheme::None, Interval::Steps(LoopSettings::EVERY))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.scheme, self.every)
    }
}

impl FromStr for Level {
    type Err = &'static str;

    /// The scheme, and with every how many checkpoints of the first level: `rs:6+2@10`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (scheme, every) = text.rsplit_once('@').ok_or("a level is a scheme, an @, and how often")?;
        let scheme = scheme.parse().map_err(|_| "no scheme")?;
        Ok(Self { scheme, every: every.parse().map_err(|_| "no number above 0")? })
    }
}

impl Checkpoints {
    const ALL: [Self; 2] = [Self::Blocking, Self::Asynchronous];

    fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Asynchronous => "asynchronous",
        }
    }
}

impl FromStr for Checkpoints {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|known| known.name() == text);
        known.ok_or("must be blocking or asynchronous")
    }
}

impl Lines {
    const ALL: [Self; 3] = [Self::Meet, Self::Drain, Self::Log];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meet => "meet",
            Self::Drain => "drain",
            Self::Log => "log",
        }
    }
}

impl FromStr for Lines {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|known| known.name() == text).ok_or("must be meet, drain or log")
    }
}

impl Recovery {
    const ALL: [Self; 2] = [Self::Global, Self::Local];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Local => "local",
        }
    }
}

impl FromStr for Recovery {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|known| known.name() == text).ok_or("must be global or local")
    }
}

impl MemoryUse {
    const ALL: [Self; 2] = [Self::Fast, Self::Least];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Least => "least",
        }
    }
}

impl FromStr for MemoryUse {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|known| known.name() == text).ok_or("must be least or fast")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<LoopSettings, String> {
        let mut text = Settings::default();
        settings.iter().for_each(|(name, value)| text.set(name, value));
        LoopSettings::read(text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(LoopSettings::read(LoopSettings::default().write()), Ok(LoopSettings::default()));
        let intervals = [
            Interval::Steps(7),
            Interval::Seconds(0.1),
            Interval::Auto { mtbf: None },
            Interval::Auto { mtbf: Some(1e6 / 3.0) },
        ];
        let ways = Checkpoints::ALL.into_iter().cycle().zip(Lines::ALL.into_iter().cycle());
        let ways = ways.zip(Recovery::ALL.into_iter().cycle());
        for (interval, ((checkpoints, lines), recovery)) in intervals.into_iter().zip(ways) {
            let protection = Protection {
                scheme: Scheme::Disk { dir: "/a b/c".into() },
                interval,
                checkpoints,
                lines,
                recovery,
                log_memory: NonZero::new(1 << 20),
                throttle: NonZero::new(8),
                incremental: true,
                memory_use: MemoryUse::Least,
                scrub: true,
                memory: NonZero::new(1 << 40),
                checksum_limit: 1e-9 / 3.0,
                levels: vec!["xor:4@3".parse().unwrap(), "rs:6+2@40".parse().unwrap()],
                spill: Some(Spill {
                    dir: "/c d".into(),
                    folder: Some("e".into()),
                    every: "3".parse().unwrap(),
                    keep: NonZero::<u32>::MIN,
                }),
            };
            let trial = Trial { seconds: Some(0.5), steps: Some(3) };
            let resume = Some(Resume { folder: "/f g".into(), accept_build: true });
            let command = Some("cg --poisson 40".to_owned());
            let settings = LoopSettings { protection, trial, pace: Some(0.25), resume, command };
            assert_eq!(LoopSettings::read(settings.write()), Ok(settings));
        }
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(read(&[]), Ok(LoopSettings::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (name, value, why) in [
            ("scheme", "raid:5", "unknown scheme"),
            ("every", "0", "number would be zero"),
            ("every", "-3", "invalid digit"),
            ("interval", "now", "must be a number above 0"),
            ("interval", "inf", "must be a number above 0"),
            ("checkpoints", "never", "must be blocking or asynchronous"),
            ("lines", "draw", "must be meet, drain or log"),
            ("recovery", "nobody", "must be global or local"),
            ("log-memory", "0", "number would be zero"),
            ("throttle", "0", "number would be zero"),
            ("memory", "1GiB", "must be least or fast"),
            ("levels", "rs:6+2", "must be schemes with how often"),
            ("levels", "rs:6+2@0", "must be schemes with how often"),
            ("scrub", "maybe", "was not `true` or `false`"),
            ("checkpoint-memory", "1GiB", "invalid digit"),
            ("checksum-limit", "-1e-6", "must be a number above 0"),
            ("trial-seconds", "NaN", "must be a number above 0"),
            ("trial-steps", "0", "number would be zero"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(&format!("setting {name}: '{value}'")), "{error}");
            assert!(error.contains(why), "{error}");
        }
        let error = read(&[("interval", "auto"), ("expect-mtbf", "-1")]).unwrap_err();
        assert!(error.starts_with("setting expect-mtbf: '-1'"), "{error}");
        assert!(read(&[("evry", "3")]).unwrap_err().contains("no setting 'evry'"));
    }
}
