//! Searches for weights of checksum codes: `weights MEMBERS BLOCKS SEED RESTARTS FAILURES`, for 2 to 4 blocks.
//!
//! It begins `RESTARTS` times with random columns, changes a column of the worst square part of the table for as long as that makes the worst
//! of all parts better, up to `FAILURES` tries without success, and prints what is better than all before. Those of `encoders/src/checksum/weights.rs` are
//! the last that these print:
//!
//! ```text
//! 4 2 7 324 6000      4 3 7 2287 6000     4 4 7 1009 6000
//! 8 2 7 1931 6000     8 3 7 777 6000      8 4 7 12 6000
//! 16 2 7 7579 6000    16 3 7 423 6000     16 4 7 24 6000
//! 32 2 7 1032 3000    32 3 7 291 3000     32 4 7 41 2500
//! 60 2 7 2317 3000    60 3 7 75 3000      60 4 7 8 1500
//! ```

const BLOCKS_MAX: usize = 4;
const WEIGHT_MAX: f64 = 127.0;
/// All numbers below 4 but one.
const OTHERS: [[usize; 3]; BLOCKS_MAX] = [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]];

/// What each block multiplies a member by: 1, then integers, then zeros beyond the last block.
type Column = [f64; BLOCKS_MAX];

/// A square part by its members, and how errors grow in it: `|A^-1| |W|` over the number of members.
struct Part {
    growth: f64,
    members: Vec<usize>,
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let [members, blocks, seed, restarts, failures] = arguments[..] else {
        eprintln!("usage: weights MEMBERS BLOCKS SEED RESTARTS FAILURES");
        return;
    };
    let (members, blocks) = (members as usize, blocks as usize);
    if members < blocks || !(2..=BLOCKS_MAX).contains(&blocks) {
        eprintln!("2 to {BLOCKS_MAX} blocks, and no more than members");
        return;
    }
    let mut draws = Draws(seed);
    let mut best = f64::INFINITY;
    for restart in 1..=restarts {
        let (table, growth) = climb(&mut draws, members, blocks, failures);
        if growth < best {
            best = growth;
            println!("restart {restart}: growth {:.3}", growth * members as f64);
            rows(&table, blocks).iter().for_each(|row| println!("{row:?}"));
        }
    }
}

/// One table, from random columns to one that no try makes better.
fn climb(draws: &mut Draws, members: usize, blocks: usize, failures: u64) -> (Vec<Column>, f64) {
    let mut table: Vec<Column> = (0..members).map(|_| draws.column(blocks)).collect();
    let mut worst = worst_part(&table, blocks, None, f64::INFINITY);
    let mut failed = 0;
    while failed < failures {
        let member = worst.members[draws.below(worst.members.len() as u64) as usize];
        let old = table[member];
        table[member] = draws.changed(old, blocks);
        // First the parts with that member alone, until one is worse than it was.
        if worst_part(&table, blocks, Some(member), worst.growth).growth < worst.growth {
            let now = worst_part(&table, blocks, None, worst.growth);
            if now.growth < worst.growth || (now.growth == worst.growth && now.members != worst.members) {
                worst = now;
                failed = 0;
                continue;
            }
        }
        table[member] = old;
        failed += 1;
    }
    (table, worst.growth)
}

/// The worst square part, of all or of those with one member, or the first that is worse than `limit`.
fn worst_part(table: &[Column], blocks: usize, with: Option<usize>, limit: f64) -> Part {
    let members = table.len();
    let mean =
        |block: usize| table.iter().fold(0.0, |sum, column| sum + column[block].abs() / members as f64);
    let means: Column = std::array::from_fn(mean);
    let others: Vec<usize> = (0..members).filter(|member| Some(*member) != with).collect();
    let mut worst = Part { growth: 0.0, members: vec![] };
    for order in (1..=blocks).rev() {
        let rows: Vec<Vec<usize>> = (0..1_u32 << blocks)
            .filter(|set| set.count_ones() as usize == order)
            .map(|set| (0..blocks).filter(|block| set >> block & 1 == 1).collect())
            .collect();
        let mut at: Vec<usize> = (0..order - usize::from(with.is_some())).collect();
        loop {
            let columns: Vec<usize> = at.iter().map(|i| others[*i]).chain(with).collect();
            for rows in &rows {
                let growth = growth(table, &means, rows, &columns);
                if growth > worst.growth {
                    worst = Part { growth, members: columns.clone() };
                }
                if growth > limit {
                    return worst;
                }
            }
            if !advance(&mut at, others.len()) {
                break;
            }
        }
    }
    worst
}

