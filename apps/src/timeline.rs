//! Who did what when, and where, as the launcher heard it: the picture of `--timeline`.

use std::path::Path;

use ft_checkpoint::resilient::activity;
use ft_comm::Rank;
use ft_comm::limits;
use ft_comm::time::Time;
use ft_figures::{Group, Kind, Mark, Row, Span, Timeline};
use ft_launch::Seen;
use ft_proto::arbiter::Event;

/// Collects what happens to each rank, and to each host.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// In the order in which they came.
    hosts: Vec<Host>,
    /// By rank where it is now: its host, and its row there.
    places: Vec<Option<(usize, usize)>>,
}

/// A host, and the ranks that it has had.
#[derive(Debug)]
struct Host {
    name: String,
    rows: Vec<Recorded>,
    marks: Vec<Mark>,
}

/// A rank on one host.
#[derive(Debug)]
struct Recorded {
    rank: Rank,
    spans: Vec<Span>,
    marks: Vec<Mark>,
    /// What it does and since when; nothing while it is elsewhere.
    doing: Option<(f64, Kind)>,
}

impl Recorder {
    pub(crate) fn note(&mut self, seen: Seen<'_>, at: Time) {
        let at_s = at.seconds();
        match seen {
            Seen::Stands { rank, host } => self.stand(rank, host, at_s),
            Seen::Host { name, is_back } => {
                let host = self.host(name);
                let what = if is_back { "host is back" } else { "host lost" };
                self.hosts[host].marks.push(Mark { at_s, what: what.into() });
            }
            Seen::Event(Event::Activity { rank, name }) => {
                let kind = match name.as_str() {
                    activity::COMPUTING => Kind::Computing,
                    activity::CHECKPOINT => Kind::Checkpoint,
                    activity::REBUILDING => Kind::Rebuilding,
                    _ => Kind::Waiting,
                };
                self.turn(*rank, Some(kind), at_s);
            }
            Seen::Event(Event::Lost { rank, .. }) => {
                self.turn(*rank, Some(Kind::Dead), at_s);
                if let Some(row) = self.row(*rank) {
                    row.marks.push(Mark { at_s, what: "lost".into() });
                }
            }
            Seen::Event(_) | Seen::Saving { .. } => {}
        }
    }

    /// The number of a host.
    fn host(&mut self, name: &str) -> usize {
        self.hosts.iter().position(|host| host.name == name).unwrap_or_else(|| {
            self.hosts.push(Host { name: name.to_owned(), rows: vec![], marks: vec![] });
            self.hosts.len() - 1
        })
    }

    /// A process on a host has this rank from now on: its row there goes on, or begins.
    fn stand(&mut self, rank: Rank, host: &str, at_s: f64) {
        let host = self.host(host);
        let rows = &mut self.hosts[host].rows;
        let row = rows.iter().position(|row| row.rank == rank).unwrap_or_else(|| {
            rows.push(Recorded { rank, spans: vec![], marks: vec![], doing: None });
            rows.len() - 1
        });
        if self.places.len() <= rank {
            self.places.resize(rank + 1, None);
        }
        if self.places[rank] != Some((host, row)) {
            self.turn(rank, None, at_s);
            self.places[rank] = Some((host, row));
            self.turn(rank, Some(Kind::Waiting), at_s);
        }
    }

    /// The row of a rank where it is now.
    fn row(&mut self, rank: Rank) -> Option<&mut Recorded> {
        let (host, row) = self.places.get(rank).copied().flatten()?;
        Some(&mut self.hosts[host].rows[row])
    }

    /// From now on `rank` does something of another kind, or is elsewhere.
    fn turn(&mut self, rank: Rank, kind: Option<Kind>, at_s: f64) {
        let Some(row) = self.row(rank) else { return };
        let before = std::mem::replace(&mut row.doing, kind.map(|kind| (at_s, kind)));
        row.spans.extend(before.map(|(from_s, kind)| Span { from_s, to_s: at_s, kind }));
    }

    /// Draws everything up to `end` seconds.
    pub(crate) fn save(self, title: String, end: f64, computing: usize, path: &Path) -> Result<(), String> {
        self.timeline(title, end, computing).draw().save(path).map_err(|error| limits::explain(&error))
    }

    /// The hosts and their ranks; one host alone needs no name.
    fn timeline(mut self, title: String, end: f64, computing: usize) -> Timeline {
        (0..self.places.len()).for_each(|rank| self.turn(rank, None, end));
        let label = |rank| if rank < computing { format!("rank {rank}") } else { format!("parity {rank}") };
        let is_alone = self.hosts.len() == 1;
        let groups = self.hosts.into_iter().map(|mut host| {
            host.rows.sort_by_key(|row| row.rank);
            let rows = host.rows.into_iter();
            let rows =
                rows.map(|Recorded { rank, spans, marks, .. }| Row { label: label(rank), spans, marks });
            let label = if is_alone { String::new() } else { host.name };
            Group { label, rows: rows.collect(), marks: host.marks }
        });
        Timeline { title, groups: groups.collect(), end_s: end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_moves_has_a_row_on_each_host() {
        let mut recorder = Recorder::default();
        let mut note = |seen: Seen<'_>, second: u64| recorder.note(seen, Time(second * 1_000_000_000));
        let computes = |rank| Event::Activity { rank, name: activity::COMPUTING.into() };
        let lost = Event::Lost { rank: 1, cause: "host b is gone".into(), generation: None };
        note(Seen::Stands { rank: 0, host: "a" }, 0);
        note(Seen::Stands { rank: 1, host: "b" }, 0);
        note(Seen::Event(&computes(0)), 1);
        note(Seen::Event(&computes(1)), 2);
        note(Seen::Host { name: "b", is_back: false }, 5);
        note(Seen::Event(&lost), 5);
        note(Seen::Stands { rank: 1, host: "a" }, 6);
        note(Seen::Event(&computes(1)), 7);
        note(Seen::Host { name: "b", is_back: true }, 8);
        let Timeline { groups, .. } = recorder.timeline(String::new(), 9.0, 2);
        let spans = |row: &Row| -> Vec<(f64, f64, Kind)> {
            row.spans.iter().map(|span| (span.from_s, span.to_s, span.kind)).collect()
        };
        let [a, b] = &groups[..] else { panic!("two hosts: {groups:?}") };
        assert_eq!([&a.label, &a.rows[0].label, &a.rows[1].label], ["a", "rank 0", "rank 1"]);
        assert_eq!(spans(&a.rows[0]), [(0.0, 1.0, Kind::Waiting), (1.0, 9.0, Kind::Computing)]);
        assert_eq!(spans(&a.rows[1]), [(6.0, 7.0, Kind::Waiting), (7.0, 9.0, Kind::Computing)]);
        let before = [(0.0, 2.0, Kind::Waiting), (2.0, 5.0, Kind::Computing), (5.0, 6.0, Kind::Dead)];
        assert_eq!((spans(&b.rows[0]), b.rows[0].marks.len()), (before.into(), 1));
        let marks: Vec<&str> = b.marks.iter().map(|mark| mark.what.as_str()).collect();
        assert_eq!(marks, ["host lost", "host is back"]);
    }
}
