//! The reference page of the handbook: exit statuses, environment variables, and the fields of the report.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Run, built};
use crate::handbook::text;

const PAGE: &str = "docs/reference.md";

/// Rows of the tables after a heading of the page, each cut into its cells.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let page = text(PAGE);
    let section = page.split_once(&format!("\n## {heading}\n")).expect("the heading").1;
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()));
    cells.map(Iterator::collect).filter(|cells: &Vec<String>| !is_header(&cells[0])).collect()
}

fn is_header(cell: &str) -> bool {
    matches!(cell, "status" | "variable" | "field")
}

/// Names in backquotes.
fn names(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

#[test]
fn exit_statuses_of_the_page_are_those_of_its_examples() {
    let mut tried = BTreeSet::new();
    for cells in rows("Exit statuses") {
        let Some(command) = names(cells.get(2).map_or("", String::as_str)).next() else { continue };
        let arguments = command.strip_prefix("ftrun ").expect("a command of ftrun");
        let run = Run::program(Path::new("/bin/sh"), "-c").arg(format!("exec \"$0\" {arguments}"));
        let outcome = run.arg(built().join("ftrun")).finish();
        match cells[0].parse::<i32>() {
            Ok(status) => assert_eq!(outcome.status, status, "{outcome}"),
            Err(_) => assert!(![0, 1, 2, 3, 124].contains(&outcome.status), "{outcome}"),
        }
        tried.insert(cells[0].clone());
    }
    let due = ["0", "1", "124", "2", "3", "other"];
    assert_eq!(tried, due.map(str::to_owned).into(), "statuses with an example");
}

/// Rust sources of the crates that users run.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<PathBuf> = ["threads", "encoders", "comm", "comm/launch", "checkpoint", "ft-linalg"]
        .into_iter()
        .chain(["seismic", "tools", "apps"])
        .map(|crate_| root.join(crate_).join("src"))
        .collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.extend(path.extension().is_some_and(|kind| kind == "rs").then_some(path)),
            }
        }
    }
    files
}

#[test]
fn environment_variables_of_the_page_are_those_of_the_sources() {
    let is_own =
        |name: &String| (name.starts_with("FTRUN_") || name.starts_with("FT_")) && !name.contains("_TEST_");
    let listed: BTreeSet<String> =
        rows("Environment variables").iter().flat_map(|cells| names(&cells[0])).filter(is_own).collect();
    let mut used = BTreeSet::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        // Constants name all of them; those of tests do not count.
        let values = text.lines().filter_map(|line| line.split_once(": &str = \"")?.1.strip_suffix("\";"));
        used.extend(values.map(str::to_owned).filter(is_own));
    }
    assert!(used.len() > 15, "the sources were read: {used:?}");
    assert_eq!(listed, used);
}

/// Paths of all fields below a value, as the page writes them: `a.b`, and `a[].b` for lists of objects.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Value::Object(object) = value else { return };
    for (name, value) in object {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Array(all) if all.iter().any(Value::is_object) => {
                let path = format!("{path}[]");
                all.iter().for_each(|value| fields(value, &path, found));
                found.insert(path);
            }
            // The app decides on the fields of its result.
            value => {
                if path != "result" {
                    fields(value, &path, found);
                }
                found.insert(path);
            }
        }
    }
}

#[test]
fn fields_of_the_page_are_those_of_the_report() {
    let listed: BTreeSet<String> = rows("The report").iter().flat_map(|cells| names(&cells[0])).collect();
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().display();
    // Together these jobs have all sections of the report.
    let jobs = [
        "--kill 1@step=20 --levels neighbor@5,rs:2+2@10 cg --poisson 12".to_owned(),
        format!(
            "--scheme checksum:3+1 --kill 2@step=20 --spill {spill} --spill-every 1 --every 5 cg --poisson 12"
        ),
        "--lines log --kill 1@step=20 --every 10 pipeline --items 200".to_owned(),
    ];
    let mut found = BTreeSet::new();
    for job in jobs {
        let report = Run::ftrun(&format!("-n 4 --json {job}")).finish().expect(0).report();
        assert_eq!(report.0["version"], 1);
        fields(&report.0, "", &mut found);
    }
    // A list that is empty in one job has objects in another.
    let lists: Vec<String> =
        found.iter().filter_map(|path| path.strip_suffix("[]").map(str::to_owned)).collect();
    found.retain(|path| !lists.contains(path));
    // Only jobs on several hosts have these.
    found.extend(["hosts_back", "agents_back", "exposed_s"].map(str::to_owned));
    assert_eq!(listed, found);
}
