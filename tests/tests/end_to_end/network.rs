//! Two hosts with a network of their own each (network namespaces, joined by a pair of virtual interfaces), and what happens
//! when the link between them is down: the launcher's side finishes, the other side ends itself. Namespaces and
//! interfaces have no names outside and go with the processes in them. Without the right to make them the tests are skipped.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Pid;
use tempfile::{TempDir, tempdir};

use crate::common::{Report, Run, Running, built, ends_within};

const FAR: &str = "10.77.0.2";
/// Silence is noticed after 0.6 s; the lease of ranks and agents is ten times that.
const SOON: &str = "--heartbeat-interval 60 --heartbeat-timeout 600";
/// A job that goes on for a lease and some seconds, however fast the machine.
const LASTING: &str = "load --state 64KiB --steps 1000";

/// The near host: makes the far one, and runs a command.
const NEAR_SCRIPT: &str = r#"set -e
folder=$0
mkfifo "$folder/ready" "$folder/commands"
ip link set lo up
unshare -n sh -c "$FAR_SCRIPT" "$folder" </dev/null >/dev/null 2>&1 &
far=$!
read -r _ <"$folder/ready"
ip link add near type veth peer name far netns $far
ip address add 10.77.0.1/24 dev near
ip link set near up
nsenter -n -t $far sh -c 'ip address add 10.77.0.2/24 dev far; ip link set far up; ip link set lo up'
status=0
"$@" </dev/null || status=$?
kill $far
wait $far || true
exit $status"#;

/// What `sshd` does on the far host, without a way to put an end to what it has started: commands, and their first line of input.
const FAR_SCRIPT: &str = r#"exec 3<>"$0/commands"
echo >"$0/ready"
while read -r command <&3 && read -r line <&3; do
    printf '%s\n' "$line" | sh -c "$command" &
done"#;

/// In place of `ssh`, which reaches nobody over a link that is down.
const EXEC_SCRIPT: &str = r#"#!/bin/sh
host=$1
shift
[ $host = 10.77.0.2 ] || exec sh -c "exec $*"
[ -n "$(ip -o link show near up)" ] || exit 255
read -r line
printf 'exec %s\n%s\n' "$*" "$line" >"$FT_FOLDER/commands"
exec sleep 1000"#;

