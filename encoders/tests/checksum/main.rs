//! Checksum codes: their weights, the errors of what they rebuild against the bounds, and what they refuse.

mod bounds;
mod exact;
mod formula;
mod refusals;
mod samples;
mod weights;
