//! The processes of a job, as the kernel knows them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};

/// Environment variable that marks all processes of one run.
pub(crate) const MARK: &str = "FT_CAMPAIGN_RUN";

/// What a process is in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A rank or a spare, by its number among the processes of the job, from 1.
    Rank(usize),
    /// It starts ranks for the launcher, on another host.
    Agent,
    /// Parent of an agent and of its ranks.
    Keeper,
    /// Not known yet: it has not executed its program.
    Unborn,
}

/// A descendant of the launcher. The handle is its own, whatever becomes of its number.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) kind: Kind,
    handle: OwnedFd,
}

impl Process {
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        rustix::process::pidfd_send_signal(&self.handle, signal).is_ok()
    }

    pub(crate) fn is_rank(&self) -> bool {
        matches!(self.kind, Kind::Rank(_))
    }

    /// It is there, and has not ended.
    pub(crate) fn lives(&self) -> bool {
        state(self.pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }
}

/// All that the launcher and its agents have started, as far as it was seen.
#[derive(Debug)]
pub(crate) struct Family {
    launcher: Pid,
    known: HashMap<Pid, Process>,
}

impl Family {
    pub(crate) fn new(launcher: Pid) -> Self {
        Self { launcher, known: HashMap::new() }
    }

    /// Looks for processes that are new.
    pub(crate) fn look(&mut self) {
        let mut parents = vec![self.launcher];
        while let Some(parent) = parents.pop() {
            for pid in children(parent) {
                if !self.known.contains_key(&pid)
                    && let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty())
                {
                    self.known.insert(pid, Process { pid, kind: Kind::Unborn, handle });
                }
                let Some(process) = self.known.get_mut(&pid) else { continue };
                // An agent that `ssh` starts becomes its keeper.
                if matches!(process.kind, Kind::Unborn | Kind::Agent) {
                    process.kind = kind(pid);
                }
                if matches!(process.kind, Kind::Agent | Kind::Keeper) {
                    parents.push(pid);
                }
            }
        }
    }

    /// The living ones, in the order of their numbers.
    pub(crate) fn living(&self) -> Vec<&Process> {
        let mut living: Vec<&Process> = self.known.values().filter(|process| process.lives()).collect();
        living.sort_by_key(|process| match process.kind {
            Kind::Rank(number) => number,
            Kind::Agent | Kind::Keeper | Kind::Unborn => usize::MAX,
        });
        living
    }

    /// The highest number of a rank or spare that has been seen so far.
    pub(crate) fn last(&self) -> usize {
        let number = |process: &Process| match process.kind {
            Kind::Rank(number) => number,
            Kind::Agent | Kind::Keeper | Kind::Unborn => 0,
        };
        self.known.values().map(number).max().unwrap_or(0)
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(pid).collect::<Vec<_>>()).collect()
}

fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

fn kind(pid: Pid) -> Kind {
    let words = |file: &str| -> Vec<String> {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    };
    let number = |variable: &String| variable.strip_prefix("FTRUN_PEER=")?.parse().ok();
    let role = words("cmdline").get(1).cloned().unwrap_or_default();
    match (words("environ").iter().find_map(number), role.as_str()) {
        (Some(number), _) => Kind::Rank(number),
        (None, "--as-agent") => Kind::Agent,
        (None, "--as-keeper") => Kind::Keeper,
        (None, _) => Kind::Unborn,
    }
}

/// The letter that the kernel has for what a process does; none if there is none.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Processes that were started by the run with this mark and have not ended.
pub(crate) fn marked(mark: &str) -> Vec<Pid> {
    let mark = format!("{MARK}={mark}").into_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<Pid> = processes
        .filter_map(|entry| pid(entry.file_name().to_str()?))
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        })
        .collect();
    found.sort_by_key(|process| process.as_raw_nonzero());
    found
}

/// Kills all that is left of a run.
pub(crate) fn kill_marked(mark: &str) {
    // Whoever is forked meanwhile is found the next time.
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        for process in left {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

/// What a process is and where its threads wait.
pub(crate) fn describe(process: Pid) -> String {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let folder = Path::new("/proc").join(process.to_string());
    let line = read(&folder.join("cmdline")).replace('\0', " ");
    let line: String = line.chars().take(120).collect();
    let mut text = format!("{process} ({:?}, {}): {line}", kind(process), state(process).unwrap_or('-'));
    for thread in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
        let name = read(&thread.path().join("comm"));
        let stack = read(&thread.path().join("stack"));
        let calls = stack.lines().filter_map(|line| line.split_whitespace().nth(1)?.split('+').next());
        let calls: Vec<&str> = calls.take(5).collect();
        let syscall = read(&thread.path().join("syscall"));
        let syscall = syscall.split_whitespace().next().unwrap_or("?");
        // Writing to a string cannot fail.
        let _ = write!(text, "\n      {}: syscall {syscall}, {}", name.trim(), calls.join(" < "));
    }
    text
}
