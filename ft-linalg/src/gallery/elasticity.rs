//! A block of elastic material that is clamped at one face: trilinear hexahedra, three unknowns (displacements) a node,
//! put together by [`Assembly`].
//!
//! Source: Hughes: The Finite Element Method, Dover, 2000, sections 2.7 and 3.5.

use ft_comm::Communicator;

use super::grid::Grid;
use crate::{Assembly, DistRows, LinalgError};

/// Young's modulus 1; Poisson's ratio.
const NU: f64 = 0.3;
/// Lame's constants.
const LAMBDA: f64 = NU / ((1.0 + NU) * (1.0 - 2.0 * NU));
const MU: f64 = 0.5 / (1.0 + NU);

/// Linear elasticity on `nx * ny * nz` cubes of edge 1. Unknown `3 p + c` is component `c` of the displacement of node `p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elasticity {
    cells: Grid,
    /// The nodes that can move.
    nodes: Grid,
    clamped: bool,
}

impl Elasticity {
    /// Clamped at the face x = 0, whose nodes are no unknowns: symmetric positive definite, `3 nx (ny + 1) (nz + 1)`
    /// rows.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 nodes.
    pub fn clamped(nx: usize, ny: usize, nz: usize) -> Result<Self, LinalgError> {
        let nodes = Grid::new([nx, ny.saturating_add(1), nz.saturating_add(1)])?;
        Ok(Self { cells: Grid::new([nx, ny, nz])?, nodes, clamped: true })
    }

    /// Held nowhere: singular, as rigid motions ([`Elasticity::rigid_motion`]) cost nothing.
    ///
    /// # Errors
    /// [`LinalgError::TooLarge`] above 2^40 nodes.
    pub fn free(nx: usize, ny: usize, nz: usize) -> Result<Self, LinalgError> {
        let nodes = Grid::new([nx, ny, nz].map(|cells| cells.saturating_add(1)))?;
        Ok(Self { cells: Grid::new([nx, ny, nz])?, nodes, clamped: false })
    }

    /// Rows of the matrix.
    pub fn n(&self) -> usize {
        3 * self.nodes.n()
    }

    /// The stiffness matrix, each rank having computed as many cells as any other. Collective, as [`Assembly::finish`],
    /// with 576 contributions a cell.
    ///
    /// # Errors
    /// [`LinalgError::Comm`].
    pub fn matrix(&self, comm: &Communicator) -> Result<DistRows, LinalgError> {
        let element = stiffness();
        let mut a = Assembly::new(self.n(), self.n());
        let share = |rank: usize| (rank as u128 * self.cells.n() as u128 / comm.size() as u128) as usize;
        for cell in share(comm.rank())..share(comm.rank() + 1) {
            let dofs = self.unknowns(cell);
            for (row, values) in dofs.iter().zip(element.chunks_exact(24)) {
                let Some(row) = row else { continue };
                let entries = dofs.iter().zip(values).filter_map(|(col, value)| Some(((*col)?, *value)));
                entries.for_each(|(col, value)| a.add_keyed(cell as u64, *row, col, value));
            }
        }
        a.finish(comm)
    }

    /// The unknowns of a cell's corners; `None` where it is clamped.
    fn unknowns(&self, cell: usize) -> [Option<usize>; 24] {
        let ([nx, ny, _], [i, j, k]) = (self.nodes.shape(), self.cells.point(cell));
        std::array::from_fn(|dof| {
            let (corner, component) = (dof / 3, dof % 3);
            let i = (i + (corner & 1)).checked_sub(usize::from(self.clamped))?;
            let (j, k) = (j + (corner >> 1 & 1), k + (corner >> 2));
            Some(3 * ((k * ny + j) * nx + i) + component)
        })
    }

    /// Element `row` of a rigid motion: shifts along the three axes, then turns about them. The near kernel that
    /// multigrid for elasticity asks for.
    ///
    /// # Panics
    /// If `motion` is not below 6 or there is no such row.
    pub fn rigid_motion(&self, motion: usize, row: usize) -> f64 {
        assert!(motion < 6 && row < self.n(), "motion {motion} of 6, row {row} of {}", self.n());
        let [i, j, k] = self.nodes.point(row / 3);
        let at = [i + usize::from(self.clamped), j, k].map(|coordinate| coordinate as f64);
        let component = row % 3;
        let Some(axis) = motion.checked_sub(3) else { return f64::from(u8::from(component == motion)) };
        // The axis times the place.
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        if component == next {
            -at[last]
        } else if component == last {
            at[next]
        } else {
            0.0
        }
    }
}

/// The stiffness of a cube of edge 1, row by row; symmetric to the last bit. Two Gauss points in each direction.
fn stiffness() -> [f64; 24 * 24] {
    let mut element = [0.0; 24 * 24];
    let points = [0.5 - 0.5 / 3f64.sqrt(), 0.5 + 0.5 / 3f64.sqrt()];
    for point in 0..8 {
        let at = [points[point & 1], points[point >> 1 & 1], points[point >> 2]];
        // The derivatives of each corner's shape function.
        let gradients: [[f64; 3]; 8] = std::array::from_fn(|corner| {
            let high = [corner & 1, corner >> 1 & 1, corner >> 2].map(|bit| bit == 1);
            let value = |d: usize| if high[d] { at[d] } else { 1.0 - at[d] };
            let slope = |d: usize| if high[d] { 1.0 } else { -1.0 };
            std::array::from_fn(|d| (0..3).map(|e| if e == d { slope(e) } else { value(e) }).product())
        });
        for row in 0..24 {
            for col in row..24 {
                let (a, b) = (gradients[row / 3], gradients[col / 3]);
                let (i, j) = (row % 3, col % 3);
                let shear = if i == j { a.iter().zip(&b).map(|(a, b)| a * b).sum() } else { 0.0 };
                element[24 * row + col] += (LAMBDA * a[i] * b[j] + MU * (a[j] * b[i] + shear)) / 8.0;
            }
        }
    }
    for row in 0..24 {
        (0..row).for_each(|col| element[24 * row + col] = element[24 * col + row]);
    }
    element
}
