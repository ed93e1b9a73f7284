//! Jobs on several hosts, which are loopback addresses here; a script stands for `ssh`. Hosts die as a whole, or only
//! their agents do, or they cannot be reached.

use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};
use tempfile::{TempDir, tempdir};

use crate::common::{LONG, Outcome, POISSON, Run, Running, built, example, poisson_answer, variable};
use crate::sockets::{Sockets, sockets};

pub(crate) const HOSTS: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
/// Six ranks on three hosts, of which two at a time may be lost.
pub(crate) const SIX: &str = "-n 6 --scheme rs:4+2 --hosts 127.0.0.2:2,127.0.0.3:2,127.0.0.4:2";
/// As `ssh` does it: what follows the host is joined with blanks and given to a shell.
pub(crate) const LIKE_SSH: &str = "export FT_TESTS_HOST=$1; shift; exec sh -c \"exec $*\"";

/// A program in `folder` that runs `script` in a shell.
pub(crate) fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// `ftrun` with these options, and a script in place of `ssh`. Rank 0 gets standard input. The
/// folder has to live as long as the job.
pub(crate) fn over(script: &str, options: &str) -> (TempDir, Run) {
    let folder = tempdir().unwrap();
    let exec = program(folder.path(), "exec", script);
    let run = Run::ftrun("--stdin 0 --launcher-exec").arg(exec);
    (folder, options.split_whitespace().fold(run, Run::arg))
}

/// The agent on `host`, and the ranks and spares there.
pub(crate) fn processes_on(running: &Running, host: &str) -> (Vec<Pid>, Vec<Pid>) {
    let there = |process: &Pid| variable(*process, "FT_TESTS_HOST").as_deref() == Some(host);
    let processes = running.processes().into_iter().filter(there);
    processes.partition(|process| variable(*process, "FTRUN_PEER").is_none())
}

/// The keeper of a host, whose child the agent there is: it has no environment.
pub(crate) fn keeper_of(agent: Pid) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{agent}/status")).expect("the agent lives");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("proc(5)");
    Pid::from_raw(parent.trim().parse().unwrap()).expect("a process")
}

/// Kills all that a host has of a job.
pub(crate) fn kill_host(running: &Running, host: &str) {
    let (agents, ranks) = processes_on(running, host);
    let keepers: Vec<Pid> = agents.iter().map(|agent| keeper_of(*agent)).collect();
    send(&[keepers, ranks, agents].concat(), Signal::KILL);
}

pub(crate) fn send(processes: &[Pid], signal: Signal) {
    for process in processes {
        let _ = rustix::process::kill_process(*process, signal);
    }
}

