//! What HPCG checks before it counts: that matrix and preconditioner are symmetric, and that the solver takes the few iterations
//! on a matrix with a dominant diagonal that theory allows.
//!
//! Source: Dongarra, Heroux, Luszczek: HPCG benchmark, Tech. Rep. UT-EECS-15-736, 2015, section 4.

use ft_checkpoint::Protect;
use ft_comm::Communicator;
use ft_linalg::solver::norm2;
use ft_linalg::{
    Cg, CsrRows, DistMatrix, Identity, LinalgError, LinearOperator, Preconditioner, Solver, Step,
    StopCriteria, System, Workspace, rhs,
};
use serde::{Deserialize, Serialize};

use super::multigrid::Multigrid;

/// Iterations that are allowed on the dominant diagonal, without and with the preconditioner.
const PLAIN_MAX: u64 = 12;
const PRECONDITIONED_MAX: u64 = 2;
/// The larger of the sums of absolute values of a row.
const NORM_OF_A: f64 = 52.0;

/// What the checks have found.
#[derive(Clone, Debug, Default, PartialEq, Protect, Serialize, Deserialize)]
pub(super) struct Checks {
    /// `|x.Ay - y.Ax|` over what rounding allows; 1 or less is right.
    #[serde(with = "crate::number")]
    #[protect(constant)]
    pub(super) asymmetry: f64,
    /// The same of the preconditioner.
    #[serde(with = "crate::number")]
    #[protect(constant)]
    pub(super) asymmetry_of_preconditioner: f64,
    /// Iterations on the dominant diagonal.
    #[protect(constant)]
    pub(super) plain_iterations: u64,
    /// With the preconditioner.
    #[protect(constant)]
    pub(super) preconditioned_iterations: u64,
}

impl Checks {
    /// Does them. Collective.
    pub(super) fn new(
        a: &DistMatrix,
        side: usize,
        grids: &Multigrid,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Self, LinalgError> {
        let cycle = grids.with(a);
        let product = |x: &[f64], y: &mut [f64], work: &mut Workspace| a.apply(x, y, comm, work);
        let preconditioned = |x: &[f64], y: &mut [f64], work: &mut Workspace| cycle.apply(x, y, comm, work);
        let dominant = dominant(a, comm)?;
        let of_dominant = Multigrid::new(&dominant, side, comm)?;
        let on_dominant = |m: &dyn Preconditioner, work: &mut Workspace| iterations(&dominant, m, comm, work);
        Ok(Self {
            asymmetry: asymmetry(a, product, comm, work)?,
            asymmetry_of_preconditioner: asymmetry(a, preconditioned, comm, work)?,
            plain_iterations: on_dominant(&Identity, work)?,
            preconditioned_iterations: on_dominant(&of_dominant.with(&dominant), work)?,
        })
    }

    /// What is wrong, if something is.
    pub(super) fn complaint(&self) -> Option<String> {
        let Self { asymmetry, asymmetry_of_preconditioner, plain_iterations, preconditioned_iterations } =
            self;
        let is_fine = |asymmetry: f64| asymmetry <= 1.0;
        if !is_fine(*asymmetry) {
            return Some(format!("the matrix is not symmetric: {asymmetry:.1} times what rounding allows"));
        }
        if !is_fine(*asymmetry_of_preconditioner) {
            let times = asymmetry_of_preconditioner;
            return Some(format!(
                "the preconditioner is not symmetric: {times:.1} times what rounding allows"
            ));
        }
        let is_slow = *plain_iterations > PLAIN_MAX || *preconditioned_iterations > PRECONDITIONED_MAX;
        is_slow.then(|| {
            format!(
                "{plain_iterations} iterations on a dominant diagonal, {preconditioned_iterations} with the preconditioner; \
                 {PLAIN_MAX} and {PRECONDITIONED_MAX} are allowed"
            )
        })
    }
}

/// `|x.f(y) - y.f(x)|` over `2 |x| |A| |y| eps`, for two vectors without a pattern.
fn asymmetry(
    a: &DistMatrix,
    f: impl Fn(&[f64], &mut [f64], &mut Workspace) -> Result<(), LinalgError>,
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<f64, LinalgError> {
    let part = a.part();
    let x = rhs::scattered(part).into_local();
    let y: Vec<f64> = x.iter().map(|value| (1000.0 * value).fract()).collect();
    let (mut of_x, mut of_y) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    f(&x, &mut of_x, work)?;
    f(&y, &mut of_y, work)?;
    let [one, other] = work.dots(part, [(&x, &of_y), (&y, &of_x)], comm)?;
    let norms = norm2(part, &x, comm)? * norm2(part, &y, comm)?;
    Ok((one - other).abs() / (2.0 * NORM_OF_A * norms * f64::EPSILON))
}

/// `a` with 10^6 on the diagonal, and 2, 3, ... 10 times that in the first nine rows.
fn dominant(a: &DistMatrix, comm: &Communicator) -> Result<DistMatrix, LinalgError> {
    let (part, rows) = (a.part(), a.rows());
    let first = part.range().start;
    let value = |row: usize| if row < 9 { (row + 2) as f64 * 1e6 } else { 1e6 };
    let (mut starts, mut cols, mut vals) = (vec![0], vec![], vec![]);
    for (row, (at, values)) in rows.iter().enumerate() {
        let row = first + row;
        let entry = |(&col, &val): (&u64, &f64)| if col == row as u64 { value(row) } else { val };
        vals.extend(at.iter().zip(values).map(entry));
        cols.extend_from_slice(at);
        starts.push(cols.len());
    }
    DistMatrix::new(part.clone(), CsrRows::new(starts, cols, vals, part.n())?, comm)
}

/// Iterations to a residual of 1e-12; the right-hand side is that of HPCG, the diagonal.
fn iterations(
    a: &DistMatrix,
    m: &dyn Preconditioner,
    comm: &Communicator,
    work: &mut Workspace,
) -> Result<u64, LinalgError> {
    let b = a.diagonal();
    let stop = StopCriteria { rtol: 1e-12, iterations_max: 50, ..StopCriteria::default() };
    let system = System { a, m, b: &b };
    let mut cg = Cg::start(&stop, &system, &vec![0.0; b.len()], comm, work)?;
    loop {
        if let Step::Done(reason) = cg.step(&system, comm, work)? {
            return Ok(reason.iterations());
        }
    }
}
