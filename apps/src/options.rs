//! The options of a job, as values. They know of no app, and of no command line but how each of them is written.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ft_checkpoint::{Lines, LoopSettings, MemoryUse, Recovery, SpillEvery};
use ft_comm::binding::Binding;
use ft_comm::fault::{CutSpec, KillSpec, SlowSpec};
use ft_comm::transport::{Carrier, ENV_TRANSPORT, Waiting};
use ft_launch::{Allocation, HostList, Mapping, MpiTask, OutputForm, Placing, StandardInput};

use crate::settings::AppSettings;
use crate::size;
use crate::value::{
    ListenAt, MS_MAX, Timed, address, at_least_one, from_to, interval, kept, one_of, positive, ranks,
    seconds, threads, time, up_to_1024, up_to_ranks,
};

mod check;
mod exports;
mod files;
mod levels;
mod over_mpi;
mod places;
mod restarted;
mod told;

pub(crate) use exports::Exports;
use exports::Variable;
use files::Resumed;
pub(crate) use levels::Levels;
use restarted::SlurmJob;

const SCHEME_HELP: &str = "Where the redundancy lies: none, neighbor[:COPIES], xor[:GROUP], rs:K+M, checksum:K+M or disk:DIR (default: xor; none for one rank)";

const HOSTS_HELP: &str = "Run on these hosts: NAME[:SLOTS],... (default: those of the batch job, or this one); ranks fill the slots of one after the other";

