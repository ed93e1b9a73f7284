//! The results as one page that needs nothing but itself.

use ft_figures::{
    ChartAxis, Hue, LineChart, Picture, Point, Section, Series, StackedBars, StackedRow, Table, html_page,
};

use super::measurement::{CHECKPOINT_PHASES, RECOVERY_PHASES};
use super::results::Results;
use super::summary::{Protected, Summary};
use super::tables;
use super::units::{bytes, short};
use super::verdict::Verdict;

/// A title, words, and a picture.
struct Shown {
    heading: String,
    paragraphs: Vec<String>,
    picture: Option<Picture>,
    table: Option<Table>,
}

impl Shown {
    fn new(heading: &str, paragraphs: &[&str], picture: Option<Picture>, table: Option<Table>) -> Self {
        let paragraphs = paragraphs.iter().map(|&text| text.to_owned()).collect();
        Self { heading: heading.to_owned(), paragraphs, picture, table }
    }

    fn section(&self) -> Section<'_> {
        Section {
            heading: self.heading.clone(),
            paragraphs: self.paragraphs.clone(),
            picture: self.picture.as_ref(),
            table: self.table.clone(),
        }
    }
}

/// A picture for each size of the state, under one heading.
fn by_state(results: &Results, heading: &str, picture: fn(&Results, u64) -> Picture) -> Vec<Shown> {
    let headings = std::iter::once(heading).chain(std::iter::repeat(""));
    let shown = |(&state, heading)| Shown::new(heading, &[], Some(picture(results, state)), None);
    results.states.iter().zip(headings).map(shown).collect()
}

/// The page, in HTML 5.
pub(crate) fn page(results: &Results) -> String {
    let summaries = &results.summaries;
    let mut parts = vec![memory_or_disk(results), head(results)];
    parts.push(Shown::new(
        "Without failures",
        &["Seconds from the first step to the last, against the same steps without protection."],
        None,
        Some(tables::costs(summaries)),
    ));
    parts.push(Shown::new(
        "One checkpoint",
        &["Medians over the repetitions, with quartiles; both axes are logarithmic."],
        Some(checkpoint_by_size(results)),
        None,
    ));
    parts.extend(by_state(results, "", checkpoint_phases));
    parts.push(Shown::new("", &[CHECKPOINT_WORDS], None, Some(tables::checkpoints(summaries))));
    parts.extend(by_state(results, "From a kill to the resumption", recovery));
    parts.push(Shown::new("", &[RECOVERY_WORDS], None, Some(tables::recoveries(summaries))));
    parts.extend(by_state(results, "Memory of a rank", memory));
    parts.push(Shown::new("", &[MEMORY_WORDS], None, None));
    parts.extend(by_state(results, "Work and time under failures", efficiency));
    parts.push(Shown::new("", &MODEL_WORDS, None, Some(tables::intervals(summaries))));
    parts.push(Shown::new(
        "The model against real failures",
        &[TRIAL_WORDS],
        None,
        Some(tables::trials(&results.trials)),
    ));
    let sections: Vec<Section<'_>> = parts.iter().map(Shown::section).collect();
    html_page("What protection costs", &sections)
}

const CHECKPOINT_WORDS: &str = "Medians of the averages over all checkpoints of a run, of which the first two also take their \
    memory from the system for the first time and so are slower. Bars and table show the same figures: the parts fill the \
    median of the whole, in the proportion of their own medians. Each phase is that of the slowest rank, and exchange and \
    commit include waiting for it.";
const RECOVERY_WORDS: &str = "A rank is killed (SIGKILL) in a step; another one in each repetition. Detect: from the kill \
    to its notice by the launcher. Agree: until all survivors have left the old generation; they hear of it in their next \
    call, so up to a step of work is in it. Respawn: what the start of the replacement takes beyond that; both run side by \
    side. Reconnect: new links, and checks of the hashes of what is in memory. Restore: what was lost is computed or read, and given \
    back to the program. Re-protect: redundancy is made whole. Bars and table show the same figures: the parts fill the median of \
    the whole, in the proportion of their own medians. The steps that are done again come on top.";
