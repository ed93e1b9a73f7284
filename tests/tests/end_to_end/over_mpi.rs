//! Ranks that `mpirun` has started. `FT_MPI=DIR` names a folder with `mpicc` and `mpirun`, of Open MPI 5 or MPICH; the programs are built anew with it (bindgen needs libclang).
//! Without it the tests that need it end with the reason. `FT_RUNS=50` makes a soak of the random kills.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{Outcome, POISSON, Run, built, example, poisson_answer};
use crate::handbook::text;
use crate::random_kills::number;

/// An MPI library, and the programs that were built with it.
struct Site {
    folder: PathBuf,
    built: PathBuf,
    /// It says which processes have failed, and its `mpirun` ends with the status of the job whatever has happened.
    is_ulfm: bool,
    options: &'static str,
}

/// The one that the environment names.
fn site() -> Option<&'static Site> {
    static SITE: OnceLock<Option<Site>> = OnceLock::new();
    SITE.get_or_init(|| {
        let Some(folder) = std::env::var_os("FT_MPI").map(PathBuf::from) else {
            eprintln!("skipped: FT_MPI names no folder with mpicc and mpirun");
            return None;
        };
        let version =
            Command::new(folder.join("mpirun")).arg("--version").output().expect("mpirun can be started");
        let is_ulfm = String::from_utf8_lossy(&version.stdout).contains("Open MPI");
        let target = built().parent().unwrap().join(if is_ulfm { "openmpi" } else { "mpich" });
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([
                "build",
                "--quiet",
                "-p",
                "ft-apps",
                "-p",
                "ft-checkpoint",
                "--bins",
                "--example",
                "resilient",
            ])
            .args(["--features", "ft-apps/mpi,ft-checkpoint/mpi", "--target-dir"])
            .arg(&target)
            .env("MPICC", folder.join("mpicc"))
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .output()
            .expect("cargo can be started");
        assert!(output.status.success(), "cargo build: {}", String::from_utf8_lossy(&output.stderr));
        let options = match is_ulfm {
            true => "--oversubscribe --bind-to none --with-ft ulfm",
            false => "-disable-auto-cleanup",
        };
        Some(Site { folder, built: target.join("debug"), is_ulfm, options })
    })
    .as_ref()
}

