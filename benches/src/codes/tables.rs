//! What the numbers say.

use ft_figures::Table;

use super::cell::{Cell, WORKS, Work};
use super::sides::{Job, Times};
use crate::comparison::{Bar, Ratio, Sample, Samples, beside, met, table};

/// The lowest ratio of the speed of adding a large buffer to that of copying it.
const XOR_BAR: Bar = Bar::AtLeast(0.95);

pub(super) type Measured = Samples<Job, Times>;

/// What was done.
pub(super) fn head(rounds: usize, kernel: &str) -> String {
    format!(
        "{rounds} rounds, one core, CPU time; kernel {kernel}; GB/s (10^9) of the data shards or sources read; ours / ISA-L are \
         medians of the ratios of speeds in a round [lowest..highest]"
    )
}

pub(super) fn all(samples: &Measured) -> Vec<(&'static str, Table)> {
    vec![
        ("Bars", bars(samples)),
        ("Cells", cells(samples)),
        ("a ^= b beside memcpy, GB/s of one buffer", additions(samples)),
    ]
}

/// A figure of a job.
type Figure<'a> = (Job, &'a str);

/// Speed over speed in every round.
fn ratio(samples: &Measured, ours: Figure<'_>, theirs: Figure<'_>) -> Option<Ratio> {
    let read = |name| move |times: &Times| times.get(name).copied();
    let pairs = samples.pairs((ours.0, read(ours.1)), (theirs.0, read(theirs.1)));
    Ratio::in_rounds(&pairs.into_iter().map(|(_, [ours_s, theirs_s])| theirs_s / ours_s).collect::<Vec<_>>())
}

/// The median speed, of so many bytes a call.
fn speed(samples: &Measured, (job, name): Figure<'_>, bytes: usize) -> String {
    let read = |times: &Times| times.get(name).map(|seconds| bytes as f64 / 1e9 / seconds);
    samples.middle(job, read).map_or_else(String::new, |middle| format!("{:.1}", middle.median))
}

/// The cells and their works that were measured, with the figures of both sides.
fn works(samples: &Measured) -> Vec<(&'static Work, Cell, [Figure<'static>; 2])> {
    let measured = samples.jobs().into_iter().filter_map(|job| match job {
        Job::Ours(cell) => Some(cell),
        _ => None,
    });
    let measured: Vec<Cell> = measured.collect();
    let with = |work: &'static Work| {
        let [ours, theirs] = work.said;
        let cells = measured.iter().filter(|cell| work.is_in(cell));
        cells.map(move |&cell| (work, cell, [(Job::Ours(cell), ours), (Job::Isal(cell), theirs)]))
    };
    WORKS.iter().flat_map(with).collect()
}

fn bars(samples: &Measured) -> Table {
    let works = works(samples);
    let rows = WORKS.iter().filter_map(|work| {
        let [each, mean] = work.bars?.map(Bar::AtLeast);
        let cells = works.iter().filter(|(other, ..)| other.name == work.name);
        let ratios = cells.filter_map(|(.., [ours, theirs])| Some(ratio(samples, *ours, *theirs)?.median));
        let ratios: Vec<f64> = ratios.collect();
        let lowest = ratios.iter().copied().reduce(f64::min)?;
        let geometric = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let met = |bar, value| met(&[(Some(bar), Some(value))]).to_owned();
        Some([
            work.title.to_owned(),
            format!("{lowest:.3}"),
            each.to_string(),
            met(each, lowest),
            format!("{geometric:.2}"),
            mean.to_string(),
            met(mean, geometric),
        ])
    });
    table(["work", "lowest cell", "bar", "met", "geometric mean", "bar", "met"], rows)
}

fn cells(samples: &Measured) -> Table {
    let rows = works(samples).into_iter().map(|(work, cell, [ours, theirs])| {
        let bytes = cell.data * cell.kib * 1024;
        let what = format!("{}, {cell}", work.title);
        let words = [what, speed(samples, ours, bytes), speed(samples, theirs, bytes)];
        (words, ratio(samples, ours, theirs), work.bars.map(|[each, _]| Bar::AtLeast(each)))
    });
    beside(["work, cell", "ours", "ISA-L", "ours / ISA-L"], rows)
}

