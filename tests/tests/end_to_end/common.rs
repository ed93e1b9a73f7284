//! Running jobs: programs that are built once, hard time limits, reports, and the search for what was left.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde_json::Value;

/// The system that most tests solve: 4096 rows, 41 iterations.
pub(crate) const POISSON: &str = "cg --poisson 16";
/// A job that is still at work when a test has done its worst to it.
pub(crate) const LONG: &str = "cg --poisson 64 --tol 1e-200";
/// For jobs of which is said exactly who is lost: nobody is lost because it had no core for a while.
pub(crate) const PATIENT: &str = "--heartbeat-timeout 20000";

/// Environment variable that marks all processes of one run.
const MARK: &str = "FT_TESTS_JOB";

/// Where the programs are, once they are built: the folder of the profile that this test was built with.
pub(crate) fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap();
        let profile = match folder.file_name().and_then(OsStr::to_str).unwrap() {
            "debug" => "dev",
            profile => profile,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--quiet", "--bins", "--examples", "--profile", profile, "--target-dir"])
            .arg(folder.parent().unwrap())
            // With the last two packages the libraries are those that the tests of all packages have built: what these need for tests has
            // features that others share.
            .args([
                "-p",
                "ft-apps",
                "-p",
                "ft-comm",
                "-p",
                "ft-checkpoint",
                "-p",
                "ft-linalg",
                "-p",
                "ft-tests",
                "-p",
                "ft-proto",
            ])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
            .output()
            .expect("cargo can be started");
        assert!(output.status.success(), "cargo build: {}", String::from_utf8_lossy(&output.stderr));
        folder.to_owned()
    })
}

/// The path of an example.
pub(crate) fn example(name: &str) -> PathBuf {
    built().join("examples").join(name)
}

/// A real matrix (bcsstk16), where the test data are.
pub(crate) fn real_matrix() -> Option<PathBuf> {
    let data = std::env::var_os("FT_DATA").map(PathBuf::from);
    let data =
        data.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/matrices"));
    let file = data.join("bcsstk16.mtx.gz");
    if !file.is_file() {
        eprintln!("skipped: no {}; FT_DATA names another folder", file.display());
        return None;
    }
    Some(file)
}

/// A program that is about to be started.
pub(crate) struct Run {
    command: Command,
    stdin: Vec<u8>,
    stdin_stays_open: bool,
    stdout_is_held: bool,
    mark: String,
    limit: Duration,
    text: String,
}

impl Run {
    /// `ftrun` with arguments that are separated by blanks, behind those that `FT_FTRUN_OPTIONS` has for every job.
    pub(crate) fn ftrun(arguments: &str) -> Self {
        let more = std::env::var("FT_FTRUN_OPTIONS").unwrap_or_default();
        Self::program(&built().join("ftrun"), &format!("{more} {arguments}"))
    }

    /// Any program, likewise.
    pub(crate) fn program(path: &Path, arguments: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(path);
        command.env(MARK, &mark).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (stdin, limit) = (Vec::new(), Duration::from_secs(30));
        let (stdin_stays_open, stdout_is_held) = (false, false);
        let run = Self { command, stdin, stdin_stays_open, stdout_is_held, mark, limit, text: name };
        arguments.split_whitespace().fold(run, Self::arg)
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(&argument);
        self.text = format!("{} {}", self.text, argument.as_ref().display());
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Whatever carries the messages of all other tests (`FTRUN_TRANSPORT`), this is about what does without a word.
    pub(crate) fn usual_transport(mut self) -> Self {
        self.command.env_remove("FTRUN_TRANSPORT");
        self
    }

    pub(crate) fn stdin(self, stdin: Vec<u8>) -> Self {
        Self { stdin, ..self }
    }

    /// Its standard input is empty and ends when [`Running::end_stdin`] says so.
    pub(crate) fn open_stdin(self) -> Self {
        Self { stdin_stays_open: true, ..self }
    }

    /// Nobody reads its standard output before [`Running::read_stdout`].
    pub(crate) fn held_stdout(self) -> Self {
        Self { stdout_is_held: true, ..self }
    }

    /// Its standard output goes there.
    pub(crate) fn stdout_to(mut self, there: impl Into<Stdio>) -> Self {
        self.command.stdout(there);
        self
    }

    /// Its standard error goes there.
    pub(crate) fn stderr_to(mut self, there: impl Into<Stdio>) -> Self {
        self.command.stderr(there);
        self
    }

    pub(crate) fn limit(self, seconds: u64) -> Self {
        Self { limit: Duration::from_secs(seconds), ..self }
    }

    pub(crate) fn start(self) -> Running {
        let Self { mut command, stdin, stdin_stays_open, stdout_is_held, mark, limit, text } = self;
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{text}: {error}"));
        let (sender, news) = channel();
        // The end of this one's handles; streams that go elsewhere are at their end.
        drop(command);
        let mut closed = 0;
        let mut held_stdout = None;
        match child.stdout.take() {
            Some(stdout) if stdout_is_held => held_stdout = Some((stdout, sender.clone())),
            Some(stdout) => read_all(stdout, sender.clone(), News::Stdout),
            None => closed += 1,
        }
        match child.stderr.take() {
            Some(stderr) => read_all(stderr, sender.clone(), News::Stderr),
            None => closed += 1,
        }
        let mut input = child.stdin.take().unwrap();
        let mut held = None;
        if stdin_stays_open {
            held = Some(input);
        } else {
            // A program that ends without reading is no problem of the writer.
            std::thread::spawn(move || _ = input.write_all(&stdin));
        }
        let id = Pid::from_child(&child);
        std::thread::spawn(move || sender.send(News::Exit(child.wait().expect("a child can be waited for"))));
        let (stdout, stderr) = (vec![], vec![]);
        let stdin = held;
        Running { id, news, stdin, held_stdout, mark, limit, text, stdout, stderr, status: None, closed }
    }

    /// Runs it to its end; no process of it is left.
    pub(crate) fn finish(self) -> Outcome {
        self.start().finish()
    }
}

enum News {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Exit(ExitStatus),
}

/// Hands on what comes; an empty piece is the end.
fn read_all(mut from: impl Read + Send + 'static, to: Sender<News>, piece: fn(Vec<u8>) -> News) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        loop {
            let count = from.read(&mut buffer).unwrap_or(0);
            if to.send(piece(buffer[..count].to_vec())).is_err() || count == 0 {
                return;
            }
        }
    });
}