fn is_stopped(process: &Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

/// The rank that an injected failure has stopped.
pub(crate) fn stopped(running: &Running) -> Pid {
    // The signal was sent before the launcher said so; it takes a moment to arrive.
    loop {
        if let Some(process) = running.processes().into_iter().find(is_stopped) {
            return process;
        }
        std::thread::yield_now();
    }
}

pub(crate) fn check_answer(outcome: &Outcome) {
    let report = outcome.report();
    assert_eq!(report.answer(), poisson_answer().answer(), "{outcome}");
    assert_eq!(report.iterations(), poisson_answer().iterations(), "{outcome}");
    assert_eq!(report.unfired(), [""; 0], "{outcome}");
}

#[test]
fn the_answer_is_that_of_one_host() {
    for script in [LIKE_SSH, "shift; exec \"$@\""] {
        let (_folder, run) = over(script, &format!("{SIX} --json {POISSON}"));
        let outcome = run.finish().expect(0);
        check_answer(&outcome);
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}

#[test]
fn ranks_on_other_hosts_have_variables_and_a_folder() {
    let folder = tempdir().unwrap();
    let script = format!("unset FT_A; {LIKE_SSH}");
    let options = "-n 4 --hosts 127.0.0.2:2,127.0.0.3:2 -x FT_A -x FT_B=b -wdir";
    let (_folder, run) = over(&script, options);
    let run = run.arg(folder.path()).arg("/bin/sh").arg("-c");
    let run =
        run.arg("echo $RANK of $WORLD_SIZE, here $LOCAL_RANK: $FT_A $FT_B $(pwd -P)").variable("FT_A", "a");
    let outcome = run.finish().expect(0);
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    let there = folder.path().canonicalize().unwrap();
    let due = [(0, 0), (1, 1), (2, 0), (3, 1)];
    let due = due.map(|(rank, local)| format!("{rank} of 4, here {local}: a b {}", there.display()));
    assert_eq!(lines, due, "{outcome}");
}

#[test]
fn ranks_are_mapped_as_is_wanted() {
    for (options, due) in [
        ("--hosts 127.0.0.2:2,127.0.0.3:2", "2 2 3 3"),
        ("--map-by node --hosts 127.0.0.2:2,127.0.0.3:2", "2 3 2 3"),
        ("-n 3 --map-by node --hosts 127.0.0.2:5,127.0.0.3", "2 3 2"),
        ("--ppn 2 --hosts 127.0.0.2:5,127.0.0.3", "2 2 3 3"),
        ("--ppn 1 --map-by slot --hosts 127.0.0.2:5,127.0.0.3", "2 3"),
    ] {
        let (_folder, run) = over(LIKE_SSH, options);
        let run = run.arg("/bin/sh").arg("-c").arg("echo $RANK ${FT_TESTS_HOST#127.0.0.}");
        let outcome = run.finish().expect(0);
        let mut lines: Vec<&str> = outcome.stdout.lines().collect();
        lines.sort_unstable();
        let hosts: Vec<&str> = lines.iter().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(hosts.join(" "), due, "{options}: {outcome}");
    }
}

#[test]
fn the_program_may_be_in_any_folder() {
    let folder = tempdir().unwrap();
    let strange = folder.path().join("it's a \"$HOME\" & more");
    std::fs::create_dir(&strange).unwrap();
    std::fs::copy(built().join("ftrun"), strange.join("ftrun")).unwrap();
    let exec = program(folder.path(), "exec", LIKE_SSH);
    let run = Run::program(&strange.join("ftrun"), &format!("{SIX} --json --launcher-exec")).arg(exec);
    check_answer(&POISSON.split_whitespace().fold(run, Run::arg).finish().expect(0));
}

#[test]
fn ranks_fill_the_slots_and_listen_at_the_addresses_of_their_hosts() {
    let (folder, run) = over(LIKE_SSH, "--json -v --spares 2 --scheme rs:2+2 --hostfile");
    let file = folder.path().join("hosts");
    std::fs::write(&file, "127.0.0.2 slots=2 # Open MPI\n\n127.0.0.3:1\n127.0.0.4\n").unwrap();
    let mut running = run.arg(&file).arg(example("waiting")).open_stdin().start();
    running.await_text("2 of 2 spares are ready");
    // Four ranks, as many as there are slots; the spares are where the fewest processes are.
    let mut found = Vec::new();
    for host in HOSTS {
        let (agents, ranks) = processes_on(&running, host);
        assert_eq!(agents.len(), 1, "{host}");
        for rank in &ranks {
            assert_eq!(variable(*rank, "FTRUN_HOST").as_deref(), Some(host));
            assert_eq!(variable(*rank, "FTRUN_LISTEN").as_deref(), Some(host));
        }
        let mut peers: Vec<u32> =
            ranks.iter().map(|rank| variable(*rank, "FTRUN_PEER").unwrap().parse().unwrap()).collect();
        peers.sort_unstable();
        found.push(peers);
    }
    assert_eq!(found, [vec![1, 2], vec![3, 5], vec![4, 6]]);
    running.end_stdin();
    let outcome = running.finish().expect(0);
    assert!(outcome.stderr.contains("replaced [0, 0, 0, 0]"), "{outcome}");
}

#[test]
fn links_are_tcp_between_hosts_and_unix_sockets_within_one() {
    let (_folder, run) =
        over(LIKE_SSH, &format!("-n 4 -v --hosts 127.0.0.2:2,127.0.0.3:2 --kill 2@step=5 {LONG}"));
    let mut running = run.usual_transport().start();
    running.await_text("state restored from memory");
    assert_eq!(sockets(&[running.launcher()]).addresses, [Ipv4Addr::LOCALHOST]);
    for host in &HOSTS[..2] {
        let (_, ranks) = processes_on(&running, host);
        assert_eq!(ranks.len(), 2);
        for rank in ranks {
            // Links are opened when they are of use. One TCP connection is that to the launcher.
            let has_both = |found: &Sockets| found.tcp >= 2 && found.unix >= 1;
            let found = (0..1000).map(|_| sockets(&[rank])).find(has_both).expect("links of both kinds");
            let own: Ipv4Addr = host.parse().unwrap();
            assert_eq!(found.addresses, [own]);
            assert!(!found.others.contains(&own), "{found:?}");
        }
    }
    running.signal(Signal::TERM);
    running.finish().expect(143);
}

/// Two ranks a host, two ranks a group: only where the groups are laid over the hosts one may go.
#[test]
fn groups_are_laid_over_the_hosts() {
    let options = "-n 4 --scheme xor:2 --hosts 127.0.0.2:2,127.0.0.3:2 --json -v --heartbeat-timeout 20000";
    let (_folder, run) = over(LIKE_SSH, &format!("{options} --kill 3@step=25:hang {POISSON}"));
    let mut running = run.start();
    running.await_text("--kill 3@step=25:hang strikes");
    kill_host(&running, HOSTS[1]);
    let outcome = running.finish().expect(0);
    check_answer(&outcome);
    let [(ranks, steps_lost)] = &outcome.report().failures()[..] else { panic!("one failure: {outcome}") };
    assert_eq!(*ranks, [2, 3], "{outcome}");
    // The step in which it hangs, or the one before, is the last that counts.
    assert!((3..=4).contains(steps_lost), "{outcome}");
}

#[test]
fn ranks_on_all_hosts_may_be_killed() {
    for (kills, expected) in [
        ("--kill 2@step=40", vec![vec![2]]),
        ("--kill 0,5@step=20 --kill 1@checkpoint=4/exchange", vec![vec![0, 5], vec![1]]),
        ("--spares 2 --kill 0,3@step=25", vec![vec![0, 3]]),
    ] {
        let (_folder, run) = over(LIKE_SSH, &format!("{SIX} --json {kills} {POISSON}"));
        let outcome = run.finish().expect(0);
        check_answer(&outcome);
        let lost: Vec<Vec<u64>> = outcome.report().failures().into_iter().map(|(ranks, _)| ranks).collect();
        assert_eq!(lost, expected, "{outcome}");
    }
}

/// Six ranks of which one hangs in step 25, and later another one in step 35, until both are killed. The first goes with
/// its whole host, in the way that `strike` sees to. The ranks of that host are started on the other two, and the answer
/// is the right one.
fn lose_a_host(options: &str, strike: impl FnOnce(&[Pid], &[Pid])) {
    let hangs = "--heartbeat-timeout 20000 --kill 2@step=25:hang --kill 0@step=35:hang";
    let (_folder, run) = over(LIKE_SSH, &format!("{SIX} --json -v {options} {hangs} {POISSON}"));
    let mut running = run.start();
    running.await_text("--kill 2@step=25:hang strikes");
    stopped(&running);
    let (agents, ranks) = processes_on(&running, HOSTS[1]);
    assert_eq!((agents.len(), ranks.len()), (1, 2), "{ranks:?}");
    strike(&agents, &ranks);
    running.await_text("--kill 0@step=35:hang strikes");
    let hung = stopped(&running);
    for (host, expected) in HOSTS.into_iter().zip([3, 0, 3]) {
        assert_eq!(processes_on(&running, host).1.len(), expected, "{host}");
    }
    send(&[hung], Signal::KILL);
    let outcome = running.finish().expect(0);
    check_answer(&outcome);
    let lost: Vec<Vec<u64>> = outcome.report().failures().into_iter().map(|(ranks, _)| ranks).collect();
    assert_eq!(lost, [vec![2, 3], vec![0]], "{outcome}");
    // Three ranks of a group share each of the hosts that are left.
    let said =
        format!("rs:4+2 does not survive the loss of a whole host any more: {}, {}", HOSTS[0], HOSTS[2]);
    assert!(outcome.stderr.contains(&said), "{outcome}");
    assert!(outcome.report().0["exposed_s"].as_f64() > Some(0.0), "{outcome}");
}

#[test]
fn a_host_dies_with_all_its_processes() {
    lose_a_host("", |agents, ranks| {
        send(&[&[keeper_of(agents[0])], ranks, agents].concat(), Signal::KILL);
    });
    lose_a_host("", |agents, ranks| {
        let keeper = keeper_of(agents[0]);
        send(&[agents, &[keeper], ranks].concat(), Signal::KILL);
    });
}

/// Collectives are of two levels here, and of one on one host.
#[test]
fn sums_have_the_bits_of_one_host_wherever_ranks_are_and_go() {
    let alone = Run::ftrun("-n 6").arg(example("order")).finish().expect(0);
    assert_eq!(alone.stdout.trim().len(), 16, "{alone}");
    for (mapped, rank) in [("", 2), ("--map-by node", 1)] {
        let hangs = format!("--heartbeat-timeout 20000 --kill {rank}@step=25:hang");
        let (_folder, run) = over(LIKE_SSH, &format!("{SIX} -v {mapped} {hangs}"));
        let mut running = run.arg(example("order")).start();
        running.await_text(&format!("--kill {rank}@step=25:hang strikes"));
        kill_host(&running, HOSTS[1]);
        let outcome = running.finish().expect(0);
        assert_eq!(outcome.stdout, format!("[0] {}", alone.stdout), "{outcome}");
        assert!(outcome.stderr.contains("127.0.0.3 is gone"), "{outcome}");
    }
}

#[test]
fn a_keeper_dies_and_its_ranks_with_it() {
    lose_a_host("", |agents, _| send(&[keeper_of(agents[0])], Signal::KILL));
}

#[test]
fn an_agent_that_is_silent_is_lost_with_its_host() {
    // Long enough for the others to be heard on a machine that is busy.
    let (_folder, run) = over(LIKE_SSH, &format!("{SIX} --json -v --heartbeat-timeout 1700"));
    let mut running = run.arg(example("waiting")).open_stdin().start();
    running.await_text("all ranks have joined");
    let (agents, ranks) = processes_on(&running, HOSTS[2]);
    assert_eq!((agents.len(), ranks.len()), (1, 2));
    send(&agents, Signal::STOP);
    running.await_text("host 127.0.0.4 is gone: its agent is silent for 1.7 s");
    running.end_stdin();
    let outcome = running.finish().expect(0);
    assert!(outcome.stderr.contains("replaced [0, 0, 0, 0, 1, 1]"), "{outcome}");
}

/// The first attempt fails, and nobody hears of it. The second agent gets no rank, as long as none is lost.
#[test]
fn a_host_that_is_back_takes_ranks_again() {
    let count = "echo $1 >>$(dirname $0)/$1; [ $(wc -l <$(dirname $0)/$1) != 2 ] || { echo nobody is there >&2; exit 255; }";
    let options = format!("{SIX} --json -v --pace 0.01 --heartbeat-timeout 20000");
    let (_folder, run) = over(&format!("{count}; {LIKE_SSH}"), &options);
    let mut running = run.arg(example("going_on")).open_stdin().start();
    running.await_text("all ranks have joined");
    kill_host(&running, HOSTS[1]);
    running.await_text("host 127.0.0.3 is back");
    running.await_text("state restored from memory");
    assert_eq!(processes_on(&running, HOSTS[1]).1.len(), 0, "nobody has moved for that");
    let moved = |process: &Pid| variable(*process, "RANK").as_deref() == Some("3");
    let moved: Vec<Pid> = running.processes().into_iter().filter(moved).collect();
    assert_eq!(moved.len(), 1);
    send(&moved, Signal::KILL);
    running.await_times("state restored from memory", 2);
    assert_eq!(processes_on(&running, HOSTS[1]).1.len(), 1);
    running.end_stdin();
    let outcome = running.finish().expect(0);
    let report = outcome.report();
    assert_eq!(report.0["hosts_back"]["127.0.0.3"], 1, "{outcome}");
    assert!(!outcome.stderr.contains("nobody is there"), "{outcome}");
    let lost: Vec<Vec<u64>> = report.failures().into_iter().map(|(ranks, _)| ranks).collect();
    assert_eq!(lost, [vec![2, 3], vec![3]], "{outcome}");
}

/// Two hosts of four, one after the other: when the third is lost, its rank comes to the first, where the one is that it protects. The next
/// checkpoint lies over the three that are left, so the first may be lost too, with both. Neither comes back. A rank of each host hangs before that
/// is lost, so the job waits; when rank 0 does, all ranks have taken two checkpoints since the first loss and know of one of them at least.
#[test]
fn redundancy_is_laid_over_the_hosts_that_are_left() {
    let once = "echo $1 >>$(dirname $0)/$1; [ $(wc -l <$(dirname $0)/$1) = 1 ] || exit 255";
    let hosts = [HOSTS[0], HOSTS[1], HOSTS[2], "127.0.0.5"];
    let program = "load --state 64KiB --steps 90 --step-ms 1";
    let here = Run::ftrun(&format!("-n 4 --scheme xor:2 --json {program}")).finish().expect(0).report();
    for options in ["", "--checkpoints asynchronous", "--keep-memory"] {
        let hangs = "--heartbeat-timeout 20000 --kill 2@step=30:hang --kill 0@step=60:hang";
        let options = format!("-n 4 --scheme xor:2 --hosts {} --json -v {hangs} {options}", hosts.join(","));
        let (_folder, run) = over(&format!("{once}; {LIKE_SSH}"), &format!("{options} {program}"));
        let mut running = run.limit(120).start();
        running.await_text("--kill 2@step=30:hang strikes");
        stopped(&running);
        kill_host(&running, hosts[2]);
        running.await_text("state restored from memory");
        let exposed = format!("xor:2 does not survive the loss of a whole host any more: {}\n", hosts[0]);
        running.await_text(&exposed);
        running.await_text("xor:2 survives the loss of any host again");
        running.await_text("--kill 0@step=60:hang strikes");
        stopped(&running);
        assert_eq!(processes_on(&running, hosts[0]).1.len(), 2);
        kill_host(&running, hosts[0]);
        let outcome = running.finish().expect(0);
        let report = outcome.report();
        assert_eq!(report.answer(), here.answer(), "{outcome}");
        // As they lay at the start, ranks 0 and 2 had nobody but each other.
        let lost: Vec<Vec<u64>> = report.failures().into_iter().map(|(ranks, _)| ranks).collect();
        assert_eq!(lost, [vec![2], vec![0, 2]], "{outcome}");
        let exposed = report.0["exposed_s"].as_f64().expect("it was for a while");
        assert!(exposed < report.0["elapsed_s"].as_f64().unwrap(), "{outcome}");
    }
}

#[test]
fn without_any_host_the_job_ends() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 -v --hosts 127.0.0.2 --scheme xor");
    let mut running = run.arg(example("waiting")).open_stdin().start();
    running.await_text("all ranks have joined");
    kill_host(&running, HOSTS[0]);
    let outcome = running.finish().expect(1);
    assert!(outcome.stderr.contains("no host is left: host 127.0.0.2 is gone"), "{outcome}");
}

#[test]
fn hosts_that_cannot_be_used_are_named() {
    for (script, cause) in [
        ("exit 7", "the command ended with status 7 and left no agent"),
        ("exit 0", "the command ended with status 0 and left no agent"),
        ("kill -9 $$", "the command was killed by signal 9"),
        (
            "[ $1 != 127.0.0.3 ] || exit 9; shift; exec \"$@\"",
            "the command ended with status 9 and left no agent",
        ),
    ] {
        let (_folder, run) = over(script, &format!("-n 3 --hosts 127.0.0.2,127.0.0.3,127.0.0.4 {POISSON}"));
        let outcome = run.finish().expect(2);
        assert_eq!(outcome.stdout, "", "{outcome}");
        let line = outcome.stderr.lines().last().unwrap();
        assert!(line.starts_with("ftrun: cannot start anything on host 127.0.0."), "{outcome}");
        assert!(line.contains(cause) && line.contains("--as-agent"), "{outcome}");
    }
    // What the command has to say is passed on.
    let (_folder, run) = over("echo no route >&2; exit 255", &format!("--hosts 127.0.0.9 {POISSON}"));
    let outcome = run.finish().expect(2);
    assert!(outcome.stderr.starts_with("ftrun: 127.0.0.9: no route\n"), "{outcome}");
}

/// As if the launcher were of another version than what is installed on the other host.
#[test]
fn versions_that_differ_are_both_named() {
    let script = "shift; sed 's/ftrun-agent-[^ ]*/ftrun-agent-0.0.1/' | exec sh -c \"exec $*\"";
    let (_folder, run) = over(script, &format!("--hosts 127.0.0.2 {POISSON}"));
    let outcome = run.finish().expect(2);
    let both = "127.0.0.2: ftrun: the launcher speaks ftrun-agent-0.0.1, this host has ftrun-agent-";
    assert!(outcome.stderr.contains(both), "{outcome}");
    assert!(outcome.stderr.contains("cannot start anything on host 127.0.0.2"), "{outcome}");
}

/// As if what is installed on the other host were built anew from the same version.
#[test]
fn builds_that_differ_are_both_named() {
    let script = "shift; sed 's/^\\(ftrun-agent-[^ ]* \\)[0-9a-f]*/\\100000001/' | exec sh -c \"exec $*\"";
    let (_folder, run) = over(script, &format!("--hosts 127.0.0.2 {POISSON}"));
    let outcome = run.finish().expect(2);
    let both = "127.0.0.2: ftrun: the launcher is build 00000001 of ftrun-agent-";
    assert!(outcome.stderr.contains(both) && outcome.stderr.contains("this host has build "), "{outcome}");
    assert!(outcome.stderr.contains("cannot start anything on host 127.0.0.2"), "{outcome}");
}

/// As if the other host had no such folder: it goes away when the agent is started.
#[test]
fn a_host_without_the_folder_is_named() {
    let folder = tempdir().unwrap();
    let exec = program(folder.path(), "exec", "rmdir \"$PWD\"; shift; exec \"$@\"");
    let here = folder.path().join("here");
    let script = format!("mkdir {0} && cd {0} && exec \"$0\" \"$@\"", here.display());
    let run = Run::program(Path::new("/bin/sh"), "-c").arg(script).arg(built().join("ftrun"));
    let run = run.arg("--launcher-exec").arg(exec);
    let options = format!("--hosts 127.0.0.2 {POISSON}");
    let outcome = options.split_whitespace().fold(run, Run::arg).finish().expect(2);
    let complaint = format!("host 127.0.0.2: it has no folder {}: No such file", here.display());
    assert!(outcome.stderr.contains(&complaint), "{outcome}");
}

/// Nothing comes within ten seconds.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_command_that_never_brings_an_agent_is_given_up() {
    let (_folder, run) = over("exec sleep 1000", &format!("-n 2 --hosts 127.0.0.2 {POISSON}"));
    let outcome = run.finish().expect(2);
    assert!(outcome.stderr.contains("host 127.0.0.2: no agent has come within 10 s"), "{outcome}");
}

