//! The processes of this host, as the launcher or an agent has them: their lifelines, what they print, how they end. The launcher's are its children,
//! those of an agent are children of its keeper.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::executable::ENV_EXECUTABLE;
use super::guardian::{ENV_MARK, Guardian};
use super::keeper::{Helm, Kept};
use super::pipes::{Lines, Pipes, Turn};
use super::process::{self, Change, Files, Order, Process};
use super::signals::{bell, rang};
use super::standing;
use super::vigil::Vigil;
use ft_comm::binding::{self, Binding, ENV_CORES};
use ft_comm::estate::{ENV_GROUND, Ground};
use ft_comm::inherited;
use ft_comm::lifeline::{ENV_LIFELINE, Lifeline};
use ft_comm::time::Time;
use ft_proto::arbiter::Exit;
use ft_proto::rank::{Generation, PeerId};
use ft_proto::wire::agent::{Birth, CoreShare, Held};
use ft_proto::wire::handshake::JobKey;
use ft_threads::ENV_THREADS;

mod pulses;

use pulses::Pulses;

/// Where nothing comes from.
const NULL: &str = "/dev/null";

/// A signal that announces a change of a process can be lost. So the processes are looked at once
/// in this time.
pub(super) const LOOK: Duration = Duration::from_secs(1);

/// What every process of the job runs.
#[derive(Debug)]
pub(super) struct Task {
    /// This program, by the path that others see.
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    /// The file that ranks execute in their place, if they do.
    pub(super) executable: Option<OwnedFd>,
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

/// Whose children the processes are.
#[derive(Debug)]
enum Parent {
    /// This process: the bell rings when one has ended. There is no guardian when all is over.
    Own {
        guardian: Option<Guardian>,
        bell: UnixStream,
    },
    Keeper(Helm),
}

impl Parent {
    /// By what the processes are found when this one is dead.
    fn mark(&self) -> Option<&str> {
        match self {
            Self::Own { guardian, .. } => guardian.as_ref().map(Guardian::mark),
            Self::Keeper(helm) => Some(helm.mark()),
        }
    }
}

/// Standard input of a process.
#[derive(Debug)]
pub(super) enum Input {
    /// It is empty.
    Nothing,
    /// A pipe.
    Pipe,
    /// What this process has.
    Inherited(OwnedFd),
}

#[derive(Debug)]
pub(super) struct Crew {
    processes: HashMap<PeerId, Process>,
    /// Those that have ended: they are reaped when what they have said last was read.
    ended: Vec<(PeerId, Process)>,
    parent: Parent,
    pipes: Pipes,
    vigil: Vigil,
    pulses: Pulses,
    /// Why processes cannot be looked after, if that was not told yet.
    trouble: Option<Error>,
    /// Who was stopped or goes on, if that was not told yet.
    stops: Vec<(PeerId, bool)>,
    /// Memory of the ranks of this host that outlives their processes, if the job wants it and the system has it.
    ground: Option<Ground>,
    /// When the processes are looked at even if no signal has announced a change.
    look_due: Time,
    /// `/dev/null`, opened once: between a death and the resumption no file is opened.
    null: File,
}

impl Crew {
    /// Nobody yet. From now on this process adopts orphans among its descendants, and has a guardian, as which this program is
    /// started with `guardian` as its first argument.
    pub(super) fn new(guardian: &str) -> std::io::Result<Self> {
        process::adopt_orphans();
        let guardian = Some(Guardian::start(guardian)?);
        Self::under(Parent::Own { guardian, bell: bell(&[signal_hook::consts::SIGCHLD])? })
    }

    /// Those that the agent before had, if there was one. Processes are started by the keeper.
    pub(super) fn kept(helm: Helm, kept: Vec<Kept>, ground: Option<Ground>) -> std::io::Result<Self> {
        let mut crew = Self { ground, ..Self::under(Parent::Keeper(helm))? };
        for Kept { peer, process, output, lifeline, input: _ } in kept {
            crew.pipes.add(peer, output)?;
            crew.processes.insert(peer, process);
            lifeline.into_iter().for_each(|line| crew.watch(peer, line));
        }
        Ok(crew)
    }

