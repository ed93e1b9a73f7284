//! Counter-based random numbers and the Monte Carlo kernels made of them.
//!
//! Everything here is a pure function of a seed and an index, so work can be divided, repeated after a failure and
//! added up in any way without a change of the result:
//!
//! - [`philox4x32_10`] makes four random words of a counter, [`philox4x32_10_batch`] of many at once;
//! - [`hits`] counts random points in the quarter circle, and [`Estimate`] says what that means for pi;
//! - [`ep`] is the EP kernel of the NAS Parallel Benchmarks with its published answers.
//!
//! ```
//! use ft_montecarlo::{Estimate, hits};
//!
//! // Two ranks, one of which does its part twice: the count stays the same.
//! let samples = 1_000_000;
//! let total = hits(42, 0..300_000) + hits(42, 300_000..samples);
//! assert_eq!(total, hits(42, 0..samples));
//!
//! let estimate = Estimate { samples, hits: total };
//! assert!((estimate.pi() - std::f64::consts::PI).abs() < 4.0 * estimate.standard_error());
//! ```

#![forbid(unsafe_code)]

pub mod ep;
mod philox;
mod pi;

pub use philox::{LANES, philox4x32_10, philox4x32_10_batch};
pub use pi::{Estimate, hits};