/// A program at work. Dropped, it is killed with all that it has started.
pub(crate) struct Running {
    id: Pid,
    news: Receiver<News>,
    stdin: Option<ChildStdin>,
    held_stdout: Option<(ChildStdout, Sender<News>)>,
    mark: String,
    limit: Duration,
    text: String,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: Option<ExitStatus>,
    closed: u32,
}

impl Running {
    /// All processes of the run, the launcher included.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        marked(&self.mark)
    }

    /// The process that was started as number `peer`, from 1.
    pub(crate) fn started(&self, peer: usize) -> Pid {
        let is_it = |process: &Pid| variable(*process, "FTRUN_PEER") == Some(peer.to_string());
        self.processes().into_iter().find(is_it).expect("it is alive")
    }

    pub(crate) fn launcher(&self) -> Pid {
        self.id
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.id, signal).unwrap();
    }

    /// Something comes on its standard input, which was left open.
    pub(crate) fn say(&mut self, text: &str) {
        self.stdin.as_mut().expect("it is open").write_all(text.as_bytes()).unwrap();
    }

    /// Nothing more comes on its standard input.
    pub(crate) fn end_stdin(&mut self) {
        self.stdin = None;
    }

    /// From now on somebody reads its standard output.
    pub(crate) fn read_stdout(&mut self) {
        let (stdout, sender) = self.held_stdout.take().expect("it was held");
        read_all(stdout, sender, News::Stdout);
    }

    /// Waits until `part` was printed, on either stream.
    pub(crate) fn await_text(&mut self, part: &str) {
        self.await_times(part, 1);
    }

    /// How many times `part` was printed so far, as far as it was heard.
    pub(crate) fn printed(&self, part: &str) -> usize {
        let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches(part).count();
        count(&self.stdout) + count(&self.stderr)
    }

    /// Waits until `part` was printed so many times.
    pub(crate) fn await_times(&mut self, part: &str, times: usize) {
        while self.printed(part) < times {
            self.hear(&format!("waits for '{part}'"));
        }
    }

    fn hear(&mut self, doing: &str) {
        match self.news.recv_timeout(self.limit) {
            Ok(News::Exit(status)) => self.status = Some(status),
            Ok(News::Stdout(piece) | News::Stderr(piece)) if piece.is_empty() => self.closed += 1,
            Ok(News::Stdout(piece)) => self.stdout.extend(piece),
            Ok(News::Stderr(piece)) => self.stderr.extend(piece),
            Err(_) => {
                let left: Vec<String> = self.processes().into_iter().map(describe).collect();
                panic!(
                    "{}: {doing}, status {:?}, nothing happens within {:?}\nprocesses: {left:#?}\n{}\n{}",
                    self.text,
                    self.status,
                    self.limit,
                    String::from_utf8_lossy(&self.stdout),
                    String::from_utf8_lossy(&self.stderr)
                );
            }
        }
    }

    fn wait(&mut self) -> Outcome {
        while self.status.is_none() || self.closed < 2 {
            self.hear("runs");
        }
        let status = self.status.unwrap();
        Outcome {
            status: status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap(),
            stdout: String::from_utf8_lossy(&self.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&self.stderr).into_owned(),
            text: std::mem::take(&mut self.text),
        }
    }

    /// Runs to its end; no process of it is left at this moment.
    pub(crate) fn finish(mut self) -> Outcome {
        let outcome = self.wait();
        let left: Vec<String> = self.processes().into_iter().map(describe).collect();
        assert!(left.is_empty(), "left behind: {left:#?}\n{outcome}");
        outcome
    }

    /// The same for a launcher that could not see to it itself: its processes end soon after.
    pub(crate) fn finish_killed(mut self) -> Outcome {
        let outcome = self.wait();
        self.watched().await_end();
        outcome
    }

    /// Its processes of now, to await the end of them.
    pub(crate) fn watched(&self) -> Watched {
        let watch = |process| {
            let handle = rustix::process::pidfd_open(process, PidfdFlags::empty()).ok()?;
            Some((describe(process), handle))
        };
        Watched(self.processes().into_iter().filter_map(watch).collect())
    }
}

