//! `solve` and `cg`: a sparse system, least-squares or eigenvalue problem, by a solver and a preconditioner of one's choice, one
//! iteration a step.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};
use ft_linalg::matrix_market::Duplicates;
use ft_linalg::operator::WithTranspose;
use ft_linalg::solver::{AnyOptions, Method, Task};
use ft_linalg::{DistMatrix, DistStencil, Format, Precond, StopCriteria};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::number::Number;
use crate::options::Options;
use crate::rank::{self, Rate, Reporter};
use crate::value::{at_least_one, positive};
use crate::words::count;

mod operator;
mod program;
mod residuals;

use operator::Operator;
use program::SolveProgram;

/// The arguments of `solve`, and of `cg`, which is `solve` by its old name.
#[derive(Debug, Clone, PartialEq, Args)]
#[command(next_help_heading = "Options of cg and solve")]
#[command(group = ArgGroup::new("system").required(true))]
pub(crate) struct SolveArgs {
    /// The matrix, a Matrix Market file
    #[arg(long, value_name = "FILE", group = "system")]
    matrix: Option<PathBuf>,
    /// Entries of a file with the same row and column are added, or the file is rejected
    #[arg(long, value_enum, value_name = "HOW", default_value_t = DuplicatesArg::Sum, conflicts_with_all = ["poisson", "poisson2d"])]
    duplicates: DuplicatesArg,
    /// The Poisson problem on a grid of N x N x N points
    #[arg(long, value_name = "N", group = "system", value_parser = at_least_one)]
    poisson: Option<usize>,
    /// The Poisson problem on a grid of N x N points
    #[arg(long, value_name = "N", group = "system", value_parser = at_least_one)]
    poisson2d: Option<usize>,
    /// Form products on the grid, without a matrix: less memory and time, the same answer to the bit
    #[arg(long, conflicts_with = "matrix")]
    matrix_free: bool,
    /// How rows are stored for products: 'csr', 'abreast', 'inodes' or 'runs' (default: what is the fastest for the matrix)
    #[arg(long, value_name = "F", value_parser = format, conflicts_with = "matrix_free")]
    format: Option<Format>,
    /// The right-hand side, or what eigenvalues are sought from: a file, 'ones', 'solution' for the one whose solution is
    /// all ones, or 'scattered' for one without a pattern (default: 'solution', of eigenvalues 'scattered')
    #[arg(long, value_name = "FILE|ones|solution|scattered")]
    rhs: Option<Rhs>,
    /// The solver: 'cg', 'single-reduction-cg', 'minres', 'bicgstab', 'gmres', 'fgmres', 'richardson' or 'chebyshev'; 'cgls'
    /// or 'lsqr' for least squares; 'power', 'lanczos' or 'lobpcg' for eigenvalues
    #[arg(long, value_name = "S", default_value_t = Method::Cg)]
    solver: Method,
    /// The preconditioner: 'none', 'jacobi' (the diagonal), 'ssor:OMEGA' (a sweep in each of 8 domains), 'bjacobi:INNER'
    /// (a solve in each domain by 'ic0', 'ilu0', 'ssor=OMEGA', 'cholesky' or 'lu'; ',domains=N' for another number),
    /// 'asm:INNER,overlap=K' (the same where domains overlap), 'chebyshev:DEGREE' (a polynomial) or 'amg' (multigrid)
    #[arg(long, value_name = "P", default_value_t = Precond::None)]
    precond: Precond,
    /// Done when the norm of the residual is below this part of that of the right-hand side
    #[arg(long, value_name = "TOL", default_value = "1e-8", value_parser = positive)]
    tol: f64,
    /// Give up after N iterations
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    max_iter: usize,
    /// Vectors that GMRES and FGMRES keep before they start again
    #[arg(long, value_name = "M", default_value_t = 30, value_parser = at_least_one)]
    restart: usize,
    /// How many eigenvalues Lanczos and LOBPCG find
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one)]
    eigenvalues: usize,
    /// The smallest eigenvalues rather than the largest
    #[arg(long)]
    smallest: bool,
    /// Write the answer to a file: .mtx, .mtx.gz or .npy
    #[arg(long, value_name = "FILE", value_parser = answer_file)]
    out: Option<PathBuf>,
    /// Say the norm of the residual after each iteration, on standard error
    #[arg(long)]
    monitor: bool,
    /// Write the norms of all iterations to a file: .csv, or .svg or .png for a picture
    #[arg(long, value_name = "FILE", value_parser = residuals::file)]
    residuals: Option<PathBuf>,
}

