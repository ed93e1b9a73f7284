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
    Crate { name: "ft-seismic", dir: "seismic", may_use: &[] },
    Crate { name: "ft-montecarlo", dir: "montecarlo", may_use: &[] },
    Crate { name: "ft-figures", dir: "figures", may_use: &[] },
    Crate { name: "ft-benches", dir: "benches", may_use: ALL_LIBRARIES },
    Crate {
        name: "ft-apps",
        dir: "apps",
        may_use: &[
            "ft-encoders",
            "ft-comm",
            "ft-checkpoint",
            "ft-linalg",
            "ft-seismic",
            "ft-montecarlo",
            "ft-figures",
            "ft-benches",
        ],
    },
    Crate { name: "ft-tests", dir: "tests", may_use: ALL_LIBRARIES },
    Crate { name: "ft-campaign", dir: "tests/campaign", may_use: &[] },
];

const ALL_LIBRARIES: &[&str] =
    &["ft-encoders", "ft-comm", "ft-checkpoint", "ft-linalg", "ft-seismic", "ft-montecarlo", "ft-figures"];

/// The modules of `comm`, bottom to top. A module uses those below it and those of its own line.
const COMM_LAYERS: &[&[&str]] = &[
    &["rank", "error", "main_error", "time", "plain", "layout", "group", "topology", "fault", "planted"],
    &["wire"],
    &["proto", "collective"],
    &["transport", "reduction", "binding", "inherited", "lifeline", "limits"],
    &["driver", "service"],
    &["core"],
    &["communicator", "world", "request"],
    &["sim", "launch"],
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
        modules: &["proto", "collective", "wire", "fault", "layout", "group", "topology"],
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
            "nix",
            "rustix",
            "signal_hook",
            "socket2",
        ],
        why: "protocols, collectives, frames, faults, layouts, groups and topologies are pure: no sockets, threads, clocks or files",
    },
    Absence {
        dir: "checkpoint",
        modules: &["protocol", "layout", "region", "store", "scheme", "bag", "pace", "candidates"],
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
    Absence {
        dir: "montecarlo",
        modules: &[],
        forbidden: &["std::fs", "std::net", "std::process", "std::thread", "std::time", "std::os::unix::net"],
        why: "random numbers are functions of a seed and a counter",
    },
    Absence {
        dir: "seismic",
        modules: &[],
        forbidden: &["std::net", "std::process", "std::thread", "std::time", "std::os::unix::net"],
        why: "numerics and formats: no clock, no process, no thread",
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
    why: "comm knows nothing of checkpoints: it carries an opaque value (comments may mention them)",
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

/// The lint denies it everywhere else, so a file that has it must say so.
#[test]
fn unsafe_code_is_where_a_measurement_demands_it() {
    let mut found = Vec::new();
    for krate in CRATES {
        collect(&root().join(krate.dir).join("src"), &mut Vec::new(), &mut |path, _| {
            let text = read(path);
            if text.contains("unsafe_code") && !text.contains("forbid(unsafe_code)") {
                found.push(path.strip_prefix(root()).unwrap_or(path).to_owned());
            }
        });
    }
    assert_eq!(
        found,
        ["encoders/src/kernel/simd.rs", "comm/src/inherited.rs", "comm/src/lifeline.rs"].map(Path::new)
    );
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
    let members =
        workspace.split_once("\nmembers").and_then(|(_, rest)| rest.split_once(']')).map(|(list, _)| list);
    let members = members.expect("a list of members").split('"').skip(1).step_by(2);
    members
        .filter(|member| CRATES.iter().all(|krate| krate.dir != *member))
        .map(|member| {
            format!("Cargo.toml: '{member}' is a new crate: place it in CRATES of tests/tests/layers.rs")
        })
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
                if krate.may_use.is_empty() {
                    "no crate of ours".to_owned()
                } else {
                    krate.may_use.join(", ")
                },
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
            let ["crate", used, ..] = path.segments()[..] else { continue };
            if used == "*" {
                breaches.push(format!("{}:{}: crate::* hides what is used; name it", file.name, path.line));
                continue;
            }
            // A name that the root exports stands for the module where it is from.
            let exported = root_exports.get(used).filter(|_| level(used).is_none());
            let used = exported.map_or(used, String::as_str);
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
            let applies =
                rule.modules.is_empty() || module.is_some_and(|m| rule.modules.contains(&m.as_str()));
            let forbidden = rule.forbidden.iter().find(|forbidden| is_use_of(&path.segments(), forbidden));
            if let (true, Some(forbidden)) = (applies, forbidden) {
                let used = path.segments.join("::");
                breaches.push(format!(
                    "{}:{}: uses {used}; no {forbidden} here: {}",
                    file.name, path.line, rule.why
                ));
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
    segments: Vec<String>,
}

impl UsedPath {
    fn segments(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).collect()
    }
}

#[derive(Clone)]
struct Token {
    line: usize,
    text: String,
}

impl Source {
    fn new(name: &str, module: &[String], text: &str) -> Self {
        let all_tokens = lex(text);
        let (tokens, test_modules) = without_tests(&all_tokens);
        let mentions = mentions(&tokens);
        let mut names = BTreeMap::new();
        for mention in mentions.iter().filter(|mention| mention.is_use) {
            let target = absolute(&mention.segments, module, &mention.module);
            let name = mention.alias.as_ref().or(target.last());
            if let Some(name) = name.filter(|name| *name != "*" && *name != &target[0]) {
                names.insert(name.clone(), target.clone());
            }
        }
        let paths = mentions.iter().map(|mention| {
            let mut segments = absolute(&mention.segments, module, &mention.module);
            // A name may stand for a name that stands for a path; four rounds end any circle.
            for _ in 0..4 {
                let Some(target) = names.get(&segments[0]).filter(|_| segments[0] != "crate") else { break };
                segments.splice(..1, target.iter().cloned());
            }
            UsedPath { line: mention.line, module: mention.module.clone(), segments }
        });
        let test_modules = test_modules.into_iter().map(|test| [module, &[test]].concat()).collect();
        Self {
            name: name.to_owned(),
            module: module.to_vec(),
            paths: paths.collect(),
            names,
            test_modules,
            all_tokens,
        }
    }
}

/// Turns `self::` and `super::` into `crate::`.
fn absolute(segments: &[String], file: &[String], inline: &[String]) -> Vec<String> {
    let mut at = [file, inline].concat();
    let mut rest = segments;
    if !matches!(rest[0].as_str(), "self" | "super") {
        return rest.to_vec();
    }
    while let Some((first, tail)) =
        rest.split_first().filter(|(first, _)| matches!(first.as_str(), "self" | "super"))
    {
        if first == "super" {
            at.pop();
        }
        rest = tail;
    }
    [&["crate".to_owned()], at.as_slice(), rest].concat()
}

/// A path as written, where it stands, and what a `use` calls it.
struct Mention {
    line: usize,
    module: Vec<String>,
    segments: Vec<String>,
    alias: Option<String>,
    is_use: bool,
}

/// All paths of two or more segments, and all that `use` names, with its trees taken apart.
fn mentions(tokens: &[Token]) -> Vec<Mention> {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut mentions = Vec::new();
    let mut open: Vec<Option<String>> = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let (is_use, start) = match text(i) {
            "use" if text(i + 1) == "::" => (true, i + 2),
            "use" => (true, i + 1),
            "{" => {
                let is_module = i >= 2 && text(i - 2) == "mod";
                open.push(is_module.then(|| text(i - 1).to_owned()));
                i += 1;
                continue;
            }
            "}" => {
                open.pop();
                i += 1;
                continue;
            }
            first if is_name(first) => (false, i),
            _ => {
                i += 1;
                continue;
            }
        };
        let mut found = Vec::new();
        i = read_path(tokens, start, &[], &mut found).max(i + 1);
        let module: Vec<String> = open.iter().flatten().cloned().collect();
        for (line, segments, alias) in found {
            if is_use || segments.len() > 1 {
                mentions.push(Mention { line, module: module.clone(), segments, alias, is_use });
            }
        }
    }
    mentions
}

type Found = (usize, Vec<String>, Option<String>);

/// Reads the path or `use` tree at `i` and returns where it ends.
fn read_path(tokens: &[Token], mut i: usize, prefix: &[String], found: &mut Vec<Found>) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let mut segments = prefix.to_vec();
    loop {
        match text(i) {
            "{" => {
                i += 1;
                while !matches!(text(i), "}" | "") {
                    i = read_path(tokens, i, &segments, found);
                }
                return i + 1;
            }
            "*" if !segments.is_empty() => {
                segments.push("*".to_owned());
                found.push((tokens[i].line, segments, None));
                return i + 1;
            }
            name if is_name(name) => {
                // `std::{self}` is `std`.
                if name != "self" || segments.is_empty() {
                    segments.push(name.to_owned());
                }
                let goes_on =
                    text(i + 1) == "::" && (is_name(text(i + 2)) || matches!(text(i + 2), "{" | "*"));
                if goes_on {
                    i += 2;
                    continue;
                }
                let alias = (text(i + 1) == "as").then(|| text(i + 2).to_owned());
                let end = if alias.is_some() { i + 3 } else { i + 1 };
                found.push((tokens[i].line, segments, alias));
                return end;
            }
            _ => return i + 1,
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_alphabetic())
}

/// Takes out items under `#[cfg(test)]`; returns the names of those that are modules in files of their own too.
fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    let text = |i: usize| tokens.get(i).map_or("", |token| token.text.as_str());
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut i = 0;
    while i < tokens.len() {
        let inner = usize::from(text(i) == "#" && text(i + 1) == "!");
        if text(i) != "#" || text(i + 1 + inner) != "[" {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let mut end = end_of_group(tokens, i + 1 + inner);
        let attribute = &tokens[i..end];
        let has = |word: &str| attribute.iter().any(|token| token.text == word);
        if !(has("cfg") && has("test")) || has("not") || has("any") {
            kept.extend_from_slice(attribute);
            i = end;
            continue;
        }
        if inner == 1 {
            return (Vec::new(), modules);
        }
        while text(end) == "#" {
            end = end_of_group(tokens, end + 1);
        }
        let item = (end..end + 6).find(|&at| text(at) == "mod");
        if let Some(at) = item.filter(|&at| text(at + 2) == ";") {
            modules.push(text(at + 1).to_owned());
        }
        i = end_of_item(tokens, end);
    }
    (kept, modules)
}

/// The end of the item, field, arm or statement at `i`: after its `;`, its `,` or its block.
fn end_of_item(tokens: &[Token], mut i: usize) -> usize {
    // In these a comma can stand before the end, between generic parameters.
    const ITEMS: &[&str] =
        &["pub", "fn", "impl", "struct", "enum", "trait", "type", "unsafe", "const", "async"];
    let is_item = tokens.get(i).is_some_and(|token| ITEMS.contains(&token.text.as_str()));
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            ";" => return i + 1,
            "," if !is_item => return i + 1,
            "{" => return end_of_group(tokens, i),
            "(" | "[" => i = end_of_group(tokens, i),
            ")" | "]" | "}" => return i,
            _ => i += 1,
        }
    }
    i
}