const MEMORY_WORDS: &str = "Kept: the rank's own copies and the redundancy that it holds for others, each for two \
    checkpoints. Without protection the state is copied once, when the job begins. Other: what the process needs beyond that, \
    buffers of messages among it. The bars end at the peak of the process (VmHWM), which the first table has too.";
const MODEL_WORDS: [&str; 2] = [
    "Work over time, when failures of the job come at random with this mean time between them (MTBF), for each scheme at its \
     own best interval between checkpoints: W of work takes M exp(R/M) (exp((t + C)/M) - 1) W/t with the interval t, \
     the median measured cost C of a checkpoint and R of a recovery, and the mean time M between failures (J. T. Daly, Future Generation Computer \
     Systems 22(3), 2006, with its higher-experiment estimate of t; to first experiment t is sqrt(2 C M), J. W. Young, Communications \
     of the ACM 17(9), 1974).",
    "Points beside the lines were really run, see below.",
];
const TRIAL_WORDS: &str = "Runs in which random ranks are killed at the mean time given (--mtbf, --every). Work is the steps alone, at their mean length in that run. Few failures \
    fit into a short run, so their number is mostly luck: the last column is what the model says when it is told how many \
    there were.";

fn memory_or_disk(results: &Results) -> Shown {
    let Verdict { headline, mut paragraphs, table } = results.verdict();
    let in_memory = results.disks.iter().filter(|disk| disk.is_memory());
    paragraphs.extend(in_memory.map(|disk| {
        format!(
            "The files of {} lay in memory ({}): this is no verdict on a disk. --schemes disk:DIR names another folder.",
            disk.scheme, disk.filesystem
        )
    }));
    Shown { heading: headline, paragraphs, picture: None, table }
}

fn head(results: &Results) -> Shown {
    let machine = &results.machine;
    let mut paragraphs = results.remarks();
    paragraphs.push(format!("Jobs: {}.", results.job()));
    paragraphs.push(format!(
        "Machine: {}, {} cores, {} GiB of memory, Linux {}, load averages {} at the start.",
        machine.processor,
        machine.cores,
        short(machine.memory_bytes as f64 / f64::from(1 << 30)),
        machine.kernel,
        machine.load_averages.map(|load| format!("{load:.2}")).join(", ")
    ));
    paragraphs.extend(results.disks.iter().map(|disk| format!("Filesystem of {disk}.")));
    Shown { paragraphs, ..Shown::new("How it was measured", &[], None, None) }
}

/// The number of a scheme's color, the same in all charts; none without protection.
fn hue(results: &Results, scheme: &str) -> Hue {
    results.schemes.iter().position(|known| known == scheme).map_or(Hue::Gray, Hue::Series)
}

/// The schemes of one size of the state that protect it.
fn protected(results: &Results, state: u64) -> impl Iterator<Item = (&Summary, &Protected)> {
    let of_state = results.summaries.iter().filter(move |summary| summary.state_bytes == state);
    of_state.filter_map(|summary| Some((summary, summary.protected.as_ref()?)))
}

fn checkpoint_by_size(results: &Results) -> Picture {
    let series = |scheme: &String| {
        let summaries = results.summaries.iter().filter(|summary| summary.scheme == *scheme);
        let point = |summary: &Summary| {
            let seconds = summary.protected.as_ref()?.checkpoint_s;
            Some(Point {
                x: summary.state_bytes as f64 / f64::from(1 << 20),
                y: seconds.median * 1e3,
                spread: Some((seconds.low * 1e3, seconds.high * 1e3)),
            })
        };
        Series { name: scheme.clone(), points: summaries.filter_map(point).collect(), ..Series::default() }
    };
    let chart = LineChart {
        title: "Time of one checkpoint".to_owned(),
        x: ChartAxis::log("state of a rank [MiB]"),
        y: ChartAxis::log("time [ms]"),
        series: results.schemes.iter().map(series).collect(),
    };
    chart.draw()
}

