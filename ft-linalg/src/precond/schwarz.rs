//! Block Jacobi and additive Schwarz: solves with the block of each domain, side by side.
//!
//! ```text
//! M^-1 = sum over domains d of  R_d^T A_d^-1 R_d,    A_d = R_d A R_d^T
//! ```
//!
//! `R_d` picks the rows of a domain and of its neighbors up to `overlap` steps away in the graph of `A`. With overlap 0
//! this is block Jacobi. The *restricted* variant adds up what each solve says of the domain's own rows alone: it converges
//! faster and sends less, but is not symmetric. Rows of neighbors are fetched once; at each use, elements of overlapping
//! rows are, and in the symmetric variant what comes of them goes back. Cost of a use: that of the inner solves.
//!
//! Sources: Saad: Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, sections 12.4.1 and 14.3.3; Cai,
//! Sarkis: A restricted additive Schwarz preconditioner for general sparse linear systems, SIAM J. Sci. Comput. 21, 1999.

use std::ops::Range;

use ft_comm::Communicator;

use super::block::{Bad, Fault, Solve};
use super::compact::Compact;
use super::domains::{DOMAINS, Domains};
use super::fetch::Fetch;
use super::inner::{DENSE_MAX, Inner};
use super::{Preconditioner, agree_on_fault, matrix_of};
use crate::parallel::{for_each, map};
use crate::{CsrRows, LinalgError, LinearOperator, Partition, Workspace};

/// What a [`Schwarz`] is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchwarzOptions {
    /// What solves with a block.
    pub inner: Inner,
    /// Steps from a domain to its farthest overlapping row; 0 is block Jacobi.
    pub overlap: usize,
    /// Each row takes the solve of its own domain alone. Not symmetric.
    pub restricted: bool,
    /// Number of domains.
    pub domains: usize,
}

impl Default for SchwarzOptions {
    fn default() -> Self {
        Self { inner: Inner::default(), overlap: 0, restricted: false, domains: DOMAINS }
    }
}

/// Block Jacobi or additive Schwarz. Symmetric positive definite where `A` is, the inner solver is and it is not restricted.
#[derive(Debug)]
pub struct Schwarz {
    part: Partition,
    domains: Domains,
    /// One for each own domain.
    solvers: Vec<Box<dyn Solve>>,
    /// What all solves take, in operations on elements.
    operations: usize,
    overlap: Option<Overlap>,
}

#[derive(Debug)]
struct Overlap {
    restricted: bool,
    fetch: Fetch,
    /// Rows of each own domain with its overlap: places in an extended vector, and which of them are the domain.
    sets: Vec<(Vec<u32>, Range<usize>)>,
}

/// Which rows of an overlapping domain count.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    All,
    Domain,
}

impl Schwarz {
    /// For the matrix of `a`. Collective.
    ///
    /// # Errors
    /// On every rank: [`LinalgError::NotFinite`], naming the first such entry; naming the first row of the first domain that
    /// is unfit for the inner solver: [`LinalgError::BadPivot`], [`LinalgError::BadDiagonal`], [`LinalgError::NotSymmetric`]. [`LinalgError::Unfit`] for an operator that is no stored
    /// matrix; [`LinalgError::TooLarge`] for dense blocks of domains with more than 4096 rows. [`LinalgError::Comm`].
    ///
    /// # Panics
    /// If the number of domains is 0.
    pub fn new(
        a: &dyn LinearOperator,
        options: &SchwarzOptions,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let a = matrix_of(a, "a preconditioner of domains", comm)?;
        let domains = Domains::new(a.part(), options.domains);
        let longest = (0..domains.count()).map(|domain| domains.rows(domain).len()).max().unwrap_or(0);
        if options.inner.is_dense() && longest > DENSE_MAX {
            return Err(LinalgError::TooLarge { what: "dense block", wanted: longest as u128 });
        }
        let rows = domains.bring(a, comm)?;
        let mut known = Known { start: domains.range().start as u64, own: &rows, fetched: Vec::new() };
        let mut sets: Vec<Vec<u64>> =
            domains.own().map(|domain| domains.rows(domain).map(|row| row as u64).collect()).collect();
        known.grow(&mut sets, options.overlap, &domains, comm)?;
        let solver = |rows: &Vec<u64>| {
            let named = |bad: Bad| {
                let what = match bad.what {
                    Fault::Mirror { col, value, mirrored } => {
                        Fault::Mirror { col: rows[col] as usize, value, mirrored }
                    }
                    what => what,
                };
                (rows[bad.row] as usize, what)
            };
            options.inner.make(&known.block(rows)).map_err(named)
        };
        let squares = || sets.iter().map(|rows| rows.len() * rows.len()).sum();
        let operations = if options.inner.is_dense() { squares() } else { rows.nnz() };
        let solvers = map(operations, sets.iter().collect(), solver).into_iter().collect();
        let solvers = agree_on_fault(solvers, comm)?;
        let overlap = match options.overlap {
            0 => None,
            _ => Some(Overlap::new(options.restricted, &sets, &domains, comm)?),
        };
        Ok(Self { part: a.part().clone(), solvers, operations, overlap, domains })
    }

