//! The architecture, as tables, and the check that the code keeps to it.
//!
//! Between crates the manifests are read, within a crate the paths of the source (`use` and others alike, with the
//! names that `use` brings in followed). Comments, strings and `#[cfg(test)]` items do not count. The reader of
//! sources is a simple one: it knows tokens, not types, so a path that a macro puts together escapes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

// ---------------------------------------------------------------------------------------------------- the tables

struct Crate {
    name: &'static str,
    dir: &'static str,
    /// Crates of this workspace that it may have in `[dependencies]`; `[dev-dependencies]` are free.
    may_use: &'static [&'static str],
}

/// Every crate of the workspace, bottom to top.
const CRATES: &[Crate] = &[
    Crate { name: "ft-encoders", dir: "encoders", may_use: &[] },
    Crate { name: "ft-comm", dir: "comm", may_use: &[] },
    Crate { name: "ft-checkpoint-derive", dir: "checkpoint/derive", may_use: &[] },
    Crate {
        name: "ft-checkpoint",
        dir: "checkpoint",
        may_use: &["ft-encoders", "ft-comm", "ft-checkpoint-derive"],
    },
    Crate { name: "ft-linalg", dir: "ft-linalg", may_use: &["ft-encoders", "ft-comm", "ft-checkpoint"] },
    Crate { name: "ft-apps", dir: "apps", may_use: ALL_LIBRARIES },
    Crate { name: "ft-benches", dir: "benches", may_use: ALL_LIBRARIES },
    Crate { name: "ft-tests", dir: "tests", may_use: ALL_LIBRARIES },
];

const ALL_LIBRARIES: &[&str] = &["ft-encoders", "ft-comm", "ft-checkpoint", "ft-linalg"];

/// The modules of `comm`, bottom to top. A module uses those below it and those of its own line.
const COMM_LAYERS: &[&[&str]] = &[
    &["rank", "error", "time", "plain"],
    &["wire"],
    &["proto", "collective", "fault"],
    &["transport"],
    &["driver", "service", "sim"],
    &["communicator", "world", "request"],
    &["launch"],
];

struct Absence {
    dir: &'static str,
    /// Top-level modules that it holds for; none means the whole crate.
    modules: &'static [&'static str],
    /// Paths that they do not use, nor anything inside them.
    forbidden: &'static [&'static str],
    why: &'static str,
}

/// What is absent, and where.
const ABSENCES: &[Absence] = &[
    Absence {
        dir: "comm",
        modules: &["proto", "collective", "wire", "fault"],
        forbidden: &[
            "crate::transport",
            "std::fs",
            "std::net",
            "std::process",
            "std::thread",
            "std::time::Instant",
            "std::time::SystemTime",
            "std::os::unix::net",
            "crossbeam",
            "crossbeam_channel",
            "rustix",
            "signal_hook",
            "socket2",
        ],
        why: "protocols, collectives, frames and faults are pure: no sockets, threads, clocks or files",
    },
    Absence {
        dir: "checkpoint",
        modules: &["protocol", "layout", "region", "store", "scheme"],
        forbidden: &[
            "ft_comm",
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "std::thread",
            "std::time::Instant",
            "std::time::SystemTime",
            "std::os::unix::net",
        ],
        why: "the core of a checkpoint is pure: no messages, no I/O, no clock, no thread",
    },
    Absence {
        dir: "encoders",
        modules: &[],
        forbidden: &["std::fs", "std::net", "std::process", "std::thread", "std::time", "std::os::unix::net"],
        why: "codes are functions over slices",
    },
];

struct Unknown {
    dir: &'static str,
    /// No identifier has this in it, in small or capital letters, tests included. Comments and strings may.
    word: &'static str,
    why: &'static str,
}

/// What a crate does not know.
const UNKNOWNS: &[Unknown] = &[Unknown {
    dir: "comm",
    word: "checkpoint",
    why: "comm knows nothing of checkpoints: it carries a stamp and an opaque value (comments may mention them)",
}];

// ------------------------------------------------------------------------------------- the check of this workspace