/// What happens to entries of a file with the same row and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DuplicatesArg {
    /// They are added
    Sum,
    /// They are an error
    Refuse,
}

impl From<DuplicatesArg> for Duplicates {
    fn from(chosen: DuplicatesArg) -> Self {
        match chosen {
            DuplicatesArg::Sum => Self::Sum,
            DuplicatesArg::Refuse => Self::Refuse,
        }
    }
}

/// The right-hand side of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rhs {
    /// A times the vector of ones.
    Solution,
    /// All ones.
    Ones,
    /// Numbers without a pattern.
    Scattered,
    /// From a file.
    File(PathBuf),
}

impl FromStr for Rhs {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "solution" => Self::Solution,
            "ones" => Self::Ones,
            "scattered" => Self::Scattered,
            file => Self::File(file.into()),
        })
    }
}

fn format(text: &str) -> Result<Format, String> {
    let found = Format::ALL.into_iter().find(|format| format.name() == text);
    let names = Format::ALL.map(Format::name);
    found.ok_or_else(|| format!("it has to be one of {}", names.join(", ")))
}

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerFile {
    MatrixMarket,
    Npy,
}

impl AnswerFile {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let ends = |with: &str| name.ends_with(with);
        match () {
            () if ends(".mtx") || ends(".mtx.gz") => Some(Self::MatrixMarket),
            () if ends(".npy") => Some(Self::Npy),
            () => None,
        }
    }
}

fn answer_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let wanted = "the name has to end in .mtx, .mtx.gz or .npy";
    AnswerFile::of(&path).map(|_| path).ok_or(wanted.to_owned())
}

/// What `solve` is about, in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SolveResult {
    rows: usize,
    nonzeros: u64,
    iterations: u64,
    converged: bool,
    reason: String,
    /// `||b - A x|| / ||b||`; of eigenvalues, the largest `||A x - theta x||` over the norm of A.
    #[serde(with = "crate::number")]
    relative_residual: f64,
    /// `||A^T (b - A x)|| / ||A^T b||`, which least squares make small.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    relative_gradient: Option<Number>,
    answer_hash: String,
    solver: String,
    precond: String,
    /// How the matrix is stored for products; several where ranks have chosen differently.
    format: String,
    /// Threads of a rank.
    threads: usize,
    /// How many rows each rank has.
    partition: Vec<u64>,
    /// Since this start of rank 0, or its last restore.
    #[serde(with = "crate::number")]
    seconds_per_iteration: f64,
    /// Eigenvalues, each with the norm of its residual: an eigenvalue is that near.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    eigenvalues: Vec<[Number; 2]>,
    /// The norm at the start and after each iteration.
    history: Vec<Number>,
}

impl SolveArgs {
    fn options(&self) -> AnyOptions {
        AnyOptions {
            method: self.solver,
            stop: StopCriteria {
                rtol: self.tol,
                iterations_max: self.max_iter as u64,
                ..StopCriteria::DEFAULT
            },
            restart: self.restart,
            count: self.eigenvalues,
            largest: !self.smallest,
            ..AnyOptions::default()
        }
    }

    fn rhs(&self) -> &Rhs {
        let default = match self.solver.task() {
            Task::Eigenvalues => &Rhs::Scattered,
            Task::Linear | Task::LeastSquares => &Rhs::Solution,
        };
        self.rhs.as_ref().unwrap_or(default)
    }

