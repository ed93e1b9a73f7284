//! One `ftrun` from its start to the end of all that belongs to it, with what is done to it meanwhile.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::case::Stream;
use crate::clock::Clock;
use crate::doors::{self, Crowd, Door};
use crate::processes::{self, Family, Kind, MARK};
use crate::programs;
use crate::random::Random;
use crate::strike::{Deed, Strike, When, Who};
use crate::surroundings::{self, Surroundings};

/// Bytes of a pipe that is full soon.
const NARROW: usize = 4096;
/// How often births are looked for, while one is waited for.
const GLANCE: Duration = Duration::from_micros(500);
/// How long the processes of a killed launcher have until they are gone.
const AFTERLIFE: Duration = Duration::from_secs(6);
/// So many looks in a row must find nothing: a keeper starts other agents in place of those that are killed, until it notices that
/// no launcher wants them.
const QUIET: u32 = 5;
/// A job says every ten seconds how far it is.
const NEXT_SIGN: Duration = Duration::from_secs(25);
/// No job gets on for so long.
const LONGEST: Duration = Duration::from_secs(600);

/// What is to be run.
pub(crate) struct Order<'a> {
    pub(crate) command: Command,
    /// What its processes are known by.
    pub(crate) mark: String,
    pub(crate) surroundings: Surroundings,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    pub(crate) strikes: &'a [Strike],
    /// The file of `ftrun`, if it belongs to this run alone.
    pub(crate) executable: Option<PathBuf>,
    /// What [`When::Part`] is a part of.
    pub(crate) usual: Duration,
    /// A job that is not over by then hangs, unless what it says shows that it gets on.
    pub(crate) deadline: Duration,
    pub(crate) random: Random,
}

impl Order<'_> {
    /// Nothing is done to it.
    pub(crate) fn undisturbed(command: Command) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            command,
            mark: format!("{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)),
            surroundings: Surroundings::Usual,
            stdout: Stream::Read,
            stderr: Stream::Read,
            strikes: &[],
            executable: None,
            usual: Duration::ZERO,
            deadline: Duration::MAX,
            random: Random::of_run(0, 0),
        }
    }
}

/// A strike that met somebody.
#[derive(Clone, Debug)]
pub(crate) struct Struck {
    /// Which.
    pub(crate) position: usize,
    pub(crate) at: Duration,
    /// How many.
    pub(crate) met: usize,
    /// Who, if they are processes that the launcher has started.
    pub(crate) whom: Vec<Kind>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// As a shell has it: 128 and the number of a signal.
    pub(crate) status: i32,
    /// A signal has ended it that it had not asked for yet, or cannot.
    pub(crate) was_killed: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
    /// The strikes that met somebody.
    pub(crate) struck: Vec<Struck>,
    /// Where it hung.
    pub(crate) hang: Option<String>,
    /// Processes and sockets that were left.
    pub(crate) left: Vec<String>,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "  status {} after {:.3} s", self.status, self.elapsed.as_secs_f64())?;
        writeln!(f, "  stdout: {}", shortened(self.stdout.trim_end()))?;
        write!(f, "  stderr:\n{}", shortened(self.stderr.trim_end()))
    }
}

enum News {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Exit(ExitStatus),
}

/// Makes an output, and starts whoever reads it.
fn output(stream: Stream, sender: &Sender<News>, piece: fn(Vec<u8>) -> News) -> std::io::Result<Stdio> {
    if let Stream::Terminal { columns } = stream {
        let (reader, writer) = surroundings::terminal(columns)?;
        let sender = sender.clone();
        std::thread::spawn(move || read_all(reader, 0, Duration::ZERO, &sender, piece));
        return Ok(writer);
    }
    if stream == Stream::Full {
        let _ = sender.send(piece(vec![]));
        return Ok(File::options().write(true).open("/dev/full")?.into());
    }
    let (reader, writer) = std::io::pipe()?;
    let mut skip = 0;
    let mut pause = Duration::ZERO;
    match stream {
        Stream::Closed => {
            let _ = sender.send(piece(vec![]));
            return Ok(writer.into());
        }
        Stream::Paused(ms) => {
            rustix::pipe::fcntl_setpipe_size(&writer, NARROW)?;
            skip = NARROW - 100;
            (&writer).write_all(&vec![b'x'; skip])?;
            pause = Duration::from_secs_f64(ms * 1e-3);
        }
        Stream::Read | Stream::Full | Stream::Terminal { .. } => {}
    }
    let sender = sender.clone();
    std::thread::spawn(move || read_all(reader, skip, pause, &sender, piece));
    Ok(OwnedFd::from(writer).into())
}

