//! The schemes of redundancy that a user can name, as text and as values.

mod error;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use error::SchemeError;

/// Where the redundancy of a job comes from; [`crate::GroupLayout`] says whether it fits a number of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// No redundancy: ranks can roll back, none may be lost. Text: `none`.
    None,
    /// Copies of each shard on the next ranks. Text: `neighbor:COPIES`, or `neighbor` for one copy.
    Neighbor {
        /// Copies of each shard beside the rank's own.
        copies: usize,
    },
    /// One parity block a stripe. Text: `xor:GROUP`, or `xor` for a size chosen by the number of ranks.
    Xor {
        /// Members of a group, the parity rank included if it has one; `None` chooses.
        group: Option<usize>,
    },
    /// Reed-Solomon. Text: `rs:K+M`.
    Rs {
        /// Data blocks a stripe, K.
        data: usize,
        /// Parity blocks a stripe, M.
        parity: usize,
    },
    /// Weighted sums of doubles, which come back within a bound; all else is exact, by Reed-Solomon. Text: `checksum:K+M`.
    Checksum {
        /// Data blocks a stripe, K.
        data: usize,
        /// Redundant blocks a stripe, M.
        parity: usize,
    },
    /// A file a rank on a disk that all ranks see ([`crate::disk`]). Text: `disk:DIR`.
    Disk {
        /// The directory; each job has one of its own in there.
        dir: PathBuf,
    },
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Neighbor { copies } => write!(f, "neighbor:{copies}"),
            Self::Xor { group: None } => write!(f, "xor"),
            Self::Xor { group: Some(group) } => write!(f, "xor:{group}"),
            Self::Rs { data, parity } => write!(f, "rs:{data}+{parity}"),
            Self::Checksum { data, parity } => write!(f, "checksum:{data}+{parity}"),
            Self::Disk { dir } => write!(f, "disk:{}", dir.display()),
        }
    }
}

impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Self, SchemeError> {
        let (name, numbers) = match text.split_once(':') {
            Some((name, numbers)) => (name, Some(numbers)),
            None => (text, None),
        };
        let wrong = |form| SchemeError::Numbers { given: text.to_owned(), form };
        match (name, numbers) {
            ("none", None) => Ok(Self::None),
            ("none", Some(_)) => Err(wrong("none")),
            ("neighbor", None) => Ok(Self::Neighbor { copies: 1 }),
            ("neighbor", Some(copies)) => number(copies)
                .map(|copies| Self::Neighbor { copies })
                .ok_or_else(|| wrong("neighbor[:COPIES]")),
            ("xor", None) => Ok(Self::Xor { group: None }),
            ("xor", Some(group)) => number(group)
                .map(|group| Self::Xor { group: Some(group) })
                .ok_or_else(|| wrong("xor[:GROUP]")),
            ("rs", numbers) => two_numbers(numbers)
                .map(|(data, parity)| Self::Rs { data, parity })
                .ok_or_else(|| wrong("rs:K+M")),
            ("checksum", numbers) => two_numbers(numbers)
                .map(|(data, parity)| Self::Checksum { data, parity })
                .ok_or_else(|| wrong("checksum:K+M")),
            ("disk", dir) => dir
                .filter(|dir| !dir.is_empty())
                .map(|dir| Self::Disk { dir: dir.into() })
                .ok_or_else(|| wrong("disk:DIR")),
            _ => Err(SchemeError::Unknown { name: text.to_owned() }),
        }
    }
}

/// Reads `K+M`.
fn two_numbers(text: Option<&str>) -> Option<(usize, usize)> {
    let (data, parity) = text?.split_once('+')?;
    Some((number(data)?, number(parity)?))
}

/// Reads digits and nothing else; `str::parse` would take a sign as well.
fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_to_scheme() {
        let cases = [
            ("none", Scheme::None),
            ("neighbor", Scheme::Neighbor { copies: 1 }),
            ("neighbor:3", Scheme::Neighbor { copies: 3 }),
            ("xor", Scheme::Xor { group: None }),
            ("xor:4", Scheme::Xor { group: Some(4) }),
            ("rs:4+2", Scheme::Rs { data: 4, parity: 2 }),
            ("checksum:4+2", Scheme::Checksum { data: 4, parity: 2 }),
            ("disk:/scratch/a:b c", Scheme::Disk { dir: "/scratch/a:b c".into() }),
            ("disk:here", Scheme::Disk { dir: "here".into() }),
        ];
        for (text, scheme) in cases {
            assert_eq!(text.parse(), Ok(scheme.clone()));
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
        }
    }

    #[test]
    fn refusals_say_what_there_is() {
        let refused = |text: &str| text.parse::<Scheme>().expect_err(text).to_string();
        let list = "there are none, neighbor[:COPIES], xor[:GROUP], rs:K+M, checksum:K+M and disk:DIR";
        assert_eq!(refused("raid5"), format!("unknown scheme `raid5`; {list}"));
        assert_eq!(refused("XOR"), format!("unknown scheme `XOR`; {list}"));
        assert_eq!(refused(""), format!("unknown scheme ``; {list}"));
        let check = |text: &str, form: &str, example: &str| {
            let why = refused(text);
            assert!(
                why.starts_with(&format!("`{text}` cannot be read as {form}: ")) && why.ends_with(example),
                "{why}"
            );
        };
        check("disk", "disk:DIR", "as in disk:/scratch");
        check("disk:", "disk:DIR", "as in disk:/scratch");
        for text in ["rs", "rs:4", "rs:4+", "rs:+2", "rs:4++2", "rs:4+2+1", "rs:a+b", "rs: 4+2"] {
            check(text, "rs:K+M", "K data and M parity blocks, as in rs:4+2");
        }
        for text in ["checksum", "checksum:4", "checksum:4+", "checksum:-4+2"] {
            check(text, "checksum:K+M", "as in checksum:4+2");
        }
        for text in ["xor:", "xor:-1", "xor:+4", "xor:4.0", "xor:99999999999999999999999"] {
            check(text, "xor[:GROUP]", "as in xor:4");
        }
        check("neighbor:two", "neighbor[:COPIES]", "as in neighbor:2");
        check("none:1", "none", "it takes no numbers");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(none|neighbor|xor|rs|checksum|disk)?[:+0-9a-z]{0,8}|\\PC*") {
            if let Ok(scheme) = text.parse::<Scheme>() {
                prop_assert_eq!(scheme.to_string().parse(), Ok(scheme));
            }
        }
    }
}
