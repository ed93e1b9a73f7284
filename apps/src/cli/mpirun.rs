//! What users of `mpirun` write, in the words of this program.

use std::ffi::OsString;
use std::str::FromStr;

/// Words of `mpirun`, some of them long and with one dash, and what they are called here.
const WORDS: [(&str, &str); 10] = [
    ("-np", "--ranks"),
    ("--np", "--ranks"),
    ("-wdir", "--wdir"),
    ("-wd", "--wdir"),
    ("-timeout", "--timeout"),
    ("-tag-output", "--tag-output"),
    ("-H", "--hosts"),
    ("-host", "--hosts"),
    ("--host", "--hosts"),
    ("-hostfile", "--hostfile"),
];

/// The same command line, word by word.
pub(super) fn translated(argv: &[OsString]) -> Vec<OsString> {
    let known = |word: &OsString| WORDS.iter().find(|(theirs, _)| word == theirs);
    argv.iter().map(|word| known(word).map_or(word.clone(), |(_, ours)| ours.into())).collect()
}

/// A variable of the environment that ranks are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// None: that of this process.
    pub(crate) value: Option<String>,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        match name.is_empty() || text.contains('\0') {
            true => Err("write NAME or NAME=VALUE".into()),
            false => Ok(Self { name: name.to_owned(), value }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_names() {
        let variable = |text: &str| text.parse().map(|Variable { name, value }| (name, value));
        assert_eq!(variable("A"), Ok(("A".into(), None)));
        assert_eq!(variable("A="), Ok(("A".into(), Some(String::new()))));
        assert_eq!(variable("A=b=c d"), Ok(("A".into(), Some("b=c d".into()))));
        assert!(variable("").is_err() && variable("=b").is_err());
    }
}
