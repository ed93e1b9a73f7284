//! What a program may expect of messages and collectives, over real sockets. (The simulator has it for more sizes.)

use crate::common::{Run, example};

fn conforms(transport: &str) {
    for ranks in [1, 2, 3, 4, 7, 8, 16] {
        let run = Run::ftrun(&format!("-n {ranks} --transport {transport}")).limit(60);
        // Long enough for every algorithm that long messages take.
        let outcome = run.arg(example("conformance")).arg("600000").finish().expect(0);
        assert_eq!(outcome.stdout, format!("{ranks} ranks conform\n"), "{outcome}");
        assert_eq!(outcome.stderr, "", "{outcome}");
    }
}

#[test]
fn over_unix_sockets() {
    conforms("auto");
}

#[test]
fn over_tcp() {
    conforms("tcp");
}
