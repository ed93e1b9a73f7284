//! Systems for `ftrun solve`, large enough to be struck: solvers with the preconditioners that suit them.

use crate::random::Random;

const ANY: [&str; 10] = [
    "none",
    "jacobi",
    "ssor:1.2",
    "bjacobi:ic0",
    "bjacobi:ssor=0.9,domains=5",
    "asm:ic0,overlap=1",
    "asm:ssor=1.1,overlap=2",
    "chebyshev:3",
    "amg",
    "amg:threshold=0,smooth=1",
];
/// For solvers that need no symmetry.
const MORE: [&str; 4] = [
    "bjacobi:ilu0",
    "bjacobi:ilu0,domains=3",
    "asm:ilu0,overlap=1,restricted",
    "asm:ssor=1,overlap=2,restricted",
];
const NONE: [&str; 1] = ["none"];

/// A solver, with a problem for it, and what preconditions it.
type Solve = (&'static str, &'static [&'static [&'static str]]);

const SOLVES: [Solve; 13] = [
    ("--poisson 28 --solver cg", &[&ANY]),
    ("--poisson2d 150 --solver single-reduction-cg", &[&ANY]),
    ("--poisson2d 120 --solver minres", &[&ANY]),
    ("--poisson2d 120 --solver bicgstab", &[&ANY, &MORE]),
    ("--poisson 24 --solver gmres --restart 20", &[&ANY, &MORE]),
    ("--poisson 24 --solver fgmres", &[&ANY, &MORE]),
    ("--poisson2d 16 --solver richardson", &[&["jacobi", "ssor", "bjacobi:ic0", "amg"], &MORE]),
    ("--poisson2d 80 --solver chebyshev", &[&ANY]),
    ("--poisson2d 40 --solver cgls", &[&NONE]),
    ("--poisson2d 40 --solver lsqr", &[&NONE]),
    ("--poisson2d 24 --solver power --tol 1e-3", &[&NONE]),
    ("--poisson2d 40 --solver lanczos --eigenvalues 2", &[&NONE]),
    ("--poisson2d 40 --solver lobpcg --eigenvalues 3 --smallest --tol 1e-6", &[&ANY]),
];

/// Arguments of `solve`.
pub(crate) fn choose(random: &mut Random) -> String {
    let (solver, preconditioners) = random.one_of(&SOLVES);
    let names: Vec<&str> = preconditioners.iter().copied().flatten().copied().collect();
    let files = random.one_of(&["", " --out x.npy", " --out x.mtx --residuals residuals.csv"]);
    format!("{solver} --precond {}{files}", random.one_of(&names))
}
