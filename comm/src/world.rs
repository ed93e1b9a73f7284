//! The world of a rank: joining the job, repairing it after failures, and leaving it.

use std::cell::RefCell;
use std::time::Duration;

use crate::binding::{ENV_CORES, bind};
use crate::communicator::{Communicator, CommunicatorRecord, Scope};
use crate::core::{Core, Door};
use crate::driver::Driver;
use crate::estate::{ENV_GROUND, Estate, Ground};
use crate::lifeline::ENV_LIFELINE;
use crate::service::Service;
use crate::service::alarm::Alarm;
use crate::service::alone::Alone;
use crate::service::thread::{Inlet, ServiceThread};
use crate::transport::null::NullTransport;
use crate::transport::sockets::SocketTransport;
use crate::transport::{
    Address, Carrier, Credentials, ENV_LINK_FAULTS, ENV_PLAIN, ENV_TRANSPORT, LinkOptions, Transport,
};
use crate::{handover, inherited, limits};
use ft_proto::collective::Selection;
use ft_proto::error::{CommError, failure_status};
use ft_proto::fault::Faults;
use ft_proto::rank::{Generation, Membership, MessageMode, OnFailure, PeerId, Rank};
#[cfg(doc)]
use ft_proto::settings::MessageSettings;
use ft_proto::settings::Settings;
use ft_proto::wire::control::{News, ToArbiter, Welcome};
use ft_proto::wire::handshake::{JobKey, hex};
use ft_proto::wire::wait::{CONTEXT_COMPUTE, Place};

mod alone;
mod lines;
#[cfg(feature = "mpi")]
mod over_mpi;
mod tape;

/// Environment of a process that the launcher starts: where the launcher listens, as an
/// [`Address`](crate::transport::Address) is written.
pub const ENV_LAUNCHER: &str = "FTRUN_LAUNCHER";
/// Environment: the number of a pipe with job and key in it, as [`JobKey::to_text`] writes them. It is closed when they were
/// read, so that a process that a rank starts does not get to know them.
pub const ENV_KEY: &str = "FTRUN_KEY";
/// Environment of the first of several processes that `mpirun` has started: there is no job, and they are to end with this status.
pub const ENV_REFUSED: &str = "FTRUN_REFUSED";
/// Environment: number of the process.
pub const ENV_PEER: &str = "FTRUN_PEER";

/// Context of the communicator of all ranks.
const CONTEXT_ALL: u32 = 4;
/// First context of the communicators that library layers have for themselves.
const CONTEXT_LIBRARIES: u32 = 16;

#[cfg(not(feature = "mpi"))]
const WITHOUT_MPI: &str = "this program was built without MPI, which --transport mpi needs: build it with the feature 'mpi' of its crate of this \
                           library (cargo build --features mpi)";

/// What a repair has decided; the same on all ranks.
pub type Repair = Membership;

/// This process as a member of its job (`MPI_COMM_WORLD` and `MPI_Init`).
///
/// Dropped without [`World::finalize`], it says goodbye: the job ends everywhere with the exit status of this
/// process, or 1. A process that panics says nothing; it has failed and is repaired.
pub struct World {
    job: String,
    core: Door,
    welcome: Welcome,
    compute: Communicator,
    all: Communicator,
    /// Memory that outlives this process, until somebody takes it.
    estate: RefCell<Option<Estate>>,
    finalized: bool,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("rank", &self.rank()).field("total", &self.total()).finish()
    }
}