/// How to make a network without being asked who one is; none if there is no way.
fn unshare() -> Option<&'static str> {
    let works = |arguments: &str| {
        let script = format!("unshare {arguments} sh -c 'ip link set lo up && nsenter --version'");
        let output = Command::new("sh").args(["-c", &script]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = ["-rn", "-n"].into_iter().find(|arguments| works(arguments));
    if found.is_none() {
        eprintln!(
            "skipped: no network namespace can be made (unshare, ip and nsenter are needed, and user namespaces or root)"
        );
    }
    found
}

/// A job on two hosts, whose files lie in the folder.
struct Hosts {
    running: Running,
    namespaces: &'static str,
    far: Vec<Pid>,
    _folder: TempDir,
}

/// The network that a process is in.
fn network(process: Pid) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

impl Hosts {
    /// Starts it with so many ranks on each host, and waits until they are at work.
    fn start(near: usize, far: usize, options: &str) -> Option<Self> {
        let namespaces = unshare()?;
        let folder = tempdir().unwrap();
        let exec = folder.path().join("exec");
        std::fs::write(&exec, EXEC_SCRIPT).unwrap();
        std::fs::set_permissions(&exec, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let run = Run::program(Path::new("unshare"), &format!("{namespaces} sh -c")).arg(NEAR_SCRIPT);
        let run = run.arg(folder.path()).arg(built().join("ftrun")).arg("--launcher-exec").arg(exec);
        let run = run.variable("FAR_SCRIPT", FAR_SCRIPT).variable("FT_FOLDER", folder.path());
        let (ranks, hosts) = (near + far, format!("10.77.0.1:{near},{FAR}:{far}"));
        let options = format!("-n {ranks} -v --json --hosts {hosts} {options} {LASTING}");
        let mut running = options.split_whitespace().fold(run, Run::arg).limit(60).start();
        running.await_text("all ranks have joined");
        let here = network(running.launcher());
        let is_ftrun = |process: &Pid| {
            std::fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|path| path == built().join("ftrun"))
        };
        let there = |process: &Pid| is_ftrun(process) && network(*process) != here;
        let processes: Vec<Pid> = running.processes().into_iter().filter(there).collect();
        assert_eq!(processes.len(), 1 + far, "an agent and its ranks");
        Some(Self { running, namespaces, far: processes, _folder: folder })
    }

    fn set_link(&self, state: &str) {
        let user = if self.namespaces == "-rn" { "-U --preserve-credentials" } else { "" };
        let target = self.running.launcher();
        let command = format!("-t {target} {user} -n ip link set near {state}");
        Run::program(Path::new("nsenter"), &command).finish().expect(0);
    }

    /// So many processes of the far host are alive.
    fn living(&self) -> usize {
        let all = self.running.processes();
        self.far.iter().filter(|process| all.contains(process)).count()
    }

    fn check_that_all_end(&self) {
        for process in &self.far {
            assert!(ends_within(*process, Duration::from_secs(30)), "its lease never ends");
        }
        assert!(self.running.processes().len() > 5, "the job had ended, so this shows nothing");
    }

    /// It ends well, with the answer of an undisturbed job, and has lost these ranks, all at once.
    fn finish(self, lost: &[u64]) {
        let report = self.running.finish().expect(0).report();
        let undisturbed: Report =
            Run::ftrun(&format!("-n 4 --json {LASTING} --step-ms 0")).finish().expect(0).report();
        assert_eq!(report.answer(), undisturbed.answer(), "{}", report.0);
        let ranks: Vec<Vec<u64>> = report.failures().into_iter().map(|(ranks, _)| ranks).collect();
        assert_eq!(ranks, [lost], "{}", report.0);
    }
}

#[test]
fn a_host_whose_link_is_down_is_replaced_and_ends_itself() {
    let Some(mut hosts) = Hosts::start(2, 2, &format!("--scheme rs:2+2 {SOON}")) else { return };
    hosts.set_link("down");
    hosts.running.await_text("ranks 2 and 3 back, generation 1 starts");
    assert_eq!(hosts.living(), 3, "nobody can put to death who is cut off");
    hosts.check_that_all_end();
    hosts.finish(&[2, 3]);
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_host_whose_link_comes_back_too_late_is_told_to_end() {
    let Some(mut hosts) = Hosts::start(2, 2, &format!("--scheme rs:2+2 {SOON}")) else { return };
    hosts.set_link("down");
    hosts.running.await_text("ranks 2 and 3 back, generation 1 starts");
    assert_eq!(hosts.living(), 3, "nobody can put to death who is cut off");
    hosts.set_link("up");
    hosts.check_that_all_end();
    hosts.finish(&[2, 3]);
}

/// The launcher has less than half of the ranks on its side: it waits until the lease of the others is over.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_larger_side_has_ended_before_the_launcher_goes_on_with_the_smaller() {
    let options = "--scheme rs:1+3 --heartbeat-interval 100 --heartbeat-timeout 1000";
    let Some(mut hosts) = Hosts::start(1, 3, options) else { return };
    hosts.set_link("down");
    hosts.running.await_text("its agent is silent for 1 s");
    assert_eq!(hosts.living(), 4, "nobody can put to death who is cut off");
    hosts.running.await_text("ranks 1, 2 and 3 back, generation 1 starts");
    // The launcher waits for a timeout more than the lease.
    assert_eq!(hosts.living(), 0, "two sides are at work");
    hosts.set_link("up");
    hosts.finish(&[1, 2, 3]);
}
