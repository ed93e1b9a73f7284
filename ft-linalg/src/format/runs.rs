//! Neighboring rows whose columns are the same relative to the row, as those of points along a line of a grid: one list of
//! offsets for all. Entries of neighboring rows then meet neighboring elements of `x`, so rows fill vector registers without
//! a gather.
//!
//! Where all rows of a run have the same values too (constant coefficients) these are stored once: the product reads little
//! but `x`.

use super::Entries;

#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// Column minus row, for each entry of a run's rows.
    offsets: Vec<i64>,
    /// Values of a run: those of one row where all have the same; else for each [`batch`] of its rows, for each offset,
    /// those of the rows.
    vals: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    rows: usize,
    entries: usize,
    equal: bool,
}

/// Rows that are summed together, where `rows` are left of a run.
fn batch(rows: usize) -> usize {
    match rows {
        8.. => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

impl Runs {
    pub(super) fn new(entries: Entries<'_>) -> Self {
        let mut runs = Self::default();
        let rows: Vec<_> = entries.rows().collect();
        let mut first = 0;
        while let Some(&(cols, vals)) = rows.get(first) {
            let same_values = |other: &[f64]| vals.iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits());
            let moved = |row: &(usize, &(&[u32], &[f64]))| {
                let (moved, (other, _)) = *row;
                other.len() == cols.len()
                    && other
                        .iter()
                        .zip(cols)
                        .all(|(other, col)| u64::from(*other) == u64::from(*col) + moved as u64)
            };
            // A run of equal rows ends where the values change, one of different rows where the offsets do.
            let equal = rows.get(first + 1).is_none_or(|row| !moved(&(1, row)) || same_values(row.1));
            let alike = rows[first..].iter().enumerate().take_while(moved);
            let len = alike.take_while(|(_, row)| !equal || same_values(row.1)).count();
            let run = &rows[first..first + len];
            runs.offsets.extend(cols.iter().map(|col| i64::from(*col) - first as i64));
            if equal {
                runs.vals.extend(vals);
            } else {
                let mut rest = run;
                while !rest.is_empty() {
                    let together;
                    (together, rest) = rest.split_at(batch(rest.len()));
                    for k in 0..cols.len() {
                        runs.vals.extend(together.iter().map(|(_, vals)| vals[k]));
                    }
                }
            }
            runs.runs.push(Run { rows: len, entries: cols.len(), equal });
            first += len;
        }
        runs
    }

    /// How many runs, offsets and values there are.
    #[cfg(test)]
    pub(super) fn stored(&self) -> (usize, usize, usize) {
        (self.runs.len(), self.offsets.len(), self.vals.len())
    }

    /// `y = A x`.
    pub(super) fn product(&self, x: &[f64], y: &mut [f64]) {
        let (mut offsets, mut vals, mut row) = (&self.offsets[..], &self.vals[..], 0);
        for run in &self.runs {
            let here;
            (here, offsets) = offsets.split_at(run.entries);
            let end = row + run.rows;
            let y = &mut y[row..end];
            vals = if run.equal { equal_rows(row, here, vals, x, y) } else { rows(row, here, vals, x, y) };
            row = end;
        }
    }
}

/// Rows from `row` on, all with the first values of `vals`; gives back those that follow.
pub(super) fn equal_rows<'a>(
    mut row: usize,
    offsets: &[i64],
    vals: &'a [f64],
    x: &[f64],
    y: &mut [f64],
) -> &'a [f64] {
    let (vals, rest) = vals.split_at(offsets.len());
    let (many, y) = y.as_chunks_mut::<16>();
    for y in many {
        *y = sums(row, offsets, vals, |val| [*val; 16], x);
        row += 16;
    }
    let mut left = y;
    while !left.is_empty() {
        let y;
        (y, left) = left.split_at_mut(batch(left.len()));
        match y.len() {
            8 => y.copy_from_slice(&sums(row, offsets, vals, |val| [*val; 8], x)),
            4 => y.copy_from_slice(&sums(row, offsets, vals, |val| [*val; 4], x)),
            2 => y.copy_from_slice(&sums(row, offsets, vals, |val| [*val; 2], x)),
            _ => y.copy_from_slice(&sums(row, offsets, vals, |val| [*val], x)),
        }
        row += y.len();
    }
    rest
}

/// Rows from `row` on, each with values of its own; gives back those that follow.
fn rows<'a>(mut row: usize, offsets: &[i64], mut vals: &'a [f64], x: &[f64], y: &mut [f64]) -> &'a [f64] {
    let mut left = y;
    while !left.is_empty() {
        let (y, here);
        (y, left) = left.split_at_mut(batch(left.len()));
        (here, vals) = vals.split_at(offsets.len() * y.len());
        match y.len() {
            8 => y.copy_from_slice(&sums(row, offsets, here.as_chunks().0, |vals: &[f64; 8]| *vals, x)),
            4 => y.copy_from_slice(&sums(row, offsets, here.as_chunks().0, |vals: &[f64; 4]| *vals, x)),
            2 => y.copy_from_slice(&sums(row, offsets, here.as_chunks().0, |vals: &[f64; 2]| *vals, x)),
            _ => y.copy_from_slice(&sums(row, offsets, here, |val| [*val], x)),
        }
        row += y.len();
    }
    vals
}

/// Sums of `L` rows from `row` on; `values` makes their values at an offset from an element of `vals`.
#[inline(always)]
fn sums<const L: usize, V>(
    row: usize,
    offsets: &[i64],
    vals: &[V],
    values: impl Fn(&V) -> [f64; L],
    x: &[f64],
) -> [f64; L] {
    let mut sums = [0.0; L];
    for (offset, vals) in offsets.iter().zip(vals) {
        let first = (row as i64 + offset) as usize;
        let x: &[f64; L] = x[first..first + L].first_chunk().expect("a range of L elements has L elements");
        for ((sum, val), x) in sums.iter_mut().zip(values(vals)).zip(x) {
            *sum += val * x;
        }
    }
    sums
}
