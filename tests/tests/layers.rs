//! The borders that no compiler holds: which crate may use which, which module of a crate is above which, and what is absent where.
//!
//! Sources are read by `syn`, from the root through every `mod` that is not for tests. What a macro makes of its tokens escapes it
//! unless these are expressions, and so does what a `use` calls by another name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Ident, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, Token, UseTree};

/// Every crate of the workspace, bottom to top, with those of ours that are in its `[dependencies]`; `[dev-dependencies]` are free.
const CRATES: &[(&str, &str)] = &[
    ("ft-files", ""),
    ("ft-threads", ""),
    ("ft-encoders", "ft-threads"),
    ("ft-proto", ""),
    ("ft-comm", "ft-proto"),
    ("ft-launch", "ft-threads ft-proto ft-comm"),
    ("ft-sim", "ft-proto ft-comm"),
    ("ft-checkpoint-derive", ""),
    ("ft-checkpoint", "ft-files ft-threads ft-encoders ft-proto ft-comm ft-checkpoint-derive"),
    ("ft-linalg", "ft-files ft-threads ft-comm ft-checkpoint"),
    ("ft-seismic", "ft-files ft-threads"),
    ("ft-montecarlo", ""),
    ("ft-figures", ""),
    ("ft-tools", "ft-comm ft-checkpoint ft-figures"),
    ("ft-benches", "ft-tools ft-encoders ft-comm ft-checkpoint ft-seismic ft-montecarlo ft-figures"),
    (
        "ft-apps",
        "ft-files ft-threads ft-proto ft-comm ft-launch ft-checkpoint ft-linalg ft-seismic ft-montecarlo ft-figures ft-tools",
    ),
    ("ft-tests", ""),
    ("ft-campaign", ""),
];

/// Modules of a crate, bottom to top: one uses those below it and those of its own line; of [`APPS`], only those below.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "comm/proto",
        &[
            "rank error time plain layout group topology fault planted settings stamp waits",
            "wire shared",
            "cells collective detector matching ring watch",
            "endpoint lines member arbiter reduction",
        ],
    ),
    (
        "comm",
        &[
            "time main_error handover",
            "transport binding estate fork inherited lifeline limits",
            "driver service",
            "core",
            "communicator world request",
        ],
    ),
    (
        "apps",
        &[
            "number say settings shell size text_file value words",
            "footing options progress timeline",
            "app rank",
            APPS,
            "bundled advise bench desk inspect picture sbatch",
            "invocation report",
            "job",
            "cli",
        ],
    ),
];

/// The bundled apps, a module each. They know nothing of each other.
const APPS: &str =
    "collective ep farm heat hpcg jacobi load npb_cg pi pipeline ring seismic simulator solve wavefront";

/// Whoever uses these meets the world: the clock, other threads and processes, networks.
const WORLD: &str =
    "std::net std::os::unix::net std::process std::thread std::time::Instant std::time::SystemTime ";

/// Where nothing of [`WORLD`] is used, nor of what else is named: in all modules of a crate, or in some.
const PURE: &[(&str, &str, &str)] = &[
    ("comm/proto", "", "std::fs std::io crossbeam_channel libc nix rustix signal_hook socket2"),
    ("encoders", "", "std::fs std::io"),
    ("montecarlo", "", "std::fs std::io"),
    ("seismic", "", ""),
    (
        "checkpoint",
        "protocol layout region store scheme bag pace candidates changes",
        "std::fs std::io ft_comm",
    ),
];

/// The crates that carry messages know nothing of checkpoints: they carry an opaque value.
const UNAWARE: [&str; 4] = ["comm/proto", "comm", "comm/launch", "comm/sim"];

fn names(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|word| word == name)
}

