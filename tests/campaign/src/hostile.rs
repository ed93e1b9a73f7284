//! Files that nobody expects, where `ftrun` reads some: in the folder of a job that is resumed, and
//! named by options. FIFOs, devices, sockets, sparse files of terabytes, lengths that nothing
//! stands for, damage. Each is refused by name, or makes no difference.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::Value;
use tempfile::TempDir;

use crate::app::App;
use crate::programs::Programs;
use crate::random::Random;
use crate::reference::{Reference, References};
use crate::run::{self, Order, Outcome};
use crate::surroundings::Surroundings;
use crate::workers::{Judged, Work};

/// Time for anything that is run.
const PATIENCE: Duration = Duration::from_secs(30);
/// Ranks of the job that has left files.
const RANKS: usize = 3;
/// Loses a rank that nothing restores, late enough that some sets are in files.
const LEAVES_FILES: &str = "--scheme none --every 1 --spill-every 1 --keep 3 --pace 0.02 --kill 0@step=24";
/// How often that is tried: files are written beside the work, and may be late.
const TRIES: usize = 20;
/// A length that no disk has. Who believes it comes to the limit of addresses.
const SPARSE: u64 = 8 << 40;
/// Where the header of a shard or manifest has the length, and its own bytes.
const HEADER: (u64, u64) = (40, 64);

/// What lies where a file should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Fifo,
    /// A link to `/dev/zero`.
    Device,
    Directory,
    Socket,
    /// A link to itself.
    Loop,
    Gone,
    Empty,
    /// The file, with zeros up to [`SPARSE`].
    Sparse,
    /// The same, and its header claims that.
    Claim,
    /// Its first half.
    Cut,
    /// With a bit turned over.
    Flipped,
    /// A link to the file.
    Link,
    /// The file, with another name too.
    SecondName,
}

const THINGS: [(usize, Thing); 13] = [
    (4, Thing::Fifo),
    (3, Thing::Device),
    (2, Thing::Directory),
    (1, Thing::Socket),
    (1, Thing::Loop),
    (1, Thing::Gone),
    (1, Thing::Empty),
    (4, Thing::Sparse),
    (4, Thing::Claim),
    (1, Thing::Cut),
    (2, Thing::Flipped),
    (2, Thing::Link),
    (2, Thing::SecondName),
];

impl Thing {
    /// Puts it to `path`, where a file may be. What it needs more is put into `beside`.
    fn put(self, path: &Path, beside: &Path, random: &mut Random) -> io::Result<()> {
        let bytes = fs::read(path).unwrap_or_default();
        let moved = beside.join(format!("moved-{}", random.below(usize::MAX)));
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match self {
            Self::Fifo => Ok(mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?),
            Self::Device => symlink("/dev/zero", path),
            Self::Directory => fs::create_dir(path),
            // The path of a socket must be short.
            Self::Socket => UnixListener::bind(path).map(|_| ()).or_else(|_| fs::create_dir(path)),
            Self::Loop => symlink(path, path),
            Self::Gone => Ok(()),
            Self::Empty => fs::write(path, ""),
            Self::Sparse | Self::Claim => {
                fs::write(path, &bytes)?;
                let file = OpenOptions::new().write(true).open(path)?;
                file.set_len(SPARSE)?;
                let (at, own) = HEADER;
                let is_claimed = self == Self::Claim && bytes.len() as u64 >= own;
                // The fields are told behind a state.
                let behind = if path.ends_with("manifest") { 0 } else { 100 };
                let claimed = SPARSE - own - behind;
                if is_claimed { file.write_all_at(&claimed.to_le_bytes(), at) } else { Ok(()) }
            }
            Self::Cut => fs::write(path, &bytes[..bytes.len() / 2]),
            Self::Flipped => {
                let mut bytes = bytes;
                let at = random.below(bytes.len());
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << random.below(8));
                fs::write(path, bytes)
            }
            Self::Link => {
                fs::write(&moved, bytes)?;
                symlink(&moved, path)
            }
            Self::SecondName => {
                fs::write(&moved, bytes)?;
                fs::hard_link(&moved, path)
            }
        }
    }

    /// Whoever reads the file finds it as it was.
    fn is_harmless(self) -> bool {
        matches!(self, Self::Link | Self::SecondName)
    }

    /// What no reader can make anything of, whatever was in the file.
    fn is_no_input(self) -> bool {
        !self.is_harmless() && !matches!(self, Self::Empty | Self::Cut | Self::Flipped)
    }
}

/// Options that name a file, and what a right one has in it.
const INPUTS: [(&str, &str, &str); 9] = [
    ("solve --solver gmres --matrix", "a.mtx", MATRIX),
    (
        "cg --poisson 2 --rhs",
        "b.mtx",
        "%%MatrixMarket matrix array real general\n8 1\n1\n1\n1\n1\n1\n1\n1\n1\n",
    ),
    ("ring --rounds 3 --hostfile", "hosts", "localhost slots=4\n"),
    ("ring --rounds 3 --collectives", "table", ""),
    ("seismic --synthetic layers --shape 101x61 --time 0.1 --freq 12 --geometry", "g.toml", "shots = 1\n"),
    (
        "seismic --synthetic layers --shape 101x61 --time 0.1 --freq 12 --shots 1 --wavelet",
        "w",
        "0 0\n0.1 1\n",
    ),
    ("seismic --time 0.1 --freq 12 --shots 1 --shape 9x9 --spacing 10 --model", "m.bin", ""),
    ("seismic --time 0.1 --freq 12 --shots 1 --spacing 10 --model", "m.npy", ""),
    ("seismic --time 0.1 --freq 12 --shots 1 --spacing 10 --model", "m.sgy", ""),
];

