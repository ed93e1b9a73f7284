//! What the operating system refuses because of a limit, said with the limit.

use std::io::Error;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What can run short, what `ulimit` calls it, and how many of its units are one of the shell's.
static MEMORY: [(Resource, &str, &str, u64); 3] = [
    (Resource::As, "address space", "KiB (ulimit -v)", 1024),
    (Resource::Data, "data", "KiB (ulimit -d)", 1024),
    (Resource::Nproc, "processes of this user", "(ulimit -u)", 1),
];
static FILES: [(Resource, &str, &str, u64); 1] = [(Resource::Nofile, "open files", "(ulimit -n)", 1)];

/// The error and, if one of the limits of this process may be its cause, these limits.
pub(crate) fn explain(error: &Error) -> String {
    let suspects = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::NOMEM) => &MEMORY[..],
        Some(Errno::MFILE) => &FILES[..],
        _ => &[],
    };
    let limits = in_force(suspects, getrlimit);
    if limits.is_empty() { error.to_string() } else { format!("{error}; limits here: {limits}") }
}

/// The limit of memory that processes started from here inherit; empty if there is none.
pub(crate) fn of_memory() -> String {
    in_force(&MEMORY[..2], getrlimit)
}

/// The limit of open files; empty if there is none.
pub(crate) fn of_files() -> String {
    in_force(&FILES, getrlimit)
}

/// Lets this process and those that it starts have as many open files as the system allows them: a launcher has about four
/// for each rank of its host.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be had, what there is has to do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn in_force(suspects: &[(Resource, &str, &str, u64)], limit: impl Fn(Resource) -> Rlimit) -> String {
    let known = suspects.iter().filter_map(|(resource, what, unit, units)| {
        let most = limit(*resource).current? / units;
        Some(format!("{what} {most} {unit}"))
    });
    known.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_where_it_can_be_the_cause() {
        let limit = |resource| Rlimit {
            current: matches!(resource, Resource::As).then_some(6000 << 10),
            maximum: None,
        };
        assert_eq!(in_force(&MEMORY, limit), "address space 6000 KiB (ulimit -v)");
        assert_eq!(in_force(&FILES, limit), "");
        let files = explain(&Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        assert!(files.contains("os error 24") && files.contains("(ulimit -n)"), "{files}");
        let other = Error::from_raw_os_error(Errno::NOENT.raw_os_error());
        assert_eq!(explain(&other), other.to_string());
    }
}
