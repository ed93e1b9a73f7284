//! Jobs of a real Slurm, whose three nodes are on this machine: each has a daemon of its own. Where Slurm is not installed, or this
//! is not root, nothing is tested.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::{TempDir, tempdir};

use crate::common::{Run, built, ends_within, example};
use crate::hosts::program;

const NODES: [&str; 3] = ["n1", "n2", "n3"];

/// A controller, and a daemon for each node.
struct Slurm {
    folder: TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// None, with the reason, where it cannot be.
    fn start() -> Option<Self> {
        let missing = ["munged", "slurmctld", "slurmd", "sbatch"].into_iter().find(|name| !is_there(name));
        let reason = match missing {
            Some(name) => format!("{name} is not installed"),
            None if !rustix::process::getuid().is_root() => "only root can be all of Slurm".to_owned(),
            None => String::new(),
        };
        if !reason.is_empty() {
            println!("skipped: {reason}");
            return None;
        }
        let mut slurm = Self { folder: tempdir().unwrap(), daemons: vec![] };
        let munge = slurm.path("munge");
        std::fs::create_dir(&munge).unwrap();
        std::fs::set_permissions(&munge, std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(slurm.path("munge/key"), [0x5a; 128]).unwrap();
        std::fs::set_permissions(slurm.path("munge/key"), std::fs::Permissions::from_mode(0o600)).unwrap();
        for folder in ["state", "spool"] {
            std::fs::create_dir(slurm.path(folder)).unwrap();
        }
        std::fs::write(slurm.path("slurm.conf"), slurm.configuration()).unwrap();
        let files = [
            ("key-file", "key"),
            ("socket", "sock"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        ];
        let mut munged: Vec<String> = vec!["--foreground".into(), "--force".into()];
        munged.extend(files.map(|(option, file)| format!("--{option}={}", munge.join(file).display())));
        slurm.daemon("munged", &munged);
        slurm.until("munge answers", |slurm| slurm.path("munge/sock").exists());
        slurm.daemon("slurmctld", &["-D".into(), "-c".into()]);
        for node in NODES {
            std::fs::create_dir(slurm.path("spool").join(node)).unwrap();
            slurm.daemon("slurmd", &["-D".into(), "-N".into(), node.into()]);
        }
        slurm
            .until("all nodes are idle", |slurm| slurm.ask("sinfo", &["-h", "-o", "%D%T"]).trim() == "3idle");
        Some(slurm)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configuration(&self) -> String {
        let listeners: Vec<TcpListener> = (0..=NODES.len()).map(|_| free_port()).collect();
        let ports: Vec<u16> = listeners.iter().map(|one| one.local_addr().unwrap().port()).collect();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, folder) = (host.trim().split('.').next().unwrap(), self.folder.path().display());
        let nodes: String = NODES
            .iter()
            .zip(&ports[1..])
            .map(|(node, port)| {
                format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=500\n")
            })
            .collect();
        format!(
            "ClusterName=tests\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={folder}/munge/sock,cred_expire=5\nCredType=cred/munge\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nReturnToService=2\n\
             SlurmctldPidFile={folder}/controller.pid\nSlurmdPidFile={folder}/%n.pid\nSlurmdSpoolDir={folder}/spool/%n\n\
             StateSaveLocation={folder}/state\nSlurmctldLogFile={folder}/controller.log\nSlurmdLogFile={folder}/%n.log\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nSlurmdTimeout=5\nSlurmdParameters=config_overrides\n\
             {nodes}PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n",
            ports[0]
        )
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", self.path("slurm.conf")).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    fn daemon(&mut self, name: &str, arguments: &[String]) {
        let mut command = self.command(name);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    /// Starts the daemon of a node again, and waits until the node is of use.
    fn revive(&mut self, node: &str) {
        let own = NODES.iter().position(|other| *other == node).expect("a node");
        self.daemon("slurmd", &["-D".into(), "-N".into(), node.into()]);
        let mut gone = self.daemons.swap_remove(2 + own);
        gone.wait().unwrap();
        self.ask("scontrol", &["update", &format!("NodeName={node}"), "State=RESUME"]);
        self.until(node, |slurm| slurm.ask("sinfo", &["-h", "-o", "%D%T"]).trim() == "3idle");
    }

    /// What a command of Slurm prints.
    fn ask(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.command(name).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Asks again until it is so.
    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if is_so(self) {
                return;
            }
            // The daemons tell nobody: a process that does nothing for a moment is what there is to wait for.
            let wait = Command::new("sleep").arg("0.1").status();
            assert!(wait.unwrap().success());
        }
        panic!("{what}: not within a minute: {}", self.ask("scontrol", &["show", "node"]));
    }

    /// Gives a script to `sbatch`; the number of the job.
    fn submit(&self, script: &str) -> String {
        std::fs::write(self.path("script"), script).unwrap();
        let folder = format!("PATH={}:{}", built().display(), std::env::var("PATH").unwrap());
        let export = format!("--export=ALL,{folder}");
        self.ask("sbatch", &["--parsable", "-o", "%j.out", &export, "script"]).trim().to_owned()
    }

    fn has_printed(&self, job: &str, part: &str) -> bool {
        self.printed(job).contains(part)
    }

    fn printed(&self, job: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{job}.out"))).unwrap_or_default()
    }

    /// Waits for the end of a job; what it printed, its state, and its status.
    fn finish(&self, job: &str) -> (String, String, String) {
        let field = |name: &str| {
            let told = self.ask("scontrol", &["show", "job", job]);
            let words = told.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            words.unwrap_or_default().to_owned()
        };
        let is_over = |state: &str| ["COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED"].contains(&state);
        self.until(&format!("job {job} ends"), |_| is_over(&field("JobState")));
        (self.printed(job), field("JobState"), field("ExitCode"))
    }

    /// Processes of a node that belong to this Slurm: what it runs, and its own. The keeper of a job there has no environment, but a child
    /// that has.
    fn processes_of(&self, node: &str) -> HashSet<Pid> {
        let variables = [
            format!("SLURMD_NODENAME={node}").into_bytes(),
            format!("SLURM_CONF={}", self.path("slurm.conf").display()).into_bytes(),
        ];
        let is_there = |process: &Path| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            variables.iter().all(|due| environment.split(|byte| *byte == 0).any(|variable| variable == due))
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let own = NODES.iter().position(|other| *other == node).expect("a node");
        let daemon = &self.daemons[2 + own];
        let there = all.filter(|process| is_there(process));
        let there = there.filter_map(|process| Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?));
        let there: Vec<Pid> = there.collect();
        let keepers = there.iter().filter_map(|process| parent(*process)).filter(|parent| is_keeper(*parent));
        keepers.chain(there.iter().copied()).chain([Pid::from_child(daemon)]).collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let left: Vec<Pid> = NODES.iter().flat_map(|node| self.processes_of(node)).collect();
        for process in &left {
            let _ = rustix::process::kill_process(*process, Signal::KILL);
        }
        // The controller ends its own child if it is asked to end.
        for daemon in self.daemons.iter_mut().rev() {
            let process = Pid::from_child(daemon);
            let _ = rustix::process::kill_process(process, Signal::TERM);
            if !ends_within(process, Duration::from_secs(5)) {
                let _ = daemon.kill();
            }
            let _ = daemon.wait();
        }
        left.into_iter().for_each(|process| {
            ends_within(process, Duration::from_secs(5));
        });
    }
}

/// The parent of a process, if that lives.
fn parent(process: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Pid::from_raw(parent.trim().parse().ok()?)
}

fn is_keeper(process: Pid) -> bool {
    let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).any(|word| word == b"--as-keeper")
}