fn additions(samples: &Measured) -> Table {
    let rows = samples.jobs().into_iter().filter_map(|job| {
        let Job::Addition(mib) = job else { return None };
        let (xor, memcpy) = ((job, "xor"), (job, "memcpy"));
        let words = [format!("{mib} MiB"), speed(samples, xor, mib << 20), speed(samples, memcpy, mib << 20)];
        Some((words, ratio(samples, xor, memcpy), Some(XOR_BAR)))
    });
    beside(["buffer", "xor", "memcpy", "xor / memcpy"], rows)
}

/// One row for each work of each round.
pub(super) fn measurements(samples: &Measured) -> Table {
    let row = |round: usize, name: &str, cell: Cell, ours_s: f64, theirs_s: f64| {
        let [round, data, redundant, kib] =
            [round, cell.data, cell.redundant, cell.kib].map(|count| count.to_string());
        [round, name.to_owned(), data, redundant, kib, format!("{ours_s:.9e}"), format!("{theirs_s:.9e}")]
    };
    let rows = samples.0.iter().flat_map(|Sample { round, job, took, .. }| match *job {
        Job::Ours(cell) => {
            let theirs = samples.of(Job::Isal(cell)).find(|sample| sample.round == *round);
            let works = WORKS.iter().filter(|work| work.is_in(&cell));
            let works = works.filter_map(|work| {
                let [ours, isal] = work.said;
                Some(row(*round, work.name, cell, took[ours], theirs?.took[isal]))
            });
            works.collect()
        }
        Job::Isal(_) => vec![],
        Job::Addition(mib) => {
            let cell = Cell { kib: mib * 1024, data: 1, redundant: 1 };
            vec![row(*round, "Addition", cell, took["xor"], took["memcpy"])]
        }
    });
    table(["round", "work", "data", "redundant", "kib", "ours_s", "theirs_s"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Measured {
        let cell = Cell { kib: 1 << 20, data: 4, redundant: 2 };
        let sample = |round, job, times: &[(&'static str, f64)]| Sample {
            round,
            job,
            took: times.iter().copied().collect(),
            foreign: 0.0,
        };
        let (ours, isal) = (Job::Ours(cell), Job::Isal(cell));
        let times = |encode| [("encode", encode), ("rebuild1", 1.0), ("rebuild2", 1.0)];
        let slower = [("encode", 3.0), ("rebuild1", 0.5), ("rebuild2", 1.5)];
        Samples(vec![
            sample(0, ours, &times(1.0)),
            sample(0, isal, &slower),
            sample(1, isal, &slower),
            sample(1, ours, &times(1.5)),
            sample(2, ours, &times(6.0)),
            sample(2, isal, &slower),
            sample(0, Job::Addition(16), &[("xor", 2.0), ("memcpy", 1.0)]),
        ])
    }

    #[test]
    fn ratios_are_those_of_speeds() {
        let samples = samples();
        let bars = bars(&samples).rows;
        assert_eq!(bars[0], ["encode", "2.000", ">= 1", "yes", "2.00", ">= 1.5", "yes"]);
        assert_eq!(bars[1], ["rebuild 1", "0.500", ">= 1", "NO", "0.50", ">= 1.2", "NO"]);
        let cells = cells(&samples).rows;
        assert_eq!(cells[0], ["encode, 4+2 x 1024 MiB", "2.9", "1.4", "2.00 [0.50..3.00]", ">= 1", "yes"]);
        assert_eq!(additions(&samples).rows[0][3..], ["0.50 [0.50..0.50]", ">= 0.95", "NO"]);
    }

    #[test]
    fn one_row_a_work_of_a_round() {
        let rows = measurements(&samples()).rows;
        assert_eq!(rows.len(), 3 * 3 + 1);
        assert_eq!(rows[6].join(","), "2,Encode,4,2,1048576,6.000000000e0,3.000000000e0");
        assert_eq!(rows[9].join(","), "0,Addition,1,1,16384,2.000000000e0,1.000000000e0");
    }
}
