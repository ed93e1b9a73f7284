//! Failures that are injected: at a point that a rank reaches, at a time, at random.
//!
//! They strike processes as a true failure would, and nobody tells the roster: it has to find out. But here it is looked up who
//! holds a rank, and what becomes of the ranks is heard from the roster's events.

use std::collections::BTreeSet;

use super::cuts::Cuts;
use super::random::RandomKills;
use super::roster::Roster;
use super::{Config, Effect, Event, OnFailure};
use crate::fault::{CutSpec, Far, How, KillSpec, When};
use crate::rank::{PeerId, Rank};
use crate::time::Time;
use crate::wire::control::News;

/// Kills and cuts have positions, those of kills first.
#[derive(Debug)]
pub(super) struct Injected {
    kills: Vec<KillSpec>,
    cuts: Vec<CutSpec>,
    /// Positions of those that have struck.
    fired: BTreeSet<usize>,
    in_force: Cuts,
    random: Option<RandomKills>,
    /// Processes that were told to exit without goodbye.
    dying: BTreeSet<PeerId>,
    /// Times count from here.
    start: Time,
}

impl Injected {
    pub(super) fn new(config: &Config, now: Time) -> Self {
        Self {
            kills: config.kills.clone(),
            cuts: config.cuts.clone(),
            fired: BTreeSet::new(),
            in_force: Cuts::default(),
            random: config.mtbf.clone().map(RandomKills::new),
            dying: BTreeSet::new(),
            start: now,
        }
    }

    /// Positions of those that have not struck.
    pub(super) fn unfired(&self) -> Vec<usize> {
        (0..self.kills.len() + self.cuts.len()).filter(|position| !self.fired.contains(position)).collect()
    }

    /// How many random kills had to wait for redundancy to be whole again.
    pub(super) fn postponed(&self) -> u32 {
        self.random.as_ref().map_or(0, RandomKills::postponed)
    }

    /// What a rank is to say when it comes to it: the points of those that have not struck.
    pub(super) fn points(&self, rank: Rank) -> Vec<(usize, KillSpec)> {
        let cuts = self.cuts.iter().map(CutSpec::trigger);
        let all = self.kills.iter().cloned().chain(cuts).enumerate();
        all.filter(|(at, kill)| kill.ranks.contains(&rank) && !self.fired.contains(at)).collect()
    }

    /// What could not be said to a process before it was welcomed.
    pub(super) fn late_news(&self, now: Time, peer: PeerId) -> Vec<News> {
        let die = self.dying.contains(&peer).then_some(News::Die);
        die.into_iter().chain(self.in_force.all_news(now, peer)).collect()
    }

    /// A process has exited. Whether it was told to.
    pub(super) fn exited(&mut self, peer: PeerId) -> bool {
        self.dying.remove(&peer)
    }

    /// What has become of the ranks.
    pub(super) fn observe(&mut self, event: &Event) {
        let Some(random) = &mut self.random else { return };
        match event {
            Event::Lost { rank, .. } => random.lost(*rank),
            Event::Decided { generation: 0, .. } | Event::Resumed { .. } => random.settled(),
            _ => {}
        }
    }

    /// A host is lost, so ranks move.
    pub(super) fn host_lost(&mut self) {
        self.random.iter_mut().for_each(RandomKills::moved);
    }

    /// When a random kill is due. Those at a given time strike with the next [`Injected::tick`].
    pub(super) fn due(&self) -> Option<Time> {
        self.random.as_ref().and_then(RandomKills::due)
    }

    /// What is due strikes.
    pub(super) fn tick(&mut self, now: Time, roster: &mut Roster) {
        let elapsed = now.since(self.start).as_secs_f64();
        let points = self.kills.iter().map(|kill| &kill.point).chain(self.cuts.iter().map(|cut| &cut.point));
        let due = |when: &When| matches!(when, When::Seconds(at) if elapsed >= *at);
        let due: Vec<usize> =
            points.enumerate().filter(|(_, point)| due(&point.when)).map(|(at, _)| at).collect();
        due.into_iter().for_each(|position| self.strike(now, position, roster));
        self.strike_at_random(now, roster);
    }

    /// The failure at this position strikes, if there is one and it has not yet.
    pub(super) fn strike(&mut self, now: Time, position: usize, roster: &mut Roster) {
        let kill = self.kills.get(position).cloned();
        let cut = position.checked_sub(self.kills.len()).and_then(|at| self.cuts.get(at)).cloned();
        // When all are done there is nothing left to fail.
        if kill.is_none() && cut.is_none() || roster.ending.is_finished || !self.fired.insert(position) {
            return;
        }
        kill.into_iter().for_each(|kill| self.kill(now, position, kill, roster));
        cut.into_iter().for_each(|cut| self.cut(now, position, &cut, roster));
    }

    fn kill(&mut self, now: Time, spec: usize, kill: KillSpec, roster: &mut Roster) {
        roster.out.record(Event::Struck { spec });
        for peer in kill.ranks.into_iter().filter_map(|rank| roster.chairs.holder(rank)) {
            match kill.how {
                How::Kill => roster.out.kill(peer),
                How::Hang => {
                    // One that has not connected yet is watched from now on.
                    roster.detector.heard(peer, now);
                    roster.out.push(Effect::Stop(peer));
                }
                How::Exit => {
                    self.dying.insert(peer);
                    roster.out.send(peer, News::Die);
                }
            }
        }
    }

    fn cut(&mut self, now: Time, position: usize, cut: &CutSpec, roster: &mut Roster) {
        roster.out.record(Event::Cut { spec: position - self.kills.len() });
        let holders = |ranks: &[Rank]| -> Vec<PeerId> {
            let chairs = roster.chairs.held().filter(|chair| ranks.contains(&chair.origin));
            chairs.map(|chair| chair.peer).collect()
        };
        let (near, far) = match &cut.far {
            Far::Ranks(ranks) => (holders(&cut.near), holders(ranks)),
            Far::Launcher => (holders(&cut.near), vec![PeerId::LAUNCHER]),
        };
        let until = cut.lasts().map(|lasts| now.after(lasts));
        self.in_force.add(position, &near, &far, until);
        if cut.far == Far::Launcher {
            roster.chairs.cut_off(&near, until);
        }
        for peer in near.into_iter().chain(far).filter(|peer| *peer != PeerId::LAUNCHER) {
            let news = self.in_force.news(now, peer, position);
            news.into_iter().for_each(|news| roster.out.send(peer, news));
        }
    }

    fn strike_at_random(&mut self, now: Time, roster: &mut Roster) {
        let Some(random) = &mut self.random else { return };
        if roster.generation.is_none() || roster.ending.is_finished {
            return;
        }
        random.start(now);
        let living: Vec<Rank> = roster.chairs.members().map(|chair| chair.origin).collect();
        // With nobody to take its place, the last one is spared.
        let last = living.len() == 1 && roster.config.on_failure != OnFailure::Rebuild;
        let struck = random.strike(now, if last { &[] } else { &living });
        if let Some((rank, peer)) = struck.and_then(|rank| Some((rank, roster.chairs.holder(rank)?))) {
            roster.out.record(Event::RandomKill { rank });
            roster.out.kill(peer);
        }
    }
}
