//! The command line of `ftrun`, as values.
//!
//! The options of a job stand before the program. A bundled app takes them behind its name as well, mixed with its
//! own; so for a bundled app both sides are read together as one. What follows the path of any other program belongs
//! to that program, whatever it looks like.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::num::{IntErrorKind, ParseIntError};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use ft_comm::binding::Binding;
use ft_comm::fault::{self, CutSpec, KillSpec, SlowSpec};
use ft_comm::transport::{Carrier, Waiting};
use ft_launch::HostList;

use crate::advise::Advise;
use crate::app::{AnyApp, App, BUNDLED, Bundled};
use crate::bench::Bench;
use crate::picture::Picture;
use crate::say;
use crate::text_file::read_text;

mod mpirun;
mod pages;
mod program;
mod tips;

use mpirun::Variable;
use pages::Page;

const SCHEME_HELP: &str = "Where the redundancy lies: none, neighbor[:COPIES], xor[:GROUP], rs:K+M or disk:DIR (default: xor; none for one rank)";

const HOSTS_HELP: &str =
    "Run on these hosts: NAME[:SLOTS],... (default: this one); ranks fill the slots of one after the other";

/// The interval that follows what is measured.
const AUTO: &str = "auto";

/// Exit status for bad usage or input.
const USAGE: u8 = 2;

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A job.
    Job(Box<Invocation>),
    /// Measurements, which start jobs of their own.
    Bench(Bench),
    /// What is best for a program.
    Advise(Box<Advise>),
    /// A picture of a file.
    Picture(Box<Picture>),
    /// A page about this program.
    Page(Page),
}

/// A job to run.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// How to run it.
    pub(crate) options: Options,
    /// What to run.
    pub(crate) program: Program,
}

