//! Programs whose messages cross checkpoints: their answers are those of undisturbed runs, whoever is killed when. `FT_KILLS=300` makes the random kills a soak of as many for each program.

use serde_json::Value;

use crate::common::{Outcome, PATIENT, POISSON, Run, example, poisson_answer};
use crate::hosts::{HOSTS, LIKE_SSH, SIX, kill_host, over, stopped};
use crate::random_kills::number;

/// Each program with what of its result does not depend on the order in which things happen.
const PROGRAMS: &[(&str, &str)] = &[
    ("pipeline --items 3000", "digest"),
    ("pipeline --items 3000 --ahead", "digest"),
    ("farm --limit 400000 --numbers 800", "digest"),
    ("wavefront --points 20 --iterations 60", "answer"),
    ("jacobi --points 60 --steps 900", "points"),
];

fn run(options: &str, program: &str) -> Outcome {
    Run::ftrun(&format!("-n 4 --json {PATIENT} {options} {program}")).limit(600).finish().expect(0)
}

fn result(outcome: &Outcome, field: &str) -> Value {
    outcome.report().0["result"][field].clone()
}

/// Runs it to a good end, with the result of the undisturbed run; gives how many ranks were lost.
fn check(options: &str, (program, field): (&str, &str), expected: &Value) -> u64 {
    let outcome = run(options, program);
    assert_eq!(&result(&outcome, field), expected, "{options} {program}: {outcome}");
    assert_eq!(outcome.report().unfired(), [""; 0], "{options} {program}: {outcome}");
    outcome.report().failures().iter().map(|(ranks, _)| ranks.len() as u64).sum()
}

#[test]
fn answers_do_not_depend_on_who_is_killed_when() {
    for program in PROGRAMS {
        let expected = result(&run("", program.0), program.1);
        for (options, lost) in [
            ("--kill 2@step=12", 1),
            ("--kill 0@step=12", 1),
            ("--every 3 --kill 1@checkpoint=3/copy", 1),
            ("--every 3 --kill 1@checkpoint=3/exchange", 1),
            ("--every 3 --kill 3@checkpoint=3/vote", 1),
            ("--every 3 --kill 3@checkpoint=3/commit", 1),
            ("--scheme rs:2+2 --kill 1,3@step=13", 2),
            ("--scheme rs:2+2 --kill 2@step=13 --kill 1@repair=1/reconnect", 2),
            ("--kill 2@step=13 --kill 2@restore=1/exchange", 2),
            ("--spares 1 --transport unix --kill 3@step=14", 1),
            ("--transport tcp --kill 3@step=14", 1),
            ("--parity-ranks 1 --kill 2@step=13", 1),
            ("--parity-ranks 1 --every 3 --kill 4@checkpoint=3/vote", 1),
            ("--interval 0.01 --kill 2@step=13", 1),
            ("--interval auto --kill 2@step=13", 1),
        ] {
            assert_eq!(check(options, *program, &expected), lost, "{options} {}", program.0);
        }
    }
}

#[test]
fn of_random_ranks_at_any_time() {
    let kills = number("FT_KILLS").unwrap_or(6);
    for program in PROGRAMS {
        let expected = result(&run("", program.0), program.1);
        let mut lost = 0;
        for seed in 0.. {
            if lost >= kills {
                break;
            }
            let scheme = ["xor", "rs:2+2", "neighbor", "xor --spares 1"][seed % 4];
            let often = format!("--mtbf 0.05 --max-restarts 1000000 --seed {seed}");
            lost += check(&format!("--every 7 --scheme {scheme} {often}"), *program, &expected);
        }
        println!("{}: {lost} of {kills} kills", program.0);
    }
}

/// A sum is under way at every checkpoint, and begins again behind it.
#[test]
fn collectives_may_be_under_way() {
    let words = |options: &str| {
        let outcome = Run::ftrun(&format!("-n 4 --json {PATIENT} {options}"))
            .arg(example("overlap"))
            .limit(600)
            .finish()
            .expect(0);
        let lines = outcome.stdout.lines().chain(outcome.stderr.lines());
        let mut words: Vec<String> =
            lines.filter(|line| line.starts_with("Some(")).map(str::to_owned).collect();
        words.sort();
        let taken = outcome.report().0["checkpoints"]["committed"].as_u64().unwrap();
        let lost = outcome.report().failures().len() as u64;
        (words, taken, lost)
    };
    let (expected, ..) = words("");
    assert_eq!(expected.len(), 4);
    for mode in [
        "--lines log",
        "--lines drain",
        "--recovery local",
        "--lines log --check",
        "--lines log --transport tcp",
    ] {
        let (came, taken, lost) = words(&format!("{mode} --every 10 --kill 2@step=333 --kill 0@step=700"));
        assert_eq!((came, lost), (expected.clone(), 2), "{mode}");
        assert!(taken > 20, "{mode}: only {taken} checkpoints in 1000 steps");
    }
    for seed in 0..6 {
        let mode = ["--lines log", "--lines drain", "--recovery local"][seed % 3];
        let often = format!("--mtbf 0.03 --max-restarts 1000000 --seed {seed}");
        assert_eq!(words(&format!("{mode} --every 7 {often}")).0, expected, "{mode} {often}");
    }
}

