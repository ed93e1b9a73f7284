//! LOBPCG and Lanczos on sixty dense matrices of known spectra: every eigenvalue that is called
//! converged is right to what is claimed of it.

mod common;

use common::on_ranks;
use ft_comm::Communicator;
use ft_linalg::solver::{Lanczos, LanczosOptions, Lobpcg, LobpcgOptions, Watch};
use ft_linalg::{
    CsrRows, DistMatrix, DistVector, Identity, Partition, Solution, Solver, Step, StopCriteria, System,
    Workspace,
};
use nalgebra::{DMatrix, DVector};

const TOLERANCE: f64 = 1e-8;

/// Numbers between -1 and 1, the same each time. Steele, Lea, Flood: Fast splittable pseudorandom
/// number generators, OOPSLA 2014.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next().abs() * end as f64) as usize % end
    }
}

/// A matrix `Q diag(spectrum) Q^T`, and what is asked of it.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    /// Ascending.
    spectrum: Vec<f64>,
    matrix: DMatrix<f64>,
    count: usize,
    largest: bool,
}

impl Case {
    fn new(number: usize) -> Self {
        let mut numbers = Numbers(number as u64);
        let n = [2, 5, 12, 24, 31, 40, 48, 60, 60, 60][number % 10];
        let kind = ["clustered", "multiple", "graded", "indefinite", "spread", "one apart"][number / 10];
        let mut value = |at: usize| {
            let place = at as f64 / n as f64;
            match kind {
                "clustered" => {
                    [1.0, 2.0, 100.0][at % 3] + 10f64.powi(-2 - (number % 10) as i32) * numbers.next()
                }
                "multiple" => (1 + at / (1 + number % 5)) as f64,
                "graded" => 10f64.powf(-12.0 * place),
                "indefinite" => numbers.next() * if at.is_multiple_of(3) { -10.0 } else { 1.0 },
                "spread" => 1e6 * numbers.next().abs(),
                _ => {
                    if at == 0 {
                        -1e4
                    } else {
                        1.0 + place
                    }
                }
            }
        };
        let mut spectrum: Vec<f64> = (0..n).map(&mut value).collect();
        spectrum.sort_by(f64::total_cmp);
        let mut matrix = DMatrix::from_diagonal(&DVector::from_column_slice(&spectrum));
        for _ in 0..3 {
            let v = DVector::from_fn(n, |_, _| numbers.next());
            let reflection = DMatrix::identity(n, n) - 2.0 / v.norm_squared() * &v * v.transpose();
            matrix = &reflection * matrix * &reflection;
        }
        matrix = 0.5 * (&matrix + matrix.transpose());
        let count = match number % 4 {
            0 => 1,
            1 => n,
            2 => 1 + numbers.below(n),
            _ => (n / 4).max(1),
        };
        let largest = number.is_multiple_of(3);
        let end = if largest { "largest" } else { "smallest" };
        let name = format!("{number}: {kind}, the {count} {end} of {n}");
        Self { name, spectrum, matrix, count, largest }
    }

    fn norm(&self) -> f64 {
        self.spectrum.iter().fold(0.0, |most, value| value.abs().max(most))
    }

    /// What rounding may have done to the spectrum.
    fn rounding(&self) -> f64 {
        4.0 * self.spectrum.len() as f64 * f64::EPSILON * self.norm()
    }

    fn stop(&self) -> StopCriteria {
        StopCriteria { rtol: TOLERANCE, iterations_max: 3000, ..StopCriteria::DEFAULT }
    }

    fn distributed(&self, comm: &Communicator) -> DistMatrix {
        let n = self.spectrum.len();
        let part = Partition::of(comm, n);
        let rows = part.range();
        let cols = rows.clone().flat_map(|_| 0..n as u64).collect();
        let vals = rows.clone().flat_map(|i| (0..n).map(move |j| self.matrix[(i, j)])).collect();
        let row_ptr = (0..=rows.len()).map(|row| row * n).collect();
        DistMatrix::new(part, CsrRows::new(row_ptr, cols, vals, n).unwrap(), comm).unwrap()
    }

    fn solve<S: Solver>(&self, options: &S::Options, comm: &Communicator) -> (S, Solution) {
        let (a, mut work) = (self.distributed(comm), Workspace::default());
        let b = DistVector::from_fn(a.part().clone(), |row| ((row.0 * row.0) as f64).sin() + 0.1);
        let system = System { a: &a, m: &Identity, b: b.local() };
        let mut solver = S::start(options, &system, b.local(), comm, &mut work).unwrap();
        let mut watch = Watch::default();
        loop {
            if let Step::Done(reason) = watch.step(&mut solver, &system, comm, &mut work).unwrap() {
                let solution = watch.conclude(&solver, reason, &system, comm, &mut work).unwrap();
                return (solver, solution);
            }
        }
    }