/// `i` is at an opening bracket; returns the place after its partner.
fn end_of_group(tokens: &[Token], mut i: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = tokens.get(i) {
        i += 1;
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    i
}

/// Names, `::` and single marks, each with its line; no comments, literals or lifetimes.
fn lex(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let mut tokens = Vec::new();
    let (mut i, mut line, mut counted) = (0, 1, 0);
    while i < chars.len() {
        line += chars[counted..i].iter().filter(|c| **c == '\n').count();
        counted = i;
        match at(i) {
            '/' if at(i + 1) == '/' => i = find(&chars, i, |i| at(i) == '\n'),
            '/' if at(i + 1) == '*' => i = end_of_block_comment(&chars, i),
            '"' => i = end_of_string(&chars, i),
            '\'' if at(i + 1) == '\\' => i = find(&chars, i + 3, |i| at(i) == '\'') + 1,
            '\'' if at(i + 2) == '\'' => i += 3,
            '\'' => i = find(&chars, i + 1, |i| !is_word(at(i))),
            c if is_word(c) => {
                let end = find(&chars, i, |i| !is_word(at(i)));
                let word: String = chars[i..end].iter().collect();
                let quote = find(&chars, end, |i| at(i) != '#');
                match (word.as_str(), at(quote)) {
                    ("r" | "br" | "cr", '"') => i = end_of_raw_string(&chars, quote, quote - end),
                    // `r#type` is the name `type`.
                    ("r", _) if quote == end + 1 => i = quote,
                    // The quote of `b"..."` and `b'.'` is next.
                    ("b" | "c", '"' | '\'') if quote == end => i = end,
                    _ => {
                        if !c.is_numeric() {
                            tokens.push(Token { line, text: word });
                        }
                        i = end;
                    }
                }
            }
            ':' if at(i + 1) == ':' => {
                tokens.push(Token { line, text: "::".to_owned() });
                i += 2;
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token { line, text: c.to_string() });
                }
                i += 1;
            }
        }
    }
    tokens
}

