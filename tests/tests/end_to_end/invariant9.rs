//! Protection uses no file: system calls are watched from outside while a rank is killed and rebuilt.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::common::{Run, built};

/// A call that opens a file, as strace writes it.
struct Opened<'a> {
    line: &'a str,
    path: &'a str,
    failed: bool,
    for_writing: bool,
}

impl<'a> Opened<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let calls = ["open(", "openat(", "openat2(", "creat(", "memfd_create("];
        if !calls.iter().any(|call| line.contains(call)) {
            return None;
        }
        let path = line.split('"').nth(1)?;
        let flags = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE", "creat(", "memfd_create("];
        let for_writing = flags.iter().any(|flag| line.contains(flag));
        Some(Self { line, path, failed: line.contains(" = -1 "), for_writing })
    }

    /// Neither on a disk nor in memory: writing there keeps nothing.
    fn is_device(&self) -> bool {
        // A lifeline is one word that the kernel changes when its process dies; a ring has messages on their way, and ends with their link.
        let kernel = ["/dev/null", "/dev/tty", "ftrun-lifeline", "ftrun-ring"];
        kernel.contains(&self.path) || self.path.starts_with("/proc/")
    }

    /// What a process needs to start.
    fn is_program(&self) -> bool {
        let system = ["/proc/", "/sys/", "/etc/ld.so."].iter().any(|start| self.path.starts_with(start));
        let name = Path::new(self.path).file_name().unwrap_or_default().to_string_lossy();
        system || name.ends_with(".so") || name.contains(".so.") || name == "ftrun" || self.is_device()
    }
}

fn strace() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join("strace")).find(|file| file.is_file());
    let Some(found) = found else {
        eprintln!("skipped: there is no strace");
        return None;
    };
    let outcome = Run::program(&found, "-o /dev/null -f /bin/true").finish();
    if outcome.status != 0 {
        eprintln!("skipped: strace may not watch: {outcome}");
        return None;
    }
    Some(found)
}

#[test]
fn no_file_is_written_and_none_but_the_program_is_read_for_a_rebuild() {
    let Some(strace) = strace() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (matrix, trace) = (folder.path().join("diagonal.mtx"), folder.path().join("trace"));
    let mut text = "%%MatrixMarket matrix coordinate real symmetric\n64 64 64\n".to_owned();
    (1..=64).for_each(|row| writeln!(text, "{row} {row} {row}").unwrap());
    std::fs::write(&matrix, text).unwrap();

    let calls = "trace=open,openat,openat2,creat,memfd_create";
    let run = Run::program(&strace, "-f -qq -s 300 -o").arg(&trace).arg("-e").arg(calls);
    let run = run.arg(built().join("ftrun")).arg("-n").arg("4").arg("--json");
    // Whoever is watched is slow, and nobody is to be lost for that.
    let run = run.arg("--heartbeat-timeout").arg("20000");
    let run = run.arg("--scheme").arg("rs:2+2").arg("--kill").arg("1,2@step=15").arg("cg").arg("--matrix");
    let outcome = run.arg(&matrix).finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");

    let trace = String::from_utf8_lossy(&std::fs::read(trace).unwrap()).into_owned();
    let opened: Vec<Opened<'_>> = trace.lines().filter_map(Opened::read).collect();
    // The test sees what it should see: the matrix is read, and replacements start.
    assert!(opened.iter().any(|call| call.path == matrix.to_str().unwrap()), "{trace}");
    let written: Vec<&str> =
        opened.iter().filter(|call| call.for_writing && !call.is_device()).map(|call| call.line).collect();
    assert!(written.is_empty(), "{written:#?}");

    let (before, after) = trace.split_once("killed by SIGKILL").expect("a rank was killed");
    assert!(before.contains(matrix.to_str().unwrap()));
    let opened: Vec<Opened<'_>> = after.lines().filter_map(Opened::read).collect();
    assert!(opened.iter().any(|call| call.path.contains("libc.so")), "{after}");
    let foreign: Vec<&str> =
        opened.iter().filter(|call| !call.failed && !call.is_program()).map(|call| call.line).collect();
    assert!(foreign.is_empty(), "opened after the death: {foreign:#?}");
}

/// A bundled app looks at its input once in the launcher and once on each rank; a replacement has it from the others.
#[test]
fn a_replacement_reads_no_model() {
    let Some(strace) = strace() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (model, trace) = (folder.path().join("model.bin"), folder.path().join("trace"));
    std::fs::write(&model, 2000f32.to_le_bytes().repeat(60 * 40)).unwrap();

    let run = Run::program(&strace, "-f -qq -s 300 -e trace=open,openat,openat2 -o").arg(&trace);
    let run = run.arg(built().join("ftrun")).arg("-n").arg("3").arg("--json").arg("--kill").arg("1@step=2");
    let run = run.arg("--heartbeat-timeout").arg("20000");
    let run = run.arg("seismic").arg("--model").arg(&model).arg("--out").arg(folder.path().join("out"));
    let options = "--shape 60x40 --spacing 10 --time 0.5 --shots 3 --slice 1";
    let outcome = options.split_whitespace().fold(run, Run::arg).finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");

    let trace = String::from_utf8_lossy(&std::fs::read(trace).unwrap()).into_owned();
    let reads = |trace: &str| {
        let opened = trace.lines().filter_map(Opened::read);
        opened.filter(|call| call.path == model.to_str().unwrap()).count()
    };
    let (before, after) = trace.split_once("killed by SIGKILL").expect("a rank was killed");
    assert_eq!((reads(before), reads(after)), (4, 0), "{trace}");
}
