//! Time steps of the 2D acoustic wave equation of constant density.
//!
//! `u_tt = v^2 (u_xx + u_zz + s(t) delta(x - x_s))` by central differences, of second order in time and 2 to 16 in
//! space, in f32. The model is surrounded by absorbing layers of 20 points, with the velocities at its edges, so that
//! every point of it is physical; up to 31 rows of them lie between the model and the layer below it. They send back at most -60 dB at orders from 4, -50 dB at order 2. There is no free
//! surface.
//!
//! Results are the same bits on every processor: vectors of any width do the same additions and multiplications in
//! the same order, and none are fused.
//!
//! | | per point and step, order `2 R` |
//! |---|---|
//! | operations | `5 R + 7` |
//! | memory that is read or written when columns stay in the cache | 16 bytes |
//! | time, one core | see the `seismic` benchmark |

mod aligned;
mod columns;
mod grid;
mod kernel;
mod layers;
mod vectors;

use pulp::{Arch, WithSimd};

use crate::boundary::{Damping, LAYER, STRIP};
use crate::check::{CheckError, check_stability, velocity_range};
use crate::stencil::{first_derivative, radius, second_derivative};
use crate::{Model, Node};
pub use aligned::Aligned;
use columns::{Columns, PSI_STRIP};
use grid::Grid;
use kernel::{Advance, Slopes, Weights};

/// Points from which a step is shared by the threads of a rank: it takes some 10 microseconds.
const SHARED: usize = 12 << 10;
/// Pieces of a step for each thread.
const PIECES: usize = 2;

/// What is needed for time steps in one model. It does not change: a run is this and a [`Wavefield`].
#[derive(Clone, Debug)]
pub struct Propagator {
    grid: Grid,
    /// Points of the model in x and z.
    model: [usize; 2],
    /// `v^2 dt^2 / h^2` at every point, laid out as the fields are; 0 outside the grid.
    factor: Aligned,
    weights: Weights,
    damping: Damping,
    /// A column of zeros, for columns that a layer does not have.
    zeros: Vec<f32>,
}

/// All that a time step changes, in plain vectors: whoever saves and restores these can go on from there.
///
/// Made by [`Propagator::still`]; [`Wavefield::default`] is an empty one to be restored into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wavefield {
    current: Aligned,
    previous: Aligned,
    psi_x: Aligned,
    zeta_x: Aligned,
    psi_z: Aligned,
    zeta_z: Aligned,
}

impl Wavefield {
    /// The vectors: the field now, one step ago, and four of the absorbing layers. Each keeps its length during a run.
    pub fn parts(&self) -> [&Aligned; 6] {
        [&self.current, &self.previous, &self.psi_x, &self.zeta_x, &self.psi_z, &self.zeta_z]
    }

    /// The vectors of [`Wavefield::parts`], to restore them. Check with [`Propagator::fits`] afterwards.
    pub fn parts_mut(&mut self) -> [&mut Aligned; 6] {
        [
            &mut self.current,
            &mut self.previous,
            &mut self.psi_x,
            &mut self.zeta_x,
            &mut self.psi_z,
            &mut self.zeta_z,
        ]
    }
}

impl Propagator {
    /// For time steps of `dt` seconds and space order `order` (even, 2 to 16). O(points of the grid).
    ///
    /// # Errors
    /// When the order does not exist, the model is not one, or `dt` is not stable in it.
    pub fn new(model: &Model, order: usize, dt: f64) -> Result<Self, CheckError> {
        check_stability(model, order, dt)?;
        Self::unchecked(model, order, dt)
    }

    /// As [`Propagator::new`], stable or not.
    fn unchecked(model: &Model, order: usize, dt: f64) -> Result<Self, CheckError> {
        let (v_min, v_max) = velocity_range(model)?;
        let grid = Grid::new(model.nx + 2 * LAYER, model.nz + 2 * LAYER, radius(order)?);
        let mut factor = Aligned::zeros(grid.len);
        for ix in 0..grid.nx {
            for iz in 0..grid.nz {
                let nearest = Node {
                    ix: ix.saturating_sub(LAYER).min(model.nx - 1),
                    iz: iz.saturating_sub(LAYER).min(model.nz - 1),
                };
                let courant = f64::from(model.at(nearest)) * dt / model.spacing;
                factor[grid.column(ix) + iz] = (courant * courant) as f32;
            }
        }
        let weights = Weights::new(&second_derivative(order)?, &first_derivative(order)?);
        let damping = Damping::new(model.spacing, v_min, v_max, dt);
        let zeros = vec![0.0; grid.nz];
        Ok(Self { grid, model: [model.nx, model.nz], factor, weights, damping, zeros })
    }

    /// The field before a shot: zero everywhere.
    pub fn still(&self) -> Wavefield {
        let [current, previous, psi_x, zeta_x, psi_z, zeta_z] = self.lengths().map(Aligned::zeros);
        Wavefield { current, previous, psi_x, zeta_x, psi_z, zeta_z }
    }