fn find(chars: &[char], from: usize, is_it: impl Fn(usize) -> bool) -> usize {
    (from..chars.len()).find(|&i| is_it(i)).unwrap_or(chars.len())
}

fn end_of_string(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i.min(chars.len()) + 1
}

fn end_of_raw_string(chars: &[char], quote: usize, hashes: usize) -> usize {
    let closes = |i: usize| chars[i] == '"' && (1..=hashes).all(|k| chars.get(i + k) == Some(&'#'));
    find(chars, quote + 1, closes) + 1 + hashes
}

fn end_of_block_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut i = start;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

// ----------------------------------------------------------------------------------- the checker itself, on fakes

mod checker {
    use super::*;

    const LAYERS: &[&[&str]] = &[&["rank", "time"], &["proto"], &["transport"], &["world"]];

    fn fake(name: &str, text: &str) -> Source {
        let module: Vec<String> = name
            .trim_end_matches(".rs")
            .split('/')
            .filter(|part| *part != "lib" && *part != "mod")
            .map(str::to_owned)
            .collect();
        Source::new(name, &module, text)
    }

    fn paths(text: &str) -> Vec<String> {
        fake("proto/agree.rs", text).paths.iter().map(|path| path.segments.join("::")).collect()
    }

    fn layer_breaches(files: &[(&str, &str)]) -> Vec<String> {
        check_layers(LAYERS, &files.iter().map(|(name, text)| fake(name, text)).collect::<Vec<_>>())
    }

