//! What the numbers say, for a terminal and for a page, and the numbers themselves.

use ft_figures::Table;

use super::bars::{Bar, name};
use super::measured::COLUMNS;
use super::session::{Results, Sample};
use super::summary::Reading;
use ft_tools::harness::{Page, machine_line, shown};

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        self.page().text()
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        self.page().markdown()
    }

    fn page(&self) -> Page<'_> {
        Page { head: self.head(), tables: self.tables().into(), remarks: &self.remarks }
    }

    /// Everything as comma-separated values, one row for each line that a program printed.
    pub fn csv(&self) -> String {
        let mut text = format!("round,side,congestion,{COLUMNS},foreign\n");
        for sample in &self.samples {
            let Sample { round, side, measured, foreign } = sample;
            text += &format!("{round},{side},{},{measured},{foreign:.3}\n", self.congestion);
        }
        text
    }

    fn head(&self) -> Vec<String> {
        vec![
            format!(
                "{} rounds, {} s a test; medians over process starts [lowest..highest]",
                self.rounds, self.time_s
            ),
            machine_line(&self.machine),
            format!("congestion control of the system {}, of comm {}", self.congestion, self.comm_congestion),
        ]
    }

    fn tables(&self) -> [(&'static str, Table); 2] {
        [("Bars", bars(&self.readings)), ("All figures", self.figures())]
    }

    fn figures(&self) -> Table {
        let header = ["figure", "unit"].map(str::to_owned).into_iter();
        let rows = self.summary.tests().into_iter().map(|(test, ranks)| {
            let cell = |&side| shown(self.summary.get(test, ranks, side));
            let start = [name(test, ranks), test.operation.unit().to_owned()];
            start.into_iter().chain(self.sides.iter().map(cell)).collect()
        });
        Table {
            header: header.chain(self.sides.iter().map(ToString::to_string)).collect(),
            rows: rows.collect(),
        }
    }
}

fn bars(readings: &[(Bar, Reading)]) -> Table {
    let header = ["figure", "unit", "ours", "raw", "MPICH", "Open MPI", "x raw", "x MPI", "bar", "met"];
    let row = |(bar, reading): &(Bar, Reading)| {
        let ratio = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let met = match reading.is_met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "?",
        };
        vec![
            bar.figure.replace('\u{a0}', " "),
            bar.operation().unit().to_owned(),
            shown(reading.ours),
            shown(reading.raw),
            shown(reading.mpich),
            shown(reading.openmpi),
            ratio(reading.to_raw),
            ratio(reading.to_mpi),
            bar.words(),
            met.to_owned(),
        ]
    };
    Table { header: header.map(str::to_owned).into(), rows: readings.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::side::Side;
    use super::super::summary::Summary;
    use super::super::summary::tests::sample;
    use super::super::test::{Operation, Test};
    use super::*;
    use ft_tools::recovery::Machine;

    fn results() -> Results {
        let latency = Test { operation: Operation::Latency, bytes: 8 };
        let samples = vec![
            sample(0, Side::Comm, latency, 2, 4.5),
            sample(0, Side::RawTcp, latency, 2, 3.0),
            sample(1, Side::Comm, latency, 2, 5.5),
            sample(1, Side::RawTcp, latency, 2, 3.0),
        ];
        let summary = Summary::of(&samples);
        let bar = Bar::all(&[2], 2).swap_remove(0);
        let reading = summary.read(&bar);
        Results {
            machine: Machine::default(),
            congestion: "bbr".into(),
            comm_congestion: "cubic".into(),
            sides: vec![Side::RawTcp, Side::Comm, Side::Mpich],
            rounds: 2,
            time_s: 0.1,
            summary,
            readings: vec![(bar, reading)],
            remarks: vec!["mpich tcp: gone".into()],
            samples,
        }
    }

    #[test]
    fn tables_by_hand() {
        let text = results().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "2 rounds, 0.1 s a test; medians over process starts [lowest..highest]");
        assert_eq!(lines[2], "congestion control of the system bbr, of comm cubic");
        let bar = lines.iter().find(|line| line.starts_with("ping-pong 8 B  us    5.00")).unwrap();
        let words: Vec<&str> = bar.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        let expected = [
            "ping-pong 8 B",
            "us",
            "5.00 [4.50..5.50]",
            "3.00 [3.00..3.00]",
            "1.67",
            "<= 1.2 raw, <= 0.85 MPI",
            "NO",
        ];
        assert_eq!(words, expected);
        assert!(text.ends_with("\nmpich tcp: gone\n"));
        let markdown = results().markdown();
        let row = "| ping-pong 8 B | us | 3.00 [3.00..3.00] | 5.00 [4.50..5.50] |  |\n";
        assert!(markdown.contains(row), "{markdown}");
        assert!(markdown.contains("| figure | unit | raw tcp | comm | mpich tcp |\n|---|---|---|---|---|\n"));
    }

    #[test]
    fn one_row_a_sample() {
        let csv = results().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].starts_with("round,side,congestion,test,ranks,bytes,value,unit,"));
        assert_eq!(lines[3], "1,comm,bbr,latency,2,8,5.500000,us,5.500000,5.500000,21,3,0.000");
    }
}