#[test]
fn the_job_key_is_on_no_command_line_and_in_no_environment() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 -v --hosts 127.0.0.2");
    let mut running = run.arg(example("waiting")).open_stdin().start();
    running.await_text("all ranks have joined");
    let (agents, ranks) = processes_on(&running, HOSTS[0]);
    assert_eq!(variable(agents[0], "FTRUN_KEY"), None);
    // A rank has read it from a pipe, which is closed: its children do not get it.
    let pipe: u32 = variable(ranks[0], "FTRUN_KEY").unwrap().parse().expect("the number of a pipe");
    let file = std::fs::read_link(format!("/proc/{}/fd/{pipe}", ranks[0])).unwrap_or_default();
    assert!(!file.to_string_lossy().starts_with("pipe:"), "{file:?}");
    for process in running.processes() {
        for place in ["cmdline", "environ"] {
            let text = std::fs::read(format!("/proc/{process}/{place}")).unwrap();
            let digits = text.split(|byte| !byte.is_ascii_hexdigit()).map(<[u8]>::len).max();
            assert!(digits < Some(64), "{place} of {process} has a key in it, or what looks like one");
        }
    }
    running.end_stdin();
    running.finish().expect(0);
}

#[test]
fn standard_input_reaches_rank_0_whole_and_output_comes_back_in_lines() {
    let text: String = (0..60_000).map(|number| format!("line {number} of many\n")).collect();
    let (_folder, run) = over(LIKE_SSH, "-n 2 --hosts 127.0.0.2,127.0.0.3 /bin/cat");
    let outcome = run.stdin(text.clone().into_bytes()).finish().expect(0);
    assert!(outcome.stdout == text, "{} of {} bytes came back", outcome.stdout.len(), text.len());
}