/// A port that nobody else has while this lives, and probably not soon after.
#[expect(clippy::disallowed_methods, reason = "Slurm's daemons do not come through the library")]
fn free_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn is_there(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// The answer in a report for people.
fn answer(printed: &str) -> &str {
    word_behind("answer ", printed)
}

fn word_behind<'a>(what: &str, printed: &'a str) -> &'a str {
    let (_, rest) = printed.split_once(what).unwrap_or_else(|| panic!("no '{what}' in {printed}"));
    rest.split_whitespace().next().expect("a word")
}

/// The script of the handbook; a job that loses a node, as a whole and at a moment that nobody chose; one that ends with a status of its own;
/// and what Slurm says that cannot be.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_job_of_slurm_needs_no_hosts_and_outlives_a_node() {
    let Some(slurm) = Slurm::start() else { return };
    let handbook = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/batch.md")).unwrap();
    let script =
        handbook.split("```bash\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a script");

    let here = Run::ftrun("-n 6 --scheme rs:4+2 cg --poisson 48").limit(60).finish().expect(0);
    let job = slurm.submit(script);
    let (printed, state, status) = slurm.finish(&job);
    assert_eq!((state.as_str(), status.as_str()), ("COMPLETED", "0:0"), "{printed}");
    assert!(printed.contains("6 ranks"), "{printed}");
    assert_eq!(answer(&printed), answer(&here.stdout), "{printed}");

    let load = "load --state 1MiB --steps 300 --step-ms 10";
    let here = Run::ftrun(&format!("-n 6 --scheme rs:4+2 {load}")).limit(60).finish().expect(0);
    let (head, _) = script.split_once("exec").expect("a command");
    let job = slurm.submit(&format!("{head}exec ftrun -v --scheme rs:4+2 {load}"));
    slurm.until("all have joined", |slurm| slurm.has_printed(&job, "all ranks have joined"));
    for process in slurm.processes_of("n2") {
        let _ = rustix::process::kill_process(process, Signal::KILL);
    }
    let (printed, state, status) = slurm.finish(&job);
    assert_eq!((state.as_str(), status.as_str()), ("COMPLETED", "0:0"), "{printed}");
    assert!(printed.contains(&format!("Slurm job {job}: 6 slots on 3 hosts")), "{printed}");
    assert!(printed.contains("host n2 is gone") && printed.contains("ranks 2 and 3 back"), "{printed}");
    assert_eq!(answer(&printed), answer(&here.stdout), "{printed}");

    let job = slurm
        .submit("#!/bin/bash\n#SBATCH --ntasks=2\nexec ftrun --kill 0,1@step=5 load --state 1KiB --steps 9 --step-ms 1\n");
    let (printed, state, status) = slurm.finish(&job);
    assert_eq!((state.as_str(), status.as_str()), ("FAILED", "3:0"), "{printed}");
}

