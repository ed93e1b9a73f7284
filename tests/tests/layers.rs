//! The borders that no compiler holds: which crate may use which, which module of a crate is above which, and what is absent where.
//!
//! Sources are read by `syn`, from `lib.rs` through every `mod` that is not for tests. What a macro makes of its tokens escapes it
//! unless these are expressions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, ImplItemFn, Item, ItemMod, ItemUse, Macro, Token, UseTree};

/// Every crate of the workspace, bottom to top, with those of ours that are in its `[dependencies]`; `[dev-dependencies]` are free.
const CRATES: &[(&str, &[&str])] = &[
    ("ft-encoders", &[]),
    ("ft-proto", &[]),
    ("ft-comm", &["ft-proto"]),
    ("ft-launch", &["ft-proto", "ft-comm"]),
    ("ft-sim", &["ft-proto", "ft-comm"]),
    ("ft-checkpoint-derive", &[]),
    ("ft-checkpoint", &["ft-encoders", "ft-proto", "ft-comm", "ft-checkpoint-derive"]),
    ("ft-linalg", &["ft-comm", "ft-checkpoint"]),
    ("ft-seismic", &[]),
    ("ft-montecarlo", &[]),
    ("ft-figures", &[]),
    ("ft-tools", &["ft-comm", "ft-checkpoint", "ft-figures"]),
    (
        "ft-benches",
        &["ft-tools", "ft-encoders", "ft-comm", "ft-checkpoint", "ft-seismic", "ft-montecarlo", "ft-figures"],
    ),
    (
        "ft-apps",
        &[
            "ft-proto",
            "ft-comm",
            "ft-launch",
            "ft-checkpoint",
            "ft-linalg",
            "ft-seismic",
            "ft-montecarlo",
            "ft-figures",
            "ft-tools",
        ],
    ),
    ("ft-tests", &[]),
    ("ft-campaign", &[]),
];

/// Modules of a crate, bottom to top: one uses those below it and those of its own line.
const LAYERS: &[(&str, &[&[&str]])] = &[
    (
        "comm/proto",
        &[
            &[
                "rank", "error", "time", "plain", "layout", "group", "topology", "fault", "planted",
                "settings", "waits",
            ],
            &["wire"],
            &["collective", "detector", "matching", "waits", "watch"],
            &["endpoint", "member", "arbiter", "reduction"],
        ],
    ),
    (
        "comm",
        &[
            &["time", "main_error"],
            &["transport", "binding", "inherited", "lifeline", "limits"],
            &["driver", "service"],
            &["core"],
            &["communicator", "world", "request"],
        ],
    ),
    (
        "apps",
        &[
            &["number", "say", "settings", "size", "text_file", "value", "words"],
            &["options", "progress", "timeline"],
            &["app", "collective_call", "rank"],
            APPS,
            &["bundled", "advise", "bench", "picture"],
            &["invocation", "report"],
            &["job"],
            &["cli"],
        ],
    ),
];

/// The bundled apps, a module each. They know nothing of each other.
const APPS: &[&str] =
    &["cg", "collective", "collective_times", "ep", "heat", "load", "pi", "ring", "seismic", "simulator"];

/// Whoever uses these meets the world: the clock, other threads and processes, networks.
const WORLD: &[&str] = &[
    "std::net",
    "std::os::unix::net",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];

/// Where nothing of [`WORLD`] is used, nor of what else is named: in all modules of a crate, or in some.
const PURE: &[(&str, &[&str], &[&str])] = &[
    (
        "comm/proto",
        &[],
        &["std::fs", "std::io", "crossbeam_channel", "libc", "nix", "rustix", "signal_hook", "socket2"],
    ),
    ("encoders", &[], &["std::fs", "std::io"]),
    ("montecarlo", &[], &["std::fs", "std::io"]),
    ("seismic", &[], &[]),
    (
        "checkpoint",
        &["protocol", "layout", "region", "store", "scheme", "bag", "pace", "candidates"],
        &["std::fs", "std::io", "ft_comm"],
    ),
];

/// The crates that carry messages know nothing of checkpoints: they carry an opaque value.
const UNAWARE: [&str; 4] = ["comm/proto", "comm", "comm/launch", "comm/sim"];

/// The lint denies `unsafe` everywhere else.
const UNSAFE: [&str; 3] = ["comm/src/inherited.rs", "comm/src/lifeline.rs", "encoders/src/kernel/simd.rs"];

#[test]
fn crates_depend_downwards() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let row = CRATES.iter().find(|row| row.0 == name);
        let (_, may_use) = row.unwrap_or_else(|| panic!("{name} is new: give it a row in CRATES"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let counts = dependency["kind"] != "dev" && CRATES.iter().any(|row| row.0 == used);
            assert!(!counts || may_use.contains(&used), "{name} depends on {used}");
        }
    }
}