    const UP: &str =
        "proto uses transport, which is above it; the order is rank, time < proto < transport < world";

    #[test]
    fn an_upward_path_is_found_however_it_is_written() {
        for text in [
            "use crate::transport;",
            "use crate::transport::Tcp;",
            "use crate::{rank::Rank, transport::{Tcp, Unix}};",
            "use super::transport::Tcp;",
            "pub(crate) use crate::transport::Tcp as Link;",
            "fn f(tcp: &mut crate::transport::Tcp) {}",
            "fn f() { super::transport::start::<u8>() }",
            "const N: usize = 0..crate::transport::N;",
            "mod inner { use super::super::transport::Tcp; }",
            "use crate as me; fn f() { me::transport::start() }",
            "macro_rules! m { () => { $crate::transport::start() } }",
            "fn f<'a>(c: char) -> bool { c == '\'' || c == '\"' || crate::transport::is(c) }",
            "const S: &str = r#\"\"\"#; type T = r#crate::transport::Tcp;",
            "#[cfg(not(test))] use crate::transport;",
            "#[cfg(test)] mod tests { } use crate::transport;",
            "#[cfg(test)] fn f<A, B>() {} use crate::transport;",
            "struct S { #[cfg(test)] a: u8, b: crate::transport::Tcp }",
            "use crate::Tcp;",
        ] {
            let lib = ("lib.rs", "mod transport; pub use transport::Tcp;");
            let breaches = layer_breaches(&[lib, ("proto.rs", text)]);
            assert_eq!(breaches, [format!("proto.rs:1: {UP}")], "{text}");
        }
    }

