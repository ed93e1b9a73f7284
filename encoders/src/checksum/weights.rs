//! Tables of weights: integers, so that systems of them are solved exactly (`system.rs`).
//!
//! The first row is all ones. The others were searched for, per number of blocks and for 4, 8, 16, 32 and 60 members: from random columns on, a column of the worst
//! square part is changed for as long as that makes the worst of all parts better (`examples/weights.rs`). Worst is the one in which errors grow
//! most, `growth` in [`Recovery`](crate::Recovery). A code has the first `k` columns of the next larger table.
//!
//! Weights are what processes of one job have to agree on. A change here is a change of the format.

/// Most data members that there are weights for.
pub(super) const DATA_MAX: usize = 60;
/// Most checksum blocks that there are weights for.
pub(super) const REDUNDANT_MAX: usize = 4;

/// The weights of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weights {
    data: usize,
    /// All rows but the first.
    table: &'static [&'static [i8]],
}

impl Weights {
    /// Those of `data` members and `redundant` blocks, if there are any.
    pub(super) fn new(data: usize, redundant: usize) -> Option<Self> {
        if data > DATA_MAX {
            return None;
        }
        let fits = |table: &&&[&[i8]]| table.len() + 1 == redundant && table[0].len() >= data;
        let table = if redundant == 1 { &[] } else { *TABLES.iter().find(fits)? };
        Some(Self { data, table })
    }

    /// Members.
    pub(super) fn data(&self) -> usize {
        self.data
    }

    /// What `member` is multiplied by in `block`.
    pub(super) fn get(&self, block: usize, member: usize) -> i64 {
        assert!(member < self.data, "members are checked before");
        match block.checked_sub(1) {
            None => 1,
            Some(row) => i64::from(self.table[row][member]),
        }
    }
}

/// Tables by their members, and how errors grow at most with 1 to 4 blocks, whatever is lost, a little too large.
const GROWTH: &[(usize, [f64; 4])] = &[
    (4, [4.0, 9.2, 11.0, 13.0]),
    (8, [8.0, 33.0, 54.0, 116.0]),
    (16, [16.0, 124.0, 361.0, 1900.0]),
    (32, [32.0, 500.0, 3020.0, 38_900.0]),
    (DATA_MAX, [60.0, 1850.0, 23_700.0, 608_000.0]),
];

/// That of a code; it has the columns of the next larger table.
pub(super) fn growth_max(data: usize, redundant: usize) -> f64 {
    let table = GROWTH.iter().find(|(members, _)| *members >= data);
    table.map_or(f64::INFINITY, |(_, growth)| growth[redundant - 1])
}

