//! The processes of this host, as the launcher or an agent starts them: their lifelines, what they print, how they end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use super::guardian::{ENV_MARK, Guardian};
use super::pipes::{Lines, Pipes, Turn};
use super::process::{self, Change, GRACE, Process, Started};
use super::signals::{bell, rang};
use super::standing;
use super::vigil::Vigil;
use ft_comm::binding::{self, Binding, ENV_CORES};
use ft_comm::estate::{ENV_GROUND, Ground};
use ft_comm::inherited;
use ft_comm::lifeline::{ENV_LIFELINE, Lifeline};
use ft_comm::time::Clock;
use ft_comm::transport::timespec;
use ft_proto::arbiter::Exit;
use ft_proto::rank::{Generation, PeerId};
use ft_proto::wire::agent::{Birth, CoreShare};
use ft_proto::wire::handshake::JobKey;
use ft_threads::ENV_THREADS;

/// Where nothing comes from.
const NULL: &str = "/dev/null";

/// What every process of the job runs.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// What all of them find in their environment.
    pub(super) environment: Vec<(String, String)>,
    /// What they join the job with; it is in nobody's environment.
    pub(super) key: JobKey,
}

/// A process has ended, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// It does nothing any more, but it takes a while until it has ended.
    Dying(PeerId, Exit),
    /// It was waited for.
    Gone(PeerId, Exit),
}

impl Death {
    fn peer(self) -> PeerId {
        match self {
            Self::Dying(peer, _) | Self::Gone(peer, _) => peer,
        }
    }
}

#[derive(Debug)]
pub(super) struct Crew {
    processes: HashMap<PeerId, Process>,
    pipes: Pipes,
    vigil: Vigil,
    /// None when all is over.
    guardian: Option<Guardian>,
    /// Rung when a child has ended.
    child: UnixStream,
    /// Why processes cannot be looked after, if that was not told yet.
    trouble: Option<Error>,
    /// Who was stopped or goes on, if that was not told yet.
    stops: Vec<(PeerId, bool)>,
    /// Memory of the ranks of this host that outlives their processes, if the job wants it and the system has it.
    ground: Option<Ground>,
    /// `/dev/null`, opened once: between a death and the resumption no file is opened.
    null: File,
}

impl Crew {
    /// Nobody yet. From now on this process adopts orphans among its descendants, and has a guardian, as which this program is
    /// started with `guardian` as its first argument.
    pub(super) fn new(guardian: &str) -> std::io::Result<Self> {
        process::adopt_orphans();
        Ok(Self {
            processes: HashMap::new(),
            pipes: Pipes::default(),
            vigil: Vigil::new()?,
            guardian: Some(Guardian::start(guardian)?),
            child: bell(&[signal_hook::consts::SIGCHLD])?,
            trouble: None,
            stops: vec![],
            ground: None,
            null: File::open(NULL).map_err(|error| Error::new(error.kind(), format!("{NULL}: {error}")))?,
        })
    }

    /// Starts a process of the job; gives the pipe that is its standard input, if it may have any.
    pub(super) fn start(
        &mut self,
        peer: PeerId,
        task: &Task,
        birth: Birth,
    ) -> std::io::Result<Option<ChildStdin>> {
        let Birth { reads, share, ranks, standing } = birth;
        let mut environment = task.environment.clone();
        environment.extend(standing.into_iter().flat_map(standing::variables));
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set(ft_comm::ENV_PEER, peer.0.to_string());
        // Where the system has none, deaths are noticed later.
        let lifeline = Lifeline::new().ok();
        if let Some((_, file)) = &lifeline {
            set(ENV_LIFELINE, file.as_raw_fd().to_string());
        }
        let wants_ground = task.environment.iter().any(|(name, _)| name == ENV_GROUND);
        if wants_ground && self.ground.is_none() {
            self.ground = Ground::new().ok();
        }
        let ground = self.ground.as_ref().and_then(|ground| ground.hand_down().ok());
        ground.iter().for_each(|file| set(ENV_GROUND, file.as_raw_fd().to_string()));
        let key = inherited::hand_down(task.key.to_text().as_bytes())?;
        set(ft_comm::ENV_KEY, key.as_raw_fd().to_string());
        share.and_then(cores).into_iter().for_each(|cores| set(ENV_CORES, cores));
        let said = |(name, _): &(String, String)| name == ENV_THREADS;
        if !task.environment.iter().any(said) && std::env::var_os(ENV_THREADS).is_none() {
            set(ENV_THREADS, threads(binding::cores().len(), ranks as usize).to_string());
        }
        let stdin = if reads { Stdio::piped() } else { self.null.try_clone()?.into() };
        let stdin = self.begin(peer, &task.program, &task.args, &environment, stdin)?;
        if let Some((line, _)) = lifeline {
            self.vigil.watch(peer, line);
        }
        Ok(stdin)
    }