    fn rank_with<A: Operator>(&self) -> ExitCode {
        rank::run(|settings| SolveProgram::<A>::new(self.clone(), Reporter::new(settings), Rate::new()))
    }
}

impl App for SolveArgs {
    type Outcome = SolveResult;

    fn check(&self, options: &Options) -> Result<(), String> {
        let Self { solver, precond, .. } = self;
        self.residuals.as_deref().map_or(Ok(()), residuals::require_writable)?;
        // Rank 0 writes it: of another host only that knows.
        if let (Some(out), None) = (&self.out, &options.hosts) {
            residuals::require_writable_file("--out", out)?;
        }
        if *precond != Precond::None && !solver.uses_preconditioner() {
            return Err(format!("--solver {solver} uses no preconditioner, and --precond is {precond}"));
        }
        let is_definite = solver.needs_symmetry() && solver.uses_preconditioner();
        if is_definite && !precond.is_symmetric() {
            return Err(format!(
                "--precond {precond} is not symmetric positive definite, as --solver {solver} needs it"
            ));
        }
        if self.matrix_free && solver.task() == Task::LeastSquares {
            return Err(format!(
                "--solver {solver} needs products with the transpose: not with --matrix-free"
            ));
        }
        if self.format.is_some() && solver.task() == Task::LeastSquares {
            return Err(format!("--solver {solver} stores rows in one way only: not with --format"));
        }
        Ok(())
    }

    fn rank(&self) -> ExitCode {
        match self.solver.task() {
            Task::LeastSquares => self.rank_with::<WithTranspose>(),
            Task::Linear | Task::Eigenvalues if self.matrix_free => self.rank_with::<DistStencil>(),
            Task::Linear | Task::Eigenvalues => self.rank_with::<DistMatrix>(),
        }
    }

    fn complaint(&self, result: &SolveResult) -> Option<String> {
        let is_finite = result.eigenvalues.iter().flatten().all(|Number(value)| value.is_finite())
            && result.relative_residual.is_finite();
        match (result.converged, is_finite) {
            (true, true) => None,
            (true, false) => Some("the answer has a number that is not finite".into()),
            (false, _) => Some(result.reason.clone()),
        }
    }

    fn headline(&self, SolveResult { rows, nonzeros, .. }: &SolveResult) -> String {
        format!("{}, {}", count(*rows as u64, "row"), count(*nonzeros, "nonzero"))
    }

    fn lines(&self, result: &SolveResult) -> Vec<String> {
        let SolveResult { reason, relative_residual, answer_hash, solver, precond, format, .. } = result;
        let hash = &answer_hash[..16.min(answer_hash.len())];
        let preconditioned = if precond == "none" { String::new() } else { format!(" with {precond}") };
        let micros = result.seconds_per_iteration * 1e6;
        let gradient = result
            .relative_gradient
            .map_or(String::new(), |Number(norm)| format!(", of the normal equations {norm:.2e}"));
        let mut lines = vec![
            format!("{reason}, relative residual {relative_residual:.2e}{gradient}, answer {hash}"),
            format!("{solver}{preconditioned}, {micros:.1} us an iteration, products as {format}"),
        ];
        lines.extend(
            result
                .eigenvalues
                .iter()
                .map(|[Number(value), Number(bound)]| format!("eigenvalue {value:.15e} ({bound:.1e})")),
        );
        lines
    }

    fn finish(&self, result: Option<&SolveResult>) -> Result<(), String> {
        match (&self.residuals, result) {
            (Some(path), Some(result)) => residuals::save(path, result),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_an_answer_is_written() {
        let kind = |name: &str| AnswerFile::of(Path::new(name));
        assert_eq!(kind("a/x.mtx"), Some(AnswerFile::MatrixMarket));
        assert_eq!(kind("x.mtx.gz"), Some(AnswerFile::MatrixMarket));
        assert_eq!(kind("x.npy"), Some(AnswerFile::Npy));
        assert_eq!(kind("x.txt"), None);
    }
}