/// All rows but the first, smaller tables first.
#[rustfmt::skip]
const TABLES: &[&[&[i8]]] = &[
    // 4+2
    &[
        &[32, -114, 114, -32],
    ],
    // 8+2
    &[
        &[99, 13, -34, -13, -99, 62, -62, 34],
    ],
    // 16+2
    &[
        &[81, -62, 19, -127, 31, -19, 46, -31, 102, 8, -102, -46, 127, -8, -81, 62],
    ],
    // 32+2
    &[
        &[79, -67, -36, 14, 62, -44, -18, -29, -100, -13, 111, 20, 54, -8, 127, 32, 47, 99, -111, -59, -126, -79, -23, 9, 89, 4, 70, -4, -51, 26, -90, 39],
    ],
    // 60+2
    &[
        &[114, 68, -116, -43, -2, 123, 96, -33, -122, 60, -93, 20, -10, -26, -8, -6, -36, 14, -29, 108, 39, 47, 72, 17, 51, -63, 77, -39, -47, -98, 10, 90, -16, -76, 43, 36, 4, 82, -55, -13, -71, 23, -83, -59, 56, -23, 64, -51, 30, 33, 26, -88, -20, 2, 8, -4, 102, -106, 6, -67],
    ],
    // 4+3
    &[
        &[23, 73, -107, -44],
        &[102, 42, -22, -71],
    ],
    // 8+3
    &[
        &[28, 84, -24, -36, 12, 44, -68, -50],
        &[115, -9, 11, 60, -41, 31, -23, -113],
    ],
    // 16+3
    &[
        &[8, -11, 15, 43, -8, -100, -60, 93, 57, 111, -121, 82, 48, -80, 63, -3],
        &[117, -46, 32, -121, -66, -23, 40, 54, -112, 3, -79, -33, -11, 105, 91, 73],
    ],
    // 32+3
    &[
        &[6, -73, 23, -39, -75, -45, -13, 12, 113, -69, -94, 84, -9, -42, 40, -18, 29, 88, 33, 99, -55, 110, -7, 59, 121, -83, 8, 94, 106, -101, -47, 68],
        &[63, -105, -31, 1, 74, 126, 28, -127, -60, -52, -48, 13, -45, -33, -97, -81, -119, 106, 83, -109, -83, 94, -117, 32, 2, 8, 112, 79, -36, -7, 59, 9],
    ],
    // 60+3
    &[
        &[60, 22, -31, 109, 14, 59, 38, -81, -52, -26, 29, 84, -72, 34, -3, 55, -109, -70, 74, 41, 79, 80, -51, -9, -2, 117, -17, -16, -106, -12, -126, 7, -27, -119, 127, 10, 82, -18, 2, 123, -100, -5, -6, 101, -99, -62, 107, 50, 122, 93, 37, -88, -45, -25, -113, -67, 81, 58, 126, -63],
        &[96, 3, 9, -38, -85, 113, -34, -108, 85, -18, -90, -64, 4, 60, 57, -27, 52, -40, -6, 108, -93, 36, -92, -42, -57, -70, 63, -30, 28, -112, -75, 41, 61, -88, 73, 122, -58, -7, 88, -22, 75, -35, 17, 79, 54, -23, 109, 13, 11, -49, -17, -15, 47, 35, -109, 95, 50, 58, -5, 127],
    ],
    // 4+4
    &[
        &[42, -112, -52, 98],
        &[60, -43, 127, -106],
        &[112, 51, -46, -104],
    ],
    // 8+4
    &[
        &[45, -108, 30, -95, -67, 124, 67, 81],
        &[110, 18, -103, -127, 64, -53, -5, 95],
        &[127, 35, -35, 75, -107, 64, -122, -19],
    ],
    // 16+4
    &[
        &[50, 18, 9, 2, 104, -82, 36, 58, 84, 111, -43, -58, -108, -124, 117, -30],
        &[86, -40, 44, 43, -12, -3, 105, -20, -76, 79, -15, -86, 63, -79, -56, 73],
        &[127, 111, 44, -51, -35, -43, -98, 16, -114, 22, -89, -48, 118, 87, -52, 3],
    ],
    // 32+4
    &[
        &[6, -97, 19, 31, -16, 96, 1, 34, -99, 2, 86, 4, 88, 23, 15, -20, 105, 60, -121, -68, -98, 77, 73, 67, 59, -22, 112, -116, -52, 125, 43, -58],
        &[108, 15, 41, -83, 59, 90, 50, -80, -15, -28, -8, 119, -30, 1, -125, -2, -118, 55, 47, -65, 82, -53, -66, 75, 57, -94, -17, 28, 10, -110, 123, 101],
        &[110, -81, -112, -109, -117, -54, -36, -1, 20, -79, 27, 62, 107, 123, 70, 35, 106, 66, 90, -25, -41, -126, 104, 50, -119, -98, -85, 7, 127, 23, -71, 1],
    ],
    // 60+4
    &[
        &[12, 76, 18, 69, 112, -29, -127, -71, 32, 14, -48, 3, 49, -6, 51, 63, 9, 6, 117, -63, -111, -108, -79, 22, 82, -2, 81, -11, -50, 122, -93, 13, -17, 84, 46, 115, -19, -58, -30, 127, -25, 41, -14, -46, -107, 23, -102, -88, 87, 102, 62, -84, -92, 75, -49, 93, 72, 123, 109, 101],
        &[13, 94, 27, 105, 118, 42, -88, 89, 57, 78, -113, -111, -102, 62, -65, -38, -112, 115, -70, -60, -6, 48, -48, -100, 63, -118, 29, 123, -101, -37, 111, -32, -82, 4, 86, 31, 65, 109, 17, -80, -34, 60, 102, -55, -64, -89, 24, -121, -3, 11, -85, 90, -14, -87, -47, 83, -40, 87, 9, 127],
        &[67, -29, -13, 111, 52, -79, -91, 107, -108, 125, -123, 5, -39, -96, -111, 17, 86, 89, -21, -109, -26, 93, 90, -82, -101, -46, -24, 10, 101, -50, 43, 75, 124, -89, -68, 47, 57, 29, -35, 64, -127, 97, 54, -8, 56, 118, 44, -90, -43, -117, -104, -47, 40, 33, 109, 127, 92, -5, -19, -118],
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_whole_and_of_weights() {
        for redundant in 2..=REDUNDANT_MAX {
            let tables: Vec<_> = TABLES.iter().filter(|table| table.len() + 1 == redundant).collect();
            let members: Vec<usize> = tables.iter().map(|table| table[0].len()).collect();
            assert_eq!(members, [4, 8, 16, 32, DATA_MAX]);
            for table in tables {
                assert!(table.iter().all(|row| row.len() == table[0].len()));
                assert!(table.iter().all(|row| row.iter().all(|weight| *weight != 0 && *weight != -128)));
            }
        }
    }

    #[test]
    fn there_are_weights_up_to_the_largest() {
        for redundant in 1..=REDUNDANT_MAX {
            assert!((1..=DATA_MAX).all(|data| Weights::new(data, redundant).is_some()));
            assert_eq!(Weights::new(DATA_MAX + 1, redundant), None);
        }
        assert_eq!(Weights::new(4, REDUNDANT_MAX + 1), None);
    }
}
