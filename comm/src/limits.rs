//! What the operating system refuses because of a limit, said with the limit.

use std::io::Error;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use rustix::io::Errno;

/// What can run short, what `ulimit` calls it, and how many of its units are one of the shell's.
static MEMORY: [(Resource, &str, &str, u64); 3] = [
    (Resource::RLIMIT_AS, "address space", "KiB (ulimit -v)", 1024),
    (Resource::RLIMIT_DATA, "data", "KiB (ulimit -d)", 1024),
    (Resource::RLIMIT_NPROC, "processes of this user", "(ulimit -u)", 1),
];
static FILES: [(Resource, &str, &str, u64); 1] = [(Resource::RLIMIT_NOFILE, "open files", "(ulimit -n)", 1)];

/// The error and, if one of the limits of this process may be its cause, these limits.
pub fn explain(error: &Error) -> String {
    let suspects = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::NOMEM) => &MEMORY[..],
        Some(Errno::MFILE) => &FILES[..],
        _ => &[],
    };
    let limits = in_force(suspects, of);
    if limits.is_empty() { error.to_string() } else { format!("{error}; limits here: {limits}") }
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
    use super::*;

    #[test]
    fn a_limit_is_named_where_it_can_be_the_cause() {
        let limit = |resource| (resource == Resource::RLIMIT_AS).then_some(6000 << 10);
        assert_eq!(in_force(&MEMORY, limit), "address space 6000 KiB (ulimit -v)");
        assert_eq!(in_force(&FILES, limit), "");
        let files = explain(&Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        assert!(files.contains("os error 24") && files.contains("(ulimit -n)"), "{files}");
        let other = Error::from_raw_os_error(Errno::NOENT.raw_os_error());
        assert_eq!(explain(&other), other.to_string());
    }
}
