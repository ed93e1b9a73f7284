//! What users ask of jobs that run, from another terminal: how they are, and to do something.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Outcome, Run, Running, built, example};
use crate::hosts::{LIKE_SSH, over};

/// A job that runs for as long as it is let.
pub(crate) const LONG: &str =
    "-n 4 --json --every 5 --pace 0.03 cg --poisson 32 --tol 1e-300 --max-iter 100000";

/// What asks a job how it is.
const STATUS: &str = "{\"version\":1,\"command\":\"status\"}\n";
/// From one look at a job to the next, and how many there are.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const LOOKS_MAX: u32 = 1500;

/// Where the jobs of a test are, which other tests do not see.
pub(crate) struct Session(TempDir);

impl Session {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("ftrun")
    }

    /// The socket of a job.
    fn socket(&self, job: &Running) -> PathBuf {
        self.folder().join(job.launcher().to_string())
    }

    pub(crate) fn ftrun(&self, arguments: &str) -> Run {
        Run::ftrun(arguments).variable("FTRUN_JOBS", self.folder())
    }

    /// A job of which `ftrun status` says that it runs.
    pub(crate) fn job(&self, arguments: &str) -> Running {
        let job = self.ftrun(arguments).start();
        self.await_status(&job, |status| status["state"] == "running");
        job
    }

    /// A job of four ranks of which `ftrun status` says that it runs, and that is at work until its standard input ends; then it looks whether
    /// nothing was lost of it.
    pub(crate) fn at_work(&self, options: &str) -> Running {
        let options = format!("-n 4 --json --every 5 --pace 0.02 --heartbeat-timeout 20000 {options}");
        let job = self.ftrun(&options).arg(example("going_on")).open_stdin().start();
        self.await_status(&job, |status| status["state"] == "running");
        job
    }

    pub(crate) fn ask(&self, arguments: &str) -> Outcome {
        // Options of all jobs are none of these commands.
        Run::program(&built().join("ftrun"), arguments).variable("FTRUN_JOBS", self.folder()).finish()
    }

    /// What a job says of itself, if it does.
    fn status(&self, job: &Running) -> Option<Value> {
        let mut stream = UnixStream::connect(self.socket(job)).ok()?;
        let answer: Value = serde_json::from_str(&answered(&mut stream, STATUS)).ok()?;
        answer["answer"].get("status").cloned()
    }

    /// Asks until a host of the job is as wanted.
    fn await_host(&self, job: &Running, host: &str, state: &str) {
        let command = format!("hosts {} --json", job.launcher());
        for _ in 0..LOOKS_MAX {
            let hosts: Value = serde_json::from_str(&self.ask(&command).expect(0).stdout).unwrap();
            if hosts.as_array().unwrap().iter().any(|one| one["host"] == host && one["state"] == state) {
                return;
            }
            let _ = rustix::event::poll(&mut [], Some(&PAUSE));
        }
        panic!("host {host} does not come to be {state}");
    }

    /// Asks until the job is as wanted.
    pub(crate) fn await_status(&self, job: &Running, is_wanted: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..LOOKS_MAX {
            if let Some(status) = self.status(job).filter(|status| is_wanted(status)) {
                return status;
            }
            let _ = rustix::event::poll(&mut [], Some(&PAUSE));
        }
        panic!("it does not come to that: {:?}", self.status(job));
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(
                !self.folder().exists(),
                "jobs have left {:?}",
                fs::read_dir(self.folder()).unwrap().collect::<Vec<_>>()
            );
        }
    }
}

/// Ends a job by its launcher's own means.
pub(crate) fn interrupt(job: Running) -> Outcome {
    job.signal(Signal::INT);
    job.finish().expect(130)
}

fn numbers<'a>(status: &'a Value, field: &'a str) -> impl Iterator<Item = Option<u64>> + 'a {
    status["ranks"].as_array().unwrap().iter().map(move |rank| rank[field].as_u64())
}