/// Processes whose end is awaited. One that is about to end has no environment any more, by which [`Running::processes`] knows it, while
/// its files are still open: who asks for those watches it from before.
pub(crate) struct Watched(Vec<(String, OwnedFd)>);

impl Watched {
    /// All of them end within five seconds.
    pub(crate) fn await_end(self) {
        for (described, handle) in self.0 {
            let limit = Timespec { tv_sec: 5, tv_nsec: 0 };
            let mut fds = [PollFd::new(&handle, PollFlags::IN)];
            let ended = rustix::event::poll(&mut fds, Some(&limit)).unwrap();
            assert!(ended == 1, "lives on: {described}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Exit status; 128 and the number of the signal that ended it.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    text: String,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: status {}\n{}\n{}", self.text, self.status, self.stdout, self.stderr)
    }
}

impl Outcome {
    /// The report: standard output is one JSON object and nothing else.
    pub(crate) fn report(&self) -> Report {
        assert_eq!(self.stdout.lines().count(), 1, "{self}");
        let value: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"));
        assert!(value.is_object() && value["status"] == self.status, "{self}");
        Report(value)
    }

    /// Fails unless the status is this one.
    pub(crate) fn expect(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }
}

/// What `--json` prints.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    pub(crate) fn answer(&self) -> &str {
        self.0["result"]["answer_hash"].as_str().unwrap_or_else(|| panic!("no answer: {}", self.0))
    }

    pub(crate) fn iterations(&self) -> u64 {
        self.0["result"]["iterations"].as_u64().unwrap()
    }

    pub(crate) fn message(&self) -> &str {
        self.0["message"].as_str().unwrap()
    }

    pub(crate) fn spares_used(&self) -> u64 {
        self.0["spares_used"].as_u64().unwrap()
    }

    /// Injected failures that did not fire.
    pub(crate) fn unfired(&self) -> Vec<&str> {
        self.0["unfired"].as_array().unwrap().iter().map(|spec| spec.as_str().unwrap()).collect()
    }

    /// Per failure its ranks and the steps that were done again.
    pub(crate) fn failures(&self) -> Vec<(Vec<u64>, u64)> {
        let ranks = |failure: &Value| {
            failure["ranks"].as_array().unwrap().iter().map(|rank| rank.as_u64().unwrap()).collect()
        };
        let failures = self.0["failures"].as_array().unwrap().iter();
        failures.map(|failure| (ranks(failure), failure["steps_lost"].as_u64().unwrap())).collect()
    }
}

/// The answer to [`POISSON`] without failures.
pub(crate) fn poisson_answer() -> &'static Report {
    static ANSWER: OnceLock<Report> = OnceLock::new();
    ANSWER.get_or_init(|| {
        let report = Run::ftrun(&format!("-n 4 --json {POISSON}")).finish().expect(0).report();
        assert_eq!(report.0["failures"].as_array().unwrap().len(), 0);
        report
    })
}

/// A variable of the environment that a process was started with.
pub(crate) fn variable(process: Pid, name: &str) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let variables =
        environment.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    variables
        .filter_map(|text| text.split_once('=').map(|(n, v)| (n == name).then(|| v.to_owned())))
        .flatten()
        .next()
}

/// A count of bytes in the status of a process, such as `VmRSS` (`proc(5)`).
pub(crate) fn bytes_of(process: Pid, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Whether the process ends within this time.
pub(crate) fn ends_within(process: Pid, limit: Duration) -> bool {
    let Ok(handle) = rustix::process::pidfd_open(process, PidfdFlags::empty()) else { return true };
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    rustix::event::poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// Processes that were started by the run with this mark and are no zombies.
fn marked(mark: &str) -> Vec<Pid> {
    let mark = format!("{MARK}={mark}").into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut found: Vec<Pid> = processes
        .filter(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        })
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    found.sort_by_key(|process| process.as_raw_nonzero());
    found
}

fn describe(process: Pid) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    format!("{process}: {}", String::from_utf8_lossy(&line).replace('\0', " "))
}