#[test]
fn standard_input_reaches_all_ranks_on_all_hosts_if_asked() {
    let text: String = (0..20_000).map(|number| format!("line {number} of many\n")).collect();
    let (_folder, run) = over(LIKE_SSH, "-n 3 --hosts 127.0.0.2,127.0.0.3 /bin/sh -c");
    let outcome = run.arg("cksum").stdin(text.clone().into_bytes()).finish().expect(0);
    let empty = "4294967295 0";
    assert_eq!(outcome.stdout.matches(empty).count(), 2, "{outcome}");
    let folder = tempdir().unwrap();
    let exec = program(folder.path(), "exec", LIKE_SSH);
    let run = Run::ftrun("-n 3 --stdin all --hosts 127.0.0.2,127.0.0.3 --launcher-exec").arg(exec);
    let outcome = run.arg("/bin/cksum").stdin(text.into_bytes()).finish().expect(0);
    let sums: Vec<&str> = outcome.stdout.lines().collect();
    assert!(sums.len() == 3 && sums.iter().all(|sum| *sum == sums[0] && *sum != empty), "{outcome}");
}

/// A script that names other hosts for rank 0 keeps its standard input, and is told how to send it.
#[test]
fn standard_input_is_not_read_for_rank_0_on_another_host_unasked() {
    let folder = tempdir().unwrap();
    let exec = program(folder.path(), "exec", LIKE_SSH);
    let script = "printf '1\\n2\\n3\\n' | while read -r i; do \"$0\" -n 1 $2 --hosts 127.0.0.2 --launcher-exec \"$1\" /bin/cat; echo round $i; done";
    let rounds = |options: &str| {
        let run = Run::program("/bin/sh".as_ref(), "-c").arg(script).arg(built().join("ftrun"));
        run.arg(&exec).arg(options).finish().expect(0)
    };
    let outcome = rounds("--map-by slot");
    assert_eq!(outcome.stdout, "round 1\nround 2\nround 3\n", "{outcome}");
    assert!(
        outcome.stderr.contains("standard input is not sent to rank 0, which runs on host 127.0.0.2"),
        "{outcome}"
    );
    let outcome = rounds("--stdin=none");
    assert_eq!(outcome.stdout, "round 1\nround 2\nround 3\n", "{outcome}");
    assert!(!outcome.stderr.contains("standard input"), "{outcome}");
    assert_eq!(rounds("--stdin=0").stdout, "2\n3\nround 1\n");
}

