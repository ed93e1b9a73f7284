//! Who follows the handbook from an empty folder, outside of this workspace, has programs that compile and survive.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::{Run, built};
use crate::handbook::{blocks, text};

/// The programs of three pages, as the ones of a crate that begins as "Getting started" says.
const PROGRAMS: [(&str, &str); 3] =
    [("README.md", "main"), ("docs/messages.md", "bin/halo"), ("docs/solvers.md", "bin/solve")];

#[test]
#[ignore = "compiles most of the workspace anew, a minute or two"]
fn programs_of_the_handbook() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    symlink(root, folder.path().join("diskless")).unwrap();
    let mine = folder.path().join("mine");
    fs::create_dir_all(mine.join("src/bin")).unwrap();
    // "It needs ft-linalg besides", says the page on solvers.
    let dependencies = blocks(&text("docs/getting-started.md"), "toml").remove(0);
    let manifest = format!(
        "[package]\nname = \"mine\"\nedition = \"2024\"\n\n{dependencies}\nft-linalg = {{ path = \"../diskless/ft-linalg\" }}\n"
    );
    fs::write(mine.join("Cargo.toml"), manifest).unwrap();
    // The versions that are there already, so that nothing is asked of the network.
    fs::copy(root.join("Cargo.lock"), mine.join("Cargo.lock")).unwrap();
    for (page, name) in PROGRAMS {
        let code = blocks(&text(page), "rust").remove(0);
        fs::write(mine.join(format!("src/{name}.rs")), code).unwrap();
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--offline", "--quiet"]).current_dir(&mine).env_remove("CARGO_TARGET_DIR");
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    fs::write(mine.join("small.mtx"), blocks(&text("docs/solvers.md"), "text").remove(0)).unwrap();
    let ftrun = built().join("ftrun");
    let run = |arguments: &str| {
        let script = format!("cd \"$0\" && exec \"$1\" {arguments}");
        let run = Run::program(Path::new("/bin/sh"), "-c").arg(script).arg(&mine).arg(&ftrun);
        run.finish().expect(0)
    };
    let outcome = run("-n 4 --kill 1@step=40 target/debug/mine");
    assert!(outcome.stderr.contains("rank 1 failed"), "{outcome}");
    assert_eq!(outcome.stdout.lines().count(), 4, "{outcome}");
    run("-n 4 target/debug/halo");
    let outcome = run("-n 4 --kill 2@step=2 target/debug/solve small.mtx");
    assert!(outcome.stdout.contains("x = [2.000000, 3.000000, 3.000000, 2.000000]"), "{outcome}");
}