/// The options of a job.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the job")]
pub(crate) struct Options {
    /// Ranks that compute (default: the slots of the hosts, or the cores of this machine)
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = ranks)]
    ranks: Option<usize>,
    /// Dedicated parity ranks per parity group; 0 rotates the parity among the ranks
    #[arg(long, value_name = "M", default_value_t = 0, value_parser = up_to_1024)]
    pub(crate) parity_ranks: usize,
    // Not a doc comment: rustdoc would take the brackets for links.
    #[arg(long, value_name = "S", help = SCHEME_HELP)]
    scheme: Option<String>,
    /// Protect at several levels: schemes, from cheap to strong, each with how often (steps or a time), such as
    /// neighbor@1s,rs:6+2@10s,spill@10min; what one does not survive goes back to the next. 'spill' is for files (--spill)
    #[arg(long, value_name = "LIST", value_parser = |text: &str| text.parse::<Levels>(),
          conflicts_with_all = ["scheme", "every", "interval", "spill_every"])]
    pub(crate) levels: Option<Levels>,
    /// Take a checkpoint every N steps
    #[arg(long, value_name = "N", default_value_t = LoopSettings::EVERY as usize, value_parser = at_least_one)]
    pub(crate) every: usize,
    /// Whether the program waits until a checkpoint is committed, or for the copy of its state only
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Checkpoints::Blocking)]
    pub(crate) checkpoints: Checkpoints,
    /// Whether messages may cross a checkpoint: none may and all ranks take it after the same step ('meet'), those under way come first and are kept ('drain'), or each rank takes
    /// it after a step of its own and nobody waits ('log')
    #[arg(long, value_name = "meet|drain|log", value_parser = |text: &str| text.parse::<Lines>())]
    pub(crate) lines: Option<Lines>,
    /// Which ranks go back to the last checkpoint after a failure: all ('global'), or those that were lost ('local', with --lines log), while others keep the messages that they have sent since
    #[arg(long, value_name = "global|local", value_parser = |text: &str| text.parse::<Recovery>(), default_value = Recovery::Global.name())]
    pub(crate) recovery: Recovery,
    /// With --recovery local, let each rank take a checkpoint sooner when it keeps more than SIZE of messages
    #[arg(long, value_name = "SIZE", value_parser = size::of_words)]
    pub(crate) log_memory: Option<u64>,
    /// Let an asynchronous checkpoint encode at most SIZE of a rank's state a second, such as 200MiB
    #[arg(long, value_name = "SIZE", value_parser = size::of_words)]
    pub(crate) throttle: Option<u64>,
    /// Send only what has changed of a state, where that is a quarter of it or less: it is compared with the last copy but one
    #[arg(long)]
    pub(crate) incremental: bool,
    /// Keep two copies of a rank's state, or with 'least' one: the state itself is the other while a checkpoint is made of it
    #[arg(long, value_name = "least|fast", value_parser = |text: &str| text.parse::<MemoryUse>(), default_value = MemoryUse::Fast.name())]
    pub(crate) memory: MemoryUse,
    /// Refuse checkpoints that keep more than SIZE of memory on a rank, beside its state
    #[arg(long, value_name = "SIZE", value_parser = size::of_words)]
    pub(crate) checkpoint_memory: Option<u64>,
    /// Under --scheme checksum, end the job rather than rebuild doubles with errors of more than REL times the largest of a rank; what
    /// could have more than 1e-6 is kept exactly (default: 1e-6)
    #[arg(long, value_name = "REL", value_parser = positive)]
    pub(crate) checksum_limit: Option<f64>,
    /// Let ranks look for damage in what they hold of the last checkpoint, behind the computation, and mend it with the next one; and
    /// in each copy before it is committed
    #[arg(long)]
    pub(crate) scrub: bool,
    /// Take a checkpoint about every SECONDS instead, or with 'auto' as often as is best for what checkpoints are measured to
    /// take and how often the job has failed so far (Daly's optimum)
    #[arg(long, value_name = "SECONDS|auto", value_parser = interval, conflicts_with = "every")]
    pub(crate) interval: Option<Timed>,
    /// Seconds between two failures of the job, as expected beforehand, for --interval auto; weighs as half a failure
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    expect_mtbf: Option<f64>,
    /// Let a step begin no sooner than SECONDS after the one before, to look on at a job or to kill its processes by hand
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pace: Option<f64>,
    /// End with the first checkpoint after so many seconds, without an answer
    #[arg(long, hide = true, value_name = "SECONDS", value_parser = seconds)]
    trial_seconds: Option<f64>,
    /// End with the first checkpoint after so many steps, without an answer
    #[arg(long, hide = true, value_name = "N", value_parser = at_least_one)]
    trial_steps: Option<usize>,
    /// Write checkpoints to files in DIR too, behind the computation; a job of which nothing is left goes on from them (--resume). SIGUSR1
    /// to ftrun has the newest one written at once; so do Ctrl-C and SIGTERM, and then the job ends
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Write every K-th checkpoint to files, or one about every TIME, such as 30s or 5min (default: 60s)
    #[arg(long, value_name = "K|TIME", value_parser = |text: &str| text.parse::<SpillEvery>(), requires = "spill")]
    spill_every: Option<SpillEvery>,
    /// Keep the N newest checkpoints in files (default: 2)
    #[arg(long, value_name = "N", requires = "spill", value_parser = kept)]
    keep: Option<NonZero<u32>>,
    /// Go on from the newest whole checkpoint in files: DIR is what --spill or --scheme disk:DIR named, or the folder of one job in it
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Resume with another build of the program than the checkpoint is of
    #[arg(long, requires = "resume")]
    accept_build: bool,
    /// Resume with other arguments of the program than the checkpoint is of
    #[arg(long, requires = "resume")]
    accept_arguments: bool,
    /// What was found there.
    #[arg(skip)]
    resumed: Option<Resumed>,
    /// The job of Slurm that this is part of, where checkpoints are written to files.
    #[arg(skip)]
    slurm: Option<SlurmJob>,
    /// What a batch system has given, where no hosts are named.
    #[arg(skip)]
    pub(crate) allocation: Option<Allocation>,
    /// Which of the processes this is that `mpirun` has started, if they are the ranks.
    #[arg(skip)]
    pub(crate) task: Option<MpiTask>,
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
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) mtbf: Option<f64>,
    /// Where random numbers come from: victims and times of --mtbf, and those of the app
    #[arg(long, value_name = "S", default_value_t = AppSettings::default().seed, value_parser = from_to::<u64>(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Start K processes ahead that take the ranks of lost ones without the start of a process
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = up_to_1024)]
    pub(crate) spares: usize,
    /// Give up when the same rank fails more than R times without a checkpoint in between
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = up_to_ranks)]
    pub(crate) max_restarts: usize,
    /// Milliseconds between two signs of life (default: 100, or a quarter of the timeout if that is less)
    #[arg(long, value_name = "MS", value_parser = from_to::<u64>(1..=MS_MAX))]
    heartbeat_interval: Option<u64>,
    /// Milliseconds of silence after which a rank counts as lost; three intervals or more
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = from_to::<u64>(1..=MS_MAX))]
    heartbeat_timeout: u64,
    // Not a doc comment: rustdoc would take the brackets for links.
    #[arg(long, value_name = "HOSTS", help = HOSTS_HELP, conflicts_with = "hostfile")]
    pub(crate) hosts: Option<HostList>,
    /// Read the hosts from a file, one a line: name slots=N, name:N or name, as Open MPI and MPICH
    /// write them; # begins a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) hostfile: Option<PathBuf>,
    /// Put N ranks on each host, whatever number of slots it has
    #[arg(long, value_name = "N", value_parser = ranks)]
    ppn: Option<usize>,
    /// How ranks take the slots: slot (all of a host, then those of the next) or node (one of each host in turn)
    #[arg(long, value_name = "slot|node", value_parser = |text: &str| text.parse::<Mapping>(), default_value_t)]
    pub(crate) map_by: Mapping,
    /// Where ranks go whose host is gone, besides spare hosts: to the host with the fewest processes of the job, or to the one that is the
    /// least busy, whoever keeps it so
    #[arg(long, value_name = "RULE", value_parser = one_of::<Placing>(&Placing::NAMES), default_value_t)]
    pub(crate) place: Placing,
    /// Let there be more ranks than a batch system has given slots
    #[arg(long)]
    oversubscribe: bool,
    /// Keep the last K of the hosts for ranks whose host is lost: they get none at the start
    #[arg(long, value_name = "K", default_value_t = 0, value_parser = up_to_ranks)]
    pub(crate) spare_hosts: usize,
    /// Start things on hosts, on all of them, by this command: PATH HOST COMMAND... (default: that of the batch system or ssh, but not for
    /// this host)
    #[arg(long, value_name = "PATH")]
    pub(crate) launcher_exec: Option<PathBuf>,
    /// On other hosts ftrun and the program are in this folder, under their own names (default: where they are here)
    #[arg(long, value_name = "DIR")]
    pub(crate) remote_path: Option<PathBuf>,
    /// What carries messages: auto (memory that two ranks of one host share, TCP between hosts; long messages within a host are
    /// read from the memory of their sender), unix (sockets within a host), tcp, or mpi (the MPI that the program was built with, under mpirun)
    /// (default: what FTRUN_TRANSPORT says, else auto)
    #[arg(long, value_name = "T", value_parser = one_of::<Carrier>(&Carrier::NAMES))]
    pub(crate) transport: Option<Carrier>,
    /// Let everybody on the way read what is sent between hosts; it is authenticated all the same
    #[arg(long)]
    pub(crate) plain: bool,
    /// Have each host keep the checkpoints of its ranks in memory that outlives their processes: a rank that is replaced on its host
    /// finds its own again, however many are lost at once; redundancy is for lost hosts
    #[arg(long)]
    pub(crate) keep_memory: bool,
    /// How ranks wait for messages: spin (a core for every rank), yield (more ranks than cores), sleep (least power), or auto
    #[arg(long, value_name = "W", value_parser = one_of::<Waiting>(&Waiting::NAMES), default_value_t)]
    pub(crate) wait: Waiting,
    /// Bind each rank to a share of the cores: auto (if there is a core for every rank) or none
    #[arg(long, value_name = "B", value_parser = one_of::<Binding>(&Binding::NAMES), default_value_t)]
    pub(crate) bind: Binding,
    /// Threads that each rank computes with (default: cores of its host over the ranks there); answers do not depend on it
    #[arg(long, value_name = "T", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Choose collective algorithms by this table, as 'ftrun bench collectives' writes it
    #[arg(long, value_name = "FILE")]
    pub(crate) collectives: Option<PathBuf>,
    /// Check before each collective call that all ranks make the same one
    #[arg(long)]
    pub(crate) check: bool,
    /// Say which ranks wait in which calls, and for whom, when some have waited this long
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    pub(crate) watchdog: Option<Duration>,
    /// Show metrics in the text format of Prometheus at http://ADDR/metrics: IP:PORT, NAME:PORT, or
    /// a port of this host alone; 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) metrics: Option<ListenAt>,
    /// Show in browsers how the job is, at an address that is said: IP:PORT, NAME:PORT, or a port
    /// of this host alone; 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) dashboard: Option<ListenAt>,
    /// Print one JSON report on stdout at the end; everything else goes to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw who computed, took checkpoints, died and was rebuilt, when
    #[arg(long, value_name = "FILE.svg|.png")]
    pub(crate) timeline: Option<PathBuf>,
    /// Give ranks a variable of the environment, on other hosts too: with the value that it has here, or another one; may be repeated
    #[arg(short = 'x', value_name = "VAR[=VALUE]")]
    pub(crate) export: Vec<Variable>,
    /// Let ranks work in this folder; the path of the program is looked up before, from here
    #[arg(long, value_name = "DIR")]
    pub(crate) wdir: Option<PathBuf>,
    /// End the job after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Put its rank before each line that a rank prints
    #[arg(long)]
    pub(crate) tag_output: bool,
    /// Keep each line that a rank prints whole, or with 'raw' pass bytes unchanged as they come
    /// (default: lines; raw for one rank)
    #[arg(long, value_name = "lines|raw", value_enum)]
    output: Option<Output>,
    /// Send standard input to no rank, to rank 0 on whichever host it runs, or to all ranks
    /// (default: rank 0 reads it if it runs on this host; from a terminal it is always sent to it)
    #[arg(long, value_name = "none|0|all", value_enum)]
    stdin: Option<Stdin>,
    /// Say what happens as it happens, and how far the work is every ten seconds; implies --tag-output
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Say only what went wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Whether the program waits for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Checkpoints {
    /// Until it is committed
    Blocking,
    /// For the copy of its state; the rest is done in the calls of the steps that follow
    Asynchronous,
}