impl World {
    /// Joins the job that this process was started for, and waits until all ranks have; a replacement comes
    /// back from the repair that it was started for. A program that was started without the launcher is a job
    /// of one rank. What `srun` has started several times becomes `ftrun` here, which starts the program again as one job of as many ranks: what
    /// stands before this call has run then in each task.
    ///
    /// From now on a write beyond the file size limit (`ulimit -f`) is an error, and SIGXFSZ does
    /// not end this process. In a job of the launcher SIGPIPE does not either. Programs that this
    /// process starts get the default actions.
    ///
    /// # Errors
    /// The launcher is not there, or the job has ended; or another one (`mpirun`) has started this program several times, or `srun` where no
    /// `ftrun` is found.
    pub fn init() -> Result<Self, CommError> {
        limits::report_oversized_files();
        if std::env::var(ENV_TRANSPORT).is_ok_and(|carrier| carrier.parse() == Ok(Carrier::Mpi)) {
            #[cfg(feature = "mpi")]
            {
                limits::report_failed_writes();
                return over_mpi::init();
            }
            #[cfg(not(feature = "mpi"))]
            return Err(CommError::Join(WITHOUT_MPI.into()));
        }
        let Ok(launcher) = std::env::var(ENV_LAUNCHER) else {
            handover::require_alone()?;
            let mut alone =
                Self::join(Box::new(NullTransport), Box::new(Alone::default()), String::new(), None)?;
            alone.job = format!("alone-{}", std::process::id());
            return Ok(alone);
        };
        limits::report_failed_writes();
        let launcher: Address = launcher.parse().map_err(|_| unreadable(ENV_LAUNCHER))?;
        let credentials = credentials()?;
        let peer = PeerId(variable(ENV_PEER)?.parse().map_err(|_| unreadable(ENV_PEER))?);
        let options =
            LinkOptions::from_environment(|name| std::env::var(name).ok()).map_err(CommError::Join)?;
        let lifeline = std::env::var(ENV_LIFELINE).ok();
        let (service, inlet) = ServiceThread::start(&credentials, peer, &launcher, &options, lifeline, false)
            .map_err(CommError::Join)?;
        let Inlet { inbox, wake, accounts, room, address } = inlet;
        let transport = SocketTransport::new(credentials.clone(), peer, options, inbox, wake, accounts, room)
            .map_err(|error| CommError::Join(limits::explain(&error)))?;
        if let Ok(cores) = std::env::var(ENV_CORES) {
            bind(None, &cores); // after the service thread has started, which is not bound
        }
        let transport = spoiled(&service, transport, std::env::var(ENV_LINK_FAULTS).ok())?;
        let ground = std::env::var(ENV_GROUND).ok().and_then(|number| Ground::take(&number));
        let mut world = Self::join(transport, Box::new(service), address, ground.as_ref())?;
        world.job = hex(&credentials.key.job);
        Ok(world)
    }

    /// Joins over a given transport and service, with an estate on `ground`; for simulators.
    ///
    /// # Errors
    /// The job has ended.
    pub fn join(
        transport: Box<dyn Transport>,
        service: Box<dyn Service>,
        address: String,
        ground: Option<&Ground>,
    ) -> Result<Self, CommError> {
        let mut driver = Driver::new(transport, service, 0);
        let welcome = driver.await_news(|news| match news {
            News::Welcome(welcome) => Some(welcome.clone()),
            _ => None,
        })?;
        let core = Door::to(welcomed(driver, &welcome)?);
        // Whoever has none loses what others have to make up for, and nothing else.
        let mut estate = ground.and_then(|ground| ground.claim(welcome.rank).ok().flatten());
        let report = estate.as_mut().map_or(0, |estate| estate.report(welcome.joining));
        let world = Self {
            job: "simulated".to_owned(),
            compute: Communicator::of_world(core.clone(), Scope::Compute, CONTEXT_COMPUTE),
            all: Communicator::of_world(core.clone(), Scope::All, CONTEXT_ALL),
            core,
            welcome,
            estate: RefCell::new(estate),
            finalized: false,
        };
        world.enter(address, report)?;
        Ok(world)
    }

    /// Becomes a member of the first generation, or of the next one that a repair decides.
    fn enter(&self, address: String, report: u64) -> Result<(), CommError> {
        self.fault_point("init", 1, None)?;
        let joining = u64::from(self.welcome.joining);
        if joining > 0 {
            self.fault_point("repair", joining, Some("agree"))?;
        }
        self.core.submit(ToArbiter::Join { address, report });
        self.next_generation()?;
        if joining > 0 {
            self.fault_point("repair", u64::from(self.generation()), Some("reconnect"))?;
        }
        Ok(())
    }

