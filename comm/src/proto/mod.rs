//! The protocols, as state machines without sockets, threads or clocks: events go in, effects come out, time
//! is an argument. The real drivers and the simulator run the same code.

pub mod arbiter;
pub mod detector;
pub mod endpoint;
pub mod matching;
pub mod member;
pub mod watch;
