//! Tables of collective algorithms, the measurements that write them, and the check of collective calls.

use serde_json::Value;

use crate::common::{Run, example};
use crate::hosts::{LIKE_SSH, over};

#[test]
fn a_mismatch_that_is_checked_names_both_calls() {
    for (what, parts) in [
        ("call", ["rank 0 calls allreduce of 8 elements of 8 bytes", "rank 1 calls barrier"]),
        ("count", ["rank 0 calls allreduce of 8 elements", "rank 1 calls allreduce of 4 elements"]),
        (
            "root",
            [
                "bcast of 8 elements of 8 bytes with root 0",
                "rank 1 calls bcast of 8 elements of 8 bytes with root 1",
            ],
        ),
    ] {
        let outcome = Run::ftrun("-n 4 --check").arg(example("mismatch")).arg(what).finish().expect(1);
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part}: {outcome}");
        }
    }
}

#[test]
fn calls_that_agree_pass_the_check() {
    let checked = Run::ftrun("-n 4 --check --json collective --rounds 3 --elements 100").finish().expect(0);
    assert_eq!(checked.report().0["result"]["wrong"], 0, "{checked}");
}

#[test]
fn a_table_is_used_on_both_sides_of_the_app_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slow.table");
    std::fs::write(&file, "name: slow\nallreduce * * tree\nbcast * * linear # why not\n").unwrap();
    let before = Run::ftrun("-n 3 --json --collectives").arg(&file).arg("pi").finish().expect(0).report();
    let behind = Run::ftrun("-n 3 --json pi --collectives").arg(&file).finish().expect(0).report();
    let builtin = Run::ftrun("-n 3 --json pi").finish().expect(0).report();
    let name = |report: &Value| report["selection"].as_str().unwrap().to_owned();
    assert!(name(&before.0).starts_with("slow-"), "{}", before.0);
    assert_eq!(name(&before.0), name(&behind.0));
    assert!(name(&builtin.0).starts_with("builtin-"), "{}", builtin.0);
}

#[test]
fn a_table_of_two_levels_serves_on_several_hosts_and_on_one() {
    let operations = ["barrier", "bcast", "reduce", "allreduce", "allgather"];
    let table = operations.map(|operation| format!("{operation} * * two-level\n")).concat();
    for hosts in [
        "--hosts 127.0.0.2:5",
        "--hosts 127.0.0.2:3,127.0.0.3:2",
        "--map-by node --hosts 127.0.0.2:3,127.0.0.3:2",
    ] {
        let (folder, run) = over(LIKE_SSH, &format!("{hosts} --json --collectives"));
        let file = folder.path().join("table");
        std::fs::write(&file, &table).unwrap();
        let outcome = run.arg(&file).arg("collective").arg("--rounds").arg("20").finish().expect(0);
        assert_eq!(outcome.report().0["result"]["wrong"], 0, "{outcome}");
    }
}

#[test]
fn algorithms_of_two_levels_are_timed_where_there_are_levels() {
    for (hosts, due) in [("127.0.0.2:3", false), ("127.0.0.2:2,127.0.0.3:1", true)] {
        let (_folder, run) = over(
            LIKE_SSH,
            &format!("--hosts {hosts} --json collective --algorithms --sizes 8 --time 0.0001"),
        );
        let outcome = run.finish().expect(0);
        let timings = outcome.report().0["result"]["timings"].as_array().unwrap().clone();
        let of_two = timings.iter().filter(|timing| timing["algorithm"] == "two-level").count();
        assert_eq!(of_two, if due { 5 } else { 0 }, "{outcome}");
    }
}

#[test]
fn a_table_is_measured_on_several_hosts() {
    let (folder, run) = over(LIKE_SSH, "");
    drop(run);
    let table = folder.path().join("table");
    let options =
        "bench collectives --ranks 3 --time 0.0001 --rounds 1 --json --hosts 127.0.0.2:2,127.0.0.3:1";
    let run = Run::ftrun(options).arg("--launcher-exec").arg(folder.path().join("exec"));
    let outcome = run.arg("--output").arg(&table).limit(120).finish().expect(0);
    let results: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let of = |list: &str, key: &str| {
        let rows = results[list].as_array().unwrap().iter();
        rows.filter(|row| row[key] == "two-level").count()
    };
    // Five operations, one of which has no sizes; of three ranks the builtin table takes it for a barrier alone.
    assert_eq!((of("cases", "algorithm"), of("choices", "builtin")), (41, 1), "{outcome}");
    let text = std::fs::read_to_string(&table).unwrap();
    assert!(text.contains("--hosts 127.0.0.2:2,127.0.0.3:1"), "{text}");

    let outcome = Run::ftrun("bench collectives --hosts 127.0.0.2:none").finish().expect(2);
    assert!(outcome.stderr.contains("--hosts"), "{outcome}");
}

#[test]
fn a_bad_table_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.table");
    std::fs::write(&file, "\nallreduce ranks<=4 * fastest\n").unwrap();
    for (path, parts) in [
        (&file, ["bad.table: line 2", "no algorithm \"fastest\" for allreduce"]),
        (&folder.path().join("none"), ["cannot read", "No such file"]),
    ] {
        let outcome = Run::ftrun("-n 2 pi --collectives").arg(path).finish().expect(2);
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.lines().count()), ("", 1), "{outcome}");
        assert!(parts.iter().all(|part| outcome.stderr.contains(part)), "{outcome}");
    }
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn the_table_that_is_measured_is_one_that_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let [table, csv, html] = ["a.table", "a.csv", "a.html"].map(|name| folder.path().join(name));
    let run = Run::ftrun("bench collectives --ranks 2 --time 0.001 --rounds 1 --json --output").arg(&table);
    let outcome = run.arg("--csv").arg(&csv).arg("--html").arg(&html).limit(120).finish().expect(0);
    assert_eq!(outcome.stderr, "", "silent in a pipe");
    let results: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let list = |name: &str| results[name].as_array().unwrap().clone();
    // An operation has a choice at each size: ten with ten sizes, the barrier, and alltoallv.
    assert_eq!(list("choices").len(), 10 * 10 + 1 + 10);
    for case in list("cases") {
        let seconds = case["time"]["median"].as_f64().unwrap();
        assert!(seconds > 0.0 && seconds < 10.0, "{case}");
    }
    let rows = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), 1 + list("samples").len());
    assert!(rows.lines().any(|row| row.starts_with("0,2,allgather,1048576,recursive-doubling,")), "{rows}");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.matches("<svg").count() == 11 && !page.contains("NaN"), "{}", page.matches("<svg").count());

    let used = Run::ftrun("-n 4 --json collective --rounds 20 --elements 500 --collectives").arg(&table);
    let report = used.finish().expect(0).report();
    assert_eq!(report.0["result"]["wrong"], 0);
    let text = std::fs::read_to_string(&table).unwrap();
    let name = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap();
    assert!(report.0["selection"].as_str().unwrap().starts_with(&format!("{name}-")), "{}", report.0);
    // The identity is that of this very table: another line, another identity.
    let other = folder.path().join("b.table");
    std::fs::write(&other, text.replace("barrier", "#barrier")).unwrap();
    let run = Run::ftrun("-n 2 --json pi --collectives").arg(&other).finish().expect(0);
    assert_ne!(run.report().0["selection"], report.0["selection"]);
}
