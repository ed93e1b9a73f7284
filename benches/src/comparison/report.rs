//! What a comparison has to say: tables, for a terminal and for a page, and every measurement.

use std::path::PathBuf;

use ft_figures::Table;
use ft_tools::harness::{Files, Page};

use super::bar::{Bar, met};
use super::ratio::Ratio;

/// The outcome of a comparison.
pub struct Report {
    /// What was done, and where.
    pub(crate) head: Vec<String>,
    /// With their titles.
    pub(crate) tables: Vec<(&'static str, Table)>,
    /// What a reader has to know.
    pub(crate) remarks: Vec<String>,
    /// Every figure of every start.
    pub(crate) measurements: Table,
    /// Other files that were asked for, and what stands in them.
    pub(crate) others: Vec<(PathBuf, String)>,
}

impl Report {
    /// Prints the tables and writes the files.
    pub(super) fn give(self, files: &Files) -> Result<(), String> {
        let page = Page { head: self.head, tables: self.tables, remarks: &self.remarks };
        files.give(&page.text(), &csv(&self.measurements), &page.markdown())?;
        self.others.iter().try_for_each(|(file, text)| {
            std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
        })
    }
}

fn csv(table: &Table) -> String {
    std::iter::once(&table.header).chain(&table.rows).map(|row| row.join(",") + "\n").collect()
}

/// A table whose rows all have a cell in every column.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    Table {
        header: header.map(str::to_owned).into(),
        rows: rows.into_iter().map(<[String; N]>::into).collect(),
    }
}

/// Two figures beside each other, the ratio of the one to the other, and the limit of that. The header has words for the first
/// four columns.
pub(crate) fn beside(
    [what, above, below, ratio]: [&str; 4],
    rows: impl IntoIterator<Item = ([String; 3], Option<Ratio>, Option<Bar>)>,
) -> Table {
    let row = |([what, above, below], ratio, bar): ([String; 3], Option<Ratio>, Option<Bar>)| {
        let met = met(&[(bar, ratio.map(|ratio| ratio.median))]).to_owned();
        let words = ratio.map_or_else(String::new, |ratio| ratio.to_string());
        [what, above, below, words, bar.map_or_else(String::new, |bar| bar.to_string()), met]
    };
    table([what, above, below, ratio, "bar", "met"], rows.into_iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beside_each_other() {
        let words = |words: [&str; 3]| words.map(str::to_owned);
        let ratio = Some(Ratio { median: 1.5, bounds: None });
        let table = beside(
            ["what", "ours", "theirs", "ours / theirs"],
            [
                (words(["a", "3", "2"]), ratio, Some(Bar::AtMost(1.3))),
                (words(["b", "", ""]), None, Some(Bar::AtLeast(2.0))),
                (words(["c", "3", "2"]), ratio, None),
            ],
        );
        let expected =
            "what,ours,theirs,ours / theirs,bar,met\na,3,2,1.500,<= 1.3,NO\nb,,,,>= 2,?\nc,3,2,1.500,,\n";
        assert_eq!(csv(&table), expected);
    }
}
