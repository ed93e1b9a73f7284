//! From the command line to a job, and from its end to what people and programs read.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use ft_checkpoint::{GroupLayout, LayoutError, LoopSettings, SavedSets, Scheme, SchemeError};
use ft_comm::ENV_REFUSED;
use ft_comm::binding::{self, Binding};
use ft_comm::collective::Selection;
use ft_comm::fault::KillSpec;
use ft_comm::limits;
use ft_comm::transport::{Carrier, Congestion, ENV_TRANSPORT, HOST_OF_LAUNCHER, shortcomings};
use ft_launch::{
    Allocation, Cluster, Console, ConsoleError, Desk, Elsewhere, Ending, JobSpec, LaunchError, MpiTask, SELF,
    Seen, StandardInput, Stream, caught, has_input, launch,
};
use ft_proto::arbiter::{self, Config, Mtbf};
use ft_threads::ENV_THREADS;

use crate::app::AnyApp;
use crate::footing::Footing;
use crate::invocation::{Invocation, Program};
use crate::options::{Exports, OnFailure, Options};
use crate::progress::{Display, is_watched};
use crate::report::{Ordered, Report};
use crate::say;
use crate::settings::AppSettings;
use crate::text_file::read_text;
use crate::timeline::Recorder;
use crate::words::count;

/// First argument of the processes that the launcher starts, followed by the launcher's own arguments.
pub(crate) const AS_RANK: &str = "--as-rank";
/// The argument of the process that starts ranks on another host.
pub(crate) const AS_AGENT: &str = "--as-agent";
/// The one argument of the process that this becomes: the keeper of an agent.
pub(crate) const AS_KEEPER: &str = "--as-keeper";
/// Second argument of an agent that a keeper has started.
pub(crate) const KEPT: &str = "kept";
/// First argument of the process that ends what a killed launcher leaves behind, followed by how it is found.
pub(crate) const AS_GUARDIAN: &str = "--as-guardian";

/// How long a job that is to end by a signal is given to write its newest checkpoint to files: batch systems wait some 30 seconds.
const SAVE_PATIENCE: Duration = Duration::from_secs(20);