#[test]
fn modules_depend_downwards() {
    for (dir, layers) in LAYERS {
        assert_eq!(too_high(layers, &read_crate(dir)), [""; 0], "in {dir}");
    }
}

#[test]
fn bundled_apps_do_not_know_each_other() {
    for module in read_crate("apps") {
        let own = module.path.first().map_or("", String::as_str);
        let others: Vec<&str> = APPS.iter().copied().filter(|app| *app != own).collect();
        let uses =
            |path: &&Vec<String>| matches!(words(path)[..], ["crate", used, ..] if others.contains(&used));
        let found = module.uses.iter().find(uses);
        assert!(!APPS.contains(&own) || found.is_none(), "{own} uses {found:?}");
    }
}

#[test]
fn what_is_pure_does_not_meet_the_world() {
    for (dir, modules, more) in PURE {
        let forbidden = [WORLD, more].concat();
        assert_eq!(uses_of(&forbidden, modules, &read_crate(dir)), [""; 0], "in {dir}");
    }
}

#[test]
fn what_carries_messages_knows_nothing_of_checkpoints() {
    for dir in UNAWARE {
        for module in read_crate(dir) {
            let word = module.words.iter().find(|word| word.to_lowercase().contains("checkpoint"));
            assert_eq!(word, None, "in {dir}, module {}", module.path.join("::"));
        }
    }
}

#[test]
fn unsafe_code_is_where_a_measurement_demands_it() {
    let mut files = Vec::new();
    for package in packages() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        walk(&manifest.with_file_name("src"), &mut files);
    }
    let may = |file: &&PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        text.contains("unsafe_code") && !text.contains("forbid(unsafe_code)")
    };
    let mut found: Vec<&PathBuf> = files.iter().filter(may).collect();
    found.sort();
    assert_eq!(found, UNSAFE.map(|file| root().join(file)).iter().collect::<Vec<_>>());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// What cargo says of the crates of this workspace.
