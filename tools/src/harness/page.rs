//! Tables for a terminal and for a page.

use ft_figures::Table;

use crate::recovery::Machine;

/// What a comparison has to say.
pub struct Page<'a> {
    /// What was done, and where.
    pub head: Vec<String>,
    /// With their titles.
    pub tables: Vec<(&'static str, Table)>,
    /// What a reader has to know.
    pub remarks: &'a [String],
}

impl Page<'_> {
    /// This page as text for a terminal.
    pub fn text(&self) -> String {
        let tables = self.tables.iter().map(|(title, table)| format!("\n{title}\n\n{}", lines(table)));
        self.head.join("\n") + "\n" + &tables.collect::<String>() + &self.remarks()
    }

    /// This page in Markdown.
    pub fn markdown(&self) -> String {
        let tables = self.tables.iter().map(|(title, table)| format!("\n## {title}\n\n{}", markdown(table)));
        self.head.join("  \n") + "\n" + &tables.collect::<String>() + &self.remarks()
    }

    fn remarks(&self) -> String {
        self.remarks.iter().map(|remark| format!("\n{remark}\n")).collect()
    }
}

/// Where it was measured.
pub fn machine_line(machine: &Machine) -> String {
    let load = machine.load_averages.map(|load| format!("{load:.2}")).join(", ");
    format!(
        "{} cores, {}, Linux {}, load averages {load} at the start",
        machine.cores, machine.processor, machine.kernel
    )
}

/// Columns that line up.
fn lines(table: &Table) -> String {
    let all = || std::iter::once(&table.header).chain(&table.rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.header.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    all().map(line).collect()
}

fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(table.header.len()));
    line(&table.header) + &rule + &table.rows.iter().map(|row| line(row)).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_by_hand() {
        let words = |row: [&str; 2]| row.map(str::to_owned).into();
        let table = Table { header: words(["figure", "us"]), rows: vec![words(["a long one", "1.5"])] };
        let remarks = ["It was loud.".to_owned()];
        let page =
            Page { head: vec!["one".into(), "two".into()], tables: vec![("All", table)], remarks: &remarks };
        assert_eq!(page.text(), "one\ntwo\n\nAll\n\nfigure      us\na long one  1.5\n\nIt was loud.\n");
        assert_eq!(
            page.markdown(),
            "one  \ntwo\n\n## All\n\n| figure | us |\n|---|---|\n| a long one | 1.5 |\n\nIt was loud.\n"
        );
    }
}
