//! Entries per second of the sparse product on one core, in every format and in the one that is chosen, and of the stencils that need no matrix.
//!
//! Each product goes over the blocks of one rank, as that of a solver. Matrices of the data folder (`FT_DATA`, else `shared/data` beside the
//! repository) are left out, with a word why, where they are not there.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ft_linalg::halo::{Halo, HaloPlan};
use ft_linalg::matrix::ProductPlan;
use ft_linalg::{CsrRows, DistStencil, Format, Partition, Poisson, Stencil, matrix_market};

fn products(criterion: &mut Criterion) {
    for points in [64, 128] {
        let poisson = Poisson::new_3d(points, points, points).expect("a small grid");
        let name = format!("poisson-{points}");
        of_matrix(criterion, &name, &poisson.rows(0..poisson.n()), Some(&Stencil::from(&poisson)));
    }
    let stencil = Stencil::new_27(64, 64, 64).expect("a small grid");
    of_matrix(criterion, "27-points-64", &stencil.rows(0..stencil.n()), Some(&stencil));
    for name in ["bcsstk13", "bcsstk16", "s1rmq4m1", "1138_bus"] {
        if let Some(rows) = data_matrix(name) {
            of_matrix(criterion, name, &rows, None);
        }
    }
}

/// The product with `rows` in all formats, and without them where they are those of `stencil`; all are to give the same bits.
fn of_matrix(criterion: &mut Criterion, name: &str, rows: &CsrRows, stencil: Option<&Stencil>) {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(rows.nnz() as u64));
    let part = Partition::new(rows.len(), 1, 0);
    let x: Vec<f64> = (0..rows.len()).map(|i| 1.0 / (i as f64 + 0.3)).collect();
    let mut exact = vec![0.0; rows.len()];
    rows.product_serial(&x, &mut exact);

    let mut time = |name: &str, plan: &ProductPlan| {
        let mut y = vec![f64::NAN; rows.len()];
        let mut product = || {
            for block in part.local_blocks() {
                plan.product(rows, block.clone(), black_box(&x), Halo::NONE, &mut y[block]);
            }
        };
        product();
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| bencher.iter(&mut product));
        assert!(y.iter().zip(&exact).all(|(y, exact)| y.to_bits() == exact.to_bits()), "{name}");
    };
    let stored = |format| {
        let halo = HaloPlan::assemble(&part, vec![], &[]).expect("nobody asks");
        ProductPlan::new(&part, rows, halo, format).expect("a matrix of this size")
    };
    for format in Format::ALL {
        time(format.name(), &stored(Some(format)));
    }
    let chosen = stored(None);
    let format = chosen.format().expect("rows are stored");
    time(&format!("chosen-{format}"), &chosen);
    if let Some(stencil) = stencil {
        let alone = ft_sim::ranks(1, |comm| DistStencil::new(stencil, comm).map(|a| a.plan().clone()));
        time("stencil", alone.into_iter().next().expect("one rank").as_ref().expect("of one rank"));
    }
    group.finish();
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
