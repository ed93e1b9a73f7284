//! What is measured, and what may become of it.

use std::fmt;
use std::path::{Path, PathBuf};

/// What is done with a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// So many products.
    Product(u32),
    /// So many iterations, whatever the residual.
    Iterate(u32),
    /// As many iterations as take the residual to 1e-8, at most 10,000.
    Solve,
}

impl Task {
    /// The words that both sides know for it.
    pub(super) fn words(self) -> (&'static str, u32) {
        match self {
            Self::Product(count) => ("product", count),
            Self::Iterate(count) => ("iterate", count),
            Self::Solve => ("solve", 10_000),
        }
    }

    /// The figures that both sides print.
    pub(super) fn figures(self) -> &'static [Figure] {
        match self {
            Self::Product(_) => &[Figure::Product],
            Self::Iterate(_) => &[Figure::Iteration],
            Self::Solve => &[Figure::Setup, Figure::Solve, Figure::Iterations],
        }
    }
}

/// What a side prints, by this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Figure {
    Product,
    Iteration,
    Setup,
    Solve,
    Iterations,
    /// Of a dot product of ours,
    Reproducible,
    /// and of one that is not.
    Plain,
}

impl Figure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Iteration => "iteration",
            Self::Setup => "setup",
            Self::Solve => "solve",
            Self::Iterations => "iterations",
            Self::Reproducible => "reproducible",
            Self::Plain => "plain",
        }
    }

    /// How many of the unit that tables have are one of what is printed, and the unit.
    pub(super) fn unit(self) -> (f64, &'static str) {
        match self {
            Self::Iterations => (1.0, ""),
            Self::Setup | Self::Solve => (1e3, ", ms"),
            _ => (1e6, ", us"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One thing that both sides do.
#[derive(Debug)]
pub(super) struct Case {
    /// What it is called on the command line and in tables.
    pub(super) name: &'static str,
    pub(super) task: Task,
    /// How often in a start.
    pub(super) repeats: u32,
    /// The words of the system for our side and for theirs; without a colon a matrix of the data folder.
    pub(super) system: [&'static str; 2],
    /// Our solver and preconditioner.
    pub(super) ours: &'static str,
    /// Their options for the same.
    pub(super) petsc: &'static str,
    pub(super) ranks: &'static [usize],
    /// The most that ours may take over theirs.
    pub(super) bars: &'static [(Figure, f64)],
}

impl Case {
    /// The file that it reads.
    pub(super) fn file(&self, data: &Path) -> Option<PathBuf> {
        let [system, _] = self.system;
        let is_grid = system.contains(':');
        (!is_grid).then(|| data.join("matrices").join(format!("{system}.mtx.gz")))
    }
}

/// Which case shows what messages cost: a system so small that an iteration on two ranks is hardly anything else.
pub(super) const SMALL: &str = "small";
/// The most that messages of an iteration may take on two ranks, in microseconds.
pub(super) const MESSAGES_US: f64 = 6.0;

/// What the dot products are called on the command line.
pub(super) const DOTS_NAME: &str = "dot";
/// Lengths of the vectors of dot products, and the most that a reproducible one may take over a plain one.
pub(super) const DOTS: [(u32, f64); 2] = [(2_000_000, 1.05), (32_768, 1.25)];

const CG: &str = "-ksp_type cg -ksp_norm_type unpreconditioned -pc_type none";
const CG_JACOBI: &str = "-ksp_type cg -ksp_norm_type unpreconditioned -pc_type jacobi";
const CG_ICC: &str = "-ksp_type cg -ksp_norm_type unpreconditioned -pc_type bjacobi -sub_pc_type icc";
const CG_GAMG: &str = "-ksp_type cg -ksp_norm_type unpreconditioned -pc_type gamg";
const GMRES: &str = "-ksp_type gmres -ksp_gmres_restart 30 -pc_type none";
const BCGS: &str = "-ksp_type bcgs -ksp_pc_side right -pc_type none";
const GMRES_ILU: &str =
    "-ksp_type gmres -ksp_gmres_restart 30 -ksp_pc_side right -pc_type bjacobi -sub_pc_type ilu";
const BCGS_ILU: &str = "-ksp_type bcgs -ksp_pc_side right -pc_type bjacobi -sub_pc_type ilu";

const fn product(
    name: &'static str,
    system: &'static str,
    [count, repeats]: [u32; 2],
    bars: &'static [(Figure, f64)],
) -> Case {
    let task = Task::Product(count);
    Case { name, task, repeats, system: [system; 2], ours: "cg none", petsc: CG, ranks: &[1], bars }
}

const fn jacobi(name: &'static str, system: &'static str, repeats: u32) -> Case {
    let bars = &[(Figure::Iteration, 1.0)];
    let task = Task::Iterate(150);
    Case {
        name,
        task,
        repeats,
        system: [system; 2],
        ours: "cg jacobi",
        petsc: CG_JACOBI,
        ranks: &[1, 2],
        bars,
    }
}

/// The same with more ranks than cores.
const fn crowded(case: Case, name: &'static str) -> Case {
    Case { name, repeats: 5, ranks: &[4, 8], bars: &[(Figure::Iteration, 1.2)], ..case }
}

const fn poisson(name: &'static str, ours: &'static str, bars: &'static [(Figure, f64)]) -> Case {
    let system = [ours, "poisson:128"];
    let task = Task::Iterate(40);
    Case { name, task, repeats: 3, system, ours: "cg none", petsc: CG, ranks: &[1, 2], bars }
}

const fn to_the_end(
    name: &'static str,
    ours: &'static str,
    petsc: &'static str,
    bars: &'static [(Figure, f64)],
) -> Case {
    let system = ["poisson:128"; 2];
    Case { name, task: Task::Solve, repeats: 1, system, ours, petsc, ranks: &[2], bars }
}

const fn flow(name: &'static str, system: &'static str, ours: &'static str, petsc: &'static str) -> Case {
    let bars = &[(Figure::Iteration, 0.95)];
    let task = Task::Iterate(60);
    Case { name, task, repeats: 2, system: [system; 2], ours, petsc, ranks: &[1, 2], bars }
}

/// A flow to the end.
const fn flow_solve(case: Case, name: &'static str, ours: &'static str, petsc: &'static str) -> Case {
    let bars = &[(Figure::Solve, 0.95)];
    Case { name, task: Task::Solve, repeats: 1, ours, petsc, ranks: &[2], bars, ..case }
}

pub(super) const CASES: [Case; 32] = [
    product("product-bcsstk16", "bcsstk16", [50, 30], &[(Figure::Product, 0.8)]),
    product("product-s1rmq4m1", "s1rmq4m1", [50, 30], &[(Figure::Product, 0.5)]),
    product("product-bcsstk13", "bcsstk13", [50, 30], &[(Figure::Product, 0.75)]),
    product("product-poisson", "poisson:128", [4, 10], &[(Figure::Product, 0.95)]),
    jacobi("jacobi-bcsstk13", "bcsstk13", 20),
    jacobi("jacobi-bcsstk16", "bcsstk16", 20),
    jacobi("jacobi-s1rmq4m1", "s1rmq4m1", 20),
    jacobi("jacobi-494_bus", "494_bus", 50),
    jacobi("jacobi-1138_bus", "1138_bus", 50),
    crowded(jacobi("", "bcsstk13", 5), "crowded-bcsstk13"),
    crowded(jacobi("", "bcsstk16", 5), "crowded-bcsstk16"),
    crowded(jacobi("", "s1rmq4m1", 5), "crowded-s1rmq4m1"),
    crowded(jacobi("", "494_bus", 5), "crowded-494_bus"),
    crowded(jacobi("", "1138_bus", 5), "crowded-1138_bus"),
    Case {
        name: SMALL,
        task: Task::Iterate(30),
        repeats: 200,
        system: ["poisson2:24"; 2],
        ours: "cg none",
        petsc: CG,
        ranks: &[1, 2],
        bars: &[],
    },
    poisson("poisson-csr", "poisson:128", &[(Figure::Iteration, 0.7)]),
    poisson("poisson-free", "stencil:128", &[(Figure::Iteration, 0.35)]),
    to_the_end("solve-none", "cg none", CG, &[]),
    to_the_end("solve-blocks", "cg bjacobi:ic0", CG_ICC, &[(Figure::Solve, 0.9)]),
    to_the_end("solve-blocks-2", "cg bjacobi:ic0,domains=2", CG_ICC, &[(Figure::Solve, 0.9)]),
    to_the_end("solve-chebyshev", "cg chebyshev:4", CG_ICC, &[]),
    to_the_end(
        "solve-multigrid",
        "cg amg",
        CG_GAMG,
        &[(Figure::Setup, 1.0), (Figure::Solve, 1.0), (Figure::Iterations, 1.3)],
    ),
    flow("gmres-100^3", "convection:100", "gmres none", GMRES),
    flow("gmres-512^2", "convection2:512", "gmres none", GMRES),
    flow("bicgstab-100^3", "convection:100", "bicgstab none", BCGS),
    flow("bicgstab-512^2", "convection2:512", "bicgstab none", BCGS),
    flow_solve(flow("", "convection:100", "", ""), "solve-gmres-100^3", "gmres bjacobi:ilu0", GMRES_ILU),
    flow_solve(
        flow("", "convection:100", "", ""),
        "solve-gmres-100^3-2",
        "gmres bjacobi:ilu0,domains=2",
        GMRES_ILU,
    ),
    flow_solve(flow("", "convection2:512", "", ""), "solve-gmres-512^2", "gmres bjacobi:ilu0", GMRES_ILU),
    flow_solve(flow("", "convection:100", "", ""), "solve-bicgstab-100^3", "bicgstab bjacobi:ilu0", BCGS_ILU),
    flow_solve(
        flow("", "convection2:512", "", ""),
        "solve-bicgstab-512^2",
        "bicgstab bjacobi:ilu0",
        BCGS_ILU,
    ),
    flow_solve(
        flow("", "convection2:512", "", ""),
        "solve-bicgstab-512^2-2",
        "bicgstab bjacobi:ilu0,domains=2",
        BCGS_ILU,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_of_figures_that_are_printed_and_names_are_different() {
        for case in &CASES {
            let figures = case.task.figures();
            assert!(case.bars.iter().all(|(figure, _)| figures.contains(figure)), "{}", case.name);
            assert_eq!(case.ours.split(' ').count(), 2, "{}", case.name);
        }
        let mut names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
        assert!(!names.contains(&"") && names.contains(&SMALL));
    }

    #[test]
    fn a_system_without_a_colon_is_a_file() {
        assert_eq!(CASES[0].file("d".as_ref()), Some("d/matrices/bcsstk16.mtx.gz".into()));
        assert_eq!(CASES[3].file("d".as_ref()), None);
    }
}