#[test]
fn a_running_job_is_told_as_it_is() {
    let session = Session::new();
    let job = session.job(LONG);
    let steps_are_known = |status: &Value| numbers(status, "step").all(|step| step.is_some());
    let status =
        session.await_status(&job, |status| status["epoch"].as_u64() > Some(1) && steps_are_known(status));
    let printed: Value = serde_json::from_str(&session.ask("status --json").expect(0).stdout).unwrap();
    assert_eq!((&printed["job"], &printed["command"]), (&status["job"], &status["command"]), "{printed}");
    assert_eq!(status["job"], job.launcher().as_raw_nonzero().get());
    assert!(status["command"].as_str().unwrap().starts_with("cg --poisson 32 "), "{status}");
    assert_eq!((&status["generation"], &status["failures"]["total"]), (&0.into(), &0.into()), "{status}");
    assert_eq!(numbers(&status, "rank").collect::<Vec<_>>(), [Some(0), Some(1), Some(2), Some(3)]);
    assert!(status["ranks"].as_array().unwrap().iter().all(|rank| rank["host"] == "local"), "{status}");
    assert!(status["checkpoints"].as_u64() >= status["epoch"].as_u64(), "{status}");
    // The numbers of its processes are those of its children with these ranks.
    for rank in status["ranks"].as_array().unwrap() {
        let environment = fs::read(format!("/proc/{}/environ", rank["pid"])).unwrap();
        let own = format!("PMI_RANK={}", rank["rank"]);
        assert!(environment.split(|byte| *byte == 0).any(|variable| variable == own.as_bytes()), "{rank}");
    }
    // Steps go on.
    let step = numbers(&status, "step").flatten().max().unwrap();
    session.await_status(&job, |status| numbers(status, "step").all(|later| later > Some(step)));

    let list: Value = serde_json::from_str(&session.ask("ps --json").expect(0).stdout).unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["job"]), (1, &status["job"]), "{list}");
    let text = session.ask("ps").expect(0).stdout;
    let words: Vec<&str> = text.lines().nth(1).expect("a line for the job").split_whitespace().collect();
    assert_eq!(words[..3], [&*status["job"].to_string(), "running", "4/4"], "{text}");
    // Without a number it is the only one; `top` says it once where there is no terminal.
    for command in ["status", "top"] {
        let text = session.ask(command).expect(0).stdout;
        assert!(text.starts_with(&format!("job {}: cg --poisson 32", status["job"])), "{text}");
        assert!(text.contains("RANK  HOST ") && !text.contains('\u{1b}'), "{text}");
    }
    assert_eq!(fs::metadata(session.socket(&job)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(session.folder()).unwrap().permissions().mode() & 0o777, 0o700);
    interrupt(job);
    assert_eq!(session.ask("ps").expect(0).stdout.lines().count(), 1);
}

/// Nobody has to ask for the watchdog beforehand.
#[test]
fn who_waits_for_whom_is_told() {
    let session = Session::new();
    let job = session.ftrun("-n 4").arg(example("stuck")).start();
    let wait = |rank: &Value| rank["waits"].as_str().unwrap_or_default().to_owned();
    let status = session.await_status(&job, |status| {
        status["ranks"].as_array().unwrap().iter().all(|rank| !wait(rank).is_empty())
    });
    let waits: Vec<String> = status["ranks"].as_array().unwrap().iter().map(wait).collect();
    assert!(waits[0].starts_with("recv for rank 1, tag 10, since "), "{status}");
    assert!(waits[1].starts_with("recv for rank 0, tag 11, since "), "{status}");
    // With more ranks than cores everybody waits for rank 0 there.
    let through = |rank: u32| waits[2].starts_with(&format!("barrier for rank {rank}, since "));
    let awaited = [0, 1].into_iter().find(|rank| through(*rank)).unwrap_or_else(|| panic!("{status}"));
    assert_eq!(status["ranks"][3]["waits_for"], Value::from(vec![awaited]), "{status}");
    let text = session.ask("status").expect(0).stdout;
    assert!(text.contains("recv for rank 1, tag 10, since "), "{text}");
    session.ask(&format!("stop {}", job.launcher())).expect(0);
    let outcome = job.finish().expect(143);
    assert!(!outcome.stderr.contains("waits"), "nothing is said without --watchdog: {outcome}");
}