    fn run(
        &self,
        transpose: bool,
        (r, z): (&[f64], &mut [f64]),
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let solve = |solver: &dyn Solve, r: &[f64], z: &mut [f64]| match transpose {
            false => solver.solve(r, z),
            true => solver.solve_transpose(r, z),
        };
        let start = self.domains.range().start;
        let rows =
            |domain: usize| self.domains.rows(domain).start - start..self.domains.rows(domain).end - start;
        self.domains.within(&self.part, r, z, comm, work, |r, z, work| {
            let Some(overlap) = &self.overlap else {
                let (mut rest, mut parts) = (z, Vec::with_capacity(self.solvers.len()));
                for (domain, solver) in self.domains.own().zip(&self.solvers) {
                    let z;
                    (z, rest) = rest.split_at_mut(rows(domain).len());
                    parts.push((&**solver, &r[rows(domain)], z));
                }
                for_each(self.operations, parts, |(solver, r, z)| solve(solver, r, z));
                return Ok(());
            };
            let (reads, writes) = match (overlap.restricted, transpose) {
                (false, _) => (Rows::All, Rows::All),
                (true, false) => (Rows::All, Rows::Domain),
                (true, true) => (Rows::Domain, Rows::All),
            };
            let answers =
                overlap.solve_all((r, reads), (&self.solvers, self.operations), solve, comm, work)?;
            if writes == Rows::Domain {
                for ((domain, answer), (_, core)) in self.domains.own().zip(&answers).zip(&overlap.sets) {
                    z[rows(domain)].copy_from_slice(&answer[core.clone()]);
                }
            } else {
                overlap.add_all(&answers, z, comm, work)?;
            }
            answers.into_iter().for_each(|answer| work.give(answer));
            Ok(())
        })
    }
}

impl Preconditioner for Schwarz {
    fn apply(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.run(false, (r, z), comm, work)
    }

    fn apply_transpose(
        &self,
        r: &[f64],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        self.run(true, (r, z), comm, work)
    }
}

impl Overlap {
    fn new(
        restricted: bool,
        sets: &[Vec<u64>],
        domains: &Domains,
        comm: &Communicator,
    ) -> Result<Self, LinalgError> {
        let (cuts, own) = (domains.cuts(), domains.range());
        // By owner, then by domain: so the elements that go back to an owner come to it in the order of domains.
        let owner = |row: u64| cuts.partition_point(|&cut| cut as u64 <= row) - 1;
        let is_own = |row: u64| own.contains(&(row as usize));
        let mut wanted: Vec<(usize, usize, u64)> = Vec::new();
        for (set, rows) in sets.iter().enumerate() {
            wanted.extend(rows.iter().filter(|row| !is_own(**row)).map(|&row| (owner(row), set, row)));
        }
        wanted.sort_unstable();
        let fetch = Fetch::new(cuts, wanted.iter().map(|&(_, _, row)| row).collect(), comm)?;
        let place = |set: usize, row: u64| {
            if is_own(row) {
                return (fetch.own().start + row as usize - own.start) as u32;
            }
            let at = wanted.binary_search(&(owner(row), set, row)).expect("rows of others are fetched");
            (at + if at < fetch.own().start { 0 } else { own.len() }) as u32
        };
        let placed = domains.own().zip(sets).enumerate().map(|(set, (domain, rows))| {
            let core = domains.rows(domain);
            let first = rows.partition_point(|&row| (row as usize) < core.start);
            (rows.iter().map(|&row| place(set, row)).collect(), first..first + core.len())
        });
        Ok(Self { restricted, sets: placed.collect(), fetch })
    }