/// Runs the job and reports on it.
pub(crate) fn run(invocation: &Invocation, arguments: &[OsString]) -> ExitCode {
    // There is none before the job begins.
    let (mut console, mut is_launched) = (None, false);
    let (status, complaint) = match try_run(invocation, arguments, &mut console, &mut is_launched) {
        Ok(status) => (status, None),
        Err(Refusal { status, text }) => (i32::from(status), Some(text)),
    };
    let status = match console {
        Some(console) => {
            complaint.into_iter().for_each(|text| console.say(say::wrong(text)));
            flushed(&console, status)
        }
        None => {
            complaint.into_iter().for_each(say::complain);
            status
        }
    };
    if !is_launched {
        dismiss_tasks(invocation, status, arguments);
    }
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

struct Refusal {
    status: u8,
    text: String,
}

/// Bad usage: exit status 2.
fn usage(error: impl ToString) -> Refusal {
    Refusal { status: 2, text: error.to_string() }
}

fn failed(error: impl ToString) -> Refusal {
    Refusal { status: 1, text: error.to_string() }
}

fn no_console(error: std::io::Error) -> Refusal {
    failed(format_args!("cannot set up the output of the job: {}", limits::explain(&error)))
}

fn try_run(
    invocation: &Invocation,
    arguments: &[OsString],
    console: &mut Option<Console>,
    is_launched: &mut bool,
) -> Result<i32, Refusal> {
    let prepared = Prepared::new(invocation).map_err(usage)?;
    let mut order = prepared.order(arguments)?;
    let console = &*console.insert(Console::new().map_err(no_console)?);
    order.desk = prepared.desk(console)?;
    let Prepared { options, .. } = &prepared;
    let (kills, cuts) = (prepared.kills(), prepared.cuts());
    let on_disk = matches!(prepared.scheme, Scheme::Disk { .. });
    // Who closes up lays groups anew.
    let replaces = options.on_failure == OnFailure::Rebuild;
    let mut display = Display::new(console, options.quiet, options.verbose, kills, cuts, on_disk);
    if options.verbose {
        shortcomings(order.carrier).into_iter().for_each(|text| console.say(say::news(text)));
    }
    if let Some(text) = prepared.unread_input().filter(|_| !options.quiet) {
        console.say(say::news(text));
    }
    if let (Some(word), Program::Own { path, .. }) = (&invocation.misplaced, &invocation.program)
        && !options.quiet
    {
        let name = path.file_name().unwrap_or(path.as_os_str()).display();
        console.say(say::news(format_args!(
            "{word} after {name} goes to that program. Write options of ftrun before it, or -- before it if this is meant"
        )));
    }
    if let Some(text) = options.resumed_from().filter(|_| !options.quiet) {
        console.say(say::news(text));
    }
    let (mut recorder, mut footing) = (Recorder::default(), Footing::new(prepared.layout.clone()));
    let mut observe = |seen: Seen<'_>, at| {
        match seen {
            Seen::Event(event) => display.show(event, at),
            Seen::Saving { cause } if !options.quiet => display.say(say::news(format_args!(
                "{cause}: the job ends when its newest checkpoint is in files; a second signal ends it now"
            ))),
            _ => {}
        }
        let news = footing.note(seen, at).filter(|_| replaces && !options.quiet);
        news.into_iter().for_each(|text| console.say(say::news(text)));
        recorder.note(seen, at);
    };
    *is_launched = true;
    let ending = launch(order, console, &mut observe).map_err(|error| match error {
        LaunchError::Host { .. } => usage(error),
        _ => failed(error),
    })?;
    display.finish();
    let (has_result, is_trial) = (ending.has_result(), options.is_trial());
    // Ranks tidy up when they leave; one that is killed after the end may have been the last.
    if let (0, true, Scheme::Disk { dir }) = (ending.code, has_result, &prepared.scheme) {
        let _ = SavedSets::remove(&dir.join(&ending.job));
    }
    let exposed = if replaces { footing.exposed(ending.elapsed) } else { Duration::ZERO };
    let concluded = caught(|| prepared.conclude(&ending, exposed, recorder, console));
    let status = concluded
        .map_err(|why| Refusal {
            status: u8::try_from(ending.code.max(1)).unwrap_or(1),
            text: format!(
                "the job has ended with status {}, but its report failed ({why}); this is a defect of ftrun",
                ending.code
            ),
        })?
        .map_err(failed)?;
    // Only now is nothing of it needed any more. A job that never came to a result, or was only
    // measured, has not used up the checkpoints that it was resumed from.
    let is_done = status == 0 && has_result && !(is_trial && options.is_resumed());
    if let Some(folder) = options.spill_folder(&ending.job).filter(|_| is_done) {
        let _ = SavedSets::remove(&folder);
    }
    Ok(status)
}

/// A job of which all that could be checked beforehand was checked.
struct Prepared<'a> {
    invocation: &'a Invocation,
    options: Options,
    /// Of a program of one's own: where it is.
    path: Option<PathBuf>,
    scheme: Scheme,
    selection: Selection,
    cluster: Cluster,
    layout: GroupLayout,
    /// Failures to inject, those of the app's own options too.
    kills: Vec<KillSpec>,
    /// The folder in which this job alone goes on.
    _folder: Option<File>,
}

impl<'a> Prepared<'a> {
    fn new(invocation: &'a Invocation) -> Result<Self, String> {
        let mut options = invocation.options.with_hosts()?;
        options.anchor_files()?;
        options.find_resumed(&invocation.command)?;
        let folder = options.lock_folder()?;
        let (scheme, selection) = (scheme(&options)?, selection(&options)?);
        let mut path = match &invocation.program {
            Program::App(..) => None,
            Program::Own { path, .. } => {
                require_executable(path)?;
                Some(path.clone())
            }
        };
        options.move_to_folder(path.as_mut())?;
        let cluster = cluster(&options)?.mapped_by(options.map_by).placed_by(options.place);
        let layout = spread(&cluster, &scheme, &options).map_err(|error| error.to_string())?;
        if let Some((host, given, max)) = cluster.overfull(layout.total_ranks()) {
            let name = &host.name;
            return Err(format!(
                "host {name} would be given {given} ranks, and its max_slots is {max}: ask for fewer ranks (-n) or more hosts"
            ));
        }
        options.levels.iter().flat_map(|levels| &levels.above).try_for_each(|level| {
            let fits = GroupLayout::new(level.scheme.clone(), layout.ranks(), 0, None);
            fits.map(|_| ()).map_err(|error| error.to_string())
        })?;
        options.check_task(layout.total_ranks())?;
        options.check_ranks(layout.total_ranks())?;
        options.check_spill(&scheme)?;
        options.check_command(&invocation.command)?;
        if let Some(file) = &options.timeline {
            ft_figures::check_path(file).map_err(|error| format!("--timeline: {error}"))?;
        }
        // The ranks heed it; here it is checked once.
        Congestion::from_environment().map_err(|error| error.to_string())?;
        ft_threads::wanted().map_err(|error| error.to_string())?;
        let mut kills = options.kill.clone();
        // Only here: a rank must not look at the world outside, nor tidy it up.
        if let Program::App(_, app) = &invocation.program {
            if options.task.is_some() && !cfg!(feature = "mpi") {
                return Err("--transport mpi: this ftrun, and with it its apps, was built without MPI; cargo build --features mpi".into());
            }
            app.check(&options)?;
            kills.extend(app.kills(&options));
        }
        Ok(Self { invocation, options, path, scheme, selection, cluster, layout, kills, _folder: folder })
    }

