//! The preconditioners by name, for command lines: a name, and after a colon what it leaves open.

use std::fmt;
use std::str::FromStr;

use ft_comm::Communicator;

use super::{
    Amg, AmgOptions, Chebyshev, Identity, Inner, Jacobi, MakePreconditioner, Preconditioner, Schwarz,
    SchwarzOptions,
};
use crate::{LinalgError, LinearOperator};

/// A preconditioner of this crate, by name: [`fmt::Display`] writes what [`FromStr`] reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Precond {
    /// `none`: [`Identity`].
    #[default]
    None,
    /// `jacobi`: [`Jacobi`].
    Jacobi,
    /// `ssor:OMEGA`: a symmetric sweep within each domain.
    Ssor(f64),
    /// `bjacobi:INNER,domains=N`: [`Schwarz`] without overlap.
    BlockJacobi {
        /// What solves with a block.
        inner: Inner,
        /// Number of domains.
        domains: usize,
    },
    /// `asm:INNER,overlap=K,restricted,domains=N`: [`Schwarz`] with overlap.
    Schwarz(SchwarzOptions),
    /// `chebyshev:DEGREE`: [`Chebyshev`].
    Chebyshev(usize),
    /// `amg:threshold=T,smooth=S`: [`Amg`].
    Amg(AmgOptions),
}

/// What can be said, for errors and help.
pub const FORMS: &str = "none, jacobi, ssor[:OMEGA], bjacobi[:INNER][,domains=N], \
    asm[:INNER][,overlap=K][,restricted][,domains=N], chebyshev[:DEGREE], amg[:threshold=T][,smooth=S]; \
    INNER is ic0, ilu0, ssor=OMEGA, cholesky or lu";

/// Overlap of `asm` unless another is asked for.
const OVERLAP: usize = 1;
const OMEGA: f64 = 1.0;
const DEGREE: usize = 4;
/// No number here makes sense above this.
const NUMBER_MAX: usize = 1000;

impl MakePreconditioner for Precond {
    fn make(
        &self,
        a: &dyn LinearOperator,
        comm: &Communicator,
    ) -> Result<Box<dyn Preconditioner>, LinalgError> {
        let blocks = |inner, domains| SchwarzOptions { inner, domains, ..SchwarzOptions::default() };
        Ok(match *self {
            Self::None => Box::new(Identity),
            Self::Jacobi => Box::new(Jacobi::new(a, comm)?),
            Self::Ssor(omega) => {
                Box::new(Schwarz::new(a, &blocks(Inner::Ssor(omega), super::DOMAINS), comm)?)
            }
            Self::BlockJacobi { inner, domains } => Box::new(Schwarz::new(a, &blocks(inner, domains), comm)?),
            Self::Schwarz(options) => Box::new(Schwarz::new(a, &options, comm)?),
            Self::Chebyshev(degree) => Box::new(Chebyshev::new(a, degree, comm)?),
            Self::Amg(options) => Box::new(Amg::new(a, &options, comm)?),
        })
    }
}

impl Precond {
    /// Whether it is symmetric positive definite for a matrix that is, as conjugate gradients need it.
    pub fn is_symmetric(&self) -> bool {
        match self {
            Self::BlockJacobi { inner, .. } => inner.is_symmetric(),
            Self::Schwarz(options) => options.inner.is_symmetric() && !options.restricted,
            _ => true,
        }
    }
}

impl fmt::Display for Precond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let domains = |f: &mut fmt::Formatter<'_>, domains: usize| match domains {
            super::DOMAINS => Ok(()),
            _ => write!(f, ",domains={domains}"),
        };
        match self {
            Self::None => f.write_str("none"),
            Self::Jacobi => f.write_str("jacobi"),
            Self::Ssor(omega) => write!(f, "ssor:{omega}"),
            Self::BlockJacobi { inner, domains: count } => {
                write!(f, "bjacobi:{inner}")?;
                domains(f, *count)
            }
            Self::Schwarz(options) => {
                write!(f, "asm:{},overlap={}", options.inner, options.overlap)?;
                f.write_str(if options.restricted { ",restricted" } else { "" })?;
                domains(f, options.domains)
            }
            Self::Chebyshev(degree) => write!(f, "chebyshev:{degree}"),
            Self::Amg(AmgOptions { threshold, smooth }) => {
                write!(f, "amg:threshold={threshold},smooth={smooth}")
            }
        }
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ic0 => f.write_str("ic0"),
            Self::Ilu0 => f.write_str("ilu0"),
            Self::Ssor(omega) => write!(f, "ssor={omega}"),
            Self::Cholesky => f.write_str("cholesky"),
            Self::Lu => f.write_str("lu"),
        }
    }
}

/// The words after the colon, each read once.
struct Words<'a> {
    left: Vec<&'a str>,
}

