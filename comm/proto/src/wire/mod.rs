//! What the bytes on a link mean: frame headers on data links, messages on control links of ranks and agents, and the
//! handshake that opens any of them. Pure: nothing here reads a socket or a clock.

pub mod agent;
pub mod control;
pub mod handshake;
pub mod header;
pub mod wait;
