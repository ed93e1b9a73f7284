//! Values of options, read from what people write.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::num::{IntErrorKind, NonZero};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Most ranks of a job, as far as its command line goes.
const RANKS_MAX: u64 = 1_000_000;
/// Most steps, iterations or repetitions. Sums and products with numbers of ranks stay far from
/// overflow, and doubles are exact.
pub(crate) const COUNT_MAX: u64 = 1_000_000_000_000_000;
/// The shortest and the longest time, in seconds: a clock of nanoseconds ends after 584 years.
pub(crate) const SECONDS_MIN: f64 = 1e-6;
pub(crate) const SECONDS_MAX: f64 = 1e9;
/// Most of what has 32 bits.
pub(crate) const U32_MAX: u64 = u32::MAX as u64;
/// The longest time in milliseconds.
pub(crate) const MS_MAX: u64 = 1_000_000_000_000;

/// The smallest and the largest number that is no time. Less than the smallest has fewer digits
/// than a double has elsewhere.
const POSITIVE_MIN: f64 = 1e-300;
const POSITIVE_MAX: f64 = 1e15;

/// The interval that follows what is measured.
const AUTO: &str = "auto";

/// An interval of time between checkpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timed {
    Seconds(f64),
    /// It follows what is measured.
    Auto,
}

/// Reads a whole number of this range.
pub(crate) fn from_to<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let too_large = || format!("must be at most {}", range.end());
        match text.parse::<u64>() {
            Ok(number) if number < *range.start() => Err(format!("must be at least {}", range.start())),
            Ok(number) if number <= *range.end() => T::try_from(number).map_err(|_| too_large()),
            Err(error) if *error.kind() != IntErrorKind::PosOverflow => {
                Err("must be a whole number, without a sign".to_owned())
            }
            _ => Err(too_large()),
        }
    }
}

/// Reads a number from 0 to 1024.
pub(crate) fn up_to_1024(text: &str) -> Result<usize, String> {
    from_to(0..=1024)(text)
}

/// Reads a number of ranks or hosts.
pub(crate) fn ranks(text: &str) -> Result<usize, String> {
    from_to(1..=RANKS_MAX)(text)
}

/// Reads a number of things of which there may be none, and as many as ranks.
pub(crate) fn up_to_ranks(text: &str) -> Result<usize, String> {
    from_to(0..=RANKS_MAX)(text)
}

/// Reads the number of a rank.
pub(crate) fn rank(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|rank: &u64| *rank < RANKS_MAX);
    let rank = number.and_then(|rank| usize::try_from(rank).ok());
    rank.ok_or_else(|| "must be the number of a rank, 0 for the first".to_owned())
}

/// Reads how often something is measured.
pub(crate) fn repetitions(text: &str) -> Result<usize, String> {
    from_to(1..=1024)(text)
}

/// Reads how many files of a kind are kept.
pub(crate) fn kept(text: &str) -> Result<NonZero<u32>, String> {
    let number = from_to(1..=RANKS_MAX)(text)?;
    NonZero::new(number).ok_or_else(|| "must be at least 1".to_owned())
}

/// Reads a number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    from_to(1..=1024)(text)
}

/// Reads a number from 1 on.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    from_to(1..=COUNT_MAX)(text)
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListenAt {
    Address(SocketAddr),
    /// The address of a name, which clients may use.
    Name(String, u16),
}

impl ListenAt {
    /// The address, and its name if it has one.
    ///
    /// # Errors
    /// The name has no address.
    pub(crate) fn resolve(&self) -> std::io::Result<(SocketAddr, Option<&str>)> {
        match self {
            Self::Address(address) => Ok((*address, None)),
            Self::Name(name, port) => {
                let mut addresses = (name.as_str(), *port).to_socket_addrs()?;
                let missing = || std::io::Error::other(format!("{name} has no address"));
                Ok((addresses.next().ok_or_else(missing)?, Some(name)))
            }
        }
    }
}

impl Display for ListenAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// Reads an address to listen at. A port alone is one of this host that no other can reach.
pub(crate) fn address(text: &str) -> Result<ListenAt, String> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok(ListenAt::Address((Ipv4Addr::LOCALHOST, port).into()));
    }
    if let Ok(address) = text.parse() {
        return Ok(ListenAt::Address(address));
    }
    let is_name = |name: &str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        !name.is_empty() && name.bytes().all(is_fit) && name.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let named = text.split_once(':').filter(|(name, _)| is_name(name));
    let named = named.and_then(|(name, port)| Some(ListenAt::Name(name.to_owned(), port.parse().ok()?)));
    named.ok_or_else(|| "must be IP:PORT, NAME:PORT, or a port from 0 to 65535".to_owned())
}

/// Reads a number above 0, which need not be whole: a tolerance, a length, a frequency.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| *x > 0.0).ok_or("must be a number above 0")?;
    match number {
        small if small < POSITIVE_MIN => Err(format!("must be at least {POSITIVE_MIN:e}")),
        large if large > POSITIVE_MAX => Err(format!("must be at most {POSITIVE_MAX:e}")),
        number => Ok(number),
    }
}

/// Reads a time in seconds, which need not be whole.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| *x > 0.0).ok_or("must be a number above 0")?;
    match number {
        short if short < SECONDS_MIN => Err(format!("must be at least {SECONDS_MIN} seconds")),
        long if long > SECONDS_MAX => Err(format!("must be at most {SECONDS_MAX} seconds")),
        seconds => Ok(seconds),
    }
}

/// Reads seconds, or [`AUTO`].
pub(crate) fn interval(text: &str) -> Result<Timed, String> {
    match text {
        AUTO => Ok(Timed::Auto),
        _ => seconds(text).map(Timed::Seconds).map_err(|why| format!("{why}, or {AUTO}")),
    }
}

/// Reads one of a few names.
pub(crate) fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Reads a time in seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds(text)?).map_err(|error| error.to_string())
}