/// The next set of as many numbers below `n`, in the order of words; false after the last.
fn advance(set: &mut [usize], n: usize) -> bool {
    let order = set.len();
    let Some(at) = (0..order).rev().find(|at| set[*at] < n - order + at) else { return false };
    set[at] += 1;
    for next in at + 1..order {
        set[next] = set[next - 1] + 1;
    }
    true
}

fn growth(table: &[Column], means: &Column, rows: &[usize], columns: &[usize]) -> f64 {
    let mut part = [[0.0; BLOCKS_MAX]; BLOCKS_MAX];
    for (x, row) in rows.iter().enumerate() {
        for (y, column) in columns.iter().enumerate() {
            part[x][y] = table[*column][*row];
        }
    }
    let mut adjugate = [[0.0; BLOCKS_MAX]; BLOCKS_MAX];
    let determinant = adjugate_of(&part, rows.len(), &mut adjugate).abs();
    let grown = |line: &[f64; BLOCKS_MAX]| {
        rows.iter().zip(line).fold(0.0, |sum, (row, cofactor)| sum + cofactor.abs() * means[*row])
    };
    adjugate[..rows.len()].iter().map(grown).fold(0.0, f64::max) / determinant
}

/// Gives the determinant. All are integers that doubles hold.
fn adjugate_of(a: &[Column; BLOCKS_MAX], order: usize, adjugate: &mut [Column; BLOCKS_MAX]) -> f64 {
    if order == 1 {
        adjugate[0][0] = 1.0;
        return a[0][0];
    }
    for (i, line) in adjugate.iter_mut().enumerate().take(order) {
        for (j, cofactor) in line.iter_mut().enumerate().take(order) {
            let (rows, columns) = (&OTHERS[j][..order - 1], &OTHERS[i][..order - 1]);
            let sign = if (i + j) % 2 == 0 { 1.0 } else { -1.0 };
            *cofactor = sign * minor(a, rows, columns);
        }
    }
    (0..order).map(|i| a[0][i] * adjugate[i][0]).sum()
}

fn minor(a: &[Column; BLOCKS_MAX], rows: &[usize], columns: &[usize]) -> f64 {
    let at = |x: usize, y: usize| a[rows[x]][columns[y]];
    let two = |x: usize, y: usize, u: usize, v: usize| at(x, u) * at(y, v) - at(x, v) * at(y, u);
    match rows.len() {
        1 => at(0, 0),
        2 => two(0, 1, 0, 1),
        _ => at(0, 0) * two(1, 2, 1, 2) - at(0, 1) * two(1, 2, 0, 2) + at(0, 2) * two(1, 2, 0, 1),
    }
}

/// All rows but the first, with a positive weight of the first member each, in ascending order.
fn rows(table: &[Column], blocks: usize) -> Vec<Vec<i8>> {
    let row = |block: usize| {
        let sign = table[0][block].signum();
        table.iter().map(|column| (sign * column[block]) as i8).collect()
    };
    let mut rows: Vec<Vec<i8>> = (1..blocks).map(row).collect();
    rows.sort();
    rows
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    fn weight(&mut self) -> f64 {
        loop {
            let weight = self.below(255) as f64 - WEIGHT_MAX;
            if weight != 0.0 {
                return weight;
            }
        }
    }

    fn column(&mut self, blocks: usize) -> Column {
        let mut column = [0.0; BLOCKS_MAX];
        column[0] = 1.0;
        column[1..blocks].iter_mut().for_each(|weight| *weight = self.weight());
        column
    }

    /// Another column altogether, or one that is near.
    fn changed(&mut self, mut column: Column, blocks: usize) -> Column {
        if self.below(4) == 0 {
            return self.column(blocks);
        }
        let step = [2.0, 6.0, 20.0, 60.0][self.below(4) as usize];
        for weight in &mut column[1..blocks] {
            if self.below(2) == 0 || blocks == 2 {
                let change = ((self.below(2001) as f64 / 1000.0 - 1.0) * step).round();
                let moved = (*weight + change).clamp(-WEIGHT_MAX, WEIGHT_MAX);
                *weight = if moved == 0.0 { 1.0 } else { moved };
            }
        }
        column
    }
}
