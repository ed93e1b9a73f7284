//! Compares checkpoints with what sockets and codes take, and with files, on this machine; see `benches/README.md`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_benches::comparison::main::<ft_benches::checkpoints::Options>()
}
