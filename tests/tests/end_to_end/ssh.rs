//! Jobs over a real OpenSSH: hosts are namespaces of this machine, each with a server of its own. Where that is not installed, or this is
//! not root, nothing is tested.

use rustix::process::{Pid, Signal};

use crate::common::{Outcome, PATIENT, POISSON, Run, Running, built, example, poisson_answer, variable};
use crate::hosts::{kill_host, processes_on, send};
use crate::random_kills::{SplitMix, number, seed};

mod hosts;

use hosts::Hosts;

/// Six ranks on three hosts, of which two at a time may be lost.
const SIX: &str = "-n 6 --scheme rs:4+2 --json -v";

/// A job that is still at work after so many hundredths of a second.
fn lasting(steps: u32) -> String {
    format!("load --state 64KiB --steps {steps} --step-ms 10")
}

/// Its answer is that of a job on one host, which need not last.
fn check_answer(outcome: &Outcome, steps: u32) {
    let program = lasting(steps).replace("--step-ms 10", "--step-ms 0");
    let here = Run::ftrun(&format!("-n 6 --scheme rs:4+2 --json {program}")).finish().expect(0);
    assert_eq!(outcome.report().answer(), here.report().answer(), "{outcome}");
}

fn ranks_of_failures(outcome: &Outcome) -> Vec<Vec<u64>> {
    outcome.report().failures().into_iter().map(|(ranks, _)| ranks).collect()
}

#[test]
fn the_answer_is_that_of_one_host_also_with_a_rank_killed() {
    let Some(hosts) = Hosts::start(3) else { return };
    for (kill, lost) in [("", vec![]), ("--kill 3@step=20", vec![vec![3]])] {
        let run = hosts.ftrun(&format!("{SIX} {PATIENT} --hosts {} {kill} {POISSON}", hosts.list()));
        let outcome = run.finish().expect(0);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
        assert_eq!(ranks_of_failures(&outcome), lost, "{outcome}");
        // `ssh` has nothing to say: all lines begin with the time.
        let is_timed = |line: &str| {
            let rest = line.strip_prefix("ftrun: ");
            rest.is_some_and(|rest| rest.starts_with(|char: char| char == ' ' || char.is_ascii_digit()))
        };
        assert!(outcome.stderr.lines().all(is_timed), "{outcome}");
    }
}

/// So that nobody else is lost, who has no core for a while.
const LATER: &str = "--heartbeat-timeout 1500";

/// A host with two of six ranks is lost, in the way that `strike` sees to.
fn lose_a_host(options: &str, strike: impl FnOnce(&mut Hosts, &Running)) {
    const STEPS: u32 = 350;
    let Some(mut hosts) = Hosts::start(3) else { return };
    let options = format!("{SIX} {options} --hosts {}", hosts.list());
    let mut running = hosts.ftrun(&format!("{options} {}", lasting(STEPS))).limit(60).start();
    running.await_text("all ranks have joined");
    strike(&mut hosts, &running);
    running.await_text("host h2 is gone");
    // Those behind a cut end themselves, but a little later.
    let outcome = running.finish_killed().expect(0);
    check_answer(&outcome, STEPS);
    assert_eq!(ranks_of_failures(&outcome), [[2, 3]], "{outcome}");
}

#[test]
fn a_host_is_switched_off() {
    lose_a_host(LATER, |hosts, _| hosts.switch_off(2));
}

#[test]
fn the_processes_of_a_host_are_killed() {
    lose_a_host(LATER, |_, running| kill_host(running, "h2"));
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_link_to_a_host_is_cut() {
    lose_a_host("", |hosts, _| hosts.cut(2));
}

/// The login shell of each host waits until it has begun on all of them.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn sixteen_hosts_are_started_side_by_side() {
    const COUNT: usize = 16;
    let Some(hosts) = Hosts::start(COUNT) else { return };
    let begun = hosts.path("begun");
    std::fs::create_dir(&begun).unwrap();
    let begun = begun.display();
    for number in 1..=COUNT {
        let wait = format!("while [ $(ls {begun} | wc -l) -lt {COUNT} ]; do sleep 0.05; done");
        hosts.at_login(number, &format!("touch {begun}/{number}\n{wait}\n"));
    }
    let options = format!("-n {COUNT} --scheme rs:4+2 --json --hosts {}", hosts.list().replace(":2", ""));
    let outcome = hosts.ftrun(&format!("{options} {POISSON}")).limit(60).finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
}

