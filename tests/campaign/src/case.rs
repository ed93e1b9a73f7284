//! A job and what is done to it, as a seed and a number choose them.

use std::fmt;

use rustix::process::Signal;

use crate::app::App;
use crate::doors::Manner;
use crate::processes::Kind;
use crate::random::Random;
use crate::strike::{Deed, Event, Strike, When, Who};
use crate::surroundings::Surroundings;

/// What becomes of an output of the launcher.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stream {
    /// Somebody reads it.
    Read,
    /// The pipe is full, and is read only after so many milliseconds.
    Paused(f64),
    /// Nobody reads it any more.
    Closed,
    /// It goes to a full disk.
    Full,
    /// It is a terminal with so many columns.
    Terminal { columns: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Rebuild,
    Shrink,
    Abort,
}

/// A scheme, from how many ranks on, and how many of a group it can lose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    fits: usize,
    pub(crate) tolerance: usize,
}

/// Folder of checkpoints in files, beside that of the scheme `disk`.
pub(crate) const FLUSHED: &str = "checkpoints-flushed";

const SCHEMES: [Scheme; 14] = [
    Scheme { name: "none", fits: 1, tolerance: 0 },
    Scheme { name: "neighbor", fits: 2, tolerance: 1 },
    Scheme { name: "xor", fits: 2, tolerance: 1 },
    Scheme { name: "xor:2", fits: 2, tolerance: 1 },
    Scheme { name: "xor:3", fits: 3, tolerance: 1 },
    Scheme { name: "rs:1+1", fits: 2, tolerance: 1 },
    Scheme { name: "rs:2+1", fits: 3, tolerance: 1 },
    Scheme { name: "neighbor:2", fits: 3, tolerance: 2 },
    Scheme { name: "rs:2+2", fits: 4, tolerance: 2 },
    Scheme { name: "rs:4+2", fits: 6, tolerance: 2 },
    Scheme { name: "rs:3+3", fits: 6, tolerance: 3 },
    Scheme { name: "checksum:2+1", fits: 3, tolerance: 1 },
    Scheme { name: "checksum:4+2", fits: 6, tolerance: 2 },
    Scheme { name: "disk:checkpoints", fits: 1, tolerance: usize::MAX },
];

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    /// Whether no other app could be chosen.
    alone: bool,
    pub(crate) app: App,
    pub(crate) ranks: usize,
    pub(crate) scheme: Scheme,
    pub(crate) mode: Mode,
    pub(crate) timeout_ms: f64,
    /// Hosts beside that of the launcher, with so many ranks each; none is this host alone.
    pub(crate) hosts: Option<(usize, usize)>,
    pub(crate) spares: usize,
    pub(crate) surroundings: Surroundings,
    /// Whether the scheme is the first of several levels.
    has_levels: bool,
    /// Whether checkpoints are written to files, too.
    pub(crate) flushes: bool,
    /// The other options.
    pub(crate) options: String,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    pub(crate) strikes: Vec<Strike>,
}

impl Scheme {
    /// Whether doubles come back with rounding.
    fn rounds(self) -> bool {
        self.name.starts_with("checksum")
    }
}

impl Case {
    /// Whether the answer may have been rounded.
    pub(crate) fn is_rounded(&self) -> bool {
        self.scheme.rounds()
    }

    /// Whether this is a process that no other had to be lost for.
    pub(crate) fn is_first(&self, kind: Kind) -> bool {
        let parity = if self.options.contains("--parity-ranks") { self.scheme.tolerance } else { 0 };
        matches!(kind, Kind::Rank(number) if number <= self.ranks + parity)
    }