#[test]
fn crates_depend_downwards() {
    let mut breaches = check_members(&read(&root().join("Cargo.toml")));
    for krate in CRATES {
        let manifest = format!("{}/Cargo.toml", krate.dir);
        breaches.extend(check_manifest(krate, &manifest, &read(&root().join(&manifest))));
    }
    report(&breaches);
}

#[test]
fn modules_of_comm_depend_downwards() {
    report(&check_layers(COMM_LAYERS, &sources("comm")));
}

#[test]
fn what_must_be_absent_is_absent() {
    report(&ABSENCES.iter().flat_map(|rule| check_absence(rule, &sources(rule.dir))).collect::<Vec<_>>());
}

#[test]
fn no_crate_names_what_it_must_not_know() {
    report(&UNKNOWNS.iter().flat_map(|rule| check_unknown(rule, &sources(rule.dir))).collect::<Vec<_>>());
}

fn report(breaches: &[String]) {
    assert!(breaches.is_empty(), "{} breaches of the layers:\n{}", breaches.len(), breaches.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The sources of the library in `dir`, without modules that exist for tests only.
fn sources(dir: &str) -> Vec<Source> {
    let mut files = Vec::new();
    collect(&root().join(dir).join("src"), &mut Vec::new(), &mut |path, module| {
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        files.push(Source::new(&name, module, &read(path)));
    });
    assert!(!files.is_empty(), "no sources in {dir}/src");
    without_test_files(files)
}

fn collect(dir: &Path, module: &mut Vec<String>, visit: &mut impl FnMut(&Path, &[String])) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir).expect("a source directory").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            module.push(stem);
            collect(&path, module, visit);
            module.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_own_name = matches!(stem.as_str(), "lib" | "main" | "mod");
            let depth = module.len();
            module.extend((!is_own_name).then_some(stem));
            visit(&path, module);
            module.truncate(depth);
        }
    }
}

fn without_test_files(mut files: Vec<Source>) -> Vec<Source> {
    let hidden: Vec<Vec<String>> = files.iter().flat_map(|file| file.test_modules.clone()).collect();
    files.retain(|file| !hidden.iter().any(|module| file.module.starts_with(module)));
    files
}

// ---------------------------------------------------------------------------------------------- crates: manifests

fn check_members(workspace: &str) -> Vec<String> {
    let members = workspace.split_once("\nmembers").and_then(|(_, rest)| rest.split_once(']')).map(|(list, _)| list);
    let members = members.expect("a list of members").split('"').skip(1).step_by(2);
    members
        .filter(|member| CRATES.iter().all(|krate| krate.dir != *member))
        .map(|member| format!("Cargo.toml: '{member}' is a new crate: place it in CRATES of tests/tests/layers.rs"))
        .collect()
}

fn check_manifest(krate: &Crate, file: &str, manifest: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut section = String::new();
    for (number, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let used: Option<String> = if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').replace('"', "");
            // `[dependencies.NAME]`
            let name = section.rsplit_once("dependencies.").map(|(_, name)| name.to_owned());
            name.filter(|_| is_counted(&section))
        } else if is_counted(&section) {
            // `NAME.workspace = true`, `NAME = {..}`, `other = { package = "NAME" }`
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default().replace('"', "");
            let package = line.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            Some(package.map_or(name, str::to_owned))
        } else {
            None
        };
        let Some(used) = used else { continue };
        if CRATES.iter().any(|other| other.name == used) && !krate.may_use.contains(&used.as_str()) {
            breaches.push(format!(
                "{file}:{}: {} depends on {used}; it may depend on: {}",
                number + 1,
                krate.name,
                if krate.may_use.is_empty() { "no crate of ours".to_owned() } else { krate.may_use.join(", ") },
            ));
        }
    }
    breaches
}

/// Whether the dependencies of this section are part of the library (and not of its tests).
fn is_counted(section: &str) -> bool {
    section.contains("dependencies")
        && !section.contains("dev-dependencies")
        && !section.starts_with("workspace")
}

// --------------------------------------------------------------------------------------------- modules: the rules

