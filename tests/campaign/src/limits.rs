//! Jobs that the system gives less than usual: they work, or end with a line that names the cause.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::denied::{AS_DENIED, CALLS, ERRORS};
use crate::programs::Programs;
use crate::reference::References;
use crate::run::{self, Order};
use crate::workers::{Judged, Work};

/// Time for any of the jobs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the system gives less of.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// A name, what a shell does before, and words of which an error has one.
    Shell(&'static str, &'static str, &'static [&'static str]),
    /// The same in namespaces of its own, by options of `unshare`.
    Apart(&'static str, &'static str, &'static str, &'static [&'static str]),
    /// So many processes of a user who has no others. Root has no such limit.
    Processes(u32),
    /// A call and its error, by position.
    Denied(usize, usize),
}

const FILES: &[&str] = &["open files"];
const MEMORY: &[&str] = &["memory", "Resource temporarily unavailable", "too small"];

const LIMITS: &[Limit] = &[
    Limit::Shell("64 open files", "ulimit -n 64", FILES),
    Limit::Shell("32 open files", "ulimit -n 32", FILES),
    Limit::Shell("16 open files", "ulimit -n 16", FILES),
    Limit::Shell("10 open files", "ulimit -n 10", FILES),
    Limit::Shell("1 GiB of addresses", "ulimit -v 1048576", MEMORY),
    Limit::Shell("200 MiB of addresses", "ulimit -v 204800", MEMORY),
    Limit::Shell("100 MiB of addresses", "ulimit -v 102400", MEMORY),
    Limit::Shell("60 MiB of addresses", "ulimit -v 61440", MEMORY),
    Limit::Shell("30 MiB of addresses", "ulimit -v 30720", MEMORY),
    Limit::Shell("20 MiB of addresses", "ulimit -v 20480", MEMORY),
    Limit::Shell("100 MiB of data", "ulimit -d 102400", MEMORY),
    Limit::Shell("30 MiB of data", "ulimit -d 30720", MEMORY),
    Limit::Shell("10 MiB of data", "ulimit -d 10240", MEMORY),
    Limit::Shell("3 MiB of data", "ulimit -d 3072", MEMORY),
    Limit::Shell("a stack of 256 KiB", "ulimit -s 256", &["stack"]),
    Limit::Shell("no locked memory", "ulimit -l 0", MEMORY),
    Limit::Shell("files of no length", "ulimit -f 0", &["file"]),
    Limit::Shell("no standard input", "exec <&-", &["standard input"]),
    Limit::Shell("a folder that is gone", "mkdir x; cd x; rmdir ../x", &["folder", "directory"]),
    Limit::Processes(60),
    Limit::Processes(25),
    Limit::Processes(12),
    Limit::Processes(5),
    Limit::Processes(2),
    Limit::Apart("no /proc", "-m", "mount -t tmpfs -o ro none /proc", &["/proc"]),
    Limit::Apart("no /dev/shm", "-m", "mount -t tmpfs -o ro none /dev/shm", &["/dev/shm"]),
    Limit::Apart("no /sys", "-m", "mount -t tmpfs -o ro none /sys", &["/sys"]),
    Limit::Apart("no /dev", "-m", "mount -t tmpfs -o ro none /dev", &["/dev"]),
    Limit::Apart("no loopback", "-n", ":", &["127.0.0.1", "loopback", "address", "network"]),
];

/// Jobs: an undisturbed one, and two that lose a rank.
const JOBS: [(&str, &str); 3] = [
    ("undisturbed", ""),
    ("a rank lost", "--kill 2@step=15"),
    (
        "a rank lost, and checkpoints in files",
        "--kill 2@step=15 --every 5 --spill checkpoints --spill-every 1",
    ),
];

/// See the module.
pub(crate) struct Limits<'a> {
    programs: &'a Programs,
    references: References<'a>,
    limits: Vec<Limit>,
}

