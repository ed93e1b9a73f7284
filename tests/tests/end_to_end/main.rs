//! The launcher with real processes: kills at every named moment, limits, bad usage, and what is left behind.
//!
//! The programs are built once, with the profile of this test. Every job has a time limit, is reaped whatever
//! happens, and must not leave a process behind.

mod accounts;
mod answers;
mod asynchronous;
mod bench;
mod births;
mod builds;
mod collectives;
mod common;
mod conformance;
mod disk;
mod examples;
mod handbook;
mod hosts;
mod hpcg;
mod intervals;
mod invariant9;
mod kills;
mod lifecycle;
mod limits;
mod many_ranks;
mod memory;
mod messages;
mod montecarlo;
mod mpirun;
mod network;
mod npb_cg;
mod operations;
mod outliving;
mod output;
mod outside;
mod panics;
mod partitions;
mod preconditioners;
mod ragged;
mod random_kills;
mod recoveries;
mod relay;
mod resume;
mod saved_files;
mod scenarios;
mod sections;
mod seismic;
mod shrink;
mod small_apps;
mod sockets;
mod solve;
mod spares;
mod strangers;
mod threads;
mod transport;
mod typed_ring;
mod usage;
mod watchdog;