#[test]
fn a_login_shell_may_print_and_ranks_have_variables_and_a_folder() {
    let Some(hosts) = Hosts::start(2) else { return };
    hosts.at_login(2, "echo welcome to h2\necho and mind the stairs >&2\n");
    let outcome = hosts.ftrun(&format!("-n 4 --json --hosts {} {POISSON}", hosts.list())).finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    for line in ["ftrun: h2: welcome to h2\n", "ftrun: h2: and mind the stairs\n"] {
        assert_eq!(outcome.stderr.matches(line).count(), 1, "{outcome}");
    }

    let run = hosts.ftrun(&format!("-n 4 --hosts {} -x FT_A -x FT_B=b -wdir", hosts.list()));
    let folder = hosts.path("h1");
    let run = run.arg(&folder).arg("/bin/sh").arg("-c").arg("echo $RANK: ${FT_A-unset} $FT_B $(pwd -P)");
    let outcome = run.variable("FT_A", "a c").finish().expect(0);
    let mut lines: Vec<&str> = outcome.stdout.lines().filter(|line| !line.contains("welcome")).collect();
    lines.sort_unstable();
    let folder = folder.canonicalize().unwrap();
    assert_eq!(lines, [0, 1, 2, 3].map(|rank| format!("{rank}: a c b {}", folder.display())), "{outcome}");
}

/// The job does not begin: what is said last names the host, and `ssh` has said why. Agents of other hosts end with their links, which
/// may be a moment later.
fn check_refused(run: Run, host: &str, why: &str) {
    let outcome = run.start().finish_killed().expect(2);
    let last = outcome.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("ftrun: cannot start anything on host {host}: ")), "{outcome}");
    assert!(outcome.stderr.contains(why) && outcome.stdout.is_empty(), "{outcome}");
}