impl<'a> Limits<'a> {
    /// All that can be tried here; says what cannot.
    pub(crate) fn new(programs: &'a Programs) -> Self {
        let mut limits: Vec<Limit> =
            LIMITS.iter().copied().filter(|limit| is_possible(limit, programs)).collect();
        for (call, (name, _)) in CALLS.iter().enumerate() {
            // Memory is not forbidden but short.
            let errors = if name.starts_with("mmap") { 2..3 } else { 0..2 };
            limits.extend(errors.map(|error| Limit::Denied(call, error)));
        }
        Self { programs, references: References::new(programs), limits }
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> u64 {
        (self.limits.len() * JOBS.len()) as u64
    }
}

/// Tries what a limit needs, and says what is not permitted.
fn is_possible(limit: &Limit, programs: &Programs) -> bool {
    let Ok(folder) = programs.folder() else { return false };
    let (mut command, what) = match limit {
        Limit::Shell(..) | Limit::Denied(..) => return true,
        Limit::Apart(_, options, before, _) => {
            let mut command = Command::new("unshare");
            command.arg(options).args(["sh", "-c", before]);
            (command, format!("unshare {options}"))
        }
        Limit::Processes(_) => {
            let mut command = as_other_user("true");
            command.args([&programs.ftrun, Path::new("--version")]);
            (command, "another user's ftrun".to_owned())
        }
    };
    command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_possible = command.status().is_ok_and(|status| status.success());
    if !is_possible {
        println!("skipped: {} ({what} is not permitted)", limit.name());
    }
    is_possible
}

/// A shell that does something as a user who has no other processes, and becomes a command. The folder in which it is run is given to
/// the user.
fn as_other_user(before: &str) -> Command {
    let then = format!("{before}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    if rustix::process::geteuid().is_root() {
        static USER: AtomicU32 = AtomicU32::new(0);
        let user = FIRST_USER + USER.fetch_add(1, Ordering::Relaxed);
        let become_user = format!("setpriv --reuid {user} --regid {user} --clear-groups");
        command.args(["-c", &format!("chown {user} . && exec {become_user} sh -c '{then}' \"$0\" \"$@\"")]);
    } else {
        // A namespace counts for itself.
        command.args(["-c", &format!("exec unshare -U sh -c '{then}' \"$0\" \"$@\"")]);
    }
    command
}

/// Above all users of a common system.
const FIRST_USER: u32 = 0x5000_0000;

impl Limit {
    fn name(self) -> String {
        match self {
            Self::Shell(name, ..) | Self::Apart(name, ..) => name.to_owned(),
            Self::Processes(count) => format!("{count} processes"),
            Self::Denied(call, error) => format!("{}: {}", CALLS[call].0, ERRORS[error].0),
        }
    }

    /// An error names one of these.
    fn causes(self) -> Vec<&'static str> {
        match self {
            Self::Shell(.., words) | Self::Apart(.., words) => words.to_vec(),
            Self::Processes(_) => vec!["processes", "Resource temporarily unavailable"],
            Self::Denied(call, error) => vec![CALLS[call].0, ERRORS[error].2],
        }
    }

    /// What comes before `ftrun`.
    fn command(self) -> Result<Command, String> {
        let shell = |before: &str| format!("{before}; exec \"$0\" \"$@\"");
        Ok(match self {
            Self::Shell(_, before, _) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(shell(before));
                command
            }
            Self::Apart(_, options, before, _) => {
                let mut command = Command::new("unshare");
                command.arg(options).args(["sh", "-c"]).arg(shell(before));
                command
            }
            // Shells have one of two names for it.
            Self::Processes(count) => {
                as_other_user(&format!("ulimit -u {count} 2>/dev/null || ulimit -p {count} || exit 99"))
            }
            Self::Denied(call, error) => {
                let campaign = std::env::current_exe().map_err(|error| error.to_string())?;
                let mut command = Command::new(campaign);
                command.args([AS_DENIED, CALLS[call].0, ERRORS[error].0]);
                command
            }
        })
    }
}

impl Work for Limits<'_> {
    fn run(&self, number: u64) -> Result<Judged, String> {
        let at = number as usize;
        let limit = self.limits.get(at / JOBS.len()).ok_or_else(|| format!("there is no run {number}"))?;
        let (job, options) = JOBS[at % JOBS.len()];
        let app = App::small();
        let reference = self.references.get(&app, 4)?;
        let folder = self.programs.folder()?;
        let arguments = format!("-n 4 --scheme rs:2+2 --json {options} {}", app.arguments());
        let mut command = limit.command()?;
        command.arg(&self.programs.ftrun).args(arguments.split_whitespace()).current_dir(folder.path());
        let order = Order { deadline: PATIENCE, ..Order::undisturbed(command) };
        let outcome = run::run(order).map_err(|error| format!("run {number}: {error}"))?;

        let mut findings = Vec::new();
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let answer = app.answer(&report["result"]);
        if let Some(hang) = &outcome.hang {
            findings.push(("hang", hang.clone()));
        } else if outcome.status == 0 && answer != reference.answer {
            findings.push(("wrong answer", format!("{answer:?}, not {:?}", reference.answer)));
        } else if outcome.status != 0 {
            let causes = limit.causes();
            // What the loader cannot do before the program begins it says itself.
            let is_loader = outcome.status == 127;
            let loader = is_loader.then_some("error while loading shared libraries");
            let named = |line: &str| causes.iter().chain(&loader).any(|cause| line.contains(cause));
            if !outcome.stderr.lines().any(named) {
                findings.push(("cause not named", format!("no line has one of {causes:?}")));
            }
        }
        if outcome.stderr.lines().any(|line| line.contains(" panicked at ") && !is_before_main(line)) {
            findings.push(("panic", "a panic".to_owned()));
        }
        if !outcome.left.is_empty() {
            findings.push(("left behind", format!("left behind: {}", outcome.left.join("\n    "))));
        }
        let again = format!("  again: campaign --limits --only {number}\n");
        let account = format!("{again}  {}, {job}: ftrun {arguments}\n{outcome}", limit.name());
        let labels = vec![("job", job.to_owned()), ("limit", limit.name())];
        Ok(Judged { labels, status: outcome.status, findings, account })
    }
}

/// Is this a panic of the standard library's start, which the program can neither avoid nor catch? It asks for an alternative stack before `main`
/// begins, and for each thread, and takes it for a defect that the system has no memory for one.
fn is_before_main(line: &str) -> bool {
    line.contains("/library/std/src/sys/pal/unix/stack_overflow.rs:")
}
