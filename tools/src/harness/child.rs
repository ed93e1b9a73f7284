//! One program as a child process: it has a limit of time, and nothing of it is left behind.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ft_comm::time::Clock;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

use super::error::HarnessError;

/// How often an interruption is looked for.
const TICK: Duration = Duration::from_millis(50);
/// What a launcher gets to end its ranks before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What a program did.
#[derive(Debug)]
pub struct Ended {
    pub output: String,
    pub complaints: String,
    pub status: ExitStatus,
    /// From the start of the process to its end.
    pub wall_s: f64,
    pub parting: Parting,
}

/// How a program ended that has already done what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// As programs should.
    Well,
    /// With a status or signal that says otherwise.
    Badly,
    /// Not at all: it was killed.
    Hung,
}

/// Runs programs, one after the other.
pub struct Children<'a> {
    /// Whether orphans among their descendants come to this process, which then ends all its children.
    pub adopts: bool,
    /// Whether the user wants an end.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl<'a> Children<'a> {
    /// The calling process becomes the parent of what children leave behind: the launchers of MPI put ranks into
    /// sessions and groups of their own, where no signal to a group finds them.
    pub fn adopting(is_interrupted: &'a dyn Fn() -> bool) -> Self {
        let adopts = rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok();
        Self { adopts, is_interrupted }
    }

    /// Runs `command` to its end, without input. A failure has its last words.
    ///
    /// # Errors
    /// It cannot be started, fails, or takes longer than `limit`; or somebody wants all to end.
    pub fn run(&self, command: Command, limit: Duration) -> Result<Ended, HarnessError> {
        self.run_until(command, limit, &|| false, GRACE)
    }

    /// As [`Children::run`], for a program that may fail to end, or end badly, after `is_done`: from then on it has `grace`, and
    /// how it ends is no error.
    ///
    /// # Errors
    /// As [`Children::run`], before it is done.
    pub fn run_until(
        &self,
        mut command: Command,
        limit: Duration,
        is_done: &dyn Fn() -> bool,
        grace: Duration,
    ) -> Result<Ended, HarnessError> {
        let name = words(&command);
        let start = |cause| HarnessError::Start { command: name.clone(), cause };
        let mut running = Running::start(&mut command).map_err(start)?;
        let (stop, mut done) = self.watch(&running, limit, is_done, grace);
        let wall_s = running.clock.now().seconds();
        // It may have got it done since it was last asked.
        done |= is_done();
        if stop.is_some() {
            let _ = rustix::process::kill_process_group(running.pid, Signal::TERM);
            let _ = running.end.recv_timeout(GRACE);
        }
        let status = self.reap(&mut running.child, running.pid).map_err(start)?;
        let (output, complaints) = (text(running.output), text(running.complaints));
        let parting = match (&stop, status.success()) {
            (Some(Stop::Interrupted), _) => return Err(HarnessError::Interrupted),
            (Some(Stop::TimedOut), _) => return Err(HarnessError::TimedOut { command: name, limit }),
            (Some(Stop::Hangs), _) => Parting::Hung,
            (None, true) => Parting::Well,
            (None, false) if done => Parting::Badly,
            (None, false) => {
                let message = last_words(&complaints, &output);
                return Err(HarnessError::Failed { command: name, status, message });
            }
        };
        Ok(Ended { output, complaints, status, wall_s, parting })
    }

    /// Waits until the program ends, or there is a reason to end it; also says whether it was seen to be done.
    fn watch(
        &self,
        Running { end, clock, .. }: &Running,
        limit: Duration,
        is_done: &dyn Fn() -> bool,
        grace: Duration,
    ) -> (Option<Stop>, bool) {
        let (mut until, mut done) = (clock.now().after(limit), false);
        while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if !done && is_done() {
                (done, until) = (true, clock.now().after(grace));
            }
            if (self.is_interrupted)() {
                return (Some(Stop::Interrupted), done);
            }
            if clock.now() > until {
                return (Some(if done { Stop::Hangs } else { Stop::TimedOut }), done);
            }
        }
        (None, done)
    }

    fn reap(&self, child: &mut Child, pid: Pid) -> std::io::Result<ExitStatus> {
        // It was not waited for yet, so its number, and that of its group, is its own.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        let status = child.wait();
        while self.adopts && end_orphans() {}
        status
    }
}

/// Why a program is ended.
enum Stop {
    Interrupted,
    TimedOut,
    /// After it was done.
    Hangs,
}

/// A program that was started, in a group of its own.
struct Running {
    child: Child,
    pid: Pid,
    end: Receiver<()>,
    output: JoinHandle<Vec<u8>>,
    complaints: JoinHandle<Vec<u8>>,
    clock: Clock,
}