/// What the ranks run.
#[derive(Debug)]
pub(crate) enum Program {
    /// A bundled app.
    App(&'static Bundled, Box<dyn AnyApp>),
    /// A program of the user's.
    Own { path: PathBuf, args: Vec<OsString> },
}

/// The options of a job.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the job")]
pub(crate) struct Options {
    /// Ranks that compute (default: the slots of the hosts, or the cores of this machine)
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = at_least_one)]
    ranks: Option<usize>,
    /// Dedicated parity ranks per parity group; 0 rotates the parity among the ranks
    #[arg(long, value_name = "M", default_value_t = 0)]
    pub(crate) parity_ranks: usize,
    // Not a doc comment: rustdoc would take the brackets for links.
    #[arg(long, value_name = "S", help = SCHEME_HELP)]
    scheme: Option<String>,
    /// Take a checkpoint every N steps
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = at_least_one)]
    pub(crate) every: usize,
    /// Whether the program waits until a checkpoint is committed, or for the copy of its state only
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Checkpoints::Blocking)]
    pub(crate) checkpoints: Checkpoints,
    /// Let an asynchronous checkpoint encode at most SIZE of a rank's state a second, such as 200MiB
    #[arg(long, value_name = "SIZE", value_parser = crate::size::of_words)]
    pub(crate) throttle: Option<u64>,
    /// Refuse checkpoints that keep more than SIZE of memory on a rank, beside its state
    #[arg(long, value_name = "SIZE", value_parser = crate::size::of_words)]
    pub(crate) checkpoint_memory: Option<u64>,
    /// Let ranks look for damage in what they hold of the last checkpoint, behind the computation, and mend it with the next one
    #[arg(long)]
    pub(crate) scrub: bool,
    /// Take a checkpoint about every SECONDS instead, or with 'auto' as often as is best for what checkpoints are measured to
    /// take and how often the job has failed so far (Daly's optimum)
    #[arg(long, value_name = "SECONDS|auto", value_parser = interval, conflicts_with = "every")]
    pub(crate) interval: Option<String>,
    /// Seconds between two failures of the job, as expected beforehand, for --interval auto; weighs as half a failure
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    expect_mtbf: Option<f64>,
    /// End with the first checkpoint after so many seconds, without an answer
    #[arg(long, hide = true, value_name = "SECONDS", value_parser = positive)]
    trial_seconds: Option<f64>,
    /// End with the first checkpoint after so many steps, without an answer
    #[arg(long, hide = true, value_name = "N", value_parser = at_least_one)]
    trial_steps: Option<usize>,
    /// What happens when ranks are lost
    #[arg(long, value_name = "M", value_enum, default_value_t = OnFailure::Rebuild)]
    pub(crate) on_failure: OnFailure,
    /// Inject a failure, such as 2@step=40; may be repeated
    #[arg(long, value_name = "SPEC")]
    pub(crate) kill: Vec<KillSpec>,
    /// Cut links between two sides, such as 0,1-2@step=40:0.5 for half a second or 3-launcher@time=2 for ever: nothing
    /// passes, and nobody is told; may be repeated
    #[arg(long, value_name = "CUT")]
    pub(crate) cut: Vec<CutSpec>,
    /// Slow links down, such as 0-1:100: each piece of up to 64 KiB leaves (FACTOR - 1) times 20 us + 0.5 ns a byte late;
    /// may be repeated
    #[arg(long, value_name = "SLOW")]
    pub(crate) slow: Vec<SlowSpec>,
    /// Kill a random rank again and again, at this mean time between failures; waits while redundancy is not whole
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) mtbf: Option<f64>,
    /// Where random numbers come from: victims and times of --mtbf, and those of the app
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Start K processes ahead that take the ranks of lost ones without the start of a process
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = up_to_1024)]
    pub(crate) spares: usize,
    /// Give up when the same rank fails more than R times without a checkpoint in between
    #[arg(long, value_name = "R", default_value_t = 3)]
    pub(crate) max_restarts: usize,
    /// Milliseconds between two signs of life (default: 100, or a quarter of the timeout if that is less)
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat_interval: Option<u64>,
    /// Milliseconds of silence after which a rank counts as lost; three intervals or more
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat_timeout: u64,
    // Not a doc comment: rustdoc would take the brackets for links.
    #[arg(long, value_name = "HOSTS", help = HOSTS_HELP, conflicts_with = "hostfile")]
    pub(crate) hosts: Option<HostList>,
    /// The same from a file with a host a line: name slots=N, name:N or name; # begins a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// Start things on hosts, on all of them, by this command: PATH HOST COMMAND... (default: ssh, but not for this host)
    #[arg(long, value_name = "PATH")]
    pub(crate) launcher_exec: Option<PathBuf>,
    /// What carries messages: auto (Unix sockets between ranks of one host, TCP between hosts; long messages within a host are
    /// read from the memory of their sender), unix (as auto, but no memory is read) or tcp
    #[arg(long, value_name = "T", value_parser = one_of::<Carrier>(&Carrier::NAMES), default_value_t)]
    pub(crate) transport: Carrier,
    /// Let everybody on the way read what is sent between hosts; it is authenticated all the same
    #[arg(long)]
    pub(crate) plain: bool,
    /// How ranks wait for messages: spin (a core for every rank), yield (more ranks than cores), sleep (least power), or auto
    #[arg(long, value_name = "W", value_parser = one_of::<Waiting>(&Waiting::NAMES), default_value_t)]
    pub(crate) wait: Waiting,
    /// Bind each rank to a share of the cores: auto (if there is a core for every rank) or none
    #[arg(long, value_name = "B", value_parser = one_of::<Binding>(&Binding::NAMES), default_value_t)]
    pub(crate) bind: Binding,
    /// Choose collective algorithms by this table, as 'ftrun bench collectives' writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) collectives: Option<PathBuf>,
    /// Check before each collective call that all ranks make the same one
    #[arg(long)]
    pub(crate) check: bool,
    /// Say which ranks wait in which calls, and for whom, when some have waited this long
    #[arg(long, value_name = "SECONDS", value_parser = positive_time)]
    pub(crate) watchdog: Option<Duration>,
    /// Print one JSON report on stdout at the end; everything else goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw who computed, took checkpoints, died and was rebuilt, when
    #[arg(long, value_name = "FILE.svg|.png")]
    pub(crate) timeline: Option<PathBuf>,
    /// Give ranks a variable of the environment, on other hosts too: with the value that it has here, or another one; may be repeated
    #[arg(short = 'x', value_name = "VAR[=VALUE]")]
    export: Vec<Variable>,
    /// Let ranks work in this folder; the path of the program is looked up before, from here
    #[arg(long, value_name = "DIR")]
    wdir: Option<PathBuf>,
    /// End the job after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", value_parser = positive_time)]
    pub(crate) timeout: Option<Duration>,
    /// Put its rank before each line that a rank prints
    #[arg(long)]
    pub(crate) tag_output: bool,
    /// Say what happens as it happens, and how far the work is every ten seconds; implies --tag-output
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Say only what went wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What `-x` has named.
pub(crate) struct Exports<'a> {
    /// Variables and their values.
    pub(crate) given: Vec<(String, String)>,
    /// Names of variables that are not there.
    pub(crate) unset: Vec<&'a str>,
}

impl Options {
    /// Ranks that compute; at least one.
    pub(crate) fn ranks(&self) -> usize {
        let slots = || self.hosts.as_ref().map(HostList::slots);
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.ranks.or_else(slots).unwrap_or_else(cores)
    }

    /// The same with the host file read, which only the launcher may do: other hosts need not have it.
    ///
    /// # Errors
    /// The file cannot be read, or names no hosts.
    pub(crate) fn with_hostfile(&self) -> Result<Self, String> {
        let Some(file) = &self.hostfile else { return Ok(self.clone()) };
        let text = read_text(file)
            .map_err(|error| format!("--hostfile: cannot read {}: {error}", file.display()))?;
        let hosts =
            HostList::from_lines(&text).map_err(|error| format!("--hostfile {}: {error}", file.display()))?;
        let options = Self { hosts: Some(hosts), hostfile: None, ..self.clone() };
        options.check().map(|()| options)
    }

