//! The advice for people.

use ft_figures::Table;

use super::combinations::{Combination, LevelAdvice, hundredths};
use super::experiment::is_disk;
use super::failures::FailureKind;
use super::judgment::{Advice, Candidate, Outlook};
use super::ways::WaysAdvice;
use crate::recovery::{NO_BREAK, mib, ms, span, table_text};

impl Advice {
    /// A table for a terminal, and the recommendation.
    pub fn text(&self) -> String {
        let Self { program, ranks, steps, step_s, state_bytes, reason, .. } = self;
        let mut text = format!(
            "{program}: {ranks} ranks, {} MiB of state a rank, {steps} steps of {} ms measured\n\n",
            mib(*state_bytes),
            ms(*step_s)
        );
        text += &table_text(&self.table());
        if self.candidates.iter().any(|candidate| is_disk(&candidate.scheme)) {
            text += "\ndisk is there to compare with: its files have to be seen by all hosts.\n";
        }
        text += &format!("\n{reason}\n");
        text.extend(self.command.iter().map(|command| format!("  {command}\n")));
        text.extend(self.levels.iter().map(LevelAdvice::text));
        text.extend(self.ways.iter().map(WaysAdvice::text));
        text.replace(NO_BREAK, " ")
    }

    /// Overheads are shares of the work: the checkpoints, the recoveries, and the work that is done again.
    fn table(&self) -> Table {
        let mut header: Vec<String> =
            ["losses survived", "scheme", "memory a\u{a0}rank [MiB]", "checkpoint [ms]", "recovery [ms]"]
                .map(str::to_owned)
                .into();
        let mtbfs = self.candidates.first().map_or(&[][..], |candidate| &candidate.outlook);
        header.extend(mtbfs.iter().map(|at| format!("MTBF\u{a0}{}: every, overhead", span(at.mtbf_s))));
        let row = |candidate: &Candidate| {
            let Candidate { scheme, survives, extra_bytes, checkpoint_s, recovery_s, outlook } = candidate;
            let start = [
                survives.to_string(),
                scheme.clone(),
                format!("+ {}", mib(*extra_bytes)),
                ms(checkpoint_s.median),
                ms(recovery_s.median),
            ];
            start.into_iter().chain(outlook.iter().map(cell)).collect()
        };
        let none = ["0", "none", &format!("+ {}", mib(self.unprotected_bytes)), "-", "-"].map(str::to_owned);
        let none = none.into_iter().chain(mtbfs.iter().map(|_| "from the start".to_owned())).collect();
        Table { header, rows: std::iter::once(none).chain(self.candidates.iter().map(row)).collect() }
    }
}

/// So many combinations are shown.
const SHOWN: usize = 12;

impl LevelAdvice {
    /// The kinds of failures, a table of combinations, and the recommendation.
    fn text(&self) -> String {
        let Self { failures, combinations, reason, command, .. } = self;
        let kind = |kind: &FailureKind| format!("{} every {}", kind.losses.words(), span(kind.mtbf_s));
        let kinds: Vec<String> = failures.iter().map(kind).collect();
        let mut text = format!("\nLevels of protection for {}:\n", kinds.join(", "));
        if !combinations.is_empty() {
            text += &format!("\n{}", table_text(&self.table()));
        }
        if combinations.len() > SHOWN {
            text += &format!("  the best {SHOWN} of {}; --json has all\n", combinations.len());
        }
        let files = |combination: &Combination| combination.levels.iter().any(|level| is_disk(&level.scheme));
        if combinations.iter().any(files) {
            text += "\nFiles (spill, disk) are counted as if the program waited for them, and have to be seen by all hosts.\n";
        }
        text += &format!("\n{reason}\n");
        text.extend(command.iter().map(|command| format!("  {command}\n")));
        text
    }

    fn table(&self) -> Table {
        let row = |combination: &Combination| vec![hundredths(combination.overhead), combination.list()];
        let rows = self.combinations.iter().take(SHOWN).map(row).collect();
        Table { header: ["overhead", "levels"].map(str::to_owned).into(), rows }
    }
}

fn cell(outlook: &Outlook) -> String {
    format!("{}, {}", span(outlook.interval_s), hundredths(outlook.overhead))
}

#[cfg(test)]
mod tests {
    use super::super::combinations::PlannedLevel;
    use super::super::failures::Losses;
    use super::*;

    fn combination(overhead: f64, every: u64) -> Combination {
        let level = |scheme: &str, every| PlannedLevel {
            scheme: scheme.to_owned(),
            every,
            interval_s: 12.3 * every as f64,
        };
        Combination {
            levels: vec![level("neighbor:1", 1), level("rs:2+2", every)],
            overhead,
            options: String::new(),
        }
    }

    #[test]
    fn levels_for_people() {
        let kind = |losses, mtbf_s| FailureKind { losses, mtbf_s };
        let mut advice = LevelAdvice {
            failures: vec![kind(Losses::AtOnce(1), 3600.0), kind(Losses::AtOnce(2), 86_400.0)],
            combinations: vec![combination(0.001_24, 10), combination(20.0, 7)],
            recommended: None,
            reason: "2 levels are best.".to_owned(),
            command: Some("ftrun --levels neighbor:1@12.3s,rs:2+2@2.05min pi".to_owned()),
        };
        let expected = "
Levels of protection for 1 loss every 1 h, 2 losses at once every 1 d:

  overhead  levels
    0.12 %  neighbor:1@12.3s,rs:2+2@2.05min
  > 1000 %  neighbor:1@12.3s,rs:2+2@1.44min

2 levels are best.
  ftrun --levels neighbor:1@12.3s,rs:2+2@2.05min pi
";
        assert_eq!(advice.text().replace(NO_BREAK, " "), expected);
        advice.combinations = vec![combination(0.1, 2); SHOWN + 1];
        assert!(advice.text().contains("  the best 12 of 13; --json has all\n"), "{}", advice.text());
    }
}
