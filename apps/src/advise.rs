//! `ftrun advise`: measures a program with the schemes that fit, and says which one to use and what longer runs are to expect.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use ft_launch::SELF;
use ft_tools::advice::{
    self, Advice, AdviceExperiment, FailureKind, KindError, Ways, check_kinds, losses_survived, schemes_for,
};
use ft_tools::harness::interruptible;
use ft_tools::recovery::{FRESH_DISK, Progress};
use indicatif::ProgressBar;

use crate::bench;
use crate::progress::{is_watched, style};
use crate::say::print;
use crate::value::{SECONDS_MAX, SECONDS_MIN, positive, ranks, repetitions, seconds};

/// The name of the command, and its first words.
const NAME: &str = "ftrun advise";

/// The arguments of `advise`.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "advise", display_name = NAME, bin_name = NAME, version, max_term_width = 110)]
#[command(
    about = "Measure a program and say which scheme to use, how often to take checkpoints, and what that costs"
)]
#[command(override_usage = "ftrun advise [OPTIONS] PROGRAM [ARGS...]", after_help = AFTER_HELP)]
pub(crate) struct Advise {
    /// Ranks that compute (default: the cores of this machine)
    #[arg(short = 'n', long, value_name = "N", value_parser = ranks)]
    ranks: Option<usize>,
    /// Losses at once that are to be survived, whatever ranks they strike
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = ranks)]
    survive: usize,
    /// Mean times between failures of the job to look ahead for: seconds, or a number with min, h, d or w behind it
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', default_value = "10min,1h,6h,1d,1w", value_parser = span)]
    mtbf: Vec<f64>,
    /// Say which levels of protection to take together, and how often each, for such mean times between failures of the job, by how
    /// many ranks are lost at once: 1=1h,2=1d,all=30d
    #[arg(long, value_name = "LOSSES=TIME,...", value_delimiter = ',', value_parser = failure_kind)]
    level_mtbf: Vec<FailureKind>,
    /// Schemes to compare; 'disk' is a fresh folder in the temporary folder of the system (default: neighbor, xor, rs and
    /// disk as far as they fit the ranks)
    #[arg(long, value_name = "S,...", value_delimiter = ',')]
    schemes: Vec<String>,
    /// Compare ways to go back after a loss under the scheme that is recommended: some of global,lines,local, or 'all'; 'global' is --lines meet,
    /// 'lines' is --lines log, 'local' is --lines log --recovery local. It takes up to thirteen more jobs in each repetition
    #[arg(long, value_name = "WAY,...|all|none", default_value_t, value_parser = |text: &str| text.parse::<Ways>())]
    ways: Ways,
    /// Seconds of the program in each job, or all of it if it is shorter, or if its ranks take steps of their own
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// How often each scheme is measured; medians count
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = repetitions)]
    repeat: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Its ranks take steps of their own, and so each job goes to its end.
    #[arg(skip)]
    pub(crate) whole: bool,
    /// A bundled app, or the path of a program that runs in the resilient loop; what follows belongs to it
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "PROGRAM is run many times, without protection and with each scheme, and one rank of it is killed each time; with --ways \
                          many are. It writes what it always writes.";