/// Hands on what comes after so many bytes; an empty piece is the end.
fn read_all(
    mut from: impl Read,
    mut skip: usize,
    pause: Duration,
    to: &Sender<News>,
    piece: fn(Vec<u8>) -> News,
) {
    let (_never, pausing) = channel::<()>();
    let _ = pausing.recv_timeout(pause);
    let mut buffer = [0; 16 << 10];
    loop {
        let count = from.read(&mut buffer).unwrap_or(0);
        let skipped = skip.min(count);
        skip -= skipped;
        if count == 0 {
            let _ = to.send(piece(vec![]));
            return;
        }
        if count > skipped && to.send(piece(buffer[skipped..count].to_vec())).is_err() {
            return;
        }
    }
}

/// The last line in which the job says how far it is, without the time.
fn progress(stderr: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(stderr);
    let line = said.lines().rev().find(|line| line.contains(" %, "))?;
    Some(line.split_once(" s  ").map_or(line, |(_, far)| far).to_owned())
}

/// A strike that has not struck.
struct Pending {
    position: usize,
    strike: Strike,
    /// When, as soon as that is known.
    due: Option<Duration>,
}

struct Run<'a> {
    order: Order<'a>,
    /// How far it was at the last deadline.
    far: Option<String>,
    clock: Clock,
    launcher: Pid,
    launcher_handle: OwnedFd,
    news: Receiver<News>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: Option<ExitStatus>,
    open: usize,
    family: Family,
    pending: Vec<Pending>,
    /// Who goes on, and when.
    resumes: Vec<(Duration, Who, Vec<Pid>)>,
    struck: Vec<Struck>,
    /// The last process that had been started when the last strike came.
    last: usize,
    doors: Vec<Door>,
    crowds: Vec<Crowd>,
}

/// Runs it; nothing of it is left afterwards, whatever it did.
pub(crate) fn run(mut order: Order<'_>) -> std::io::Result<Outcome> {
    let (sender, news) = channel();
    order.command.env(MARK, &order.mark).stdin(Stdio::null());
    // The leader of a process group cannot begin a session.
    if !matches!(order.surroundings, Surroundings::Terminal { is_background: true, .. }) {
        order.command.process_group(0);
    }
    order.command.stdout(output(order.stdout, &sender, News::Stdout)?);
    order.command.stderr(output(order.stderr, &sender, News::Stderr)?);
    let clock = Clock::start();
    let child = order.command.spawn()?;
    // The command holds its ends of the pipes.
    order.command = Command::new("/");
    let launcher = Pid::from_child(&child);
    let launcher_handle = rustix::process::pidfd_open(launcher, rustix::process::PidfdFlags::empty())?;
    await_exit(child, sender);
    let pending = order.strikes.iter().enumerate();
    let pending =
        pending.map(|(position, strike)| Pending { position, strike: *strike, due: None }).collect();
    let mut run = Run {
        clock,
        launcher,
        launcher_handle,
        news,
        stdout: vec![],
        stderr: vec![],
        status: None,
        open: 2,
        family: Family::new(launcher),
        pending,
        resumes: vec![],
        struck: vec![],
        last: 0,
        doors: vec![],
        crowds: vec![],
        far: None,
        order,
    };
    let hang = run.follow();
    let elapsed = run.clock.now();
    let left = run.look_for_rest(hang.is_some());
    let status = run.status.unwrap_or_default();
    Ok(Outcome {
        was_killed: status.signal().is_some(),
        status: status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1),
        stdout: String::from_utf8_lossy(&run.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&run.stderr).into_owned(),
        elapsed,
        struck: std::mem::take(&mut run.struck),
        hang,
        left,
    })
}