fn check_layers(layers: &[&[&str]], files: &[Source]) -> Vec<String> {
    let level = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let root_exports = root_exports(files);
    let mut breaches = Vec::new();
    for file in files {
        let Some(module) = file.module.first() else {
            // The root of the crate is above all layers; modules that it holds inline need a place too.
            for inline in file.paths.iter().filter_map(|path| path.module.first()) {
                if level(inline).is_none() {
                    breaches.push(format!("{}: module {inline}: {NEW_MODULE}", file.name));
                }
            }
            continue;
        };
        let Some(own) = level(module) else {
            breaches.push(format!("{}: module {module}: {NEW_MODULE}", file.name));
            continue;
        };
        for path in &file.paths {
            let ["crate", used, ..] = path.segments() else { continue };
            if *used == "*" {
                breaches.push(format!("{}:{}: crate::* hides what is used; name it", file.name, path.line));
                continue;
            }
            // A name that the root exports stands for the module where it is from.
            let used = root_exports.get(*used).map_or(*used, String::as_str);
            if level(used).is_some_and(|used| used > own) {
                breaches.push(format!(
                    "{}:{}: {module} uses {used}, which is above it; the order is {}",
                    file.name,
                    path.line,
                    layers.iter().map(|layer| layer.join(", ")).collect::<Vec<_>>().join(" < "),
                ));
            }
        }
    }
    breaches.sort();
    breaches.dedup();
    breaches
}

const NEW_MODULE: &str = "new module: place it in the table COMM_LAYERS of tests/tests/layers.rs";

/// Names that `lib.rs` brings to the root, each with the top-level module that it is from.
fn root_exports(files: &[Source]) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for file in files.iter().filter(|file| file.module.is_empty()) {
        for (name, target) in &file.names {
            let segments: Vec<&str> = target.iter().map(String::as_str).collect();
            let from = match segments.as_slice() {
                ["crate" | "self", module, _, ..] | [module, _, ..] => *module,
                _ => continue,
            };
            exports.insert(name.clone(), from.to_owned());
        }
    }
    exports
}

fn check_absence(rule: &Absence, files: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files {
        for path in &file.paths {
            let module = file.module.first().or(path.module.first());
            let applies = rule.modules.is_empty() || module.is_some_and(|m| rule.modules.contains(&m.as_str()));
            let forbidden = rule.forbidden.iter().find(|forbidden| is_use_of(path.segments(), forbidden));
            if let (true, Some(forbidden)) = (applies, forbidden) {
                let used = path.segments.join("::");
                breaches.push(format!("{}:{}: uses {used}; no {forbidden} here: {}", file.name, path.line, rule.why));
            }
        }
    }
    breaches
}

/// `std::net::X` is a use of `std::net`, and so is `std::*`.
fn is_use_of(segments: &[&str], forbidden: &str) -> bool {
    let forbidden: Vec<&str> = forbidden.split("::").collect();
    match segments.split_last() {
        Some((&"*", parent)) if forbidden.starts_with(parent) => true,
        _ => segments.starts_with(&forbidden),
    }
}

fn check_unknown(rule: &Unknown, files: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files {
        for token in file.all_tokens.iter().filter(|token| token.text.to_lowercase().contains(rule.word)) {
            breaches.push(format!("{}:{}: identifier {}: {}", file.name, token.line, token.text, rule.why));
        }
    }
    breaches
}

// -------------------------------------------------------------------------------------------- a reader of sources

/// What the rules need to know of a file.
struct Source {
    name: String,
    /// Its module path: `["proto", "agree"]` for `src/proto/agree.rs`, empty for `lib.rs`.
    module: Vec<String>,
    /// Every path of one or more segments in it.
    paths: Vec<UsedPath>,
    /// What `use` calls things in this file, with their full paths.
    names: BTreeMap<String, Vec<String>>,
    /// `#[cfg(test)] mod x;`: modules that are files of their own and exist for tests only.
    test_modules: Vec<Vec<String>>,
    all_tokens: Vec<Token>,
}

struct UsedPath {
    line: usize,
    /// The inline modules of the file that it stands in.
    module: Vec<String>,
    /// `crate::..` for paths in this crate, else as written; `*` at the end for a glob.
    segments: Vec<&'static str>,
}

impl UsedPath {
    fn segments(&self) -> &[&str] {
        &self.segments
    }
}

#[derive(Clone)]
struct Token {
    line: usize,
    text: String,
}
