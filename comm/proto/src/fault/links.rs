//! Failures of links on demand: which links are cut, when and for how long, and which are slow.
//!
//! As for kills this is the text form and its checks only. A cut is set off by the first of its ranks to arrive at its
//! point, as a kill is; slow links are slow from the start.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{How, KillSpec, Point, SECONDS_MAX, SpecError, digits, existing, parse_phase, parse_point};

/// The largest factor of slow links. With it a short message takes 20 s.
const FACTOR_MAX: f64 = 1e6;
/// The word for the launcher in the place of ranks.
const LAUNCHER: &str = "launcher";

/// The syntax of a cut and of slow links in two lines, for help texts; POINT is that of [`super::grammar`].
pub fn grammar() -> &'static str {
    "CUT:   RANK[,RANK...]-RANK[,RANK...]|launcher@POINT[:SECONDS]\n\
     SLOW:  RANK[,RANK...]-RANK[,RANK...]:FACTOR"
}

/// The other end of links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Far {
    /// These ranks.
    Ranks(Vec<usize>),
    /// The launcher.
    Launcher,
}

impl Far {
    fn ranks(&self) -> &[usize] {
        match self {
            Self::Ranks(ranks) => ranks,
            Self::Launcher => &[],
        }
    }
}

/// Links to cut: at this point, for this long. Nothing passes in either direction, and nobody is told; what is under way
/// is held back and arrives when the cut heals, as a transport that sends again would have it.
///
/// ```
/// use ft_proto::fault::{CutSpec, Far};
/// let cut: CutSpec = "0,1-2@step=40:0.3".parse()?;
/// assert_eq!((&cut.near[..], &cut.far), (&[0, 1][..], &Far::Ranks(vec![2])));
/// assert_eq!(cut.seconds, Some(0.3));
/// assert_eq!("3-launcher@init".parse::<CutSpec>()?.far, Far::Launcher);
/// # Ok::<(), ft_proto::fault::LinkSpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CutSpec {
    /// The ranks on one side.
    pub near: Vec<usize>,
    /// The other side: each link between the two is cut, none within a side.
    pub far: Far,
    /// Where.
    pub point: Point,
    /// A phase within the point.
    pub phase: Option<String>,
    /// How long, above 0; without it for ever.
    pub seconds: Option<f64>,
}

impl CutSpec {
    /// All ranks that it names.
    pub fn ranks(&self) -> impl Iterator<Item = usize> {
        self.near.iter().chain(self.far.ranks()).copied()
    }

    /// How long it lasts; without it for ever.
    pub fn lasts(&self) -> Option<Duration> {
        // What was read has a range; a time that no clock reaches is for ever.
        self.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }

    /// What a rank waits for to set it off: a failure of all its ranks at its point.
    pub fn trigger(&self) -> KillSpec {
        KillSpec {
            ranks: self.ranks().collect(),
            point: self.point.clone(),
            phase: self.phase.clone(),
            how: How::default(),
        }
    }

    /// Checks the ranks against a job of `total_ranks` ranks, those that hold parity included.
    ///
    /// # Errors
    /// [`LinkSpecError::NoSuchRank`] with the first rank that does not exist.
    pub fn validate(&self, total_ranks: usize) -> Result<(), LinkSpecError> {
        validate(self.ranks(), total_ranks, || format!("--cut {self}"))
    }
}

impl fmt::Display for CutSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ranks(f, &self.near)?;
        f.write_str("-")?;
        match &self.far {
            Far::Ranks(ranks) => write_ranks(f, ranks)?,
            Far::Launcher => f.write_str(LAUNCHER)?,
        }
        write!(f, "@{}", self.point)?;
        if let Some(phase) = &self.phase {
            write!(f, "/{phase}")?;
        }
        self.seconds.map_or(Ok(()), |seconds| write!(f, ":{seconds}"))
    }
}

impl FromStr for CutSpec {
    type Err = LinkSpecError;

    fn from_str(text: &str) -> Result<Self, LinkSpecError> {
        let (sides, rest) = text.split_once('@').ok_or(LinkSpecError::Point(SpecError::NoPoint))?;
        let (near, far) = parse_sides(sides)?;
        let (rest, seconds) = split_seconds(rest);
        let (point, phase) = match rest.split_once('/') {
            Some((point, phase)) => (point, Some(phase)),
            None => (rest, None),
        };
        let point = parse_point(point)?;
        let phase = phase.map(|phase| parse_phase(&point.name, phase)).transpose()?;
        let positive = |text: &str| text.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= SECONDS_MAX);
        let seconds = seconds
            .map(|text| positive(text).ok_or_else(|| LinkSpecError::NotSeconds(text.to_owned())))
            .transpose()?;
        Ok(Self { near, far, point, phase, seconds })
    }
}