/// Programs of which a rank can go back alone, beside those above. Some make their states whole with what others have told them.
const ALONE: &[(&str, &str)] = &[
    ("heat --grid 60 --steps 120", "answer_hash"),
    ("heat --grid 24 --steps 6 --implicit 0.5", "answer_hash"),
    ("cg --poisson 12 --precond amg --tol 1e-15", "answer_hash"),
    ("solve --poisson2d 40 --solver gmres --precond asm:ilu0,overlap=1", "answer_hash"),
];

/// Ranks that went on where they were, over all failures.
fn stayed(outcome: &Outcome) -> u64 {
    let failures = outcome.report().0["failures"].as_array().unwrap().clone();
    failures.iter().map(|failure| failure["restore"]["stayed"].as_u64().unwrap_or(0)).sum()
}

#[test]
fn only_the_lost_go_back() {
    for program in PROGRAMS.iter().chain(ALONE) {
        let expected = result(&run("", program.0), program.1);
        let mut stays = 0;
        for (options, lost) in [
            ("--kill 2@step=12", 1),
            ("--kill 0@step=12", 1),
            ("--every 3 --kill 1@checkpoint=3/copy", 1),
            ("--every 3 --kill 1@checkpoint=3/exchange", 1),
            ("--every 3 --kill 3@checkpoint=3/vote", 1),
            ("--every 3 --kill 3@checkpoint=3/commit", 1),
            ("--scheme rs:2+2 --kill 1,3@step=13", 2),
            ("--scheme rs:2+2 --kill 2@step=13 --kill 1@repair=1/reconnect", 2),
            ("--kill 2@step=13 --kill 2@restore=1/exchange", 2),
            ("--spares 1 --transport unix --kill 3@step=14", 1),
            ("--transport tcp --kill 3@step=14", 1),
            ("--parity-ranks 1 --kill 2@step=13", 1),
            ("--parity-ranks 1 --every 3 --kill 4@checkpoint=3/vote", 1),
            ("--interval 0.01 --kill 2@step=13", 1),
            ("--every 5 --scheme rs:2+2 --kill 2@step=13 --kill 0@step=14", 2),
            // Nothing is protected then: all begin again.
            ("--kill 2@checkpoint=1/copy", 1),
        ] {
            let options = format!("--recovery local {options}");
            let outcome = run(&options, program.0);
            assert_eq!(result(&outcome, program.1), expected, "{options} {}: {outcome}", program.0);
            assert_eq!(outcome.report().unfired(), [""; 0], "{options} {}: {outcome}", program.0);
            let ranks: usize = outcome.report().failures().iter().map(|(ranks, _)| ranks.len()).sum();
            assert_eq!(ranks, lost, "{options} {}: {outcome}", program.0);
            stays += stayed(&outcome);
        }
        // Three in most runs. All go back where somebody has not begun with its steps.
        assert!(stays >= 20, "{}: only {stays} ranks stayed where they were in all these runs", program.0);
    }
}

#[test]
fn of_random_ranks_at_any_time_and_only_they_go_back() {
    let kills = number("FT_KILLS").unwrap_or(6);
    for program in PROGRAMS.iter().chain(ALONE) {
        let expected = result(&run("", program.0), program.1);
        let mut lost = 0;
        for seed in 0.. {
            if lost >= kills {
                break;
            }
            let scheme = ["xor", "rs:2+2", "neighbor", "xor --spares 1"][seed % 4];
            let often = format!("--mtbf 0.05 --max-restarts 1000000 --seed {seed}");
            let options = format!("--recovery local --every 7 --scheme {scheme} {often}");
            lost += check(&options, *program, &expected);
        }
        println!("{}: {lost} of {kills} kills", program.0);
    }
}

