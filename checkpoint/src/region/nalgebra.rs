//! Dense vectors and matrices of nalgebra: their shape unless the type has it, then their elements in column order.

use bytemuck::Pod;
use nalgebra::{DMatrix, DVector, SMatrix, Scalar};

use super::{Array, Element, Field, ProtectError, Walk};

/// Of `rows` and `columns`, column after column.
fn matrix<T: 'static>(rows: usize, columns: usize) -> Option<Array> {
    let lengths = vec![rows as u64, columns as u64];
    Some(Array { element: Element::of::<T>()?, lengths, by_columns: true })
}

impl<T: Pod + Scalar> Field for DVector<T> {
    fn blank() -> Self {
        Self::from_vec(Vec::new())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let len = walk.length(self.len(), size_of::<T>())?;
        if len != self.len() {
            *self = Self::from_element(len, T::zeroed());
        }
        walk.plain(self.as_mut_slice())
    }

    fn array(&self) -> Option<Array> {
        Array::one::<T>()?.times(self.len())
    }
}

impl<T: Pod + Scalar> Field for DMatrix<T> {
    fn blank() -> Self {
        Self::from_vec(0, 0, Vec::new())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        let (rows, columns) = (walk.length(self.nrows(), 0)?, walk.length(self.ncols(), 0)?);
        let len = walk.length(self.len(), size_of::<T>())?;
        if rows.checked_mul(columns) != Some(len) {
            return Err(walk.invalid("shape of a matrix"));
        }
        if (rows, columns) != self.shape() {
            *self = Self::from_element(rows, columns, T::zeroed());
        }
        walk.plain(self.as_mut_slice())
    }

    fn array(&self) -> Option<Array> {
        matrix::<T>(self.nrows(), self.ncols())
    }
}

/// Vectors and matrices of fixed size, `SVector` too.
impl<T: Pod + Scalar, const R: usize, const C: usize> Field for SMatrix<T, R, C> {
    const FIXED_BYTES: usize = R * C * size_of::<T>();

    fn blank() -> Self {
        Self::from_element(T::zeroed())
    }

    fn walk<W: Walk>(&mut self, walk: &mut W) -> Result<(), ProtectError> {
        walk.plain(self.as_mut_slice())
    }

    fn fixed_array() -> Option<Array> {
        if C == 1 { Array::one::<T>()?.times(R) } else { matrix::<T>(R, C) }
    }
}
