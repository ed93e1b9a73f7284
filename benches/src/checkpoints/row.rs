//! What is held against what, and how much it may take.

use super::job::{Cell, Job};
use super::scheme::{IN_MEMORY, Scheme};
use crate::comparison::Bar;
use crate::sockets::Sockets;

/// One line: the time of a job over that of another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// What it is called on the command line.
    pub(super) name: String,
    /// What it is called in the table.
    pub(super) title: String,
    /// The place of its table in [`TABLES`].
    pub(super) table: usize,
    /// The job whose time is divided,
    pub(super) above: Job,
    /// and by whose.
    pub(super) below: Job,
    /// The limit of the ratio.
    pub(super) bar: Bar,
}

/// Titles of the tables, and the names of their columns.
pub(super) const TABLES: [(&str, [&str; 4]); 4] = [
    ("A checkpoint over its floor", ["checkpoint", "ours", "floor", "ours / floor"]),
    ("A file a rank over a checkpoint", ["checkpoint", "files", "ours", "files / ours"]),
    ("A shared file over a checkpoint", ["checkpoint", "file", "ours", "file / ours"]),
    ("All else", ["what", "above", "below", "above / below"]),
];

/// Bars against the floor, and of all else that is held against something which does no more than it must.
const NEAR: Bar = Bar::AtMost(1.3);
/// Bars of the slowed solver.
const SLOWED: Bar = Bar::AtMost(1.1);

/// What rows of the first tables begin with, the jobs of a cell that they hold against each other, and their bars over Unix sockets and
/// over TCP.
type Group = (&'static str, fn(Cell) -> [Job; 2], [Bar; 2]);
const GROUPS: [Group; 3] = [
    ("floor", |cell| [Job::Ours(cell), Job::Floor(cell)], [NEAR, NEAR]),
    ("file", |cell| [Job::File(cell.ranks), Job::Ours(cell)], [Bar::AtLeast(1.8), Bar::AtLeast(1.4)]),
    ("shared", |cell| [Job::Shared(cell.ranks), Job::Ours(cell)], [Bar::AtLeast(3.0), Bar::AtLeast(2.5)]),
];

impl Row {
    /// All, in their order.
    fn all() -> Vec<Self> {
        let groups = GROUPS.into_iter().enumerate().flat_map(|(table, group)| Self::of_group(table, group));
        groups.chain(Self::others()).collect()
    }

    fn of_group(table: usize, (word, jobs, [unix, tcp]): Group) -> Vec<Self> {
        let mut rows = Vec::new();
        for ranks in [4, 8] {
            for (sockets, bar) in [(Sockets::Unix, unix), (Sockets::Tcp, tcp)] {
                rows.extend(IN_MEMORY.map(|scheme| {
                    let cell = Cell { scheme, ranks, sockets };
                    let [above, below] = jobs(cell);
                    let name = format!("{word}-{ranks}-{sockets}-{scheme}");
                    Self { name, title: cell.to_string(), table, above, below, bar }
                }));
            }
        }
        rows
    }

    fn others() -> Vec<Self> {
        let mut rows = Vec::new();
        let mut other = |name: String, title: String, [above, below]: [Job; 2], bar| {
            rows.push(Self { name, title, table: GROUPS.len(), above, below, bar });
        };
        let cell = |scheme, ranks, sockets| Cell { scheme, ranks, sockets };
        for (rs, xor) in [(Scheme::Rs, Scheme::Xor), (Scheme::RsDedicated, Scheme::XorDedicated)] {
            for wire in [Sockets::Unix, Sockets::Tcp] {
                let jobs = [rs, xor].map(|scheme| Job::Ours(cell(scheme, 8, wire)));
                let title = format!("{rs} over {xor}, 8 ranks, {wire}");
                other(format!("codes-8-{wire}-{rs}"), title, jobs, NEAR);
            }
        }
        for ranks in [4, 8] {
            let of = |scheme| cell(scheme, ranks, Sockets::Unix);
            let title = format!("held by an asynchronous checkpoint over the copy alone, {ranks} ranks");
            let jobs = [Job::Held(of(Scheme::Xor)), Job::Floor(of(Scheme::Copy))];
            other(format!("held-{ranks}"), title, jobs, NEAR);
            let title = format!("rebuild of one rank over a checkpoint, xor, {ranks} ranks");
            other(format!("rebuild-{ranks}"), title, [Job::Rebuild(ranks), Job::Ours(of(Scheme::Xor))], NEAR);
        }
        let jobs = [true, false].map(|protected| Job::Solver { protected });
        other("solver".into(), "solver with checkpoints by the clock over one without".into(), jobs, SLOWED);
        rows
    }

    /// Those of these names, all of none, in their order; a name that none has stands for all that begin with it.
    ///
    /// # Errors
    /// There is no such row.
    pub(super) fn choose(names: &[impl AsRef<str>]) -> Result<Vec<Self>, String> {
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
    fn files_are_to_be_slower_and_nothing_else() {
        for row in Row::all() {
            let is_disk = matches!(row.above, Job::File(_) | Job::Shared(_));
            assert_eq!(is_disk, matches!(row.bar, Bar::AtLeast(_)), "{}", row.name);
        }
    }
}
