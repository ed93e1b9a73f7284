//! The norms of all iterations, as a table or a picture.

use std::path::{Path, PathBuf};
use std::{fmt::Write as _, fs};

use ft_comm::limits;
use ft_figures::{ChartAxis, LineChart, Series};

use super::SolveResult;
use crate::number::Number;

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "csv")
}

/// Reads the name of the file.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if !is_table(&path) && ft_figures::check_name(&path).is_err() {
        return Err("the name has to end in .csv, .svg or .png".into());
    }
    Ok(path)
}

/// Finds out whether the file can be written, before there is anything to write.
pub(super) fn require_writable(path: &Path) -> Result<(), String> {
    match is_table(path) {
        true => require_writable_file("--residuals", path),
        false => ft_figures::check_path(path).map_err(|error| format!("--residuals: {error}")),
    }
}

/// Checks that the file of an option can be written.
pub(super) fn require_writable_file(option: &str, path: &Path) -> Result<(), String> {
    let tried = ft_tools::harness::require_writable(path);
    tried.map_err(|error| format!("{option}: cannot write {}: {error}", path.display()))
}

/// Writes them.
pub(super) fn save(path: &Path, result: &SolveResult) -> Result<(), String> {
    if is_table(path) {
        return fs::write(path, table(&result.history))
            .map_err(|error| format!("{}: {}", path.display(), limits::explain(&error)));
    }
    chart(result).draw().save(path).map_err(|error| limits::explain(&error))
}

fn table(history: &[Number]) -> String {
    let mut text = "iteration,residual_norm\n".to_owned();
    for (iteration, Number(norm)) in history.iter().enumerate() {
        writeln!(text, "{iteration},{norm:e}").expect("a string takes all that is written");
    }
    text
}

fn chart(result: &SolveResult) -> LineChart {
    let SolveResult { solver, precond, history, .. } = result;
    let points = history.iter().enumerate().map(|(iteration, Number(norm))| (iteration as f64, *norm));
    let name = if precond == "none" { solver.clone() } else { format!("{solver}, {precond}") };
    LineChart {
        title: format!("Residual of {name}"),
        x: ChartAxis::linear("iteration"),
        y: ChartAxis::log("norm of the residual"),
        series: vec![Series::new(name, points)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_iteration() {
        assert_eq!(table(&[Number(1.5), Number(2e-9)]), "iteration,residual_norm\n0,1.5e0\n1,2e-9\n");
    }

    #[test]
    fn other_names_are_refused() {
        assert!(file("a.csv").is_ok() && file("a.svg").is_ok() && file("a.png").is_ok());
        file("a.txt").expect_err("no such kind");
    }
}
