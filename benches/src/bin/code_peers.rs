//! Compares the erasure codes with Intel's ISA-L on this machine; see `benches/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_benches::comparison::main::<ft_benches::codes::Options>()
}
