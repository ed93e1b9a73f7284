//! Values of options, read from what people write.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// The interval that follows what is measured.
const AUTO: &str = "auto";

/// An interval of time between checkpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timed {
    Seconds(f64),
    /// It follows what is measured.
    Auto,
}

/// Reads a number from 0 to 1024.
pub(crate) fn up_to_1024(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 1024 => Err("must be at most 1024".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(no_number(&error)),
    }
}

/// Reads a number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match up_to_1024(text)? {
        0 => Err("must be at least 1".to_owned()),
        number => Ok(number),
    }
}

/// What is wrong with a number that counts something.
fn no_number(error: &ParseIntError) -> String {
    match error.kind() {
        IntErrorKind::PosOverflow => error.to_string(),
        _ => "must be a whole number, without a sign".to_owned(),
    }
}

/// Reads a number from 1 on.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(no_number(&error)),
    }
}

/// Reads an address to listen at. A port alone is one of this host that no other can reach.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let address = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).or_else(|_| text.parse());
    address.map_err(|_| "must be IP:PORT, or a port".to_owned())
}

/// Reads a number above 0, which need not be whole.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    number.ok_or_else(|| "must be a number above 0".to_owned())
}

/// Reads seconds, or [`AUTO`].
pub(crate) fn interval(text: &str) -> Result<Timed, String> {
    match text {
        AUTO => Ok(Timed::Auto),
        _ => positive(text).map(Timed::Seconds).map_err(|why| format!("{why}, or {AUTO}")),
    }
}

/// Reads one of a few names.
pub(crate) fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// Reads seconds: a time that is neither nothing nor longer than clocks go.
pub(crate) fn positive_time(text: &str) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(positive(text)?).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("must be a number above 0".to_owned()) } else { Ok(time) }
}