    pub(crate) fn new(seed: u64, number: u64, wanted: Option<&str>) -> Self {
        let mut random = Random::of_run(seed, number);
        let app = App::choose(&mut random, wanted);
        let ranks = random.weighed(&[(1, 1), (3, 2), (4, 3), (10, 4), (3, 5), (4, 6), (1, 8)]);
        let timeout_ms = random.one_of(&[1000.0, 600.0]);
        let hosts = (ranks > 1 && random.percent(25)).then(|| {
            let hosts = ranks.min(2 + random.below(2));
            (hosts, ranks.div_ceil(hosts))
        });
        let strikes = strikes(&mut random, ranks, timeout_ms, hosts.is_some(), app.is_own());
        let lines = app.lines(&mut random);
        let is_lined = !lines.is_empty() || app.crosses();
        let can_round = app.may_be_rounded() && !is_lined;
        let scheme = scheme(&mut random, ranks, losses(&strikes), is_lined, can_round);
        let protects = scheme.tolerance > 0 && !scheme.name.starts_with("disk");
        let mode = match random.below(100) {
            0..15 if app.shrinks() && protects && !is_lined && !scheme.rounds() => Mode::Shrink,
            15..25 => Mode::Abort,
            _ => Mode::Rebuild,
        };
        let parity = match scheme.tolerance {
            tolerance @ 1..=3
                if mode != Mode::Shrink
                    && !scheme.name.starts_with("neighbor")
                    && !scheme.rounds()
                    && random.percent(15) =>
            {
                tolerance
            }
            _ => 0,
        };
        let (stdout, stderr) = match random.below(100) {
            0..4 => (paused(&mut random, timeout_ms), Stream::Read),
            4..8 => (Stream::Read, paused(&mut random, timeout_ms)),
            8 => (Stream::Closed, Stream::Read),
            9 => (Stream::Full, Stream::Read),
            10 => (Stream::Read, Stream::Closed),
            11 => (Stream::Read, Stream::Full),
            _ => (Stream::Read, Stream::Read),
        };
        let has_levels = protects
            && app.has_interval()
            && !is_lined
            && parity == 0
            && mode != Mode::Shrink
            && ranks >= 4
            && random.percent(15);
        // A line that is not a step of all ranks has no files.
        let flushes =
            mode != Mode::Shrink && !is_lined && !scheme.name.starts_with("disk") && random.percent(25);
        let mut options = options(&mut random, &app, is_lined, has_levels) + lines;
        if has_levels {
            let files = if flushes { ",spill@40" } else { "" };
            let second = random.one_of(&["rs:2+2", "neighbor:2"]);
            options += &format!(" --levels {}@5,{second}@20{files}", scheme.name);
        }
        if flushes {
            options += &format!(" --spill {FLUSHED}");
            if !has_levels {
                options += &format!(" --spill-every {}", 1 + random.below(4));
            }
        }
        if options.contains("--recovery local") && random.percent(30) {
            options += " --log-memory 64KiB";
        }
        if parity > 0 {
            options += &format!(" --parity-ranks {parity}");
        }
        if mode == Mode::Rebuild && protects && random.percent(40) {
            options += " --keep-memory";
        }
        if protects && !is_lined && !scheme.rounds() && random.percent(30) {
            options += " --incremental";
        } else if protects && !is_lined && !options.contains("asynchronous") && random.percent(30) {
            options += " --memory least";
        }
        let spares = if random.percent(25) { 1 + random.below(2) } else { 0 };
        // Apps that write files of results end when they cannot.
        let fits = flushes && !app.writes_files();
        let surroundings = Surroundings::choose(&mut random, fits);
        let stderr = match surroundings {
            Surroundings::Terminal { columns, .. } => Stream::Terminal { columns },
            _ => stderr,
        };
        Self {
            seed,
            number,
            alone: wanted.is_some(),
            app,
            ranks,
            scheme,
            mode,
            timeout_ms,
            hosts,
            spares,
            surroundings,
            has_levels,
            flushes,
            options,
            stdout,
            stderr,
            strikes,
        }
    }

    /// The arguments of `ftrun`.
    pub(crate) fn arguments(&self) -> String {
        let Self { ranks, scheme, options, timeout_ms, .. } = self;
        let scheme = if self.has_levels { String::new() } else { format!(" --scheme {}", scheme.name) };
        let mut text = format!("-n {ranks}{scheme}{options} --heartbeat-timeout {timeout_ms}");
        text += match self.mode {
            Mode::Rebuild => "",
            Mode::Shrink => " --on-failure shrink",
            Mode::Abort => " --on-failure abort",
        };
        if self.spares > 0 {
            text += &format!(" --spares {}", self.spares);
        }
        if let Some((hosts, slots)) = self.hosts {
            let names: Vec<String> = (0..hosts).map(|host| format!("127.0.0.{}:{slots}", host + 2)).collect();
            text += &format!(" --launcher-exec ../exec --hosts {}", names.join(","));
        }
        text += if self.app.is_own() { " " } else { " --json -v " };
        text + &self.app.arguments()
    }

