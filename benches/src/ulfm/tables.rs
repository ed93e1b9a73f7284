//! What the numbers say, for a terminal and for a page, and the numbers themselves.

use ft_figures::Table;

use super::row::Row;
use super::session::{Results, Sample};
use super::summary::Reading;
use ft_tools::harness::{Page, Parting, machine_line, shown};

/// Where a side has nothing to compare.
const NOT_AVAILABLE: &str = "not available";

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        self.page().text()
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        self.page().markdown()
    }

    /// Everything as comma-separated values, one row for each figure of each run.
    pub fn csv(&self) -> String {
        let mut text = String::from("round,side,task,ranks,mib,lost,spares,figure,ms,ended,foreign\n");
        for Sample { round, side, job, figures, parting, foreign } in &self.samples {
            let task = format!("{:?}", job.task).to_lowercase();
            let [ranks, mib, lost, spares] = [job.ranks, job.mib, job.lost, job.spares];
            let ended = match parting {
                Parting::Well => "well",
                Parting::Badly => "badly",
                Parting::Hung => "hung",
            };
            for (figure, seconds) in figures {
                let ms = seconds * 1e3;
                text += &format!(
                    "{round},{side},{task},{ranks},{mib},{lost},{spares},{figure},{ms:.6},{ended},{foreign:.3}\n"
                );
            }
        }
        text
    }

    fn page(&self) -> Page<'_> {
        let head = vec![
            format!("{} rounds; ms, medians over process starts [lowest..highest]", self.rounds),
            machine_line(&self.machine),
        ];
        let readings = self.rows.iter().map(|row| (row, self.summary.read(row)));
        let tables = vec![("Bars", bars(readings)), ("All figures, ms since the kill", self.figures())];
        Page { head, tables, remarks: &self.remarks }
    }

    fn figures(&self) -> Table {
        let rows = self.summary.all().map(|(job, side, figure, middle)| {
            vec![job.to_string(), side.to_string(), figure.to_string(), middle.to_string()]
        });
        Table { header: ["job", "side", "figure", "ms"].map(str::to_owned).into(), rows: rows.collect() }
    }
}

fn bars<'a>(readings: impl Iterator<Item = (&'a Row, Reading)>) -> Table {
    let header = ["figure", "ours", "ULFM", "ours / ULFM", "bar", "met", "ULFM ended"];
    let rows = readings.map(|(row, reading)| {
        let side = |is_offered: bool, middle| match is_offered {
            true => shown(middle),
            false => NOT_AVAILABLE.to_owned(),
        };
        let number = |number: Option<f64>, digits: usize| {
            number.map_or_else(String::new, |number| format!("{number:.digits$}"))
        };
        let met = match (row.bar, reading.is_met) {
            (None, _) => "",
            (_, Some(true)) => "yes",
            (_, Some(false)) => "NO",
            (_, None) => "?",
        };
        vec![
            row.title.to_owned(),
            side(row.ours.is_some(), reading.ours),
            if row.theirs.is_some() { shown(reading.theirs) } else { "-".to_owned() },
            number(reading.ratio, 3),
            row.bar.map_or_else(String::new, |bar| format!("<= {bar}")),
            met.to_owned(),
            reading.partings.to_string(),
        ]
    });
    Table { header: header.map(str::to_owned).into(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::super::job::Side;
    use super::super::job::tests::{FRESH, SHRINK};
    use super::super::summary::Summary;
    use super::super::summary::tests::sample;
    use super::*;
    use ft_tools::recovery::Machine;

    fn results() -> Results {
        let samples = vec![
            sample(0, Side::Ours, FRESH, 0.016),
            Sample { parting: Parting::Hung, ..sample(0, Side::Ulfm, FRESH, 0.064) },
            sample(1, Side::Ours, FRESH, 0.024),
            sample(1, Side::Ulfm, FRESH, 0.064),
            sample(0, Side::Ulfm, SHRINK, 0.004),
        ];
        Results {
            machine: Machine::default(),
            rounds: 2,
            rows: Row::choose(&["fresh-8x1", "two-8x1", "known-4x1", "shrink-8x1"], false).unwrap(),
            summary: Summary::of(&samples),
            remarks: vec!["ulfm: gone".into()],
            samples,
        }
    }

    #[test]
    fn tables_by_hand() {
        let markdown = results().markdown();
        for row in [
            "| fresh process, 8 ranks x 1 MiB | 20.0 [16.0..24.0] | 64.0 [64.0..64.0] | 0.312 | <= 0.25 | NO | 1 well, 1 hung |",
            "| two at once, 8 ranks x 1 MiB |  |  |  | <= 0.4 | ? |  |",
            "| last survivor knows, 4 ranks x 1 MiB |  | - |  |  |  |  |",
            "| survivors go on alone, 8 ranks x 1 MiB | not available | 4.00 |  |  |  | 1 well |",
            "| rebuild, 8 ranks x 1 MiB, 1 lost | ulfm | known | 16.0 [16.0..16.0] |",
        ] {
            assert!(markdown.lines().any(|line| line == row), "{row}\n{markdown}");
        }
        let text = results().text();
        assert!(text.starts_with("2 rounds; ms, medians over process starts [lowest..highest]\n"), "{text}");
        assert!(text.ends_with("\nulfm: gone\n"));
    }

    #[test]
    fn one_row_a_figure() {
        let csv = results().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[4], "0,ulfm,rebuild,8,1,1,0,resumed,64.000000,hung,0.000");
    }
}
