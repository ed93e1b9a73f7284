//! The advice for people.

use ft_figures::Table;

use super::experiment::is_disk;
use super::judgment::{Advice, Candidate, Outlook};
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

fn cell(outlook: &Outlook) -> String {
    let percent = outlook.overhead * 100.0;
    let overhead = if percent < 1000.0 { format!("{percent:.2}") } else { "> 1000".into() };
    format!("{}, {overhead}{NO_BREAK}%", span(outlook.interval_s))
}
