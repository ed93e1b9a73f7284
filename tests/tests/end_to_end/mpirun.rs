//! What users and scripts of `mpirun` expect.

use std::path::Path;

use crate::common::{LONG, Outcome, PATIENT, Run, built, example};

/// A shell that runs `script` as each rank.
fn shell(options: &str, script: &str) -> Run {
    Run::ftrun(options).arg("/bin/sh").arg("-c").arg(script)
}

fn sorted(outcome: &Outcome) -> Vec<&str> {
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    lines
}

const STANDING: &str = "echo $OMPI_COMM_WORLD_RANK $RANK $PMI_RANK of $OMPI_COMM_WORLD_SIZE $WORLD_SIZE $PMI_SIZE, here \
                        $OMPI_COMM_WORLD_LOCAL_RANK $LOCAL_RANK";

#[test]
fn ranks_know_where_they_stand() {
    let outcome = shell("-np 3", STANDING).finish().expect(0);
    let due = ["0 0 0 of 3 3 3, here 0 0", "1 1 1 of 3 3 3, here 1 1", "2 2 2 of 3 3 3, here 2 2"];
    assert_eq!(sorted(&outcome), due, "{outcome}");
}

#[test]
fn a_replacement_stands_where_the_lost_rank_stood_and_a_spare_nowhere() {
    let script = "echo ${RANK-none} of ${WORLD_SIZE-none}, here ${LOCAL_RANK-none}; exec \"$0\"";
    let ranks = ["0 of 4, here 0", "1 of 4, here 1", "2 of 4, here 2", "3 of 4, here 3"];
    let outcome = shell(&format!("-n 4 {PATIENT} --kill 2@step=45"), script)
        .arg(example("resilient"))
        .finish()
        .expect(0);
    assert_eq!(sorted(&outcome), [&ranks[..3], &ranks[2..]].concat(), "{outcome}");

    // Whoever has started the launcher may be a rank of another job.
    let run = shell("-n 4 -v --spares 1", script).arg(example("waiting")).open_stdin();
    let mut running = run.variable("RANK", "77").variable("LOCAL_RANK", "7").start();
    running.await_text("1 of 1 spares are ready");
    running.await_text("[spare] none of none, here none\n");
    running.end_stdin();
    running.finish().expect(0);
}

#[test]
fn variables_are_given_to_ranks() {
    let run = shell("-n 2 -x FT_A=b=c -x FT_NONE -x HOME", "echo \"$FT_A ${FT_NONE-unset} $HOME\"");
    let outcome = run.variable("HOME", "/a b").finish().expect(0);
    assert_eq!(sorted(&outcome), ["b=c unset /a b"; 2], "{outcome}");
    assert_eq!(outcome.stderr, "ftrun: -x FT_NONE: there is no such variable, so ranks get none\n");
    let outcome = shell("-n 2 -x =1", "true").finish().expect(2);
    assert!(outcome.stderr.contains("write NAME or NAME=VALUE"), "{outcome}");
}

#[test]
fn programs_are_found_as_a_shell_finds_them() {
    let outcome = Run::ftrun("-np 2 printenv RANK").finish().expect(0);
    assert_eq!(sorted(&outcome), ["0", "1"], "{outcome}");

    // A file here comes first, whatever is of that name elsewhere.
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/echo", folder.path().join("printenv")).unwrap();
    let start = "cd $0 && exec $1 -np 2 printenv RANK";
    let run =
        Run::program(Path::new("/bin/sh"), "-c").arg(start).arg(folder.path()).arg(built().join("ftrun"));
    let outcome = run.finish().expect(0);
    assert_eq!(sorted(&outcome), ["RANK"; 2], "{outcome}");
}

#[test]
fn ranks_work_in_the_folder_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("there")).unwrap();
    std::os::unix::fs::symlink("/bin/pwd", path("mine")).unwrap();
    // The program is looked up where ftrun was started.
    let start = "cd $0 && exec $1 -n 2 -wdir there ./mine";
    let run =
        Run::program(Path::new("/bin/sh"), "-c").arg(start).arg(folder.path()).arg(built().join("ftrun"));
    let outcome = run.finish().expect(0);
    let there = path("there").canonicalize().unwrap();
    assert_eq!(sorted(&outcome), [there.to_str().unwrap(); 2], "{outcome}");

    let run = Run::ftrun("-n 2 --wdir").arg(path("there"));
    "heat --grid 16 --steps 4 --picture plate.png".split(' ').fold(run, Run::arg).finish().expect(0);
    assert!(path("there/plate.png").is_file());

    let outcome = Run::ftrun("-n 2 -wdir").arg(path("nowhere")).arg("heat").finish().expect(2);
    let text = format!("ftrun: --wdir: cannot work in {}: No such file", path("nowhere").display());
    assert!(outcome.stderr.starts_with(&text), "{outcome}");
}

#[test]
fn a_job_that_takes_too_long_is_ended() {
    let due = "ftrun: not done after 0.5 s (--timeout)\n";
    let outcome = shell("-n 2 --timeout 0.5", "exec sleep 100").finish().expect(124);
    assert_eq!(outcome.stderr, due, "{outcome}");
    let outcome = Run::ftrun(&format!("-n 2 -timeout 0.5 --json {LONG}")).finish().expect(124);
    assert_eq!((outcome.stderr.as_str(), outcome.report().0["exit"].as_str()), (due, Some("out of time")));
    // One that is done in time is none of its business.
    Run::ftrun("-n 2 --timeout 25 cg --poisson 6").finish().expect(0);
}

#[test]
fn lines_are_tagged() {
    let outcome = shell("-n 2 --tag-output", "echo out; echo err >&2").finish().expect(0);
    assert_eq!(sorted(&outcome), ["[0] out", "[1] out"], "{outcome}");
    assert!(outcome.stderr.contains("[0] err\n") && outcome.stderr.contains("[1] err\n"), "{outcome}");
}
