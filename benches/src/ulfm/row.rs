//! What is compared, and how much faster it has to be.

use super::figure::Figure;
use super::job::{Job, Task};

/// One line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it is called in the table.
    pub title: &'static str,
    /// What counts.
    pub figure: Figure,
    /// Our job; none where we have nothing like it.
    pub ours: Option<Job>,
    /// Theirs; none where ours is alone.
    pub theirs: Option<Job>,
    /// Ours over theirs, at most.
    pub bar: Option<f64>,
    /// Whether it takes much memory, and is measured only when that is asked for.
    pub is_large: bool,
}

const fn rebuild(ranks: usize, mib: usize) -> Job {
    Job { task: Task::Rebuild, ranks, mib, lost: 1, spares: 0 }
}

const SMALL: Job = rebuild(8, 1);

/// All of them.
const ROWS: [Row; 11] = [
    beside("fresh-8x1", "fresh process, 8 ranks x 1 MiB", Figure::Resumed, SMALL, SMALL, 0.25),
    beside("spare-8x1", "spare, 8 ranks x 1 MiB", Figure::Resumed, Job { spares: 1, ..SMALL }, SMALL, 0.1),
    both("fresh-8x64", "fresh process, 8 ranks x 64 MiB", Figure::Resumed, rebuild(8, 64), 0.4),
    both("fresh-16x64", "fresh process, 16 ranks x 64 MiB", Figure::Resumed, rebuild(16, 64), 0.4),
    both("two-8x1", "two at once, 8 ranks x 1 MiB", Figure::Resumed, Job { lost: 2, ..SMALL }, 0.4),
    both("known-8x64", "last survivor knows, 8 ranks x 64 MiB", Figure::Known, rebuild(8, 64), 0.1),
    alone("known-4x1", "last survivor knows, 4 ranks x 1 MiB", rebuild(4, 1), false),
    alone("known-4x512", "last survivor knows, 4 ranks x 512 MiB", rebuild(4, 512), true),
    theirs(
        "shrink-8x1",
        "survivors go on alone, 8 ranks x 1 MiB",
        Figure::Resumed,
        Job { task: Task::Shrink, ..SMALL },
    ),
    theirs("agree-8", "agreement, 8 ranks", Figure::Agree, AGREE),
    theirs("allreduce-8", "allreduce of 8 B beside it, 8 ranks", Figure::Allreduce, AGREE),
];

const AGREE: Job = Job { task: Task::Agree, ranks: 8, mib: 0, lost: 0, spares: 0 };

const fn beside(
    name: &'static str,
    title: &'static str,
    figure: Figure,
    ours: Job,
    theirs: Job,
    bar: f64,
) -> Row {
    Row { name, title, figure, ours: Some(ours), theirs: Some(theirs), bar: Some(bar), is_large: false }
}

const fn both(name: &'static str, title: &'static str, figure: Figure, job: Job, bar: f64) -> Row {
    beside(name, title, figure, job, job, bar)
}

const fn alone(name: &'static str, title: &'static str, job: Job, is_large: bool) -> Row {
    Row { name, title, figure: Figure::Known, ours: Some(job), theirs: None, bar: None, is_large }
}

const fn theirs(name: &'static str, title: &'static str, figure: Figure, job: Job) -> Row {
    Row { name, title, figure, ours: None, theirs: Some(job), bar: None, is_large: false }
}

impl Row {
    /// Those of these names, all of none, in the order of the table.
    ///
    /// # Errors
    /// There is no such row, or it is large and that was not asked for.
    pub fn choose(names: &[impl AsRef<str>], with_large: bool) -> Result<Vec<Self>, String> {
        let offered = || ROWS.into_iter().filter(|row| with_large || !row.is_large);
        for name in names.iter().map(AsRef::as_ref) {
            if !offered().any(|row| row.name == name) {
                return Err(match ROWS.iter().any(|row| row.name == name) {
                    true => format!("'{name}' takes --large"),
                    false => {
                        let all: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                        format!("there is no row '{name}' but {}", all.join(", "))
                    }
                });
            }
        }
        let is_chosen = |row: &Row| names.is_empty() || names.iter().any(|name| name.as_ref() == row.name);
        Ok(offered().filter(is_chosen).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_name() {
        let names = |chosen: Vec<Row>| chosen.iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(Row::choose(&[""; 0], true).unwrap().len(), ROWS.len());
        let some = Row::choose(&[""; 0], false).unwrap();
        assert_eq!(some.len(), ROWS.len() - 1);
        assert!(some.iter().all(|row| row.ours.is_none_or(|job| job.mib <= 64)));
        assert_eq!(
            names(Row::choose(&["known-4x1", "fresh-8x1"], false).unwrap()),
            ["fresh-8x1", "known-4x1"]
        );
        assert_eq!(Row::choose(&["known-4x512"], false).unwrap_err(), "'known-4x512' takes --large");
        let error = Row::choose(&["fresh"], true).unwrap_err();
        assert!(error.starts_with("there is no row 'fresh' but fresh-8x1, spare-8x1, "), "{error}");
    }

    #[test]
    fn ratios_are_those_of_equal_states() {
        for Row { name, ours, theirs, bar, .. } in ROWS {
            let size = |job: Option<Job>| job.map(|job| (job.ranks, job.mib, job.lost));
            assert!(bar.is_none() || (ours.is_some() && size(ours) == size(theirs)), "{name}");
            assert!(theirs.is_none_or(|job| job.spares == 0), "{name}");
        }
    }
}