    fn under(parent: Parent) -> std::io::Result<Self> {
        Ok(Self {
            processes: HashMap::new(),
            ended: vec![],
            parent,
            pipes: Pipes::default(),
            vigil: Vigil::new()?,
            pulses: Pulses::default(),
            trouble: None,
            stops: vec![],
            ground: None,
            look_due: Time(0),
            null: File::open(NULL).map_err(|error| Error::new(error.kind(), format!("{NULL}: {error}")))?,
        })
    }

    /// Starts a process of the job; gives the pipe that is its standard input, if it is one. What
    /// it may inherit is `inherited_input`.
    pub(super) fn start(
        &mut self,
        peer: PeerId,
        task: &Task,
        birth: Birth,
        inherited_input: Option<OwnedFd>,
    ) -> std::io::Result<Option<File>> {
        let Birth { reads, share, ranks, standing } = birth;
        let mut environment = task.environment.clone();
        environment.extend(standing.into_iter().flat_map(standing::variables));
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set(ft_comm::ENV_PEER, peer.0.to_string());
        let mut inherited = vec![];
        let mut inherit = |name: &str, file: OwnedFd| inherited.push((name.to_owned(), file));
        // Where the system has none, deaths are noticed later.
        let (lifeline, file) = Lifeline::new().ok().unzip();
        file.into_iter().for_each(|file| inherit(ENV_LIFELINE, file));
        let wants_ground = task.environment.iter().any(|(name, _)| name == ENV_GROUND);
        if wants_ground && self.ground.is_none() {
            self.ground = Ground::new().ok();
        }
        let ground = self.ground.as_ref().and_then(|ground| ground.hand_down().ok());
        ground.into_iter().for_each(|file| inherit(ENV_GROUND, file));
        let executable = task.executable.as_ref().map(OwnedFd::try_clone).transpose()?;
        executable.into_iter().for_each(|file| inherit(ENV_EXECUTABLE, file));
        inherit(ft_comm::ENV_KEY, inherited::hand_down(task.key.to_text().as_bytes())?);
        share.and_then(cores).into_iter().for_each(|cores| set(ENV_CORES, cores));
        let said = |(name, _): &(String, String)| name == ENV_THREADS;
        if !task.environment.iter().any(said) && std::env::var_os(ENV_THREADS).is_none() {
            set(ENV_THREADS, threads(binding::cores().len(), ranks as usize).to_string());
        }
        let order =
            Order { program: task.program.clone(), is_self: true, args: task.args.clone(), environment };
        let input = match inherited_input {
            _ if !reads => Input::Nothing,
            Some(input) => Input::Inherited(input),
            None => Input::Pipe,
        };
        let stdin = self.begin(peer, order, inherited, input)?;
        if let Some(line) = lifeline {
            self.watch(peer, line);
        }
        Ok(stdin)
    }

    fn watch(&mut self, peer: PeerId, line: Lifeline) {
        let line = Arc::new(line);
        self.pulses.watch(peer, line.clone());
        self.vigil.watch(peer, line);
    }

    /// Whether there are processes that give signs of life in memory.
    pub(super) fn has_pulses(&self) -> bool {
        !self.pulses.is_empty()
    }

    /// Who has given one since the last look, and in which step; each of them gets one, if that `answers`.
    pub(super) fn look(&mut self, answers: bool) -> Vec<(PeerId, u64)> {
        self.pulses.look(answers)
    }

