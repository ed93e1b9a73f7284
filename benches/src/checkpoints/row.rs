//! What is held against what.

use std::fmt;

use super::job::{Cell, Job, name};
use super::scheme::{IN_MEMORY, Scheme};
use crate::sockets::Sockets;

/// The limit of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Ours over theirs.
    AtMost(f64),
    /// Theirs over ours.
    AtLeast(f64),
}

impl Bar {
    /// Whether a ratio keeps it.
    pub fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
        }
    }
}

/// The table that a row is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A checkpoint over what sockets and codes take.
    Floor,
    /// A file a rank over a checkpoint.
    File,
    /// A shared file over a checkpoint.
    Shared,
    /// All else.
    Other,
}

/// One line: the time of a job over that of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is called on the command line.
    pub name: String,
    /// What it is called in the table.
    pub title: String,
    /// Its table.
    pub kind: Kind,
    /// The job whose time is divided,
    pub above: Job,
    /// and by whose.
    pub below: Job,
    /// The limit of the ratio.
    pub bar: Bar,
}

/// Bars against the floor, and of all else that is held against something which does no more than it must.
const NEAR: Bar = Bar::AtMost(1.3);
/// Bars of the slowed solver.
const SLOWED: Bar = Bar::AtMost(1.1);

impl Row {
    fn new(kind: Kind, name: String, title: String, (above, below): (Job, Job), bar: Bar) -> Self {
        Self { name, title, kind, above, below, bar }
    }

    /// All, in their order.
    fn all() -> Vec<Self> {
        let mut rows = Vec::new();
        let cells = [4, 8].into_iter().flat_map(|ranks| {
            let of = move |sockets| IN_MEMORY.map(|scheme| Cell { scheme, ranks, sockets });
            [Sockets::Unix, Sockets::Tcp].into_iter().flat_map(of)
        });
        let cells: Vec<Cell> = cells.collect();
        let named = |kind: &str, Cell { scheme, ranks, sockets }: Cell| {
            format!("{kind}-{ranks}-{}-{scheme}", name(sockets))
        };
        let mut each = |kind, word: &str, of: &dyn Fn(Cell) -> (Job, Job, Bar)| {
            rows.extend(cells.iter().map(|&cell| {
                let (above, below, bar) = of(cell);
                Self::new(kind, named(word, cell), cell.to_string(), (above, below), bar)
            }));
        };
        each(Kind::Floor, "floor", &|cell| (Job::Ours(cell), Job::Floor(cell), NEAR));
        let faster = |tcp, unix, sockets| Bar::AtLeast(if sockets == Sockets::Tcp { tcp } else { unix });
        each(Kind::File, "file", &|cell| {
            (Job::File(cell.ranks), Job::Ours(cell), faster(1.4, 1.8, cell.sockets))
        });
        each(Kind::Shared, "shared", &|cell| {
            (Job::Shared(cell.ranks), Job::Ours(cell), faster(2.5, 3.0, cell.sockets))
        });
        let cell = |scheme, ranks, sockets| Cell { scheme, ranks, sockets };
        let mut other = |name: String, title: String, jobs, bar| {
            rows.push(Self::new(Kind::Other, name, title, jobs, bar));
        };
        for (rs, xor) in [(Scheme::Rs, Scheme::Xor), (Scheme::RsDedicated, Scheme::XorDedicated)] {
            for sockets in [Sockets::Unix, Sockets::Tcp] {
                let wire = name(sockets);
                let jobs = (Job::Ours(cell(rs, 8, sockets)), Job::Ours(cell(xor, 8, sockets)));
                other(
                    format!("codes-8-{wire}-{rs}"),
                    format!("{rs} over {xor}, 8 ranks, {wire}"),
                    jobs,
                    NEAR,
                );
            }
        }
        for ranks in [4, 8] {
            let of = |scheme| cell(scheme, ranks, Sockets::Unix);
            let title = format!("held by an asynchronous checkpoint over the copy alone, {ranks} ranks");
            let jobs = (Job::Held(of(Scheme::Xor)), Job::Floor(of(Scheme::Copy)));
            other(format!("held-{ranks}"), title, jobs, NEAR);
            let title = format!("rebuild of one rank over a checkpoint, xor, {ranks} ranks");
            other(format!("rebuild-{ranks}"), title, (Job::Rebuild(ranks), Job::Ours(of(Scheme::Xor))), NEAR);
        }
        let jobs = (Job::Solver { protected: true }, Job::Solver { protected: false });
        other("solver".into(), "solver with checkpoints by the clock over one without".into(), jobs, SLOWED);
        rows
    }

    /// Those of these names, all of none, in their order; a name that none has stands for all that begin with it.
    ///
    /// # Errors
    /// There is no such row.
    pub fn choose(names: &[impl AsRef<str>]) -> Result<Vec<Self>, String> {
        let all = Self::all();
        let is_whole = |name: &str| all.iter().any(|row| row.name == name);
        let is_meant = |row: &Self, name: &str| {
            row.name == name || (!is_whole(name) && row.name.starts_with(&format!("{name}-")))
        };
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        if let Some(name) = names.iter().find(|name| !all.iter().any(|row| is_meant(row, name))) {
            return Err(format!(
                "there is no row '{name}': rows begin with floor, file, shared, codes, held, rebuild, solver, as in \
                 floor-8-unix-xor"
            ));
        }
        let is_chosen = |row: &&Self| names.is_empty() || names.iter().any(|name| is_meant(row, name));
        Ok(all.iter().filter(is_chosen).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(chosen: &[&str]) -> Vec<String> {
        Row::choose(chosen).unwrap().into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn rows_are_chosen_by_what_they_begin_with() {
        let all = names(&[]);
        assert_eq!(all.len(), 3 * 2 * 2 * 5 + 4 + 4 + 1);
        let mut different = all.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), all.len());
        assert_eq!(names(&["solver", "floor-8-unix-xor"]), ["floor-8-unix-xor", "solver"]);
        assert_eq!(names(&["shared-4-tcp"]).len(), 5);
        assert_eq!(names(&["held"]), ["held-4", "held-8"]);
        let error = Row::choose(&["flo"]).unwrap_err();
        assert!(error.starts_with("there is no row 'flo': "), "{error}");
    }

    #[test]
    fn bars_say_which_side_is_good() {
        assert!(Bar::AtMost(1.3).is_met(1.3) && !Bar::AtMost(1.3).is_met(1.31));
        assert!(Bar::AtLeast(2.5).is_met(2.5) && !Bar::AtLeast(2.5).is_met(2.49));
        assert_eq!([Bar::AtMost(1.3), Bar::AtLeast(3.0)].map(|bar| bar.to_string()), ["<= 1.3", ">= 3"]);
        for row in Row::all() {
            let is_disk = matches!(row.above, Job::File(_) | Job::Shared(_));
            assert_eq!(is_disk, matches!(row.bar, Bar::AtLeast(_)), "{}", row.name);
        }
    }
}