    /// Whether it needs a file of `ftrun` of its own.
    pub(crate) fn replaces(&self) -> bool {
        self.strikes.iter().any(|strike| matches!(strike.deed, Deed::Replace { .. }))
    }

    /// What its strikes are counted as.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&str> = self.strikes.iter().map(Strike::kind).collect();
        for (stream, of) in [
            (self.stdout, ["stdout paused", "stdout closed", "stdout full"]),
            (self.stderr, ["stderr paused", "stderr closed", "stderr full"]),
        ] {
            match stream {
                Stream::Read | Stream::Terminal { .. } => {}
                Stream::Paused(_) => kinds.push(of[0]),
                Stream::Closed => kinds.push(of[1]),
                Stream::Full => kinds.push(of[2]),
            }
        }
        if kinds.is_empty() {
            kinds.push("nothing");
        }
        kinds
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alone = if self.alone { format!(" --app {}", self.app.name) } else { String::new() };
        writeln!(f, "  again: campaign --seed {} --only {}{alone}", self.seed, self.number)?;
        writeln!(f, "  ftrun {}", self.arguments())?;
        if self.surroundings != Surroundings::Usual {
            writeln!(f, "  {:?}", self.surroundings)?;
        }
        for (name, stream) in [("stdout", self.stdout), ("stderr", self.stderr)] {
            if stream != Stream::Read {
                writeln!(f, "  {name}: {stream:?}")?;
            }
        }
        self.strikes.iter().try_for_each(|strike| writeln!(f, "  {strike}"))
    }
}

/// Ranks that strikes can cost at one time, but for hosts.
fn losses(strikes: &[Strike]) -> usize {
    let of = |strike: &Strike| match strike.deed {
        Deed::Signal { who: Who::Ranks(count), .. } => count,
        _ => 0,
    };
    strikes.iter().map(of).sum()
}

/// One that fits, and mostly one that bears so many losses.
fn scheme(random: &mut Random, ranks: usize, losses: usize, is_lined: bool, can_round: bool) -> Scheme {
    let fits = |scheme: &&Scheme| {
        let is_excluded = is_lined && scheme.name.starts_with("disk") || scheme.rounds() && !can_round;
        scheme.fits <= ranks && !is_excluded
    };
    let fitting: Vec<Scheme> = SCHEMES.iter().filter(fits).copied().collect();
    let good: Vec<Scheme> = fitting.iter().filter(|scheme| scheme.tolerance >= losses).copied().collect();
    let careless = random.percent(12) || good.is_empty();
    random.one_of(if careless { &fitting } else { &good })
}

fn paused(random: &mut Random, timeout_ms: f64) -> Stream {
    // Mostly short, since it is nothing but waiting.
    Stream::Paused(12.0 * random.between(0.0, 1.0).powi(3) * timeout_ms.min(600.0))
}

fn options(random: &mut Random, app: &App, is_lined: bool, has_levels: bool) -> String {
    let mut text = String::new();
    // Levels say how often.
    if app.has_interval() && !has_levels {
        let chosen = [
            (60, format!(" --every {}", 1 + random.below(20))),
            (10, " --interval 0.02".to_owned()),
            (10, " --interval auto".to_owned()),
            (20, String::new()),
        ];
        text += &random.weighed(&chosen);
    }
    if random.percent(30) {
        text += " --checkpoints asynchronous";
        if random.percent(20) {
            text += " --throttle 50MiB";
        }
    }
    let others: [(usize, &[&str]); 8] = [
        (if is_lined { 0 } else { 20 }, &[" --scrub"]),
        (40, &[" --transport unix", " --transport tcp"]),
        (20, &[" --wait sleep", " --wait yield"]),
        (10, &[" --check"]),
        (10, &[" --watchdog 0.5"]),
        (10, &[" --bind none"]),
        (15, &[" --threads 1", " --threads 2", " --threads 3"]),
        (10, &[" --map-by node", " --map-by slot"]),
    ];
    for (chance, words) in others {
        if random.percent(chance) {
            text += random.one_of(words);
        }
    }
    text
}

