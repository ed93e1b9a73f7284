//! The solvers by name, for command lines.

use std::fmt;
use std::str::FromStr;

use ft_checkpoint::Protect;

/// A solver of this crate, by name: [`fmt::Display`] writes what [`FromStr`] reads. [`super::AnySolver`] is one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Protect)]
#[non_exhaustive]
pub enum Method {
    /// `cg`: [`super::Cg`].
    #[default]
    Cg,
    /// `single-reduction-cg`: [`super::SingleReductionCg`].
    SingleReductionCg,
    /// `minres`: [`super::Minres`].
    Minres,
    /// `bicgstab`: [`super::Bicgstab`].
    Bicgstab,
    /// `gmres`: [`super::Gmres`].
    Gmres,
    /// `fgmres`: [`super::Fgmres`].
    Fgmres,
    /// `richardson`: [`super::Richardson`].
    Richardson,
    /// `chebyshev`: [`super::Chebyshev`].
    Chebyshev,
    /// `cgls`: [`super::Cgls`].
    Cgls,
    /// `lsqr`: [`super::Lsqr`].
    Lsqr,
    /// `power`: [`super::Power`].
    Power,
    /// `lanczos`: [`super::Lanczos`].
    Lanczos,
    /// `lobpcg`: [`super::Lobpcg`].
    Lobpcg,
}

/// What a solver is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `A x = b` with square `A`.
    Linear,
    /// `min ||b - A x||` with `A` of any shape, which needs a product with its transpose.
    LeastSquares,
    /// `A x = theta x`, from `b`.
    Eigenvalues,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Cg,
        Self::SingleReductionCg,
        Self::Minres,
        Self::Bicgstab,
        Self::Gmres,
        Self::Fgmres,
        Self::Richardson,
        Self::Chebyshev,
        Self::Cgls,
        Self::Lsqr,
        Self::Power,
        Self::Lanczos,
        Self::Lobpcg,
    ];

    /// What it is for.
    pub fn task(self) -> Task {
        match self {
            Self::Cgls | Self::Lsqr => Task::LeastSquares,
            Self::Power | Self::Lanczos | Self::Lobpcg => Task::Eigenvalues,
            _ => Task::Linear,
        }
    }

    /// Whether it is wrong for a matrix that is not symmetric.
    pub fn needs_symmetry(self) -> bool {
        match self {
            Self::Cg | Self::SingleReductionCg | Self::Minres | Self::Chebyshev => true,
            Self::Lanczos | Self::Lobpcg => true,
            Self::Bicgstab | Self::Gmres | Self::Fgmres | Self::Richardson => false,
            Self::Cgls | Self::Lsqr | Self::Power => false,
        }
    }

    /// Whether a preconditioner makes a difference.
    pub fn uses_preconditioner(self) -> bool {
        !matches!(self, Self::Cgls | Self::Lsqr | Self::Power | Self::Lanczos)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cg => "cg",
            Self::SingleReductionCg => "single-reduction-cg",
            Self::Minres => "minres",
            Self::Bicgstab => "bicgstab",
            Self::Gmres => "gmres",
            Self::Fgmres => "fgmres",
            Self::Richardson => "richardson",
            Self::Chebyshev => "chebyshev",
            Self::Cgls => "cgls",
            Self::Lsqr => "lsqr",
            Self::Power => "power",
            Self::Lanczos => "lanczos",
            Self::Lobpcg => "lobpcg",
        })
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|method| method.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("{text:?} is no solver: {} are", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        let error = "qmr".parse::<Method>().unwrap_err();
        assert!(error.starts_with("\"qmr\" is no solver: cg, single-reduction-cg, minres, "), "{error}");
    }
}
