//! A solver of one's own, BiCGSTAB, on a system that is not symmetric. It is protected like those of the crate.
//!
//! `ftrun -n 4 --kill 2@step=20 target/release/examples/own_solver`

use ft_checkpoint::{Protect, Protection, Redistribute};
use ft_comm::{Communicator, MainError, World};
use ft_linalg::solver::{Beginning, Course, begin};
use ft_linalg::stop::Quantity;
use ft_linalg::vector::{axpy, xpby};
use ft_linalg::{
    CsrRows, DistMatrix, DistVector, LinalgError, Partition, Precond, Problem, Protected, Solver, Step,
    StopCriteria, System, Workspace,
};

#[derive(Clone, Default, Protect, Redistribute)]
struct Own {
    #[protect(distributed)]
    x: Vec<f64>,
    #[protect(distributed)]
    r: Vec<f64>,
    #[protect(constant, distributed)]
    shadow: Vec<f64>,
    #[protect(distributed)]
    p: Vec<f64>,
    #[protect(replicated)]
    rho: f64,
    #[protect(nested, replicated)]
    course: Course,
}

impl Solver for Own {
    type Options = StopCriteria;
    #[rustfmt::skip]
    fn start(stop: &StopCriteria, system: &System<'_>, x: &[f64], comm: &Communicator, work: &mut Workspace) -> Result<Self, LinalgError> {
        let Beginning { x, r, course } = begin(stop, system, x, comm, work)?;
        let [rho] = work.dots(system.a.part(), [(&r, &r)], comm)?;
        Ok(Self { x, shadow: r.clone(), p: r.clone(), r, rho, course })
    }
    #[rustfmt::skip]
    fn step(&mut self, system: &System<'_>, comm: &Communicator, work: &mut Workspace) -> Result<Step, LinalgError> {
        if let Some(done) = self.course.done() {
            return Ok(done);
        }
        let (a, m, part) = (system.a, system.m, system.a.part());
        let [mut y, mut v, mut z, mut t] = [(); 4].map(|()| work.take(self.x.len()));
        m.apply(&self.p, &mut y, comm, work)?;
        a.apply(&y, &mut v, comm, work)?;
        let [curvature] = work.dots(part, [(&self.shadow, &v)], comm)?;
        if let Some(done) = self.course.need_nonzero(Quantity::ShadowCurvature, curvature) {
            return Ok(done);
        }
        let alpha = self.rho / curvature;
        axpy(alpha, &y, &mut self.x);
        axpy(-alpha, &v, &mut self.r);
        m.apply(&self.r, &mut z, comm, work)?;
        a.apply(&z, &mut t, comm, work)?;
        let [ts, tt] = work.dots(part, [(&t, &self.r), (&t, &t)], comm)?;
        let omega = if tt > 0.0 { ts / tt } else { 0.0 };
        axpy(omega, &z, &mut self.x);
        axpy(-omega, &t, &mut self.r);
        let [rho, rr] = work.dots(part, [(&self.shadow, &self.r), (&self.r, &self.r)], comm)?;
        axpy(-omega, &v, &mut self.p);
        xpby(&self.r, rho / self.rho * (alpha / omega), &mut self.p);
        self.rho = rho;
        [y, v, z, t].into_iter().for_each(|vector| work.give(vector));
        Ok(self.course.advance(rr.sqrt()))
    }
    fn x(&self) -> &[f64] {
        &self.x
    }
    fn course(&self) -> &Course {
        &self.course
    }
}

/// A chain whose links pull in one direction.
fn matrix(n: usize, comm: &Communicator) -> Result<DistMatrix, LinalgError> {
    let part = Partition::of(comm, n);
    let (mut row_ptr, mut cols, mut vals) = (vec![0], vec![], vec![]);
    for row in part.range() {
        for (col, val) in [(row.wrapping_sub(1), -1.2), (row, 2.05), (row + 1, -0.8)] {
            if col < n {
                cols.push(col as u64);
                vals.push(val);
            }
        }
        row_ptr.push(cols.len());
    }
    DistMatrix::new(part, CsrRows::new(row_ptr, cols, vals, n)?, comm)
}

fn main() -> Result<(), MainError> {
    let world = World::init()?;
    let protection = Protection::from_launcher(&world)?;
    let solved = Protected::<Own>::new(StopCriteria::default(), Precond::Jacobi, |world| {
        let a = matrix(2000, world.comm())?;
        let part = a.part().clone();
        let b = DistVector::from_fn(part.clone(), |row| (row.0 as f64).sin());
        Ok(Problem { a, b, x: DistVector::zeros(part) })
    })
    .solve(world, protection)?;
    if let Some(solved) = solved {
        assert!(solved.solution.reason.is_converged());
        let bits = solved.x.local().iter().fold(0, |bits: u64, x| bits.rotate_left(7) ^ x.to_bits());
        println!("rank {}: {}, x has the bits {bits:016x}", solved.rank, solved.solution.reason);
    }
    Ok(())
}
