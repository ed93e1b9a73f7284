//! Messages over a bad network: random programs of sends, receives and wildcards, and the rules of MPI for what
//! each receive takes (MPI 4.1, section 3.5), looked up afterwards without knowing how it was done.

mod program;

use ft_comm::{CommError, Communicator, EAGER_BYTES_MAX, Rank, Request, Source, Status, TagSel, World};
use ft_proto::planted;
use ft_sim::{self as sim, Config};

use self::program::{Action, Message, Wanted, generate, shuffle};
use super::{Choices, Course, checker, finds, for_all, planted_or_little_credit, seeds};

/// Programs that are run if no number is told.
const PROGRAMS: u64 = 300;

/// A receive that has ended.
#[derive(Debug)]
struct Taken {
    wanted: Wanted,
    status: Status,
    contents: Vec<u8>,
}

/// One rank at work: its receives in the order in which they were posted, and its requests.
struct Runner {
    comms: [Communicator; program::COMMS],
    taken: Vec<Option<Taken>>,
    requests: Vec<(Pending, Request<u8>)>,
}

/// What a request is for.
enum Pending {
    Send(Message),
    /// Which of the receives.
    Receive(usize, Wanted),
}

fn source(wanted: &Wanted) -> Source {
    wanted.source.map_or(Source::Any, Source::Rank)
}

fn tag(wanted: &Wanted) -> TagSel {
    wanted.tag.map_or(TagSel::Any, TagSel::Tag)
}

impl Runner {
    fn act(&mut self, action: &Action) -> Result<(), CommError> {
        match action {
            Action::Send(message) => {
                self.comms[message.comm].send(&message.contents(), message.dest, message.tag)?;
            }
            Action::Isend(message) => {
                let send = self.comms[message.comm].isend(message.contents(), message.dest, message.tag)?;
                self.requests.push((Pending::Send(*message), send));
            }
            Action::Recv(wanted) => {
                let mut buf = vec![0; wanted.room];
                let status = self.comms[wanted.comm].recv(&mut buf, source(wanted), tag(wanted))?;
                self.took(*wanted, status, buf);
            }
            Action::Irecv(wanted) => {
                let comm = &self.comms[wanted.comm];
                let receive = comm.irecv(vec![0; wanted.room], source(wanted), tag(wanted))?;
                self.requests.push((Pending::Receive(self.taken.len(), *wanted), receive));
                self.taken.push(None);
            }
            Action::Probe(wanted) => {
                let comm = &self.comms[wanted.comm];
                let found = comm.probe(source(wanted), tag(wanted))?;
                let mut buf = vec![0; found.bytes];
                let status = comm.recv(&mut buf, found.source, found.tag)?;
                assert_eq!(status, found, "what was probed is received");
                self.took(*wanted, status, buf);
            }
            Action::Sendrecv(message, wanted) => {
                let mut buf = vec![0; wanted.room];
                let (comm, out) = (&self.comms[wanted.comm], message.contents());
                let status = comm.sendrecv(&out, message.dest, &mut buf, source(wanted), message.tag)?;
                self.took(*wanted, status, buf);
            }
            Action::Wait(order) => self.wait(Choices(*order))?,
            Action::Barrier => self.comms[0].barrier()?,
        }
        Ok(())
    }

    fn took(&mut self, wanted: Wanted, status: Status, mut contents: Vec<u8>) {
        contents.truncate(status.bytes);
        self.taken.push(Some(Taken { wanted, status, contents }));
    }

    /// Waits for all requests in any order, for some after a look.
    fn wait(&mut self, mut order: Choices) -> Result<(), CommError> {
        let mut requests = std::mem::take(&mut self.requests);
        shuffle(&mut order, &mut requests);
        for (pending, request) in requests {
            let looked = if order.below(3) == 0 { request.test()? } else { Err(request) };
            let (mut contents, status) = match looked {
                Ok(done) => done,
                Err(request) => request.wait()?,
            };
            match pending {
                Pending::Send(message) => {
                    assert_eq!(contents, message.contents(), "a send gives its buffer back")
                }
                Pending::Receive(at, wanted) => {
                    contents.truncate(status.bytes);
                    self.taken[at] = Some(Taken { wanted, status, contents });
                }
            }
        }
        Ok(())
    }
}

fn run(mut world: World, actions: &[Action]) -> Result<Vec<Taken>, CommError> {
    let comms = [world.comm().clone(), world.library(5), world.library(6)];
    let mut runner = Runner { comms, taken: vec![], requests: vec![] };
    actions.iter().try_for_each(|action| runner.act(action))?;
    world.finalize(vec![])?;
    Ok(runner.taken.into_iter().map(|taken| taken.expect("programs wait for their requests")).collect())
}

