//! Commands of the front page and of the handbook do what is said there.

use std::fs;
use std::path::Path;

use std::os::unix::fs::{PermissionsExt, symlink};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::common::{Outcome, Run, built};

pub(crate) fn text(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(file)).unwrap()
}

/// The blocks of a page that are of this kind.
pub(crate) fn blocks(page: &str, kind: &str) -> Vec<String> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.filter_map(|part| part.strip_prefix(kind)?.strip_prefix('\n')).map(str::to_owned).collect()
}

/// What stands behind the word `ftrun` of the commands of a page, each in one line.
fn commands(page: &str) -> Vec<String> {
    let all = ["sh", "text"].into_iter().flat_map(|kind| blocks(page, kind)).collect::<Vec<_>>().join("\n");
    let all = all.replace("\\\n", " ");
    let lines = all.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line));
    lines
        .filter_map(|line| line.strip_prefix("ftrun "))
        .filter(|line| !line.starts_with(' '))
        .map(str::to_owned)
        .collect()
}

/// A folder in which the commands of the handbook find what they name.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("target/release")).unwrap();
    symlink(built().join("examples"), folder.path().join("target/release/examples")).unwrap();
    folder
}

/// What stands behind the word `ftrun` of a command, to be run in this folder.
fn in_folder(folder: &TempDir, arguments: &str) -> Run {
    let script = format!("cd \"$0\" && exec \"$1\" {arguments}");
    let run = Run::program(Path::new("/bin/sh"), "-c").arg(script);
    // Some of them compute for a while, and say nothing before the end.
    run.arg(folder.path()).arg(built().join("ftrun")).limit(120)
}

/// Runs what stands behind the word `ftrun` of a command, in a folder of its own.
fn run(arguments: &str) -> Outcome {
    in_folder(&folder(), arguments).finish()
}

#[test]
fn every_app_of_the_front_page_survives_its_failure() {
    let page = text("README.md");
    let cells =
        page.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split(" | ").nth(2));
    let commands: Vec<&str> =
        cells.filter_map(|cell| cell.strip_prefix("`ftrun ")?.strip_suffix("` |")).collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in commands {
        let outcome = run(command).expect(0);
        let failed = outcome.stdout.contains(" failed (") || outcome.stdout.contains(": lost with rank");
        assert!(failed || command.contains("--mtbf"), "{command}: {outcome}");
    }
}

/// Replaces each number by `#`, where it may differ between two runs.
fn masked(line: &str) -> String {
    let is_exact = !line.starts_with("  ") || line.starts_with("  converged");
    if is_exact {
        return line.to_owned();
    }
    let mut text = String::new();
    for part in line.split_inclusive(' ') {
        let number = part.trim_end_matches([' ', ',']);
        match number.parse::<f64>() {
            Ok(_) => text += &part.replacen(number, "#", 1),
            Err(_) => text += part,
        }
    }
    // One or several, and their size.
    text.replace("checkpoints", "checkpoint").replace("steps", "step").replace("KiB", "MiB")
}

#[test]
fn the_transcript_of_the_front_page_is_what_its_command_prints() {
    let transcript = blocks(&text("README.md"), "text").remove(0);
    let (command, shown) = transcript.split_once('\n').unwrap();
    let outcome = run(command.strip_prefix("$ ftrun ").expect("a command of ftrun")).expect(0);
    let [shown, printed]: [Vec<String>; 2] =
        [shown, &outcome.stdout].map(|text| text.lines().map(masked).collect());
    assert_eq!(shown, printed, "{outcome}");
}

