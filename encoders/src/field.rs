//! The field GF(2^8) with the polynomial `0x11d`: that of RAID-6, of Intel's ISA-L and of `reed-solomon-erasure`.
//!
//! Addition is XOR. `2` generates all elements but 0, so products are sums of logarithms. All tables are made by the
//! compiler.

/// What `x^8` is, the leading term left out: `x^4 + x^3 + x^2 + 1`.
const POLYNOMIAL: u8 = 0x1d;

/// `EXP[i]` is `2^i`; twice over, so that sums of two logarithms need no reduction.
const EXP: [u8; 510] = {
    let mut exp = [0; 510];
    let (mut i, mut power) = (0, 1);
    while i < 510 {
        exp[i] = power;
        power = double(power);
        i += 1;
    }
    exp
};

/// `LOG[2^i]` is `i`; 0 has none.
const LOG: [u8; 256] = {
    let mut log = [0; 256];
    let mut i = 0;
    while i < 255 {
        log[EXP[i] as usize] = i as u8;
        i += 1;
    }
    log
};

/// `2 a`.
pub(crate) const fn double(a: u8) -> u8 {
    (a << 1) ^ (if a >= 0x80 { POLYNOMIAL } else { 0 })
}

/// `a b`.
pub(crate) const fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// `1 / a`.
///
/// # Panics
/// `a` is 0.
pub(crate) const fn inverse(a: u8) -> u8 {
    assert!(a != 0, "0 has no inverse");
    EXP[255 - LOG[a as usize] as usize]
}

/// `NIBBLES[a]`: `a` times `0, 1, .. 15`, then `a` times `0, 16, .. 240`. Any product is the sum of one of each
/// (Plank, Greenan and Miller, FAST 2013).
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) static NIBBLES: [[u8; 32]; 256] = {
    let mut tables = [[0; 32]; 256];
    let mut a = 0;
    while a < 256 {
        let mut x = 0;
        while x < 16 {
            tables[a][x] = product(a as u8, x as u8);
            tables[a][16 + x] = product(a as u8, (x as u8) << 4);
            x += 1;
        }
        a += 1;
    }
    tables
};

/// `AFFINE[a]`: multiplication by `a` as a matrix of bits, as `GF2P8AFFINEQB` takes it: row `i` makes bit `i` of the
/// product and is byte `7 - i`; its bit `j` says whether bit `j` of the factor is in it.
#[cfg(target_arch = "x86_64")]
pub(crate) static AFFINE: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut a = 0;
    while a < 256 {
        let mut column = 0;
        while column < 8 {
            let image = product(a as u8, 1 << column);
            let mut row = 0;
            while row < 8 {
                matrices[a] |= ((image >> row & 1) as u64) << (8 * (7 - row) + column);
                row += 1;
            }
            column += 1;
        }
        a += 1;
    }
    matrices
};

#[cfg(test)]
mod tests {
    use super::*;

    /// School multiplication of polynomials over GF(2).
    fn by_hand(a: u8, b: u8) -> u8 {
        let mut multiple = a;
        let mut sum = 0;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                sum ^= multiple;
            }
            multiple = double(multiple);
        }
        sum
    }

    #[test]
    fn all_products_and_inverses() {
        for a in 0..=255 {
            assert!((0..=255).all(|b| product(a, b) == by_hand(a, b)), "{a}");
            assert!(a == 0 || product(a, inverse(a)) == 1, "{a}");
        }
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn a_product_is_the_sum_of_those_of_its_nibbles() {
        for a in 0..=255 {
            let table = &NIBBLES[a as usize];
            let sum = |b: u8| table[usize::from(b & 15)] ^ table[16 + usize::from(b >> 4)];
            assert!((0..=255).all(|b| sum(b) == product(a, b)), "{a}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn matrices_multiply() {
        for a in 0..=255 {
            let rows = AFFINE[a as usize].to_be_bytes();
            let bit = |b: u8, row: usize| ((rows[row] & b).count_ones() & 1) << row;
            let image = |b: u8| (0..8).map(|row| bit(b, row)).sum::<u32>();
            assert!((0..=255).all(|b| image(b) == u32::from(product(a, b))), "{a}");
        }
    }
}
