//! Programs that one call of the system is denied, by a filter of the kernel (seccomp) that their children inherit.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// First argument of the campaign when it is to become such a program: the call, the error and a command follow.
pub(crate) const AS_DENIED: &str = "--as-denied";

/// Memory in one piece that is too much, for the call that stands for it.
const HUGE: u64 = 8 << 20;

/// Calls that can be denied. What every process needs to start at all is not among them.
pub(crate) const CALLS: &[(&str, i64)] = &[
    ("accept4", libc::SYS_accept4),
    ("bind", libc::SYS_bind),
    ("clock_nanosleep", libc::SYS_clock_nanosleep),
    ("clone3", libc::SYS_clone3),
    ("connect", libc::SYS_connect),
    ("epoll_create1", libc::SYS_epoll_create1),
    ("epoll_ctl", libc::SYS_epoll_ctl),
    ("eventfd2", libc::SYS_eventfd2),
    ("fcntl", libc::SYS_fcntl),
    ("ftruncate", libc::SYS_ftruncate),
    ("futex_waitv", libc::SYS_futex_waitv),
    ("get_robust_list", libc::SYS_get_robust_list),
    ("getdents64", libc::SYS_getdents64),
    ("getpeername", libc::SYS_getpeername),
    ("getpgid", libc::SYS_getpgid),
    ("getrandom", libc::SYS_getrandom),
    ("getsockname", libc::SYS_getsockname),
    ("getsockopt", libc::SYS_getsockopt),
    ("ioctl", libc::SYS_ioctl),
    ("kill", libc::SYS_kill),
    ("listen", libc::SYS_listen),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("mmap of 8 MiB or more", libc::SYS_mmap),
    ("mremap", libc::SYS_mremap),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
    ("pipe2", libc::SYS_pipe2),
    ("ppoll", libc::SYS_ppoll),
    ("prctl", libc::SYS_prctl),
    ("pread64", libc::SYS_pread64),
    ("prlimit64", libc::SYS_prlimit64),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("readlink", libc::SYS_readlink),
    ("recvmsg", libc::SYS_recvmsg),
    ("rseq", libc::SYS_rseq),
    ("sched_getaffinity", libc::SYS_sched_getaffinity),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("sched_yield", libc::SYS_sched_yield),
    ("sendmsg", libc::SYS_sendmsg),
    ("sendto", libc::SYS_sendto),
    ("set_robust_list", libc::SYS_set_robust_list),
    ("setpgid", libc::SYS_setpgid),
    ("setsockopt", libc::SYS_setsockopt),
    ("shutdown", libc::SYS_shutdown),
    ("sigaltstack", libc::SYS_sigaltstack),
    ("socket", libc::SYS_socket),
    ("socketpair", libc::SYS_socketpair),
    ("statx", libc::SYS_statx),
    ("tgkill", libc::SYS_tgkill),
    ("waitid", libc::SYS_waitid),
    ("wait4", libc::SYS_wait4),
    ("writev", libc::SYS_writev),
];

/// The errors that a denied call gives, and what people are told of them.
pub(crate) const ERRORS: [(&str, Errno, &str); 3] = [
    ("EPERM", Errno::PERM, "Operation not permitted"),
    ("ENOSYS", Errno::NOSYS, "Function not implemented"),
    ("ENOMEM", Errno::NOMEM, "Cannot allocate memory"),
];

/// Becomes the command, which is denied the call.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let why = match arguments {
        [call, error, program, rest @ ..] => match deny(call, error) {
            Ok(()) => format!("{}: {}", program.display(), Command::new(program).args(rest).exec()),
            Err(why) => why,
        },
        _ => format!("{AS_DENIED}: CALL ERROR COMMAND..."),
    };
    eprintln!("campaign: {why}");
    ExitCode::from(2)
}

fn deny(call: &OsString, error: &OsString) -> Result<(), String> {
    let (_, number) = CALLS.iter().find(|(name, _)| call == name).ok_or("no such call")?;
    let (_, errno, _) = ERRORS.iter().find(|(name, ..)| error == name).ok_or("no such error")?;
    apply(*number, *errno).map_err(|error| format!("the kernel takes no filter: {error}"))
}

fn apply(number: i64, errno: Errno) -> Result<(), Box<dyn std::error::Error>> {
    let rules = match number {
        libc::SYS_mmap => {
            let huge = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ge, HUGE)?;
            vec![SeccompRule::new(vec![huge])?]
        }
        _ => vec![],
    };
    let error = SeccompAction::Errno(errno.raw_os_error().unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    let rules = BTreeMap::from([(number, rules)]);
    let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, error, machine)?.try_into()?;
    Ok(seccompiler::apply_filter(&filter)?)
}
