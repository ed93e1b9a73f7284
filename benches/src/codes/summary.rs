//! What the numbers say.

use ft_figures::Table;

use super::cell::{Cell, Work};
use super::session::{Addition, Pair, Results};
use ft_tools::harness::{Middle, Page, machine_line};

/// The lowest ratio of the speed of adding a large buffer to that of copying it.
const XOR_BAR: f64 = 0.95;

impl Results {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        self.page().text()
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        self.page().markdown()
    }

    /// Everything as comma-separated values, one row for each work of each round.
    pub fn csv(&self) -> String {
        let mut text = String::from("round,work,data,redundant,kib,ours_s,theirs_s\n");
        for (round, Pair { cell, work, ours_s, theirs_s }) in &self.pairs {
            let Cell { kib, data, redundant } = cell;
            text += &format!("{round},{work:?},{data},{redundant},{kib},{ours_s:.9e},{theirs_s:.9e}\n");
        }
        for (round, Addition { mib, xor_s, memcpy_s }) in &self.additions {
            text += &format!("{round},Addition,1,1,{},{xor_s:.9e},{memcpy_s:.9e}\n", mib * 1024);
        }
        text
    }

    fn page(&self) -> Page<'_> {
        let head = vec![
            format!(
                "{} rounds, one core, CPU time; kernel {}; GB/s (10^9) of the data shards or sources read; ours / ISA-L are medians of \
                 the ratios of speeds in a round [lowest..highest]",
                self.rounds, self.kernel
            ),
            machine_line(&self.machine),
        ];
        let tables = vec![
            ("Bars", self.bars()),
            ("Cells", self.cells()),
            ("a ^= b beside memcpy, GB/s of one buffer", self.large()),
        ];
        Page { head, tables, remarks: &self.remarks }
    }

    /// Speeds of both sides, and their ratios, over the rounds.
    fn middles(&self, cell: &Cell, work: Work) -> Option<[Middle; 3]> {
        let pairs =
            || self.pairs.iter().map(|(_, pair)| pair).filter(|pair| pair.cell == *cell && pair.work == work);
        let gigabytes = (cell.data * cell.kib * 1024) as f64 / 1e9;
        let middle = |value: &dyn Fn(&Pair) -> f64| Middle::of(&pairs().map(value).collect::<Vec<_>>());
        Some([
            middle(&|pair| gigabytes / pair.ours_s)?,
            middle(&|pair| gigabytes / pair.theirs_s)?,
            middle(&|pair| pair.theirs_s / pair.ours_s)?,
        ])
    }

    /// The cells, in the order in which they were measured.
    fn measured(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = self.pairs.iter().map(|(_, pair)| pair.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    fn cells(&self) -> Table {
        let header = ["cell", "work", "ours", "ISA-L", "ours / ISA-L", "met"].map(str::to_owned).into();
        let mut rows = Vec::new();
        for work in Work::ALL {
            for cell in self.measured() {
                let Some([ours, theirs, ratio]) = self.middles(&cell, work) else { continue };
                let met = work.bars().map_or("", |(bar, _)| met(ratio.median, bar));
                let speed = |middle: Middle| format!("{:.1}", middle.median);
                let ratio = format!("{:.2} [{:.2}..{:.2}]", ratio.median, ratio.lowest, ratio.highest);
                rows.push(vec![
                    cell.to_string(),
                    work.title().into(),
                    speed(ours),
                    speed(theirs),
                    ratio,
                    met.into(),
                ]);
            }
        }
        Table { header, rows }
    }

    fn bars(&self) -> Table {
        let header = ["work", "lowest cell", "bar", "met", "geometric mean", "bar", "met"];
        let rows = Work::ALL.into_iter().filter_map(|work| {
            let (each, mean) = work.bars()?;
            let ratio = |cell: &Cell| Some(self.middles(cell, work)?[2].median);
            let ratios: Vec<f64> = self.measured().iter().filter_map(ratio).collect();
            let lowest = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let geometric = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
            let words = [
                work.title().to_owned(),
                format!("{lowest:.3}"),
                format!(">= {each}"),
                met(lowest, each).to_owned(),
                format!("{geometric:.2}"),
                format!(">= {mean}"),
                met(geometric, mean).to_owned(),
            ];
            (!ratios.is_empty()).then(|| words.into())
        });
        Table { header: header.map(str::to_owned).into(), rows: rows.collect() }
    }

    fn large(&self) -> Table {
        let header = ["buffer", "xor", "memcpy", "xor / memcpy", "bar", "met"].map(str::to_owned).into();
        let mut sizes: Vec<usize> = self.additions.iter().map(|(_, addition)| addition.mib).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let rows = sizes.into_iter().filter_map(|mib| {
            let of = |value: &dyn Fn(&Addition) -> f64| {
                let additions = self.additions.iter().map(|(_, addition)| addition);
                Middle::of(&additions.filter(|addition| addition.mib == mib).map(value).collect::<Vec<_>>())
            };
            let gigabytes = (mib << 20) as f64 / 1e9;
            let xor = of(&|addition| gigabytes / addition.xor_s)?.median;
            let memcpy = of(&|addition| gigabytes / addition.memcpy_s)?.median;
            let ratio = of(&|addition| addition.memcpy_s / addition.xor_s)?;
            Some(vec![
                format!("{mib} MiB"),
                format!("{xor:.1}"),
                format!("{memcpy:.1}"),
                format!("{:.2} [{:.2}..{:.2}]", ratio.median, ratio.lowest, ratio.highest),
                format!(">= {XOR_BAR}"),
                met(ratio.median, XOR_BAR).to_owned(),
            ])
        });
        Table { header, rows: rows.collect() }
    }
}

fn met(ratio: f64, bar: f64) -> &'static str {
    if ratio >= bar { "yes" } else { "NO" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ft_tools::recovery::Machine;

    #[test]
    fn ratios_are_those_of_speeds() {
        let cell = Cell { kib: 1 << 20, data: 4, redundant: 2 };
        let pair = |round, work, ours_s, theirs_s| (round, Pair { cell, work, ours_s, theirs_s });
        let results = Results {
            machine: Machine::here(),
            kernel: "portable".into(),
            rounds: 3,
            pairs: vec![
                pair(0, Work::Encode, 1.0, 3.0),
                pair(1, Work::Encode, 1.0, 2.0),
                pair(2, Work::Encode, 2.0, 1.0),
                pair(0, Work::Rebuild1, 1.0, 0.5),
            ],
            additions: vec![(0, Addition { mib: 16, xor_s: 2.0, memcpy_s: 1.0 })],
            remarks: vec![],
        };
        let row = |row: &[&str]| row.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            results.bars().rows,
            [
                row(&["encode", "2.000", ">= 1", "yes", "2.00", ">= 1.5", "yes"]),
                row(&["rebuild 1", "0.500", ">= 1", "NO", "0.50", ">= 1.2", "NO"]),
            ]
        );
        let cells = results.cells().rows;
        assert_eq!(cells[0], row(&["4+2 x 1024 MiB", "encode", "4.3", "2.1", "2.00 [0.50..3.00]", "yes"]));
        assert_eq!(results.large().rows[0][3..], ["0.50 [0.50..0.50]", ">= 0.95", "NO"]);
        assert!(results.csv().contains("\n2,Encode,4,2,1048576,2.000000000e0,1.000000000e0\n"));
    }
}