    fn app(&self) -> Option<&dyn AnyApp> {
        match &self.invocation.program {
            Program::App(_, app) => Some(&**app),
            Program::Own { .. } => None,
        }
    }

    /// Returns a warning if standard input has data, but no rank receives it.
    fn unread_input(&self) -> Option<String> {
        let host = &self.cluster.hosts()[*self.cluster.place(1).first()?].name;
        let is_unread = host != HOST_OF_LAUNCHER && self.options.standard_input() == StandardInput::default();
        (is_unread && has_input()).then(|| {
            format!(
                "standard input is not sent to rank 0, which runs on host {host}: --stdin 0 sends it, --stdin none silences this"
            )
        })
    }

    fn kills(&self) -> Vec<String> {
        self.kills.iter().map(ToString::to_string).collect()
    }

    fn cuts(&self) -> Vec<String> {
        self.options.cut.iter().map(ToString::to_string).collect()
    }

    /// What the launcher is to do; `arguments` are those of this process.
    fn order(&self, arguments: &[OsString]) -> Result<JobSpec, Refusal> {
        let options = &self.options;
        let exports = Exports::of(&options.export).map_err(usage)?;
        for name in exports.unset.iter().filter(|_| !options.quiet) {
            say::complain(format_args!("-x {name}: there is no such variable, so ranks get none"));
        }
        let told = options.threads.map(|threads| (ENV_THREADS.to_owned(), threads.to_string()));
        let environment: Vec<_> = exports.given.into_iter().chain(told).collect();
        let threads = environment.iter().filter(|(name, _)| name == ENV_THREADS);
        threads.map(|(_, number)| ft_threads::read(number)).collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let program = std::env::current_exe().map_err(failed)?;
        let there = |path: &Path| Some(options.remote_path.as_ref()?.join(path.file_name()?));
        let path_there = self.path.as_deref().and_then(there);
        Ok(JobSpec {
            elsewhere: there(&program).map(|program| Elsewhere {
                program,
                args: rank_arguments(&self.invocation.program, arguments, path_there.as_deref()),
                executable: path_there,
            }),
            executable: self.path.clone(),
            args: rank_arguments(&self.invocation.program, arguments, self.path.as_deref()),
            program,
            environment,
            agent: AS_AGENT,
            build: ft_checkpoint::build_number(),
            guardian: AS_GUARDIAN,
            config: self.config(),
            cluster: self.cluster.clone(),
            output_to_stderr: options.json,
            output: options.output_form(self.layout.total_ranks()),
            input: options.standard_input(),
            carrier: options.carrier().map_err(usage)?,
            task: options.task,
            plain: options.plain,
            keeps_memory: options.keep_memory,
            waiting: options.wait,
            // Where ranks run is for mpirun to say.
            binding: if options.task.is_some() { Binding::None } else { options.bind },
            slow: options.slow.clone(),
            limit: options.timeout,
            saves: options.spill_folder("").map(|_| SAVE_PATIENCE),
            desk: Desk::default(),
        })
    }

    /// Where others ask how the job is. It runs all the same where there is no place for that.
    fn desk(&self, console: &Console) -> Result<Desk, Refusal> {
        let mut desk = Desk::new(&*self.invocation.command);
        if let Err(error) = desk.open()
            && self.options.verbose
        {
            console.say(say::news(format_args!("'ftrun ps' does not find this job: {error}")));
        }
        if let Some(at) = &self.options.metrics {
            let shown = at.resolve().and_then(|(address, name)| desk.show_metrics(address, name));
            let shown =
                shown.map_err(|error| usage(format!("--metrics {at}: {}", limits::explain(&error))))?;
            if !self.options.quiet {
                console.say(say::news(format_args!("metrics at http://{shown}/metrics")));
            }
        }
        if let Some(at) = &self.options.dashboard {
            let shown = at.resolve().and_then(|(address, name)| desk.show_dashboard(address, name));
            let shown =
                shown.map_err(|error| usage(format!("--dashboard {at}: {}", limits::explain(&error))))?;
            // Nobody finds it without being told.
            console.say(say::news(format_args!("dashboard at {shown}")));
        }
        Ok(desk)
    }

