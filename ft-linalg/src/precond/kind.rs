//! The preconditioners by name, for command lines.

use std::fmt;
use std::str::FromStr;

use ft_comm::Communicator;

use super::{Identity, Jacobi, MakePreconditioner, Preconditioner};
use crate::{LinalgError, LinearOperator};

/// A preconditioner of this crate, by name: [`fmt::Display`] writes what [`FromStr`] reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precond {
    /// `none`: [`Identity`].
    #[default]
    None,
    /// `jacobi`: [`Jacobi`].
    Jacobi,
}

impl MakePreconditioner for Precond {
    fn make(
        &self,
        a: &dyn LinearOperator,
        comm: &Communicator,
    ) -> Result<Box<dyn Preconditioner>, LinalgError> {
        Ok(match self {
            Self::None => Box::new(Identity),
            Self::Jacobi => Box::new(Jacobi::new(a, comm)?),
        })
    }
}

impl fmt::Display for Precond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Jacobi => "jacobi",
        })
    }
}

impl FromStr for Precond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = [Self::None, Self::Jacobi];
        known.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            format!("{text:?} is no preconditioner: {} are", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for kind in [Precond::None, Precond::Jacobi] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("ilu".parse::<Precond>().unwrap_err(), "\"ilu\" is no preconditioner: none, jacobi are");
    }
}