#[test]
fn getting_started() {
    let page = text("docs/getting-started.md");
    // The last one is of the reader's own program.
    let commands =
        page.lines().filter_map(|line| line.strip_prefix("ftrun ")).filter(|line| !line.ends_with("NAME"));
    let answers: Vec<String> = commands
        .map(|command| {
            let outcome = run(command).expect(0);
            outcome.stdout.split(", answer ").nth(1).expect("an answer").lines().next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");

    // What the page says of the last one with the scheme that is the default.
    let outcome = run("-n 4 --kill 1,3@step=20 cg --poisson 48").expect(3);
    assert!(outcome.stderr.trim_end().ends_with("rs:2+2 would have survived this"), "{outcome}");
}

/// The program that a page has is this example, which is run here; so whoever follows the page has a program that works.
fn program(page: &str, example: &str) {
    nth_program(page, 0, example);
}

/// As [`program`], for a page with several.
fn nth_program(page: &str, nth: usize, example: &str) {
    let code = blocks(&text(page), "rust").remove(nth) + "\n";
    let example = text(example);
    let from_file = example.split_once("\n\n").unwrap().1;
    assert_eq!(code, from_file, "the program of {page} is not its example");
}

#[test]
fn the_program_of_the_front_page() {
    program("README.md", "checkpoint/examples/sum.rs");
    let sums = ["", "--scheme rs:2+2 --kill 1,3@step=40"]
        .map(|options| run(&format!("-n 4 {options} target/release/examples/sum")).expect(0).stdout);
    assert_eq!(sums[0].lines().count(), 4);
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sorted(&sums[0]), sorted(&sums[1]));
}

#[test]
fn the_program_whose_messages_cross_checkpoints() {
    program("docs/lines.md", "checkpoint/examples/relay.rs");
    let sums = ["", "--lines log --kill 2@step=500", "--lines drain --kill 0@step=500"]
        .map(|options| run(&format!("-n 4 {options} target/release/examples/relay")).expect(0).stdout);
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert!(sums.iter().all(|sum| sorted(sum) == sorted(&sums[0])), "{sums:?}");
}

/// The page shows their steps.
#[test]
fn programs_whose_ranks_are_in_different_steps() {
    let steps = blocks(&text("docs/lines.md"), "rust");
    let modes = ["--lines log", "--lines log --kill 0@step=100", "--recovery local --kill 2@step=100"];
    for (shown, name) in steps[1..].iter().zip(["deal", "wave", "chaotic"]) {
        let indented = shown.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n");
        let example = text(&format!("checkpoint/examples/{name}.rs"));
        assert!(example.contains(&indented.collect::<String>()), "the page shows another step of {name}");
        let said = modes.map(|mode| {
            let outcome = run(&format!("-n 4 --every 10 {mode} target/release/examples/{name}")).expect(0);
            assert_eq!(outcome.stderr.contains(" failed (step=100)"), mode.contains("kill"), "{outcome}");
            outcome.stdout.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        });
        assert!(!said[0].is_empty() && said.iter().all(|lines| *lines == said[0]), "{name}: {said:?}");
    }
    let alone = run("-n 1 target/release/examples/deal").expect(2);
    assert!(alone.stderr.contains("two ranks at least"), "{alone}");
}

#[test]
fn the_program_with_messages() {
    program("docs/messages.md", "comm/examples/halo.rs");
    run("-n 4 target/release/examples/halo").expect(0);
}

#[test]
fn the_program_that_solves_a_file() {
    program("docs/solvers.md", "ft-linalg/examples/matrix_market.rs");
    let page = text("docs/solvers.md");
    let folder = folder();
    fs::write(folder.path().join("small.mtx"), blocks(&page, "text").remove(0)).unwrap();
    let command = commands(&page).remove(0);
    let [lost, calm] = [command.clone(), command.replace("--kill 2@step=2 ", "")]
        .map(|command| in_folder(&folder, &command).finish().expect(0));
    assert!(calm.stdout.contains("x = [2.000000, 3.000000, 3.000000, 2.000000]"), "{calm}");
    assert_eq!((&lost.stdout, lost.stderr.contains("rank 2")), (&calm.stdout, true), "{lost}");
    // The same without a program.
    in_folder(&folder, &commands(&page)[1]).finish().expect(0);
    let x = fs::read_to_string(folder.path().join("x.mtx")).unwrap();
    assert!(
        x.lines()
            .skip(2)
            .zip([2.0, 3.0, 3.0, 2.0])
            .all(|(line, due)| line.parse::<f64>().is_ok_and(|x| (x - due).abs() < 1e-6)),
        "{x}"
    );
    assert!(folder.path().join("residuals.svg").exists());
}

#[test]
fn a_preconditioner_of_ones_own() {
    nth_program("docs/solvers.md", 1, "ft-linalg/examples/own_preconditioner.rs");
    let [lost, calm] = ["--kill 2@step=20 ", ""]
        .map(|kill| run(&format!("-n 4 {kill}target/release/examples/own_preconditioner")).expect(0));
    assert!(calm.stdout.starts_with("converged after"), "{calm}");
    assert_eq!((&lost.stdout, lost.stderr.contains("rank 2")), (&calm.stdout, true), "{lost}");
}

/// What else the page has of programs is out of examples, which are run with the others.
#[test]
fn the_solvers_of_the_handbook_are_in_examples() {
    let lines = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let blocks = blocks(&text("docs/solvers.md"), "rust");
    for example in ["two_solves", "own_solver"] {
        let whole = lines(&text(&format!("ft-linalg/examples/{example}.rs")));
        assert!(blocks.iter().any(|block| whole.contains(&lines(block))), "{example}");
    }
    let own =
        blocks.iter().find(|block| block.contains("impl Solver for Own")).expect("a solver of one's own");
    assert!(own.lines().count() <= 60, "a page has 60 lines:\n{own}");
}

#[test]
fn a_problem_without_its_matrix_has_the_same_answer() {
    let command = commands(&text("docs/solvers.md")).remove(2).replace("cg", "--json cg");
    let [free, stored] = [command.clone(), command.replace("--matrix-free", "")].map(|command| {
        let outcome = run(&command).expect(0);
        assert_eq!(outcome.report().unfired(), [""; 0], "{outcome}");
        ["answer_hash", "history", "relative_residual", "nonzeros"]
            .map(|name| outcome.report().0["result"][name].clone())
    });
    assert_eq!(free, stored);
}

/// A model as `numpy.save` writes it: 60 x 40 points of 2 km/s.
fn model() -> Vec<u8> {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (60, 40), }".to_owned();
    header += &" ".repeat(117 - header.len());
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    (0..60 * 40).for_each(|_| bytes.extend(2000.0_f32.to_le_bytes()));
    bytes
}