    /// The variables that ranks are given, and the names of those that are not set here.
    ///
    /// # Errors
    /// A value is not UTF-8.
    pub(crate) fn exports(&self) -> Result<Exports<'_>, String> {
        let (mut given, mut unset) = (vec![], vec![]);
        for Variable { name, value } in &self.export {
            match value.clone().map_or_else(|| std::env::var(name), Ok) {
                Ok(value) => given.push((name.clone(), value)),
                Err(std::env::VarError::NotPresent) => unset.push(name.as_str()),
                Err(std::env::VarError::NotUnicode(_)) => {
                    return Err(format!("-x {name}: its value is not UTF-8"));
                }
            }
        }
        Ok(Exports { given, unset })
    }

    /// Goes to the folder of the ranks, which they inherit; `program` and what else was named from here is found from there.
    ///
    /// # Errors
    /// There is no such folder.
    pub(crate) fn move_to_folder(&mut self, program: Option<&mut PathBuf>) -> Result<(), String> {
        let Some(folder) = &self.wdir else { return Ok(()) };
        let refused = |error: std::io::Error| format!("--wdir: cannot work in {}: {error}", folder.display());
        // A command without a `/` is looked for as a shell would.
        let is_path = |path: &&mut PathBuf| path.as_os_str().as_encoded_bytes().contains(&b'/');
        let exec = self.launcher_exec.as_mut().filter(is_path);
        for path in [program, exec, self.timeline.as_mut()].into_iter().flatten() {
            *path = std::path::absolute(&path).map_err(refused)?;
        }
        std::env::set_current_dir(folder).map_err(refused)
    }

    /// The scheme as given, or the default for this number of ranks.
    pub(crate) fn scheme(&self) -> &str {
        let default = if self.ranks() == 1 { "none" } else { "xor" };
        self.scheme.as_deref().unwrap_or(default)
    }

    /// Whether the run is only measured.
    pub(crate) fn is_trial(&self) -> bool {
        self.trial_seconds.is_some() || self.trial_steps.is_some()
    }

    /// What the ranks are told of when checkpoints are taken.
    pub(crate) fn interval_settings(&self) -> Vec<(String, String)> {
        let all = [
            ("every", Some(self.every.to_string())),
            ("interval", self.interval.clone()),
            ("expect-mtbf", self.expect_mtbf.map(|seconds| seconds.to_string())),
            ("trial-seconds", self.trial_seconds.map(|seconds| seconds.to_string())),
            ("trial-steps", self.trial_steps.map(|steps| steps.to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Time between two signs of life.
    pub(crate) fn heartbeat_interval(&self) -> Duration {
        let default = || (self.heartbeat_timeout / 4).clamp(1, 100);
        Duration::from_millis(self.heartbeat_interval.unwrap_or_else(default))
    }

    /// Silence after which a rank counts as lost; at least three intervals.
    pub(crate) fn heartbeat_timeout(&self) -> Duration {
        Duration::from_millis(self.heartbeat_timeout)
    }

    /// What no single option can be blamed for.
    fn check(&self) -> Result<(), String> {
        let (interval, timeout) = (self.heartbeat_interval().as_millis(), self.heartbeat_timeout);
        if u128::from(timeout) < 3 * interval {
            return Err(format!(
                "--heartbeat-timeout {timeout} is less than three times --heartbeat-interval {interval}: \
                 living ranks would count as lost"
            ));
        }
        if self.expect_mtbf.is_some() && self.interval.as_deref() != Some(AUTO) {
            return Err("--expect-mtbf is for --interval auto, which is not asked for".into());
        }
        if self.launcher_exec.is_some() && self.hosts.is_none() && self.hostfile.is_none() {
            return Err("--launcher-exec starts things on hosts: name some with --hosts or --hostfile".into());
        }
        if self.throttle.is_some() && self.checkpoints == Checkpoints::Blocking {
            return Err(
                "--throttle is for --checkpoints asynchronous: nobody waits for a slower checkpoint".into()
            );
        }
        // With parity ranks the size of the job depends on the number of groups, with a host file on what is in it; the
        // launcher checks then.
        let is_known = self.parity_ranks == 0 && self.hostfile.is_none();
        if is_known { self.check_ranks(self.ranks()) } else { Ok(()) }
    }

    /// Whether all ranks that are to fail exist in a job of this size.
    pub(crate) fn check_ranks(&self, total: usize) -> Result<(), String> {
        self.kill.iter().try_for_each(|spec| spec.validate(total)).map_err(|error| error.to_string())?;
        self.cut.iter().try_for_each(|spec| spec.validate(total)).map_err(|error| error.to_string())?;
        self.slow.iter().try_for_each(|spec| spec.validate(total)).map_err(|error| error.to_string())
    }
}

/// Whether the program waits for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Checkpoints {
    /// Until it is committed
    Blocking,
    /// For the copy of its state; the rest is done in the calls of the steps that follow
    Asynchronous,
}

/// What to do when ranks are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFailure {
    /// Replacements take the ranks of the lost, and their data is rebuilt
    Rebuild,
    /// The others close up, share the work of the lost, and go on with fewer ranks
    Shrink,
    /// Ranks stay as they are, and nobody holds those of the lost; for programs that can do with holes
    Blank,
    /// The job ends
    Abort,
}

fn up_to_1024(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 1024 => Err("must be at most 1024".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(no_number(&error)),
    }
}

/// What is wrong with a number that counts something.
fn no_number(error: &ParseIntError) -> String {
    match error.kind() {
        IntErrorKind::PosOverflow => error.to_string(),
        _ => "must be a whole number, without a sign".to_owned(),
    }
}

pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(no_number(&error)),
    }
}

pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0);
    number.ok_or_else(|| "must be a number above 0".to_owned())
}

/// Seconds, or [`AUTO`].
fn interval(text: &str) -> Result<String, String> {
    let checked = if text == AUTO { Ok(()) } else { positive(text).map(|_| ()) };
    checked.map(|()| text.to_owned()).map_err(|why| format!("{why}, or {AUTO}"))
}

/// Reads one of a few names.
pub(crate) fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse())
}

/// A time that is neither nothing nor longer than clocks go.
fn positive_time(text: &str) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(positive(text)?).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("must be a number above 0".to_owned()) } else { Ok(time) }
}

/// `ftrun` with any program.
#[derive(Debug, Parser)]
#[command(name = "ftrun", version, max_term_width = 110)]
#[command(about = "Run a program as ranks that survive the loss of some of them")]
#[command(override_usage = "ftrun [OPTIONS] PROGRAM [ARGS...]", after_help = after_help())]
struct AnyProgram {
    #[command(flatten)]
    options: Options,
    /// A bundled app, or another program: a file or a name in $PATH; what follows that belongs to it
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// `ftrun` with a bundled app, whose name has been taken out.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
struct WithApp<A: Args> {
    #[command(flatten)]
    app: A,
    #[command(flatten)]
    options: Options,
}

/// The word of the command line that stands for measurements.
const BENCH: &str = "bench";
/// The word that stands for advice.
const ADVISE: &str = "advise";
/// The word that stands for drawing.
const PICTURE: &str = "picture";
/// The word that stands for help on the words behind it.
const HELP: &str = "help";

/// `ftrun bench`, of which the word `bench` has been taken out.
#[derive(Debug, Parser)]
#[command(name = BENCH, display_name = "ftrun bench", bin_name = "ftrun bench", version, max_term_width = 110)]
#[command(about = "Measure what this machine makes of it")]
#[command(disable_help_subcommand = true, arg_required_else_help = false)]
struct WithBench {
    #[command(subcommand)]
    bench: Bench,
}

/// Reads the command line of app `A`, without its name.
pub(crate) fn parse_app<A: App + Args + 'static>(
    app: &Bundled,
    argv: &[OsString],
) -> Result<(Options, Box<dyn AnyApp>), clap::Error> {
    let with = WithApp::<A>::from_arg_matches(&app_command::<A>(app).try_get_matches_from(argv)?)?;
    Ok((with.options, Box::new(with.app)))
}

/// The command line of app `A`.
pub(crate) fn app_command<A: Args>(app: &Bundled) -> Command {
    let usage = format!("ftrun [OPTIONS] {} {} [OPTIONS]", app.name, app.usage).replace("  ", " ");
    let command = WithApp::<A>::command().name(app.name).display_name(format!("ftrun {}", app.name));
    signed(command.about(app.purpose).override_usage(usage))
}

/// The same command, which takes "-1" for a number and not for options: who writes it wants to hear what is wrong with it.
fn signed(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    });
    command.mut_subcommands(signed)
}

/// Reads the words of one of our commands.
fn read<'a, C: Parser>(argv: impl IntoIterator<Item = &'a OsString>) -> Result<C, Stop> {
    let matches = signed(C::command()).try_get_matches_from(argv);
    matches.and_then(|matches| C::from_arg_matches(&matches)).map_err(stop)
}

fn after_help() -> String {
    let mut text = String::from("Bundled apps ('ftrun APP --help' says more):\n");
    for Bundled { name, purpose, .. } in BUNDLED {
        let _ = writeln!(text, "  {name:<18}{purpose}");
    }
    let _ = writeln!(text, "\nTools ('ftrun TOOL --help' says more):");
    for bench in Bench::augment_subcommands(clap::Command::new(BENCH)).get_subcommands() {
        let about = bench.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "  {:<18}{about}", format!("{BENCH} {}", bench.get_name()));
    }
    let _ = writeln!(text, "  {ADVISE:<18}Measure a program and say which scheme to use, and how often");
    let _ = writeln!(text, "  {PICTURE:<18}Draw a shot gather or a velocity model");
    for (word, about) in pages::WORDS {
        let _ = writeln!(text, "  {word:<18}{about}");
    }
    let grammar = format!("{}\n{}", fault::grammar(), fault::grammar_of_links());
    let _ = write!(text, "\nFailures to inject:\n  {}", grammar.replace('\n', "\n  "));
    text
}

