//! Compares the recovery from killed ranks with ULFM of Open MPI 5 on this machine; see `benches/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_benches::comparison::main::<ft_benches::ulfm::Options>()
}