    /// Says to people, programs and files what the job has come to; gives its status.
    fn conclude(
        &self,
        ending: &Ending,
        exposed: Duration,
        recorder: Recorder,
        console: &Console,
    ) -> Result<i32, String> {
        let (options, app) = (&self.options, self.app());
        let report = Report::new(self.ordered(), ending, exposed, app);
        if options.json {
            console.print(Stream::Output, report.json() + "\n");
        } else if !options.quiet {
            match app.filter(|_| !ending.outputs.is_empty()) {
                Some(app) => console.print(Stream::Output, report.text(app)),
                // Standard output is the program's own.
                None => report.account().iter().for_each(|line| console.say(say::news(line))),
            }
        }
        if !report.complaint().is_empty() {
            console.say(say::wrong(report.complaint()));
        }
        if let Some(file) = &options.timeline {
            let (elapsed_s, computing) = (ending.elapsed.as_secs_f64(), self.layout.ranks());
            let saved = recorder.save(report.title(), elapsed_s, computing, file);
            saved.map_err(|error| error.to_string())?;
        }
        if let Some(app) = app {
            app.finish(report.result())?;
        }
        if let (Some(folder), Some(newest)) = (options.spill_folder(&ending.job), ending.saved.newest)
            && report.status() != 0
        {
            let text = format!(
                "checkpoint {newest} is in files: ftrun --resume {} goes on from there",
                folder.display()
            );
            console.say(say::news(text));
        }
        if let (None, true) = (options.spill_folder(""), ending.is_terminated() && ending.marks > 0) {
            let lost = count(ending.marks, "checkpoint");
            let are = if ending.marks == 1 { "is" } else { "are" };
            console.say(say::news(format_args!(
                "{lost} in memory {are} gone with the job; --spill DIR writes them to files"
            )));
        }
        for option in report.unfired_options() {
            console.say(say::wrong(format_args!("{option} never fired")));
        }
        Ok(report.status())
    }

    fn ordered(&self) -> Ordered {
        Ordered {
            app: match &self.invocation.program {
                Program::App(name, _) => (*name).into(),
                Program::Own { path, .. } => path.display().to_string(),
            },
            on_failure: self.options.on_failure,
            seed: self.options.seed,
            kills: self.kills(),
            cuts: self.cuts(),
            lines: self.options.lines(),
            is_trial: self.options.is_trial(),
            spills: self.options.spill_folder("").is_some(),
            levels: self.options.levels.iter().flat_map(|levels| levels.above.clone()).collect(),
            selection: self.selection.identity().into(),
            layout: self.layout.clone(),
        }
    }

    /// Ranks that protect each other, and how many of them may be lost at once, for a job that
    /// needs each of its ranks.
    fn protected(&self) -> Vec<(Vec<usize>, usize)> {
        let (options, layout) = (&self.options, &self.layout);
        match self.scheme {
            // Memory that processes leave on their host restores any number of them.
            _ if options.keep_memory => vec![],
            // Files of another level may have what is missing.
            _ if options.levels.as_ref().is_some_and(|levels| !levels.above.is_empty()) => vec![],
            // An app that does without lost ranks needs no redundancy for that.
            Scheme::None if options.on_failure == OnFailure::Rebuild => {
                vec![((0..layout.total_ranks()).collect(), 0)]
            }
            _ => groups(layout),
        }
    }

