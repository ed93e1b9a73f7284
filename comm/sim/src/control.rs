//! The control plane: the arbiter in the kernel, a member for every process, and first-in-first-out links with
//! random delays between them.

use std::time::Duration;

use rand::RngExt;

use super::happening::Happening;
use super::kernel::{GRACE, Kernel};
use super::net::Way;
use super::outcome::{Event, Seen};
use super::process::{Life, Process, Up};
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
                    self.hosts.seat(peer, rank);
                    if let Some(process) = self.processes.get_mut(peer) {
                        (process.rank, process.incarnation) = (rank, incarnation);
                    }
                }
                Effect::Kill(peer) => {
                    let due = self
                        .agenda
                        .now
                        .after(Duration::from_micros(self.agenda.random.random_range(10..200)));
                    self.agenda.at(due, Happening::Kill(peer));
                }
                Effect::Stop(peer) => {
                    let due = self
                        .agenda
                        .now
                        .after(Duration::from_micros(self.agenda.random.random_range(10..200)));
                    self.agenda.at(due, Happening::Stop(peer));
                }
                Effect::Record(event) => {
                    self.note(|| format!("launcher: {event:?}"));
                    if let ArbiterEvent::Lost { .. } = event {
                        for (number, delay) in self.plan.lost() {
                            self.agenda.after(delay, Happening::Fault(number));
                        }
                    }
                    self.record.events.push((self.agenda.now, Event::Launcher(event)));
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
        let (hosts, processes) = (&mut self.hosts, &self.processes);
        hosts.place(peer, rank, |other| {
            processes.get(other).is_some_and(|process| process.life != Life::Dead)
        });
        self.processes.add(peer, Process::new(rank, incarnation));
        self.arbiter.started(self.agenda.now, peer);
        let micros = self.agenda.network.start.as_micros() as u64;
        let takes = Duration::from_micros(self.agenda.random.random_range(micros / 10..=micros));
        let due = self.agenda.now.after(takes);
        self.agenda.at(due, Happening::Start(peer));
    }

    fn tell_rank(&mut self, to: PeerId, message: News) {
        let latency = self.agenda.latency();
        let takes = self.agenda.travel(latency);
        let due = self.agenda.now.after(takes);
        let Some(process) = self.processes.get_mut(to).filter(|process| process.alive()) else { return };
        process.control.down_due = process.control.down_due.max(due);
        process.control.down.push_back(message);
        let due = process.control.down_due;
        self.agenda.at(due, Happening::ToRank(to));
    }

    pub(super) fn heard_by_rank(&mut self, peer: PeerId) {
        let now = self.agenda.now;
        match self.net.way(peer, PeerId::LAUNCHER) {
            Way::Open => {}
            Way::CutUntil(heals) => {
                let due = heals.after(Duration::from_micros(10));
                return self.agenda.at(due, Happening::ToRank(peer));
            }
            Way::CutForEver => return,
        }
        let Some(process) = self.processes.get_mut(peer).filter(|process| process.alive()) else { return };
        if process.stopped {
            process.deferred.push(Happening::ToRank(peer));
            return;
        }
        let Some(message) = process.control.down.pop_front() else { return };
        process.control.member.handle(now, message);
        self.serve_member(peer);
    }

    pub(super) fn member_tick(&mut self, peer: PeerId) {
        let now = self.agenda.now;
        let Some(process) = self.processes.get_mut(peer).filter(|process| process.alive()) else { return };
        if process.stopped {
            process.deferred.push(Happening::MemberTick(peer));
            return;
        }
        process.control.member.tick(now);
        let due = process.control.member.poll_timeout().max(now.after(Duration::from_micros(1)));
        self.agenda.at(due, Happening::MemberTick(peer));
        self.serve_member(peer);
    }

    /// Passes on what the member of a process has to say and has learnt.
    fn serve_member(&mut self, peer: PeerId) {
        let Some(process) = self.processes.get_mut(peer) else { return };
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
                    self.agenda.after(GRACE, Happening::Grace(peer, *code));
                }
                News::Asked { of, number, .. } => {
                    let verdicts = self.processes.get(peer).map(|process| process.heard.verdicts.clone());
                    let answer = verdicts.and_then(|verdicts| verdicts.asked(*of, *number));
                    answer.into_iter().for_each(|message| self.tell_launcher(peer, message));
                    continue;
                }
                _ => {}
            }
            if let Some(process) = self.processes.get_mut(peer) {
                let alarm = process.heard.alarm.clone();
                alarm.pass_on(news, |news| process.heard.news.push_back(news));
            }
            self.ring(peer);
        }
    }

    /// The program of a process says something to the launcher.
    pub(super) fn submit(&mut self, peer: PeerId, message: ToArbiter) {
        if let Some(process) = self.processes.get_mut(peer) {
            process.control.member.submit(message);
        }
        self.serve_member(peer);
    }

    /// A process has asked another one for a sign of life: it has given one by now, or is suspected.
    pub(super) fn answer(&mut self, from: PeerId, to: PeerId, suspect: ToArbiter) {
        let ToArbiter::Suspect { generation, .. } = suspect else { return };
        let Some(process) = self.processes.get(from).filter(|process| process.alive() && !process.stopped)
        else {
            return;
        };
        if process.wires.generation != Some(generation) {
            return; // a newer one: the question is not of interest any more
        }
        let there = self.processes.get(to);
        let answers =
            there.is_some_and(|there| there.alive() && !there.stopped) && self.net.way(from, to) == Way::Open;
        if !answers {
            self.note(|| format!("process {} suspects process {} of generation {generation}", from.0, to.0));
            self.submit(from, suspect);
        }
    }

    fn tell_launcher(&mut self, peer: PeerId, message: ToArbiter) {
        let latency = self.agenda.latency();
        let takes = self.agenda.travel(latency);
        self.tell_up(peer, Up::Message(message), takes);
    }

    fn tell_up(&mut self, peer: PeerId, up: Up, takes: Duration) {
        let due = self.agenda.now.after(takes);
        let Some(process) = self.processes.get_mut(peer) else { return };
        process.control.up_due = process.control.up_due.max(due);
        process.control.up.push_back(up);
        let due = process.control.up_due;
        self.agenda.at(due, Happening::Up(peer));
    }

    /// The launcher will see the end of a process: the operating system tells, soon or late; if late, the
    /// broken link does before.
    pub(super) fn tell_end(&mut self, peer: PeerId, exit: Exit) {
        let late = self.agenda.is_rough() && self.agenda.random.random_ratio(1, 8);
        if late {
            let broken = CAUSE + Duration::from_micros(self.agenda.random.random_range(0..5_000));
            self.tell_up(peer, Up::Broken, broken);
            let confirmed = broken + Duration::from_micros(self.agenda.random.random_range(0..100_000));
            self.tell_up(peer, Up::Exit(exit), confirmed);
        } else {
            let confirmed = Duration::from_micros(self.agenda.random.random_range(10..2_000));
            self.tell_up(peer, Up::Exit(exit), confirmed);
        }
    }

    pub(super) fn heard_by_launcher(&mut self, peer: PeerId) {
        match self.net.way(peer, PeerId::LAUNCHER) {
            Way::Open => {}
            Way::CutUntil(heals) => {
                let due = heals.after(Duration::from_micros(10));
                return self.agenda.at(due, Happening::Up(peer));
            }
            Way::CutForEver => return,
        }
        let Some(up) = self.processes.get_mut(peer).and_then(|process| process.control.up.pop_front()) else {
            return;
        };
        let now = self.agenda.now;
        match up {
            Up::Message(message) => {
                if self.processes.get(peer).is_some_and(|process| process.control.connected) {
                    self.arbiter.handle(now, peer, message);
                }
            }
            Up::Broken => {
                if let Some(process) = self.processes.get_mut(peer) {
                    process.control.connected = false;
                }
                self.arbiter.disconnected(now, peer);
            }
            Up::Exit(exit) => self.arbiter.exited(now, peer, exit),
        }
        self.carry_out();
        self.end_if_all_ended();
    }

    /// A process has returned from a repair or from joining.
    pub(super) fn returned(&mut self, peer: PeerId) {
        let at = self.agenda.now;
        let Some(process) = self.processes.get_mut(peer) else { return };
        let Some(membership): Option<Membership> = process.control.decided.take() else { return };
        let seen = Seen { at, peer, rank: process.rank, incarnation: process.incarnation, membership };
        self.record.seen.push(seen);
    }
}