    fn next_generation(&self) -> Result<Repair, CommError> {
        let core = &mut *self.core.enter()?;
        let membership = core.driver.await_news(|news| match news {
            News::Decided(membership) => Some(membership.clone()),
            _ => None,
        })?;
        let before = core.driver.count(true).0;
        core.driver.change(membership.clone());
        let is_other = |(rank, before): (Rank, &Option<Rank>)| before.is_some_and(|before| before != rank);
        let moved = before != membership.seats.len() || membership.before.iter().enumerate().any(is_other);
        core.renumber(moved);
        let me = core.driver.count(true).1;
        let total = membership.seats.len();
        let beside = |hosts: &Vec<usize>| hosts.iter().filter(|host| Some(*host) == hosts.get(me)).count();
        core.driver.beside(membership.hosts().as_ref().map_or(total, beside));
        Ok(membership)
    }

    /// The identity of the job, the same on all ranks and for no other job: letters, digits and `-`. Simulated jobs
    /// are all called `simulated`.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// This process's rank among all ranks. A repair may change it if lost ranks are not replaced
    /// ([`OnFailure::Shrink`]).
    pub fn rank(&self) -> Rank {
        self.core.peek().driver.count(true).1
    }

    /// Number of ranks that compute.
    pub fn size(&self) -> usize {
        self.core.peek().driver.count(false).0
    }

    /// Number of all ranks: those that compute, then the dedicated parity ranks.
    pub fn total(&self) -> usize {
        self.core.peek().driver.count(true).0
    }

    /// What happens when a rank is lost, as the launcher was told.
    pub fn repair_mode(&self) -> OnFailure {
        self.welcome.on_failure
    }

    /// What calls do after a failure; [`MessageMode::Nop`] at the start. All ranks are to have the same.
    pub fn set_message_mode(&self, mode: MessageMode) {
        self.core.set(|core| core.driver.set_mode(mode));
    }

    /// Whether this process holds redundancy only.
    pub fn is_parity(&self) -> bool {
        self.rank() >= self.size()
    }

    /// Whether this process replaces a lost one.
    pub fn is_replacement(&self) -> bool {
        self.welcome.incarnation > 0
    }

    /// How often this rank has been replaced.
    pub fn incarnation(&self) -> u32 {
        self.welcome.incarnation
    }

    /// Number of repairs so far.
    pub fn generation(&self) -> Generation {
        self.core.peek().generation()
    }

    /// What the last repair decided, or the start of the job.
    pub fn membership(&self) -> Membership {
        self.core.peek().driver.membership().clone()
    }

    /// The communicator of the ranks that compute. Parity ranks are no members.
    pub fn comm(&self) -> &Communicator {
        &self.compute
    }

    /// The communicator of all ranks.
    pub fn everyone(&self) -> &Communicator {
        &self.all
    }

    /// The communicator that was made with this record, in whatever generation; none if this rank is no member. Each of its ranks calls it after a repair, before it makes new ones: whoever
    /// was there before gets the handle that it has, a replacement a new one. No message is sent.
    ///
    /// # Errors
    /// The record names ranks that the world has not, or is of no communicator that a program has made.
    pub fn communicator(&self, record: &CommunicatorRecord) -> Result<Option<Communicator>, CommError> {
        self.all.of_record(record)
    }

    /// A communicator of all ranks for the library layer with this number, apart from the program's messages.
    pub fn library(&self, layer: u32) -> Communicator {
        Communicator::of_world(self.core.clone(), Scope::All, CONTEXT_LIBRARIES + 2 * layer)
    }

    /// What the launcher was told for a layer above messages. Empty without a launcher, and if it knows no such layer.
    pub fn settings(&self, layer: &str) -> Settings {
        self.welcome.layers.get(layer).cloned().unwrap_or_default()
    }

