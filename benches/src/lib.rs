//! Benchmarks of the workspace, one file in `benches/` for each layer, and their recorded results.
//!
//! There is nothing to call here. `README.md` says how to run them and what the numbers mean.