const MATRIX: &str = "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 2\n2 2 2\n3 3 2\n";

/// See the module.
pub(crate) struct Hostile<'a> {
    programs: &'a Programs,
    seed: u64,
    app: App,
    references: References<'a>,
    /// The folder with that of the job in it.
    left: TempDir,
    /// The name of that.
    job: String,
    /// Sets with a manifest, the newest last.
    sets: Vec<u32>,
}

impl<'a> Hostile<'a> {
    /// Runs a job that leaves files.
    pub(crate) fn new(programs: &'a Programs, seed: u64) -> Result<Self, String> {
        let app = App::small();
        for _ in 0..TRIES {
            let left = programs.folder()?;
            let arguments = format!("-n {RANKS} {LEAVES_FILES} --spill left {}", app.arguments());
            let command = run::command(&programs.ftrun, left.path(), &arguments, Surroundings::Usual)
                .map_err(|error| error.to_string())?;
            let order = Order { deadline: PATIENCE, ..Order::undisturbed(command) };
            let outcome = run::run(order).map_err(|error| format!("ftrun {arguments}: {error}"))?;
            if outcome.status != 3 {
                return Err(format!("ftrun {arguments}: status {}, not 3\n{outcome}", outcome.status));
            }
            let found = sets(&left.path().join("left")).map_err(|error| error.to_string())?;
            if let Some((job, sets)) = found
                && sets.len() >= 2
            {
                let references = References::new(programs);
                return Ok(Self { programs, seed, app, references, left, job, sets });
            }
        }
        Err(format!("in {TRIES} tries no job has left two checkpoints in files"))
    }

    fn resumes(&self, number: u64, mut random: Random) -> Result<Judged, String> {
        let failed = |error: io::Error| format!("run {number}: {error}");
        let folder = self.programs.folder()?;
        let job = folder.path().join("left").join(&self.job);
        copy(&self.left.path().join("left").join(&self.job), &job).map_err(failed)?;
        let (mut whole, mut has_command, mut done) = (self.sets.clone(), true, vec![]);
        for _ in 0..=random.below(3) {
            let (target, set) = self.target(&mut random);
            let thing = random.weighed(&THINGS);
            if done.iter().any(|(other, _)| *other == target) {
                continue;
            }
            thing.put(&job.join(&target), folder.path(), &mut random).map_err(failed)?;
            done.push((target, thing));
            match set {
                _ if thing.is_harmless() => {}
                Spoilt::Set(set) => whole.retain(|whole| *whole != set),
                Spoilt::All => whole.clear(),
                Spoilt::Command => has_command = false,
                Spoilt::Nothing => {}
            }
        }
        let look = random.one_of(&["inspect left", "inspect --all-bytes left", "inspect --json left"]);
        let looked = self.ftrun(folder.path(), look)?;
        let others =
            ["", "", "-n 1", "-n 2", "-n 4 --scheme rs:2+2", "--spill left --spill-every 1 --every 2"];
        let resume = format!("--json {} --resume left {}", random.one_of(&others), self.app.arguments());
        let resumed = self.ftrun(folder.path(), &resume)?;

        let mut findings = vec![];
        if !(0..=2).contains(&looked.status) {
            findings.push(("inspect", format!("ftrun {look}: status {}", looked.status)));
        }
        [&looked, &resumed].into_iter().for_each(|outcome| findings.extend(always(outcome)));
        findings.extend(self.answer(&resumed)?);
        if resumed.status != 0 {
            if !whole.is_empty() && has_command {
                findings.push(("not resumed", format!("sets {whole:?} are whole, and the status is not 0")));
            } else if !resumed.stderr.contains("left") {
                findings.push(("cause not named", "no line names a file".into()));
            }
        }
        let account = format!("  ftrun {look}\n{looked}\n  ftrun {resume}\n{resumed}");
        Ok(self.judged(number, "resume", &done, resumed.status, findings, account))
    }

    /// A file in the folder of the job, or a name that is free, and what is spoilt with it.
    fn target(&self, random: &mut Random) -> (String, Spoilt) {
        let newest = self.sets.last().copied().unwrap_or(1);
        let set = if random.percent(60) { newest } else { random.one_of(&self.sets) };
        let file =
            if random.percent(30) { "manifest".into() } else { format!("rank-{}", random.below(RANKS)) };
        match random.below(20) {
            0..12 => (format!("epoch-{set}/{file}"), Spoilt::Set(set)),
            12..14 => (format!("constant-1/{file}"), Spoilt::All),
            14..17 => ("command".into(), Spoilt::Command),
            _ => {
                let names = [
                    "epoch-400",
                    "epoch-0",
                    "epoch-99999999",
                    "epoch-+7",
                    "rank-0",
                    "manifest",
                    "constant-300",
                ];
                (random.one_of(&names).into(), Spoilt::Nothing)
            }
        }
    }