/// Lets a job of [`Session::at_work`] end, whose ranks were replaced so often.
pub(crate) fn ends_well(mut job: Running, replaced: [u32; 4]) {
    job.end_stdin();
    let outcome = job.finish().expect(0);
    assert!(outcome.stderr.contains(&format!("replaced {replaced:?}\n")), "{outcome}");
    let losses = replaced.iter().sum::<u32>() as usize;
    assert_eq!(outcome.report().failures().len(), losses, "{outcome}");
}

#[test]
fn a_rank_that_is_killed_from_outside_comes_back() {
    let session = Session::new();
    let job = session.at_work("");
    let before = session.await_status(&job, |status| status["epoch"].as_u64() > Some(0));
    let said = session.ask(&format!("kill {} 2", job.launcher())).expect(0).stdout;
    let pid = &before["ranks"][2]["pid"];
    assert_eq!(said, format!("job {}: rank 2 (process {pid} on host local) is killed\n", job.launcher()));
    let after = session.await_status(&job, |status| status["failures"]["recovered"] == 1);
    assert_eq!((&after["failures"]["total"], &after["generation"]), (&1.into(), &1.into()), "{after}");
    assert_eq!(after["failures"]["causes"]["killed by signal 9"], 1, "{after}");
    assert_eq!(after["failures"]["newest"][0]["ranks"], Value::from(vec![2]), "{after}");
    assert_eq!(after["ranks"][2]["incarnation"], 1, "{after}");
    assert_ne!(&after["ranks"][2]["pid"], pid, "{after}");
    ends_well(job, [0, 0, 1, 0]);
}

/// Asks a job that loses ranks how it is, so many times and until all are back, over one connection after the other.
fn asked_often(times: usize) {
    let session = Session::new();
    let job = session.at_work("--kill 1@step=10 --kill 3@step=20 --kill 0@step=30");
    let socket = session.socket(&job);
    let (mut asked, mut recovered) = (0, 0);
    while asked < times || recovered < 3 {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let answer = answered(&mut stream, STATUS);
        let told: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        recovered = told["answer"]["status"]["failures"]["recovered"].as_u64().expect("it says how it is");
        asked += 1;
    }
    ends_well(job, [1, 1, 0, 1]);
}

#[test]
fn questions_do_not_disturb_a_job_that_loses_ranks() {
    asked_often(200);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_thousand_questions_do_not_disturb_a_job_that_loses_ranks() {
    asked_often(1000);
}

/// Sends text, and reads a line; less if the other side leaves.
fn answered(stream: &mut UnixStream, text: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let _ = stream.write_all(text.as_bytes());
    let (mut line, mut byte) = (vec![], [0]);
    while line.last() != Some(&b'\n') && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        line.push(byte[0]);
    }
    String::from_utf8_lossy(&line).into_owned()
}

#[test]
fn a_job_is_stopped_as_by_a_signal() {
    let session = Session::new();
    let job = session.job(LONG);
    let said = session.ask(&format!("stop {}", job.launcher())).expect(0).stdout;
    assert_eq!(said, format!("job {}: it ends\n", job.launcher()));
    let outcome = job.finish().expect(143);
    assert!(outcome.report().message().contains("terminated (SIGTERM)"), "{outcome}");
}

#[test]
fn a_checkpoint_is_written_to_files_when_it_is_asked_for() {
    let session = Session::new();
    let files = tempfile::tempdir().unwrap();
    let spill = format!("--spill {} --spill-every 1h {LONG}", files.path().display());
    let job = session.job(&spill);
    session.await_status(&job, |status| status["epoch"].as_u64() > Some(0));
    let before = session.status(&job).unwrap()["files"].as_u64();
    session.ask(&format!("checkpoint {}", job.launcher())).expect(0);
    session.await_status(&job, |status| status["files"].as_u64() > before);
    session.ask(&format!("stop {}", job.launcher())).expect(0);
    let outcome = job.finish().expect(143);
    assert!(outcome.report().0["files"]["whole"].as_u64() > before, "{outcome}");
}

