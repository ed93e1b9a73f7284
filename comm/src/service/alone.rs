//! The second plane of a program that was started without the launcher: a job of one rank, which is its own
//! arbiter.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use super::Service;
use super::alarm::Alarm;
use super::verdicts::Verdicts;
use ft_proto::rank::{Agreement, Generation, Membership, OnFailure, PeerId, Seat};
use ft_proto::settings::MessageSettings;
use ft_proto::wire::control::{News, ToArbiter, Verdict, Welcome, Word};

/// The control plane of a job of one rank without a launcher: every question answers itself.
#[derive(Debug)]
pub struct Alone(RefCell<VecDeque<News>>);

fn membership(generation: Generation, report: u64) -> News {
    let seat = Seat { peer: PeerId(1), incarnation: 0, address: String::new() };
    News::Decided(Membership {
        generation,
        seats: vec![seat],
        compute: 1,
        before: vec![(generation > 0).then_some(0)],
        reports: vec![report],
        ..Membership::default()
    })
}

impl Default for Alone {
    fn default() -> Self {
        let welcome = Welcome {
            rank: 0,
            incarnation: 0,
            compute: 1,
            total: 1,
            joining: 0,
            heartbeat_ms: 100,
            timeout_ms: 1000,
            on_failure: OnFailure::Rebuild,
            messages: MessageSettings::default(),
            layers: BTreeMap::new(),
            kills: vec![],
        };
        Self(RefCell::new(VecDeque::from([News::Welcome(welcome)])))
    }
}

impl Service for Alone {
    fn submit(&self, message: ToArbiter) {
        let mut news = self.0.borrow_mut();
        match message {
            ToArbiter::Join { .. } => news.push_back(membership(0, 0)),
            ToArbiter::Ready { generation, report } => news.push_back(membership(generation + 1, report)),
            ToArbiter::Agree { generation, of, number, word: Word::Gives { flags, context: next, .. } } => {
                let agreement = Agreement { flags, ..Agreement::default() };
                news.push_back(News::Agreed {
                    generation,
                    context: of.context,
                    number,
                    verdict: Verdict { agreement, context: next },
                });
            }
            ToArbiter::Revoke { generation, context, .. } => {
                news.push_back(News::Revoked { generation, context });
            }
            ToArbiter::Finalize { .. } => news.push_back(News::Finalized),
            ToArbiter::Goodbye { code, message } => {
                news.push_back(News::Ended { code: code.unwrap_or(1), message });
            }
            ToArbiter::Beat { .. }
            | ToArbiter::Suspect { .. }
            | ToArbiter::Agree { .. }
            | ToArbiter::Resumed { .. }
            | ToArbiter::Mark { .. }
            | ToArbiter::Reached { .. }
            | ToArbiter::Activity { .. }
            | ToArbiter::Waiting(_)
            | ToArbiter::Moving
            | ToArbiter::Refused { .. }
            | ToArbiter::Progress { .. }
            | ToArbiter::Saved(_)
            | ToArbiter::Keeps { .. }
            | ToArbiter::Account { .. }
            | ToArbiter::Done { .. }
            | ToArbiter::Silent { .. }
            | ToArbiter::Dead { .. } => {}
        }
    }

    fn has_news(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    fn take_news(&self) -> Option<News> {
        self.0.borrow_mut().pop_front()
    }

    fn alarm(&self) -> Alarm {
        Alarm::default() // nobody is there to be lost
    }

    fn verdicts(&self) -> Verdicts {
        Verdicts::default() // nor to ask
    }

    fn close(&mut self) {}
}