#[test]
fn a_host_that_is_not_trusted_or_refuses_is_named() {
    let Some(hosts) = Hosts::start(2) else { return };
    let run = |list: &str| hosts.ftrun(&format!("-n 2 --hosts {list} {POISSON}"));
    hosts.forget_key(2);
    check_refused(run("h1,h2"), "h2", "ftrun: h2: Host key verification failed.");
    hosts.name_nobody("h9");
    check_refused(run("h1,h9"), "h9", "ftrun: h9: ssh: connect to host h9 port 22: Connection refused");
    std::fs::write(hosts.path("user.pub"), "").unwrap();
    check_refused(run("h1"), "h1", "Permission denied");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_host_that_never_answers_or_has_no_address_is_named() {
    let Some(hosts) = Hosts::start(2) else { return };
    let run = |list: &str| hosts.ftrun(&format!("-n 2 --hosts {list} {POISSON}"));
    hosts.swallow(2);
    check_refused(run("h1,h2"), "h2", "ftrun: h2: ssh: connect to host h2 port 22: Connection timed out");
    hosts.forget_name(2);
    check_refused(run("h1,h2"), "h2", "waiting up to 10 s for addresses of hosts that have none yet: h2\n");
}

#[test]
fn names_are_waited_for_and_ssh_may_have_its_own() {
    let Some(hosts) = Hosts::start(2) else { return };
    hosts.forget_name(2);
    let mut running = hosts.ftrun(&format!("-n 2 --json --hosts h1,h2 {POISSON}")).start();
    running.await_text("waiting up to 10 s for addresses of hosts that have none yet: h2\n");
    hosts.name(2);
    let outcome = running.finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    hosts.name_for_ssh("alias", 1);
    let outcome = hosts.ftrun(&format!("-n 2 --json --hosts alias,h2 {POISSON}")).finish().expect(0);
    assert_eq!((outcome.report().answer(), &*outcome.stderr), (poisson_answer().answer(), ""), "{outcome}");
}

/// Hosts that have `ftrun` and the program in another folder, and one that has not the folder to work in.
#[test]
fn programs_may_be_in_another_folder_on_other_hosts() {
    let Some(mut hosts) = Hosts::start(2) else { return };
    for folder in ["there", "here"] {
        std::fs::create_dir(hosts.path(folder)).unwrap();
    }
    let (there, here, built) = (hosts.path("there"), hosts.path("here"), built().display());
    let own = example("resilient");
    let (there, here, own) = (there.display(), here.display(), own.display());
    for number in 1..=2 {
        hosts.switch_off(number);
        let programs = format!("cp {built}/ftrun {own} {there} && mount -t tmpfs none {built}");
        // Only one host sees what is in this folder.
        let folder = if number == 2 { format!(" && mount -t tmpfs none {here}") } else { String::new() };
        let script = format!("mount -t tmpfs none {there} && {programs}{folder}");
        hosts.switch_on_with(number, &script).unwrap();
    }
    let run = |options: &str| hosts.ftrun(&format!("-n 2 --hosts h1,h2 {options}"));
    let without = hosts.ftrun(&format!("-n 1 --hosts h1 {POISSON}"));
    check_refused(without, "h1", "left no agent: is ftrun at that path there? --remote-path names");
    let outcome = run(&format!("--json --remote-path {there} {POISSON}")).finish().expect(0);
    assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    run(&format!("--remote-path {there} {own}")).finish().expect(0);

    std::fs::create_dir(hosts.path("here/work")).unwrap();
    let elsewhere = run(&format!("--remote-path {there} -wdir {here}/work {POISSON}"));
    check_refused(elsewhere, "h2", &format!("it has no folder {here}/work: No such file"));
    let outcome = run(&format!("--remote-path there {POISSON}")).finish().expect(2);
    assert!(outcome.stderr.contains("--remote-path there: write the whole path"), "{outcome}");
}

/// The process that holds a rank.
fn holder(running: &Running, rank: &str) -> Pid {
    let is_holder = |process: &Pid| variable(*process, "RANK").as_deref() == Some(rank);
    running.processes().into_iter().find(is_holder).expect("somebody has it")
}

/// Host `h2` is lost by `strike` and comes back by `mend`, again and again. Each time rank 2 is lost once more, wherever it is, and so
/// comes home.
fn lose_a_host_again_and_again(
    times: usize,
    steps: u32,
    strike: impl Fn(&mut Hosts, &Running),
    mend: impl Fn(&mut Hosts),
) {
    let Some(mut hosts) = Hosts::start(3) else { return };
    let run = hosts.ftrun(&format!("{SIX} --hosts {} {}", hosts.list(), lasting(steps)));
    let mut running = run.limit(60).start();
    running.await_text("all ranks have joined");
    for time in 1..=times {
        strike(&mut hosts, &running);
        running.await_times("state restored from memory", 2 * time - 1);
        mend(&mut hosts);
        running.await_times("host h2 is back", time);
        assert_eq!(processes_on(&running, "h2").1.len(), 0, "nobody has moved for that");
        send(&[holder(&running, "2")], Signal::KILL);
        running.await_times("state restored from memory", 2 * time);
        assert_eq!(variable(holder(&running, "2"), "FT_TESTS_HOST").as_deref(), Some("h2"));
        // A host that stays for longer than it was waited for is as good as new.
        assert!(std::process::Command::new("sleep").arg("0.6").status().unwrap().success());
    }
    let outcome = running.finish_killed().expect(0);
    check_answer(&outcome, steps);
    assert_eq!(outcome.report().0["hosts_back"]["h2"], times, "{outcome}");
    // The second time only rank 2 is there.
    let lost: Vec<Vec<u64>> =
        (0..2 * times).map(|loss| if loss == 0 { vec![2, 3] } else { vec![2] }).collect();
    assert_eq!(ranks_of_failures(&outcome), lost, "{outcome}");
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_host_that_is_back_takes_ranks_again() {
    lose_a_host_again_and_again(1, 800, |hosts, _| hosts.switch_off(2), |hosts| hosts.switch_on(2).unwrap());
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_host_flaps_ten_times() {
    lose_a_host_again_and_again(10, 4000, |_, running| kill_host(running, "h2"), |_| {});
}

/// Those who were cut off end, and do not disturb those who have their places.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_host_that_was_cut_off_is_back_when_the_cut_ends() {
    let Some(hosts) = Hosts::start(3) else { return };
    let run = hosts.ftrun(&format!("{SIX} --hosts {} {}", hosts.list(), lasting(1500)));
    let mut running = run.limit(60).start();
    running.await_text("all ranks have joined");
    hosts.cut(2);
    running.await_text("state restored from memory");
    hosts.mend(2);
    running.await_text("host h2 is back");
    let outcome = running.finish().expect(0);
    check_answer(&outcome, 1500);
    assert_eq!(ranks_of_failures(&outcome), [[2, 3]], "{outcome}");
}

/// Any host, in any way, at any time; `FT_SEED` and `FT_RUNS` as in `random_kills`.
#[test]
#[ignore = "slow: .ci/run runs it"]
fn a_random_host_is_lost_at_a_random_time() {
    const STEPS: u32 = 200;
    let Some(mut hosts) = Hosts::start(3) else { return };
    let seed = seed();
    let mut random = SplitMix(seed);
    for run in 0..number("FT_RUNS").unwrap_or(5) {
        let (host, way, hundredths) = (random.below(3) as usize + 1, random.below(4), random.below(150));
        let name = format!("h{host}");
        let command = hosts.ftrun(&format!("{SIX} --hosts {} {}", hosts.list(), lasting(STEPS)));
        let mut running = command.limit(60).start();
        running.await_text("all ranks have joined");
        let wait = std::process::Command::new("sleep").arg(format!("{}", hundredths as f64 / 100.0)).status();
        assert!(wait.unwrap().success());
        match way {
            0 => hosts.cut(host),
            1 => hosts.switch_off(host),
            2 => kill_host(&running, &name),
            _ => send(&processes_on(&running, &name).0, Signal::KILL),
        }
        let outcome = running.finish_killed().expect(0);
        check_answer(&outcome, STEPS);
        let (first, story) =
            (2 * host as u64 - 2, format!("FT_SEED={seed}, run {run}, way {way}: {outcome}"));
        let lost: Vec<u64> = ranks_of_failures(&outcome).concat();
        assert!(lost.is_empty() || lost == [first, first + 1], "{story}");
        match way {
            0 => hosts.mend(host),
            1 => hosts.switch_on(host).unwrap(),
            _ => {}
        }
    }
}