impl<'a> Words<'a> {
    /// The first word for which `read` has something to say.
    fn take<T>(
        &mut self,
        read: impl Fn(&'a str) -> Option<Result<T, String>>,
        default: T,
    ) -> Result<T, String> {
        let found = self.left.iter().enumerate().find_map(|(at, word)| Some((at, read(word)?)));
        found.map_or(Ok(default), |(at, value)| {
            self.left.remove(at);
            value
        })
    }

    fn inner(&mut self) -> Result<Inner, String> {
        let read = |word: &str| match word {
            "ic0" => Some(Ok(Inner::Ic0)),
            "ilu0" => Some(Ok(Inner::Ilu0)),
            "ssor" => Some(Ok(Inner::Ssor(OMEGA))),
            "cholesky" => Some(Ok(Inner::Cholesky)),
            "lu" => Some(Ok(Inner::Lu)),
            _ => word.strip_prefix("ssor=").map(|text| omega(text).map(Inner::Ssor)),
        };
        self.take(read, Inner::default())
    }

    fn number(&mut self, key: &str, least: usize, default: usize) -> Result<usize, String> {
        self.take(|word| Some(number(key, word.strip_prefix(key)?.strip_prefix('=')?, least)), default)
    }

    fn domains(&mut self) -> Result<usize, String> {
        self.number("domains", 1, super::DOMAINS)
    }

    /// A single value without a key.
    fn only<T>(&mut self, read: impl Fn(&str) -> Result<T, String>, default: T) -> Result<T, String> {
        self.take(|word| Some(read(word)), default)
    }
}

fn number(what: &str, text: &str, least: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (least..=NUMBER_MAX).contains(number));
    number.ok_or_else(|| format!("{what} is a number from {least} to {NUMBER_MAX}, not {text:?}"))
}

fn omega(text: &str) -> Result<f64, String> {
    let omega = text.parse().ok().filter(|omega: &f64| *omega > 0.0 && *omega < 2.0);
    omega.ok_or_else(|| format!("OMEGA is between 0 and 2, not {text:?}"))
}

fn threshold(text: &str) -> Result<f64, String> {
    let threshold = text.parse().ok().filter(|threshold: &f64| (0.0..1.0).contains(threshold));
    threshold.ok_or_else(|| format!("threshold is at least 0 and below 1, not {text:?}"))
}

impl FromStr for Precond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let mut words = Words { left: rest.map_or(vec![], |rest| rest.split(',').collect()) };
        let kind = match name {
            "none" => Self::None,
            "jacobi" => Self::Jacobi,
            "ssor" => Self::Ssor(words.only(omega, OMEGA)?),
            "bjacobi" => Self::BlockJacobi { inner: words.inner()?, domains: words.domains()? },
            "asm" => Self::Schwarz(SchwarzOptions {
                inner: words.inner()?,
                overlap: words.number("overlap", 0, OVERLAP)?,
                restricted: words.take(|word| (word == "restricted").then_some(Ok(true)), false)?,
                domains: words.domains()?,
            }),
            "chebyshev" => Self::Chebyshev(words.only(|text| number("DEGREE", text, 0), DEGREE)?),
            "amg" => {
                let default = AmgOptions::default();
                let threshold = words
                    .take(|word| Some(threshold(word.strip_prefix("threshold=")?)), default.threshold)?;
                Self::Amg(AmgOptions { threshold, smooth: words.number("smooth", 1, default.smooth)? })
            }
            _ => return Err(format!("{name:?} is no preconditioner; there are {FORMS}")),
        };
        match words.left.first() {
            Some(word) => Err(format!("{name} does not know {word:?}; there are {FORMS}")),
            None => Ok(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for text in [
            "none",
            "jacobi",
            "ssor:1.2",
            "bjacobi:ic0",
            "bjacobi:ilu0,domains=16",
            "bjacobi:ssor=0.5",
            "bjacobi:cholesky",
            "bjacobi:lu",
            "asm:ic0,overlap=2",
            "asm:ilu0,overlap=1,restricted,domains=4",
            "chebyshev:4",
            "amg:threshold=0.25,smooth=3",
        ] {
            assert_eq!(text.parse::<Precond>().unwrap().to_string(), text);
        }
        for (short, long) in [
            ("ssor", "ssor:1"),
            ("bjacobi", "bjacobi:ic0"),
            ("bjacobi:domains=3", "bjacobi:ic0,domains=3"),
            ("asm:overlap=2", "asm:ic0,overlap=2"),
            ("chebyshev", "chebyshev:4"),
            ("amg", "amg:threshold=0.08,smooth=2"),
        ] {
            assert_eq!(short.parse::<Precond>().unwrap().to_string(), long);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_does() {
        for (text, complaint) in [
            ("ilu", "\"ilu\" is no preconditioner; there are none, jacobi"),
            ("jacobi:3", "jacobi does not know \"3\""),
            ("ssor:2", "OMEGA is between 0 and 2, not \"2\""),
            ("ssor:NaN", "OMEGA is between 0 and 2"),
            ("bjacobi:ic1", "bjacobi does not know \"ic1\""),
            ("bjacobi:ic0,ilu0", "bjacobi does not know \"ilu0\""),
            ("bjacobi:", "bjacobi does not know \"\""),
            ("bjacobi:domains=0", "domains is a number from 1 to"),
            ("asm:overlap=-1", "overlap is a number from 0 to"),
            ("chebyshev:x", "DEGREE is a number from 0 to"),
            ("amg:smooth=0", "smooth is a number from 1 to"),
            ("amg:threshold=1", "threshold is at least 0 and below 1"),
        ] {
            let error = text.parse::<Precond>().unwrap_err();
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }
}