/// What a replacement does before it is back is its own affair: the others wait for the next one, or hear why there is none.
#[test]
fn a_state_that_is_not_made_whole_is_a_failure_of_its_rank() {
    let careless = |options: &str, how: &str| {
        let run = Run::ftrun(&format!("-n 4 {PATIENT} --every 7 {options}"));
        run.arg(example("careless")).arg(how).limit(600).finish()
    };
    let answers = |outcome: &Outcome| {
        let mut lines: Vec<String> = outcome.stdout.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let expected = answers(&careless("", "").expect(0));
    assert_eq!(expected.len(), 4);
    for mode in ["--lines log", "--recovery local"] {
        for (how, said) in
            [("panics", "exited with status 101 without goodbye"), ("leaves", "exited with status 0")]
        {
            let outcome = careless(&format!("{mode} --kill 2@step=500"), how).expect(0);
            assert_eq!(answers(&outcome), expected, "{mode} {how}: {outcome}");
            assert!(outcome.stderr.contains(&format!("rank 2 failed ({said}")), "{mode} {how}: {outcome}");
        }
        for (how, said) in [
            ("always", "rank 2 failed 4 times in a row without progress in between"),
            ("errs", "ftrun: a state that cannot be made whole"),
        ] {
            let outcome = careless(&format!("{mode} --kill 2@step=500"), how).expect(1);
            assert!(outcome.stderr.contains(said), "{mode} {how}: {outcome}");
        }
    }
}

/// Each rank dies in its turn, so nobody lives at the end who was there at the start. The account has all of them: who stayed at each
/// failure, and what checkpoints have cost.
#[test]
fn what_the_lost_had_done_is_in_the_account() {
    let program = "heat --grid 60 --steps 500";
    let undisturbed = run("--every 20", program);
    let sent = |outcome: &Outcome| outcome.report().0["checkpoints"]["bytes_sent"].as_f64().unwrap();
    let kills = "--every 20 --kill 1@step=110 --kill 2@step=210 --kill 0@step=310 --kill 3@step=410";
    for (mode, stayed) in [("--lines meet", 0), ("--recovery local", 3)] {
        let outcome = run(&format!("{mode} {kills}"), program);
        let failures = outcome.report().0["failures"].as_array().unwrap().clone();
        let restores = failures.iter().map(|failure| &failure["restore"]);
        let known: Vec<_> = restores.map(|r| (r["generation"].as_u64(), r["stayed"].as_u64())).collect();
        assert_eq!(known, [1, 2, 3, 4].map(|number| (Some(number), Some(stayed))), "{mode}: {outcome}");
        // A checkpoint that was under way when a rank was lost is not counted.
        assert!(sent(&outcome) > 0.9 * sent(&undisturbed), "{mode}: {outcome}\n{undisturbed}");
    }
}

/// A rank that hangs is killed with all of its host; those of the other hosts stay where they are.
#[test]
fn only_the_ranks_of_a_lost_host_go_back() {
    for program in [
        ("pipeline --items 600 --ahead", "digest"),
        ("heat --grid 60 --steps 60", "answer_hash"),
        // Its sums go through the hosts, of which there are fewer afterwards.
        ("pi --samples 250000000", "hits"),
    ] {
        let expected =
            result(&Run::ftrun(&format!("-n 6 --json {}", program.0)).finish().expect(0), program.1);
        let hangs = "--heartbeat-timeout 20000 --kill 2@step=45:hang";
        let options = format!("{SIX} --json -v --every 5 --recovery local {hangs} {}", program.0);
        let (_folder, run) = over(LIKE_SSH, &options);
        let mut running = run.start();
        running.await_text("--kill 2@step=45:hang strikes");
        stopped(&running);
        kill_host(&running, HOSTS[1]);
        let outcome = running.finish().expect(0);
        assert_eq!(result(&outcome, program.1), expected, "{}: {outcome}", program.0);
        let lost: Vec<Vec<u64>> = outcome.report().failures().into_iter().map(|(ranks, _)| ranks).collect();
        assert_eq!((lost, stayed(&outcome)), (vec![vec![2, 3]], 4), "{}: {outcome}", program.0);
    }
}

/// Each rank ends a trial after its own steps, and so it does when it has gone back from there.
#[test]
fn trials_end_after_as_many_steps_whoever_is_killed_when() {
    let often = "--mtbf 0.05 --max-restarts 1000000 --seed 3";
    for program in ["cg --poisson 12 --tol 1e-15", "heat --grid 24 --steps 100000 --implicit 0.5"] {
        for lines in ["--lines log", "--recovery local"] {
            for kill in ["", "--kill 2@step=20", "--kill 1@step=19 --kill 0@step=20", often] {
                let outcome = run(&format!("{lines} --every 6 --trial-steps 20 {kill}"), program);
                let report = outcome.report();
                assert_eq!(
                    report.0["checkpoints"]["interval"]["steps_done"], 20,
                    "{lines} {kill}: {outcome}"
                );
                assert!(report.0["result"].is_null(), "nothing is finished: {outcome}");
                assert_eq!(report.unfired(), [""; 0], "{lines} {kill}: {outcome}");
            }
        }
    }
}

/// A rank that keeps too much for others takes a checkpoint sooner.
#[test]
fn messages_that_are_kept_for_the_lost_take_no_more_memory_than_they_may() {
    let program = ("pipeline --items 600 --words 1024", "digest");
    let expected = result(&run("", program.0), program.1);
    let committed = |options: &str| {
        let outcome = run(options, program.0);
        assert_eq!(result(&outcome, program.1), expected, "{options}: {outcome}");
        outcome.report().0["checkpoints"]["committed"].as_u64().unwrap()
    };
    // Each rank sends 8 KiB in a step.
    let (seldom, often) = (
        committed("--recovery local --every 300 --kill 1@step=290"),
        committed("--recovery local --every 300 --log-memory 160KiB --kill 1@step=290"),
    );
    assert!(often > 2 * seldom && often >= 6, "{seldom} and {often} checkpoints");
}

/// Messages that cross a step, though all ranks are in the same one, and programs whose messages cross nothing.
#[test]
fn what_is_under_way_is_drained() {
    let pipeline = ("pipeline --items 2000 --ahead --lines drain", "digest");
    let expected = result(&run("", pipeline.0), pipeline.1);
    for options in [
        "--kill 2@step=33",
        "--every 3 --kill 1@checkpoint=4/vote",
        "--checkpoints asynchronous --kill 0@step=35",
    ] {
        assert_eq!(check(options, pipeline, &expected), 1);
    }
    let undisturbed = run("--every 5", pipeline.0);
    // Three items are on their way to each rank at each of them, but at the first.
    let lines = &undisturbed.report().0["checkpoints"]["lines"];
    let committed = undisturbed.report().0["checkpoints"]["committed"].as_u64().unwrap();
    assert_eq!(lines["kept"].as_u64(), Some((committed - 1) * 4 * 3), "{undisturbed}");
    assert_eq!((lines["early"].as_u64(), lines["outcomes"].as_u64()), (Some(0), Some(0)));
    for lines in ["drain", "log"] {
        let outcome = run(&format!("--lines {lines} --kill 1@step=33"), POISSON);
        assert_eq!(outcome.report().answer(), poisson_answer().answer(), "{outcome}");
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_is_started() {
    for (arguments, why) in [
        ("--lines meet pipeline", "--lines meet is nothing for pipeline"),
        ("--lines drain farm", "--lines drain is nothing for farm"),
        ("--lines meet jacobi", "--lines meet is nothing for jacobi"),
        ("--lines log ring", "--lines is nothing for ring"),
        ("--lines log --scrub heat", "--lines log does not go together with --scrub"),
        ("--lines log --on-failure shrink heat", "--lines log does not go together with --on-failure shrink"),
        (
            "--lines draw heat",
            "invalid value 'draw' for '--lines <meet|drain|log>': must be meet, drain or log",
        ),
        ("--recovery local --lines drain heat", "--recovery local is for --lines log"),
        ("--recovery local --lines meet heat", "--recovery local is for --lines log"),
        ("--lines log --trial-seconds 1 heat", "--lines log does not go together with a trial"),
        ("--lines drain --trial-steps 5 heat", "--lines drain does not go together with a trial"),
        ("--log-memory 1MiB heat", "--log-memory is for --recovery local"),
        ("--recovery nobody heat", "must be global or local"),
        ("wavefront --points 3", "4 ranks share 3 rows"),
    ] {
        let outcome = Run::ftrun(&format!("-n 4 {arguments}")).finish().expect(2);
        assert!(outcome.stderr.contains(why), "{arguments}: {outcome}");
    }
    // Ranks that keep their state when others are lost go back to no line.
    let outcome = Run::ftrun("-n 4 --lines log seismic --synthetic salt").finish().expect(2);
    assert!(outcome.stderr.contains("`--lines meet` is for it"), "{outcome}");
    let outcome = Run::ftrun("-n 4 --recovery local hpcg --size 16").finish().expect(2);
    assert!(outcome.stderr.contains("`--recovery global` is for it"), "{outcome}");
}

/// `rebuild` makes a communicator, the lost rank alone, and it is the one that the others still
/// have.
#[test]
fn a_communicator_made_in_rebuild_serves_where_only_the_lost_go_back() {
    let halves = |options: &str| {
        let run = Run::ftrun(&format!("-n 4 --every 20 {PATIENT} {options}"));
        run.arg(example("halves")).arg("60").arg("160").limit(600).finish().expect(0).stdout
    };
    let expected = halves("");
    assert!(expected.contains("hash"), "{expected}");
    // The second rank is lost after all have gone back together, from whose communicators it was
    // not.
    let early = "--kill 2@checkpoint=1/copy --kill 0@step=77 --kill 1@step=120";
    let twice = "--scheme rs:2+2 --kill 0@step=77 --kill 2@restore=1/exchange --kill 3@step=130";
    for kills in ["--kill 0@step=77", "--kill 3@step=77 --kill 0@step=130", early, twice] {
        for recovery in ["local", "global"] {
            assert_eq!(halves(&format!("--recovery {recovery} {kills}")), expected, "{recovery} {kills}");
        }
    }
}