/// How output of several ranks is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Lines stay whole
    Lines,
    /// Bytes pass unchanged
    Raw,
}

/// The ranks that get standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stdin {
    /// No rank
    None,
    /// Rank 0, on whichever host it runs
    #[value(name = "0")]
    First,
    /// All ranks, each of them all of it
    All,
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

impl Options {
    /// Returns `true` if the number of ranks is given.
    pub(crate) fn has_ranks(&self) -> bool {
        self.ranks.is_some()
    }

    /// Ranks that compute; at least one.
    pub(crate) fn ranks(&self) -> usize {
        let slots = || self.hosts.as_ref().map(|hosts| hosts.slots_without(self.spare_hosts));
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.ranks.or_else(|| self.ranks_of_mpi()).or_else(slots).unwrap_or_else(cores)
    }

    /// What carries messages, as the option or the environment says.
    pub(crate) fn carrier(&self) -> Result<Carrier, String> {
        match (self.transport, std::env::var_os(ENV_TRANSPORT)) {
            (Some(carrier), _) => Ok(carrier),
            (None, None) => Ok(Carrier::default()),
            (None, Some(value)) => {
                value.to_string_lossy().parse().map_err(|error| format!("{ENV_TRANSPORT}: {error}"))
            }
        }
    }

    /// The scheme as given, or the default for this number of ranks.
    pub(crate) fn scheme(&self) -> &str {
        let default = if self.ranks() == 1 { "none" } else { "xor" };
        let of_levels = self.levels.as_ref().map(|levels| levels.scheme.as_str());
        of_levels.or(self.scheme.as_deref()).unwrap_or(default)
    }

    /// Whether messages may cross checkpoints.
    pub(crate) fn lines(&self) -> Lines {
        let default = if self.recovery == Recovery::Local { Lines::Log } else { Lines::default() };
        self.lines.unwrap_or(default)
    }

    /// How output of `processes` processes is put together.
    pub(crate) fn output_form(&self, processes: usize) -> OutputForm {
        match self.output {
            Some(Output::Raw) => OutputForm::Raw,
            _ if self.tag_output || self.verbose => OutputForm::Tagged,
            None if processes == 1 => OutputForm::Raw,
            _ => OutputForm::Lines,
        }
    }

    /// The ranks that get standard input.
    pub(crate) fn standard_input(&self) -> StandardInput {
        match self.stdin {
            None => StandardInput::default(),
            Some(Stdin::None) => StandardInput::None,
            Some(Stdin::First) => StandardInput::First,
            Some(Stdin::All) => StandardInput::All,
        }
    }

    /// Whether the run is only measured.
    pub(crate) fn is_trial(&self) -> bool {
        self.trial_seconds.is_some() || self.trial_steps.is_some()
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
}
