//! Variables of the environment that ranks are given: the option `-x`.

use std::str::FromStr;

/// A variable of the environment that ranks are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    name: String,
    /// None: that of this process.
    value: Option<String>,
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

/// What `-x` has named.
pub(crate) struct Exports<'a> {
    /// Variables and their values.
    pub(crate) given: Vec<(String, String)>,
    /// Names of variables that are not there.
    pub(crate) unset: Vec<&'a str>,
}

impl<'a> Exports<'a> {
    /// Looks up what has no value yet.
    ///
    /// # Errors
    /// A value is not UTF-8.
    pub(crate) fn of(variables: &'a [Variable]) -> Result<Self, String> {
        let (mut given, mut unset) = (vec![], vec![]);
        for Variable { name, value } in variables {
            match value.clone().map_or_else(|| std::env::var(name), Ok) {
                Ok(value) => given.push((name.clone(), value)),
                Err(std::env::VarError::NotPresent) => unset.push(name.as_str()),
                Err(std::env::VarError::NotUnicode(_)) => {
                    return Err(format!("-x {name}: its value is not UTF-8"));
                }
            }
        }
        Ok(Self { given, unset })
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