#[test]
fn crates_depend_downwards() {
    let mut cargo = Command::new(env!("CARGO"));
    let cargo = cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]).current_dir(root());
    let metadata: serde_json::Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let row = CRATES.iter().find(|row| row.0 == name);
        let (_, may_use) = row.unwrap_or_else(|| panic!("{name} is new: give it a row in CRATES"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let counts = dependency["kind"] != "dev" && CRATES.iter().any(|row| row.0 == used);
            assert!(!counts || names(may_use, used), "{name} depends on {used}");
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
fn what_is_pure_does_not_meet_the_world() {
    for (dir, modules, more) in PURE {
        let forbidden = WORLD.to_owned() + more;
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Uses of modules that are above those which use them, or are apps as they are.
fn too_high(layers: &[&str], modules: &[Module]) -> Vec<String> {
    let level = |name: &str| layers.iter().position(|layer| names(layer, name));
    // What the root shows of its modules stands for these.
    let shown = |name: &str| {
        let path = modules[0].uses.iter().find(|path| path.len() > 1 && path.last().unwrap() == name)?;
        path.iter().find(|word| *word != "crate").cloned()
    };
    let mut found = Vec::new();
    for module in modules.iter().filter(|module| !module.path.is_empty()) {
        let top = module.path[0].as_str();
        let own = level(top).unwrap_or_else(|| panic!("module {top} is new: give it a place in LAYERS"));
        for path in module.uses.iter().filter(|path| path.len() > 1 && path[0] == "crate") {
            let used = if level(&path[1]).is_some() { Some(path[1].clone()) } else { shown(&path[1]) };
            let apart = |used: &String| used != top && names(APPS, used) && names(APPS, top);
            if used.is_some_and(|used| level(&used) > Some(own) || apart(&used)) {
                found.push(format!("{} uses {}", module.path.join("::"), path.join("::")));
            }
        }
    }
    found
}

/// Uses of what is forbidden in these modules of a crate, or in all if none are named. `std::*` is a use of all that is in `std`.
fn uses_of(forbidden: &str, places: &str, modules: &[Module]) -> Vec<String> {
    let is_use = |path: &[String], forbidden: &str| {
        let forbidden: Vec<&str> = forbidden.split("::").collect();
        let path: Vec<&str> = path.iter().map(String::as_str).take_while(|word| *word != "*").collect();
        path.starts_with(&forbidden) || forbidden.starts_with(&path)
    };
    let named = |module: &Module| module.path.first().is_some_and(|top| names(places, top));
    let mut found = Vec::new();
    for module in modules.iter().filter(|module| places.is_empty() || named(module)) {
        for path in
            module.uses.iter().filter(|path| forbidden.split_whitespace().any(|what| is_use(path, what)))
        {
            found.push(format!("{} uses {}", module.path.join("::"), path.join("::")));
        }
    }
    found
}

/// What the rules need to know of a module.
#[derive(Default)]
struct Module {
    /// Empty for the root of the crate.
    path: Vec<String>,
    /// Every path in it, from `crate` on where it lies in this crate.
    uses: Vec<Vec<String>>,
    /// Every identifier.
    words: Vec<String>,
    /// Those inside it that have files of their own.
    files: Vec<String>,
}

/// The modules of a crate, its root first, without those for tests.
fn read_crate(dir: &str) -> Vec<Module> {
    let source = root().join(dir).join("src");
    let mut modules = Vec::new();
    let file = ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|file| file.is_file());
    read_module(&file.expect("a crate has a root"), &source, &[], &mut modules);
    modules
}

/// Adds the module of `file`, and those of `folder` that it declares.
fn read_module(file: &Path, folder: &Path, path: &[String], modules: &mut Vec<Module>) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let module = read_text(&text, path);
    let inner = module.files.clone();
    modules.push(module);
    for name in inner {
        let below = folder.join(&name);
        let files = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
        let file = files.iter().find(|file| file.is_file()).expect("a module has a file");
        read_module(file, &below, &[path, &[name]].concat(), modules);
    }
}

fn read_text(text: &str, path: &[String]) -> Module {
    let mut module = Module { path: path.to_owned(), ..Module::default() };
    module.visit_file(&syn::parse_file(text).unwrap());
    module
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "test")
    })
}

impl Module {
    /// Notes a path as it is written: from `crate` on if it begins here or above.
    fn note(&mut self, path: &[String]) {
        let ups = path.iter().take_while(|word| *word == "super").count();
        let skipped = if ups == 0 { usize::from(path[0] == "self") } else { ups };
        let above = &self.path[..self.path.len().saturating_sub(ups)];
        let whole = [&["crate".to_owned()], above, &path[skipped..]].concat();
        self.uses.push(if skipped == 0 { path.to_owned() } else { whole });
    }

    fn note_tree(&mut self, tree: &UseTree, before: &[String]) {
        let name = match tree {
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.note_tree(tree, before)),
            UseTree::Path(path) => {
                return self.note_tree(&path.tree, &[before, &[path.ident.to_string()]].concat());
            }
            UseTree::Glob(_) => "*".to_owned(),
            UseTree::Rename(rename) => rename.ident.to_string(),
            UseTree::Name(name) => name.ident.to_string(),
        };
        let path = [before, &[name]].concat();
        self.note(path.strip_suffix(&["self".to_owned()]).unwrap_or(&path));
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        match item.content {
            _ if is_for_tests(&item.attrs) => {}
            Some(_) => visit::visit_item_mod(self, item),
            None => self.files.push(item.ident.to_string()),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.note_tree(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&written);
        visit::visit_path(self, path);
    }

    fn visit_ident(&mut self, ident: &'ast Ident) {
        self.words.push(ident.to_string());
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        let expressions = Punctuated::<Expr, Token![,]>::parse_terminated;
        for expression in expressions.parse2(item.tokens.clone()).unwrap_or_default() {
            self.visit_expr(&expression.clone());
        }
    }
}

#[test]
fn breaches_are_found() {
    let module = |name: &str, text: &str| [Module::default(), read_text(text, &[name.to_owned()])];
    let layers = ["low", APPS];
    for (name, text, breaches) in [
        ("low", "use crate::solve::Thing;", 1),
        ("low", "use crate::{low::Thing, heat as h};", 1),
        ("low", "fn f() { super::solve::call(); }", 1),
        ("low", "impl T { fn f() -> String { format!(\"{}\", crate::solve::N) } }", 1),
        ("solve", "use crate::heat::Thing;", 1),
        ("solve", "use crate::low::Thing;", 0),
        ("low", "use crate::low::Thing; use other::cg;", 0),
        ("low", "#[cfg(test)] mod tests { use crate::cg; }", 0),
    ] {
        assert_eq!(too_high(&layers, &module(name, text)).len(), breaches, "{text}");
    }
    for (text, breaches) in [
        ("use std::thread::spawn;", 1),
        ("use std::{collections, thread as t};", 1),
        ("fn f() { std::thread::yield_now() }", 1),
        ("use std::*;", 1),
        ("use std::cell::Cell;", 0),
    ] {
        assert_eq!(uses_of("std::thread", "", &module("low", text)).len(), breaches, "{text}");
        assert_eq!(uses_of("std::thread", "high", &module("low", text)), [""; 0], "{text}");
    }
}
