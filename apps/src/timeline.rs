//! Who did what when, as the launcher heard it: the picture of `--timeline`.

use std::path::Path;

use ft_checkpoint::resilient::activity;
use ft_comm::Rank;
use ft_comm::time::Time;
use ft_figures::{Kind, Mark, Row, Span, Timeline};
use ft_proto::arbiter::Event;

/// Collects what happens to each rank.
#[derive(Debug)]
pub(crate) struct Recorder {
    rows: Vec<Recorded>,
    marks: Vec<Mark>,
}

#[derive(Clone, Debug)]
struct Recorded {
    spans: Vec<Span>,
    since: f64,
    kind: Kind,
}

impl Recorder {
    pub(crate) fn new(ranks: usize) -> Self {
        let idle = Recorded { spans: vec![], since: 0.0, kind: Kind::Waiting };
        Self { rows: vec![idle; ranks], marks: vec![] }
    }

    pub(crate) fn note(&mut self, event: &Event, at: Time) {
        match event {
            Event::Activity { rank, name } => {
                let kind = match name.as_str() {
                    activity::COMPUTING => Kind::Computing,
                    activity::CHECKPOINT => Kind::Checkpoint,
                    activity::REBUILDING => Kind::Rebuilding,
                    _ => Kind::Waiting,
                };
                self.turn(*rank, kind, at.seconds());
            }
            Event::Lost { rank, .. } => {
                self.turn(*rank, Kind::Dead, at.seconds());
                self.marks.push(Mark { row: *rank, at_s: at.seconds(), what: "lost".into() });
            }
            _ => {}
        }
    }

    /// From `at` on, `rank` does something of another kind.
    fn turn(&mut self, rank: Rank, kind: Kind, at: f64) {
        let Some(row) = self.rows.get_mut(rank) else { return };
        row.spans.push(Span { from_s: row.since, to_s: at, kind: row.kind });
        (row.since, row.kind) = (at, kind);
    }

    /// Draws everything up to `end` seconds.
    pub(crate) fn save(
        mut self,
        title: String,
        end: f64,
        computing: usize,
        path: &Path,
    ) -> Result<(), String> {
        for rank in 0..self.rows.len() {
            self.turn(rank, Kind::Waiting, end);
        }
        let label = |rank| if rank < computing { format!("rank {rank}") } else { format!("parity {rank}") };
        let rows = self.rows.into_iter().enumerate();
        let rows = rows.map(|(rank, row)| Row { label: label(rank), spans: row.spans }).collect();
        let timeline = Timeline { title, rows, marks: self.marks, end_s: end };
        timeline.draw().save(path).map_err(|error| error.to_string())
    }
}