impl Advise {
    /// Says what is wrong with the order, before anything is measured.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ranks = self.ranks();
        for (at, scheme) in self.schemes.iter().enumerate() {
            let refuse = |why: &str| Err(format!("--schemes {scheme}: {why}"));
            if self.schemes[..at].contains(scheme) {
                return refuse("named twice");
            }
            match losses_survived(scheme, ranks) {
                Err(why) => return refuse(&why),
                Ok(0) => {
                    return refuse("survives nothing; a run without protection is part of every measurement");
                }
                Ok(_) => {}
            }
        }
        if let Some(pair) = self.mtbf.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("--mtbf: {} s does not follow {} s; name rising times", pair[1], pair[0]));
        }
        let refuse = |error: KindError| format!("--level-mtbf: {error}");
        check_kinds(&self.level_mtbf, &self.schemes(), ranks).map_err(refuse)
    }

    /// Those that are named, or else those that fit.
    fn schemes(&self) -> Vec<String> {
        if let named @ [_, ..] = &self.schemes[..] {
            return named.to_vec();
        }
        let mut all = schemes_for(self.ranks(), self.survive, &self.level_mtbf);
        // Files are for those who meet.
        all.retain(|scheme| !self.whole || scheme != FRESH_DISK);
        all
    }

    /// The job that is measured, as a command line: what is wrong with it is known before the first one.
    pub(crate) fn job(&self) -> Vec<OsString> {
        let ranks = self.ranks().to_string();
        let options = ["ftrun", "--json", "--scheme", "none", "--interval", "1"];
        let options = options.into_iter().chain(["-n", &ranks]).map(OsString::from);
        options.chain(self.command.iter().cloned()).collect()
    }

    /// The name of the program.
    pub(crate) fn program(&self) -> String {
        self.command.first().map_or(String::new(), |word| word.display().to_string())
    }

    fn ranks(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.ranks.unwrap_or_else(cores)
    }

    fn experiment(&self) -> AdviceExperiment {
        AdviceExperiment {
            ftrun: SELF.into(),
            command: self.command.clone(),
            whole: self.whole,
            ranks: self.ranks(),
            schemes: self.schemes(),
            seconds: self.seconds,
            repeat: self.repeat,
            mtbfs_s: self.mtbf.clone(),
            survive: self.survive,
            failures: self.level_mtbf.clone(),
            ways: self.ways.0.clone(),
        }
    }

    /// Measures and prints.
    pub(crate) fn run(&self) -> ExitCode {
        let mut refused = false;
        let status = interruptible("ftrun", |is_interrupted| {
            let experiment = self.experiment();
            let bar = is_watched(false)
                .then(|| ProgressBar::new(1).with_style(style("{pos} of {len} [{bar:30}] {elapsed}, {msg}")));
            let mut progress = |progress: &Progress| bar.iter().for_each(|bar| bench::show(bar, progress));
            let advice = advice::advise(&experiment, is_interrupted, &mut progress);
            bar.iter().for_each(ProgressBar::finish_and_clear);
            let advice = advice.map_err(|error| {
                refused = error.is_usage();
                error.to_string()
            })?;
            print(self.shown(&advice))
        });
        if refused { ExitCode::from(2) } else { status }
    }

    fn shown(&self, advice: &Advice) -> String {
        match self.json {
            true => serde_json::to_string(advice).expect("advice can be written") + "\n",
            false => advice.text(),
        }
    }
}

/// A span of time in seconds: `90`, `10min`, `6h`, `1d`, `1w`.
fn span(text: &str) -> Result<f64, String> {
    let units = [("min", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0), ("s", 1.0)];
    let with_unit = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, seconds) = with_unit.unwrap_or((text, 1.0));
    let span_s = positive(number).ok().map(|number| number * seconds);
    span_s.filter(|span_s| (SECONDS_MIN..=SECONDS_MAX).contains(span_s)).ok_or_else(|| {
        format!(
            "must be from {SECONDS_MIN} to {SECONDS_MAX} seconds: seconds, or a number with min, h, d or w behind it"
        )
    })
}

/// A kind of failure and the mean time between two of them: `2=1d`, `all=30d`.
fn failure_kind(text: &str) -> Result<FailureKind, String> {
    let form = "must be how many ranks are lost at once, or all, and a time, as in 1=1h or all=30d";
    let (losses, mtbf) = text.split_once('=').ok_or(form)?;
    let losses = losses.parse().map_err(|error: KindError| error.to_string())?;
    let mtbf_s = span(mtbf).map_err(|error| format!("the time '{mtbf}' {error}"))?;
    Ok(FailureKind { losses, mtbf_s })
}

#[cfg(test)]
mod tests {
    use ft_tools::advice::Losses;

    use super::{FailureKind, failure_kind, span};

    #[test]
    fn spans_of_time() {
        let all = [
            ("90", 90.0),
            ("0.5s", 0.5),
            ("10min", 600.0),
            ("6h", 21_600.0),
            ("1d", 86_400.0),
            ("2w", 1_209_600.0),
        ];
        for (text, seconds) in all {
            assert_eq!(span(text), Ok(seconds), "{text}");
        }
        for text in ["", "min", "0h", "-1d", "1y", "inf", "1e308w", "1e300", "1e-9", "1 month"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn kinds_of_failures() {
        let all = [("1=1h", Losses::AtOnce(1), 3600.0), ("all=30d", Losses::All, 2_592_000.0)];
        for (text, losses, mtbf_s) in all {
            assert_eq!(failure_kind(text), Ok(FailureKind { losses, mtbf_s }));
        }
        for (text, part) in [
            ("1h", "as in 1=1h or all=30d"),
            ("", "as in 1=1h or all=30d"),
            ("host=1h", "'host' is not how many ranks are lost at once"),
            ("0=1h", "0 losses are no failure"),
            ("1=", "the time '' must be from"),
            ("1=0", "the time '0' must be from"),
            ("2=-1d", "the time '-1d' must be from"),
            ("all=1y", "the time '1y' must be from 0.000001 to 1000000000 seconds: seconds, or"),
        ] {
            let why = failure_kind(text).expect_err(text);
            assert!(why.contains(part), "{why}");
        }
    }
}
