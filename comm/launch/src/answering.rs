//! What the launcher answers at the desk: how the job is, and what is done of what was asked for.

use rustix::process::Signal;
use rustix::time::ClockId;

use super::Launcher;
use super::desk::Ask;
use super::desk::protocol::{
    Answer, Command, FailureStatus, Failures, HostStatus, RankStatus, Status, WORKING,
};
use super::ledger::Failure;
use super::seen::Observer;
use ft_comm::list;
use ft_comm::time::Time;
use ft_proto::arbiter::{RankView, Stage};
use ft_proto::rank::Rank;

/// Failures that are told one by one.
const NEWEST_MAX: usize = 10;
/// Causes that are told apart.
const CAUSES_MAX: usize = 32;
/// What stands for all others.
const OTHER: &str = "other";

impl Launcher {
    /// Sees to those who are at the desk.
    pub(super) fn attend(&mut self, observer: &mut Observer<'_>) {
        let now = self.clock.now();
        for (guest, ask) in self.desk.serve(now) {
            match ask {
                Ask::Metrics => self.desk.show(now, guest, &self.status()),
                Ask::Command(command) => {
                    let answer = self.obey(command, observer);
                    self.desk.answer(now, guest, answer);
                }
                // The desk does these by itself.
                Ask::Board | Ask::Stream(_) => {}
            }
        }
        if self.desk.is_to_tell(now) {
            let (status, hosts) = self.look();
            self.desk.tell(now, &status, &hosts);
        }
    }

    /// What who looks on is shown.
    pub(super) fn look(&self) -> (Status, Vec<HostStatus>) {
        (self.status(), self.fleet.hosts())
    }

    fn obey(&mut self, command: Command, observer: &mut Observer<'_>) -> Answer {
        let result = match command {
            Command::Status => return Answer::Status(Box::new(self.status())),
            Command::Hosts => return Answer::Hosts(self.fleet.hosts()),
            _ if self.ending.is_some() => Err("the job is over, and its processes are about to end".into()),
            Command::Kill { rank } => self.kill(rank),
            Command::Save => self.save(),
            Command::Stop => Ok(self.stop(observer)),
            Command::Host { change, name } => {
                self.fleet.change(change, &name, self.clock.now()).map(|(said, report)| {
                    report.into_iter().for_each(|report| self.report(report, observer));
                    said
                })
            }
        };
        result.map_or_else(Answer::Refused, Answer::Done)
    }

    fn kill(&mut self, rank: Rank) -> Result<String, String> {
        let Some(peer) = self.arbiter.holder(rank) else {
            let ranks: Vec<Rank> = self.arbiter.view().iter().map(|view| view.rank).collect();
            return Err(match ranks.contains(&rank) {
                true => format!("nobody holds rank {rank}"),
                false => format!("rank {rank} does not exist, there are {}", list("rank", &ranks)),
            });
        };
        let Some((host, pid)) = self.fleet.whereabouts(peer) else {
            return Err(format!("rank {rank} has no process now: it is being replaced"));
        };
        let pid = pid.map_or(String::new(), |pid| format!("process {pid} "));
        let said = format!("rank {rank} ({pid}on host {host}) is killed");
        self.put_to_death(peer);
        Ok(said)
    }

    fn save(&mut self) -> Result<String, String> {
        match self.spec.saves {
            Some(_) => {
                let _ = self.arbiter.save();
                Ok("its ranks write what is protected to files".into())
            }
            None => Err("it has no files to write to, as it was started without --spill".into()),
        }
    }

    fn stop(&mut self, observer: &mut Observer<'_>) -> String {
        self.heed(Signal::TERM, observer);
        match self.saving {
            Some(_) => "it ends when what is protected is in files".into(),
            None => "it ends".into(),
        }
    }