/// Why there is nothing to run: help was asked for, or the command line is wrong.
#[derive(Debug)]
pub(crate) struct Stop {
    status: u8,
    text: String,
}

impl Stop {
    /// Prints the help to stdout or the complaint to stderr, and gives the status to end with.
    pub(crate) fn print(&self) -> ExitCode {
        match self.status {
            0 => say::page(format!("{}\n", self.text)),
            status => {
                say::complain(&self.text);
                ExitCode::from(status)
            }
        }
    }

    fn usage(complaint: &str, hint: &str) -> Self {
        Self { status: USAGE, text: format!("{complaint}\n{hint}") }
    }
}

/// Reads a command line; `argv[0]` is the name of this program.
///
/// # Errors
/// A [`Stop`] to print and to end with.
pub(crate) fn parse(given: &[OsString]) -> Result<Asked, Stop> {
    let argv = mpirun::translated(given);
    let any: AnyProgram = read(&argv)?;
    let (before, command) = argv.split_at(argv.len() - any.command.len());
    let (name, args) = command.split_first().expect("clap asks for a program");
    // What belongs to a program stays as it is.
    let own_args = &given[argv.len() - args.len()..];
    // The `--` of `ftrun -n 4 -- cg` has served its purpose.
    let before = before.strip_suffix(&[OsString::from("--")]).unwrap_or(before);
    if name == BENCH {
        return parse_bench(before, args).map(Asked::Bench);
    }
    if name == ADVISE {
        let argv = std::iter::once(nothing_before(ADVISE, before)?).chain(own_args);
        let advise: Advise = read(argv)?;
        advise.check().map_err(|complaint| Stop::usage(&complaint, ADVISE_HINT))?;
        if [BENCH, ADVISE, PICTURE].contains(&&*advise.program()) {
            let complaint = format!("'{}' is no program that could be measured", advise.program());
            return Err(Stop::usage(&complaint, ADVISE_HINT));
        }
        return parse(&advise.job()).map(|_| Asked::Advise(Box::new(advise)));
    }
    if name == PICTURE {
        let argv = std::iter::once(nothing_before(PICTURE, before)?).chain(args);
        return Ok(Asked::Picture(Box::new(read(argv)?)));
    }
    if pages::WORDS.iter().any(|(word, _)| name == word) {
        nothing_before(&name.display().to_string(), before)?;
        return pages::parse(command).map(Asked::Page);
    }
    if name == HELP {
        let argv: Vec<OsString> = before.iter().chain(args).cloned().chain(["--help".into()]).collect();
        return parse(&argv);
    }
    let invocation = if let Some(bundled) = BUNDLED.iter().find(|app| name == app.name) {
        let argv: Vec<OsString> = before.iter().chain(args).cloned().collect();
        let (options, app) = (bundled.parse)(bundled, &argv).map_err(stop)?;
        Invocation { options, program: Program::App(bundled, app) }
    } else {
        let path = program::own_program(name)?;
        Invocation { options: any.options, program: Program::Own { path, args: own_args.to_vec() } }
    };
    invocation.options.check().map_err(|complaint| Stop::usage(&complaint, HINT))?;
    Ok(Asked::Job(Box::new(invocation)))
}

/// The name of this program, if nothing else stands before `word`.
fn nothing_before<'a>(word: &str, before: &'a [OsString]) -> Result<&'a OsString, Stop> {
    let (program, options) = before.split_first().expect("the name of this program");
    let Some(option) = options.first() else { return Ok(program) };
    let complaint = format!(
        "'{}' stands before '{word}', which is no job and takes options behind its name only",
        option.display()
    );
    Err(Stop::usage(&complaint, HINT))
}

/// Reads what stands before and behind the word `bench`.
fn parse_bench(before: &[OsString], args: &[OsString]) -> Result<Bench, Stop> {
    let program = nothing_before(BENCH, before)?;
    let with: WithBench = read(std::iter::once(program).chain(args))?;
    with.bench.check().map_err(|complaint| Stop::usage(&complaint, BENCH_HINT))?;
    Ok(with.bench)
}

const ADVISE_HINT: &str = "See 'ftrun advise --help'.";

const BENCH_HINT: &str = "See 'ftrun bench --help'.";

const HINT: &str = "See 'ftrun --help'.";

