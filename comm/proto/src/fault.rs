//! Failures on demand: which ranks fail, at which point of the program, and how.
//!
//! A failure that can be repeated is worth more than a random one, so it is named by what the program is doing
//! (`2@step=40`, `0,3@repair=1/agree`) and not by a delay. This module is the text form, its checks, and the list that
//! a rank consults. It kills nobody: a rank that reaches a point of its list tells its launcher, which keeps the list
//! of the whole job, kills the ranks named, and never hands a spent entry to a replacement.
//!
//! Points are plain names to this crate. Who reaches them, and what they mean, is known by the layers above.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod links;

pub use links::{CutSpec, Far, LinkSpecError, SlowSpec, grammar as grammar_of_links};

/// What comes after the name of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: the point is reached once.
    Nothing,
    /// `=N`: the N-th time, counted from 1.
    Number,
    /// `=SECONDS` since the start of the job.
    Seconds,
}

/// A point that needs no help from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPoint {
    /// Its name in a SPEC.
    pub name: &'static str,
    /// What comes after the name.
    pub takes: Takes,
    /// The phases that a SPEC may add as `/PHASE`, in the order in which they are passed.
    pub phases: &'static [&'static str],
}

/// The points that need no help from the program; all others are written `at=NAME:N`.
pub const KNOWN_POINTS: &[KnownPoint] = &[
    KnownPoint { name: "init", takes: Takes::Nothing, phases: &[] },
    KnownPoint { name: "step", takes: Takes::Number, phases: &[] },
    KnownPoint { name: "time", takes: Takes::Seconds, phases: &[] },
    KnownPoint {
        name: "checkpoint",
        takes: Takes::Number,
        phases: &["copy", "encode", "exchange", "vote", "commit"],
    },
    KnownPoint { name: "repair", takes: Takes::Number, phases: &["agree", "reconnect"] },
    KnownPoint { name: "restore", takes: Takes::Number, phases: &["plan", "exchange", "verify"] },
    KnownPoint { name: "collective", takes: Takes::Number, phases: &[] },
];

const AT: &str = "at";

/// The longest time of a SPEC, in seconds: some 32 years.
const SECONDS_MAX: f64 = 1e9;

fn known(name: &str) -> Option<&'static KnownPoint> {
    KNOWN_POINTS.iter().find(|point| point.name == name)
}

/// The syntax of a SPEC in three lines, for help texts.
pub fn grammar() -> String {
    let mut text = String::from("SPEC:  RANK[,RANK...]@POINT[:hang|:exit]\nPOINT: ");
    for point in KNOWN_POINTS {
        text += point.name;
        text += match point.takes {
            Takes::Nothing => ", ",
            Takes::Number => "=N, ",
            Takes::Seconds => "=SECONDS, ",
        };
    }
    text += "at=NAME:N\nPHASE:";
    for point in KNOWN_POINTS.iter().filter(|point| !point.phases.is_empty()) {
        text += &format!(" {}=N/{}", point.name, point.phases.join("|"));
    }
    text
}

/// How the ranks of a SPEC fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum How {
    /// Killed (SIGKILL).
    #[default]
    Kill,
    /// Stopped (SIGSTOP): alive and silent. Written `:hang`.
    Hang,
    /// They leave by themselves, without a goodbye. Written `:exit`.
    Exit,
}

/// When a point is meant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum When {
    /// The point is reached once only; its number does not matter.
    Once,
    /// The N-th time, counted from 1.
    Number(u64),
    /// Seconds since the start of the job; finite and not negative.
    Seconds(f64),
}

/// A point of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// One of [`KNOWN_POINTS`], or a name that the program gave.
    pub name: String,
    /// Which of the times that it is reached.
    pub when: When,
}

/// One failure to inject: these ranks, at this point, in this way.
///
/// ```
/// use ft_proto::fault::{How, KillSpec, When};
/// let spec: KillSpec = "1,2@step=40:hang".parse()?;
/// assert_eq!(spec.ranks, [1, 2]);
/// assert_eq!(spec.point.when, When::Number(40));
/// assert_eq!(spec.how, How::Hang);
/// assert_eq!(spec.to_string(), "1,2@step=40:hang");
/// # Ok::<(), ft_proto::fault::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KillSpec {
    /// The ranks that fail together; the first to arrive at the point sets it off.
    pub ranks: Vec<usize>,
    /// Where.
    pub point: Point,
    /// A phase within the point; without one the failure strikes when the point is first reached.
    pub phase: Option<String>,
    /// In which way.
    pub how: How,
}

