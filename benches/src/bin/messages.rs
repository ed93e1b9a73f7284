//! Compares the messages of `ft-comm` with raw sockets, MPICH and Open MPI on this machine; see `benches/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_benches::comparison::main::<ft_benches::messages::Options>()
}