    /// How the job is.
    fn status(&self) -> Status {
        let now = self.clock.now();
        let (views, headway) = (self.arbiter.view(), self.ledger.headway());
        let cpu = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        Status {
            job: std::process::id(),
            command: self.desk.command().to_owned(),
            metrics: self.desk.metrics().map(|address| address.to_string()),
            dashboard: self.desk.dashboard(),
            state: self.state(&views).to_owned(),
            seconds: now.since(Time(0)).as_secs_f64(),
            launcher_cpu_seconds: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
            generation: self.arbiter.generation(),
            epoch: headway.newest,
            commits: headway.commits(),
            files: self.ledger.saved().whole,
            done: headway.done.map(|done| f64::from(done) / 1000.0),
            progress: headway.line.clone(),
            ranks: views.iter().map(|view| self.rank_status(now, view)).collect(),
            failures: account(&self.ledger.failures()),
        }
    }

    fn state(&self, views: &[RankView]) -> &'static str {
        let is_awaited =
            |view: &RankView| matches!(view.stage, Stage::Starting | Stage::Joined | Stage::Ready);
        match self.arbiter.generation() {
            _ if self.ending.is_some() => "ending",
            None => "starting",
            Some(_) if views.iter().any(is_awaited) => "repairing",
            Some(_) => "running",
        }
    }

    fn rank_status(&self, now: Time, view: &RankView) -> RankStatus {
        let (host, pid) = self.fleet.whereabouts(view.peer).unzip();
        let waits = view.waits.as_ref();
        RankStatus {
            rank: view.rank,
            host: host.map(str::to_owned),
            pid: pid.flatten(),
            state: in_words(view.stage).to_owned(),
            incarnation: view.incarnation,
            step: view.step,
            waits: waits
                .map(|(wait, since)| format!("{wait}, since {:.1} s", now.since(*since).as_secs_f64())),
            waits_for: waits.map_or(vec![], |(wait, _)| wait.certain().to_vec()),
        }
    }
}

fn in_words(stage: Stage) -> &'static str {
    match stage {
        Stage::Starting => "starting",
        Stage::Joined => "joined",
        Stage::Working => WORKING,
        Stage::Ready => "waiting",
        Stage::Gone => "gone",
        Stage::Lost => "lost",
    }
}

/// The account of all failures, the first one first.
fn account(all: &[Failure]) -> Failures {
    let seconds = |failure: &Failure| Some((failure.repair? + failure.restore?).as_secs_f64());
    let mut failures = Failures { total: all.len() as u64, ..Failures::default() };
    for failure in all {
        let causes = &mut failures.causes;
        let is_known = causes.len() < CAUSES_MAX || causes.contains_key(&failure.point);
        let cause = if is_known { &failure.point } else { OTHER };
        *causes.entry(cause.to_owned()).or_default() += 1;
        failures.recovered += u64::from(seconds(failure).is_some());
        failures.recovery_seconds += seconds(failure).unwrap_or(0.0);
    }
    let newest = all[all.len().saturating_sub(NEWEST_MAX)..].iter();
    failures.newest = newest
        .map(|failure| FailureStatus {
            ranks: failure.ranks.clone(),
            cause: failure.point.clone(),
            recovery_seconds: seconds(failure),
        })
        .collect();
    failures
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn failures_are_counted_by_cause_and_few_are_told() {
        let failure = |number: u64| Failure {
            ranks: vec![2],
            point: format!("step={}", number / 2),
            spare_hosts: vec![],
            detect: None,
            repair: Some(Duration::from_millis(500)),
            agree: None,
            respawn: None,
            held: None,
            generation: None,
            restore: (number > 0).then_some(Duration::from_millis(1000)),
            steps_lost: 0,
        };
        let few = account(&(0..4).map(failure).collect::<Vec<_>>());
        assert_eq!((few.total, few.recovered, few.recovery_seconds), (4, 3, 4.5));
        assert_eq!(few.causes, [("step=0".to_owned(), 2), ("step=1".to_owned(), 2)].into());
        assert_eq!(
            few.newest.iter().map(|newest| newest.recovery_seconds).collect::<Vec<_>>(),
            [None, Some(1.5), Some(1.5), Some(1.5)]
        );
        let many = account(&(0..1000).map(failure).collect::<Vec<_>>());
        assert_eq!((many.total, many.causes.len(), many.newest.len()), (1000, CAUSES_MAX + 1, NEWEST_MAX));
        assert_eq!(many.causes.values().sum::<u64>(), 1000);
        assert_eq!(many.newest.last().unwrap().cause, "step=499");
    }
}