/// A script that `ftrun` has made: Slurm starts the job again, and it goes on from its files. Then what Slurm is told of the end of a job, and
/// a node that was kept for a lost one.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_job_of_slurm_is_started_again_and_says_how_it_ended() {
    let Some(slurm) = Slurm::start() else { return };
    let here = Run::ftrun("-n 6 --scheme rs:4+2 cg --poisson 24").limit(60).finish().expect(0);
    let files = slurm.path("files").display().to_string();
    let nodes = "--nodes=3 --ntasks-per-node=2";
    let options = format!("-v --pace 0.1 --every 5 --spill {files} --spill-every 1 --scheme rs:4+2");
    let script =
        Run::ftrun(&format!("sbatch {nodes} -- {options} cg --poisson 24")).finish().expect(0).stdout;
    let job = slurm.submit(&script);
    slurm.until("files are written", |slurm| slurm.has_printed(&job, "checkpoint 3 is in files"));
    slurm.ask("scontrol", &["requeue", &job]);
    let (printed, state, status) = slurm.finish(&job);
    assert_eq!((state.as_str(), status.as_str()), ("COMPLETED", "0:0"), "{printed}");
    let again = format!("Slurm has started job {job} again: goes on from {files}/slurm-{job}.0-");
    assert!(printed.contains(&again), "{printed}");
    assert_eq!(answer(&printed), answer(&here.stdout), "{printed}");
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0, "{printed}");

    for (command, expected) in [
        ("-n 2 cg --poisson 16 --max-iter 3", ("FAILED", "1:0")),
        ("-n 2 --scheme best cg --poisson 16", ("FAILED", "2:0")),
    ] {
        let (printed, state, status) =
            slurm.finish(&slurm.submit(&format!("#!/bin/bash\n#SBATCH --ntasks=2\nexec ftrun {command}\n")));
        assert_eq!((state.as_str(), status.as_str()), expected, "{printed}");
    }

    let load = "load --state 1MiB --steps 300 --step-ms 10";
    let script = Run::ftrun(&format!("sbatch {nodes} -- -v --spare-hosts 1 --scheme rs:2+2 {load}"));
    let job = slurm.submit(&script.finish().expect(0).stdout);
    slurm.until("all have joined", |slurm| slurm.has_printed(&job, "all ranks have joined"));
    for process in slurm.processes_of("n2") {
        let _ = rustix::process::kill_process(process, Signal::KILL);
    }
    let (printed, state, status) = slurm.finish(&job);
    assert_eq!((state.as_str(), status.as_str()), ("COMPLETED", "0:0"), "{printed}");
    assert!(
        printed.contains("4 ranks") && printed.contains("replaced on the spare host n3 in "),
        "{printed}"
    );
}

