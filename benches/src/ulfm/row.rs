//! What is compared, and how much faster it has to be.

use super::job::{Change, Job, Task};
use crate::comparison::Bar;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// What it is called on the command line.
    pub(super) name: &'static str,
    /// What it is called in the table.
    pub(super) title: &'static str,
    /// What counts.
    pub(super) figure: &'static str,
    /// Our job; none where we have nothing like it.
    pub(super) ours: Option<Job>,
    /// Theirs; none where ours is alone.
    pub(super) theirs: Option<Job>,
    /// The limit of ours over theirs.
    pub(super) bar: Option<Bar>,
    /// Whether it takes much memory, and is measured only when that is asked for.
    is_large: bool,
}

const fn rebuild(ranks: usize, mib: usize) -> Job {
    Job {
        task: Task::Rebuild,
        ranks,
        mib,
        lost: 1,
        spares: 0,
        change: Change::Slice,
        keeps: false,
        tells: false,
    }
}

const fn row(name: &'static str, title: &'static str, figure: &'static str) -> Row {
    Row { name, title, figure, ours: None, theirs: None, bar: None, is_large: false }
}

impl Row {
    const fn ours(self, job: Job) -> Self {
        Self { ours: Some(job), ..self }
    }

    const fn theirs(self, job: Job) -> Self {
        Self { theirs: Some(job), ..self }
    }

    const fn both(self, job: Job) -> Self {
        self.ours(job).theirs(job)
    }

    const fn at_most(self, limit: f64) -> Self {
        Self { bar: Some(Bar::AtMost(limit)), ..self }
    }
}

const SMALL: Job = rebuild(8, 1);
const SPARE: Job = Job { spares: 1, ..SMALL };
const TWO: Job = Job { lost: 2, ..SMALL };
const SHRINK: Job = Job { task: Task::Shrink, ..SMALL };
const AGREE: Job = Job { task: Task::Agree, lost: 0, ..rebuild(8, 0) };

/// Each step changes the whole state.
const fn all(ranks: usize, mib: usize) -> Job {
    Job { change: Change::All, ..rebuild(ranks, mib) }
}

const fn kept(job: Job) -> Job {
    Job { keeps: true, ..job }
}

const fn tracked(job: Job) -> Job {
    Job { tells: true, ..job }
}