fn await_exit(mut child: Child, sender: Sender<News>) {
    std::thread::spawn(move || {
        if let Ok(status) = child.wait() {
            let _ = sender.send(News::Exit(status));
        }
    });
}

impl Run<'_> {
    /// Until it has ended, or hangs: then where.
    fn follow(&mut self) -> Option<String> {
        while self.status.is_none() || self.open > 0 {
            let now = self.clock.now();
            if now >= self.order.deadline && !self.gets_on(now) {
                return Some(self.account());
            }
            self.strike(now);
            let due = self.pending.iter().filter_map(|pending| pending.due);
            let next = due.chain(self.resumes.iter().map(|(at, ..)| *at)).min();
            let mut wait = next.unwrap_or(self.order.deadline).min(self.order.deadline).saturating_sub(now);
            if self.awaits_birth() && self.status.is_none() {
                wait = wait.min(GLANCE);
            }
            match self.news.recv_timeout(wait) {
                Ok(News::Exit(status)) => self.status = Some(status),
                Ok(News::Stdout(piece) | News::Stderr(piece)) if piece.is_empty() => self.open -= 1,
                Ok(News::Stdout(piece)) => self.stdout.extend(piece),
                Ok(News::Stderr(piece)) => {
                    let before = self.stderr.len().saturating_sub(100);
                    self.stderr.extend(piece);
                    self.heard(before);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        None
    }

    /// Gives a job more time that has got on since its last deadline: where many programs share the cores, ranks that pass
    /// words to each other take long.
    fn gets_on(&mut self, now: Duration) -> bool {
        let far = progress(&self.stderr);
        let gets_on = self.status.is_none() && far != self.far && now < LONGEST;
        if gets_on {
            self.far = far;
            self.order.deadline = now + NEXT_SIGN;
        }
        gets_on
    }

    /// The strikes that wait for these words have their time.
    fn heard(&mut self, from: usize) {
        let (now, said) = (self.clock.now(), String::from_utf8_lossy(&self.stderr[from..]));
        for pending in &mut self.pending {
            if let When::Said(event, after) = pending.strike.when
                && pending.due.is_none()
                && said.contains(event.words())
            {
                pending.due = Some(now + milliseconds(after));
            }
        }
    }

    fn awaits_birth(&self) -> bool {
        let waits = |pending: &Pending| {
            pending.due.is_none() && matches!(pending.strike.when, When::Birth(_) | When::Newborn(_))
        };
        self.pending.iter().any(waits)
    }

    fn strike(&mut self, now: Duration) {
        self.time(now);
        let resumes = std::mem::take(&mut self.resumes);
        let (due, later): (Vec<_>, Vec<_>) = resumes.into_iter().partition(|(at, ..)| *at <= now);
        self.resumes = later;
        for (_, who, pids) in due {
            self.resume(who, &pids);
        }
        let pending = std::mem::take(&mut self.pending);
        let (due, later): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|pending| pending.due.is_some_and(|due| due <= now));
        self.pending = later;
        for Pending { position, strike, .. } in due {
            let (met, whom) = self.carry_out(&strike);
            if met > 0 {
                self.struck.push(Struck { position, at: self.clock.now(), met, whom });
            }
        }
    }

    /// Finds out when strikes are due that wait for something to be there.
    fn time(&mut self, now: Duration) {
        if self.awaits_birth() {
            self.family.look();
        }
        let last = self.family.last();
        let lost = !self.struck.is_empty() && last > self.last;
        let usual = self.order.usual;
        for pending in self.pending.iter_mut().filter(|pending| pending.due.is_none()) {
            pending.due = match pending.strike.when {
                When::Part(part) => Some(usual.mul_f64(part)),
                When::Birth(after) if last > 0 => Some(now + milliseconds(after)),
                When::Newborn(after) if lost => Some(now + milliseconds(after)),
                _ => None,
            };
        }
    }

    /// How many it has met, and whom.
    fn carry_out(&mut self, strike: &Strike) -> (usize, Vec<Kind>) {
        if self.status.is_some() {
            return (0, vec![]);
        }
        self.family.look();
        let met = self.meet(strike);
        self.last = self.family.last();
        met
    }

    fn meet(&mut self, strike: &Strike) -> (usize, Vec<Kind>) {
        match strike.deed {
            Deed::Strangers { manner, count } => {
                self.learn_doors();
                self.crowds.push(Crowd::gather(self.doors.clone(), manner, count, self.order.random.clone()));
                (self.doors.len(), vec![])
            }
            Deed::Replace { is_removed } => {
                let replaced = self.order.executable.as_deref().is_some_and(|file| replace(file, is_removed));
                (usize::from(replaced), vec![])
            }
            Deed::Signal { who, signal, resume } => {
                if self.doors.is_empty() {
                    self.learn_doors();
                }
                let victims = self.victims(who);
                let resume_at = resume.map(|ms| self.clock.now() + milliseconds(ms));
                let mut met = Vec::new();
                if who == Who::Launcher {
                    let sent = rustix::process::pidfd_send_signal(&self.launcher_handle, signal).is_ok();
                    met.extend(sent.then_some(self.launcher));
                }
                let living = self.family.living();
                let victims = living.iter().filter(|process| victims.contains(&process.pid));
                let victims = victims.filter(|process| process.signal(signal));
                let (pids, whom): (Vec<Pid>, Vec<Kind>) =
                    victims.map(|process| (process.pid, process.kind)).unzip();
                met.extend(pids);
                let count = met.len();
                self.resumes.extend(resume_at.map(|at| (at, who, met)));
                (count, whom)
            }
        }
    }

    fn victims(&mut self, who: Who) -> Vec<Pid> {
        let living = self.family.living();
        let ranks = living.iter().filter(|process| process.is_rank()).map(|process| process.pid);
        let mut ranks: Vec<Pid> = ranks.collect();
        match who {
            Who::Launcher => vec![],
            Who::AllRanks => ranks,
            Who::Ranks(count) => {
                let mut chosen = Vec::new();
                while chosen.len() < count && !ranks.is_empty() {
                    chosen.push(ranks.swap_remove(self.order.random.below(ranks.len())));
                }
                chosen
            }
            Who::Newest => {
                let newer = |kind| matches!(kind, Kind::Rank(number) if number > self.last);
                let newest = living.iter().rev().find(|process| newer(process.kind));
                newest.map(|process| process.pid).into_iter().collect()
            }
            Who::Agent => {
                let is_one = |kind| matches!(kind, Kind::Agent | Kind::Keeper);
                let agents = living.iter().filter(|process| is_one(process.kind));
                let agents: Vec<Pid> = agents.map(|process| process.pid).collect();
                if agents.is_empty() { vec![] } else { vec![self.order.random.one_of(&agents)] }
            }
            Who::Keeper => {
                let keepers = living.iter().filter(|process| process.kind == Kind::Keeper);
                let keepers: Vec<Pid> = keepers.map(|process| process.pid).collect();
                if keepers.is_empty() { vec![] } else { vec![self.order.random.one_of(&keepers)] }
            }
        }
    }

    fn resume(&mut self, who: Who, pids: &[Pid]) {
        if who == Who::Launcher && self.status.is_none() {
            let _ = rustix::process::pidfd_send_signal(&self.launcher_handle, Signal::CONT);
        }
        for process in self.family.living().iter().filter(|process| pids.contains(&process.pid)) {
            process.signal(Signal::CONT);
        }
    }

    fn learn_doors(&mut self) {
        let living = self.family.living();
        let pids: Vec<Pid> =
            living.iter().map(|process| process.pid).chain(std::iter::once(self.launcher)).collect();
        self.doors = doors::of(&pids);
    }

    /// Where all its processes are.
    fn account(&self) -> String {
        let processes = processes::marked(&self.order.mark);
        let waits = match self.status {
            None => "the launcher has not ended".to_owned(),
            Some(status) => format!("the launcher has ended ({status}), {} outputs have not", self.open),
        };
        let lines = processes.into_iter().map(|process| format!("    {}", processes::describe(process)));
        std::iter::once(format!("  hangs: {waits}")).chain(lines).collect::<Vec<_>>().join("\n")
    }

    /// What is left, which then is removed.
    fn look_for_rest(&mut self, hangs: bool) -> Vec<String> {
        let mut left = Vec::new();
        self.crowds.clear();
        if !hangs {
            // Whoever ends in order has ended its processes; one that was killed leaves that to the kernel and to leases.
            let killed = self.status.and_then(|status| status.signal()).is_some();
            let until = self.clock.now() + if killed { AFTERLIFE } else { Duration::ZERO };
            // A process that dies loses its mark before its sockets, and one that is becoming another program has none.
            let rests =
                || !processes::marked(&self.order.mark).is_empty() || self.doors.iter().any(doors::is_there);
            let mut quiet = 0;
            while killed && quiet < QUIET && self.clock.now() < until {
                let (_never, pausing) = channel::<()>();
                let _ = pausing.recv_timeout(Duration::from_millis(20));
                quiet = if rests() { 0 } else { quiet + 1 };
            }
            left = processes::marked(&self.order.mark).into_iter().map(processes::describe).collect();
        }
        processes::kill_marked(&self.order.mark);
        if !hangs && left.is_empty() {
            let there = self.doors.iter().filter(|door| doors::is_there(door));
            left.extend(there.map(|door| format!("{door:?} is still there")));
        }
        if self.status.is_none() {
            // It is killed by now.
            while let Ok(news) = self.news.recv_timeout(Duration::from_secs(5)) {
                if let News::Exit(status) = news {
                    self.status = Some(status);
                    break;
                }
            }
        }
        left
    }
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) * 1e-3)
}

