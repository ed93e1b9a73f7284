//! Holds `--interval auto` under random failures against the model, and prints a table in Markdown.

use std::process::ExitCode;

fn main() -> ExitCode {
    ft_benches::intervals::main()
}
