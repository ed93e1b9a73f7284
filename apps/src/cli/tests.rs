//! Command lines and what is made of them.

use std::path::Path;
use std::time::Duration;

use clap::CommandFactory as _;
use ft_comm::transport::{Carrier, Waiting};
use ft_launch::StandardInput;

use super::stop::USAGE;
use super::*;
use crate::bundled::BUNDLED;
use crate::options::OnFailure;

fn asked(line: &str) -> Result<Asked, Stop> {
    parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
}

fn good(line: &str) -> Invocation {
    match asked(line) {
        Ok(Asked::Job(invocation)) => *invocation,
        Ok(other) => panic!("{line}: {other:?}"),
        Err(stop) => panic!("{line}: {}", stop.text),
    }
}

/// The options of a job with `cg`, and its own as they print.
fn cg(line: &str) -> (Options, String) {
    match good(line) {
        Invocation { options, program: Program::App("cg", args), .. } => (options, format!("{args:?}")),
        other => panic!("{other:?}"),
    }
}

/// The first line of the complaint.
fn refused(line: &str) -> String {
    let stop = asked(line).expect_err(line);
    assert_eq!(stop.status, USAGE, "{line}");
    format!("ftrun: {}", stop.text.lines().next().unwrap_or_default())
}

/// The hint that follows it.
fn tip(line: &str) -> String {
    asked(line).expect_err(line).text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn the_commands_are_sound() {
    AnyProgram::command().debug_assert();
    WithBench::command().debug_assert();
    Inspect::command().debug_assert();
    Picture::command().debug_assert();
    Sbatch::command().debug_assert();
    for app in BUNDLED {
        let stop = asked(&format!("ftrun {} --help", app.name)).expect_err("help");
        assert!(stop.status == 0 && stop.text.contains(app.purpose), "{}: {}", app.name, stop.text);
    }
}

#[test]
fn a_bundled_app_has_defaults() {
    let (options, args) = cg("ftrun -n 4 cg --poisson 8");
    assert_eq!((options.ranks(), options.parity_ranks, options.scheme()), (4, 0, "xor"));
    assert_eq!((options.every, options.on_failure, options.max_restarts), (10, OnFailure::Rebuild, 3));
    assert_eq!(options.heartbeat_interval(), Duration::from_millis(100));
    assert_eq!(options.heartbeat_timeout(), Duration::from_millis(1000));
    let (options_of_100, _) = cg("ftrun -n 4 --heartbeat-timeout 100 cg --poisson 8");
    assert_eq!(options_of_100.heartbeat_interval(), Duration::from_millis(25));
    assert!(options.kill.is_empty() && !options.json && !options.verbose && !options.quiet);
    let expected = "SolveArgs { matrix: None, duplicates: Sum, poisson: Some(8), poisson2d: None, matrix_free: false, format: None, \
                    rhs: None, solver: Cg, precond: None, tol: 1e-8, max_iter: 10000, restart: 30, eigenvalues: 1, \
                    smallest: false, out: None, monitor: false, residuals: None }";
    assert_eq!(args, expected);
    assert_eq!((options.transport, options.wait), (None, Waiting::Auto));
    assert_eq!(cg("ftrun -n 1 cg --poisson 8").0.scheme(), "none");
    assert!(cg("ftrun cg --poisson 8").0.ranks() >= 1);
}

#[test]
fn a_bundled_app_takes_the_options_on_both_sides() {
    let (options, args) = cg("ftrun -n 4 --kill 1@init cg --poisson2d 64 --kill 2@step=40 --json --every 5");
    assert_eq!((options.ranks(), options.every, options.json), (4, 5, true));
    let kills: Vec<String> = options.kill.iter().map(ToString::to_string).collect();
    assert_eq!(kills, ["1@init", "2@step=40"]);
    assert!(args.contains("poisson2d: Some(64)"), "{args}");
    let (options, args) = cg("ftrun -v -- cg --matrix a.mtx --rhs b.mtx --precond jacobi -n3");
    assert_eq!((options.ranks(), options.verbose), (3, true));
    let (options, _) = cg("ftrun --wait sleep cg --poisson 8 --transport tcp");
    assert_eq!((options.transport, options.wait), (Some(Carrier::Tcp), Waiting::Sleep));
    for line in [
        "ftrun --check --collectives a.table cg --poisson 8",
        "ftrun cg --collectives a.table --poisson 8 --check",
    ] {
        let (options, _) = cg(line);
        assert_eq!((options.collectives.as_deref(), options.check), (Some(Path::new("a.table")), true));
    }
    for part in ["matrix: Some(\"a.mtx\")", "rhs: Some(File(\"b.mtx\"))", "precond: Jacobi"] {
        assert!(args.contains(part), "{args}");
    }
}

#[test]
fn there_are_as_many_ranks_as_slots() {
    assert_eq!(cg("ftrun --hosts a:3,b cg --poisson 8").0.ranks(), 4);
    assert_eq!(cg("ftrun --hosts a:3,b cg --poisson 8 -n 2").0.ranks(), 2);
    // The ranks read the same line where there is no such file.
    let (options, _) = cg("ftrun --hostfile /no/such/file --launcher-exec rsh cg --poisson 8");
    let complaint = options.with_hosts().unwrap_err();
    assert_eq!(complaint, "--hostfile: cannot read /no/such/file: No such file or directory (os error 2)");
}

#[test]
fn what_follows_a_path_belongs_to_that_program() {
    for line in
        ["ftrun -n 2 ./mine --kill x -n 9 -- cg --json", "ftrun -n 2 -- ./mine --kill x -n 9 -- cg --json"]
    {
        let Invocation { options, program: Program::Own { path, args }, .. } = good(line) else {
            panic!("{line}")
        };
        assert_eq!(path, Path::new("./mine"));
        assert_eq!(args, ["--kill", "x", "-n", "9", "--", "cg", "--json"]);
        assert_eq!((options.ranks(), options.kill.len(), options.json), (2, 0, false));
    }
}

#[test]
fn option_of_ftrun_after_a_program_is_noticed_unless_it_is_separated() {
    for (line, word) in [
        ("ftrun -n 4 ./mine --kill 1@step=40", Some("--kill")),
        ("ftrun -n 4 ./mine input --scheme=rs:2+2 --kill x", Some("--scheme")),
        ("ftrun ./mine -n 4", Some("-n")),
        ("ftrun ./mine -np 4", Some("-np")),
        ("ftrun -n 4 ./mine -n 9 -v", None),
        ("ftrun -n 4 ./mine --of-its-own --killer", None),
        ("ftrun -n 4 ./mine -- --kill 1@step=40", None),
        ("ftrun -n 4 -- ./mine --kill 1@step=40", None),
        ("ftrun --kill 1@step=40 ./mine --help", None),
        ("ftrun cg --poisson 4 --kill 0@step=4 -n 2", None),
    ] {
        assert_eq!(good(line).misplaced.as_deref(), word, "{line}");
    }
}

#[test]
fn a_file_without_a_slash_is_the_one_here() {
    // Tests run in the directory of their crate.
    let Program::Own { path, args } = good("ftrun Cargo.toml").program else { panic!("not bundled") };
    assert_eq!((path.as_path(), args.len()), (Path::new("./Cargo.toml"), 0));
}

#[test]
fn complaints_are_one_line() {
    for (line, expected) in [
        ("ftrun", "ftrun: the following required arguments were not provided: <PROGRAM>..."),
        (
            "ftrun foo -n 3",
            "ftrun: 'foo' is neither a bundled app nor a file here or in $PATH; bundled apps: cg, solve, pi, ep, npb-cg, hpcg, seismic, heat, wavefront, jacobi, farm, pipeline, \
             simulator, collective, ring, load",
        ),
        ("ftrun -n 0 cg --poisson 4", "ftrun: invalid value '0' for '--ranks <N>': must be at least 1"),
        ("ftrun cg --poisson 4 -n 0", "ftrun: invalid value '0' for '--ranks <N>': must be at least 1"),
        ("ftrun --every 0 ./x", "ftrun: invalid value '0' for '--every <N>': must be at least 1"),
        ("ftrun -n 2 --poisson 4 cg", "ftrun: unexpected argument '--poisson' found"),
        ("ftrun --rank 4 cg", "ftrun: unexpected argument '--rank' found"),
        (
            "ftrun cg",
            "ftrun: the following required arguments were not provided: \
             <--matrix <FILE>|--poisson <N>|--poisson2d <N>>",
        ),
        (
            "ftrun cg --matrix a --poisson 4",
            "ftrun: the argument '--matrix <FILE>' cannot be used with '--poisson <N>'",
        ),
        (
            "ftrun cg --poisson 4 --poisson2d 4",
            "ftrun: the argument '--poisson <N>' cannot be used with '--poisson2d <N>'",
        ),
        ("ftrun -n 2 cg --poisson 4 -n 3", "ftrun: the argument '--ranks <N>' cannot be used multiple times"),
        ("ftrun cg --poisson 4 extra", "ftrun: unexpected argument 'extra' found"),
        (
            "ftrun cg --poisson 4 --tol 0",
            "ftrun: invalid value '0' for '--tol <TOL>': must be a number above 0",
        ),
        (
            "ftrun --watchdog 0 ./x",
            "ftrun: invalid value '0' for '--watchdog <SECONDS>': must be a number above 0",
        ),
        (
            "ftrun cg --poisson 4 --watchdog 1e-12",
            "ftrun: invalid value '1e-12' for '--watchdog <SECONDS>': must be at least 0.000001 seconds",
        ),
        (
            "ftrun --mtbf 1e300 ./x",
            "ftrun: invalid value '1e300' for '--mtbf <SECONDS>': must be at most 1000000000 seconds",
        ),
        ("ftrun -v -q ./x", "ftrun: the argument '--verbose' cannot be used with '--quiet'"),
        (
            "ftrun --kill 1@stop=3 ./x",
            "ftrun: invalid value '1@stop=3' for '--kill <SPEC>': there is no point 'stop'",
        ),
        (
            "ftrun --hosts a,:2 ./x",
            "ftrun: invalid value 'a,:2' for '--hosts <HOSTS>': ':2' is no host: write NAME or NAME:SLOTS",
        ),
        (
            "ftrun --hosts a --hostfile b ./x",
            "ftrun: the argument '--hosts <HOSTS>' cannot be used with '--hostfile <FILE>'",
        ),
        (
            "ftrun --hosts a,b:2 --kill 3@step=1 ./x",
            "ftrun: --kill 3@step=1: rank 3 does not exist, ranks are 0 to 2",
        ),
        ("ftrun -n 4 --kill 9@step=1 ./x", "ftrun: --kill 9@step=1: rank 9 does not exist, ranks are 0 to 3"),
        (
            "ftrun load --state 9",
            "ftrun: invalid value '9' for '--state <SIZE>': must be a multiple of 8 bytes",
        ),
        (
            "ftrun -n 4 bench recovery",
            "ftrun: '-n' stands before 'bench', which is no job and takes options behind its name only",
        ),
        ("ftrun bench recovery -n 4 --kill 1@step=3", "ftrun: unexpected argument '--kill' found"),
        ("ftrun bench collectives --ranks 4,2", "ftrun: --ranks: 2 does not follow 4; name rising numbers"),
        ("ftrun bench collectives --ranks 1,2", "ftrun: --ranks: 1 rank has nobody to talk to"),
        (
            "ftrun bench collectives --time 0",
            "ftrun: invalid value '0' for '--time <S>': must be a number above 0",
        ),
        (
            "ftrun bench collectives --output /no/such/folder/a",
            "ftrun: --output: cannot write /no/such/folder/a: No such file or directory (os error 2)",
        ),
        (
            "ftrun --throttle 1MiB ./x",
            "ftrun: --throttle is for --checkpoints asynchronous: nobody waits for a slower checkpoint",
        ),
        ("ftrun --lines log --scrub ./x", "ftrun: --lines log does not go together with --scrub"),
        ("ftrun --checkpoints never ./x", "ftrun: invalid value 'never' for '--checkpoints <HOW>'"),
        ("ftrun --transport udp ./x", "ftrun: invalid value 'udp' for '--transport <T>'"),
        ("ftrun cg --poisson 4 --wait nap", "ftrun: invalid value 'nap' for '--wait <W>'"),
        ("ftrun bench", "ftrun: 'ftrun bench' requires a subcommand but one was not provided"),
        ("ftrun bench speed", "ftrun: unrecognized subcommand 'speed'"),
        (
            "ftrun bench recovery -n 2 --schemes neighbor,rs:2+2",
            "ftrun: --schemes rs:2+2: rs:2+2 needs 4 ranks a group, there are 2",
        ),
        (
            "ftrun bench recovery --schemes xor,none",
            "ftrun: --schemes none: runs without protection are part of every measurement",
        ),
        ("ftrun bench recovery --state 1MiB,8,1024KiB", "ftrun: --state: 1048576 bytes are named twice"),
        ("ftrun bench recovery --schemes xor,xor", "ftrun: --schemes xor: named twice"),
        (
            "ftrun bench recovery --csv /no/such/folder/a.csv",
            "ftrun: --csv: cannot write /no/such/folder/a.csv: No such file or directory (os error 2)",
        ),
        (
            "ftrun --heartbeat-timeout 100 --heartbeat-interval 34 ./x",
            "ftrun: --heartbeat-timeout 100 is less than three times --heartbeat-interval 34: living ranks would count \
             as lost",
        ),
        (
            "ftrun --cut 0-0@init ./x",
            "ftrun: invalid value '0-0@init' for '--cut <CUT>': rank 0 is on both sides",
        ),
        (
            "ftrun -n 4 --cut 0-launcher@init --cut 0-9@init ./x",
            "ftrun: --cut 0-9@init: rank 9 does not exist, ranks are 0 to 3",
        ),
        (
            "ftrun --slow 0-1:0.1 ./x",
            "ftrun: invalid value '0-1:0.1' for '--slow <SLOW>': links are slow by a factor from 1 to 1000000, not '0.1'",
        ),
        ("ftrun -n 2 --slow 0-2:3 ./x", "ftrun: --slow 0-2:3: rank 2 does not exist, ranks are 0 to 1"),
    ] {
        assert_eq!(refused(line), expected, "{line}");
    }
}

#[test]
fn a_job_script_is_for_a_job() {
    let writes_files = |line: &str| match asked(line) {
        Ok(Asked::Sbatch { writes_files, .. }) => writes_files,
        other => panic!("{other:?}"),
    };
    assert!(writes_files("ftrun sbatch -N 3 -- -n 6 --spill files cg --poisson 8"));
    assert!(!writes_files("ftrun sbatch --nodes=3 --submit -- -np 6 cg --poisson 8"));
    for (line, complaint) in [
        ("ftrun sbatch -N 3", "there is no job: it stands behind '--'"),
        ("ftrun sbatch cg -- cg --poisson 8", "'cg' is no option of sbatch: the job stands behind '--'"),
        ("ftrun sbatch -- inspect files", "'inspect' is no program that Slurm could run as a job"),
        ("ftrun sbatch -- cg", "the following required arguments were not provided: <--matrix"),
        ("ftrun -n 3 sbatch -- cg --poisson 8", "'-n' stands before 'sbatch', which is no job"),
    ] {
        assert!(refused(line).starts_with(&format!("ftrun: {complaint}")), "{line}: {}", refused(line));
    }
}

#[test]
fn tips_lead_somewhere() {
    assert_eq!(tip("ftrun --dry-run ./x"), HINT);
    assert_eq!(tip("ftrun --rank 4 cg"), format!("Tip: did you mean '--ranks'? {HINT}"));
    for (wrong, right) in [
        ("cgg", "cg"),
        ("gc", "cg"),
        ("stauts", "status"),
        ("bnech", "bench"),
        ("sbtach", "sbatch"),
        ("jacoby", "jacobi"),
        ("isnpect", "inspect"),
        ("checkpont", "checkpoint"),
    ] {
        assert_eq!(tip(&format!("ftrun {wrong}")), format!("Tip: did you mean '{right}'? {HINT}"), "{wrong}");
    }
    for wrong in ["xq", "zz", "frobnicate", "c", "x"] {
        assert_eq!(tip(&format!("ftrun {wrong}")), HINT, "{wrong}");
    }
    let scheme =
        "Tip: 'rs' is a scheme, which --scheme takes: 'ftrun --scheme rs:2+2 PROGRAM'. See 'ftrun --help'.";
    assert_eq!(tip("ftrun rs:2+2"), scheme);
    for (line, command) in [
        ("ftrun cg --poisson 8 --dry-run", "ftrun cg"),
        ("ftrun cg --poisson 8 --every 0", "ftrun cg"),
        ("ftrun --heartbeat-timeout 1 cg --poisson 8", "ftrun cg"),
        ("ftrun --heartbeat-timeout 1 ./x", "ftrun"),
        ("ftrun kill 1 zero", "ftrun kill"),
        ("ftrun hosts 1 ad node", "ftrun hosts"),
        ("ftrun advise --seconds soon cg --poisson 8", "ftrun advise"),
        ("ftrun bench recovery --repeat 0", "ftrun bench"),
        ("ftrun picture", "ftrun picture"),
    ] {
        let tip = tip(line);
        assert!(tip.ends_with(&format!("See '{command} --help'.")), "{line}: {tip}");
    }
    assert_eq!(
        tip("ftrun --poisson 4 cg"),
        "Tip: '--poisson' is an option of 'cg' and stands behind that word; see 'ftrun cg --help'."
    );
}

#[test]
fn words_of_mpirun_are_known() {
    let (options, _) =
        cg("ftrun -np 4 -H a:2,b:2 -x A=1 -x B -wdir /tmp -timeout 2.5 cg --poisson 8 --tag-output");
    assert_eq!((options.ranks(), options.tag_output, options.export.len()), (4, true, 2));
    assert_eq!(options.wdir.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(options.timeout, Some(Duration::from_millis(2500)));
    let (options, _) = cg("ftrun -np 4 -stdin all cg --poisson 8");
    assert_eq!(options.standard_input(), StandardInput::All);
    // What belongs to a program stays as it is.
    let Program::Own { args, .. } = good("ftrun -np 2 ./mine -np 3 -wdir").program else {
        panic!("not bundled")
    };
    assert_eq!(args, ["-np", "3", "-wdir"]);
}

#[test]
fn help_and_version_are_no_complaints() {
    for (line, part) in [
        ("ftrun --help", "Bundled apps"),
        ("ftrun -h", "--heartbeat-timeout"),
        ("ftrun --version", "ftrun 0"),
        ("ftrun cg --help", "--poisson2d"),
        ("ftrun -n 4 cg --help", "--kill"),
        ("ftrun --help", "bench recovery    What"),
        ("ftrun bench --help", "recovery"),
        ("ftrun bench recovery --help", "--schemes"),
        ("ftrun bench collectives --help", "--rounds"),
    ] {
        let stop = asked(line).expect_err(line);
        assert!(stop.status == 0 && stop.text.contains(part), "{line}: {}", stop.text);
    }
}