impl Site {
    /// Processes of a program, where and how many `options` of `mpirun` say.
    fn run(&self, options: &str, program: &str) -> Run {
        let run = Run::program(&self.folder.join("mpirun"), &format!("{} {options}", self.options));
        let mut libraries = self.folder.join("../lib").into_os_string();
        if let Some(more) = std::env::var_os("LD_LIBRARY_PATH") {
            libraries.push(":");
            libraries.push(more);
        }
        let mut path = OsString::from(&self.folder);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        run.arg(self.built.join(program))
            .variable("PATH", path)
            .variable("LD_LIBRARY_PATH", libraries)
            .variable("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .variable("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            // UCX ends a process that reads the memory of a dead one.
            .variable("UCX_RNDV_THRESH", "inf")
            .limit(60)
    }

    /// So many processes of `ftrun`, as one job.
    fn job(&self, count: usize, arguments: &str) -> Run {
        let arguments = format!("--transport mpi --json {arguments}");
        arguments.split_whitespace().fold(self.run(&format!("-n {count}"), "ftrun"), Run::arg)
    }
}

fn answer(outcome: &Outcome) -> String {
    outcome.report().answer().to_owned()
}

/// The end of a job that is well. After a loss the status of Hydra is any, and it prints words of its own behind the report, which has that of the job.
fn well(site: &Site, run: Run) -> Outcome {
    let mut outcome = run.finish();
    if !site.is_ulfm {
        let line = outcome.stdout.find('\n').map_or(0, |end| end + 1);
        outcome.stdout.truncate(line);
        outcome.status = 0;
    }
    assert_eq!(outcome.report().0["status"], 0, "{outcome}");
    outcome
}

#[test]
#[ignore = "needs an MPI library, which FT_MPI names"]
fn a_job_over_mpi_has_the_answer_of_any_other_whoever_is_killed() {
    let Some(site) = site() else { return };
    let expected = poisson_answer().answer();
    for (count, options, lost) in [
        (4, "", &[][..]),
        (5, "--spares 1", &[]),
        (5, "--spares 1 --kill 2@step=20", &[2][..]),
        (5, "--spares 1 --kill 0@step=20", &[0]),
        (5, "--spares 1 --kill 1@step=20:exit", &[1]),
        (5, "--spares 1 --kill 3@step=20:hang", &[3]),
        (6, "--spares 2 --scheme rs:2+2 --kill 1,2@step=20", &[1, 2]),
        (6, "--spares 2 --kill 1@step=20 --kill 1@repair=1/reconnect", &[1]),
        (5, "-n 3 --parity-ranks 1 --spares 1 --kill 1@checkpoint=2/exchange", &[1]),
    ] {
        let outcome = well(site, site.job(count, &format!("{options} {POISSON}")));
        assert_eq!(answer(&outcome), expected, "{options}: {outcome}");
        let failures = outcome.report().failures();
        let first: Vec<u64> = failures.first().map(|(ranks, _)| ranks.clone()).unwrap_or_default();
        assert_eq!(first, lost, "{options}: {outcome}");
    }
    let page = text("docs/over-mpi.md");
    let command = "$ mpirun --with-ft ulfm -n 9 ftrun --transport mpi ";
    let options = page.lines().find_map(|line| line.strip_prefix(command)).expect("the page has it");
    let outcome = well(site, site.job(9, options));
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
}

#[test]
#[ignore = "needs an MPI library, which FT_MPI names"]
fn ranks_over_mpi_that_are_killed_at_random_lose_nothing() {
    let Some(site) = site() else { return };
    let expected = Run::ftrun("-n 4 --json cg --poisson 48").finish().expect(0).report().answer().to_owned();
    let mut lost = 0;
    for seed in 0..number("FT_RUNS").unwrap_or(3) {
        let options = format!("--spares 12 --max-restarts 100 --mtbf 0.2 --seed {seed}");
        let outcome = well(site, site.job(16, &format!("{options} cg --poisson 48")));
        assert_eq!(answer(&outcome), expected, "{options}: {outcome}");
        lost += outcome.report().failures().len();
        println!("seed {seed}: {lost} losses");
    }
}

/// Starts things on another host that is this one under another name.
const ELSEWHERE: &str = "#!/bin/sh
while [ \"${1#-}\" != \"$1\" ]; do shift; done
host=$1; shift
exec unshare --uts sh -c \"hostname node-$host; $*\"
";

#[test]
#[ignore = "needs Open MPI, which FT_MPI names, and root"]
fn ranks_of_two_hosts_are_replaced_wherever_they_were() {
    let Some(site) = site().filter(|site| site.is_ulfm) else { return };
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: only root gives hosts other names");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("elsewhere");
    std::fs::write(&script, ELSEWHERE).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let hosts = format!("--prtemca plm_ssh_agent {} --host 127.0.0.1:3,127.0.0.3:3", script.display());
    for rank in [1, 4] {
        let run = site.run(&hosts, "ftrun");
        let arguments = format!("--transport mpi --json --spares 1 --kill {rank}@step=20 {POISSON}");
        let outcome = arguments.split_whitespace().fold(run, Run::arg).finish().expect(0);
        assert_eq!(answer(&outcome), poisson_answer().answer(), "{outcome}");
        assert_eq!(outcome.report().failures()[0].0, [rank], "{outcome}");
    }
}

#[test]
#[ignore = "needs an MPI library, which FT_MPI names"]
fn a_job_over_mpi_that_cannot_be_ends_clearly() {
    let Some(site) = site() else { return };
    let says = |count, options: &str, status, text: &str| {
        let outcome = site.job(count, options).finish();
        assert!(outcome.stderr.contains(text), "{options}: {outcome}");
        // After a loss the status of Hydra is any.
        assert!(outcome.status == status || !site.is_ulfm && status == 3, "{options}: {outcome}");
    };
    says(4, &format!("--kill 2@step=20 {POISSON}"), 3, "nobody is left to take its place");
    says(
        4,
        &format!("-n 4 --spares 1 {POISSON}"),
        2,
        "mpirun has started 4 processes, where 4 ranks and 1 spare are wanted",
    );
    says(4, &format!("--hosts a,b {POISSON}"), 2, "--hosts does not go with --transport mpi");
    says(2, &format!("--resume /nowhere {POISSON}"), 2, "/nowhere");
    // Whatever has nothing to do with the library.
    site.job(3, "true").finish().expect(0);
    let outcome = well(site, site.job(4, &format!("--on-failure shrink --kill 3@step=20 {POISSON}")));
    assert_eq!(answer(&outcome), poisson_answer().answer(), "{outcome}");
}

#[test]
#[ignore = "needs an MPI library, which FT_MPI names"]
fn a_program_that_mpirun_starts_becomes_one_job() {
    let Some(site) = site() else { return };
    let alone = Run::ftrun("-n 4").arg(example("resilient")).finish().expect(0);
    let program = site.built.join("examples/resilient");
    std::fs::copy(site.built.join("ftrun"), program.with_file_name("ftrun")).unwrap();
    let outcome = site.run("-n 4", "examples/resilient").finish().expect(0);
    assert_eq!(outcome.stdout, alone.stdout, "{outcome}");
}

#[test]
fn what_mpi_is_needed_for_is_said() {
    let outcome = Run::ftrun("--transport mpi cg --poisson 8").finish().expect(2);
    assert!(outcome.stderr.contains("mpirun -n N ftrun --transport mpi"), "{outcome}");
    // Of several processes the first says what is wrong.
    for (rank, said) in [("0", true), ("1", false)] {
        let run = Run::ftrun("--transport mpi --frobnicate cg");
        let outcome = run.variable("PMI_RANK", rank).variable("PMI_SIZE", "2").finish().expect(2);
        assert_eq!(outcome.stderr.contains("--frobnicate"), said, "{outcome}");
    }
    // Without the feature, the first process of two says so.
    let run = Run::ftrun("--transport mpi cg --poisson 8");
    let outcome = run.variable("PMI_RANK", "0").variable("PMI_SIZE", "2").finish().expect(2);
    assert!(outcome.stderr.contains("was built without MPI"), "{outcome}");
    let run = Run::ftrun("--transport mpi").arg(example("resilient"));
    let outcome = run.variable("PMI_RANK", "0").variable("PMI_SIZE", "2").finish().expect(1);
    assert!(outcome.stderr.contains("was built without MPI"), "{outcome}");
    let run = Run::ftrun("--transport mpi cg --poisson 8");
    let outcome = run.variable("PMI_RANK", "1").variable("PMI_SIZE", "2").finish().expect(0);
    assert!(outcome.stderr.contains("was built without MPI"), "{outcome}");
}

/// So many processes that `mpirun` might have started, of which a stand-in for MPI is the program.
fn standin(count: usize, options: &str) -> Run {
    let run = Run::ftrun(&format!("--transport mpi --json {options}")).arg(example("standin"));
    let count = count.to_string();
    run.variable("PMI_RANK", "0").variable("PMI_SIZE", &count).variable("MPI_LOCALNRANKS", &count)
}

#[test]
fn the_launcher_sees_processes_through_that_it_has_not_started() {
    let sum = |ranks: u64| 60 * 61 / 2 * (ranks * (ranks + 1) / 2);
    for (count, options, ranks, lost) in [
        (4, "", 4, &[][..]),
        (5, "--spares 2", 3, &[]),
        (5, "--spares 1 --kill 2@step=20", 4, &[2][..]),
        (5, "--spares 1 --kill 0@step=20", 4, &[0]),
        (5, "--spares 1 --lines log --every 5 --kill 1@step=20", 4, &[1]),
        (5, "--spares 1 --recovery local --every 5 --kill 2@step=20", 4, &[2]),
        (5, "--spares 1 --kill 1@step=20:exit", 4, &[1]),
        (5, "--spares 1 --kill 3@step=20:hang", 4, &[3]),
        (7, "--spares 3 --scheme rs:2+2 --kill 1,2@step=20 --kill 2@repair=1/reconnect", 4, &[1, 2]),
    ] {
        let outcome = standin(count, options).finish().expect(0);
        let said = format!("{} on {ranks} ranks\n", sum(ranks));
        assert!(outcome.stderr.contains(&said), "{options}: {outcome}");
        let first: Vec<u64> =
            outcome.report().failures().first().map(|(ranks, _)| ranks.clone()).unwrap_or_default();
        assert_eq!(first, lost, "{options}: {outcome}");
    }
    let outcome = standin(4, "--kill 2@step=20").finish().expect(3);
    assert!(outcome.stderr.contains("nobody is left to take its place"), "{outcome}");
    let outcome = standin(4, "-n 4 --spares 1").finish().expect(2);
    assert!(outcome.stderr.contains("mpirun has started 4 processes"), "{outcome}");
    // Nobody joins, nobody waits: two programs that know nothing of the library.
    let run = Run::ftrun("--transport mpi true").variable("PMI_RANK", "0").variable("PMI_SIZE", "3");
    run.finish().expect(0);
    let run = Run::ftrun("--transport mpi false").variable("PMI_RANK", "0").variable("PMI_SIZE", "3");
    run.finish().expect(1);
}
