//! What the operating system refuses because of a limit, said with the limit.

use std::error::Error;
use std::io;
use std::sync::{Arc, Once};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use rustix::io::Errno;

/// What can run short, what `ulimit` calls it, and how many of its units are one of the shell's.
static MEMORY: [(Resource, &str, &str, u64); 3] = [
    (Resource::RLIMIT_AS, "address space", "KiB (ulimit -v)", 1024),
    (Resource::RLIMIT_DATA, "data", "KiB (ulimit -d)", 1024),
    (Resource::RLIMIT_NPROC, "processes of this user", "(ulimit -u)", 1),
];
static FILES: [(Resource, &str, &str, u64); 1] = [(Resource::RLIMIT_NOFILE, "open files", "(ulimit -n)", 1)];
static FILE_SIZE: [(Resource, &str, &str, u64); 1] =
    [(Resource::RLIMIT_FSIZE, "file size", "bytes (ulimit -f)", 1)];

/// The error and, if one of the limits of this process may be its cause or that of one of its
/// sources, these limits.
pub fn explain(error: &(dyn Error + 'static)) -> String {
    let suspects = match code(error).map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::NOMEM) => &MEMORY[..],
        Some(Errno::MFILE) => &FILES[..],
        Some(Errno::FBIG) => &FILE_SIZE[..],
        _ => &[],
    };
    let limits = in_force(suspects, of);
    if limits.is_empty() { error.to_string() } else { format!("{error}; limits here: {limits}") }
}

/// The code of the operating system in an error or the nearest of its sources that has one.
fn code(error: &(dyn Error + 'static)) -> Option<i32> {
    let own = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    own.or_else(|| code(error.source()?))
}

/// The limit of memory that processes started from here inherit; empty if there is none.
pub fn of_memory() -> String {
    in_force(&MEMORY[..2], of)
}

/// The limit of open files; empty if there is none.
pub fn of_files() -> String {
    in_force(&FILES, of)
}

/// Lets this process and those that it starts have as many open files as the system allows them: a launcher has about four
/// for each rank of its host.
pub fn raise_open_files() {
    // If it cannot be had, what there is has to do.
    let _ = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
}

/// From now on a write to a file that has reached the size limit fails with an error. By default
/// the operating system ends the process instead (SIGXFSZ).
///
/// The signal is caught and not ignored, because `exec` resets handlers only: a program that this
/// process starts gets the default action.
pub fn report_oversized_files() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| catch(signal_hook::consts::SIGXFSZ));
}

/// In addition to [`report_oversized_files`], a write to a pipe or a socket without a reader fails
/// with an error (SIGPIPE).
pub fn report_failed_writes() {
    static ONCE: Once = Once::new();
    report_oversized_files();
    ONCE.call_once(|| catch(signal_hook::consts::SIGPIPE));
}

/// If the operating system refuses, the default action stays.
fn catch(signal: i32) {
    let _ = signal_hook::flag::register(signal, Arc::default());
}

/// How much of something this process may have; none if that is as much as it likes, or the operating system does not tell.
pub fn of(resource: Resource) -> Option<u64> {
    getrlimit(resource).ok().map(|(soft, _)| soft).filter(|soft| *soft != RLIM_INFINITY)
}

fn in_force(suspects: &[(Resource, &str, &str, u64)], limit: impl Fn(Resource) -> Option<u64>) -> String {
    let known = suspects.iter().filter_map(|(resource, what, unit, units)| {
        let most = limit(*resource)? / units;
        Some(format!("{what} {most} {unit}"))
    });
    known.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The variable that makes this test binary run one test as a process of its own, with a limit.
    const LIMITED: &str = "FT_COMM_TEST_LIMITED";

    #[test]
    fn write_beyond_the_size_limit_fails_and_children_keep_the_default_action() {
        let name = "limits::tests::write_beyond_the_size_limit_fails_and_children_keep_the_default_action";
        if std::env::var_os(LIMITED).is_none() {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let output = command.args(["--exact", name]).env(LIMITED, "1").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            return;
        }
        report_failed_writes();
        report_failed_writes();
        let folder = tempfile::tempdir().unwrap();
        setrlimit(Resource::RLIMIT_FSIZE, 100, 100).unwrap();
        let error = std::fs::write(folder.path().join("file"), [1; 200]).unwrap_err();
        assert!(explain(&error).ends_with("limits here: file size 100 bytes (ulimit -f)"), "{error}");
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert_eq!(io::Write::write(&mut writer, b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        let output = Command::new("/bin/cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        for signal in [signal_hook::consts::SIGXFSZ, signal_hook::consts::SIGPIPE] {
            assert_eq!(mask & (1 << (signal - 1)), 0, "signal {signal} is ignored: {mask:x}");
        }
    }

    #[test]
    fn limit_behind_a_source_is_named() {
        #[derive(Debug, thiserror::Error)]
        #[error("not written: {source}")]
        struct Outer {
            source: io::Error,
        }
        let outer = Outer { source: io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()) };
        let text = explain(&outer);
        assert!(text.starts_with("not written: ") && text.contains("(ulimit -n)"), "{text}");
    }

    #[test]
    fn a_limit_is_named_where_it_can_be_the_cause() {
        let limit = |resource| (resource == Resource::RLIMIT_AS).then_some(6000 << 10);
        assert_eq!(in_force(&MEMORY, limit), "address space 6000 KiB (ulimit -v)");
        assert_eq!(in_force(&FILES, limit), "");
        let files = explain(&io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        assert!(files.contains("os error 24") && files.contains("(ulimit -n)"), "{files}");
        let other = io::Error::from_raw_os_error(Errno::NOENT.raw_os_error());
        assert_eq!(explain(&other), other.to_string());
    }
}
