use rustix::event::PollFlags;

use super::*;
use crate::transport::{Carrier, Congestion, Doorman, LinkOptions, Room, Waiting, timespec};
use ft_proto::rank::Seat;
use ft_proto::wire::handshake::JobKey;

const ME: PeerId = PeerId(1);
const OTHER: PeerId = PeerId(2);
const TIMEOUT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn credentials(fill: u8) -> Credentials {
    Credentials { key: JobKey { job: [1; 16], key: [fill; 32] }, secret: true }
}

fn question(generation: u32, ranks: &[usize]) -> Question {
    let awaited = ranks.iter().map(|rank| (*rank, [ME, OTHER][*rank])).collect();
    Question { generation, awaited, goes_on: false }
}

struct Bench {
    doorman: Doorman,
    cuts: Cuts,
    questions: Questions,
}

impl Bench {
    /// Rank 0 asks; rank 1 is behind the doorman.
    fn new(carrier: Carrier, theirs: u8) -> Self {
        let options = LinkOptions {
            host: "here".into(),
            listen: Some([127, 0, 0, 1].into()),
            carrier,
            waiting: Waiting::Auto,
            congestion: Congestion::default(),
        };
        let doorman = Doorman::listen_for_links(
            credentials(theirs),
            OTHER,
            &options,
            Accounts::default(),
            Room::default(),
        );
        let doorman = doorman.unwrap();
        let address = doorman.address("here").unwrap().to_string();
        let cuts = Cuts::default();
        let mut questions =
            Questions::new(credentials(1), ME, "here".into(), cuts.clone(), Accounts::default());
        questions.allow(at(0), TIMEOUT);
        let seat = |peer, address| Seat { peer, incarnation: 0, address };
        let seats = vec![seat(ME, String::new()), seat(OTHER, address)];
        questions.enter(Membership { generation: 3, seats, ..Membership::default() });
        Self { doorman, cuts, questions }
    }

    /// Both sides move at this time, until the other side has nothing more to do.
    fn turn(&mut self, now: Time) -> Vec<ToArbiter> {
        let suspects = self.questions.tick(now);
        let mut fds: Vec<PollFd<'_>> =
            self.doorman.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let some = rustix::event::poll(&mut fds, Some(&timespec(Duration::from_millis(1)))).unwrap() > 0;
        drop(fds);
        if some {
            assert!(self.doorman.serve(now).is_empty(), "a question is no link");
        }
        suspects
    }

    /// Who is suspected when, in milliseconds, if rank 1 is asked at 10 ms.
    fn suspects(&mut self, until: u64) -> Option<(u64, Vec<ToArbiter>)> {
        self.questions.ask(at(10), &question(3, &[0, 1]));
        (10..until).step_by(10).find_map(|ms| {
            let suspects = self.turn(at(ms));
            (!suspects.is_empty()).then_some((ms, suspects))
        })
    }
}

#[test]
fn who_answers_is_not_suspected() {
    for carrier in [Carrier::Auto, Carrier::Tcp] {
        let mut bench = Bench::new(carrier, 1);
        assert_eq!(bench.suspects(1000), None, "{carrier}");
        assert!(bench.questions.open.is_empty(), "{carrier}: the question is answered");
    }
}

#[test]
fn who_does_not_answer_in_time_is_suspected_once() {
    let suspect = |ms| {
        Some((
            ms,
            vec![ToArbiter::Suspect { generation: 3, rank: 1, goes_on: false, why: SILENT.to_owned() }],
        ))
    };
    // Cut off: not even the question gets there.
    let mut bench = Bench::new(Carrier::Auto, 1);
    bench.cuts.cut(at(0), &[OTHER], None);
    assert_eq!(bench.suspects(1000), suspect(120));
    assert_eq!(bench.turn(at(130)), []);
    assert_eq!(bench.doorman.refused(), 0);
    // It answers, but does not know the key of the job.
    assert_eq!(Bench::new(Carrier::Tcp, 2).suspects(1000), suspect(120));
}

#[test]
fn a_cut_that_heals_in_time_is_no_reason_to_suspect() {
    let mut bench = Bench::new(Carrier::Auto, 1);
    bench.cuts.cut(at(0), &[OTHER], Some(TIMEOUT / 2));
    assert_eq!(bench.suspects(1000), None);
    assert!(bench.questions.open.is_empty());
}

#[test]
fn questions_end_with_their_generation() {
    let mut bench = Bench::new(Carrier::Auto, 1);
    bench.questions.ask(at(10), &question(2, &[1]));
    assert!(bench.questions.open.is_empty(), "an old generation");
    bench.cuts.cut(at(0), &[OTHER], None);
    bench.questions.ask(at(10), &question(3, &[1]));
    bench.questions.give_up();
    assert_eq!((10..1000).step_by(10).flat_map(|ms| bench.turn(at(ms))).count(), 0);
}