    fn reads(&self, number: u64, mut random: Random) -> Result<Judged, String> {
        let folder = self.programs.folder()?;
        let (options, name, text) = random.one_of(&INPUTS);
        let thing = random.weighed(&THINGS);
        let path = folder.path().join(name);
        let put = fs::write(&path, text).and_then(|()| thing.put(&path, folder.path(), &mut random));
        put.map_err(|error| format!("run {number}: {error}"))?;
        let arguments = format!("-n {} {options} {name}", 1 + random.below(3));
        let outcome = self.ftrun(folder.path(), &arguments)?;
        let mut findings = always(&outcome);
        if !(0..=2).contains(&outcome.status) || thing.is_no_input() && outcome.status != 2 {
            findings.push(("status", format!("status {}", outcome.status)));
        }
        if outcome.status == 2 && !outcome.stderr.contains(name) {
            findings.push(("cause not named", "no line names the file".into()));
        }
        let account = format!("  ftrun {arguments}\n{outcome}");
        Ok(self.judged(number, "input", &[(name.to_owned(), thing)], outcome.status, findings, account))
    }

    fn judged(
        &self,
        number: u64,
        kind: &str,
        done: &[(String, Thing)],
        status: i32,
        findings: Vec<(&'static str, String)>,
        account: String,
    ) -> Judged {
        let again = format!("  again: campaign --hostile --seed {} --only {number}\n", self.seed);
        let mut labels = vec![("kind", kind.to_owned())];
        labels.extend(done.iter().map(|(_, thing)| ("thing", format!("{thing:?}").to_lowercase())));
        let put: String = done.iter().map(|(target, thing)| format!("  {target}: {thing:?}\n")).collect();
        Judged { labels, status, findings, account: again + &put + &account }
    }

    /// Runs it with addresses for any right use, and far fewer than a length that is believed would
    /// need.
    fn ftrun(&self, folder: &Path, arguments: &str) -> Result<Outcome, String> {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 8388608; exec \"$0\" \"$@\""]).arg(&self.programs.ftrun);
        command.args(arguments.split_whitespace()).current_dir(folder);
        let order = Order { deadline: PATIENCE, ..Order::undisturbed(command) };
        run::run(order).map_err(|error| format!("ftrun {arguments}: {error}"))
    }

    /// What is wrong with the answer of a job that went well.
    fn answer(&self, outcome: &Outcome) -> Result<Vec<(&'static str, String)>, String> {
        let reference: &Reference = &*self.references.get(&self.app, RANKS)?;
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let answer = self.app.answer(&report["result"]);
        let is_wrong = outcome.status == 0 && answer != reference.answer;
        let wrong = || ("wrong answer", format!("{answer:?}, not {:?}", reference.answer));
        Ok(is_wrong.then(wrong).into_iter().collect())
    }
}

/// What a thing at that place makes unusable.
#[derive(Clone, Copy)]
enum Spoilt {
    Set(u32),
    All,
    Command,
    Nothing,
}

impl Work for Hostile<'_> {
    fn run(&self, number: u64) -> Result<Judged, String> {
        let mut random = Random::of_run(self.seed, number);
        if random.percent(70) { self.resumes(number, random) } else { self.reads(number, random) }
    }
}

/// What may never be, whatever the files.
fn always(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut findings = vec![];
    findings.extend(outcome.hang.iter().map(|hang| ("hang", hang.clone())));
    if outcome.stderr.contains(" panicked at ") {
        findings.push(("panic", "a panic".to_owned()));
    }
    if outcome.stderr.contains("memory allocation of ") {
        findings.push(("length believed", "an allocation has failed".to_owned()));
    }
    if !outcome.left.is_empty() {
        findings.push(("left behind", format!("left behind: {}", outcome.left.join("\n    "))));
    }
    findings
}

/// The job in a folder, and its sets that have a manifest, the newest last.
fn sets(folder: &Path) -> io::Result<Option<(String, Vec<u32>)>> {
    let names = |folder: &Path| -> io::Result<Vec<String>> {
        let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names.collect()
    };
    let Some(job) = names(folder)?.pop() else { return Ok(None) };
    let is_complete = |number: &u32| folder.join(&job).join(format!("epoch-{number}/manifest")).is_file();
    let numbers = names(&folder.join(&job))?.into_iter();
    let numbers = numbers.filter_map(|name| name.strip_prefix("epoch-")?.parse().ok());
    let mut sets: Vec<u32> = numbers.filter(is_complete).collect();
    sets.sort_unstable();
    Ok(Some((job, sets)))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to): (PathBuf, _) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.is_dir() {
            copy(&entry, &to)?;
        } else {
            io::copy(&mut File::open(entry)?, &mut File::create(to)?)?;
        }
    }
    Ok(())
}