/// Shortens what clap says to its first line, and a hint.
fn stop(error: clap::Error) -> Stop {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Stop { status: 0, text: error.render().ansi().to_string().trim_end().to_owned() };
    }
    let (text, hint) = (error.render().to_string(), tips::on(&error));
    let mut lines = text.strip_prefix("error: ").unwrap_or(&text).lines();
    let mut complaint = lines.next().unwrap_or_default().to_owned();
    let details = lines.take_while(|line| !line.trim().is_empty());
    // A first line that ends in a colon says nothing without the others; elsewhere they are the syntax of a value.
    let glue = if complaint.ends_with(':') { " " } else { "\n" };
    for line in details {
        complaint += glue;
        complaint += if glue == " " { line.trim() } else { line };
    }
    Stop::usage(&complaint, &hint)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn asked(line: &str) -> Result<Asked, Stop> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn good(line: &str) -> Invocation {
        match asked(line) {
            Ok(Asked::Job(invocation)) => *invocation,
            Ok(other) => panic!("{line}: {other:?}"),
            Err(stop) => panic!("{line}: {}", stop.text),
        }
    }

    /// The options of a job with `cg`, and its own as they print.
    fn cg(line: &str) -> (Options, String) {
        match good(line) {
            Invocation { options, program: Program::App(app, args) } if app.name == "cg" => {
                (options, format!("{args:?}"))
            }
            other => panic!("{other:?}"),
        }
    }

    /// The first line of the complaint.
    fn refused(line: &str) -> String {
        let stop = asked(line).expect_err(line);
        assert_eq!(stop.status, USAGE, "{line}");
        format!("ftrun: {}", stop.text.lines().next().unwrap_or_default())
    }

    /// The hint that follows it.
    fn tip(line: &str) -> String {
        asked(line).expect_err(line).text.lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_commands_are_sound() {
        use clap::CommandFactory as _;
        AnyProgram::command().debug_assert();
        WithBench::command().debug_assert();
        Picture::command().debug_assert();
        for app in BUNDLED {
            let stop = asked(&format!("ftrun {} --help", app.name)).expect_err("help");
            assert!(stop.status == 0 && stop.text.contains(app.purpose), "{}: {}", app.name, stop.text);
        }
    }

    #[test]
    fn a_bundled_app_has_defaults() {
        let (options, args) = cg("ftrun -n 4 cg --poisson 8");
        assert_eq!((options.ranks(), options.parity_ranks, options.scheme()), (4, 0, "xor"));
        assert_eq!((options.every, options.on_failure, options.max_restarts), (10, OnFailure::Rebuild, 3));
        assert_eq!(options.heartbeat_interval(), Duration::from_millis(100));
        assert_eq!(options.heartbeat_timeout(), Duration::from_millis(1000));
        let (options_of_100, _) = cg("ftrun -n 4 --heartbeat-timeout 100 cg --poisson 8");
        assert_eq!(options_of_100.heartbeat_interval(), Duration::from_millis(25));
        assert!(options.kill.is_empty() && !options.json && !options.verbose && !options.quiet);
        let expected = "CgArgs { matrix: None, poisson: Some(8), poisson2d: None, rhs: Solution, tol: 1e-8, \
                        max_iter: 10000, precond: None }";
        assert_eq!(args, expected);
        assert_eq!((options.transport, options.wait), (Carrier::Auto, Waiting::Auto));
        assert_eq!(cg("ftrun -n 1 cg --poisson 8").0.scheme(), "none");
        assert!(cg("ftrun cg --poisson 8").0.ranks() >= 1);
    }

    #[test]
    fn a_bundled_app_takes_the_options_on_both_sides() {
        let (options, args) =
            cg("ftrun -n 4 --kill 1@init cg --poisson2d 64 --kill 2@step=40 --json --every 5");
        assert_eq!((options.ranks(), options.every, options.json), (4, 5, true));
        let kills: Vec<String> = options.kill.iter().map(ToString::to_string).collect();
        assert_eq!(kills, ["1@init", "2@step=40"]);
        assert!(args.contains("poisson2d: Some(64)"), "{args}");
        let (options, args) = cg("ftrun -v -- cg --matrix a.mtx --rhs b.mtx --precond jacobi -n3");
        assert_eq!((options.ranks(), options.verbose), (3, true));
        let (options, _) = cg("ftrun --wait sleep cg --poisson 8 --transport tcp");
        assert_eq!((options.transport, options.wait), (Carrier::Tcp, Waiting::Sleep));
        for line in [
            "ftrun --check --collectives a.table cg --poisson 8",
            "ftrun cg --collectives a.table --poisson 8 --check",
        ] {
            let (options, _) = cg(line);
            assert_eq!((options.collectives.as_deref(), options.check), (Some(Path::new("a.table")), true));
        }
        for part in ["matrix: Some(\"a.mtx\")", "rhs: File(\"b.mtx\")", "precond: Jacobi"] {
            assert!(args.contains(part), "{args}");
        }
    }

    #[test]
    fn there_are_as_many_ranks_as_slots() {
        assert_eq!(cg("ftrun --hosts a:3,b cg --poisson 8").0.ranks(), 4);
        assert_eq!(cg("ftrun --hosts a:3,b cg --poisson 8 -n 2").0.ranks(), 2);
        // The ranks read the same line where there is no such file.
        let (options, _) = cg("ftrun --hostfile /no/such/file --launcher-exec rsh cg --poisson 8");
        let complaint = options.with_hostfile().unwrap_err();
        assert_eq!(
            complaint,
            "--hostfile: cannot read /no/such/file: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn what_follows_a_path_belongs_to_that_program() {
        for line in [
            "ftrun -n 2 ./mine --kill x -n 9 -- cg --json",
            "ftrun -n 2 -- ./mine --kill x -n 9 -- cg --json",
        ] {
            let Invocation { options, program: Program::Own { path, args } } = good(line) else {
                panic!("{line}")
            };
            assert_eq!(path, Path::new("./mine"));
            assert_eq!(args, ["--kill", "x", "-n", "9", "--", "cg", "--json"]);
            assert_eq!((options.ranks(), options.kill.len(), options.json), (2, 0, false));
        }
    }

    #[test]
    fn a_file_without_a_slash_is_the_one_here() {
        // Tests run in the directory of their crate.
        let Program::Own { path, args } = good("ftrun Cargo.toml").program else { panic!("not bundled") };
        assert_eq!((path.as_path(), args.len()), (Path::new("./Cargo.toml"), 0));
    }

    #[test]
    fn complaints_are_one_line() {
        for (line, expected) in [
            ("ftrun", "ftrun: the following required arguments were not provided: <PROGRAM>..."),
            (
                "ftrun foo -n 3",
                "ftrun: 'foo' is neither a bundled app nor a file here or in $PATH; bundled apps: cg, pi, ep, seismic, heat, \
                 simulator, collective, ring, load, collective-times",
            ),
            ("ftrun -n 0 cg --poisson 4", "ftrun: invalid value '0' for '--ranks <N>': must be at least 1"),
            ("ftrun cg --poisson 4 -n 0", "ftrun: invalid value '0' for '--ranks <N>': must be at least 1"),
            ("ftrun --every 0 ./x", "ftrun: invalid value '0' for '--every <N>': must be at least 1"),
            ("ftrun -n 2 --poisson 4 cg", "ftrun: unexpected argument '--poisson' found"),
            ("ftrun --rank 4 cg", "ftrun: unexpected argument '--rank' found"),
            (
                "ftrun cg",
                "ftrun: the following required arguments were not provided: \
                 <--matrix <FILE>|--poisson <N>|--poisson2d <N>>",
            ),
            (
                "ftrun cg --matrix a --poisson 4",
                "ftrun: the argument '--matrix <FILE>' cannot be used with '--poisson <N>'",
            ),
            (
                "ftrun cg --poisson 4 --poisson2d 4",
                "ftrun: the argument '--poisson <N>' cannot be used with '--poisson2d <N>'",
            ),
            (
                "ftrun -n 2 cg --poisson 4 -n 3",
                "ftrun: the argument '--ranks <N>' cannot be used multiple times",
            ),
            ("ftrun cg --poisson 4 extra", "ftrun: unexpected argument 'extra' found"),
            (
                "ftrun cg --poisson 4 --tol 0",
                "ftrun: invalid value '0' for '--tol <TOL>': must be a number above 0",
            ),
            (
                "ftrun --watchdog 0 ./x",
                "ftrun: invalid value '0' for '--watchdog <SECONDS>': must be a number above 0",
            ),
            (
                "ftrun cg --poisson 4 --watchdog 1e-12",
                "ftrun: invalid value '1e-12' for '--watchdog <SECONDS>': must be a number above 0",
            ),
            ("ftrun -v -q ./x", "ftrun: the argument '--verbose' cannot be used with '--quiet'"),
            (
                "ftrun --kill 1@stop=3 ./x",
                "ftrun: invalid value '1@stop=3' for '--kill <SPEC>': there is no point 'stop'",
            ),
            (
                "ftrun --hosts a,:2 ./x",
                "ftrun: invalid value 'a,:2' for '--hosts <HOSTS>': ':2' is no host: write NAME or NAME:SLOTS",
            ),
            (
                "ftrun --hosts a --hostfile b ./x",
                "ftrun: the argument '--hosts <HOSTS>' cannot be used with '--hostfile <FILE>'",
            ),
            (
                "ftrun --launcher-exec rsh ./x",
                "ftrun: --launcher-exec starts things on hosts: name some with --hosts or --hostfile",
            ),
            (
                "ftrun --hosts a,b:2 --kill 3@step=1 ./x",
                "ftrun: --kill 3@step=1: rank 3 does not exist, ranks are 0 to 2",
            ),
            (
                "ftrun -n 4 --kill 9@step=1 ./x",
                "ftrun: --kill 9@step=1: rank 9 does not exist, ranks are 0 to 3",
            ),
            (
                "ftrun load --state 9",
                "ftrun: invalid value '9' for '--state <SIZE>': must be a multiple of 8 bytes",
            ),
            (
                "ftrun -n 4 bench recovery",
                "ftrun: '-n' stands before 'bench', which is no job and takes options behind its name only",
            ),
            ("ftrun bench recovery -n 4 --kill 1@step=3", "ftrun: unexpected argument '--kill' found"),
            (
                "ftrun bench collectives --ranks 4,2",
                "ftrun: --ranks: 2 does not follow 4; name rising numbers",
            ),
            ("ftrun bench collectives --ranks 1,2", "ftrun: --ranks: 1 rank has nobody to talk to"),
            (
                "ftrun bench collectives --time 0",
                "ftrun: invalid value '0' for '--time <S>': must be a number above 0",
            ),
            (
                "ftrun bench collectives --model --output a",
                "ftrun: the argument '--model' cannot be used with '--output <TABLE>'",
            ),
            (
                "ftrun bench collectives --output /no/such/folder/a",
                "ftrun: --output: cannot write /no/such/folder/a: No such file or directory (os error 2)",
            ),
            (
                "ftrun --throttle 1MiB ./x",
                "ftrun: --throttle is for --checkpoints asynchronous: nobody waits for a slower checkpoint",
            ),
            ("ftrun --checkpoints never ./x", "ftrun: invalid value 'never' for '--checkpoints <HOW>'"),
            ("ftrun --transport udp ./x", "ftrun: invalid value 'udp' for '--transport <T>'"),
            ("ftrun cg --poisson 4 --wait nap", "ftrun: invalid value 'nap' for '--wait <W>'"),
            ("ftrun bench", "ftrun: 'ftrun bench' requires a subcommand but one was not provided"),
            ("ftrun bench speed", "ftrun: unrecognized subcommand 'speed'"),
            (
                "ftrun bench recovery -n 2 --schemes neighbor,rs:2+2",
                "ftrun: --schemes rs:2+2: rs:2+2 needs 4 ranks a group, there are 2",
            ),
            (
                "ftrun bench recovery --schemes xor,none",
                "ftrun: --schemes none: runs without protection are part of every measurement",
            ),
            ("ftrun bench recovery --state 1MiB,8,1024KiB", "ftrun: --state: 1048576 bytes are named twice"),
            ("ftrun bench recovery --schemes xor,xor", "ftrun: --schemes xor: named twice"),
            (
                "ftrun bench recovery --csv /no/such/folder/a.csv",
                "ftrun: --csv: cannot write /no/such/folder/a.csv: No such file or directory (os error 2)",
            ),
            (
                "ftrun --heartbeat-timeout 100 --heartbeat-interval 34 ./x",
                "ftrun: --heartbeat-timeout 100 is less than three times --heartbeat-interval 34: living ranks would count \
                 as lost",
            ),
            (
                "ftrun --cut 0-0@init ./x",
                "ftrun: invalid value '0-0@init' for '--cut <CUT>': rank 0 is on both sides",
            ),
            (
                "ftrun -n 4 --cut 0-launcher@init --cut 0-9@init ./x",
                "ftrun: --cut 0-9@init: rank 9 does not exist, ranks are 0 to 3",
            ),
            (
                "ftrun --slow 0-1:0.1 ./x",
                "ftrun: invalid value '0-1:0.1' for '--slow <SLOW>': links are slow by a factor from 1 on, not '0.1'",
            ),
            ("ftrun -n 2 --slow 0-2:3 ./x", "ftrun: --slow 0-2:3: rank 2 does not exist, ranks are 0 to 1"),
        ] {
            assert_eq!(refused(line), expected, "{line}");
        }
    }

    #[test]
    fn tips_lead_somewhere() {
        assert_eq!(tip("ftrun --dry-run ./x"), HINT);
        assert_eq!(tip("ftrun --rank 4 cg"), format!("Tip: did you mean '--ranks'? {HINT}"));
        assert_eq!(tip("ftrun cgg"), format!("Tip: did you mean 'cg'? {HINT}"));
        assert_eq!(
            tip("ftrun --poisson 4 cg"),
            "Tip: '--poisson' is an option of 'cg' and stands behind that word; see 'ftrun cg --help'."
        );
    }

    #[test]
    fn words_of_mpirun_are_known() {
        let (options, _) =
            cg("ftrun -np 4 -H a:2,b:2 -x A=1 -x B -wdir /tmp -timeout 2.5 cg --poisson 8 --tag-output");
        assert_eq!((options.ranks(), options.tag_output, options.export.len()), (4, true, 2));
        assert_eq!(options.wdir.as_deref(), Some(Path::new("/tmp")));
        assert_eq!(options.timeout, Some(Duration::from_millis(2500)));
        // What belongs to a program stays as it is.
        let Program::Own { args, .. } = good("ftrun -np 2 ./mine -np 3 -wdir").program else {
            panic!("not bundled")
        };
        assert_eq!(args, ["-np", "3", "-wdir"]);
    }

    #[test]
    fn help_and_version_are_no_complaints() {
        for (line, part) in [
            ("ftrun --help", "Bundled apps"),
            ("ftrun -h", "--heartbeat-timeout"),
            ("ftrun --version", "ftrun 0"),
            ("ftrun cg --help", "--poisson2d"),
            ("ftrun -n 4 cg --help", "--kill"),
            ("ftrun --help", "bench recovery    What"),
            ("ftrun bench --help", "recovery"),
            ("ftrun bench recovery --help", "--schemes"),
            ("ftrun bench collectives --help", "--model"),
        ] {
            let stop = asked(line).expect_err(line);
            assert!(stop.status == 0 && stop.text.contains(part), "{line}: {}", stop.text);
        }
    }
}
