//! The control plane: the arbiter in the kernel, a member for every process, and first-in-first-out links with
//! random delays between them.

use std::time::Duration;

use rand::RngExt;

use super::happening::Happening;
use super::kernel::Kernel;
use super::net::Way;
use super::outcome::{Event, Seen};
use super::process::{Process, Up};
use ft_comm::service::Question;
use ft_proto::arbiter::{Effect, Event as ArbiterEvent, Exit};
use ft_proto::rank::{Membership, PeerId, Rank};
use ft_proto::wire::control::{News, ToArbiter};

/// How long the launcher waits for the operating system's word on a broken control link.
const CAUSE: Duration = Duration::from_millis(20);
/// Exit status of a process that was told to exit without goodbye.
const DIED: i32 = 17;

impl Kernel {
    /// Carries out what the arbiter wants.
    pub(super) fn carry_out(&mut self) {
        while let Some(effect) = self.arbiter.poll_effect() {
            match effect {
                Effect::Send { to, message } => self.tell_rank(to, message),
                Effect::Start { rank, peer, incarnation } => self.order(peer, rank, incarnation),
                Effect::Spare(peer) => self.order(peer, Process::NO_RANK, 0),
                Effect::Seat { peer, rank, incarnation } => {
                    if let Some(process) = self.process_mut(peer) {
                        (process.rank, process.incarnation) = (rank, incarnation);
                    }
                }
                Effect::Kill(peer) => {
                    let due = self.now.after(Duration::from_micros(self.random.random_range(10..200)));
                    self.at(due, Happening::Kill(peer));
                }
                Effect::Stop(peer) => {
                    let due = self.now.after(Duration::from_micros(self.random.random_range(10..200)));
                    self.at(due, Happening::Stop(peer));
                }
                Effect::Record(event) => {
                    self.note(|| format!("launcher: {event:?}"));
                    if let ArbiterEvent::Lost { .. } = event {
                        self.loss();
                    }
                    self.record.events.push((self.now, Event::Launcher(event)));
                }
                Effect::End { code, message } => {
                    self.note(|| format!("launcher: the job ends with {code} {message}"));
                    self.job_ended(code, message);
                }
            }
        }
    }

    /// A process is to be started.
    fn order(&mut self, peer: PeerId, rank: Rank, incarnation: u32) {
        assert_eq!(peer.0 as usize, self.processes.len() + 1, "peers are numbered in order");
        self.processes.push(Process::new(rank, incarnation));
        self.arbiter.started(self.now, peer);
        let micros = self.config.network.start.as_micros() as u64;
        let takes = Duration::from_micros(self.random.random_range(micros / 10..=micros));
        let due = self.now.after(takes);
        self.at(due, Happening::Start(peer));
    }

    fn tell_rank(&mut self, to: PeerId, message: News) {
        let latency = self.latency();
        let takes = self.travel(latency);
        let due = self.now.after(takes);
        let Some(process) = self.process_mut(to).filter(|process| process.alive()) else { return };
        process.control.down_due = process.control.down_due.max(due);
        process.control.down.push_back(message);
        let due = process.control.down_due;
        self.at(due, Happening::ToRank(to));
    }

    pub(super) fn heard_by_rank(&mut self, peer: PeerId) {
        let now = self.now;
        match self.way(peer, PeerId::LAUNCHER) {
            Way::Open => {}
            Way::CutUntil(heals) => {
                let due = heals.after(Duration::from_micros(10));
                return self.at(due, Happening::ToRank(peer));
            }
            Way::CutForEver => return,
        }
        let Some(process) = self.process_mut(peer).filter(|process| process.alive()) else { return };
        if process.stopped {
            process.deferred.push(Happening::ToRank(peer));
            return;
        }
        let Some(message) = process.control.down.pop_front() else { return };
        process.control.member.handle(now, message);
        self.serve_member(peer);
    }

    pub(super) fn member_tick(&mut self, peer: PeerId) {
        let now = self.now;
        let Some(process) = self.process_mut(peer).filter(|process| process.alive()) else { return };
        if process.stopped {
            process.deferred.push(Happening::MemberTick(peer));
            return;
        }
        process.control.member.tick(now);
        let due = process.control.member.poll_timeout().max(now.after(Duration::from_micros(1)));
        self.at(due, Happening::MemberTick(peer));
        self.serve_member(peer);
    }

    /// Passes on what the member of a process has to say and has learnt.
    fn serve_member(&mut self, peer: PeerId) {
        let Some(process) = self.process_mut(peer) else { return };
        let mut said = Vec::new();
        while let Some(message) = process.control.member.poll_transmit() {
            said.push(message);
        }
        let mut learnt = Vec::new();
        while let Some(news) = process.control.member.poll_news() {
            learnt.push(news);
        }
        said.into_iter().for_each(|message| self.tell_launcher(peer, message));
        for news in learnt {
            match &news {
                News::Die => return self.die(peer, Exit::Status(DIED)),
                News::Ended { code, .. } => {
                    let code = *code;
                    self.heed(peer, code);
                }
                News::Asked { of, number, .. } => {
                    let verdicts = self.process(peer).map(|process| process.heard.verdicts.clone());
                    let answer = verdicts.and_then(|verdicts| verdicts.asked(*of, *number));
                    answer.into_iter().for_each(|message| self.tell_launcher(peer, message));
                    continue;
                }
                _ => {}
            }
            if let Some(process) = self.process_mut(peer) {
                let alarm = process.heard.alarm.clone();
                alarm.pass_on(news, |news| process.heard.news.push_back(news));
            }
            self.ring(peer);
        }
    }