    /// The host on which each rank runs since the last repair, as numbers that tell hosts apart: the same on all ranks. None if all
    /// are on one host.
    pub fn hosts(&self) -> Option<Vec<usize>> {
        self.core.peek().driver.membership().hosts()
    }

    /// Collective calls use this table from now on, on all communicators of this rank. All ranks have to call it
    /// between the same two collectives, with the same table; a replacement starts with the table of the job.
    pub fn choose_algorithms(&self, selection: Selection) {
        self.core.set(|core| core.choose(selection));
    }

    /// Agrees with the other survivors on who is lost, and begins the next generation: all communicators of the world
    /// work again, messages of the old generation are gone. Call it on every rank after an error of which
    /// [`CommError::is_failure`] says so.
    ///
    /// With [`OnFailure::Rebuild`] it waits for the replacements, and the world has its old size and ranks again. With
    /// [`OnFailure::Shrink`] the survivors close up: ranks are renumbered ([`Membership::before`]), and the world is
    /// smaller. With [`OnFailure::Blank`] ranks stay, and calls to a hole ([`Membership::holes`]) are errors, as are
    /// collectives on communicators that have one: make others without them.
    ///
    /// `report` is an opaque value that all ranks get from all others ([`Membership::reports`]).
    ///
    /// # Errors
    /// [`CommError::Ended`]: the job is over. [`CommError::Left`]: this rank has left it.
    pub fn repair(&self, report: u64) -> Result<Repair, CommError> {
        let generation = self.generation();
        let number = u64::from(generation) + 1;
        self.core.enter()?.driver.check_end()?;
        self.fault_point("repair", number, Some("agree"))?;
        let mut core = self.core.enter()?;
        core.armed_step = None;
        core.driver.waiting.enter("repair", 0, None);
        core.driver.submit(ToArbiter::Ready { generation, report });
        drop(core);
        let repair = self.next_generation()?;
        self.fault_point("repair", number, Some("reconnect"))?;
        Ok(repair)
    }

    /// Tells the launcher what this rank has to say of the current generation so far, in case that it does not come to
    /// [`World::finalize`]: `account` is opaque to it, and takes the place of the one before. It leaves with
    /// what this rank tells the launcher next, a sign of life at the latest.
    pub fn account(&self, account: Vec<u8>) {
        let generation = self.generation();
        self.core
            .set(|core| core.driver.service.submit_with_next(ToArbiter::Account { generation, account }));
    }

    /// Says that this rank works again after a repair, with `steps_lost` steps to do again; for reports.
    pub fn resumed(&self, steps_lost: u64) {
        let generation = self.generation();
        self.core.submit(ToArbiter::Resumed { generation, steps_lost });
    }

    /// Says that progress was made that no failure will undo: counts of failures in a row start again. `number` is what people
    /// are told of it.
    pub fn mark(&self, number: u64) {
        self.core.submit(ToArbiter::Mark { number });
    }

    /// A line about the progress of the job, for the launcher's terminal, with the share of the work that is done
    /// (0 to 1) if that can be said.
    pub fn progress(&self, done: Option<f64>, line: impl Into<String>) {
        let done = done.map(|done| (done.clamp(0.0, 1.0) * 1000.0) as u16);
        self.core.submit(ToArbiter::Progress { done, line: line.into() });
    }

    /// Says what this rank does from now on, for the timeline of the job; costs nothing unless somebody wants one
    /// ([`MessageSettings::timeline`]).
    pub fn activity(&self, name: &str) {
        if self.welcome.messages.timeline {
            self.core.submit(ToArbiter::Activity { name: name.into() });
        }
    }

    /// Begins step `next`, and ends the one before: injected failures count these.
    ///
    /// # Errors
    /// An injected failure strikes.
    pub fn step(&self, next: u64) -> Result<(), CommError> {
        self.core.enter()?.step(next)
    }