/// Every message to `rank` is received once and whole, by a receive that accepts it; and no receive takes a
/// message while an earlier one of the same sender, which it would have accepted too, is left to later receives.
fn check_rank(rank: Rank, programs: &[Vec<Action>], taken: &[Taken]) -> Result<(), String> {
    // What each rank has sent to this one and was not received yet, in order.
    let sent_by = |actions: &Vec<Action>| -> Vec<Message> {
        let sent = actions.iter().filter_map(|action| match action {
            Action::Send(message) | Action::Isend(message) | Action::Sendrecv(message, _) => Some(*message),
            _ => None,
        });
        sent.filter(|message| message.dest == rank).collect()
    };
    let mut left: Vec<Vec<Message>> = programs.iter().map(sent_by).collect();
    for (number, Taken { wanted, status, contents }) in taken.iter().enumerate() {
        let what = || format!("receive {number} of rank {rank}, {wanted:?}, took {status:?}");
        let is_it = |message: &Message| {
            message.comm == wanted.comm
                && (message.tag, message.bytes) == (status.tag, status.bytes)
                && message.contents() == *contents
        };
        let stream = left.get_mut(status.source).ok_or_else(what)?;
        let at = stream
            .iter()
            .position(is_it)
            .ok_or_else(|| format!("{}: nobody sent that, or it came twice", what()))?;
        if !wanted.accepts(&stream[at]) {
            return Err(format!("{}: it does not fit", what()));
        }
        if let Some(earlier) = stream[..at].iter().find(|earlier| wanted.accepts(earlier)) {
            return Err(format!("{}: {:?} overtook {earlier:?}", what(), stream[at]));
        }
        stream.remove(at);
    }
    match left.iter().flatten().next() {
        Some(lost) => Err(format!("rank {rank} never received {lost:?}")),
        None => Ok(()),
    }
}

fn check(seed: u64, bug: &'static str) -> Result<Course, String> {
    let programs = generate(seed);
    let config = Config { bug: planted_or_little_credit(seed, bug), ..Config::rough(seed, programs.len()) };
    let outcome = sim::run(config, |world| {
        let actions = &programs[world.rank()];
        run(world, actions)
    });
    // The first error says more than the end of the job, which it brings about.
    for finished in &outcome.finished {
        if let Ok(Err(error)) = &finished.result {
            return Err(format!("rank {}: {error}", finished.rank));
        }
    }
    let (code, message) = checker::status(&outcome)?;
    if code != 0 {
        return Err(format!("ended with {code}: {message}"));
    }
    for rank in 0..programs.len() {
        let taken = outcome.result(rank).and_then(|result| result.as_ref().ok());
        check_rank(rank, &programs, taken.ok_or_else(|| format!("rank {rank} has not ended"))?)?;
    }
    Ok(checker::course(&outcome))
}

#[test]
fn receives_take_what_the_rules_of_mpi_say() {
    for_all(seeds(PROGRAMS), "receives_take", &[Course::Undisturbed], |seed| check(seed, ""));
}

#[test]
fn planted_a_receive_that_takes_the_last_message_is_caught() {
    // Most such receives fail, or wait for ever. It is the order itself that is to be found wrong.
    finds(planted::TAKES_LAST, |seed| match check(seed, planted::TAKES_LAST) {
        Err(text) if text.contains("overtook") => Err(text),
        _ => Ok(Course::Undisturbed),
    });
}

#[test]
fn programs_have_all_that_is_to_be_tested() {
    let programs: Vec<Action> = (0..PROGRAMS).flat_map(generate).flatten().collect();
    let count = |is: &dyn Fn(&Action) -> bool| programs.iter().filter(|action| is(action)).count();
    let sent = |is: &dyn Fn(&Message) -> bool| {
        count(
            &|action| matches!(action, Action::Send(m) | Action::Isend(m) | Action::Sendrecv(m, _) if is(m)),
        )
    };
    let wanted = |is: &dyn Fn(&Wanted) -> bool| {
        count(
            &|action| matches!(action, Action::Recv(w) | Action::Irecv(w) | Action::Probe(w) | Action::Sendrecv(_, w) if is(w)),
        )
    };
    for (what, often) in [
        ("blocking sends", count(&|action| matches!(action, Action::Send(_)))),
        ("blocking receives", count(&|action| matches!(action, Action::Recv(_)))),
        ("probes", count(&|action| matches!(action, Action::Probe(_)))),
        ("messages to oneself", sent(&|message| message.source == message.dest)),
        ("empty messages", sent(&|message| message.bytes == 0)),
        ("announced messages", sent(&|message| message.bytes > EAGER_BYTES_MAX)),
        ("receives of anything", wanted(&|wanted| wanted.source.is_none() && wanted.tag.is_none())),
        ("receives of a tag", wanted(&|wanted| wanted.source.is_none() && wanted.tag.is_some())),
        ("receives of a source", wanted(&|wanted| wanted.source.is_some() && wanted.tag.is_none())),
    ] {
        assert!(often as u64 > PROGRAMS / 2, "only {often} {what} in {PROGRAMS} programs");
    }
}