    /// What the arbiter goes by.
    fn config(&self) -> Config {
        let Self { options, layout, selection, cluster, .. } = self;
        let table = options.collectives.as_ref().map(|_| selection.to_string());
        let hosts = (cluster.hosts().len() > 1).then(|| cluster.place(layout.total_ranks()));
        let beside = options.task.map_or(layout.total_ranks(), |task| task.beside as usize);
        let crowded = hosts.is_none() && beside > binding::cores().len();
        let scheme = layout.scheme().clone();
        let progress = is_watched(options.quiet) || options.verbose || options.dashboard.is_some();
        let app = AppSettings { seed: options.seed, progress };
        let layers = [
            (LoopSettings::LAYER, options.loop_settings(scheme, self.invocation.command.clone()).write()),
            (AppSettings::LAYER, app.write()),
        ];
        Config {
            compute: layout.ranks(),
            total: layout.total_ranks(),
            on_failure: match options.on_failure {
                OnFailure::Rebuild => arbiter::OnFailure::Rebuild,
                OnFailure::Shrink => arbiter::OnFailure::Shrink,
                OnFailure::Blank => arbiter::OnFailure::Blank,
                OnFailure::Abort => arbiter::OnFailure::Abort,
            },
            spares: options.spares,
            // How long MPI may take to start is for mpirun to say.
            joins: self.app().is_some() && options.task.is_none(),
            max_restarts: u32::try_from(options.max_restarts).unwrap_or(u32::MAX),
            interval: options.heartbeat_interval(),
            timeout: options.heartbeat_timeout(),
            groups: self.protected(),
            messages: options.message_settings(table, hosts, crowded),
            layers: layers.into_iter().map(|(layer, settings)| (layer.to_owned(), settings)).collect(),
            kills: self.kills.clone(),
            cuts: options.cut.clone(),
            mtbf: options.mtbf.map(|seconds| Mtbf {
                mean: Duration::from_secs_f64(seconds),
                seed: options.seed,
                groups: groups(layout),
            }),
        }
    }
}

fn groups(layout: &GroupLayout) -> Vec<(Vec<usize>, usize)> {
    layout.groups.iter().map(|group| (group.members.clone(), group.tolerance())).collect()
}

/// Tells the other processes of `mpirun`, which wait for the first rank, that there will be none. Not every `mpirun` ends them where the first ends.
fn dismiss_tasks(invocation: &Invocation, status: i32, arguments: &[OsString]) {
    let is_one = MpiTask::of(&|name| std::env::var(name).ok()).is_some_and(|task| task.count > 1);
    let is_over_mpi = invocation.options.carrier() == Ok(Carrier::Mpi);
    if let Some(mut command) =
        (is_one && is_over_mpi).then(|| task_command(invocation, arguments).ok()).flatten()
    {
        command.env(ENV_REFUSED, status.to_string()).stdin(Stdio::null());
        let _ = ft_launch::stand_for(command);
    }
}

/// What a process of `mpirun` stands for.
fn task_command(invocation: &Invocation, arguments: &[OsString]) -> Result<Command, String> {
    let mut options = invocation.options.clone();
    let mut path = match &invocation.program {
        Program::App(..) => None,
        Program::Own { path, .. } => Some(path.clone()),
    };
    options.move_to_folder(path.as_mut())?;
    let mut command = Command::new(SELF);
    command
        .arg0("ftrun")
        .args(rank_arguments(&invocation.program, arguments, path.as_deref()))
        .envs(Exports::of(&options.export)?.given)
        .env(ENV_TRANSPORT, Carrier::Mpi.to_string());
    Ok(command)
}

/// Stands for the rank, or the spare, that this process of `mpirun` is. How the job ends the first one says.
pub(crate) fn stand_for_task(invocation: &Invocation, task: MpiTask, arguments: &[OsString]) -> ExitCode {
    let begun = task_command(invocation, arguments).and_then(|mut command| {
        let threads = invocation.options.threads;
        if threads.is_some() || std::env::var_os(ENV_THREADS).is_none() {
            let share = || (binding::cores().len() / task.beside as usize).max(1);
            command.env(ENV_THREADS, threads.unwrap_or_else(share).to_string());
        }
        ft_launch::stand_for(command).map_err(|error| limits::explain(&error))
    });
    match begun {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say::complain(format_args!("process {} of mpirun: {why}", task.number));
            ExitCode::from(2)
        }
    }
}

/// What a rank is started with: the arguments of this process, with the program's path where the rank is.
fn rank_arguments(program: &Program, arguments: &[OsString], path: Option<&Path>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![AS_RANK.into()];
    match (program, path) {
        (Program::Own { args: own, .. }, Some(path)) => {
            args.extend_from_slice(&arguments[..arguments.len() - own.len() - 1]);
            args.push(path.into());
            args.extend_from_slice(own);
        }
        _ => args.extend_from_slice(arguments),
    }
    args
}