impl KillSpec {
    /// Checks the ranks against a job of `total_ranks` ranks, those that hold parity included.
    ///
    /// # Errors
    /// [`SpecError::NoSuchRank`] with the first rank that does not exist.
    pub fn validate(&self, total_ranks: usize) -> Result<(), SpecError> {
        match self.ranks.iter().find(|&&rank| rank >= total_ranks) {
            None => Ok(()),
            Some(&rank) => Err(SpecError::NoSuchRank { spec: self.to_string(), rank, total_ranks }),
        }
    }
}

impl fmt::Display for KillSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, rank) in self.ranks.iter().enumerate() {
            write!(f, "{}{rank}", if i == 0 { "" } else { "," })?;
        }
        write!(f, "@{}", self.point)?;
        if let Some(phase) = &self.phase {
            write!(f, "/{phase}")?;
        }
        f.write_str(match self.how {
            How::Kill => "",
            How::Hang => ":hang",
            How::Exit => ":exit",
        })
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.when {
            When::Once => write!(f, "{name}"),
            When::Seconds(seconds) => write!(f, "{name}={seconds}"),
            When::Number(number) if known(name).is_some() => write!(f, "{name}={number}"),
            When::Number(number) => write!(f, "{AT}={name}:{number}"),
        }
    }
}

/// A SPEC that cannot be used. Its text is one line on what is wrong; where the syntax is wrong, [`grammar`] follows
/// on further lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// There is no `@`.
    #[error("no '@' between the ranks and the point\n{usage}", usage = grammar())]
    NoPoint,
    /// A rank is not a number.
    #[error("'{0}' is not a rank\n{usage}", usage = grammar())]
    NotARank(String),
    /// A rank is named more than once.
    #[error("rank {0} is named twice")]
    SameRankTwice(usize),
    /// No known point has this name.
    #[error("there is no point '{0}'\n{usage}", usage = grammar())]
    UnknownPoint(String),
    /// The number is missing, is no number, or is 0.
    #[error("'{point}' takes a number from 1 on, not '{found}'\n{usage}", usage = grammar())]
    NotANumber {
        /// The point as far as it was understood.
        point: String,
        /// What stood in place of the number.
        found: String,
    },
    /// The seconds are missing, negative, or no number.
    #[error("'{point}' takes seconds from 0 to {SECONDS_MAX}, not '{found}'\n{usage}", usage = grammar())]
    NotSeconds {
        /// The point as far as it was understood.
        point: String,
        /// What stood in place of the seconds.
        found: String,
    },
    /// The point is reached once and takes no number.
    #[error("'{0}' takes no number\n{usage}", usage = grammar())]
    TakesNothing(String),
    /// A point of the program with a name that the syntax cannot carry.
    #[error("'{0}' cannot name a point: letters, digits, '_', '-' and '.' can\n{usage}", usage = grammar())]
    BadName(String),
    /// A known point, written as if the program had named it.
    #[error("'at={0}:N' is written '{0}=N'\n{usage}", usage = grammar())]
    KnownName(String),
    /// The point has phases, but not this one.
    #[error("'{point}' has no phase '{phase}', it has: {phases}", phases = phases(point))]
    UnknownPhase {
        /// The name of the point.
        point: String,
        /// The phase asked for.
        phase: String,
    },
    /// The point has no phases.
    #[error("'{0}' has no phases\n{usage}", usage = grammar())]
    NoPhases(String),
    /// The way to fail is neither `hang` nor `exit`.
    #[error("'{0}' is no way to fail: 'hang' and 'exit' are, and nothing for a kill\n{usage}", usage = grammar())]
    UnknownWay(String),
    /// The job has no such rank.
    #[error("--kill {spec}: rank {rank} does not exist, {existing}", existing = existing(*total_ranks))]
    NoSuchRank {
        /// The SPEC in its written form.
        spec: String,
        /// The rank that does not exist.
        rank: usize,
        /// The size of the job.
        total_ranks: usize,
    },
}

fn phases(point: &str) -> String {
    known(point).map_or(String::new(), |point| point.phases.join(", "))
}

fn existing(total_ranks: usize) -> String {
    match total_ranks {
        0 => "there are none".to_owned(),
        1 => "the only rank is 0".to_owned(),
        n => format!("ranks are 0 to {}", n - 1),
    }
}