    #[test]
    fn what_is_below_or_no_code_is_no_breach() {
        for text in [
            "use crate::rank::Rank;",
            "use crate::proto::agree;",
            "use self::transport::Inner; mod transport {}",
            "use other::transport::Tcp;",
            "// use crate::transport;",
            "/* /* */ use crate::transport; */",
            "const S: &str = \"use crate::transport\";",
            "const S: &str = r##\"\"# use crate::transport\"##;",
            "#[cfg(test)] use crate::transport;",
            "#[cfg(test)] #[path = \"x.rs\"] mod tests { use crate::transport; }",
            "#[cfg(all(test, unix))] fn f<A, B>(a: A) { crate::transport::start() }",
            "#![cfg(test)] use crate::transport;",
        ] {
            assert_eq!(layer_breaches(&[("proto.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_breach_names_its_line() {
        let text =
            "//! One\n/* two\nthree */\nconst S: &str = \"four\n five\";\nuse crate::{\n    transport,\n};";
        assert_eq!(layer_breaches(&[("proto/agree.rs", text)]), [format!("proto/agree.rs:7: {UP}")]);
    }

    #[test]
    fn a_module_without_a_place_is_found() {
        let new = |file: &str, module: &str| format!("{file}: module {module}: {NEW_MODULE}");
        assert_eq!(layer_breaches(&[("gossip/mod.rs", "")]), [new("gossip/mod.rs", "gossip")]);
        let lib = "mod gossip { use super::rank::Rank; }";
        assert_eq!(layer_breaches(&[("lib.rs", lib)]), [new("lib.rs", "gossip")]);
    }

    #[test]
    fn a_glob_of_the_root_is_found() {
        assert_eq!(layer_breaches(&[("proto.rs", "use super::*;")]).len(), 1);
        assert_eq!(layer_breaches(&[("proto/agree.rs", "use super::*;")]).len(), 0);
    }

    #[test]
    fn modules_in_files_for_tests_are_left_out() {
        let files = vec![
            fake("proto.rs", "#[cfg(test)]\npub(crate) mod tests;"),
            fake("proto/tests.rs", "use crate::world::World;"),
            fake("proto/tests/more.rs", "use crate::world::World;"),
        ];
        assert_eq!(without_test_files(files).len(), 1);
    }

    #[test]
    fn use_trees_are_taken_apart_and_names_followed() {
        assert_eq!(
            paths(
                "use std::{self, time::{self, Duration as D}, net::*}; fn f() { time::Instant::now(); D::ZERO }"
            ),
            [
                "std",
                "std::time",
                "std::time::Duration",
                "std::net::*",
                "std::time::Instant::now",
                "std::time::Duration::ZERO"
            ]
        );
        assert_eq!(
            paths("use super::leader; fn f() { self::g(); x.y::<u8>() }"),
            ["crate::proto::leader", "crate::proto::agree::g"]
        );
    }

    #[test]
    fn what_must_be_absent_is_found() {
        let rule = Absence {
            dir: "",
            modules: &["proto"],
            forbidden: &["std::net", "std::time::Instant", "socket2"],
            why: "pure",
        };
        let breaches = |name: &str, text: &str| check_absence(&rule, &[fake(name, text)]);
        for text in [
            "use std::net;",
            "use ::std::net::TcpStream;",
            "use std::{time::Instant};",
            "use std::time; fn f() { time::Instant::now() }",
            "use std as s; fn f(_: s::net::TcpStream) {}",
            "use std::time::*;",
            "fn f() { socket2::Socket::new() }",
        ] {
            assert_eq!(breaches("proto/agree.rs", text).len(), 1, "{text}");
            assert_eq!(breaches("transport.rs", text).len(), 0, "{text}");
        }
        for text in ["use std::time::Duration;", "use std::fmt;", "fn f() { my::std::net::x() }"] {
            assert_eq!(breaches("proto.rs", text).len(), 0, "{text}");
        }
        assert_eq!(
            breaches("proto.rs", "\nuse std::net::IpAddr;"),
            ["proto.rs:2: uses std::net::IpAddr; no std::net here: pure"]
        );
    }

    #[test]
    fn a_word_that_must_not_be_known_is_found() {
        let rule = Unknown { dir: "", word: "checkpoint", why: "no" };
        let breaches = |text: &str| check_unknown(&rule, &[fake("proto.rs", text)]);
        assert_eq!(breaches("\nfn on_Checkpoint() {}"), ["proto.rs:2: identifier on_Checkpoint: no"]);
        assert_eq!(breaches("#[cfg(test)] mod tests { struct Checkpoint; }").len(), 1);
        assert_eq!(breaches("/// A checkpoint.\nconst NAME: &str = \"checkpoint\";").len(), 0);
    }

    #[test]
    fn a_dependency_in_the_wrong_direction_is_found() {
        let comm = Crate { name: "ft-comm", dir: "comm", may_use: &["ft-encoders"] };
        let breaches = |manifest: &str| check_manifest(&comm, "comm/Cargo.toml", manifest);
        let expected = "ft-comm depends on ft-checkpoint; it may depend on: ft-encoders";
        for (line, manifest) in [
            (2, "[dependencies]\nft-checkpoint.workspace = true"),
            (3, "[dependencies]\nft-encoders = { workspace = true }\n\"ft-checkpoint\" = \"1\""),
            (2, "[target.'cfg(unix)'.dependencies]\nother = { package = \"ft-checkpoint\", path = \"..\" }"),
            (1, "[dependencies.ft-checkpoint]\nworkspace = true"),
            (2, "[build-dependencies]\nft-checkpoint.workspace = true"),
        ] {
            assert_eq!(breaches(manifest), [format!("comm/Cargo.toml:{line}: {expected}")], "{manifest}");
        }
        for manifest in [
            "[dev-dependencies]\nft-checkpoint.workspace = true",
            "[dependencies]\nft-encoders.workspace = true\n# ft-checkpoint.workspace = true",
            "[dependencies]\nserde.workspace = true\n[package]\nft-checkpoint = 1",
        ] {
            assert_eq!(breaches(manifest), [""; 0], "{manifest}");
        }
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(
            check_members("[workspace]\nmembers = [\"comm\", \"gossip\"]\nexclude = [\"x\"]").len(),
            1
        );
    }
}