#[test]
fn a_signal_reaches_the_ranks_on_all_hosts() {
    let (_folder, run) = over(LIKE_SSH, "-n 2 --hosts 127.0.0.2,127.0.0.3 /bin/sh -c");
    let script = "trap 'echo heard; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = run.arg(script).start();
    running.await_times("ready", 2);
    running.signal(Signal::TERM);
    let outcome = running.finish().expect(143);
    assert_eq!(outcome.stdout.matches("heard").count(), 2, "{outcome}");
}

/// The terminal's suspend key stops all ranks for so many seconds; afterwards nobody is taken for lost.
fn suspended(timeout_ms: u64, seconds: &str) {
    let options = format!("--heartbeat-timeout {timeout_ms} --hosts 127.0.0.2,127.0.0.3");
    let (_folder, run) = over(LIKE_SSH, &format!("-n 4 -v --json {options}"));
    let mut running = run.arg(example("waiting")).open_stdin().start();
    running.await_text("all ranks have joined");
    running.signal(Signal::TSTP);
    Run::program("/bin/sleep".as_ref(), seconds).finish().expect(0);
    let (agents, ranks) = processes_on(&running, HOSTS[1]);
    assert_eq!((agents.len(), ranks.len()), (1, 2));
    assert!(ranks.iter().all(is_stopped));
    running.signal(Signal::CONT);
    running.end_stdin();
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.report().failures().len(), 0, "{outcome}");
}