#[rustfmt::skip]
const ROWS: [Row; 26] = [
    row("fresh-8x1", "fresh process, 8 ranks x 1 MiB", "resumed").both(SMALL).at_most(0.08),
    row("spare-8x1", "spare, 8 ranks x 1 MiB", "resumed").ours(SPARE).theirs(SMALL).at_most(0.05),
    row("fresh-4x64", "fresh process, 4 ranks x 64 MiB", "resumed").both(rebuild(4, 64)).at_most(0.15),
    row("fresh-8x64", "fresh process, 8 ranks x 64 MiB", "resumed").both(rebuild(8, 64)).at_most(0.2),
    row("fresh-16x64", "fresh process, 16 ranks x 64 MiB", "resumed").both(rebuild(16, 64)).at_most(0.25),
    row("kept-4x64", "memory kept, 4 ranks x 64 MiB", "resumed").ours(kept(rebuild(4, 64))).theirs(rebuild(4, 64)).at_most(0.15),
    row("kept-8x64", "memory kept, 8 ranks x 64 MiB", "resumed").ours(kept(rebuild(8, 64))).theirs(rebuild(8, 64)).at_most(0.2),
    row("kept-16x64", "memory kept, 16 ranks x 64 MiB", "resumed").ours(kept(rebuild(16, 64))).theirs(rebuild(16, 64)).at_most(0.25),
    row("tracked-4x64", "tracked, 4 ranks x 64 MiB", "resumed").ours(tracked(rebuild(4, 64))).theirs(rebuild(4, 64)).at_most(0.15),
    row("tracked-8x64", "tracked, 8 ranks x 64 MiB", "resumed").ours(tracked(rebuild(8, 64))).theirs(rebuild(8, 64)).at_most(0.2),
    row("tracked-16x64", "tracked, 16 ranks x 64 MiB", "resumed").ours(tracked(rebuild(16, 64))).theirs(rebuild(16, 64)).at_most(0.25),
    row("tracked-spare-8x64", "tracked, with a spare, 8 ranks x 64 MiB", "resumed").ours(Job { spares: 1, ..tracked(rebuild(8, 64)) }).theirs(rebuild(8, 64)).at_most(0.12),
    row("all-4x64", "all of the state changes, 4 ranks x 64 MiB", "resumed").both(all(4, 64)).at_most(0.25),
    row("all-8x64", "all of the state changes, 8 ranks x 64 MiB", "resumed").both(all(8, 64)).at_most(0.25),
    row("spare-8x64", "spare, 8 ranks x 64 MiB", "resumed").ours(Job { spares: 1, ..rebuild(8, 64) }).theirs(rebuild(8, 64)).at_most(0.12),
    Row { is_large: true, ..row("fresh-8x256", "fresh process, 8 ranks x 256 MiB", "resumed").both(rebuild(8, 256)).at_most(0.15) },
    row("two-8x1", "two at once, 8 ranks x 1 MiB", "resumed").both(TWO).at_most(0.4),
    row("known-8x1", "last survivor knows, 8 ranks x 1 MiB", "known").both(rebuild(8, 1)),
    row("known-8x64", "last survivor knows, 8 ranks x 64 MiB", "known").both(rebuild(8, 64)),
    Row { is_large: true, ..row("known-8x256", "last survivor knows, 8 ranks x 256 MiB", "known").both(rebuild(8, 256)) },
    row("known-4x1", "last survivor knows, 4 ranks x 1 MiB", "known").ours(rebuild(4, 1)),
    row("known-4x64", "last survivor knows, 4 ranks x 64 MiB", "known").ours(rebuild(4, 64)),
    Row { is_large: true, ..row("known-4x512", "last survivor knows, 4 ranks x 512 MiB", "known").ours(rebuild(4, 512)) },
    row("shrink-8x1", "survivors go on alone, 8 ranks x 1 MiB", "resumed").theirs(SHRINK),
    row("agree-8", "agreement, 8 ranks", "agree").theirs(AGREE),
    row("allreduce-8", "allreduce of 8 B beside it, 8 ranks", "allreduce").theirs(AGREE),
];

impl Row {
    /// Those of these names, all of none, in the order of the table.
    ///
    /// # Errors
    /// There is no such row, or it is large and that was not asked for.
    pub(super) fn choose(names: &[impl AsRef<str>], with_large: bool) -> Result<Vec<Self>, String> {
        for name in names.iter().map(AsRef::as_ref) {
            match ROWS.iter().find(|row| row.name == name) {
                Some(row) if row.is_large && !with_large => return Err(format!("'{name}' takes --large")),
                Some(_) => {}
                None => {
                    let all: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                    return Err(format!("there is no row '{name}' but {}", all.join(", ")));
                }
            }
        }
        let is_chosen = |row: &Self| names.is_empty() || names.iter().any(|name| name.as_ref() == row.name);
        Ok(ROWS.into_iter().filter(|row| is_chosen(row) && (with_large || !row.is_large)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_name() {
        let names = |names: &[&str], with_large| -> Result<Vec<&str>, String> {
            Ok(Row::choose(names, with_large)?.iter().map(|row| row.name).collect())
        };
        assert_eq!(names(&[], true).unwrap().len(), ROWS.len());
        assert_eq!(names(&[], false).unwrap().len(), ROWS.iter().filter(|row| !row.is_large).count());
        assert_eq!(names(&["known-4x1", "fresh-8x1"], false).unwrap(), ["fresh-8x1", "known-4x1"]);
        assert_eq!(names(&["known-4x512"], false).unwrap_err(), "'known-4x512' takes --large");
        let error = names(&["fresh"], true).unwrap_err();
        assert!(error.starts_with("there is no row 'fresh' but fresh-8x1, spare-8x1, "), "{error}");
    }

    #[test]
    fn ratios_are_those_of_equal_states() {
        for Row { name, ours, theirs, bar, .. } in ROWS {
            let size = |job: Option<Job>| job.map(|job| (job.ranks, job.mib, job.lost, job.change));
            assert!(bar.is_none() || (ours.is_some() && size(ours) == size(theirs)), "{name}");
            assert!(theirs.is_none_or(|job| job.spares == 0 && !job.keeps && !job.tells), "{name}");
        }
    }
}