/// A node is lost while a rank of it hangs in a step that nobody has chosen, of a solver and of a survey in turn. `FT_RUNS=30` makes it a soak.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_node_is_lost_in_any_step() {
    let Some(mut slurm) = Slurm::start() else { return };
    let folder = slurm.path("");
    // A program, what its report has before what is the same in all runs, and its steps.
    let program = |run: usize, name: &str| match run % 2 {
        0 => ("cg --poisson 48".to_owned(), "answer ", 60),
        _ => {
            let survey = "seismic --synthetic layers --shape 81x61 --shots 48 --time 0.4 --slice 5";
            (format!("{survey} --out {}", folder.join(format!("gathers-{name}")).display()), "gathers ", 30)
        }
    };
    let here = [0, 1].map(|run| {
        let command = format!("-n 6 --scheme rs:4+2 {}", program(run, "here").0);
        Run::ftrun(&command).limit(60).finish().expect(0).stdout
    });
    for run in 0..std::env::var("FT_RUNS").map_or(2, |text| text.parse().unwrap()) {
        let (program, behind, steps) = program(run, &format!("run-{run}"));
        let random = RandomState::new().hash_one(run) as usize;
        let (lost, step) = (1 + random % 2, 1 + random / 2 % steps);
        let kill = format!("--heartbeat-timeout 20000 --kill {}@step={step}:hang", 2 * lost);
        let nodes = "#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=2\n#SBATCH --no-kill";
        let ftrun = format!("exec ftrun -v --scheme rs:4+2 {kill} {program}");
        let job = slurm.submit(&format!("#!/bin/bash\n{nodes}\n{ftrun}\n"));
        slurm.until("a rank hangs", |slurm| slurm.has_printed(&job, "strikes"));
        for process in slurm.processes_of(NODES[lost]) {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
        let (printed, state, status) = slurm.finish(&job);
        assert_eq!((state.as_str(), status.as_str()), ("COMPLETED", "0:0"), "step {step}: {printed}");
        assert!(printed.contains(&format!("host {} is gone", NODES[lost])), "step {step}: {printed}");
        let due = word_behind(behind, &here[run % 2]);
        assert_eq!(word_behind(behind, &printed), due, "step {step}: {printed}");
        printed
            .lines()
            .filter(|line| line.contains("replaced in"))
            .for_each(|line| println!("{}", line.trim()));
        slurm.revive(NODES[lost]);
    }
}