    /// For layers above that call a program step by step, where all ranks take the same steps: the
    /// program goes on with this `step`, in the protected run with this number. None: nothing can
    /// be said of that, as after a failure.
    pub fn set_place(&self, place: Option<(u32, u64)>) {
        self.core.set(|core| core.driver.waiting.place = place.map(|(run, step)| Place { run, step }));
    }

    /// The program is done, with the step that was [set](World::set_place): the launcher ends the
    /// job if others go on with further steps and wait, as they would for ever.
    pub fn report_done(&self) {
        let generation = self.generation();
        self.core.set(|core| {
            let last = core.driver.waiting.place;
            last.into_iter().for_each(|last| core.driver.submit(ToArbiter::Done { generation, last }));
        });
    }

    /// A point at which failures can be injected: `name=number/phase`.
    ///
    /// # Errors
    /// An injected failure strikes.
    pub fn fault_point(&self, name: &str, number: u64, phase: Option<&str>) -> Result<(), CommError> {
        self.core.enter()?.fault_point(name, number, phase)
    }

    /// An error if a failure is known; cheap. Where the [`alarm`](Self::alarm) is raised this waits for the details.
    ///
    /// # Errors
    /// As any call.
    pub fn check(&self) -> Result<(), CommError> {
        self.core.enter()?.driver.check_alarm()
    }

    /// Says whether a failure is known while this rank computes and makes no call.
    pub fn alarm(&self) -> Alarm {
        self.core.peek().driver.service.alarm()
    }

    /// Tells when checkpoints are to be written to files, and the launcher what has become of them.
    pub fn saves(&self) -> crate::Saves {
        self.core.peek().driver.service.saves()
    }

    /// Memory that is there before it is needed, where this process was started ahead of a loss (`ftrun --spares`).
    pub fn ready_memory(&self) -> crate::ReadyMemory {
        self.core.peek().driver.service.ready()
    }

    /// Calls `hook` with all ranks lost so far in this generation whenever that becomes more, at once and whatever the
    /// program does: on another thread, so it has to be brief and cannot communicate; also for a failure that is known
    /// already. A panic of the hook ends the process. A second hook replaces the first.
    pub fn on_failure(&self, hook: impl FnMut(&[Rank]) + Send + 'static) {
        self.alarm().on_failure(Box::new(hook));
    }

    /// The memory of this rank that outlives its process, for whoever asks first; none if the launcher was not told to have such
    /// memory (`ftrun --keep-memory`), or another process may still use it. What it was found to hold ([`Estate::found`]) the others
    /// know already: its word for them is among the [reports](Membership::reports) of the repair by which this rank has joined.
    pub fn take_estate(&self) -> Option<Estate> {
        self.estate.take()
    }

    /// For measurements of what protection costs: without it this rank sends no heartbeats, looks for no news of failures
    /// and asks nobody for a sign of life. After a heartbeat timeout without it the launcher may take the rank for lost.
    #[doc(hidden)]
    pub fn set_protected(&self, protected: bool) {
        self.core.set(|core| core.driver.rest(!protected));
    }

    /// Bytes that this rank has given to sends so far.
    pub fn bytes_sent(&self) -> u64 {
        self.core.peek().driver.engine.traffic().0
    }

    /// Bytes of messages that this rank has read from the memory of their senders so far, of the same host: long messages
    /// are, unless the kernel forbids it or `ftrun --transport` says otherwise.
    pub fn bytes_read(&self) -> u64 {
        self.core.peek().driver.engine.traffic().1
    }

