//! The line that every side prints for a test, and the reader of it.

use std::fmt;
use std::str::FromStr;

use super::test::{Operation, Test};

/// One test of one process start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// What was timed.
    pub test: Test,
    /// Ranks of the job.
    pub ranks: usize,
    /// Median over the batches, in the unit of the operation.
    pub value: f64,
    /// A tenth of the batches lie below.
    pub p10: f64,
    /// A tenth of the batches lie above.
    pub p90: f64,
    /// Number of batches.
    pub batches: usize,
    /// Iterations of each batch.
    pub iterations: usize,
}

/// Columns of the line.
pub(super) const COLUMNS: &str = "test,ranks,bytes,value,unit,p10,p90,batches,iterations";

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test: Test { operation, bytes }, ranks, value, p10, p90, batches, iterations } = self;
        let unit = operation.unit();
        write!(f, "{operation},{ranks},{bytes},{value:.6},{unit},{p10:.6},{p90:.6},{batches},{iterations}")
    }
}

impl FromStr for Measured {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let cells: Vec<&str> = line.split(',').collect();
        let &[operation, ranks, bytes, value, unit, p10, p90, batches, iterations] = &cells[..] else {
            return Err(format!("'{line}' has {} cells where {COLUMNS} were due", cells.len()));
        };
        let count =
            |cell: &str| cell.parse::<usize>().map_err(|_| format!("'{line}': '{cell}' is no whole number"));
        let number = |cell: &str| match cell.parse::<f64>() {
            Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
            _ => Err(format!("'{line}': '{cell}' is nothing that can be measured")),
        };
        let operation: Operation = operation.parse()?;
        if unit != operation.unit() {
            return Err(format!("'{line}': {operation} is in {}", operation.unit()));
        }
        Ok(Self {
            test: Test { operation, bytes: count(bytes)? },
            ranks: count(ranks)?,
            value: number(value)?,
            p10: number(p10)?,
            p90: number(p90)?,
            batches: count(batches)?,
            iterations: count(iterations)?,
        })
    }
}

/// All lines that a program has printed.
///
/// # Errors
/// A line of another kind, or another test than those that were `due`, in their order.
pub(super) fn parse(output: &str, ranks: usize, due: &[Test]) -> Result<Vec<Measured>, String> {
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let all: Vec<Measured> = lines.map(str::parse).collect::<Result<_, _>>()?;
    if let Some(other) = all.iter().find(|measured| measured.ranks != ranks) {
        return Err(format!("{} was measured with {} ranks instead of {ranks}", other.test, other.ranks));
    }
    let missing =
        due.iter().enumerate().find(|(at, test)| all.get(*at).map(|measured| &measured.test) != Some(*test));
    match (missing, all.get(due.len())) {
        (Some((_, test)), _) => Err(format!("{test} is missing")),
        (None, Some(other)) => Err(format!("{} was not asked for", other.test)),
        (None, None) => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Test = Test { operation: Operation::Latency, bytes: 8 };
    const BARRIER: Test = Test { operation: Operation::Barrier, bytes: 0 };

    #[test]
    fn a_line_leads_back() {
        let measured = Measured {
            test: LATENCY,
            ranks: 2,
            value: 3.25,
            p10: 3.0,
            p90: 4.5,
            batches: 21,
            iterations: 731,
        };
        let line = measured.to_string();
        assert_eq!(line, "latency,2,8,3.250000,us,3.000000,4.500000,21,731");
        assert_eq!(line.parse(), Ok(measured));
    }

    #[test]
    fn what_is_no_measurement_is_refused() {
        let good = "barrier,4,0,28.5,us,24,32,21,100";
        assert!(good.parse::<Measured>().is_ok());
        for (from, to) in [
            ("barrier", "fence"),
            ("28.5", "NaN"),
            ("28.5", "0"),
            ("28.5", "inf"),
            ("us", "GB/s"),
            (",100", ""),
            (",4,", ",four,"),
        ] {
            let line = good.replacen(from, to, 1);
            assert!(line.parse::<Measured>().is_err(), "{line}");
        }
    }

    #[test]
    fn what_was_asked_for_is_there() {
        let output = "latency,2,8,3,us,3,4,21,9\nbarrier,2,0,4,us,4,5,21,9\n\n";
        assert_eq!(parse(output, 2, &[LATENCY, BARRIER]).unwrap().len(), 2);
        assert_eq!(
            parse(output, 4, &[LATENCY, BARRIER]),
            Err("latency:8 was measured with 2 ranks instead of 4".into())
        );
        assert_eq!(parse(output, 2, &[LATENCY]), Err("barrier:0 was not asked for".into()));
        assert_eq!(parse(output, 2, &[BARRIER, LATENCY]), Err("barrier:0 is missing".into()));
        let more = Test { bytes: 1024, ..LATENCY };
        assert_eq!(parse(output, 2, &[LATENCY, BARRIER, more]), Err("latency:1024 is missing".into()));
        assert!(parse("warning: something\n", 2, &[]).is_err());
    }
}