/// For longer than silence is borne.
#[test]
fn a_suspended_job_goes_on() {
    suspended(2000, "2.5");
}

/// For longer than the lease of the agents, which is ten timeouts.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_job_that_is_suspended_for_long_goes_on() {
    suspended(1000, "11");
}

/// The host of the launcher needs no agent, unless a command is named. Three options come before the host.
#[test]
fn the_launcher_s_own_host_may_be_one_of_them() {
    let folder = tempdir().unwrap();
    program(folder.path(), "ssh", &format!("shift 3; echo asked for $1 >&2; {LIKE_SSH}"));
    let script = format!("PATH={}:$PATH exec \"$0\" \"$@\"", folder.path().display());
    let run = Run::program(Path::new("/bin/sh"), "-c").arg(script).arg(built().join("ftrun"));
    let options =
        format!("--json -v --scheme rs:2+2 --hosts localhost:2,127.0.0.3:2 --kill 0,3@step=25 {POISSON}");
    let outcome = options.split_whitespace().fold(run, Run::arg).finish().expect(0);
    check_answer(&outcome);
    assert_eq!(outcome.stderr.matches("asked for").count(), 1, "{outcome}");
    assert!(outcome.stderr.contains("ftrun: 127.0.0.3: asked for 127.0.0.3\n"), "{outcome}");
}

