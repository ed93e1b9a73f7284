//! Compares solvers with those of PETSc on this machine; see `benches/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_benches::comparison::main::<ft_benches::solvers::Options>()
}
