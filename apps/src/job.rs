//! From the command line to a job, and from its end to what people and programs read.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ft_checkpoint::{Layout, LayoutError, LoopSettings, Scheme, SchemeError};
use ft_comm::collective::Selection;
use ft_comm::fault::KillSpec;
use ft_comm::transport::Congestion;
use ft_launch::{Cluster, Console, ConsoleError, LaunchError, Order, Stream, launch};
use ft_proto::arbiter::{self, Config, Event, Mtbf};

use crate::invocation::{Invocation, Program};
use crate::options::{Exports, OnFailure, Options};
use crate::progress::{Display, is_watched};
use crate::report::{Ordered, Report};
use crate::say;
use crate::settings::AppSettings;
use crate::text_file::read_text;
use crate::timeline::Recorder;

/// First argument of the processes that the launcher starts, followed by the launcher's own arguments.
pub(crate) const AS_RANK: &str = "--as-rank";
/// The argument of the process that starts ranks on another host.
pub(crate) const AS_AGENT: &str = "--as-agent";
/// First argument of the process that ends what a killed launcher or agent leaves behind, followed by how it is found.
pub(crate) const AS_GUARDIAN: &str = "--as-guardian";

/// Runs the job and reports on it.
pub(crate) fn run(invocation: &Invocation, arguments: &[OsString]) -> ExitCode {
    // There is none before the job begins.
    let mut console = None;
    let (status, complaint) = match try_run(invocation, arguments, &mut console) {
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

fn try_run(
    invocation: &Invocation,
    arguments: &[OsString],
    console: &mut Option<Console>,
) -> Result<i32, Refusal> {
    let mut options = invocation.options.with_hostfile().map_err(usage)?;
    let (scheme, selection) = (scheme(&options).map_err(usage)?, selection(&options).map_err(usage)?);
    let mut own = match &invocation.program {
        Program::App(..) => None,
        Program::Own { path, args } => {
            require_executable(path).map_err(usage)?;
            Some((path.clone(), args))
        }
    };
    options.move_to_folder(own.as_mut().map(|(path, _)| path)).map_err(usage)?;
    let options = &options;
    let cluster = cluster(options).map_err(usage)?;
    let layout = spread(&cluster, &scheme, options).map_err(usage)?;
    options.check_ranks(layout.total_ranks()).map_err(usage)?;
    if let Some(file) = &options.timeline {
        ft_figures::check_path(file).map_err(usage)?;
    }
    // The ranks heed it; here it is checked once.
    Congestion::from_environment().map_err(usage)?;
    let app = match &invocation.program {
        Program::App(_, app) => Some(&**app),
        Program::Own { .. } => None,
    };
    // Only here: a rank must not look at the world outside, nor tidy it up.
    app.map_or(Ok(()), |app| app.check(options)).map_err(usage)?;
    let mut specs = options.kill.clone();
    specs.extend(app.map_or(vec![], |app| app.kills(options)));
    let kills: Vec<String> = specs.iter().map(ToString::to_string).collect();
    let cuts: Vec<String> = options.cut.iter().map(ToString::to_string).collect();

    let Exports { given: environment, unset } = Exports::of(&options.export).map_err(usage)?;
    for name in unset.into_iter().filter(|_| !options.quiet) {
        say::complain(format_args!("-x {name}: there is no such variable, so ranks get none"));
    }
    let mut args: Vec<OsString> = vec![AS_RANK.into()];
    match own {
        None => args.extend_from_slice(arguments),
        Some((path, own_args)) => {
            args.extend_from_slice(&arguments[..arguments.len() - own_args.len() - 1]);
            args.push(path.into());
            args.extend_from_slice(own_args);
        }
    }
    let order = Order {
        program: std::env::current_exe().map_err(failed)?,
        args,
        environment,
        agent: AS_AGENT,
        guardian: AS_GUARDIAN,
        config: config(options, specs, &layout, &selection, &cluster, app.is_some()),
        cluster,
        output_to_stderr: options.json,
        tag_output: options.tag_output || options.verbose,
        carrier: options.transport,
        plain: options.plain,
        waiting: options.wait,
        binding: options.bind,
        slow: options.slow.clone(),
        limit: options.timeout,
    };
    let console = &*console.insert(Console::new().map_err(failed)?);
    let on_disk = matches!(scheme, Scheme::Disk { .. });
    let mut display =
        Display::new(console, options.quiet, options.verbose, kills.clone(), cuts.clone(), on_disk);
    let (mut recorder, computing) = (Recorder::new(layout.total_ranks()), layout.ranks());
    let mut observe = |event: &Event, at| {
        display.show(event, at);
        recorder.note(event, at);
    };
    let ending = launch(order, console, &mut observe).map_err(|error| match error {
        LaunchError::Host { .. } => usage(error),
        _ => failed(error),
    })?;
    display.finish();
    // Ranks tidy up when they leave; one that is killed after the end may have been the last.
    if let (0, Scheme::Disk { dir }) = (ending.code, &scheme) {
        let _ = std::fs::remove_dir_all(dir.join(&ending.job));
    }

    let ordered = Ordered {
        app: match &invocation.program {
            Program::App(name, _) => (*name).into(),
            Program::Own { path, .. } => path.display().to_string(),
        },
        on_failure: options.on_failure,
        seed: options.seed,
        kills,
        cuts,
        is_trial: options.is_trial(),
        selection: selection.identity().into(),
        layout,
    };
    let report = Report::new(ordered, &ending, app);
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
        let title = report.title();
        recorder.save(title, ending.elapsed.as_secs_f64(), computing, file).map_err(failed)?;
    }
    if let Some(app) = app {
        app.finish(report.result()).map_err(failed)?;
    }
    for option in report.unfired_options() {
        console.say(say::wrong(format_args!("{option} never fired")));
    }
    Ok(report.status())
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
    let Some(exec) = &options.launcher_exec else { return Ok(Cluster::new(hosts, None)) };
    // One without a `/` is looked for as a shell would.
    if exec.as_os_str().as_encoded_bytes().contains(&b'/') {
        require_executable(exec).map_err(|error| format!("--launcher-exec: {error}"))?;
    }
    Ok(Cluster::new(hosts, Some(exec.clone())))
}

/// Lays the groups over the hosts, and says so if that does not guard against the loss of one.
fn spread(cluster: &Cluster, scheme: &Scheme, options: &Options) -> Result<Layout, LayoutError> {
    let lay =
        |hosts: Option<&[usize]>| Layout::new(scheme.clone(), options.ranks(), options.parity_ranks, hosts);
    // How many ranks there are does not depend on where they are.
    let ranks = lay(None)?.total_ranks();
    if cluster.hosts().len() == 1 {
        return lay(None);
    }
    let places = cluster.place(ranks);
    let layout = lay(Some(&places))?;
    // Members of a group may share a host as long as they are no more than the group can lose.
    let is_fatal = |host: &usize| {
        let lost: Vec<usize> = (0..ranks).filter(|rank| places[*rank] == *host).collect();
        !layout.groups_sharing_hosts.is_empty() && layout.survives(&lost).is_err()
    };
    let fatal = (0..cluster.hosts().len()).filter(is_fatal).map(|host| cluster.hosts()[host].name.as_str());
    let fatal: Vec<&str> = fatal.collect();
    if !fatal.is_empty() && !options.quiet {
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

fn config(
    options: &Options,
    kills: Vec<KillSpec>,
    layout: &Layout,
    selection: &Selection,
    cluster: &Cluster,
    joins: bool,
) -> Config {
    let table = options.collectives.as_ref().map(|_| selection.to_string());
    let hosts = (cluster.hosts().len() > 1).then(|| cluster.place(layout.total_ranks()));
    let app = AppSettings { seed: options.seed, progress: is_watched(options.quiet) || options.verbose };
    let layers = [
        (LoopSettings::LAYER, options.loop_settings(layout.scheme().clone()).write()),
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
        joins,
        max_restarts: u32::try_from(options.max_restarts).unwrap_or(u32::MAX),
        interval: options.heartbeat_interval(),
        timeout: options.heartbeat_timeout(),
        messages: options.message_settings(table, hosts),
        layers: layers.into_iter().map(|(layer, settings)| (layer.to_owned(), settings)).collect(),
        kills,
        cuts: options.cut.clone(),
        mtbf: options.mtbf.map(|seconds| Mtbf {
            mean: Duration::from_secs_f64(seconds),
            seed: options.seed,
            groups: layout.groups.iter().map(|group| (group.members.clone(), group.tolerance())).collect(),
        }),
    }
}
