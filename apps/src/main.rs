//! The command `ftrun`. All that it does is in the library, which the compiler begins with while it still works on the crates below it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_apps::main()
}
