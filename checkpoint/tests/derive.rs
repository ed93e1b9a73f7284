//! What the derives refuse, and in which words: `cargo test -p ft-checkpoint --test derive -- --ignored`. After a change of words
//! the same with `TRYBUILD=overwrite`; then read what is in the `.stderr` files.
//!
//! Types that are no `Protect` or no `Redistribute` are not among them: the compiler adds a list of those that are, with lines of this crate.

#[test]
#[ignore = "compiles the crate and all below it anew, a minute: .ci/run runs it"]
fn what_is_refused_is_said_where_it_stands() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}
