//! Starting the ranks: this program again, once for each. Each says where it listens and hears where all do.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

/// Starts this program for each of `ranks` ranks, with `arguments` and `--rank`; `hear` gets what they print after they are
/// connected, rank by rank. Waits for their end.
///
/// What a rank prints before it is asked must fit into a pipe.
///
/// # Errors
/// One cannot be started or has failed.
pub fn start(
    ranks: usize,
    arguments: &[OsString],
    environment: &[(&str, &str)],
    hear: &mut dyn FnMut(usize, &str),
) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let start = |rank: usize| {
        Command::new(&program)
            .args(arguments)
            .args(["--rank", &rank.to_string()])
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    let mut children: Vec<Child> = (0..ranks).map(start).collect::<Result<_, _>>()?;
    // A rank that fails closes its sockets, which ends the others; so all are waited for in any case.
    let talked = talk(&mut children, hear);
    let mut failed = 0;
    for child in &mut children {
        failed += usize::from(!child.wait()?.success());
    }
    match failed {
        0 => talked,
        _ => Err(io::Error::other(format!("{failed} of {ranks} ranks failed"))),
    }
}

fn talk(children: &mut [Child], hear: &mut dyn FnMut(usize, &str)) -> io::Result<()> {
    let mut addresses = String::new();
    let mut outputs = Vec::new();
    for child in &mut *children {
        let mut output = BufReader::new(child.stdout.take().expect("asked for"));
        output.read_line(&mut addresses)?;
        outputs.push(output);
    }
    for child in &mut *children {
        child.stdin.take().expect("asked for").write_all(addresses.as_bytes())?;
    }
    for (rank, output) in outputs.into_iter().enumerate() {
        for line in output.lines() {
            hear(rank, &line?);
        }
    }
    Ok(())
}