    /// Starts any process.
    pub(super) fn begin(
        &mut self,
        peer: PeerId,
        program: &Path,
        args: &[OsString],
        environment: &[(String, String)],
        stdin: Stdio,
    ) -> std::io::Result<Option<ChildStdin>> {
        let mut environment = environment.to_vec();
        let mark = self.guardian.iter().map(|guardian| (ENV_MARK.to_owned(), guardian.mark().to_owned()));
        environment.extend(mark);
        let Started { process, stdout, stderr, stdin } = process::start(program, args, &environment, stdin)?;
        self.processes.insert(peer, process);
        self.pipes.add(peer, stdout, stderr);
        Ok(stdin)
    }

    /// A generation begins that has these members.
    pub(super) fn begin_generation(&self, generation: Generation, members: impl Fn(PeerId) -> bool) {
        self.vigil.begin(generation, members);
    }

    /// Binds a process that runs already to its cores.
    pub(super) fn bind(&self, peer: PeerId, share: CoreShare) {
        let pid = self.processes.get(&peer).and_then(Process::pid);
        if let (Some(pid), Some(cores)) = (pid, cores(share)) {
            binding::bind(Some(pid), &cores);
        }
    }

    /// Sends a signal to a process and its children.
    pub(super) fn signal(&mut self, peer: PeerId, signal: Signal) {
        let result = self.processes.get(&peer).map_or(Ok(()), |process| process.signal(signal));
        self.note(result);
    }

    pub(super) fn signal_all(&mut self, signal: Signal) {
        let results: Vec<_> = self.processes.values().map(|process| process.signal(signal)).collect();
        results.into_iter().for_each(|result| self.note(result));
    }

    fn note(&mut self, result: std::io::Result<()>) {
        self.trouble = self.trouble.take().or(result.err());
    }

    /// Why processes of this host cannot be looked after, if something has come up since the last call.
    pub(super) fn trouble(&mut self) -> Option<Error> {
        self.trouble.take()
    }

    /// Ends all processes and waits for them. Those to which it may send no signal die with this process.
    pub(super) fn kill_all(&mut self) {
        let killed: Vec<bool> = self.processes.values().map(|p| p.signal(Signal::KILL).is_ok()).collect();
        let dying = self.processes.drain().zip(killed).filter(|(_, killed)| *killed);
        dying.for_each(|((_, process), _)| process.wait());
    }

    /// The number of a process.
    pub(super) fn pid(&self, peer: PeerId) -> Option<u32> {
        self.processes.get(&peer).map(Process::id)
    }

    pub(super) fn has(&self, peer: PeerId) -> bool {
        self.processes.contains_key(&peer)
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.child.as_fd(), self.vigil.fd()].into_iter()
    }

    /// Where processes print to.
    pub(super) fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.fds()
    }

    /// Hands on what was printed, all of it by those that have died; the others keep theirs if that is wanted.
    pub(super) fn pump(&mut self, deaths: &[Death], others_hold: bool, lines: Lines<'_>) {
        let has_died = |peer| deaths.iter().any(|death| death.peer() == peer);
        self.pipes.pump(
            |peer| {
                if has_died(peer) {
                    Turn::Last
                } else if others_hold {
                    Turn::None
                } else {
                    Turn::One
                }
            },
            lines,
        );
    }

    /// Hands on what is left of what was printed.
    pub(super) fn finish(&mut self, lines: Lines<'_>) {
        self.pipes.finish(lines);
    }

    /// Who has died since the last call.
    pub(super) fn deaths(&mut self) -> Vec<Death> {
        let dying = |peer| Some(Death::Dying(peer, self.processes.get(&peer)?.ending()?));
        let mut deaths: Vec<Death> = self.vigil.dead().into_iter().filter_map(dying).collect();
        if rang(&self.child) {
            let changes: Vec<_> = self.processes.iter_mut().map(|(peer, p)| (*peer, p.change())).collect();
            for (peer, change) in changes {
                let exit = match change {
                    Ok(Some(Change::Ended(exit))) => exit,
                    Ok(None) => continue,
                    Ok(Some(change)) => {
                        self.stops.push((peer, change == Change::Stopped));
                        continue;
                    }
                    Err(error) => {
                        self.note(Err(error));
                        continue;
                    }
                };
                self.processes.remove(&peer);
                self.vigil.forget(peer);
                deaths.push(Death::Gone(peer, exit));
            }
        }
        deaths
    }

    /// Who was stopped (true) or goes on, as far as [`Crew::deaths`] has come across it.
    pub(super) fn stops(&mut self) -> Vec<(PeerId, bool)> {
        std::mem::take(&mut self.stops)
    }

    /// Waits, not for long, until no descendant of this process is left.
    pub(super) fn end_orphans(&mut self) {
        self.guardian = None; // it would be one of them
        let clock = Clock::start();
        let until = clock.now().after(GRACE);
        while process::end_orphans() && clock.now() < until {
            let mut fds = [PollFd::new(&self.child, PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, Some(&timespec(Duration::from_millis(5))));
            rang(&self.child);
        }
    }
}

/// Threads of each of `ranks` that have `cores` among them.
fn threads(cores: usize, ranks: usize) -> usize {
    (cores / ranks.max(1)).max(1)
}

fn cores(share: CoreShare) -> Option<String> {
    let (index, count) = (share.index as usize, share.count as usize);
    Binding::Auto.share(index, count, &binding::cores()).map(binding::text)
}