    /// Whether the vectors of `field` have the lengths that this propagator works on.
    pub fn fits(&self, field: &Wavefield) -> bool {
        field.parts().map(|part| part.len()) == self.lengths()
    }

    /// Points of the model and of the absorbing layers around it. A step computes up to 31 more in each column.
    pub fn points(&self) -> usize {
        self.model.map(|points| points + 2 * LAYER).iter().product()
    }

    /// One time step: `u(t + dt) = 2 u(t) - u(t - dt) + v^2 dt^2 (laplacian u(t) + amplitude delta(x - source))`.
    ///
    /// When `amplitude` is the wavelet at `t = k dt` in step `k = 0, 1, ..`, the field after step `k` is the one at
    /// `(k + 1) dt`. In a homogeneous medium it is the wavelet convolved with the Green's function
    /// `H(t - r/v) / (2 pi sqrt(t^2 - r^2/v^2))`.
    ///
    /// # Panics
    /// If the source lies outside the model or the field does not fit.
    pub fn step(&self, field: &mut Wavefield, source: Node, amplitude: f32) {
        assert!(self.fits(field), "a wave field of another model or order");
        let processor = Instructions(Arch::new());
        match self.grid.radius {
            1 => self.advance::<1>(field, processor),
            2 => self.advance::<2>(field, processor),
            3 => self.advance::<3>(field, processor),
            4 => self.advance::<4>(field, processor),
            5 => self.advance::<5>(field, processor),
            6 => self.advance::<6>(field, processor),
            7 => self.advance::<7>(field, processor),
            _ => self.advance::<8>(field, processor),
        }
        let source = self.index(source);
        field.previous[source] += self.factor[source] * amplitude;
        std::mem::swap(&mut field.current, &mut field.previous);
    }

    /// All of a step but the source, by the threads of the rank: the next field in the place of the one before.
    fn advance<const R: usize>(&self, field: &mut Wavefield, by: impl Dispatch) {
        let shared = self.grid.nx * self.grid.nz >= SHARED && ft_threads::threads() > 1;
        let pieces = if shared { PIECES * ft_threads::threads() } else { 1 };
        let Wavefield { current, previous, psi_x, zeta_x, psi_z, zeta_z } = field;
        let current = &**current;

        let layer = LAYER.div_ceil(pieces.div_ceil(2));
        let parts = psi_x[..].chunks_mut(layer * self.grid.nz).enumerate();
        ft_threads::for_each(parts.collect(), |(at, psi_x)| {
            by.dispatch(Slopes::<R> { propagator: self, current, first: at * layer, psi_x });
        });

        let columns = Columns {
            range: 0..self.grid.nx,
            next: &mut previous[self.grid.column(0)..],
            zeta_x: &mut zeta_x[..],
            psi_z: &mut psi_z[..],
            zeta_z: &mut zeta_z[..],
        };
        let psi_x = &psi_x[..];
        ft_threads::for_each(columns.pieces(pieces, &self.grid), |columns| {
            by.dispatch(Advance::<R> { propagator: self, current, psi_x, columns });
        });
    }

    /// The field at a node, at the time that [`Propagator::step`] has come to.
    ///
    /// # Panics
    /// If the node lies outside the model or the field does not fit.
    pub fn sample(&self, field: &Wavefield, node: Node) -> f32 {
        field.current[self.index(node)]
    }

    /// Where a node of the model is in the fields.
    fn index(&self, node: Node) -> usize {
        let [nx, nz] = self.model;
        assert!(node.ix < nx && node.iz < nz, "{node:?} is outside the model of {nx} x {nz} points");
        self.grid.column(node.ix + LAYER) + node.iz + LAYER
    }

    /// Lengths of [`Wavefield::parts`].
    fn lengths(&self) -> [usize; 6] {
        let Grid { nx, nz, len, .. } = self.grid;
        [len, len, 2 * LAYER * nz, 2 * LAYER * nz, nx * 2 * PSI_STRIP, nx * 2 * STRIP]
    }
}

/// Runs a loop with the instructions that it has chosen.
trait Dispatch: Sync {
    fn dispatch(&self, loops: impl WithSimd<Output = ()>);
}

/// The widest vectors of this processor.
struct Instructions(Arch);

impl Dispatch for Instructions {
    fn dispatch(&self, loops: impl WithSimd<Output = ()>) {
        self.0.dispatch(loops);
    }
}

/// A whole shot: the traces at `receivers` one after the other, as many samples each as the wavelet has. Sample `k` is
/// the field at `(k + 1) dt`.
///
/// # Panics
/// If the source or a receiver lies outside the model.
pub fn shoot(propagator: &Propagator, source: Node, receivers: &[Node], wavelet: &[f32]) -> Vec<f32> {
    let mut traces = vec![0.0; receivers.len() * wavelet.len()];
    let mut field = propagator.still();
    for (sample, &amplitude) in wavelet.iter().enumerate() {
        propagator.step(&mut field, source, amplitude);
        for (receiver, &node) in receivers.iter().enumerate() {
            traces[receiver * wavelet.len() + sample] = propagator.sample(&field, node);
        }
    }
    traces
}