    /// The program of a process says something to the launcher.
    pub(super) fn submit(&mut self, peer: PeerId, message: ToArbiter) {
        if let Some(process) = self.process_mut(peer) {
            process.control.member.submit(message);
        }
        self.serve_member(peer);
    }

    /// A process asks these ranks for a sign of life, and hears of it within the timeout or not at all.
    pub(super) fn ask(&mut self, from: PeerId, question: &Question) {
        let due = self.now.after(self.config.timeout);
        let Question { generation, goes_on, .. } = *question;
        for (rank, to) in question.awaited.iter().copied() {
            self.at(
                due,
                Happening::Answer {
                    from,
                    to,
                    suspect: ToArbiter::Suspect { generation, rank, goes_on, why: String::new() },
                },
            );
        }
    }

    pub(super) fn answer(&mut self, from: PeerId, to: PeerId, suspect: ToArbiter) {
        let ToArbiter::Suspect { generation, .. } = suspect else { return };
        let Some(process) = self.process(from).filter(|process| process.alive() && !process.stopped) else {
            return;
        };
        if process.wires.generation != Some(generation) {
            return; // a newer one: the question is not of interest any more
        }
        let there = self.process(to);
        let answers =
            there.is_some_and(|there| there.alive() && !there.stopped) && self.way(from, to) == Way::Open;
        if !answers {
            self.note(|| format!("process {} suspects process {} of generation {generation}", from.0, to.0));
            self.submit(from, suspect);
        }
    }

    fn tell_launcher(&mut self, peer: PeerId, message: ToArbiter) {
        let latency = self.latency();
        let takes = self.travel(latency);
        self.tell_up(peer, Up::Message(message), takes);
    }

    fn tell_up(&mut self, peer: PeerId, up: Up, takes: Duration) {
        let due = self.now.after(takes);
        let Some(process) = self.process_mut(peer) else { return };
        process.control.up_due = process.control.up_due.max(due);
        process.control.up.push_back(up);
        let due = process.control.up_due;
        self.at(due, Happening::Up(peer));
    }

    /// The launcher will see the end of a process: the operating system tells, soon or late; if late, the
    /// broken link does before.
    pub(super) fn tell_end(&mut self, peer: PeerId, exit: Exit) {
        let late = self.config.network.hiccups > 0 && self.random.random_ratio(1, 8);
        if late {
            let broken = CAUSE + Duration::from_micros(self.random.random_range(0..5_000));
            self.tell_up(peer, Up::Broken, broken);
            let confirmed = broken + Duration::from_micros(self.random.random_range(0..100_000));
            self.tell_up(peer, Up::Exit(exit), confirmed);
        } else {
            let confirmed = Duration::from_micros(self.random.random_range(10..2_000));
            self.tell_up(peer, Up::Exit(exit), confirmed);
        }
    }

    pub(super) fn heard_by_launcher(&mut self, peer: PeerId) {
        match self.way(peer, PeerId::LAUNCHER) {
            Way::Open => {}
            Way::CutUntil(heals) => {
                let due = heals.after(Duration::from_micros(10));
                return self.at(due, Happening::Up(peer));
            }
            Way::CutForEver => return,
        }
        let Some(up) = self.process_mut(peer).and_then(|process| process.control.up.pop_front()) else {
            return;
        };
        let now = self.now;
        match up {
            Up::Message(message) => {
                if self.process(peer).is_some_and(|process| process.control.connected) {
                    self.arbiter.handle(now, peer, message);
                }
            }
            Up::Broken => {
                if let Some(process) = self.process_mut(peer) {
                    process.control.connected = false;
                }
                self.arbiter.disconnected(now, peer);
            }
            Up::Exit(exit) => self.arbiter.exited(now, peer, exit),
        }
        self.carry_out();
        self.end_if_all_ended();
    }

    /// The program of a process has taken this news.
    pub(super) fn taken(&mut self, peer: PeerId, news: &News) {
        if let (News::Decided(membership), Some(process)) = (news, self.process_mut(peer)) {
            process.control.decided = Some(membership.clone());
        }
    }

    /// A process has returned from a repair or from joining.
    pub(super) fn returned(&mut self, peer: PeerId) {
        let at = self.now;
        let Some(process) = self.process_mut(peer) else { return };
        let Some(membership): Option<Membership> = process.control.decided.take() else { return };
        let seen = Seen { at, peer, rank: process.rank, incarnation: process.incarnation, membership };
        self.record.seen.push(seen);
    }
}
