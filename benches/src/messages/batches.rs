//! How a test is timed, on every side alike (`peers/mpi_messages.c` has the same in C).
//!
//! Iterations run back to back in batches, the ranks meet before each batch, and a batch takes as long as its slowest
//! rank. First their number is raised until a batch fills its share of the time; that also warms up.

use ft_comm::time::Clock;
use ft_tools::harness::more;

use super::measured::Measured;
use super::test::Test;

/// Batches of a test, unless they take too long.
pub const BATCHES: usize = 21;
/// Batches of a test that takes too long.
const FEWEST: usize = 5;
/// Too long: so many times the time that was meant.
const PATIENCE: f64 = 3.0;

/// What a rank needs of the others to time something together.
pub trait Ranks {
    /// Why the ranks cannot reach each other.
    type Error;

    /// Ranks of the job.
    fn size(&self) -> usize;

    /// Returns when all ranks have called.
    ///
    /// # Errors
    /// The others are gone.
    fn meet(&mut self) -> Result<(), Self::Error>;

    /// The largest of the numbers of all ranks, on all ranks.
    ///
    /// # Errors
    /// The others are gone.
    fn largest(&mut self, mine: f64) -> Result<f64, Self::Error>;
}

/// Times a test: `iterate` does as many iterations as it is told. `time_s` is for all batches together.
///
/// # Errors
/// What `iterate` or the ranks complain about.
pub fn measure<R: Ranks>(
    ranks: &mut R,
    test: Test,
    time_s: f64,
    mut iterate: impl FnMut(&mut R, usize) -> Result<(), R::Error>,
) -> Result<Measured, R::Error> {
    let clock = Clock::start();
    let mut batch = |iterations: usize| {
        ranks.meet()?;
        let start = clock.now();
        iterate(ranks, iterations)?;
        let mine = clock.now().since(start).as_secs_f64();
        // All ranks know the same number and so decide alike.
        ranks.largest(mine).map(|slowest| slowest / iterations as f64)
    };
    let share_s = time_s / BATCHES as f64;
    let mut iterations = 1;
    while let Some(more) = more(iterations, batch(iterations)?, share_s) {
        iterations = more;
    }
    let mut each_s = Vec::new();
    let mut spent_s = 0.0;
    while each_s.len() < BATCHES && (each_s.len() < FEWEST || spent_s < PATIENCE * time_s) {
        let one_s = batch(iterations)?;
        each_s.push(one_s);
        spent_s += one_s * iterations as f64;
    }
    Ok(summarize(test, ranks.size(), each_s, iterations))
}

fn summarize(test: Test, ranks: usize, mut each_s: Vec<f64>, iterations: usize) -> Measured {
    each_s.sort_by(f64::total_cmp);
    let batches = each_s.len();
    let tenth = batches / 10;
    let value = |at: usize| test.value(each_s[at]);
    let (quick, slow) = (value(tenth), value(batches - 1 - tenth));
    Measured {
        test,
        ranks,
        value: value(batches / 2),
        p10: quick.min(slow),
        p90: quick.max(slow),
        batches,
        iterations,
    }
}

#[cfg(test)]
mod tests {
    use super::super::test::Operation;
    use super::*;

    #[test]
    fn the_middle_and_the_tenths() {
        let each_s: Vec<f64> = (1..=20).rev().map(|number| f64::from(number) * 1e-6).collect();
        let near = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 1e-9, "{value}");
        let barrier = summarize(Test { operation: Operation::Barrier, bytes: 0 }, 4, each_s.clone(), 7);
        assert_eq!((barrier.ranks, barrier.batches, barrier.iterations), (4, 20, 7));
        near(barrier.value, 11.0);
        near(barrier.p10, 3.0);
        near(barrier.p90, 18.0);
        // Of speeds the low end is the slow one.
        let exchange = summarize(Test { operation: Operation::Exchange, bytes: 1000 }, 2, each_s, 7);
        near(exchange.value, 1e-6 / 11e-6);
        near(exchange.p10, 1e-6 / 18e-6);
        near(exchange.p90, 1e-6 / 3e-6);
    }

    struct Alone(usize);

    impl Ranks for Alone {
        type Error = String;

        fn size(&self) -> usize {
            1
        }

        fn meet(&mut self) -> Result<(), String> {
            self.0 += 1;
            Ok(())
        }

        fn largest(&mut self, _mine: f64) -> Result<f64, String> {
            Ok(1.0)
        }
    }

    #[test]
    fn a_test_that_takes_too_long_has_few_batches() {
        let barrier = Test { operation: Operation::Barrier, bytes: 0 };
        let mut ranks = Alone(0);
        let mut done = 0;
        let iterate = |_: &mut Alone, iterations| {
            done += iterations;
            Ok(())
        };
        // Each batch takes a second, says the slowest rank, and 0.1 were meant.
        let measured = measure(&mut ranks, barrier, 0.1, iterate).unwrap();
        assert_eq!((measured.batches, measured.iterations, measured.value), (FEWEST, 1, 1e6));
        assert_eq!((ranks.0, done), (1 + FEWEST, 1 + FEWEST), "and one to find out");
        let refuse = |_: &mut Alone, _| Err("gone".to_owned());
        assert_eq!(measure(&mut Alone(0), barrier, 0.1, refuse), Err("gone".into()));
    }
}
