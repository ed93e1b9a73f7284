//! What the numbers say.

use ft_figures::Table;
use serde_json::{Value, json};

use super::job::Job;
use super::row::{Kind, Row};
use super::session::{Results, Sample};
use ft_tools::harness::{Confidence, Middle, Page, machine_line, shown};

/// A row beside the figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Milliseconds of the job above.
    pub above: Option<Middle>,
    /// Milliseconds of the job below.
    pub below: Option<Middle>,
    /// The one over the other within a round.
    pub ratio: Option<Confidence>,
    /// Whether the median of the ratios keeps the bar.
    pub is_met: Option<bool>,
}

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        self.page().text()
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        self.page().markdown()
    }

    /// Everything as comma-separated values, one row for each figure of each job.
    pub fn csv(&self) -> String {
        let mut text = String::from("round,job,figure,value,foreign\n");
        for Sample { round, job, took, foreign } in &self.samples {
            let figures = std::iter::once(("seconds", took.seconds)).chain(took.parts.iter().copied());
            for (figure, value) in figures {
                text += &format!("{round},\"{job}\",{figure},{value:.9},{foreign:.3}\n");
            }
        }
        text
    }

    /// The rows as JSON.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let Reading { above, below, ratio, is_met } = self.read(row);
            let ms = |middle: Option<Middle>| middle.map(|middle| middle.median);
            json!({
                "row": row.name, "above": row.above.to_string(), "below": row.below.to_string(),
                "above_ms": ms(above), "below_ms": ms(below), "ratio": ratio.map(|ratio| ratio.median),
                "low": ratio.map(|ratio| ratio.low), "high": ratio.map(|ratio| ratio.high),
                "bar": row.bar.to_string(), "met": is_met,
            })
        });
        let rows: Vec<Value> = rows.collect();
        json!({
            "machine": self.machine, "rounds": self.rounds, "mib": self.sizes.mib, "rows": rows,
            "remarks": self.remarks,
        })
    }

    /// Holds a row against the figures.
    pub fn read(&self, row: &Row) -> Reading {
        let in_round = |job: Job, round: usize| {
            self.samples.iter().find(|sample| sample.job == job && sample.round == round)
        };
        let ratios: Vec<f64> = (0..self.rounds)
            .filter_map(|round| in_round(row.above, round).zip(in_round(row.below, round)))
            .map(|(above, below)| above.took.seconds / below.took.seconds)
            .collect();
        let ratio = Confidence::of(&ratios);
        let is_met = ratio.map(|ratio| row.bar.is_met(ratio.median));
        Reading { above: self.ms(row.above), below: self.ms(row.below), ratio, is_met }
    }

    fn of(&self, job: Job) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.job == job)
    }

    fn ms(&self, job: Job) -> Option<Middle> {
        Middle::of(&self.of(job).map(|sample| sample.took.seconds * 1e3).collect::<Vec<_>>())
    }

    /// Jobs in the order in which they come.
    fn jobs(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = self.samples.iter().map(|sample| sample.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    fn page(&self) -> Page<'_> {
        let sizes = self.sizes;
        let head = vec![
            format!(
                "{} rounds, {} MiB a rank; ms are medians over rounds [lowest..highest], each the median of {} checkpoints from the first \
                 rank's start to the last rank's end; ratios are those within a round, medians [with bounds of 95 %]",
                self.rounds, sizes.mib, sizes.repeats
            ),
            format!("{}; files on {}", machine_line(&self.machine), self.filesystem),
        ];
        let titled = [
            ("A checkpoint over its floor", Kind::Floor, ["checkpoint", "ours", "floor", "ours / floor"]),
            ("A file a rank over a checkpoint", Kind::File, ["checkpoint", "files", "ours", "files / ours"]),
            ("A shared file over a checkpoint", Kind::Shared, ["checkpoint", "file", "ours", "file / ours"]),
            ("All else", Kind::Other, ["what", "above", "below", "above / below"]),
        ];
        let bars = titled.into_iter().filter(|(_, kind, _)| self.rows.iter().any(|row| row.kind == *kind));
        let mut tables: Vec<(&str, Table)> =
            bars.map(|(title, kind, header)| (title, self.bars(kind, &header))).collect();
        tables.extend(self.disk().map(|table| ("The disk", table)));
        tables.extend(self.parts().map(|table| ("Where the time goes, ms", table)));
        Page { head, tables, remarks: &self.remarks }
    }

    fn bars(&self, kind: Kind, header: &[&str]) -> Table {
        let rows = self.rows.iter().filter(|row| row.kind == kind).map(|row| {
            let Reading { above, below, ratio, is_met } = self.read(row);
            let met = match is_met {
                Some(true) => "yes",
                Some(false) => "NO",
                None => "?",
            };
            let ratio = ratio.map_or_else(String::new, |ratio| ratio.to_string());
            vec![row.title.clone(), shown(above), shown(below), ratio, row.bar.to_string(), met.to_owned()]
        });
        let header = header.iter().chain(&["bar", "met"]).map(|word| (*word).to_owned()).collect();
        Table { header, rows: rows.collect() }
    }

    /// The speed of the disk, as its writers see it.
    fn disk(&self) -> Option<Table> {
        let rows: Vec<Vec<String>> = self
            .jobs()
            .into_iter()
            .filter_map(|job| {
                let (Job::File(ranks) | Job::Shared(ranks)) = job else { return None };
                let megabytes = ((ranks * self.sizes.mib) << 20) as f64 / 1e6;
                let speeds: Vec<f64> = self.of(job).map(|sample| megabytes / sample.took.seconds).collect();
                Some(vec![job.to_string(), shown(self.ms(job)), shown(Middle::of(&speeds))])
            })
            .collect();
        let header = ["job", "ms", "MB/s of all ranks"].map(str::to_owned).into();
        (!rows.is_empty()).then_some(Table { header, rows })
    }

    /// Medians of the phases.
    fn parts(&self) -> Option<Table> {
        let rows: Vec<Vec<String>> = self
            .jobs()
            .into_iter()
            .filter(|job| !matches!(job, Job::Solver { .. }))
            .filter_map(|job| {
                let names = self.of(job).next()?.took.parts.iter().map(|(name, _)| *name);
                let part = |(at, name): (usize, &str)| {
                    let ms: Vec<f64> = self.of(job).map(|sample| sample.took.parts[at].1 * 1e3).collect();
                    Some(format!("{name} {:.1}", Middle::of(&ms)?.median))
                };
                let parts: Vec<String> = names.enumerate().filter_map(part).collect();
                (!parts.is_empty()).then(|| vec![job.to_string(), parts.join(", ")])
            })
            .collect();
        let header = ["job", "at the rank where it took longest"].map(str::to_owned).into();
        (!rows.is_empty()).then_some(Table { header, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::Took;
    use super::super::session::tests::SIZES;
    use super::*;
    use ft_tools::recovery::Machine;

    fn results() -> Results {
        let rows = Row::choose(&["floor-4-unix-xor", "file-4-unix-xor", "held-4", "rebuild-4"]).unwrap();
        let (ours, floor) = (rows[0].above, rows[0].below);
        let sample = |round, job, seconds, parts| {
            let took = Took { seconds, parts, answer: None };
            Sample { round, job, took, foreign: 0.25 }
        };
        let samples = vec![
            sample(0, ours, 0.4, vec![("copy", 0.1)]),
            sample(0, floor, 0.2, vec![]),
            sample(0, Job::File(4), 0.8, vec![]),
            sample(1, floor, 0.4, vec![]),
            sample(1, ours, 0.5, vec![("copy", 0.2)]),
            sample(2, ours, 0.5, vec![("copy", 0.3)]),
            sample(2, floor, 0.5, vec![]),
        ];
        Results {
            machine: Machine::default(),
            filesystem: "ext4".into(),
            rounds: 3,
            sizes: SIZES,
            rows,
            samples,
            remarks: vec!["It was loud.".into()],
        }
    }

    #[test]
    fn ratios_are_those_within_a_round() {
        let results = results();
        let markdown = results.markdown();
        for row in [
            "| 4 ranks, unix, xor | 500 [400..500] | 400 [200..500] | 1.25 [1.00..2.00] | <= 1.3 | yes |",
            "| 4 ranks, unix, xor | 800 | 500 [400..500] | 2.00 [2.00..2.00] | >= 1.8 | yes |",
            "| held by an asynchronous checkpoint over the copy alone, 4 ranks |  |  |  | <= 1.3 | ? |",
            "| rebuild of one rank over a checkpoint, xor, 4 ranks |  | 500 [400..500] |  | <= 1.3 | ? |",
            "| a file a rank: 4 ranks | 800 | 336 |",
            "| ours: 4 ranks, unix, xor | copy 200.0 |",
        ] {
            assert!(markdown.lines().any(|line| line == row), "{row}\n{markdown}");
        }
        assert!(results.text().ends_with("\nIt was loud.\n"));
        let json = results.json();
        assert_eq!((&json["rows"][0]["ratio"], &json["rows"][2]["met"]), (&json!(1.25), &Value::Null));
    }

    #[test]
    fn one_line_a_figure() {
        let csv = results().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 7 + 3);
        assert_eq!(lines[2], "0,\"ours: 4 ranks, unix, xor\",copy,0.100000000,0.250");
    }
}