#[test]
fn a_survey_with_random_failures() {
    let [command] = &commands(&text("docs/apps.md"))[..] else { panic!("there is one") };
    let folder = folder();
    fs::write(folder.path().join("vp.npy"), model()).unwrap();
    in_folder(&folder, command).finish().expect(0);
    let gathers = fs::read_dir(folder.path().join("gathers")).unwrap().map(|file| file.unwrap().path());
    let count =
        gathers.filter(|path| path.extension().is_some_and(|kind| kind == "sgy" || kind == "segy")).count();
    assert_eq!(count, 24);
    assert!(fs::read(folder.path().join("run.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn ranks_that_are_not_replaced_and_ranks_that_stand_still() {
    let page = commands(&text("docs/failures.md"));
    let [kept, shrink, stuck] = &page[..] else { panic!("{page:?}") };
    let outcome = run(kept).expect(0);
    assert!(outcome.stdout.contains("found again in memory"), "{outcome}");
    // Of eight processes one may be silent for a while where cores are few.
    let outcome = run(&format!("--heartbeat-timeout 20000 {shrink}")).expect(0);
    assert!(outcome.stdout.contains("6 of 8 ranks are left"), "{outcome}");
    let folder = folder();
    let mut running = in_folder(&folder, stuck).start();
    running.await_text("rank 0 waits for rank 1, which waits for rank 0");
    running.signal(Signal::INT);
    running.finish().expect(130);
}

#[test]
fn survivors_that_go_on_by_themselves() {
    let [command] = &commands(&text("docs/ulfm.md"))[..] else { panic!("there is one") };
    let outcome = run(command).expect(0);
    assert!(outcome.stdout.contains("of 5 has done"), "{outcome}");
}

#[test]
fn several_runs_in_one_job() {
    let [command] = &commands(&text("docs/programs.md"))[..] else { panic!("there is one") };
    let outcome = run(command).expect(0);
    assert_eq!(outcome.stdout.matches("after 12 runs").count(), 4, "{outcome}");
    assert_eq!(outcome.stderr.matches("failed (").count(), 3, "{outcome}");
}

/// The hosts of the page are addresses of this one, the script of the page stands for `ssh`, and the system is a smaller one.
#[test]
fn several_hosts() {
    let page = text("docs/hosts.md");
    let [command] = &commands(&page)[..] else { panic!("there is one") };
    let folder = folder();
    let script = folder.path().join("like-ssh");
    fs::write(&script, blocks(&page, "text").remove(1) + "\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let here = (1..=4)
        .fold(command.clone(), |text, n| text.replace(&format!("node{n}"), &format!("127.0.0.{}", n + 1)));
    assert_ne!(here, *command);
    let here = here.replace("--poisson 96", "--poisson 24");
    let outcome =
        in_folder(&folder, &format!("--launcher-exec {} {here}", script.display())).finish().expect(0);
    assert!(outcome.stdout.contains("answer "), "{outcome}");
}

#[test]
fn a_timeline_and_advice() {
    let [command] = &commands(&text("docs/measuring.md"))[..] else { panic!("there is one") };
    let folder = folder();
    in_folder(&folder, command).finish().expect(0);
    assert!(fs::read(folder.path().join("run.png")).unwrap().starts_with(b"\x89PNG"));
    let [advise, ways] = &commands(&text("docs/schemes.md"))[..] else { panic!("there are two") };
    let quick = advise.replace("advise ", "advise --seconds 0.3 ").replace("--poisson 96", "--poisson 24");
    let outcome = run(&quick).expect(0);
    for scheme in ["none", "neighbor:1", "xor", "rs:2+2", "disk"] {
        assert!(outcome.stdout.contains(&format!("  {scheme} ")), "{scheme}: {outcome}");
    }
    let quick = ways.replace("--repeat 5", "--seconds 0.3 --repeat 1");
    let outcome = run(&quick).expect(0);
    for way in ["global", "lines", "local"] {
        assert_eq!(outcome.stdout.matches(&format!("  {way} ")).count(), 2, "in both tables: {outcome}");
    }
}

/// The matrix of the page is a smaller one, and the time between two sets is shorter.
#[test]
fn a_job_of_which_nothing_is_left() {
    let page = commands(&text("docs/resume.md"));
    let [spill, resume, inspect, take_out] = &page[..] else { panic!("{page:?}") };
    let folder = folder();
    let here = |command: &str| {
        let command = command.replace("/scratch/spill", "spill").replace("5min", "1");
        command.replace("--matrix large.mtx", "--poisson 40 --tol 1e-12")
    };
    // So slow that it is at work when it is killed.
    let mut running = in_folder(&folder, &format!("-v --pace 0.05 {}", here(spill))).start();
    running.await_text("is in files");
    running.signal(Signal::KILL);
    running.finish_killed();
    let outcome = in_folder(&folder, &here(inspect)).finish().expect(0);
    assert!(outcome.stdout.contains("solver.x") && outcome.stdout.contains("f64 [64000]"), "{outcome}");
    in_folder(&folder, &here(take_out)).finish().expect(0);
    let taken = fs::read(folder.path().join("x.npy")).unwrap();
    assert!(taken.starts_with(b"\x93NUMPY") && taken.len() == 128 + 8 * 64_000, "{} bytes", taken.len());
    let whole = run(&here(spill)).expect(0);
    let outcome = in_folder(&folder, &here(resume)).finish().expect(0);
    let answer = |outcome: &Outcome| outcome.stdout.split_once("answer ").unwrap().1[..16].to_owned();
    assert_eq!(answer(&outcome), answer(&whole), "{outcome}");
}

/// Questions to a job, which has another number here.
#[test]
fn a_job_that_is_asked() {
    let page = commands(&text("docs/console.md"));
    let (start, questions) = page.split_first().expect("a job and questions");
    let (session, place) = (tempfile::tempdir().unwrap(), folder());
    let command =
        |arguments: &str| in_folder(&place, arguments).variable("FTRUN_JOBS", session.path().join("jobs"));
    let mut job = command(&start.replace("9100", "0")).start();
    job.await_text("/metrics\n");
    let number = job.launcher().as_raw_nonzero().to_string();
    for question in questions {
        let outcome = command(&question.replace("15088", &number)).finish().expect(0);
        assert!(outcome.stdout.contains(&number), "{outcome}");
    }
    job.finish().expect(143);
}

/// The script of the page is what the command above it prints, but for the place of the program.
#[test]
fn a_script_for_slurm() {
    let page = text("docs/batch.md");
    let [command] = &commands(&page)[..] else { panic!("there is one") };
    let block = blocks(&page, "text").remove(0);
    let (_, shown) = block.split_once('\n').expect("a command and a script");
    let printed = run(command).expect(0).stdout;
    let program = built().join("ftrun").canonicalize().unwrap().display().to_string();
    assert_eq!(printed.replace(&program, "/usr/local/bin/ftrun").trim_end(), shown.trim_end());
}

/// No page has a command that the tests above do not know of.
#[test]
fn every_command_is_run() {
    let counts = [
        ("docs/apps.md", 1),
        ("docs/batch.md", 1),
        ("docs/console.md", 5),
        ("docs/failures.md", 3),
        ("docs/getting-started.md", 4),
        ("docs/hosts.md", 1),
        ("docs/how-it-works.md", 0),
        ("docs/measuring.md", 1),
        ("docs/messages.md", 0),
        ("docs/mpirun.md", 0),
        ("docs/lines.md", 8),
        ("docs/over-mpi.md", 0), // its command is one of `mpirun`, which `over_mpi.rs` runs where there is one
        ("docs/programs.md", 1),
        ("docs/reference.md", 0), // its examples are run by `reference.rs`
        ("docs/resume.md", 4),
        ("docs/schemes.md", 2),
        ("docs/solvers.md", 3),
        ("docs/speed.md", 0),
        ("docs/ulfm.md", 1),
    ];
    let summary = text("docs/SUMMARY.md");
    let pages: Vec<String> = summary
        .lines()
        .filter_map(|line| Some(format!("docs/{}", line.split_once("](")?.1.split_once(')')?.0)))
        .collect();
    for page in &pages {
        let known = counts.iter().find(|(name, _)| name == page).map(|(_, count)| *count);
        assert_eq!(Some(commands(&text(page)).len()), known, "{page}");
    }
    assert_eq!(pages.len(), counts.len());
}
