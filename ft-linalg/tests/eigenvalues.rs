//! Eigenvalues against those that are known, with the same bits on any number of ranks and after a restore.

mod common;

use common::{dense, on_ranks};
use ft_checkpoint::{StatePart, load, save};
use ft_comm::Communicator;
use ft_linalg::solver::{Lanczos, LanczosOptions, Lobpcg, LobpcgOptions, Power, Watch};
use ft_linalg::stop::Quantity;
use ft_linalg::{
    CsrRows, DistMatrix, DistVector, Identity, Partition, Poisson, Solver, Step, StopCriteria, StopReason,
    System, Workspace,
};

const NX: usize = 17;
const NY: usize = 23;

fn poisson(comm: &Communicator) -> DistMatrix {
    let grid = Poisson::new_2d(NX, NY).unwrap();
    let part = Partition::of(comm, grid.n());
    DistMatrix::new(part.clone(), grid.rows(part.range()), comm).unwrap()
}

/// All eigenvalues of the grid, ascending.
fn exact() -> Vec<f64> {
    let one = |n: usize, k: usize| (k as f64 * std::f64::consts::PI / (2 * n + 2) as f64).sin().powi(2) * 4.0;
    let mut all: Vec<f64> = (1..=NX).flat_map(|i| (1..=NY).map(move |j| one(NX, i) + one(NY, j))).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Runs to the end; after 17 iterations only what a checkpoint holds goes on.
fn run<S: Solver>(options: &S::Options, a: &DistMatrix, comm: &Communicator) -> (S, StopReason, f64) {
    let b = DistVector::from_fn(a.part().clone(), |row| ((row.0 * row.0) as f64).sin() + 0.1);
    let (system, mut work) = (System { a, m: &Identity, b: b.local() }, Workspace::default());
    let mut solver = S::start(options, &system, b.local(), comm, &mut work).unwrap();
    let mut watch = Watch::default();
    loop {
        if let Step::Done(reason) = watch.step(&mut solver, &system, comm, &mut work).unwrap() {
            let solution = watch.conclude(&solver, reason, &system, comm, &mut work).unwrap();
            assert_eq!(solver.step(&system, comm, &mut work).unwrap(), Step::Done(reason));
            return (solver, solution.reason, solution.relative_residual);
        }
        if watch.history().len() == 18 {
            let (mut restored, mut shard) = (S::default(), vec![]);
            for part in [StatePart::Constant, StatePart::Variable] {
                save(&mut solver, part, &mut shard).unwrap();
                load(&mut restored, part, &shard).unwrap();
            }
            (solver, work) = (restored, Workspace::default());
        }
    }
}

#[test]
fn power_iteration_finds_the_largest() {
    let stop = StopCriteria { rtol: 1e-4, iterations_max: 20_000, ..StopCriteria::DEFAULT };
    let find = |size| {
        on_ranks(size, |comm| {
            let (power, reason, residual) = run::<Power>(&stop, &poisson(comm), comm);
            assert!(reason.is_converged() && residual <= 1e-4, "{reason}");
            let x = DistVector::from_local(Partition::of(comm, NX * NY), power.x().to_vec()).unwrap();
            (power.eigenvalue(), x.gather(comm).unwrap())
        })
    };
    let one = find(1).remove(0);
    assert!(exact().iter().any(|exact| (one.0 - exact).abs() < 8e-4), "{}", one.0);
    assert!((one.0 - exact()[NX * NY - 1]).abs() < 0.05, "{}", one.0);
    for size in [2, 3, 4, 7] {
        assert!(find(size).into_iter().all(|other| other == one), "{size} ranks");
    }
}

#[test]
fn lanczos_finds_both_ends() {
    let mut exact = exact();
    for largest in [false, true] {
        let stop = StopCriteria { rtol: 1e-10, iterations_max: 200, ..StopCriteria::DEFAULT };
        let options = LanczosOptions { stop, count: 4, largest };
        let find = |size| {
            on_ranks(size, |comm| {
                let a = poisson(comm);
                let (lanczos, reason, residual) = run::<Lanczos>(&options, &a, comm);
                assert!(reason.is_converged() && residual <= 2e-10, "{reason}, {residual:e}");
                let mut work = Workspace::default();
                let pairs: Vec<_> =
                    (0..4).map(|at| (lanczos.eigenvector(at), lanczos.eigenvector(at))).collect();
                let norms = work.dots_many(a.part(), &pairs, comm).unwrap();
                assert!(norms.iter().all(|norm| (norm - 1.0).abs() < 1e-12));
                let x = DistVector::from_local(a.part().clone(), lanczos.x().to_vec()).unwrap();
                (lanczos.eigenvalues().to_vec(), x.gather(comm).unwrap())
            })
        };
        let one = find(1).remove(0);
        for ((value, bound), exact) in one.0.iter().zip(&exact) {
            assert!((value - exact).abs() <= bound + 1e-13, "{value} {exact} {bound:e}");
        }
        for size in [2, 3, 4, 7] {
            assert!(find(size).into_iter().all(|other| other == one), "{size} ranks");
        }
        exact.reverse();
    }
}

#[test]
fn lobpcg_finds_both_ends_with_their_multiplicity() {
    let mut exact = exact();
    for largest in [false, true] {
        let stop = StopCriteria { rtol: 1e-8, iterations_max: 400, ..StopCriteria::DEFAULT };
        let options = LobpcgOptions { stop, count: 4, largest };
        let find = |size| {
            on_ranks(size, |comm| {
                let a = poisson(comm);
                let (lobpcg, reason, residual) = run::<Lobpcg>(&options, &a, comm);
                assert!(reason.is_converged() && residual <= 2e-8, "{reason}, {residual:e}");
                let x = DistVector::from_local(a.part().clone(), lobpcg.eigenvector(3).to_vec()).unwrap();
                (lobpcg.eigenvalues().to_vec(), x.gather(comm).unwrap())
            })
        };
        let one = find(1).remove(0);
        for ((value, bound), exact) in one.0.iter().zip(&exact) {
            assert!((value - exact).abs() <= bound + 1e-13, "{value} {exact} {bound:e}");
        }
        for size in [2, 3, 4, 7] {
            assert!(find(size).into_iter().all(|other| other == one), "{size} ranks");
        }
        exact.reverse();
    }
    // Of a square every second eigenvalue comes twice; a block finds both.
    on_ranks(2, |comm| {
        let part = Partition::of(comm, 144);
        let grid = Poisson::new_2d(12, 12).unwrap();
        let a = DistMatrix::new(part.clone(), grid.rows(part.range()), comm).unwrap();
        let options = LobpcgOptions { count: 3, ..LobpcgOptions::default() };
        let (lobpcg, reason, _) = run::<Lobpcg>(&options, &a, comm);
        let [.., (second, _), (third, _)] = lobpcg.eigenvalues() else { panic!("{lobpcg:?}") };
        assert!(reason.is_converged() && (second - third).abs() < 1e-6, "{second} {third}");
    });
}

#[test]
fn what_has_no_eigenvalue_says_so() {
    on_ranks(2, |comm| {
        let reason = |a: [[f64; 2]; 2], b: [f64; 2], count| {
            let a = dense(comm, a);
            let b = DistVector::from_global(a.part().clone(), &b).unwrap();
            let (system, mut work) = (System { a: &a, m: &Identity, b: b.local() }, Workspace::default());
            let options = LanczosOptions { count, ..LanczosOptions::default() };
            let mut lanczos = Lanczos::start(&options, &system, b.local(), comm, &mut work).unwrap();
            let mut power = Power::start(&options.stop, &system, b.local(), comm, &mut work).unwrap();
            loop {
                let steps = [
                    lanczos.step(&system, comm, &mut work).unwrap(),
                    power.step(&system, comm, &mut work).unwrap(),
                ];
                if let [Step::Done(lanczos), Step::Done(power)] = steps {
                    break [lanczos, power];
                }
            }
        };
        let diagonal = [[2.0, 0.0], [0.0, 1.0]];
        let start = StopReason::Vanished { iterations: 0, quantity: Quantity::Start };
        assert_eq!(reason(diagonal, [0.0; 2], 1), [start; 2]);
        // The start is an eigenvector: there is no second one in its space.
        let [lanczos, power] = reason(diagonal, [0.0, 3.0], 2);
        assert_eq!(lanczos, StopReason::Vanished { iterations: 1, quantity: Quantity::NextDirection });
        assert_eq!(power, StopReason::Converged { iterations: 0 });
        let [lanczos, power] = reason([[f64::NAN, 0.0], [0.0, 1.0]], [1.0, 1.0], 1);
        let product = StopReason::NotFinite { quantity: Quantity::Product, row: 0 };
        assert_eq!([lanczos, power], [product; 2]);
    });
}

/// A diagonal matrix, from a start with all eigenvectors.
fn diagonal(values: &[f64], comm: &Communicator) -> DistMatrix {
    let part = Partition::of(comm, values.len());
    let rows = part.range();
    let own = values[rows.clone()].to_vec();
    let (row_ptr, cols) = ((0..=rows.len()).collect(), rows.map(|row| row as u64).collect());
    DistMatrix::new(part, CsrRows::new(row_ptr, cols, own, values.len()).unwrap(), comm).unwrap()
}

/// Directions that were next to dependent, scaled up, and recurrences of `A X` once gave
/// eigenvalues of 1e44, called converged.
#[test]
fn lobpcg_with_a_large_block_stays_within_the_spectrum() {
    let stop = StopCriteria { rtol: 1e-8, iterations_max: 3000, ..StopCriteria::DEFAULT };
    let clustered = |at: usize| match at {
        0..20 => 1.0 + 1e-3 * at as f64,
        _ => 10.0 + 90.0 * at as f64 / 500.0,
    };
    let cases: [(Vec<f64>, usize, bool); 4] = [
        ((1..=500).map(f64::from).collect(), 20, true),
        ((1..=40).map(f64::from).collect(), 12, true),
        ((0..500).map(clustered).collect(), 10, false),
        ((1..=6).map(f64::from).collect(), 6, false),
    ];
    for (spectrum, count, largest) in cases {
        let options = LobpcgOptions { stop, count, largest };
        let find = |size| {
            on_ranks(size, |comm| {
                let (lobpcg, reason, _) = run::<Lobpcg>(&options, &diagonal(&spectrum, comm), comm);
                (lobpcg.eigenvalues().to_vec(), reason)
            })
            .remove(0)
        };
        let (pairs, reason) = find(1);
        assert!(reason.is_converged(), "{count} of {}: {reason}", spectrum.len());
        let mut exact = spectrum.clone();
        if largest {
            exact.reverse();
        }
        for ((value, bound), exact) in pairs.iter().zip(&exact) {
            assert!(*bound <= 2e-8 * spectrum[spectrum.len() - 1], "{bound:e}");
            assert!((value - exact).abs() <= bound + 1e-12, "{value} {exact} {bound:e}");
        }
        assert_eq!(find(3), (pairs, reason));
    }
}

/// The verdict is measured by a norm that products have shown, not by what recurrences say of
/// eigenvalues.
#[test]
fn lobpcg_of_a_grid_finds_twenty_smallest() {
    on_ranks(2, |comm| {
        let grid = Poisson::new_3d(12, 12, 12).unwrap();
        let part = Partition::of(comm, grid.n());
        let a = DistMatrix::new(part.clone(), grid.rows(part.range()), comm).unwrap();
        let one = |k: usize| (k as f64 * std::f64::consts::PI / 26.0).sin().powi(2) * 4.0;
        let of = |place: usize| one(1 + place % 12) + one(1 + place / 12 % 12) + one(1 + place / 144);
        let mut exact: Vec<f64> = (0..1728).map(of).collect();
        exact.sort_by(f64::total_cmp);
        let stop = StopCriteria { rtol: 1e-8, iterations_max: 2000, ..StopCriteria::DEFAULT };
        let options = LobpcgOptions { stop, count: 20, largest: false };
        let (lobpcg, reason, residual) = run::<Lobpcg>(&options, &a, comm);
        assert!(reason.is_converged() && residual <= 2e-8, "{reason}");
        for ((value, bound), exact) in lobpcg.eigenvalues().iter().zip(exact) {
            assert!(*bound <= 2.4e-7 && (value - exact).abs() <= bound + 1e-12, "{value} {exact} {bound:e}");
        }
    });
}

#[test]
fn more_eigenvalues_than_rows_are_refused() {
    on_ranks(2, |comm| {
        let a = diagonal(&[1.0, 2.0, 3.0], comm);
        let b = DistVector::constant(a.part().clone(), 1.0);
        let (system, mut work) = (System { a: &a, m: &Identity, b: b.local() }, Workspace::default());
        let lobpcg = LobpcgOptions { count: 4, ..LobpcgOptions::default() };
        let error = Lobpcg::start(&lobpcg, &system, b.local(), comm, &mut work).unwrap_err();
        assert_eq!(error.to_string(), "4 eigenvalues were asked of a matrix of 3 rows. Ask for at most 3");
        let lanczos = LanczosOptions { count: 4, ..LanczosOptions::default() };
        let error = Lanczos::start(&lanczos, &system, b.local(), comm, &mut work).unwrap_err();
        assert_eq!(error.to_string(), "4 eigenvalues were asked of a matrix of 3 rows. Ask for at most 3");
    });
}
