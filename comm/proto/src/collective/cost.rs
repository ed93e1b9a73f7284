//! What an algorithm costs, in the terms of the models of parallel computing.

/// What happens one after another on the critical path of an algorithm, over all ranks.
///
/// A rank sends one message and receives one at a time, both at once (R. W. Hockney, The communication challenge for
/// MPP: Intel Paragon and Meiko CS-2, Parallel Computing 20(3), 1994; R. Thakur, R. Rabenseifner, W. Gropp,
/// Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Messages one after another: sent by one rank in turn, received by one rank in turn, or waiting for each other.
    pub rounds: f64,
    /// Bytes sent one after another.
    pub bytes: f64,
    /// Bytes reduced or copied in memory one after another.
    pub reduced: f64,
}

impl Cost {
    /// Two hosts with half of the ranks each: the ranks of the larger one beside its leader, and the messages between the leaders.
    pub(super) fn of_halves(size: usize) -> (f64, f64) {
        ((size.div_ceil(2) - 1) as f64, f64::from(u8::from(size > 1)))
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rounds: self.rounds + other.rounds,
            bytes: self.bytes + other.bytes,
            reduced: self.reduced + other.reduced,
        }
    }
}
