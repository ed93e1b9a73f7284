//! Hosts that a batch system gives, which are loopback addresses here: scripts stand for its commands. Slurm has tests of its own.

use std::path::Path;

use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

use crate::common::{POISSON, Run};
use crate::hosts::{HOSTS, LIKE_SSH, check_answer, kill_host, processes_on, program};

/// A job in which `nodes` has three hosts of two slots each, and `ssh` and `blaunch` are scripts that say for whom they are asked.
struct Job {
    folder: TempDir,
}

impl Job {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let nodes: String = HOSTS.iter().map(|host| format!("{host}\n{host}\n")).collect();
        std::fs::write(folder.path().join("nodes"), nodes).unwrap();
        // What `ssh` is told comes before the host. A host that is gone lets nobody in.
        let options = "while [ \"${1#-}\" != \"$1\" ]; do shift; done";
        let gone = folder.path().join("gone");
        for command in ["ssh", "blaunch", "other"] {
            let script = format!(
                "{options}; echo {command} to $1 >&2; [ ! -e {} ] || exit 255; {LIKE_SSH}",
                gone.display()
            );
            program(folder.path(), command, &script);
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// `ftrun` in that job, which has these variables.
    fn run(&self, variables: &[(&str, &str)], options: &str) -> Run {
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let nodes = self.path("nodes");
        let run = Run::ftrun(&format!("{options} --json -v {POISSON}"));
        let run = run.variable("PATH", path);
        variables.iter().fold(run, |run, (name, value)| run.variable(name, value.replace("NODES", &nodes)))
    }
}

const PBS: [(&str, &str); 2] = [("PBS_JOBID", "7.head"), ("PBS_NODEFILE", "NODES")];
const LSF: [(&str, &str); 2] = [("LSB_JOBID", "7"), ("LSB_DJOB_HOSTFILE", "NODES")];

/// All ranks of a host are killed at once, as a host has two slots and no more.
#[test]
fn hosts_come_from_the_files_of_pbs_and_lsf() {
    let job = Job::new();
    for (variables, name, command) in [(PBS, "PBS job 7.head", "ssh"), (LSF, "LSF job 7", "blaunch")] {
        let outcome = job.run(&variables, "--scheme rs:4+2 --kill 2,3@step=25").finish().expect(0);
        check_answer(&outcome);
        assert!(outcome.stderr.contains(&format!("{name}: 6 slots on 3 hosts")), "{outcome}");
        for host in HOSTS {
            assert!(outcome.stderr.contains(&format!("{host}: {command} to {host}\n")), "{outcome}");
        }
    }
}

/// Ranks of a host that is gone come back on the spare one, and stay there: one is killed again. Spares, which are there from the start, are
/// taken first.
#[test]
fn ranks_of_a_lost_host_go_to_the_spare_host() {
    let job = Job::new();
    for (spares, again) in [(0, "--kill 3@step=35"), (2, "")] {
        let hangs = format!("--heartbeat-timeout 20000 --kill 2@step=25:hang {again}");
        let run = job.run(&PBS, &format!("--spare-hosts 1 --scheme rs:2+2 --spares {spares} {hangs}"));
        let mut running = run.start();
        running.await_text("--kill 2@step=25:hang strikes");
        running.await_times("2 of 2 spares are ready", spares / 2);
        std::fs::write(job.path("gone"), "").unwrap();
        let [first, second, spare] = HOSTS.map(|host| processes_on(&running, host));
        assert_eq!([first.1.len(), second.1.len(), spare.1.len()], [2, 2, spares]);
        kill_host(&running, HOSTS[1]);
        let outcome = running.finish().expect(0);
        check_answer(&outcome);
        let report = outcome.report();
        let lost: Vec<Vec<u64>> = report.failures().into_iter().map(|(ranks, _)| ranks).collect();
        assert_eq!(lost, [vec![2, 3], vec![3]][..2 - spares / 2], "{outcome}");
        let failures = report.0["failures"].as_array().unwrap();
        assert!(failures.iter().all(|failure| failure["spare_hosts"][0] == HOSTS[2]), "{outcome}");
        // A rank whose death is known before that of its host is started there first, and then on the spare host, which takes no spare.
        let used = report.spares_used();
        assert!(if spares == 0 { used == 0 } else { (1..=2).contains(&used) }, "{outcome}");
        std::fs::remove_file(job.path("gone")).unwrap();
    }
}

#[test]
fn one_host_at_least_is_not_spare() {
    for (options, complaint) in [
        (
            "--hosts a,b --spare-hosts 2",
            "--spare-hosts: 2 of 2 hosts cannot be spare: one at least has to run ranks",
        ),
        ("--spare-hosts 1", "--spare-hosts keeps some of the hosts: name them with --hosts or --hostfile"),
        ("--hosts a --spare-hosts -1", "invalid value '-1' for '--spare-hosts <K>'"),
    ] {
        let outcome = Run::ftrun(&format!("{options} {POISSON}")).finish().expect(2);
        assert!(outcome.stderr.starts_with(&format!("ftrun: {complaint}")), "{outcome}");
    }
}

#[test]
fn what_is_named_wins_over_the_batch_system() {
    let job = Job::new();
    let here = job.run(&PBS, "--hosts localhost:6").finish().expect(0);
    assert!(!here.stderr.contains(" to 127") && !here.stderr.contains("PBS"), "{here}");
    let nodes = job.path("nodes");
    let outcome = job.run(&LSF, &format!("--hostfile {nodes}")).finish().expect(0);
    assert_eq!(outcome.stderr.matches("ssh to 127").count(), 3, "{outcome}");
    let other = job.path("other");
    let outcome = job.run(&LSF, &format!("--launcher-exec {other}")).finish().expect(0);
    assert_eq!(outcome.stderr.matches("other to 127").count(), 3, "{outcome}");
    assert!(outcome.stderr.contains("LSF job 7: 6 slots on 3 hosts"), "{outcome}");
}

#[test]
fn what_a_batch_system_says_that_cannot_be() {
    let job = Job::new();
    for (variables, complaint) in [
        (&[PBS[0], ("PBS_NODEFILE", "/no/such/file")][..], "PBS_NODEFILE is '/no/such/file': No such file"),
        (&[LSF[0], ("LSB_MCPU_HOSTS", "a b")], "LSB_MCPU_HOSTS is 'a b', which is no list of hosts"),
        (
            &[("JOB_COMPLETION_INDEX", "0"), ("FTRUN_PODS", "many")],
            "FTRUN_PODS is 'many', which is no number of pods",
        ),
    ] {
        let outcome = job.run(variables, "").finish().expect(2);
        assert!(outcome.stderr.starts_with(&format!("ftrun: {complaint}")), "{outcome}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
        job.run(variables, "--hosts localhost:6").finish().expect(0);
    }
    // One host that is this one needs no command.
    std::fs::write(job.path("nodes"), std::fs::read("/proc/sys/kernel/hostname").unwrap().repeat(6)).unwrap();
    let alone = job.run(&PBS, "").variable("PATH", Path::new("/nowhere")).finish().expect(0);
    check_answer(&alone);
}

/// Slurm says by variables that it starts a job again. What other jobs have left is not taken.
#[test]
fn a_job_that_is_started_again_goes_on_from_its_own_files() {
    let folder = tempdir().unwrap();
    let files = folder.path().join("files");
    let run = |id: &str, restarts: &str, command: &str| {
        let run =
            Run::ftrun(&format!("-n 4 -v --json --spill-every 1 --spill {} {command}", files.display()));
        run.variable("SLURM_JOB_ID", id).variable("SLURM_RESTART_COUNT", restarts)
    };
    let anew = |id: &str| {
        format!("Slurm has started job {id} again: it begins anew, as no checkpoint of it in files is whole")
    };
    let outcome = run("7", "1", POISSON).finish().expect(0);
    check_answer(&outcome);
    assert!(outcome.stderr.contains(&anew("7")), "{outcome}");
    // So slow that it is at work when it is killed.
    let mut running = run("7", "0", &format!("--every 2 --pace 0.2 {POISSON}")).start();
    running.await_times("is in files", 2);
    running.signal(Signal::KILL);
    let outcome = running.finish_killed().expect(128 + 9);
    assert!(!outcome.stderr.contains("again"), "{outcome}");
    for (id, command) in [("70", POISSON), ("7", "cg --poisson 15")] {
        let outcome = run(id, "1", command).finish().expect(0);
        assert!(outcome.stderr.contains(&anew(id)), "{outcome}");
    }
    let outcome = run("7", "2", POISSON).finish().expect(0);
    let from = format!("Slurm has started job 7 again: goes on from {}/slurm-7.0-", files.display());
    assert!(outcome.stderr.contains(&from), "{outcome}");
    check_answer(&outcome);
    assert_eq!(std::fs::read_dir(&files).unwrap().count(), 0, "all are done, and nothing is left");
}

#[test]
fn what_is_lost_with_a_job_that_is_ended_is_said() {
    let run = |options: &str| {
        let endless = "cg --poisson 16 --tol 1e-300 --max-iter 100000";
        let mut running =
            Run::ftrun(&format!("-n 4 -v --every 2 --pace 0.05 --kill 1@step=6 {options} {endless}")).start();
        running.await_text("state restored from memory");
        running.signal(Signal::TERM);
        running.finish().expect(143)
    };
    let outcome = run("");
    let lost = "in memory are gone with the job; --spill DIR writes them to files\n";
    assert!(outcome.stderr.contains(lost) && outcome.stderr.contains("terminated (SIGTERM)"), "{outcome}");
    let folder = tempdir().unwrap();
    let outcome = run(&format!("--spill {}", folder.path().display()));
    assert!(
        !outcome.stderr.contains(lost) && outcome.stderr.contains("is in files: ftrun --resume"),
        "{outcome}"
    );
}

/// `sbatch` is a script that prints what it is given.
#[test]
fn a_script_is_printed_or_queued() {
    let folder = tempdir().unwrap();
    program(folder.path(), "sbatch", "echo queued; cat; exit 3");
    let run = |submit: &str, path: &Path| {
        let run = Run::ftrun(&format!("sbatch {submit} --nodes=3 -- -n 6 cg --poisson 8"));
        run.variable("PATH", format!("{}:/bin:/usr/bin", path.display())).finish()
    };
    let printed = run("", folder.path()).expect(0);
    assert!(printed.stdout.starts_with("#!/bin/bash\n#SBATCH --no-kill\n"), "{printed}");
    assert!(printed.stdout.ends_with("ftrun -n 6 cg --poisson 8\n"), "{printed}");
    let queued = run("--submit", folder.path()).expect(3);
    assert_eq!(queued.stdout, format!("queued\n{}", printed.stdout), "{queued}");
}