/// Links that take FACTOR times as long as the links of a good network within a host: 20 µs, and 0.5 ns a byte.
///
/// ```
/// use ft_proto::fault::SlowSpec;
/// let slow: SlowSpec = "0-1,2:100".parse()?;
/// assert_eq!((&slow.near[..], &slow.far[..], slow.factor), (&[0][..], &[1, 2][..], 100.0));
/// assert_eq!((slow.concerns(2, 0), slow.concerns(1, 2)), (true, false));
/// # Ok::<(), ft_proto::fault::LinkSpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SlowSpec {
    /// The ranks on one side.
    pub near: Vec<usize>,
    /// The ranks on the other side.
    pub far: Vec<usize>,
    /// How many times as long; at least 1.
    pub factor: f64,
}

impl SlowSpec {
    /// Time that the first byte takes, of which a slow link takes a multiple.
    pub const LATENCY: Duration = Duration::from_micros(20);
    /// Nanoseconds that each byte takes, likewise.
    pub const NANOS_A_BYTE: f64 = 0.5;

    /// Whether links between two ranks are slow.
    pub fn concerns(&self, one: usize, other: usize) -> bool {
        let from = |a: &usize, b: &usize| self.near.contains(a) && self.far.contains(b);
        from(&one, &other) || from(&other, &one)
    }

    /// How much later than without it a piece of so many bytes leaves: `(FACTOR - 1) (20 µs + 0.5 ns a byte)`.
    pub fn delay(factor: f64, bytes: usize) -> Duration {
        let nanos = Self::LATENCY.as_nanos() as f64 + Self::NANOS_A_BYTE * bytes as f64;
        Duration::from_nanos(((factor - 1.0) * nanos) as u64) // saturates
    }

    /// Checks the ranks against a job of `total_ranks` ranks, those that hold parity included.
    ///
    /// # Errors
    /// [`LinkSpecError::NoSuchRank`] with the first rank that does not exist.
    pub fn validate(&self, total_ranks: usize) -> Result<(), LinkSpecError> {
        let ranks = self.near.iter().chain(&self.far).copied();
        validate(ranks, total_ranks, || format!("--slow {self}"))
    }
}

impl fmt::Display for SlowSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_ranks(f, &self.near)?;
        f.write_str("-")?;
        write_ranks(f, &self.far)?;
        write!(f, ":{}", self.factor)
    }
}

impl FromStr for SlowSpec {
    type Err = LinkSpecError;

    fn from_str(text: &str) -> Result<Self, LinkSpecError> {
        let (sides, factor) = text.split_once(':').ok_or_else(|| LinkSpecError::NotAFactor(String::new()))?;
        let (near, far) = parse_sides(sides)?;
        let Far::Ranks(far) = far else { return Err(LinkSpecError::SlowLauncher) };
        let number = factor.parse().ok().filter(|x: &f64| (1.0..=FACTOR_MAX).contains(x));
        let factor = number.ok_or_else(|| LinkSpecError::NotAFactor(factor.to_owned()))?;
        Ok(Self { near, far, factor })
    }
}

/// A specification of links that cannot be used. Its text is one line on what is wrong; where the syntax is wrong,
/// [`grammar`] follows on further lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkSpecError {
    /// There is no `-` between two sides.
    #[error("no '-' between the two sides of the links\n{usage}", usage = grammar())]
    NoSides,
    /// A rank is on both sides.
    #[error("rank {0} is on both sides")]
    BothSides(usize),
    /// A rank or the point is wrong.
    #[error("{}\n{usage}", first_line(.0), usage = grammar())]
    Point(#[from] SpecError),
    /// The time of a cut is no number above 0.
    #[error("a cut lasts for seconds above 0 and up to {SECONDS_MAX}, not '{0}'\n{usage}", usage = grammar())]
    NotSeconds(String),
    /// The factor is missing or no number from 1 on.
    #[error("links are slow by a factor from 1 to {FACTOR_MAX}, not '{0}'\n{usage}", usage = grammar())]
    NotAFactor(String),
    /// Links to the launcher cannot be slow.
    #[error("links to the launcher can be cut, not slow")]
    SlowLauncher,
    /// The job has no such rank.
    #[error("{option}: rank {rank} does not exist, {existing}", existing = existing(*total_ranks))]
    NoSuchRank {
        /// The option in its written form.
        option: String,
        /// The rank that does not exist.
        rank: usize,
        /// The size of the job.
        total_ranks: usize,
    },
}

