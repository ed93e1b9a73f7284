//! A replacement runs the file that the job began with, and a state goes back into the build of the
//! program that it came from, and into no other.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::common::{Outcome, PATIENT, POISSON, Run, built, example, poisson_answer};
use crate::hosts::{HOSTS, LIKE_SSH, processes_on, program, send, stopped};

/// Four ranks of a program whose file is replaced by the `same` or an`other` one; then rank 2 is
/// started again. The launcher holds the shell open, not the program that the shell starts.
fn replaced(by: &str, scheme: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::copy(example("replaced"), &program).unwrap();
    let run = Run::ftrun(&format!("-n 4 --json --kill 2@step=40 --scheme {scheme} /bin/sh -c"));
    run.arg(format!("exec {} {by}", program.display())).finish()
}

#[test]
fn a_copy_of_the_program_takes_the_place_of_a_lost_rank() {
    let outcome = replaced("same", "xor").expect(0);
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
}

/// Two hosts that are this one by other names.
const TWO_HOSTS: &str = "--hosts 127.0.0.2:2,127.0.0.3:2";

fn copied(original: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("program");
    std::fs::copy(original, &copy).unwrap();
    copy
}

/// `run` on these hosts, if there are any.
fn on(hosts: &str, run: Run, folder: &Path) -> Run {
    match hosts {
        "" => run,
        _ => {
            hosts.split(' ').fold(run, Run::arg).arg("--launcher-exec").arg(program(folder, "exec", LIKE_SSH))
        }
    }
}

#[test]
fn replaced_program_file_leaves_replacements_on_the_old_file() {
    for hosts in ["", TWO_HOSTS] {
        let folder = tempfile::tempdir().unwrap();
        let program = copied(&example("replaced"), folder.path());
        let run = on(hosts, Run::ftrun("-n 4 --json --kill 2@step=40"), folder.path());
        let outcome = run.arg(program).arg("other").finish().expect(0);
        assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
    }
}

#[test]
fn removed_launcher_file_does_not_end_the_job() {
    for hosts in ["", TWO_HOSTS] {
        let folder = tempfile::tempdir().unwrap();
        let ftrun = copied(&built().join("ftrun"), folder.path());
        let options = format!("-n 4 --json -v {PATIENT} --kill 2@step=20:hang");
        let run = on(hosts, Run::program(&ftrun, &options), folder.path());
        let mut running = POISSON.split(' ').fold(run, Run::arg).start();
        running.await_text("--kill 2@step=20:hang strikes");
        let hung = stopped(&running);
        std::fs::remove_file(&ftrun).unwrap();
        send(&[hung], Signal::KILL);
        let outcome = running.finish().expect(0);
        assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
        assert_eq!(outcome.report().answer(), poisson_answer().answer());
    }
}

/// The file belongs to the keeper, so that the next agent has it as well.
#[test]
fn removed_program_file_survives_its_agent() {
    let folder = tempfile::tempdir().unwrap();
    let program = copied(&example("going_on"), folder.path());
    let options = format!("-n 4 --json -v --stdin 0 --pace 0.01 {PATIENT} --kill 2@step=25:hang");
    let run = on(TWO_HOSTS, Run::ftrun(&options), folder.path());
    let mut running = run.arg(&program).open_stdin().start();
    running.await_text("--kill 2@step=25:hang strikes");
    let hung = stopped(&running);
    std::fs::remove_file(&program).unwrap();
    send(&processes_on(&running, HOSTS[1]).0, Signal::KILL);
    running.await_text("has another agent, its ranks go on");
    send(&[hung], Signal::KILL);
    running.await_text("state restored from memory");
    running.end_stdin();
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 1, "{outcome}");
}

/// While the name of a script is that of its file, it finds this name, and no descriptor that it
/// has not opened.
#[test]
fn script_whose_file_was_removed_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "echo \"$0 is open as $(ls -l /proc/$$/fd | grep -c script)\" >&2
        [ $FTRUN_PEER = 2 ] && rm \"$0\" && kill -9 $$; exec {}",
        example("ring").display()
    );
    let script = program(folder.path(), "script", &text);
    let outcome = Run::ftrun("-n 2 --json").arg(&script).finish().expect(0);
    // A shell has its script open itself.
    assert!(outcome.stderr.contains(&format!("{} is open as 1\n", script.display())), "{outcome}");
    assert_eq!(outcome.stderr.matches("/proc/self/fd/").count(), 1, "{outcome}");
}

#[test]
fn another_build_does_not() {
    for scheme in ["xor", "neighbor:1"] {
        let outcome = replaced("other", scheme).expect(1);
        let message = outcome.report().message().to_owned();
        assert!(message.contains("taken by another build of the program"), "{outcome}");
    }
}

#[test]
fn nor_from_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = replaced("other", &format!("disk:{}", folder.path().display())).expect(1);
    assert!(outcome.report().message().contains("taken by another build of the program"), "{outcome}");
}
