//! The loop of all formats with lists of columns: groups of rows that have one list, several groups at once.
//!
//! The additions of a row form a chain, each link of which waits for the one before. Rows of a group are independent of each
//! other and share what is read of `x`; where these are few, groups side by side fill the time.

/// `y = A x` for groups of `K` rows, `ABREAST` groups at once. Group `i` has `lens[i]` columns; for each of these `vals` has
/// `K` values, one for each of its rows.
///
/// # Panics
/// If `x` is shorter than a column says, or lengths contradict each other.
#[inline(always)]
pub(super) fn product<const K: usize, const ABREAST: usize>(
    lens: &[u32],
    mut cols: &[u32],
    vals: &[f64],
    x: &[f64],
    y: &mut [f64],
) {
    let (mut vals, _) = vals.as_chunks::<K>();
    let (y, _) = y.as_chunks_mut::<K>();
    assert_eq!(y.len(), lens.len());
    let (lens, last_lens) = lens.as_chunks::<ABREAST>();
    let (y, last_y) = y.as_chunks_mut::<ABREAST>();
    for (lens, y) in lens.iter().zip(y) {
        *y = sums(lens, &mut cols, &mut vals, x);
    }
    for (len, y) in last_lens.iter().zip(last_y) {
        [*y] = sums(&[*len], &mut cols, &mut vals, x);
    }
}

/// The sums of the next groups, whose entries are cut off the front.
#[inline(always)]
fn sums<const K: usize, const ABREAST: usize>(
    lens: &[u32; ABREAST],
    cols: &mut &[u32],
    vals: &mut &[[f64; K]],
    x: &[f64],
) -> [[f64; K]; ABREAST] {
    let cols = lens.map(|len| front(cols, len));
    let vals = lens.map(|len| front(vals, len));
    let common = lens.iter().fold(u32::MAX, |least, len| least.min(*len)) as usize;
    let mut sums = [[0.0; K]; ABREAST];
    // Of equal length, so that the loop has no bounds to check but that of `x`.
    let (first_cols, first_vals) = (cols.map(|cols| &cols[..common]), vals.map(|vals| &vals[..common]));
    for k in 0..common {
        for group in 0..ABREAST {
            let x = x[first_cols[group][k] as usize];
            add(&mut sums[group], &first_vals[group][k], x);
        }
    }
    for group in 0..ABREAST {
        for (col, vals) in cols[group][common..].iter().zip(&vals[group][common..]) {
            add(&mut sums[group], vals, x[*col as usize]);
        }
    }
    sums
}

/// Cuts off the first `len` elements.
#[inline(always)]
fn front<'a, T>(list: &mut &'a [T], len: u32) -> &'a [T] {
    let (front, rest) = list.split_at(len as usize);
    *list = rest;
    front
}

#[inline(always)]
fn add<const K: usize>(sums: &mut [f64; K], vals: &[f64; K], x: f64) {
    for row in 0..K {
        sums[row] += vals[row] * x;
    }
}