    /// Starts any process.
    pub(super) fn begin(
        &mut self,
        peer: PeerId,
        mut order: Order,
        inherited: Vec<(String, OwnedFd)>,
        input: Input,
    ) -> std::io::Result<Option<File>> {
        let mark = self.parent.mark().map(|mark| (ENV_MARK.to_owned(), mark.to_owned()));
        order.environment.extend(mark);
        let (input, stdin) = match input {
            Input::Nothing => (None, self.null.try_clone()?.into()),
            Input::Inherited(stdin) => (None, stdin),
            Input::Pipe => {
                let (stdin, input) = std::io::pipe()?;
                (Some(OwnedFd::from(input)), OwnedFd::from(stdin))
            }
        };
        let (output, stdout) = std::io::pipe()?;
        let (error, stderr) = std::io::pipe()?;
        let output: [OwnedFd; 2] = [output.into(), error.into()];
        let files = Files { streams: [stdin, stdout.into(), stderr.into()], inherited };
        let process = match &mut self.parent {
            Parent::Own { .. } => process::start(&order, files, None, None)?,
            Parent::Keeper(helm) => helm.start(peer, &order, &files, &output, input.as_ref())?,
        };
        self.processes.insert(peer, process);
        self.pipes.add(peer, output)?;
        Ok(input.map(File::from))
    }

    /// A generation begins that has these members.
    pub(super) fn begin_generation(&self, generation: Generation, members: impl Fn(PeerId) -> bool) {
        self.vigil.begin(generation, members);
    }

    /// Binds a process that runs already to its cores.
    pub(super) fn bind(&self, peer: PeerId, share: CoreShare) {
        if let (Some(process), Some(cores)) = (self.processes.get(&peer), cores(share)) {
            process.bind(&cores);
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

    /// Ends all processes, and waits for them if they are children of this one. Those to which it may send no signal die with it.
    pub(super) fn kill_all(&mut self) {
        self.reap();
        process::end(self.processes.drain().map(|(_, process)| process));
    }

    /// Reaps those that have ended.
    fn reap(&mut self) {
        for (peer, process) in self.ended.drain(..) {
            match &mut self.parent {
                Parent::Own { .. } => process.reap(),
                Parent::Keeper(helm) => helm.reap(peer),
            }
        }
    }

    /// Standard input of a process is not handed on any more.
    pub(super) fn end_input(&mut self, peer: PeerId) {
        if let Parent::Keeper(helm) = &mut self.parent {
            helm.end_input(peer);
        }
    }

    /// The launcher has taken this process for the agent of its host.
    pub(super) fn welcome(&mut self) {
        if let Parent::Keeper(helm) = &mut self.parent {
            helm.welcome();
        }
    }

    /// Whether the keeper is dead, and with it all processes.
    pub(super) fn is_forsaken(&self) -> bool {
        matches!(&self.parent, Parent::Keeper(helm) if helm.is_gone())
    }

    /// How a process has ended that is not there any more, and was before there was this agent.
    pub(super) fn exit_of(&self, peer: PeerId) -> Option<Exit> {
        match &self.parent {
            Parent::Own { .. } => None,
            Parent::Keeper(helm) => helm.exit_of(peer),
        }
    }

    /// The number of a process.
    pub(super) fn pid(&self, peer: PeerId) -> Option<u32> {
        self.processes.get(&peer).map(Process::id)
    }

    pub(super) fn has(&self, peer: PeerId) -> bool {
        self.processes.contains_key(&peer)
    }

    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let parent = match &self.parent {
            Parent::Own { bell, .. } => bell.as_fd(),
            Parent::Keeper(helm) => helm.fd(),
        };
        [parent, self.vigil.fd()].into_iter()
    }

    /// Where processes print to, but for what is held.
    pub(super) fn pipes(&self, held: Held) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.pipes.fds(held)
    }

    /// When [`Crew::pump`] is due although nothing is printed.
    pub(super) fn output_due(&self, held: Held) -> Option<Time> {
        self.pipes.due(held)
    }

    /// What is printed passes unchanged from now on, as soon as it is read.
    pub(super) fn pass_unchanged(&mut self) {
        self.pipes.pass_unchanged();
    }

    /// Hands on what was printed, all of it by those that have died; what is `held` of the others stays where it is.
    pub(super) fn pump(&mut self, now: Time, deaths: &[Death], held: Held, lines: Lines<'_>) {
        let has_died = |peer| deaths.iter().any(|death| death.peer() == peer);
        self.pipes.pump(
            now,
            |peer, is_error| {
                if has_died(peer) {
                    Turn::Last
                } else if held.has(is_error) {
                    Turn::None
                } else {
                    Turn::One
                }
            },
            lines,
        );
        self.reap();
    }