#[test]
fn what_cannot_be_done_is_refused_in_one_line() {
    let session = Session::new();
    let refused = |arguments: &str, status: i32, part: &str| {
        let outcome = session.ask(arguments).expect(status);
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.lines().count()), ("", 1), "{outcome}");
        assert!(outcome.stderr.starts_with("ftrun: ") && outcome.stderr.contains(part), "{outcome}");
    };
    refused("status", 2, "no job of this user runs on this host");
    refused("kill 1 2", 2, "there is no job 1 of this user on this host; 'ftrun ps' lists");
    assert_eq!(session.ask("ps --json").expect(0).stdout, "[]\n");
    // The ranks of the first one bear it when their launcher is stopped.
    let job = session.job(&format!("--heartbeat-timeout 20000 {LONG}"));
    let other = session.job(LONG);
    refused("status", 2, "say which job: there are ");
    refused(&format!("kill {} 4", job.launcher()), 2, "rank 4 does not exist, there are ranks 0, 1, 2 and 3");
    refused(&format!("checkpoint {}", job.launcher()), 2, "started without --spill");
    for arguments in ["kill 1", "kill one 2", "kill 1 -2", "-n 2 ps", "status --color"] {
        let outcome = session.ask(arguments).expect(2);
        assert!(outcome.stderr.starts_with("ftrun: ") && outcome.stdout.is_empty(), "{outcome}");
    }
    other.signal(Signal::INT);
    // A launcher that is stopped does not answer, and the other one is listed all the same.
    job.signal(Signal::STOP);
    other.finish().expect(130);
    refused(&format!("status {}", job.launcher()), 1, "does not answer");
    job.signal(Signal::CONT);
    interrupt(job);
}

#[test]
fn a_socket_of_a_dead_job_is_cleaned() {
    let session = Session::new();
    let dead = session.job(LONG);
    let socket = session.socket(&dead);
    dead.signal(Signal::KILL);
    dead.finish_killed().expect(137);
    // The next job cleans up too.
    fs::create_dir_all(session.folder()).unwrap();
    fs::set_permissions(session.folder(), fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(session.folder().join("1")).unwrap());
    let job = session.job(LONG);
    assert!(!session.folder().join("1").exists());
    assert!(!socket.exists());
    interrupt(job);
    fs::create_dir_all(session.folder()).unwrap();
    fs::set_permissions(session.folder(), fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(session.folder().join("1")).unwrap());
    assert_eq!(session.ask("ps --json").expect(0).stdout, "[]\n");
    assert!(!session.folder().exists());
}

/// Nobody else may look into the folder, or take a place in it.
#[test]
fn a_job_runs_where_nobody_can_find_it() {
    let session = Session::new();
    fs::create_dir(session.folder()).unwrap();
    fs::set_permissions(session.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    for (option, lines) in [("-v", 1), ("-n 2", 0)] {
        let outcome = session.ftrun(&format!("{option} cg --poisson 8")).finish().expect(0);
        let said = format!(
            "'ftrun ps' does not find this job: {} is no folder of this user",
            session.folder().display()
        );
        assert_eq!(outcome.stderr.matches(&said).count(), lines, "{outcome}");
    }
    fs::remove_dir(session.folder()).unwrap();
    // Where no file can be made.
    let script = "mount -t tmpfs -o ro none /tmp && exec \"$0\" -v -n 2 cg --poisson 8";
    let run = Run::program(std::path::Path::new("/usr/bin/unshare"), "-m /bin/sh -c").arg(script);
    let outcome = run.arg(built().join("ftrun")).variable("XDG_RUNTIME_DIR", "/nowhere").finish();
    match outcome.status {
        0 => assert!(outcome.stderr.contains("'ftrun ps' does not find this job: /tmp/ftrun-"), "{outcome}"),
        _ => eprintln!("skipped: no namespace of its own: {outcome}"),
    }
}

/// Runs a command as nobody, if this is root and the programs for that are there.
fn as_nobody(arguments: &[&str]) -> Option<Outcome> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root");
        return None;
    }
    let options = "--reuid 65534 --regid 65534 --clear-groups";
    let run = Run::program(std::path::Path::new("/usr/bin/setpriv"), options);
    Some(arguments.iter().fold(run, |run, argument| run.arg(argument)).finish())
}