/// Tasks of a step are one job, whether `srun` starts a program or `ftrun`: ranks on all nodes, lost ones replaced, and its status.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn tasks_of_srun_are_one_job() {
    let Some(slurm) = Slurm::start() else { return };
    let path = format!("{}:{}", built().display(), std::env::var("PATH").unwrap());
    let srun = |arguments: &[&str]| {
        let mut command = slurm.command("srun");
        command.args(["-n", "4", "-N", "2"]).args(arguments).env("PATH", &path);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let one_job = "the 4 tasks of srun are one job, started from the first";
    let program = example("hello");
    let (status, printed, said) = srun(&[program.to_str().unwrap()]);
    assert_eq!(status, Some(0), "{printed}{said}");
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let due: Vec<String> = (0..4).map(|rank| format!("hello from rank {rank} of 4")).collect();
    assert_eq!(lines, due, "{said}");
    assert_eq!(said.matches(one_job).count(), 1, "{said}");

    let here = Run::ftrun("-n 4 cg --poisson 24").limit(60).finish().expect(0);
    let ftrun = built().join("ftrun");
    let ftrun = ftrun.to_str().unwrap();
    let (status, printed, said) = srun(&[ftrun, "-v", "--kill", "3@step=9", "cg", "--poisson", "24"]);
    assert_eq!(status, Some(0), "{printed}{said}");
    assert!(said.contains("4 slots on 2 hosts") && said.contains("killed by signal 9"), "{said}");
    assert_eq!((printed.matches("answer").count(), answer(&printed)), (1, answer(&here.stdout)), "{printed}");
    let (status, printed, said) =
        srun(&[ftrun, "--kill", "0,1@step=5", "load", "--state", "1KiB", "--steps", "9"]);
    assert_eq!(status, Some(3), "{printed}{said}");
}

/// Several tasks of one step would each be a job of its own, where there is no `ftrun` that makes one job of them.
#[test]
fn what_srun_starts_several_times_is_no_job_of_one_rank() {
    let tasks = |run: Run, own: &str| {
        run.variable("SLURM_STEP_NUM_TASKS", "3").variable("SLURM_PROCID", own).variable("PATH", "/nowhere")
    };
    for own in ["0", "2"] {
        let outcome = tasks(Run::program(&example("waiting"), ""), own).finish();
        let said = "srun has started this program 3 times, of which ftrun would make one job of 3 ranks, but it is neither beside \
                    the program nor in $PATH";
        assert!(outcome.status != 0 && outcome.stderr.contains(said), "{outcome}");
    }
    let outcome = tasks(Run::ftrun("-n 2 pi --samples 1000"), "2").finish().expect(0);
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""), "it stands aside: {outcome}");
}

/// Nothing is started where the allocation makes no sense; hosts that are named win.
#[test]
fn an_allocation_that_cannot_be_read_is_said() {
    let folder = tempdir().unwrap();
    program(folder.path(), "srun", "exit 1");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let run = |nodes: &str, options: &str| {
        let run = Run::ftrun(&format!("{options} load --state 1KiB --steps 2 --step-ms 1"));
        run.variable("PATH", &path)
            .variable("SLURM_JOB_ID", "7")
            .variable("SLURM_JOB_NODELIST", nodes)
            .variable("SLURM_TASKS_PER_NODE", "2(x3)")
    };
    let outcome = run("n[1-", "").finish().expect(2);
    assert!(outcome.stderr.contains("SLURM_JOB_NODELIST is 'n[1-', which is no list of hosts"), "{outcome}");
    let outcome = run("n[1-2]", "").finish().expect(2);
    assert!(outcome.stderr.contains("is no number of tasks for each of 2 hosts"), "{outcome}");
    let outcome = run("n[1-3]", "-n 7").finish().expect(2);
    assert!(outcome.stderr.contains("7 ranks are too many for the 6 slots of Slurm job 7"), "{outcome}");
    run("n[1-", "-n 2 --hosts localhost:2").finish().expect(0);
    let outcome = run("n[1-3]", "").variable("PATH", "/nowhere").finish().expect(2);
    let complaint =
        "ftrun: Slurm job 7 starts things on its hosts by srun, and there is no such command in $PATH\n";
    assert_eq!(outcome.stderr, complaint, "{outcome}");
}