impl Running {
    fn start(command: &mut Command) -> std::io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let clock = Clock::start();
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a number");
        let mut threads = || Ok((end_of(pid)?, reader(child.stdout.take())?, reader(child.stderr.take())?));
        match threads() {
            Ok((end, output, complaints)) => Ok(Self { child, pid, end, output, complaints, clock }),
            Err(error) => {
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

/// Becomes readable when the process has ended, without reaping it.
fn end_of(pid: Pid) -> std::io::Result<Receiver<()>> {
    let (tell, end) = channel();
    thread::Builder::new().spawn(move || {
        let _ = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let _ = tell.send(());
    })?;
    Ok(end)
}

/// Kills and reaps all children; false when there are none.
fn end_orphans() -> bool {
    let me = rustix::process::getpid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/self/task/{me}/children")).unwrap_or_default();
    let pids: Vec<Pid> =
        children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
    for &pid in &pids {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
    }
    !pids.is_empty()
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<JoinHandle<Vec<u8>>> {
    thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}

/// The last line that a program has complained in, or else said.
fn last_words(complaints: &str, output: &str) -> String {
    let last = |text: &str| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    last(complaints).or_else(|| last(output)).unwrap_or_else(|| "it said nothing".to_owned())
}

/// The command as one would type it where its files are.
fn words(command: &Command) -> String {
    let all = std::iter::once(command.get_program()).chain(command.get_args()).map(Path::new);
    // Whose folders they are is nobody's business: the words end up in tables that are kept.
    let short =
        |word: &Path| word.file_name().filter(|_| word.is_absolute()).unwrap_or(word.as_os_str()).to_owned();
    all.map(|word| short(word).to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_without_folders() {
        let mut command = Command::new("/opt/mpi/bin/mpiexec");
        command.args(["-n", "2", "/tmp/of-somebody/hello", "tcp,self", "./here"]);
        assert_eq!(words(&command), "mpiexec -n 2 hello tcp,self ./here");
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Tests run side by side in one process, so none may take the children of others.
    fn children(is_interrupted: &dyn Fn() -> bool) -> Children<'_> {
        Children { adopts: false, is_interrupted }
    }

    fn shell(script: &str, limit: Duration) -> Result<Ended, HarnessError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        children(&|| false).run(command, limit)
    }

    #[test]
    fn output_and_complaints() {
        let ended = shell("echo one; echo two; read line || echo no input", LONG).unwrap();
        assert_eq!(ended.output, "one\ntwo\nno input\n");
        assert!(ended.wall_s > 0.0);
        let error = shell("echo out; echo first >&2; echo ' last' >&2; exit 7", LONG).unwrap_err();
        let expected = "ended with exit status: 7: last";
        assert!(error.to_string().ends_with(expected), "{error}");
        let error = shell("exit 3", LONG).unwrap_err().to_string();
        assert!(error.ends_with("exit status: 3: it said nothing"), "{error}");
        let missing = children(&|| false).run(Command::new("/no/such/program"), LONG).unwrap_err();
        assert!(missing.to_string().starts_with("cannot start 'program'"), "{missing}");
    }

    #[test]
    fn what_comes_after_the_work_is_no_error() {
        let short = Duration::from_millis(100);
        let until = |script: &str, limit, is_done: &dyn Fn() -> bool| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            children(&|| false).run_until(command, limit, is_done, short)
        };
        let parting = |script| until(script, LONG, &|| true).unwrap().parting;
        assert_eq!(parting("exit 0"), Parting::Well);
        assert_eq!(parting("exit 7"), Parting::Badly);
        assert_eq!(parting("kill -9 $$"), Parting::Badly);
        let hung = until("echo done; sleep 1000", LONG, &|| true).unwrap();
        assert_eq!((&*hung.output, hung.parting), ("done\n", Parting::Hung));
        let error = until("sleep 1000", short, &|| false).unwrap_err();
        assert!(matches!(error, HarnessError::TimedOut { .. }), "{error}");
        assert!(matches!(until("exit 7", LONG, &|| false), Err(HarnessError::Failed { .. })));
    }

    /// The pipes are inherited, so their readers would wait for whoever is left.
    #[test]
    fn whoever_is_left_is_ended() {
        let ended = shell("sleep 1000 & echo done", LONG).unwrap();
        assert_eq!(ended.output, "done\n");
        let limit = Duration::from_millis(100);
        let error = shell("sleep 1000 & sleep 1000", limit).unwrap_err();
        assert!(matches!(error, HarnessError::TimedOut { .. }), "{error}");
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; sleep 1000"]);
        let error = children(&|| true).run(command, LONG).unwrap_err();
        assert!(matches!(error, HarnessError::Interrupted), "{error}");
    }
}