#[test]
fn another_user_gets_nothing() {
    let session = Session::new();
    let job = session.job(LONG);
    let reach = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'{\"version\":1,\"command\":\"stop\"}\\n'); print(s.recv(9))";
    let socket = session.socket(&job).display().to_string();
    if let Some(outcome) = as_nobody(&["/usr/bin/python3", "-c", reach, &socket]) {
        assert!(outcome.status != 0 && outcome.stderr.contains("PermissionError"), "{outcome}");
        // Even where the folder and the socket are open to all.
        for (path, mode) in
            [(session.0.path().to_owned(), 0o755), (session.folder(), 0o755), (session.socket(&job), 0o666)]
        {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let outcome = as_nobody(&["/usr/bin/python3", "-c", reach, &socket]).unwrap();
        assert!(outcome.stdout.trim() == "b''" || outcome.stderr.contains("Error"), "{outcome}");
        fs::set_permissions(session.folder(), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(session.status(&job).unwrap()["state"], "running");
    interrupt(job);
}

#[test]
fn strangers_at_the_desk_hurt_nobody() {
    let session = Session::new();
    let job = session.at_work("--kill 2@step=40");
    let socket = session.socket(&job);
    let come = || UnixStream::connect(&socket).unwrap();
    let silent: Vec<UnixStream> = (0..100).map(|_| come()).collect();
    let half = come();
    (&half).write_all(b"{\"version\":1,\"comm").unwrap();
    let mut nonsense = come();
    assert!(answered(&mut nonsense, "\u{1}\u{2}\u{3}nonsense\n").contains("refused"));
    let mut long = come();
    let text = "x".repeat(1 << 20);
    assert!(answered(&mut long, &text).contains("at most 4096 bytes"));
    let mut later = come();
    assert!(answered(&mut later, "{\"version\":2,\"command\":\"status\"}\n").contains("version 2"));
    assert_eq!(session.ask("status").expect(0).stderr, "");
    session.await_status(&job, |status| status["failures"]["recovered"] == 1);
    ends_well(job, [0, 0, 1, 0]);
    drop((silent, half));
}

/// What is at an address.
pub(crate) fn fetched(address: SocketAddr, request: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "a stranger does not come through the library")]
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// A value of a page of metrics, all of whose lines have to be as Prometheus wants them.
fn value(page: &str, wanted: &str) -> Option<f64> {
    let mut found = None;
    for line in page.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            assert!(words.len() == 3 && ["HELP", "TYPE"].contains(&words[0]), "{line}");
            assert!(words[0] == "HELP" || ["gauge", "counter", "summary"].contains(&words[2]), "{line}");
            continue;
        }
        let (name, number) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let bare = name.split('{').next().unwrap();
        assert!(
            bare.starts_with("ftrun_") && bare.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
            "{line}"
        );
        assert!(bare == name || name.ends_with("\"}"), "{line}");
        let number: f64 = number.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        found = found.or((name == wanted).then_some(number));
    }
    found
}

