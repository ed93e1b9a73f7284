//! The ways for people.

use ft_figures::Table;

use super::super::combinations::hundredths;
use super::judgment::{WayCandidate, WayOutlook, WaysAdvice};
use crate::recovery::{ms, percent, short, span, table_text};

impl WaysAdvice {
    /// What each way costs, how well that foretells losses at random, and the recommendation.
    pub(in super::super) fn text(&self) -> String {
        let Self { scheme, steps, every, step_s, candidates, refused, reason, command, .. } = self;
        let mut text = format!(
            "\nWays to go back, under {scheme}: {steps} steps of {} ms, a checkpoint every {every}, a kill late between two of them\n",
            ms(*step_s)
        );
        if !candidates.is_empty() {
            text += &format!("\n{}", table_text(&self.costs()));
        }
        text.extend(
            refused.iter().map(|refused| format!("  not {}: {}\n", refused.way.name(), refused.reason)),
        );
        if !candidates.is_empty() {
            text += &format!("\nThe model beside kills at random:\n\n{}", table_text(&self.checks()));
        }
        let doubtful = candidates.iter().filter(|candidate| !candidate.check.holds());
        text.extend(doubtful.map(|candidate| {
            format!(
                "  {}: these jobs took {} of what is foretold, so do not trust the model for it\n",
                candidate.way.name(),
                short(candidate.check.ratio.median)
            )
        }));
        text += &format!("\n{reason}\n");
        text.extend(command.iter().map(|command| format!("  {command}\n")));
        text
    }

    fn costs(&self) -> Table {
        let mut header: Vec<String> = [
            "way",
            "overhead without a\u{a0}loss",
            "checkpoint [ms]",
            "a\u{a0}late loss costs [ms]",
            "fixed part [ms]",
            "done again [rank-ms]",
            "share of\u{a0}it that holds up\u{a0}all",
        ]
        .map(str::to_owned)
        .into();
        let mtbfs = self.candidates.first().map_or(&[][..], |candidate| &candidate.outlook);
        header.extend(mtbfs.iter().map(|at| format!("MTBF\u{a0}{}: every, overhead", span(at.mtbf_s))));
        let row = |(at, candidate): (usize, &WayCandidate)| {
            let WayCandidate {
                way, log, checkpoint_s, lost_s, recovery_s, again_rank_s, held, outlook, ..
            } = candidate;
            let start = [
                way.name().to_owned(),
                // That of the first is what the others are over.
                if at == 0 { "-".to_owned() } else { percent(log.median) },
                ms(checkpoint_s.median),
                ms(lost_s.median),
                ms(recovery_s.median),
                again_rank_s.map_or("?".to_owned(), ms),
                held.as_ref().map_or("all".to_owned(), |held| short(held.median)),
            ];
            start.into_iter().chain(outlook.iter().map(cell)).collect()
        };
        Table { header, rows: self.candidates.iter().enumerate().map(row).collect() }
    }

    fn checks(&self) -> Table {
        let header = ["way", "MTBF", "losses", "foretold [s]", "measured [s]", "measured over foretold"];
        let row = |candidate: &WayCandidate| {
            let check = &candidate.check;
            vec![
                candidate.way.name().to_owned(),
                span(check.mtbf_s),
                check.losses.to_string(),
                short(check.foretold_s),
                short(check.measured_s),
                short(check.ratio.median),
            ]
        };
        Table { header: header.map(str::to_owned).into(), rows: self.candidates.iter().map(row).collect() }
    }
}

fn cell(outlook: &WayOutlook) -> String {
    format!("{}, {}", span(outlook.interval_s), hundredths(outlook.overhead))
}