    /// Leaves the job together with all other ranks (`MPI_Finalize`). `output` goes to the
    /// launcher. After it every call returns [`CommError::Left`].
    ///
    /// # Errors
    /// A rank failed before all were done: repair, and do again what is lost. The job goes on as if this had
    /// not been called. (In message mode [`MessageMode::Continue`] that is no error if lost ranks are not replaced.)
    pub fn finalize(&mut self, output: Vec<u8>) -> Result<(), CommError> {
        let core = &mut *self.core.enter()?;
        core.enter()?;
        core.driver.check()?;
        core.driver.waiting.enter("finalize", 0, None);
        let (generation, ranks) = (core.generation(), core.driver.failures.news());
        let goes_on = core.driver.mode() == MessageMode::Continue;
        let repairs = !matches!(self.welcome.on_failure, OnFailure::Shrink | OnFailure::Blank);
        if repairs && !ranks.is_empty() {
            return Err(CommError::PeerFailed { ranks, generation });
        }
        core.driver.submit(ToArbiter::Finalize { generation, output, goes_on });
        core.driver.await_done(repairs)?;
        core.driver.leave();
        self.finalized = true;
        Ok(())
    }

    /// Ends the job everywhere with status `code`; gives the error to return. An abort is never a
    /// success: the status is 1 if `code` is not that of a failure (1 to 255).
    pub fn abort(&self, code: i32, message: impl Into<String>) -> CommError {
        let (code, message) = (failure_status(code), message.into());
        if let Err(error) = self.core.read().and_then(|core| core.driver.check_end()) {
            return error;
        }
        self.core.submit(ToArbiter::Goodbye { code: Some(code), message: message.clone() });
        match self.core.tidy().map(|mut core| core.driver.await_news(|_| None::<()>)) {
            Some(Err(ended)) => ended,
            Some(Ok(())) | None => CommError::Ended { code, message },
        }
    }
}

/// The transport with the injected failures of links, if there are any.
fn spoiled(
    service: &ServiceThread,
    transport: impl Transport + 'static,
    faults: Option<String>,
) -> Result<Box<dyn Transport>, CommError> {
    Ok(match faults {
        Some(slow) => Box::new(service.spoil(transport, &slow).map_err(|_| unreadable(ENV_LINK_FAULTS))?),
        None => Box::new(transport),
    })
}

fn variable(name: &str) -> Result<String, CommError> {
    std::env::var(name).map_err(|_| CommError::Join(format!("{name} is not set")))
}

fn unreadable(variable: &str) -> CommError {
    CommError::Join(format!("{variable} cannot be read"))
}

/// What proves that this process belongs to the job.
fn credentials() -> Result<Credentials, CommError> {
    let text = inherited::take(&variable(ENV_KEY)?, JobKey::TEXT_BYTES).ok_or_else(|| {
        let why = format!(
            "the pipe with the key of the job ({ENV_KEY}) is closed. A wrapper must keep it open, in Python by \
             pass_fds=[int(os.environ['{ENV_KEY}'])] or close_fds=False"
        );
        CommError::Join(why)
    })?;
    let key = JobKey::from_text(&String::from_utf8_lossy(&text)).ok_or_else(|| unreadable(ENV_KEY))?;
    Ok(Credentials { key, secret: std::env::var_os(ENV_PLAIN).is_none() })
}

/// The core of a rank, as the launcher wants it.
fn welcomed(mut driver: Driver, welcome: &Welcome) -> Result<Core, CommError> {
    driver.seat(welcome.rank, welcome.compute, welcome.total);
    let settings = &welcome.messages;
    settings.validate(welcome.total).map_err(|error| CommError::Join(error.to_string()))?;
    driver.waiting.doubt_after(Duration::from_millis(welcome.timeout_ms));
    driver.waiting.watch(ft_proto::watch::patience(settings.watchdog));
    driver.waiting.enter("init", 0, None);
    let mut core = Core::new(driver, Faults::new(welcome.rank, welcome.kills.clone()));
    core.checks_calls = settings.check;
    match &settings.collectives {
        Some(table) => {
            let table = Selection::parse(table);
            core.selection =
                table.map_err(|error| CommError::Join(format!("setting collectives: {error}")))?;
        }
        None if settings.crowded => core.selection = Selection::crowded(),
        None => {}
    }
    Ok(core)
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut core) = self.core.open() {
            // They hold the core, and it would never be freed.
            core.set_repairs(None);
            core.leave(self.finalized);
        }
    }
}