    /// Hands on what is left of what was printed.
    pub(super) fn finish(&mut self, now: Time, lines: Lines<'_>) {
        self.pipes.finish(now, lines);
    }

    /// When [`Crew::deaths`] looks at the processes even if no signal has announced a change.
    pub(super) fn look_due(&self) -> Time {
        if self.processes.is_empty() { Time(u64::MAX) } else { self.look_due }
    }

    /// Who has died since the last call.
    pub(super) fn deaths(&mut self, now: Time) -> Vec<Death> {
        let dying = |peer| Some(Death::Dying(peer, self.processes.get(&peer)?.ending()?));
        let mut deaths: Vec<Death> = self.vigil.dead().into_iter().filter_map(dying).collect();
        let changes = self.changes(now);
        // Those who die with the keeper do so after it: that is the end of the host, and no death of one of them.
        if self.is_forsaken() {
            return vec![];
        }
        for (peer, change) in changes {
            match change {
                Ok(Change::Ended(exit)) => {
                    let Some(process) = self.processes.remove(&peer) else { continue };
                    self.vigil.forget(peer);
                    self.pulses.forget(peer);
                    self.ended.push((peer, process));
                    deaths.push(Death::Gone(peer, exit));
                }
                Ok(change) => self.stops.push((peer, change == Change::Stopped)),
                Err(error) => self.note(Err(error)),
            }
        }
        deaths
    }

    /// What has become of processes since the last call.
    fn changes(&mut self, now: Time) -> Vec<(PeerId, std::io::Result<Change>)> {
        let is_due = now >= self.look_due;
        if is_due {
            self.look_due = now.after(LOOK);
        }
        match &mut self.parent {
            Parent::Own { bell, .. } if rang(bell) || is_due => {
                let changes = self.processes.iter_mut();
                changes.filter_map(|(peer, process)| Some((*peer, process.change().transpose()?))).collect()
            }
            Parent::Own { .. } => vec![],
            Parent::Keeper(helm) => {
                // Only the keeper hears of the end of its children.
                if is_due && helm.is_stopped() && self.processes.values().any(Process::awaits_reaping) {
                    helm.wake();
                }
                helm.changes().into_iter().map(|(peer, change)| (peer, Ok(change))).collect()
            }
        }
    }

    /// Who was stopped (true) or goes on, as far as [`Crew::deaths`] has come across it.
    pub(super) fn stops(&mut self) -> Vec<(PeerId, bool)> {
        std::mem::take(&mut self.stops)
    }

    /// Waits, not for long, until no descendant of this process is left, or leaves that to the keeper.
    pub(super) fn end_orphans(&mut self) {
        match &mut self.parent {
            Parent::Own { guardian, bell } => {
                *guardian = None; // it would be one of them
                process::end_orphans(bell);
            }
            Parent::Keeper(helm) => helm.end(),
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

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn death_without_a_signal_is_found_by_the_next_look() {
        let (bell, _never_rings) = UnixStream::pair().unwrap();
        bell.set_nonblocking(true).unwrap();
        let mut crew = Crew::under(Parent::Own { guardian: None, bell }).unwrap();
        assert_eq!((crew.deaths(Time(0)), crew.look_due()), (vec![], Time(u64::MAX)));
        let order = Order { program: "/bin/true".into(), is_self: false, args: vec![], environment: vec![] };
        crew.begin(PeerId(1), order, vec![], Input::Nothing).unwrap();
        let pid = Pid::from_raw(crew.pid(PeerId(1)).unwrap().cast_signed()).unwrap();
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let due = Time(0).after(LOOK);
        assert_eq!((crew.deaths(Time(1)), crew.look_due()), (vec![], due));
        assert_eq!(crew.deaths(due), [Death::Gone(PeerId(1), Exit::Status(0))]);
        crew.kill_all();
    }
}