    /// Checks what is claimed of eigenvalues that are called converged: each is as near to one of
    /// the spectrum as its residual norm, and they belong to as many of the spectrum, those of one
    /// eigenvalue as often as it is multiple.
    fn check(&self, solver: &str, pairs: &[(f64, f64)]) {
        let Self { name, spectrum, count, .. } = self;
        assert_eq!(pairs.len(), *count, "{solver} on {name}");
        for (value, bound) in pairs {
            assert!(*bound <= 2.0 * TOLERANCE * self.norm(), "{solver} on {name}: {value} ({bound:e})");
            let nearest = spectrum.iter().map(|exact| (exact - value).abs()).fold(f64::INFINITY, f64::min);
            assert!(
                nearest <= bound + self.rounding(),
                "{solver} on {name}: {value} ({bound:e}), {nearest:e} off"
            );
        }
        let whole = pairs.iter().map(|(_, bound)| bound * bound).sum::<f64>().sqrt() + self.rounding();
        let mut values: Vec<f64> = pairs.iter().map(|(value, _)| *value).collect();
        let outermost_first =
            if self.largest { |a: &f64, b: &f64| a >= b } else { |a: &f64, b: &f64| a <= b };
        assert!(values.is_sorted_by(outermost_first), "{solver} on {name}: {values:?}");
        values.sort_by(f64::total_cmp);
        let mut left = spectrum.iter();
        for value in &values {
            let next = left.find(|exact| **exact >= value - whole);
            assert!(
                next.is_some_and(|exact| *exact <= value + whole),
                "{solver} on {name}: {values:?} of {spectrum:?}"
            );
        }
    }

    /// Checks that the eigenvalues are the outermost ones.
    fn check_end(&self, solver: &str, pairs: &[(f64, f64)]) {
        let mut spectrum = self.spectrum.clone();
        if self.largest {
            spectrum.reverse();
        }
        let allowed = 2.0 * TOLERANCE * self.norm() * (self.count as f64).sqrt();
        for ((value, _), exact) in pairs.iter().zip(spectrum) {
            assert!((value - exact).abs() <= allowed, "{solver} on {}: {value} for {exact}", self.name);
        }
    }
}

#[test]
fn spectra_are_those_of_the_matrices() {
    for number in 0..60 {
        let case = Case::new(number);
        let mut found: Vec<f64> = case.matrix.clone().symmetric_eigenvalues().iter().copied().collect();
        found.sort_by(f64::total_cmp);
        for (found, exact) in found.iter().zip(&case.spectrum) {
            assert!((found - exact).abs() <= case.rounding(), "{}: {found} for {exact}", case.name);
        }
    }
}

#[test]
fn lobpcg_on_sixty_spectra_is_right_to_its_claim() {
    let mut converged = 0;
    for number in 0..60 {
        let case = Case::new(number);
        let options = LobpcgOptions { stop: case.stop(), count: case.count, largest: case.largest };
        let find = |size| {
            on_ranks(size, |comm| {
                let (lobpcg, solution) = case.solve::<Lobpcg>(&options, comm);
                (lobpcg.eigenvalues().to_vec(), solution)
            })
            .remove(0)
        };
        let (pairs, solution) = find(1);
        if number % 10 == 9 {
            assert_eq!(find(3), (pairs.clone(), solution.clone()), "{}", case.name);
        }
        println!("{}: {}", case.name, solution.reason);
        if solution.reason.is_converged() {
            converged += 1;
            case.check("LOBPCG", &pairs);
            case.check_end("LOBPCG", &pairs);
        }
    }
    assert!(converged >= 58, "{converged} of 60 have converged");
}

#[test]
fn lanczos_on_sixty_spectra_is_right_to_its_claim() {
    let mut converged = 0;
    for number in 0..60 {
        let case = Case::new(number);
        let options = LanczosOptions { stop: case.stop(), count: case.count, largest: case.largest };
        let (pairs, solution) = on_ranks(1 + number % 2, |comm| {
            let (lanczos, solution) = case.solve::<Lanczos>(&options, comm);
            (lanczos.eigenvalues().to_vec(), solution)
        })
        .remove(0);
        println!("{}: {}", case.name, solution.reason);
        if solution.reason.is_converged() {
            converged += 1;
            case.check("Lanczos", &pairs);
        }
    }
    // Of a multiple eigenvalue it finds one vector, so that there may be fewer than are wanted.
    assert!(converged >= 45, "{converged} of 60 have converged");
}
