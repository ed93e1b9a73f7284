//! Elements per second, on one core, of what solvers do besides products: reproducible dot products beside a plain one, an
//! iteration of solvers, and the sweeps of preconditioners, on a Poisson problem.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_comm::World;
use ft_linalg::dot::Reducer;
use ft_linalg::solver::{AnyOptions, AnySolver, Method};
use ft_linalg::{
    DistMatrix, Identity, MakePreconditioner, Partition, Poisson, Precond, Solver, Step, StopCriteria,
    System, Workspace, rhs,
};

/// Points of the grid in each direction.
const POINTS: usize = 64;
/// Lanes of the plain dot product, as many as hide the latency of additions.
const LANES: usize = 32;

fn kernels(criterion: &mut Criterion) {
    // Alone, as no launcher has started this.
    let world = World::init().expect("a world of one rank");
    dots(criterion, &world);
    iterations(criterion, &world);
    sweeps(criterion, &world);
}

fn dots(criterion: &mut Criterion, world: &World) {
    let mut group = criterion.benchmark_group("dot");
    for n in [32_768, 2_000_000] {
        let part = Partition::of(world.comm(), n);
        let vector = |shift: f64| (0..n).map(|row| 1.0 / (row as f64 + shift)).collect::<Vec<f64>>();
        let (x, y, mut reducer) = (vector(0.3), vector(0.7), Reducer::new(&part));
        let exact: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let dot = reducer.dot(&x, &y, world.comm()).expect("alone");
        assert!((dot - exact).abs() < 1e-12 * exact && (plain(&x, &y) - exact).abs() < 1e-12 * exact);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("reproducible", n), |bencher| {
            bencher.iter(|| reducer.dot(black_box(&x), black_box(&y), world.comm()));
        });
        group.bench_function(BenchmarkId::new("plain", n), |bencher| {
            bencher.iter(|| plain(black_box(&x), black_box(&y)));
        });
    }
}

fn plain(x: &[f64], y: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((x_head, x_tail), (y_head, y_tail)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x_head.iter().zip(y_head) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    lanes.iter().sum::<f64>() + x_tail.iter().zip(y_tail).map(|(x, y)| x * y).sum::<f64>()
}

fn poisson(world: &World) -> DistMatrix {
    let grid = Poisson::new_3d(POINTS, POINTS, POINTS).expect("a small grid");
    let part = Partition::of(world.comm(), grid.n());
    DistMatrix::new(part, grid.rows(0..grid.n()), world.comm()).expect("a matrix of this size")
}

fn iterations(criterion: &mut Criterion, world: &World) {
    let a = poisson(world);
    let b = rhs::scattered(a.part());
    let system = System { a: &a, m: &Identity, b: b.local() };
    // A tolerance that no residual meets.
    let stop = StopCriteria { rtol: 1e-300, iterations_max: u64::MAX, ..StopCriteria::DEFAULT };
    let mut group = criterion.benchmark_group("iteration");
    group.throughput(Throughput::Elements(a.part().n() as u64));
    for method in [Method::Cg, Method::SingleReductionCg, Method::Minres, Method::Bicgstab, Method::Gmres] {
        let options = AnyOptions { method, stop, ..AnyOptions::default() };
        let mut work = Workspace::default();
        let start = || {
            AnySolver::start(
                &options,
                &system,
                &vec![0.0; b.local().len()],
                world.comm(),
                &mut Workspace::default(),
            )
            .expect("a system that fits")
        };
        let mut solver = start();
        group.bench_function(method.to_string(), |bencher| {
            bencher.iter(|| {
                if solver.step(&system, world.comm(), &mut work).expect("alone") != Step::Continue {
                    solver = start();
                }
            });
        });
    }
}

fn sweeps(criterion: &mut Criterion, world: &World) {
    let a = poisson(world);
    let (r, mut work) = (rhs::scattered(a.part()), Workspace::default());
    let mut z = vec![0.0; r.local().len()];
    let mut group = criterion.benchmark_group("sweep");
    group.throughput(Throughput::Elements(a.part().n() as u64));
    for name in ["jacobi", "ssor", "bjacobi:ic0", "bjacobi:ilu0", "chebyshev", "amg"] {
        let precond: Precond = name.parse().expect("a name");
        let m = precond.make(&a, world.comm()).expect("a matrix that is fit");
        group.bench_function(name, |bencher| {
            bencher.iter(|| m.apply(black_box(r.local()), &mut z, world.comm(), &mut work));
        });
        let rz: f64 = r.local().iter().zip(&z).map(|(r, z)| r * z).sum();
        assert!(rz > 0.0, "{name} is positive definite");
    }
}

fn config() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = config();
    targets = kernels
}
criterion_main!(benches);
