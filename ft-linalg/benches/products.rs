//! Entries per second of the sparse product on one core: in every format, in the one that is chosen, and of the stencils that
//! need no matrix.
//!
//! Matrices of the data folder (`FT_DATA`, else `shared/data` beside the repository) are left out, with a word why, where they
//! are not there.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_comm::{Communicator, World};
use ft_linalg::gallery::Laplacian27;
use ft_linalg::{
    CsrRows, DistMatrix, DistStencil, Format, LinearOperator, Partition, Poisson, Stencil, Workspace,
    matrix_market,
};

fn products(criterion: &mut Criterion) {
    // Alone, as no launcher has started this.
    let world = World::init().expect("a world of one rank");
    let comm = world.comm();
    for points in [64, 128] {
        let poisson = Poisson::new_3d(points, points, points).expect("a small grid");
        let (rows, stencil) = (poisson.rows(0..poisson.n()), Stencil::from(&poisson));
        of_matrix(criterion, &format!("poisson-{points}"), rows, Some(stencil), comm);
    }
    let laplacian = Laplacian27::new(64, 64, 64).expect("a small grid");
    let (rows, stencil) = (laplacian.rows(0..laplacian.n()), Stencil::from(&laplacian));
    of_matrix(criterion, "27-points-64", rows, Some(stencil), comm);
    for name in ["bcsstk13", "bcsstk16", "s1rmq4m1", "1138_bus"] {
        if let Some(rows) = data_matrix(name) {
            of_matrix(criterion, name, rows, None, comm);
        }
    }
}

/// The product with `rows` in all formats, and without them where they are those of `stencil`; all give the same bits.
fn of_matrix(
    criterion: &mut Criterion,
    name: &str,
    rows: CsrRows,
    stencil: Option<Stencil>,
    comm: &Communicator,
) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(rows.nnz() as u64));
    let x: Vec<f64> = (0..rows.len()).map(|i| 1.0 / (i as f64 + 0.3)).collect();
    let mut exact = vec![0.0; rows.len()];
    rows.product_serial(&x, &mut exact);
    let case = Case { x, exact, comm };

    let mut a = DistMatrix::new(Partition::of(comm, rows.len()), rows, comm).expect("a matrix of this size");
    let chosen = a.plan().expect("a new matrix").format().expect("rows are stored");
    case.time(&mut group, &format!("chosen-{chosen}"), &a);
    for format in Format::ALL {
        a.store_as(Some(format)).expect("a new matrix");
        case.time(&mut group, format.name(), &a);
    }
    if let Some(stencil) = stencil {
        case.time(&mut group, "stencil", &DistStencil::new(stencil, comm).expect("of one rank"));
    }
    group.finish();
}

struct Case<'a> {
    x: Vec<f64>,
    exact: Vec<f64>,
    comm: &'a Communicator,
}

impl Case<'_> {
    fn time(&self, group: &mut BenchmarkGroup<'_, WallTime>, name: &str, a: &dyn LinearOperator) {
        let (mut y, mut work) = (vec![f64::NAN; self.x.len()], Workspace::default());
        let mut product = || a.apply(black_box(&self.x), &mut y, self.comm, &mut work).expect("alone");
        product();
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| bencher.iter(&mut product));
        assert!(y.iter().zip(&self.exact).all(|(y, exact)| y.to_bits() == exact.to_bits()), "{name}");
    }
}

fn data_matrix(name: &str) -> Option<CsrRows> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("FT_DATA").map_or_else(beside, PathBuf::from);
    let path = folder.join("matrices").join(format!("{name}.mtx.gz"));
    if !path.exists() {
        println!("skipped: {} is not there, set FT_DATA to the data folder", path.display());
        return None;
    }
    let matrix = matrix_market::read_matrix(&path).expect("a data file that can be read");
    let n = matrix.require_square().expect("a square matrix");
    Some(matrix.to_rows(0..n).expect("rows of that matrix"))
}

fn config() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = config();
    targets = products
}
criterion_main!(benches);