/// Removes the file of a program, or puts another program in its place; false if that failed.
fn replace(file: &Path, is_removed: bool) -> bool {
    if is_removed {
        return std::fs::remove_file(file).is_ok();
    }
    let other = file.with_extension("other");
    programs::script(&other, "exit 9").is_ok() && std::fs::rename(&other, file).is_ok()
}

/// Returns the command that runs `ftrun` in a folder and in these surroundings, with the limit of
/// open files that most systems have.
///
/// # Errors
/// The surroundings cannot be made.
pub(crate) fn command(
    ftrun: &Path,
    folder: &Path,
    arguments: &str,
    surroundings: Surroundings,
) -> std::io::Result<Command> {
    let mut command = surroundings.command("ulimit -S -n 1024; exec \"$0\" \"$@\"")?;
    command.arg(ftrun).current_dir(folder).args(arguments.split_whitespace());
    Ok(command)
}

/// The beginning and the end of a text.
fn shortened(text: &str) -> String {
    const ENDS: usize = 3000;
    if text.len() < 2 * ENDS {
        return text.to_owned();
    }
    let start = text.floor_char_boundary(ENDS);
    let end = text.ceil_char_boundary(text.len() - ENDS);
    format!("{} [...] {}", &text[..start], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::progress;

    #[test]
    fn progress_is_what_changes_with_the_work() {
        let said = b"ftrun: 10.0 s  30 %, round 914\nftrun: 11.2 s  rank 3 is lost\n";
        assert_eq!(progress(said).as_deref(), Some("30 %, round 914"));
        let later = b"ftrun: 20.0 s  30 %, round 914\n";
        assert_eq!(progress(later), progress(said), "only time has passed");
        assert_eq!(progress(b"ftrun: 0.04 s  all ranks have joined\n"), None);
    }
}