fn first_line(error: &SpecError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn validate(
    mut ranks: impl Iterator<Item = usize>,
    total_ranks: usize,
    option: impl Fn() -> String,
) -> Result<(), LinkSpecError> {
    match ranks.find(|rank| *rank >= total_ranks) {
        None => Ok(()),
        Some(rank) => Err(LinkSpecError::NoSuchRank { option: option(), rank, total_ranks }),
    }
}

fn write_ranks(f: &mut fmt::Formatter<'_>, ranks: &[usize]) -> fmt::Result {
    for (i, rank) in ranks.iter().enumerate() {
        write!(f, "{}{rank}", if i == 0 { "" } else { "," })?;
    }
    Ok(())
}

/// `0,1-2` or `0-launcher`.
fn parse_sides(text: &str) -> Result<(Vec<usize>, Far), LinkSpecError> {
    let (near, far) = text.split_once('-').ok_or(LinkSpecError::NoSides)?;
    let near = super::parse_ranks(near)?;
    let far = match far {
        LAUNCHER => Far::Launcher,
        ranks => Far::Ranks(super::parse_ranks(ranks)?),
    };
    match near.iter().find(|rank| far.ranks().contains(rank)) {
        Some(rank) => Err(LinkSpecError::BothSides(*rank)),
        None => Ok((near, far)),
    }
}

/// Splits `:SECONDS` off the end of a point, whose own colon, that of `at=NAME:N`, comes before.
fn split_seconds(text: &str) -> (&str, Option<&str>) {
    let own = |name: &str| name.split_once(':').is_some_and(|(_, number)| digits(number).is_some());
    match text.rsplit_once(':') {
        Some((point, _)) if !point.contains(':') && text.starts_with("at=") && own(text) => (text, None),
        Some((point, seconds)) => (point, Some(seconds)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fault::When;

    fn cut(text: &str) -> CutSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_form_is_read_and_written_back() {
        for text in [
            "0-1@init",
            "0,1-2,3@step=40:0.3",
            "2-launcher@time=1.5:10",
            "1,2-launcher@checkpoint=3/vote",
            "0-3@checkpoint=3/vote:2",
            "0-1@at=shot.done:12",
            "0-1@at=shot.done:12:0.25",
            "0-1@collective=7:1",
        ] {
            assert_eq!(cut(text).to_string(), text);
        }
        let full = cut("0-1@at=shot:12:0.25");
        assert_eq!((full.point.name.as_str(), full.point.when), ("shot", When::Number(12)));
        assert_eq!(full.lasts(), Some(Duration::from_millis(250)));
        assert_eq!(cut("0-1@at=shot:12").seconds, None);
        assert_eq!(cut("3,1-2@step=4").trigger(), "3,1,2@step=4".parse().unwrap());
        assert_eq!(cut("3,1-launcher@restore=1/plan").trigger(), "3,1@restore=1/plan".parse().unwrap());
        for text in ["0-1:3", "0,2-1,3:1.5", "4-5:1"] {
            assert_eq!(text.parse::<SlowSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (text, expected) in [
            ("0-1", "no '@' between the ranks and the point"),
            ("0@step=3", "no '-' between the two sides of the links"),
            ("0-@step=3", "'' is not a rank"),
            ("0-x@step=3", "'x' is not a rank"),
            ("launcher-0@step=3", "'launcher' is not a rank"),
            ("0,1-1@step=3", "rank 1 is on both sides"),
            ("0-1@lunch", "there is no point 'lunch'"),
            ("0-1@step=3:0", "a cut lasts for seconds above 0 and up to 1000000000, not '0'"),
            ("0-1@step=3:hang", "a cut lasts for seconds above 0 and up to 1000000000, not 'hang'"),
            ("0-1@init:1e300", "a cut lasts for seconds above 0 and up to 1000000000, not '1e300'"),
            ("0-1@init:inf", "a cut lasts for seconds above 0 and up to 1000000000, not 'inf'"),
            ("0-1@step=3/vote", "'step' has no phases"),
            ("0-1@at=x:1:-1", "a cut lasts for seconds above 0 and up to 1000000000, not '-1'"),
        ] {
            let message = text.parse::<CutSpec>().expect_err(text).to_string();
            assert_eq!(message.lines().next(), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("0-1", "links are slow by a factor from 1 to 1000000, not ''"),
            ("0-1:0.5", "links are slow by a factor from 1 to 1000000, not '0.5'"),
            ("0-1:1e300", "links are slow by a factor from 1 to 1000000, not '1e300'"),
            ("0-1:x", "links are slow by a factor from 1 to 1000000, not 'x'"),
            ("0-launcher:2", "links to the launcher can be cut, not slow"),
            ("0-0:2", "rank 0 is on both sides"),
        ] {
            let message = text.parse::<SlowSpec>().expect_err(text).to_string();
            assert_eq!(message.lines().next(), Some(expected), "{text}");
        }
        let error = cut("0-9@init").validate(4).unwrap_err();
        assert_eq!(error.to_string(), "--cut 0-9@init: rank 9 does not exist, ranks are 0 to 3");
        let slow: SlowSpec = "5-0:2".parse().unwrap();
        assert_eq!(
            slow.validate(4).unwrap_err().to_string(),
            "--slow 5-0:2: rank 5 does not exist, ranks are 0 to 3"
        );
        assert_eq!(cut("0-3@init").validate(4), Ok(()));
    }

    #[test]
    fn a_slow_link_takes_that_many_times_as_long() {
        assert_eq!(SlowSpec::delay(1.0, 1 << 20), Duration::ZERO);
        assert_eq!(SlowSpec::delay(11.0, 0), Duration::from_micros(200));
        assert_eq!(SlowSpec::delay(3.0, 1000), Duration::from_micros(41));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in prop_oneof![".*", "[0-9,]{0,3}-([0-9,]{0,3}|launcher)@[a-z]{0,6}[=:/@0-9a-z,.]{0,12}"],
        ) {
            match text.parse::<CutSpec>() {
                Ok(spec) => prop_assert_eq!(spec.to_string().parse::<CutSpec>(), Ok(spec)),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
