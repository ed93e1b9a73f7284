//! The rank's end of the simulated control plane.

use super::happening::Happening;
use super::transport::Place;
use ft_comm::ReadyMemory;
use ft_comm::service::alarm::Alarm;
use ft_comm::service::verdicts::Verdicts;
use ft_comm::service::{Question, Service};
use ft_comm::time::{Clock, Time};
use ft_proto::wire::control::{News, ToArbiter};

/// See the module.
pub(super) struct SimService(pub(super) Place);

impl Service for SimService {
    fn submit(&self, message: ToArbiter) {
        self.0.enter().submit(self.0.peer, message);
    }

    fn ask(&self, question: Question) {
        let Question { generation, goes_on, awaited } = question;
        let kernel = &mut *self.0.enter();
        for (rank, to) in awaited {
            let suspect = ToArbiter::Suspect { generation, rank, goes_on, why: String::new() };
            let from = self.0.peer;
            // It hears of it within the timeout or not at all.
            kernel.agenda.after(kernel.config.timeout, Happening::Answer { from, to, suspect });
        }
    }

    fn now(&self, _: &Clock) -> Time {
        self.0.shared.lock().agenda.now
    }

    fn has_news(&self) -> bool {
        self.0.enter().processes.get(self.0.peer).is_some_and(|process| !process.heard.news.is_empty())
    }

    fn take_news(&self) -> Option<News> {
        let mut kernel = self.0.enter();
        let process = kernel.processes.get_mut(self.0.peer)?;
        let news = process.heard.news.pop_front()?;
        if let News::Decided(membership) = &news {
            process.control.decided = Some(membership.clone());
        }
        Some(news)
    }

    fn alarm(&self) -> Alarm {
        let kernel = self.0.enter();
        kernel.processes.get(self.0.peer).map_or_else(Alarm::default, |process| process.heard.alarm.clone())
    }

    fn verdicts(&self) -> Verdicts {
        let kernel = self.0.enter();
        kernel
            .processes
            .get(self.0.peer)
            .map_or_else(Verdicts::default, |process| process.heard.verdicts.clone())
    }

    fn ready(&self) -> ReadyMemory {
        let kernel = self.0.enter();
        let process = kernel.processes.get(self.0.peer);
        process.map_or_else(ReadyMemory::default, |process| process.heard.ready.clone())
    }

    fn close(&mut self) {
        let mut kernel = self.0.enter();
        if let Some(process) = kernel.processes.get_mut(self.0.peer) {
            process.heard.closed = true;
        }
    }
}