#[test]
fn metrics_are_scraped() {
    let session = Session::new();
    let mut job = session.ftrun(&format!("--metrics 0 --kill 2@step=12 {LONG}")).start();
    job.await_text("/metrics\n");
    // How far ranks are they say with their signs of life.
    let status = session.await_status(&job, |status| {
        status["failures"]["recovered"] == 1 && status["ranks"][0]["step"].as_u64() > Some(0)
    });
    let address: SocketAddr = status["metrics"].as_str().unwrap().parse().unwrap();
    assert!(address.ip().is_loopback());
    let answer = fetched(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("text/plain; version=0.0.4"), "{head}");
    // A page of a stranger has its own name.
    let refused = fetched(address, "GET /metrics HTTP/1.1\r\nHost: evil.example:9100\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 Forbidden\r\n") && !refused.contains("poisson"), "{refused}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", page.len())), "{head}");
    for (name, due) in [
        ("ftrun_ranks", 4.0),
        ("ftrun_ranks_up", 4.0),
        ("ftrun_generation", 1.0),
        ("ftrun_failures_total{cause=\"step=12\"}", 1.0),
        ("ftrun_recovery_seconds_count", 1.0),
        ("ftrun_rank_replaced{rank=\"2\"}", 1.0),
        ("ftrun_rank_up{rank=\"0\"}", 1.0),
    ] {
        assert_eq!(value(page, name), Some(due), "{name}: {page}");
    }
    for name in [
        "ftrun_recovery_seconds_sum",
        "ftrun_epoch",
        "ftrun_checkpoints_total",
        "ftrun_launcher_cpu_seconds_total",
        "ftrun_rank_step{rank=\"0\"}",
    ] {
        assert!(value(page, name) > Some(0.0), "{name}: {page}");
    }
    assert!(fetched(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(fetched(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let taken = session.ftrun(&format!("--metrics {address} {LONG}")).finish().expect(2);
    assert!(taken.stderr.contains(&format!("--metrics {address}: ")), "{taken}");
    interrupt(job);
}

/// Processes of other hosts have numbers too, and are killed through their agent.
#[test]
fn a_rank_of_another_host_is_killed() {
    let session = Session::new();
    let options = format!("--hosts 127.0.0.2:2,127.0.0.3:2 {LONG}");
    let (_folder, run) = over(LIKE_SSH, &options);
    let job = run.variable("FTRUN_JOBS", session.folder()).start();
    // The numbers of the processes are told by agents, which may be slower than the ranks.
    let before = session.await_status(&job, |status| {
        status["epoch"].as_u64() > Some(0) && numbers(status, "pid").flatten().count() == 4
    });
    let hosts: Vec<&str> =
        before["ranks"].as_array().unwrap().iter().map(|rank| rank["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.3"]);
    let pids: Vec<u64> = numbers(&before, "pid").flatten().collect();
    assert!(
        pids.len() == 4 && pids.iter().all(|pid| fs::exists(format!("/proc/{pid}")).unwrap()),
        "{before}"
    );
    session.ask(&format!("kill {} 3", job.launcher())).expect(0);
    let after = session.await_status(&job, |status| status["failures"]["recovered"] == 1);
    // The launcher waits a moment for the word of the agent when the link breaks, but not for an agent that is slow.
    let causes = &after["failures"]["causes"];
    let is_one = |cause: &&str| causes[*cause] == 1;
    assert!(["killed by signal 9", "its link to the launcher broke"].iter().any(is_one), "{after}");
    assert_ne!(after["ranks"][3]["pid"], before["ranks"][3]["pid"]);
    interrupt(job);
}

/// A host is added, one is drained and one removed, and what is lost goes where processes are taken.
#[test]
fn hosts_come_and_go_as_the_user_asks() {
    let session = Session::new();
    let [second, third, fourth] = ["127.0.0.3", "127.0.0.4", "127.0.0.5"];
    let options = "--json -v -n 4 --scheme rs:2+2 --every 5 --pace 0.02 --heartbeat-timeout 20000";
    let (_folder, run) = over(LIKE_SSH, &format!("{options} --hosts 127.0.0.2:2,127.0.0.3:2"));
    let run = run.arg(example("going_on")).open_stdin();
    let mut running = run.variable("FTRUN_JOBS", session.folder()).start();
    running.await_text("all ranks have joined");
    let number = running.launcher();
    let hosts = |words: &str| session.ask(&format!("hosts {number} {words}"));
    let host_of = |rank: usize| {
        let status = session.await_status(&running, |status| status["state"] == "running");
        status["ranks"][rank]["host"].as_str().unwrap_or_default().to_owned()
    };
    let listed = hosts("").expect(0).stdout;
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1..], [["127.0.0.2", "2", "2", "open"], [second, "2", "2", "open"]], "{listed}");

    hosts(&format!("add {third}:2")).expect(0);
    session.await_host(&running, third, "open");
    hosts(&format!("drain {second}")).expect(0);
    let before = session.await_status(&running, |_| true)["failures"]["recovered"].as_u64();
    session.ask(&format!("kill {number} 2")).expect(0);
    session.await_status(&running, |status| status["failures"]["recovered"].as_u64() > before);
    assert_eq!(host_of(2), third, "a rank of a drained host goes to the new one");
    assert_eq!(host_of(3), second, "what runs on a drained host stays");

    let said = hosts(&format!("remove {second}")).expect(0).stdout;
    assert!(said.contains("host 127.0.0.3 is removed"), "{said}");
    session.await_status(&running, |status| status["failures"]["recovered"].as_u64() > before.map(|n| n + 1));
    assert_eq!(host_of(3), third);
    for (words, complaint) in [
        (format!("add {third}"), "host 127.0.0.4 is one of it already"),
        (format!("add {third}:3"), "leave out its slots"),
        ("add a;b".into(), "'a;b' is no host"),
        ("drain nobody".into(), "no host of it is called 'nobody'"),
    ] {
        let outcome = hosts(&words).expect(2);
        assert!(outcome.stderr.contains(complaint), "{outcome}");
    }
    hosts("drain 127.0.0.2").expect(0);
    let last = hosts(&format!("remove {third}")).expect(2);
    assert!(last.stderr.contains("host 127.0.0.4 is the only one that takes processes"), "{last}");
    // It never answers: nobody waits for it.
    hosts(&format!("add {fourth}")).expect(0);
    hosts(&format!("remove {fourth}")).expect(0);
    session.await_host(&running, second, "removed");
    running.end_stdin();
    let outcome = running.finish().expect(0);
    assert!(outcome.stderr.contains("replaced [0, 0, 1, 1]\n"), "{outcome}");
    assert!(outcome.stderr.contains("host 127.0.0.4 joins"), "{outcome}");
}

/// A host of many processes that are none of the job's. The kernel says the same of all hosts here, so this one is told a tale.
#[test]
fn what_is_lost_goes_where_there_is_least_to_do() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: not root, so no host can be told that it is busy");
    }
    let session = Session::new();
    let busy = session.0.path().join("loadavg");
    fs::write(&busy, "90.00 90.00 90.00 91/999 4711\n").unwrap();
    let told = format!("mount --bind {} /proc/loadavg && exec", busy.display());
    let like_ssh = format!(
        "export FT_TESTS_HOST=$1; shift; case $FT_TESTS_HOST in 127.0.0.3) exec unshare -m sh -c \"{told} $*\";; *) exec sh -c \"exec $*\";; esac"
    );
    for (rule, home) in [("load", "127.0.0.2"), ("processes", "127.0.0.3")] {
        let options =
            format!("-n 6 --scheme rs:4+2 --hosts 127.0.0.2:3,127.0.0.3:1,127.0.0.4:2 --place {rule}");
        let (_folder, run) =
            over(&like_ssh, &format!("{options} --every 5 --pace 0.02 cg --poisson 32 --tol 1e-300"));
        let job = run.variable("FTRUN_JOBS", session.folder()).start();
        session.await_status(&job, |status| status["epoch"].as_u64() > Some(0));
        let loads = || -> Vec<Option<f64>> {
            let hosts = session.ask(&format!("hosts {} --json", job.launcher())).expect(0).stdout;
            let hosts: Value = serde_json::from_str(&hosts).unwrap();
            hosts.as_array().unwrap().iter().map(|host| host["load"].as_f64()).collect()
        };
        match rule {
            "load" => {
                // They say it with their signs of life.
                let are_known = |loads: &Vec<Option<f64>>| loads.iter().all(Option::is_some);
                let known = (0..LOOKS_MAX).map(|_| loads()).find(are_known);
                let loads = known.expect("all hosts say how busy they are");
                assert!(loads[0] < loads[1] && loads[2] < loads[1], "{loads:?}");
            }
            _ => assert_eq!(loads(), [None; 3], "nobody measures unasked"),
        }
        session.ask(&format!("hosts {} remove 127.0.0.4", job.launcher())).expect(0);
        let after = session.await_status(&job, |status| status["failures"]["recovered"] == 1);
        assert_eq!(after["ranks"][5]["host"], home, "{rule}: {after}");
        interrupt(job);
    }
    let unknown = session.ftrun("--place best cg").finish().expect(2);
    assert!(
        unknown.stderr.contains("[possible values: processes, load]") || unknown.stderr.contains("best"),
        "{unknown}"
    );
}

/// A job on one host alone listens for no others.
#[test]
fn a_job_on_one_host_takes_no_others() {
    let session = Session::new();
    let job = session.job(LONG);
    let outcome = session.ask(&format!("hosts {} add n2", job.launcher())).expect(2);
    assert!(outcome.stderr.contains("it was started on this one alone"), "{outcome}");
    let outcome = session.ask(&format!("hosts {} drain local", job.launcher())).expect(2);
    assert!(outcome.stderr.contains("host local is the only one that takes processes"), "{outcome}");
    session.ask(&format!("hosts {} add", job.launcher())).expect(2);
    interrupt(job);
}
