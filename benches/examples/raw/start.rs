//! Starting the ranks: this program again, once for each. Each says where it listens and hears where all do.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::Options;

/// Starts all ranks, prints what rank 0 prints, and waits for their end.
pub(super) fn ranks(options: &Options) -> io::Result<()> {
    if !options.ranks.is_power_of_two() {
        return Err(io::Error::other(format!("{} ranks are no power of two", options.ranks)));
    }
    let program = std::env::current_exe()?;
    let start = |rank: usize| {
        Command::new(&program)
            .args(std::env::args_os().skip(1))
            .args(["--rank", &rank.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    let mut children: Vec<Child> = (0..options.ranks).map(start).collect::<Result<_, _>>()?;
    // A rank that fails closes its sockets, which ends the others; so all are waited for in any case.
    let talked = talk(&mut children);
    let mut failed = 0;
    for child in &mut children {
        failed += usize::from(!child.wait()?.success());
    }
    match failed {
        0 => talked,
        _ => Err(io::Error::other(format!("{failed} of {} ranks failed", options.ranks))),
    }
}

fn talk(children: &mut [Child]) -> io::Result<()> {
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
    for line in outputs.swap_remove(0).lines() {
        println!("{}", line?);
    }
    Ok(())
}