/// Waits for whoever reads what was printed, and gives the status to end with: lost output is a failure, whatever became of the
/// job.
fn flushed(console: &Console, status: i32) -> i32 {
    match console.finish() {
        Ok(()) => status,
        Err(error @ ConsoleError::Lost { .. }) => {
            console.say(say::wrong(error));
            let _ = console.finish(); // if nobody listens, the status still tells
            status.max(1)
        }
        Err(error @ ConsoleError::Interrupted(signal)) => {
            console.say_last(say::wrong(error));
            128 + signal.as_raw()
        }
    }
}

/// The hosts of the job.
fn cluster(options: &Options) -> Result<Cluster, String> {
    let Some(hosts) = &options.hosts else { return Ok(Cluster::here()) };
    if let Some(Allocation { name, .. }) = options.allocation.as_ref().filter(|_| options.verbose) {
        say::complain(format_args!("{name}: {} slots on {} hosts", hosts.slots(), hosts.len()));
    }
    if let Some(tasks) = crate::tasks().filter(|_| options.allocation.is_some() && !options.quiet) {
        say::complain(format_args!(
            "the {} tasks of srun are one job, started from the first; ranks that are lost are replaced, but Slurm ends the job with a node \
             unless srun has --no-kill",
            tasks.count
        ));
    }
    let cluster = match (&options.launcher_exec, &options.allocation) {
        (None, Some(allocation)) => Cluster::allocated(allocation),
        (exec, _) => Cluster::new(hosts, named(exec.as_deref())?),
    };
    cluster.with_spare_hosts(options.spare_hosts).map_err(|error| format!("--spare-hosts: {error}"))
}

/// The command that starts things on hosts, if one is named.
fn named(exec: Option<&Path>) -> Result<Option<PathBuf>, String> {
    // One without a `/` is looked for as a shell would.
    if let Some(exec) = exec.filter(|exec| exec.as_os_str().as_encoded_bytes().contains(&b'/')) {
        require_executable(exec).map_err(|error| format!("--launcher-exec: {error}"))?;
    }
    Ok(exec.map(Path::to_owned))
}

/// Lays the groups over the hosts, and says so if that does not guard against the loss of one.
fn spread(cluster: &Cluster, scheme: &Scheme, options: &Options) -> Result<GroupLayout, LayoutError> {
    let lay = |hosts: Option<&[usize]>| {
        GroupLayout::new(scheme.clone(), options.ranks(), options.parity_ranks, hosts)
    };
    // How many ranks there are does not depend on where they are.
    let ranks = lay(None)?.total_ranks();
    if cluster.hosts().len() == 1 {
        return lay(None);
    }
    let places = cluster.place(ranks);
    let layout = lay(Some(&places))?;
    // Members of a group may share a host as long as they are no more than the group can lose.
    let fatal = layout.fatal_hosts(&places);
    let fatal: Vec<&str> = fatal.into_iter().map(|host| cluster.hosts()[host].name.as_str()).collect();
    if !fatal.is_empty() && !layout.groups_sharing_hosts.is_empty() && !options.quiet {
        say::complain(format_args!(
            "{scheme} does not survive the loss of a whole host: {}; too many members of a parity group share it",
            fatal.join(", ")
        ));
    }
    Ok(layout)
}

/// The scheme; a directory in it is made absolute, since a program may go elsewhere.
fn scheme(options: &Options) -> Result<Scheme, String> {
    let mut scheme: Scheme = options.scheme().parse().map_err(|error: SchemeError| error.to_string())?;
    if let Scheme::Disk { dir } = &mut scheme {
        let absolute = std::path::absolute(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        if absolute.to_str().is_none() {
            return Err(format!("{}: not UTF-8, which the ranks are told it in", absolute.display()));
        }
        *dir = absolute;
    }
    Ok(scheme)
}

/// The table of collective algorithms. The ranks are told it as a text: they may not see the file.
fn selection(options: &Options) -> Result<Selection, String> {
    let Some(file) = &options.collectives else { return Ok(Selection::builtin()) };
    let text =
        read_text(file).map_err(|error| format!("--collectives: cannot read {}: {error}", file.display()))?;
    Selection::parse(&text).map_err(|error| format!("--collectives {}: {error}", file.display()))
}

/// Says what is wrong with a program before it is started once per rank.
fn require_executable(path: &Path) -> Result<(), String> {
    let about = path.metadata().map_err(|error| format!("cannot run {}: {error}", path.display()))?;
    match about.is_file() && about.permissions().mode() & 0o111 != 0 {
        true => Ok(()),
        false => Err(format!("cannot run {}: not an executable file", path.display())),
    }
}
