//! What the derives refuse, and in which words. After a change of words: `TRYBUILD=overwrite cargo test -p ft-checkpoint --test derive`,
//! then read what is in the `.stderr` files.
//!
//! Types that are no `Protect` or no `Redistribute` are not among them: the compiler adds a list of those that are, with lines of this crate.

#[test]
fn what_is_refused_is_said_where_it_stands() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}