impl FromStr for KillSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (ranks, rest) = text.split_once('@').ok_or(SpecError::NoPoint)?;
        let ranks = parse_ranks(ranks)?;
        let (rest, how) = match rest.rsplit_once(':') {
            Some((rest, "hang")) => (rest, How::Hang),
            Some((rest, "exit")) => (rest, How::Exit),
            _ => (rest, How::Kill),
        };
        let (point, phase) = match rest.split_once('/') {
            Some((point, phase)) => (point, Some(phase)),
            None => (rest, None),
        };
        let point = parse_point(point)?;
        let phase = phase.map(|phase| parse_phase(&point.name, phase)).transpose()?;
        Ok(Self { ranks, point, phase, how })
    }
}

fn parse_ranks(text: &str) -> Result<Vec<usize>, SpecError> {
    let mut ranks = Vec::new();
    for part in text.split(',') {
        let rank = digits(part).and_then(|rank| usize::try_from(rank).ok());
        let rank = rank.ok_or_else(|| SpecError::NotARank(part.to_owned()))?;
        if ranks.contains(&rank) {
            return Err(SpecError::SameRankTwice(rank));
        }
        ranks.push(rank);
    }
    Ok(ranks)
}

fn parse_point(text: &str) -> Result<Point, SpecError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if name == AT {
        return parse_named(value.unwrap_or_default());
    }
    // `step=3:slow` is a wrong way to fail rather than a wrong number.
    if let Some((_, way)) = value.unwrap_or(name).split_once(':') {
        return Err(SpecError::UnknownWay(way.to_owned()));
    }
    let known = known(name).ok_or_else(|| SpecError::UnknownPoint(name.to_owned()))?;
    let when = match (known.takes, value) {
        (Takes::Nothing, None) => When::Once,
        (Takes::Nothing, Some(_)) => return Err(SpecError::TakesNothing(name.to_owned())),
        (Takes::Number, value) => When::Number(parse_number(name, value.unwrap_or_default())?),
        (Takes::Seconds, value) => When::Seconds(parse_seconds(name, value.unwrap_or_default())?),
    };
    Ok(Point { name: name.to_owned(), when })
}

/// `NAME:N` of `at=NAME:N`.
fn parse_named(text: &str) -> Result<Point, SpecError> {
    let (name, number) = text.split_once(':').unwrap_or((text, ""));
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(SpecError::BadName(name.to_owned()));
    }
    if known(name).is_some() {
        return Err(SpecError::KnownName(name.to_owned()));
    }
    if let Some((_, way)) = number.split_once(':') {
        return Err(SpecError::UnknownWay(way.to_owned()));
    }
    let number = parse_number(&format!("{AT}={name}"), number)?;
    Ok(Point { name: name.to_owned(), when: When::Number(number) })
}

fn parse_phase(point: &str, phase: &str) -> Result<String, SpecError> {
    match known(point).map_or(&[][..], |point| point.phases) {
        [] => Err(SpecError::NoPhases(point.to_owned())),
        phases if phases.contains(&phase) => Ok(phase.to_owned()),
        _ => Err(match phase.split_once(':') {
            Some((_, way)) => SpecError::UnknownWay(way.to_owned()),
            None => SpecError::UnknownPhase { point: point.to_owned(), phase: phase.to_owned() },
        }),
    }
}

fn parse_number(point: &str, text: &str) -> Result<u64, SpecError> {
    let number = digits(text).filter(|&number| number >= 1);
    number.ok_or_else(|| SpecError::NotANumber { point: point.to_owned(), found: text.to_owned() })
}

fn parse_seconds(point: &str, text: &str) -> Result<f64, SpecError> {
    let seconds = text.parse().ok().filter(|s: &f64| s.is_sign_positive() && *s <= SECONDS_MAX);
    seconds.ok_or_else(|| SpecError::NotSeconds { point: point.to_owned(), found: text.to_owned() })
}

/// A number of digits only, so that `+1` is no rank.
fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The failures that one rank may set off. Each is given out once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    pending: Vec<(usize, KillSpec)>,
}

impl Faults {
    /// The list of `rank`: those of `specs` that name it. The index is the launcher's name for an entry.
    pub fn new(rank: usize, specs: Vec<(usize, KillSpec)>) -> Self {
        let pending = specs.into_iter().filter(|(_, spec)| spec.ranks.contains(&rank)).collect();
        Self { pending }
    }