fn packages() -> Vec<serde_json::Value> {
    let mut cargo = Command::new(env!("CARGO"));
    let cargo = cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(root());
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// All files in a folder and below it.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

// ------------------------------------------------------------------------------------------------------ the rules

/// Uses of modules that are above those which use them.
fn too_high(layers: &[&[&str]], modules: &[Module]) -> Vec<String> {
    let level = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut found = Vec::new();
    for module in modules {
        let Some(top) = module.path.first() else { continue };
        let own = level(top).unwrap_or_else(|| panic!("module {top} is new: give it a place in LAYERS"));
        for path in &module.uses {
            let ["crate", used, ..] = words(path)[..] else { continue };
            // What the root shows of its modules stands for these.
            let shown = modules[0].names.get(used).filter(|_| level(used).is_none());
            let used =
                shown.and_then(|path| path.iter().find(|name| *name != "crate")).map_or(used, String::as_str);
            if level(used).is_some_and(|used| used > own) {
                found.push(format!("{} uses {}", module.path.join("::"), path.join("::")));
            }
        }
    }
    found
}

/// Uses of what is forbidden in these modules of a crate, or in all if none are named. `std::*` is a use of all that is in `std`.
fn uses_of(forbidden: &[&str], places: &[&str], modules: &[Module]) -> Vec<String> {
    let is_use = |path: &[String], forbidden: &str| {
        let (path, forbidden) = (words(path), forbidden.split("::").collect::<Vec<_>>());
        match path.split_last() {
            Some((&"*", parent)) => forbidden.starts_with(parent) || parent.starts_with(&forbidden),
            _ => path.starts_with(&forbidden),
        }
    };
    let applies = |module: &&Module| {
        places.is_empty() || module.path.first().is_some_and(|top| places.contains(&top.as_str()))
    };
    let mut found = Vec::new();
    for module in modules.iter().filter(applies) {
        for path in
            module.uses.iter().filter(|path| forbidden.iter().any(|forbidden| is_use(path, forbidden)))
        {
            found.push(format!("{} uses {}", module.path.join("::"), path.join("::")));
        }
    }
    found
}

fn words(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

// ----------------------------------------------------------------------------------------------------- the reader

/// What the rules need to know of a module.
#[derive(Default)]
struct Module {
    /// Empty for the root of the crate.
    path: Vec<String>,
    /// Every path in it, from `crate` on where it lies in this crate.
    uses: Vec<Vec<String>>,
    /// What `use` calls things here.
    names: BTreeMap<String, Vec<String>>,
    /// Every identifier.
    words: Vec<String>,
}

/// The modules of a crate, its root first, without those for tests.
fn read_crate(dir: &str) -> Vec<Module> {
    let mut modules = Vec::new();
    let roots = ["lib.rs", "main.rs"].map(|file| root().join(dir).join("src").join(file));
    let root = roots.iter().find(|file| file.is_file()).expect("a crate has a root");
    read_module(root, &[], &mut modules);
    modules
}

fn read_module(file: &Path, path: &[String], modules: &mut Vec<Module>) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let stem = file.file_stem().unwrap();
    let folder = if stem == "lib" || stem == "main" || stem == "mod" {
        file.parent().unwrap().to_owned()
    } else {
        file.with_extension("")
    };
    for name in read_text(&text, path, modules) {
        let files = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
        let file =
            files.iter().find(|file| file.is_file()).unwrap_or_else(|| panic!("no file of module {name}"));
        read_module(file, &[path, &[name]].concat(), modules);
    }
}

/// Adds the module of this text to `modules`; the names of those inside it that have files of their own.
fn read_text(text: &str, path: &[String], modules: &mut Vec<Module>) -> Vec<String> {
    let mut reader =
        Reader { module: Module { path: path.to_owned(), ..Module::default() }, files: Vec::new() };
    reader.visit_file(&syn::parse_file(text).unwrap());
    let Reader { mut module, files } = reader;
    for path in &mut module.uses {
        // A name may stand for a name that stands for a path; a few rounds end any circle.
        for _ in 0..4 {
            let Some(whole) = module.names.get(&path[0]).filter(|whole| whole[0] != path[0]) else { break };
            path.splice(..1, whole.iter().cloned());
        }
    }
    modules.push(module);
    files
}

struct Reader {
    module: Module,
    files: Vec<String>,
}

impl Reader {
    /// A path as it is written, from `crate` on if it begins here or above.
    fn whole(&self, path: &[String]) -> Vec<String> {
        let ups = path.iter().take_while(|word| *word == "super").count();
        let skipped = if ups == 0 { usize::from(path[0] == "self") } else { ups };
        if skipped == 0 {
            return path.to_owned();
        }
        let depth = self.module.path.len().saturating_sub(ups);
        [&["crate".to_owned()], &self.module.path[..depth], &path[skipped..]].concat()
    }

    fn read_use(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &Ident| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => return self.read_use(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.read_use(tree, before)),
            UseTree::Glob(_) => ("*".to_owned(), [before, &["*".to_owned()]].concat()),
            UseTree::Rename(rename) => (rename.rename.to_string(), with(&rename.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().unwrap().clone(), before.to_owned())
            }
            UseTree::Name(name) => (name.ident.to_string(), with(&name.ident)),
        };
        let whole = self.whole(&path);
        self.module.names.insert(name, whole.clone());
        self.module.uses.push(whole);
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "test")
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Const(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        match item.content {
            Some(_) => visit::visit_item_mod(self, item),
            None => self.files.push(item.ident.to_string()),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.read_use(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let path_words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.module.uses.push(self.whole(&path_words));
        visit::visit_path(self, path);
    }

    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.module.words.push(ident.to_string());
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        let expressions = Punctuated::<Expr, Token![,]>::parse_terminated;
        for expression in expressions.parse2(item.tokens.clone()).unwrap_or_default() {
            self.visit_expr(&expression.clone());
        }
    }
}

// ------------------------------------------------------------------------------------------- the rules find breaches

fn module(path: &str, text: &str) -> Vec<Module> {
    let path: Vec<String> = path.split("::").map(str::to_owned).collect();
    let mut modules = vec![Module::default()];
    read_text(text, &path, &mut modules);
    modules
}

#[test]
fn a_use_of_a_module_above_is_found_however_it_is_written() {
    let layers: &[&[&str]] = &[&["low"], &["high"]];
    for text in [
        "use crate::high::Thing;",
        "use crate::{low::Thing, high as h};",
        "fn f() { super::high::call(); }",
        "use crate as all; fn f(_: &all::high::Thing) {}",
        "impl T { fn f() -> String { format!(\"{}\", crate::high::N) } }",
    ] {
        assert_eq!(too_high(layers, &module("low", text)).len(), 1, "{text}");
    }
    for text in ["use crate::low::Thing;", "use other::high;", "#[cfg(test)] mod tests { use crate::high; }"]
    {
        assert_eq!(too_high(layers, &module("low", text)), [""; 0], "{text}");
    }
    assert_eq!(too_high(layers, &module("high", "use crate::low::Thing;")), [""; 0]);
}

#[test]
fn a_use_of_the_world_is_found_however_it_is_written() {
    for text in [
        "use std::thread::spawn;",
        "use std::{collections, thread as t};",
        "fn f() { std::thread::yield_now() }",
        "use std::*;",
        "use std as s; fn f() { s::thread::yield_now() }",
    ] {
        assert_eq!(uses_of(&["std::thread"], &[], &module("low", text)).len(), 1, "{text}");
        assert_eq!(uses_of(&["std::thread"], &["high"], &module("low", text)), [""; 0], "{text}");
    }
    assert_eq!(uses_of(&["std::thread"], &[], &module("low", "use std::cell::Cell;")), [""; 0]);
}