fn stacked(title: String, value_title: &str, phases: &[&str], rows: Vec<StackedRow>) -> Picture {
    let phases = phases.iter().map(|&name| name.to_owned()).collect();
    StackedBars { title, value_title: value_title.to_owned(), phases, rows }.draw()
}

fn checkpoint_phases(results: &Results, state: u64) -> Picture {
    let row = |(summary, protected): (&Summary, &Protected)| StackedRow {
        label: summary.scheme.clone(),
        values: protected.checkpoint_phases_s.map(|seconds| seconds * 1e3).to_vec(),
        hue: hue(results, &summary.scheme),
    };
    let rows = protected(results, state).map(row).collect();
    stacked(format!("One checkpoint of {} a rank", bytes(state)), "time [ms]", &CHECKPOINT_PHASES, rows)
}

fn recovery(results: &Results, state: u64) -> Picture {
    let row = |(summary, protected): (&Summary, &Protected)| StackedRow {
        label: summary.scheme.clone(),
        values: protected.recovery_phases_s.map(|seconds| seconds * 1e3).to_vec(),
        hue: hue(results, &summary.scheme),
    };
    let rows = protected(results, state).map(row).collect();
    stacked(format!("One recovery, {} a rank", bytes(state)), "time [ms]", &RECOVERY_PHASES, rows)
}

fn memory(results: &Results, state: u64) -> Picture {
    let mib = f64::from(1 << 20);
    let own = state as f64 / mib;
    let rows = results.summaries.iter().filter(|summary| summary.state_bytes == state).map(|summary| {
        let beyond = (summary.vm_hwm_bytes / mib - own).max(0.0);
        let kept =
            summary.protected.as_ref().map_or(0.0, |protected| (protected.memory_overhead - 1.0) * own);
        // What is set aside need not have been touched.
        let kept = kept.min(beyond);
        StackedRow {
            label: summary.scheme.clone(),
            values: vec![own, kept, beyond - kept],
            hue: hue(results, &summary.scheme),
        }
    });
    let title = format!("Memory of a rank with {} of state", bytes(state));
    stacked(title, "memory [MiB]", &["state", "kept for recovery", "other"], rows.collect())
}