#[cfg(test)]
mod tests {
    use ft_threads::Team;

    use super::*;
    use crate::check::largest_stable_dt;
    use crate::ricker;

    /// The largest amplitude after 500 steps in a homogeneous model, at a part of the stability limit.
    fn amplitude_after_500_steps(order: usize, part_of_limit: f64) -> f32 {
        let model = Model { nx: 30, nz: 25, spacing: 10.0, velocity: vec![2000.0; 750] };
        let dt = part_of_limit * largest_stable_dt(&model, order).unwrap();
        let propagator = Propagator::unchecked(&model, order, dt).unwrap();
        let mut field = propagator.still();
        for amplitude in ricker(15.0, dt, 500) {
            propagator.step(&mut field, Node { ix: 14, iz: 12 }, amplitude);
        }
        let finite = field.current.iter().all(|u| u.is_finite());
        if finite { field.current.iter().fold(0.0, |largest, u| largest.max(u.abs())) } else { f32::INFINITY }
    }

    #[test]
    fn the_stability_limit_is_where_it_is_said_to_be() {
        for order in (2..=16).step_by(2) {
            let below = amplitude_after_500_steps(order, 0.999);
            assert!(below < 1e-2, "order {order} reaches {below} below the limit");
            let above = amplitude_after_500_steps(order, 1.05);
            assert!(above > 1e6, "order {order} is at {above} above the limit");
        }
    }

    #[test]
    fn what_lies_outside_the_grid_stays_zero() {
        let model = Model { nx: 3, nz: 6, spacing: 10.0, velocity: vec![2000.0; 18] };
        let propagator = Propagator::new(&model, 8, 0.002).unwrap();
        let mut field = propagator.still();
        for amplitude in ricker(15.0, 0.002, 300) {
            propagator.step(&mut field, Node { ix: 0, iz: 5 }, amplitude);
        }
        let grid = &propagator.grid;
        let inside =
            |i: &usize| (0..grid.nx).any(|ix| (grid.column(ix)..grid.column(ix) + grid.nz).contains(i));
        assert!((0..grid.len).filter(|i| !inside(i)).all(|i| field.current[i] == 0.0));
        assert!((0..grid.len).filter(inside).any(|i| field.current[i] != 0.0));
    }

    struct Narrow;

    impl Dispatch for Narrow {
        fn dispatch(&self, loops: impl WithSimd<Output = ()>) {
            loops.with_simd(pulp::Scalar);
        }
    }

    fn steep() -> Propagator {
        let velocity = (0..142 * 95).map(|i| 1500.0 + (i * i % 2971) as f32).collect();
        let model = Model { nx: 142, nz: 95, spacing: 10.0, velocity };
        Propagator::new(&model, 16, 0.001).unwrap()
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        let propagator = steep();
        let run = |threads: usize| {
            let mut field = propagator.still();
            let wavelet = ricker(25.0, 0.001, 250);
            let step = |amplitude| propagator.step(&mut field, Node { ix: 20, iz: 30 }, amplitude);
            Team::new(threads).install(|| wavelet.into_iter().for_each(step));
            field.parts().map(|part| part.iter().map(|value| value.to_bits()).collect::<Vec<_>>())
        };
        let one = run(1);
        assert!(one.iter().all(|part| part.iter().any(|bits| *bits != 0)));
        (2..6).for_each(|threads| assert!(run(threads) == one, "{threads} threads"));
    }

    /// Vectors of one number against the widest ones of this processor.
    #[test]
    fn vectors_of_any_width_give_the_same_bits() {
        let velocity = (0..42 * 35).map(|i| 1500.0 + (i * i % 2971) as f32).collect();
        let model = Model { nx: 42, nz: 35, spacing: 10.0, velocity };
        let propagator = Propagator::new(&model, 16, 0.001).unwrap();
        let source = Node { ix: 20, iz: 30 };
        let (mut wide, mut narrow) = (propagator.still(), propagator.still());
        for amplitude in ricker(25.0, 0.001, 250) {
            propagator.step(&mut wide, source, amplitude);
            propagator.advance::<8>(&mut narrow, Narrow);
            let source = propagator.index(source);
            narrow.previous[source] += propagator.factor[source] * amplitude;
            std::mem::swap(&mut narrow.current, &mut narrow.previous);
        }
        for (wide, narrow) in wide.parts().into_iter().zip(narrow.parts()) {
            assert!(wide.iter().any(|&v| v != 0.0));
            assert!(wide.iter().zip(narrow.iter()).all(|(wide, narrow)| wide.to_bits() == narrow.to_bits()));
        }
    }

    #[test]
    fn a_field_of_another_propagator_does_not_fit() {
        let model = Model { nx: 5, nz: 6, spacing: 10.0, velocity: vec![2000.0; 30] };
        let [eight, four] = [8, 4].map(|order| Propagator::new(&model, order, 0.001).unwrap());
        assert!(eight.fits(&eight.still()));
        assert!(!eight.fits(&four.still()));
        assert!(!eight.fits(&Wavefield::default()));
    }
}
