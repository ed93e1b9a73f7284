//! What this project's parts cost, measured: one criterion bench a layer in `benches/`, their recorded results in
//! `results/`, and here the measurements that a command runs.
//!
//! `README.md` says how to run them and what the numbers mean.

#![forbid(unsafe_code)]

pub mod checkpoints;
pub mod codes;
pub mod comparison;
pub mod intervals;
mod launched;
pub mod messages;
mod mpi;
pub mod sockets;
pub mod solvers;
pub mod ulfm;