fn efficiency(results: &Results, state: u64) -> Picture {
    // One series a scheme, whatever was measured, so that colors are those of the other charts.
    let series = |scheme: &String| {
        let curves =
            results.curves.iter().filter(|curve| (&curve.scheme, curve.state_bytes) == (scheme, state));
        let points = curves.flat_map(|curve| &curve.points).map(|at| (at.mtbf_s, at.efficiency));
        let trials =
            results.trials.iter().filter(|trial| (&trial.scheme, trial.state_bytes) == (scheme, state));
        let dots = trials.map(|trial| Point { x: trial.mtbf_s, y: trial.measured, spread: None });
        Series { dots: dots.collect(), ..Series::new(scheme.clone(), points) }
    };
    let chart = LineChart {
        title: format!("Efficiency, {} a rank", bytes(state)),
        x: ChartAxis::log("mean time between failures [s]"),
        y: ChartAxis::linear("work / time"),
        series: results.schemes.iter().map(series).collect(),
    };
    chart.draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::experiment::Kind;
    use crate::recovery::measurement::tests::measurement;
    use crate::recovery::results::curves;
    use crate::recovery::summary::{UNPROTECTED, summaries};
    use crate::recovery::{Disk, Machine, Measurement, Trial};

    fn results(runs: Vec<Measurement>) -> Results {
        let schemes = vec!["xor".to_owned(), "disk".to_owned()];
        let summaries = summaries(&[1 << 20], &schemes, 4, &runs);
        Results {
            machine: Machine::default(),
            disks: vec![Disk {
                scheme: "disk".into(),
                folder: "/tmp/<a>".into(),
                filesystem: "tmpfs".into(),
            }],
            ranks: 4,
            repeat: 1,
            states: vec![1 << 20],
            schemes,
            curves: curves(&summaries, &[]),
            summaries,
            trials: vec![],
            warnings: vec!["too noisy & small".into()],
            measurements: runs,
        }
    }

    /// What stands at the end of a bar stands in its table too, and in the verdict, however the runs differ.
    #[test]
    fn one_set_of_figures() {
        let killed = |scheme: &str| {
            let run = measurement(scheme, Kind::Kill { victim: 0 });
            [(0.125, 4.0), (2.0, 1.0), (1.0, 0.5)].map(|(detect_s, restore_s)| Measurement {
                detect_s,
                restore_s,
                ..run.clone()
            })
        };
        let plain = |scheme: &str| vec![measurement(scheme, Kind::Plain); 3];
        let protected = ["xor", "disk"].map(|scheme| [plain(scheme), killed(scheme).into()].concat());
        let results = Results { repeat: 3, ..results([plain(UNPROTECTED), protected.concat()].concat()) };
        let shown = ">4000</text>";
        assert_eq!(recovery(&results, 1 << 20).svg().matches(shown).count(), 2 + 1, "two bars and a tick");
        assert_eq!(tables::recoveries(&results.summaries).rows[0][2], "4000");
        assert!(page(&results).contains("xor 4000 ms, disk 4000 ms"));
        assert!(checkpoint_phases(&results, 1 << 20).svg().contains(">125</text>"));
        assert_eq!(tables::checkpoints(&results.summaries).rows[0][2], "125");
        assert!(memory(&results, 1 << 20).svg().contains(">4.00</text>"), "the peak of the process");
        assert_eq!(tables::costs(&results.summaries).rows[1][7], "4.00");
    }

    /// A scheme is one series, whether it was measured, foretold or both.
    #[test]
    fn one_color_a_scheme() {
        let run = |scheme| [measurement(scheme, Kind::Plain), measurement(scheme, Kind::Kill { victim: 0 })];
        let mut results = results([run("xor"), run("disk")].concat());
        let trial = |scheme: &str| Trial {
            state_bytes: 1 << 20,
            scheme: scheme.to_owned(),
            mtbf_s: 100.0,
            interval_s: 1.0,
            failures: 1,
            work_s: 1.0,
            time_s: 2.0,
            measured: 0.5,
            predicted: 0.5,
            predicted_for_failures: 0.5,
        };
        results.trials = vec![trial("disk")];
        let (first, second, third) = ("#0072b2", "#d55e00", "#009e73");
        for picture in
            [efficiency(&results, 1 << 20), checkpoint_by_size(&results), recovery(&results, 1 << 20)]
        {
            assert!(picture.svg().contains(first) && picture.svg().contains(second));
            assert!(!picture.svg().contains(third));
        }
        assert_eq!((hue(&results, "xor"), hue(&results, UNPROTECTED)), (Hue::Series(0), Hue::Gray));
    }

    /// Whatever was measured, nothing too.
    #[test]
    fn a_page_and_tables_of_anything() {
        let kill = Kind::Kill { victim: 0 };
        let runs = [
            (UNPROTECTED, Kind::Plain),
            ("xor", Kind::Plain),
            ("xor", kill),
            ("disk", Kind::Plain),
            ("disk", kill),
        ];
        let runs: Vec<Measurement> =
            runs.into_iter().map(|(scheme, kind)| measurement(scheme, kind)).collect();
        for runs in [runs, vec![]] {
            let results = results(runs);
            let page = page(&results);
            assert_eq!(page.matches("<svg").count(), 5);
            for part in
                ["Warning: too noisy &amp; small", "/tmp/&lt;a&gt;", "tmpfs, which is memory and no disk"]
            {
                assert!(page.contains(part), "{part}");
            }
            for text in [page, results.text(), results.csv()] {
                for word in ["NaN", "inf", "http", "src=", "href="] {
                    let found = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
                    assert!(!found.contains(word), "{word}: {found}");
                }
            }
        }
    }
}