    /// The answer of each own domain, for all of its rows.
    fn solve_all(
        &self,
        (r, reads): (&[f64], Rows),
        (solvers, operations): (&[Box<dyn Solve>], usize),
        solve: impl Fn(&dyn Solve, &[f64], &mut [f64]) + Sync,
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<Vec<Vec<f64>>, LinalgError> {
        let mut extended = work.take(self.fetch.extended_len());
        extended[self.fetch.own()].copy_from_slice(r);
        if reads == Rows::All {
            self.fetch.fill(&mut extended, comm, work)?;
        }
        let sets = self.sets.iter().zip(solvers).map(|((places, core), solver)| {
            (places, core, solver, work.take(places.len()), work.take(places.len()))
        });
        let answers = map(operations, sets.collect(), |(places, core, solver, mut block_r, mut answer)| {
            block_r.iter_mut().zip(places).for_each(|(r, &place)| *r = extended[place as usize]);
            if reads == Rows::Domain {
                block_r[..core.start].fill(0.0);
                block_r[core.end..].fill(0.0);
            }
            solve(&**solver, &block_r, &mut answer);
            (block_r, answer)
        });
        let keep = |(block_r, answer)| {
            work.give(block_r);
            answer
        };
        let answers = answers.into_iter().map(keep).collect();
        work.give(extended);
        Ok(answers)
    }

    /// `z` becomes the sum of the answers of all domains of all ranks, added up in the order of domains.
    fn add_all(
        &self,
        answers: &[Vec<f64>],
        z: &mut [f64],
        comm: &Communicator,
        work: &mut Workspace,
    ) -> Result<(), LinalgError> {
        let (mut extended, own) = (work.take(self.fetch.extended_len()), self.fetch.own());
        for ((places, _), answer) in self.sets.iter().zip(answers) {
            let placed = places.iter().zip(answer).filter(|(place, _)| !own.contains(&(**place as usize)));
            placed.for_each(|(&place, value)| extended[place as usize] = *value);
        }
        z.fill(0.0);
        let add_own = |z: &mut [f64]| {
            for ((places, _), answer) in self.sets.iter().zip(answers) {
                let placed = places.iter().map(|&place| place as usize).zip(answer);
                placed
                    .filter(|(place, _)| own.contains(place))
                    .for_each(|(at, value)| z[at - own.start] += value);
            }
        };
        self.fetch.give_back(&extended, z, add_own, comm, work)?;
        work.give(extended);
        Ok(())
    }
}

/// Rows of the matrix that this rank has: those of its domains, and those that it has fetched.
struct Known<'a> {
    start: u64,
    own: &'a CsrRows,
    fetched: Vec<(Vec<u64>, CsrRows)>,
}

impl Known<'_> {
    fn find(&self, row: u64) -> Option<(&[u64], &[f64])> {
        if (self.start..self.start + self.own.len() as u64).contains(&row) {
            return Some(self.own.row((row - self.start) as usize));
        }
        self.fetched.iter().find_map(|(ids, rows)| Some(rows.row(ids.binary_search(&row).ok()?)))
    }

    fn row(&self, row: u64) -> (&[u64], &[f64]) {
        self.find(row).expect("rows are fetched before they are read")
    }

    /// Adds to each set the rows that are up to `overlap` steps away, and fetches what this rank has not. Collective.
    fn grow(
        &mut self,
        sets: &mut [Vec<u64>],
        overlap: usize,
        domains: &Domains,
        comm: &Communicator,
    ) -> Result<(), LinalgError> {
        let mut borders: Vec<Vec<u64>> = sets.to_vec();
        for _ in 0..overlap {
            for (set, border) in sets.iter_mut().zip(&mut borders) {
                let near = border.iter().flat_map(|&row| self.row(row).0).copied();
                let mut new: Vec<u64> = near.filter(|col| set.binary_search(col).is_err()).collect();
                new.sort_unstable();
                new.dedup();
                set.extend(&new);
                set.sort_unstable();
                *border = new;
            }
            let mut missing: Vec<u64> =
                borders.iter().flatten().copied().filter(|row| self.find(*row).is_none()).collect();
            missing.sort_unstable();
            missing.dedup();
            let fetch = Fetch::new(domains.cuts(), missing, comm)?;
            let rows = fetch.rows(self.own, comm)?;
            self.fetched.push((fetch.wanted().to_vec(), rows));
        }
        Ok(())
    }

    /// The rows and columns `set` of the matrix.
    fn block(&self, set: &[u64]) -> Compact {
        let entries = set.iter().map(|&row| self.row(row).0.len()).sum();
        let mut block = Compact::new(set.len(), entries);
        let Some((&first, &last)) = set.first().zip(set.last()) else { return block };
        let gapless = (last - first) as usize + 1 == set.len();
        for &row in set {
            let (cols, vals) = self.row(row);
            for (&col, &val) in cols.iter().zip(vals).filter(|(col, _)| (first..=last).contains(*col)) {
                let place = if gapless { Some((col - first) as usize) } else { set.binary_search(&col).ok() };
                place.into_iter().for_each(|place| block.push(place as u32, val));
            }
            block.end_row();
        }
        block
    }
}
