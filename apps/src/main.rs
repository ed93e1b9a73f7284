//! ftrun
fn main() {}