    /// To be called when the rank reaches point `name` for the `number`-th time (from 1), or `phase` within it.
    /// Returns the index of the first entry that strikes here, and takes it off the list. Failures at a time are the
    /// launcher's affair: it has the clock of the job.
    ///
    /// An entry without a phase strikes at the first call for its point, whatever that call's phase.
    pub fn reached(&mut self, name: &str, number: u64, phase: Option<&str>) -> Option<usize> {
        let position = self.pending.iter().position(|(_, spec)| {
            let this_time = match spec.point.when {
                When::Once => true,
                When::Number(n) => n == number,
                When::Seconds(_) => false,
            };
            this_time && spec.point.name == name && (spec.phase.is_none() || spec.phase.as_deref() == phase)
        })?;
        Some(self.pending.remove(position).0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(text: &str) -> KillSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> SpecError {
        text.parse::<KillSpec>().expect_err(text)
    }

    fn faults(rank: usize, specs: &[&str]) -> Faults {
        Faults::new(rank, specs.iter().map(|text| spec(text)).enumerate().collect())
    }

    #[test]
    fn every_form_is_read_and_written_back() {
        for text in [
            "0@init",
            "2@step=40",
            "1,2,0@step=1:hang",
            "3@time=0.25:exit",
            "3@time=2",
            "0@checkpoint=3/vote",
            "0@repair=1/agree:hang",
            "0@restore=2/verify",
            "7@collective=18446744073709551615",
            "7@at=shot.done:12",
            "7@at=hang:1:hang",
        ] {
            assert_eq!(spec(text).to_string(), text);
        }
        let full = KillSpec {
            ranks: vec![4, 1],
            point: Point { name: "checkpoint".to_owned(), when: When::Number(3) },
            phase: Some("vote".to_owned()),
            how: How::Exit,
        };
        assert_eq!(spec("4,1@checkpoint=3/vote:exit"), full);
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (text, expected) in [
            ("", "no '@' between the ranks and the point"),
            ("2", "no '@' between the ranks and the point"),
            ("@init", "'' is not a rank"),
            ("+1@init", "'+1' is not a rank"),
            ("1,@init", "'' is not a rank"),
            ("1,2,1@init", "rank 1 is named twice"),
            ("1@", "there is no point ''"),
            ("1@stop=4", "there is no point 'stop'"),
            ("1@init=4", "'init' takes no number"),
            ("1@step", "'step' takes a number from 1 on, not ''"),
            ("1@step=0", "'step' takes a number from 1 on, not '0'"),
            ("1@step=1.5", "'step' takes a number from 1 on, not '1.5'"),
            ("1@time", "'time' takes seconds from 0 to 1000000000, not ''"),
            ("1@time=-1", "'time' takes seconds from 0 to 1000000000, not '-1'"),
            ("1@time=inf", "'time' takes seconds from 0 to 1000000000, not 'inf'"),
            ("1@time=NaN", "'time' takes seconds from 0 to 1000000000, not 'NaN'"),
            ("1@time=1e300", "'time' takes seconds from 0 to 1000000000, not '1e300'"),
            ("1@at=x", "'at=x' takes a number from 1 on, not ''"),
            ("1@at", "'' cannot name a point: letters, digits, '_', '-' and '.' can"),
            ("1@at=a b:1", "'a b' cannot name a point: letters, digits, '_', '-' and '.' can"),
            ("1@at=step:1", "'at=step:N' is written 'step=N'"),
            ("1@at=x:1/vote", "'x' has no phases"),
            ("1@step=1/vote", "'step' has no phases"),
            ("1@repair=1/vote", "'repair' has no phase 'vote', it has: agree, reconnect"),
            ("1@checkpoint=1/", "'checkpoint' has no phase '', it has: copy, encode, exchange, vote, commit"),
            ("1@step=1:slow", "'slow' is no way to fail: 'hang' and 'exit' are, and nothing for a kill"),
            ("1@init:slow", "'slow' is no way to fail: 'hang' and 'exit' are, and nothing for a kill"),
            (
                "1@repair=1/agree:slow",
                "'slow' is no way to fail: 'hang' and 'exit' are, and nothing for a kill",
            ),
        ] {
            let message = refused(text).to_string();
            assert_eq!(message.lines().next(), Some(expected), "{text}");
        }
        let message = refused("1@stop=4").to_string();
        assert!(message.contains("RANK[,RANK...]@POINT[:hang|:exit]"), "{message}");
    }

    #[test]
    fn the_grammar_names_every_point_and_phase() {
        assert_eq!(
            grammar(),
            "SPEC:  RANK[,RANK...]@POINT[:hang|:exit]\n\
             POINT: init, step=N, time=SECONDS, checkpoint=N, repair=N, restore=N, collective=N, at=NAME:N\n\
             PHASE: checkpoint=N/copy|encode|exchange|vote|commit repair=N/agree|reconnect \
             restore=N/plan|exchange|verify"
        );
    }

    #[test]
    fn ranks_must_exist() {
        let error = spec("1,9@step=1").validate(4).unwrap_err();
        assert_eq!(error.to_string(), "--kill 1,9@step=1: rank 9 does not exist, ranks are 0 to 3");
        let error = spec("1@init").validate(1).unwrap_err();
        assert_eq!(error.to_string(), "--kill 1@init: rank 1 does not exist, the only rank is 0");
        assert_eq!(spec("3@init").validate(4), Ok(()));
    }

    #[test]
    fn an_entry_strikes_once_and_only_its_ranks() {
        let mut faults = faults(1, &["0@step=3", "0,1@step=3", "1@step=3", "1@init"]);
        assert_eq!(faults.reached("step", 2, None), None);
        assert_eq!(faults.reached("steps", 3, None), None);
        assert_eq!(faults.reached("step", 3, None), Some(1));
        assert_eq!(faults.reached("step", 3, None), Some(2));
        assert_eq!(faults.reached("step", 3, None), None);
        assert_eq!(faults.reached("init", 1, None), Some(3));
        assert_eq!(faults.reached("init", 1, None), None);
    }

    #[test]
    fn a_phase_waits_for_its_call_and_no_phase_takes_the_first() {
        let mut faults = faults(0, &["0@checkpoint=2/vote", "0@checkpoint=2"]);
        assert_eq!(faults.reached("checkpoint", 2, Some("copy")), Some(1));
        assert_eq!(faults.reached("checkpoint", 2, None), None);
        assert_eq!(faults.reached("checkpoint", 3, Some("vote")), None);
        assert_eq!(faults.reached("checkpoint", 2, Some("vote")), Some(0));
    }

    #[test]
    fn a_time_is_no_point_of_a_rank() {
        assert_eq!(faults(0, &["0@time=2"]).reached("time", 2, None), None);
    }

    fn any_spec() -> impl Strategy<Value = KillSpec> {
        let point = prop_oneof![
            (0..KNOWN_POINTS.len(), 1u64.., 0.0..1e9f64, any::<prop::sample::Index>(), any::<bool>())
                .prop_map(|(i, number, seconds, index, phased)| {
                    let known = KNOWN_POINTS[i];
                    let when = match known.takes {
                        Takes::Nothing => When::Once,
                        Takes::Number => When::Number(number),
                        Takes::Seconds => When::Seconds(seconds),
                    };
                    let phased = phased && !known.phases.is_empty();
                    let phase = phased.then(|| known.phases[index.index(known.phases.len())].to_owned());
                    (Point { name: known.name.to_owned(), when }, phase)
                }),
            ("[a-zA-Z0-9_.-]{1,8}", 1u64..)
                .prop_filter("a point of the framework", |(name, _)| known(name).is_none())
                .prop_map(|(name, number)| (Point { name, when: When::Number(number) }, None)),
        ];
        let how = prop_oneof![Just(How::Kill), Just(How::Hang), Just(How::Exit)];
        (prop::collection::hash_set(0usize.., 1..5), point, how).prop_map(|(ranks, (point, phase), how)| {
            KillSpec { ranks: ranks.into_iter().collect(), point, phase, how }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(spec in any_spec()) {
            prop_assert_eq!(spec.to_string().parse::<KillSpec>(), Ok(spec.clone()));
            let bytes = postcard::to_stdvec(&spec).unwrap();
            prop_assert_eq!(postcard::from_bytes::<KillSpec>(&bytes).unwrap(), spec);
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in prop_oneof![".*", "[0-9,]{0,4}@[a-z]{0,10}[=:/@0-9a-z,.]{0,12}"],
        ) {
            match text.parse::<KillSpec>() {
                Ok(spec) => prop_assert_eq!(spec.to_string().parse::<KillSpec>(), Ok(spec)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