/// `own` programs do not say what happens to them, so their strikes come by the clock.
fn strikes(random: &mut Random, ranks: usize, timeout_ms: f64, hosts: bool, own: bool) -> Vec<Strike> {
    let middle = When::Part(random.between(0.0, 1.05));
    let soon = |random: &mut Random, most: f64| random.between(0.0, most).powi(2) / most;
    let first = Strike::kill(middle, Who::Ranks(1));
    let beyond = Some(timeout_ms * random.between(1.3, 3.0));
    let mut strikes = match random.below(if hosts { 140 } else { 100 }) {
        0..4 => vec![],
        4..18 => vec![first],
        18..28 => vec![Strike::kill(middle, Who::Ranks(2))],
        28..38 => {
            let at = When::Said(Event::Lost, soon(random, 20.0));
            vec![first, Strike::kill(at, Who::Ranks(1))]
        }
        38..44 => {
            let event = random.one_of(&[Event::Back, Event::Restored]);
            vec![first, Strike::kill(When::Said(event, soon(random, 10.0)), Who::Ranks(1))]
        }
        44..54 => vec![first, Strike::kill(When::Newborn(soon(random, 10.0)), Who::Newest)],
        54..58 => vec![first, Strike::stop(When::Newborn(soon(random, 10.0)), Who::Newest, None)],
        58..64 => vec![Strike::kill(When::Birth(soon(random, 40.0)), Who::Ranks(1))],
        64..67 => vec![Strike::stop(When::Birth(soon(random, 40.0)), Who::Ranks(1), None)],
        67..72 => vec![Strike::kill(When::Said(Event::Done, soon(random, 5.0)), Who::Ranks(1))],
        72..77 => {
            vec![Strike::stop(middle, Who::Ranks(1), Some(timeout_ms * random.between(0.05, 0.4)))]
        }
        77..84 => vec![Strike::stop(middle, Who::Ranks(1), if random.percent(50) { beyond } else { None })],
        84..87 => vec![Strike::kill(middle, Who::AllRanks)],
        87..91 => vec![Strike::kill(middle, Who::Launcher)],
        91..95 => {
            let signal = random.one_of(&[Signal::INT, Signal::TERM, Signal::HUP]);
            let deed = Deed::Signal { who: Who::Launcher, signal, resume: None };
            vec![Strike { when: middle, deed }]
        }
        95..98 => {
            let part = random.one_of(&[0.5, 1.5, 4.0]);
            vec![Strike::stop(middle, Who::Launcher, Some(part * timeout_ms))]
        }
        98..100 => {
            let resume = Some(timeout_ms * random.between(0.5, 3.0));
            let deed = Deed::Signal { who: Who::Launcher, signal: Signal::TSTP, resume };
            vec![Strike { when: middle, deed }]
        }
        100..118 => vec![Strike::kill(middle, Who::Agent)],
        118..128 => vec![Strike::stop(middle, Who::Agent, if random.percent(50) { beyond } else { None })],
        128..134 => vec![
            Strike::kill(middle, Who::Agent),
            Strike::kill(When::Newborn(soon(random, 10.0)), Who::Newest),
        ],
        _ => vec![Strike::kill(middle, Who::Agent), first],
    };
    if ranks == 1 {
        strikes.retain(|strike| !matches!(strike.deed, Deed::Signal { who: Who::Ranks(2), .. }));
    }
    if own {
        strikes.retain(|strike| !matches!(strike.when, When::Said(..)));
    }
    if random.percent(6) {
        // Before most losses, so that a replacement is started after it, and not before the launcher itself is started.
        let when = When::Birth(soon(random, 40.0));
        strikes.push(Strike { when, deed: Deed::Replace { is_removed: random.percent(50) } });
    }
    if hosts && random.percent(15) {
        let resume = if random.percent(50) { beyond } else { None };
        strikes.push(Strike::stop(middle, Who::Keeper, resume));
    }
    if random.percent(15) {
        let manner = random.one_of(&[Manner::Silent, Manner::OneByte, Manner::Garbage, Manner::Http]);
        let count = random.one_of(&[5, 50, 300]);
        let when = match own {
            true => When::Part(random.between(0.1, 0.6)),
            false => When::Said(Event::Joined, soon(random, 50.0)),
        };
        strikes.push(Strike { when, deed: Deed::Strangers { manner, count } });
    }
    strikes
}