#[test]
fn all_die_with_a_killed_launcher() {
    let (_folder, run) = over(LIKE_SSH, "-n 4 -v --hosts 127.0.0.2,127.0.0.3");
    let mut running = run.arg(example("waiting")).open_stdin().start();
    running.await_text("all ranks have joined");
    running.signal(Signal::KILL);
    running.finish_killed().expect(128 + 9);
}

/// The launcher holds a script open, but not its interpreter. If that is removed, no process can be
/// started.
#[test]
fn a_process_that_cannot_be_started_is_a_failure_of_its_rank() {
    for hosts in ["", "--hosts 127.0.0.2,127.0.0.3"] {
        let start = |options: &str| {
            let folder = tempdir().unwrap();
            let shell = folder.path().join("shell");
            symlink("/bin/sh", &shell).unwrap();
            let waits = program(folder.path(), "waits", "");
            let text = format!("#!{}\nexec {}\n", shell.display(), example("waiting").display());
            std::fs::write(&waits, text).unwrap();
            let mut run = Run::ftrun(&format!("-n 4 -v --json --stdin 0 {options} {hosts}"));
            if !hosts.is_empty() {
                run = run.arg("--launcher-exec").arg(program(folder.path(), "exec", LIKE_SSH));
            }
            (shell, folder, run.arg(waits).open_stdin().start())
        };
        let (shell, _folder, mut running) = start("--kill 2@step=12");
        running.await_text("all ranks have joined");
        std::fs::remove_file(shell).unwrap();
        running.end_stdin();
        let outcome = running.finish().expect(1);
        let message = "rank 2 failed 4 times in a row without progress in between (last: exited with status 2 without goodbye: ftrun: cannot run";
        assert!(outcome.report().message().starts_with(message), "{outcome}");

        let (shell, _folder, mut running) = start("--spares 1 --kill 2@step=12");
        running.await_text("1 of 1 spares are ready");
        std::fs::remove_file(shell).unwrap();
        running.end_stdin();
        let outcome = running.finish().expect(0);
        assert!(outcome.stderr.contains("replaced [0, 0, 1, 0]"), "{outcome}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("hosts");
    std::fs::write(&file, "# nobody\n").unwrap();
    let file = file.display();
    for (options, complaint) in [
        ("--hosts a,,b", "invalid value 'a,,b' for '--hosts <HOSTS>': '' is no host"),
        ("--hosts a:x", "'x' is no number of slots"),
        ("--hosts a --hostfile b", "the argument '--hosts <HOSTS>' cannot be used with '--hostfile <FILE>'"),
        ("--hostfile /no/such/file", "--hostfile: cannot read /no/such/file: No such file"),
        (&format!("--hostfile {file}"), &format!("--hostfile {file}: no host is named")),
        ("--launcher-exec /bin/true", "name some with --hosts or --hostfile"),
        ("--ppn 2", "--ppn is for ranks on hosts: name them with --hosts"),
        ("--map-by ppr:2:node", "'ppr:2:node' is none of slot, node; --ppn N puts N ranks on each host"),
        (
            "--hosts a --launcher-exec /no/such/file",
            "--launcher-exec: cannot run /no/such/file: No such file",
        ),
        ("--hosts a --launcher-exec no-such-program", "cannot start anything on host a: No such file"),
        ("--hosts a:2 --kill 2@step=1", "--kill 2@step=1: rank 2 does not exist, ranks are 0 to 1"),
    ] {
        let outcome = Run::ftrun(&format!("{options} {POISSON}")).finish().expect(2);
        assert!(outcome.stderr.contains(complaint) && outcome.stdout.is_empty(), "{outcome}");
    }
}

#[test]
fn a_scheme_that_no_host_can_be_lost_with_is_said() {
    let (_folder, run) =
        over(LIKE_SSH, &format!("-n 4 --json --scheme xor --hosts 127.0.0.2,127.0.0.3 {POISSON}"));
    let outcome = run.finish().expect(0);
    let line = "ftrun: xor does not survive the loss of a whole host: 127.0.0.2, 127.0.0.3;";
    assert!(outcome.stderr.starts_with(line), "{outcome}");
    check_answer(&outcome);
    let (_folder, run) =
        over(LIKE_SSH, &format!("-n 4 --json --scheme xor:2 --hosts 127.0.0.2:2,127.0.0.3:2 {POISSON}"));
    assert_eq!(run.finish().expect(0).stderr, "");
}
