//! Every way on which links go, end to end: real sockets, handshakes and strangers, in one process.

use std::io::{Read, Write};
use std::thread::JoinHandle;

use proptest::prelude::*;
use rustix::event::EventfdFlags;

use super::super::accept::NEWCOMERS_MAX;
use super::super::opening::Client;
use super::super::options::Carrier;
use super::super::{Congestion, Doorman, Probe, Room, Waiting, connect, noise};
use super::*;
use ft_proto::wire::handshake::{HELLO_BYTES, JobKey, PROOF_BYTES, REPLY_BYTES};

const KEY: JobKey = JobKey { job: [1; 16], key: [2; 32] };

/// What lies between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A Unix socket within a host, and memory beside it.
    Near,
    /// A Unix socket within a host.
    Unix,
    /// TCP within a host.
    Tcp,
    /// TCP between hosts, sealed.
    Far,
    /// The same, but everybody may read it.
    Open,
}

const WAYS: [Way; 5] = [Way::Near, Way::Unix, Way::Tcp, Way::Far, Way::Open];

impl Way {
    fn carrier(self) -> Carrier {
        match self {
            Self::Near => Carrier::Auto,
            Self::Unix => Carrier::Unix,
            Self::Tcp | Self::Far | Self::Open => Carrier::Tcp,
        }
    }

    fn credentials(self) -> Credentials {
        Credentials { key: KEY, secret: self != Self::Open }
    }

    /// The host of the second process; the first is on "here".
    fn there(self) -> &'static str {
        if matches!(self, Self::Far | Self::Open) { "there" } else { "here" }
    }
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}

fn ring(fd: &OwnedFd) {
    rustix::io::write(fd, &1u64.to_ne_bytes()).unwrap();
}

/// One process of a job: its transport, and the thread that answers handshakes.
struct Process {
    peer: PeerId,
    address: String,
    transport: SocketTransport,
    accounts: Accounts,
    wake: Arc<OwnedFd>,
    stop: Arc<OwnedFd>,
    doorman: Option<JoinHandle<u64>>,
}

impl Process {
    /// The first or the second of two processes.
    fn start(peer: u32, way: Way) -> Self {
        let host = if peer == 1 { "here" } else { way.there() };
        Self::with(peer, way.credentials(), host, way.carrier(), Room::default())
    }

    fn with(peer: u32, credentials: Credentials, host: &str, carrier: Carrier, room: Room) -> Self {
        let (peer, waiting, congestion) = (PeerId(peer), Waiting::Auto, Congestion::Auto);
        let listen = Some([127, 0, 0, 1].into());
        let options = LinkOptions { host: host.to_owned(), listen, carrier, waiting, congestion };
        let accounts = Accounts::default();
        let (proofs, known, shared) = (credentials.clone(), accounts.clone(), room.clone());
        let doorman = Doorman::listen_for_links(proofs, peer, &options, known, shared);
        let mut doorman = doorman.unwrap();
        let address = doorman.address(host).unwrap().to_string();
        let (links, inbox) = crossbeam_channel::unbounded();
        let (wake, stop) = (Arc::new(eventfd()), Arc::new(eventfd()));
        let (news, known) = (wake.clone(), accounts.clone());
        let transport = SocketTransport::new(credentials, peer, options, inbox, news, known, room).unwrap();
        let (rung, stopped) = (wake.clone(), stop.clone());
        let doorman = std::thread::spawn(move || {
            let clock = Clock::start();
            loop {
                for accepted in doorman.serve(clock.now()) {
                    links.send(accepted).unwrap();
                    ring(&rung);
                }
                let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
                let mut fds = vec![readable(stopped.as_fd())];
                fds.extend(doorman.fds().map(readable));
                rustix::event::poll(&mut fds, None).unwrap();
                if !fds[0].revents().is_empty() {
                    return doorman.refused();
                }
            }
        });
        Self { peer, address, transport, accounts, wake, stop, doorman: Some(doorman) }
    }

    /// Where the first process connects to.
    fn target(&self) -> Target {
        self.address.parse::<Address>().unwrap().nearest("here").unwrap()
    }

    fn me(&self) -> (PeerId, String) {
        (self.peer, self.address.clone())
    }

    /// The next link that another process has opened.
    fn accept(&mut self) -> (PeerId, LinkId) {
        loop {
            if let Some(accepted) = self.transport.accepted() {
                return accepted;
            }
            self.transport.wait(&[], Duration::from_secs(10), &mut Vec::new());
        }
    }

    /// A link to another process. News of accepted links may come first.
    fn open(&mut self, peer: PeerId) -> LinkId {
        loop {
            match self.transport.open(peer) {
                Err(LinkError::Interrupted) => drop(self.ready(Duration::ZERO)),
                opened => return opened.unwrap(),
            }
        }
    }

    /// Links on which something has come.
    fn ready(&mut self, timeout: Duration) -> Vec<LinkId> {
        let mut ready = Vec::new();
        self.transport.wait(&[], timeout, &mut ready);
        ready
    }

    /// Waits until something has come on `link`.
    fn await_ready(&mut self, link: LinkId) {
        // News of an accepted link may come first.
        let found = (0..100).any(|_| self.ready(Duration::from_secs(10)).contains(&link));
        assert!(found, "nothing comes on {link:?}");
    }

    /// Receives exactly so many bytes, in two pieces at a time.
    fn receive(&mut self, link: LinkId, count: usize) -> Vec<u8> {
        let (mut got, mut first, mut second) = (Vec::new(), [0; 7], vec![0; 100_000]);
        while got.len() < count {
            let left = count - got.len();
            let (first, second) =
                (&mut first[..left.min(7)], &mut second[..left.saturating_sub(7).min(100_000)]);
            let pieces = &mut [IoSliceMut::new(first), IoSliceMut::new(second)];
            match self.transport.receive(link, pieces).unwrap() {
                0 => self.await_ready(link),
                n => {
                    got.extend_from_slice(&first[..n.min(first.len())]);
                    got.extend_from_slice(&second[..n.saturating_sub(first.len())]);
                }
            }
        }
        got
    }

    /// Asks the other process how much it has sent.
    fn ask(&self, other: &Self, credentials: &Credentials, generation: Generation) {
        let target = other.address.parse::<Address>().unwrap().nearest("elsewhere").unwrap();
        let mut probe = Probe::new(credentials, self.peer, other.peer, generation, target);
        let sent = loop {
            match probe.advance() {
                Some(sent) => break sent,
                None => std::thread::yield_now(),
            }
        };
        self.accounts.claims(generation, other.peer, sent);
    }

    /// Strangers that were refused, when the doorman has gone home.
    fn refused(mut self) -> u64 {
        ring(&self.stop);
        self.doorman.take().unwrap().join().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        ring(&self.stop);
        self.doorman.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Two processes in one generation, with a link between them.
fn pair(way: Way) -> (Process, Process, LinkId, LinkId) {
    linked(Process::start(1, way), Process::start(2, way))
}

fn linked(mut one: Process, mut two: Process) -> (Process, Process, LinkId, LinkId) {
    let peers = [one.me(), two.me()];
    one.transport.change(5, &peers);
    two.transport.change(5, &peers);
    let ours = one.transport.open(PeerId(2)).unwrap();
    let (from, theirs) = two.accept();
    assert_eq!(from, PeerId(1));
    (one, two, ours, theirs)
}

fn is_unix(process: &Process, link: LinkId) -> bool {
    process.transport.links.get(link).unwrap().channel.socket().peer_addr().unwrap().is_unix()
}

#[test]
fn the_host_and_the_option_decide_what_carries_a_link() {
    for (host, carrier, other, expected) in [
        ("here", Carrier::Auto, Carrier::Auto, true),
        ("here", Carrier::Auto, Carrier::Tcp, false),
        ("there", Carrier::Auto, Carrier::Auto, false),
        ("here", Carrier::Tcp, Carrier::Tcp, false),
    ] {
        let mut one = Process::with(1, Way::Far.credentials(), "here", carrier, Room::default());
        let mut two = Process::with(2, Way::Far.credentials(), host, other, Room::default());
        let peers = [one.me(), two.me()];
        one.transport.change(0, &peers);
        two.transport.change(0, &peers);
        let ours = one.transport.open(PeerId(2)).unwrap();
        let (_, theirs) = two.accept();
        assert_eq!((is_unix(&one, ours), is_unix(&two, theirs)), (expected, expected), "{host} {carrier}");
    }
}

#[test]
fn memory_is_read_over_unix_sockets_only_and_unless_it_is_forbidden() {
    for (carrier, is_near) in [(Carrier::Auto, true), (Carrier::Unix, false), (Carrier::Tcp, false)] {
        let start = |peer| Process::with(peer, Way::Unix.credentials(), "here", carrier, Room::default());
        let (mut one, mut two, ours, theirs) = linked(start(1), start(2));
        let word = [1u8, 2, 3, 4, 5];
        for (process, link) in [(&mut one, ours), (&mut two, theirs)] {
            assert_eq!(process.transport.is_near(link), is_near, "{carrier}");
            let mut into = [0; 5];
            assert_eq!(process.transport.read(link, word.as_ptr() as u64, &mut into), is_near);
            assert_eq!(into == word, is_near);
            assert!(!process.transport.read(link, 8, &mut into), "nothing is there");
            process.transport.close(link);
            assert!(!process.transport.read(link, word.as_ptr() as u64, &mut into), "who is that?");
        }
    }
}

#[test]
fn a_link_carries_bytes_both_ways_in_pieces() {
    for way in WAYS {
        let (mut one, mut two, ours, theirs) = pair(way);
        // More than any socket holds, so that the sender has to wait and to go on in the middle of a piece.
        let sent: Vec<u8> =
            (0..20_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut done, mut got, mut waited) = (0, Vec::new(), 0);
        while got.len() < sent.len() {
            let pieces: Vec<IoSlice<'_>> = sent[done..].chunks(70_001).take(50).map(IoSlice::new).collect();
            done += if pieces.is_empty() { 0 } else { one.transport.send(ours, &pieces).unwrap() };
            waited += usize::from(done < sent.len());
            got.extend(two.receive(theirs, done - got.len()));
            one.transport.wait(&[ours], Duration::from_secs(10), &mut Vec::new());
        }
        assert!(got == sent && waited > 2, "{way:?}: {waited} waits");
        // The other way, on the same link.
        assert_eq!(two.transport.send(theirs, &[IoSlice::new(b"an"), IoSlice::new(b"swer")]), Ok(6));
        assert_eq!(one.receive(ours, 6), b"answer");
        assert_eq!(one.transport.receive(ours, &mut [IoSliceMut::new(&mut [0; 4])]), Ok(0));
    }
}

#[test]
fn the_end_of_a_link_comes_after_its_bytes() {
    for way in WAYS {
        let (mut one, mut two, ours, theirs) = pair(way);
        assert_eq!(one.transport.send(ours, &[IoSlice::new(b"last")]), Ok(4));
        one.transport.close(ours);
        assert!(one.transport.send(ours, &[IoSlice::new(b"x")]).is_err(), "closed here");
        assert_eq!(two.receive(theirs, 4), b"last");
        two.await_ready(theirs); // the end wakes a waiting caller
        let mut byte = [0];
        let end = two.transport.receive(theirs, &mut [IoSliceMut::new(&mut byte)]);
        assert!(matches!(end, Err(LinkError::Down(_))), "{way:?}: {end:?}");
    }
}

#[test]
fn a_process_that_is_gone_cannot_be_reached() {
    for way in WAYS {
        let (mut one, two, _, _) = pair(way);
        drop(two);
        assert!(matches!(one.transport.open(PeerId(2)), Err(LinkError::Down(_))), "{way:?}");
        assert!(matches!(one.transport.open(PeerId(3)), Err(LinkError::Down(_))), "nobody");
    }
}

#[test]
fn links_of_another_generation_wait_or_are_closed() {
    for way in WAYS {
        let (mut one, mut two, old, _) = pair(way);
        let peers = [one.me(), two.me()];
        // One is ahead: its link waits until two is there.
        one.transport.change(6, &peers);
        assert!(one.transport.send(old, &[IoSlice::new(b"x")]).is_err(), "closed with its generation");
        let ahead = one.transport.open(PeerId(2)).unwrap();
        assert_eq!(one.transport.send(ahead, &[IoSlice::new(b"hi")]), Ok(2));
        while two.transport.arrivals.is_empty() {
            two.ready(Duration::from_secs(10));
        }
        assert_eq!(two.transport.accepted(), None, "{way:?}");
        two.transport.change(6, &peers);
        let (from, link) = two.accept();
        assert_eq!((from, two.receive(link, 2)), (PeerId(1), b"hi".to_vec()));
        // Two is ahead: the late link of one is closed, and one sees it.
        two.transport.change(7, &peers);
        let late = one.transport.open(PeerId(2)).unwrap();
        while two.transport.arrivals.is_sorted() {
            two.ready(Duration::from_secs(10));
        }
        assert_eq!(two.transport.accepted(), None);
        one.await_ready(late);
        assert!(one.transport.receive(late, &mut [IoSliceMut::new(&mut [0])]).is_err(), "{way:?}");
    }
}

#[test]
fn a_peer_of_another_membership_is_not_let_in() {
    for way in WAYS {
        let (mut one, mut two, _, _) = pair(way);
        let (only_two, both) = ([two.me()], [one.me(), two.me()]);
        two.transport.change(6, &only_two);
        one.transport.change(6, &both);
        let link = one.transport.open(PeerId(2)).unwrap();
        while two.transport.arrivals.is_sorted() {
            two.ready(Duration::from_secs(10));
        }
        assert_eq!(two.transport.accepted(), None);
        one.await_ready(link);
        assert!(one.transport.receive(link, &mut [IoSliceMut::new(&mut [0])]).is_err(), "{way:?}");
    }
}

#[test]
fn strangers_are_refused() {
    for way in WAYS {
        let two = Process::start(2, way);
        let target = two.target();
        let clock = Clock::start();
        let opening = Opening { from: PeerId(1), to: PeerId(2), generation: 0 };
        let wrong_key = JobKey { key: [9; 32], ..KEY };
        let wrong_job = JobKey { job: [9; 16], ..KEY };
        let wrong_peer = Opening { to: PeerId(3), ..opening };
        for (key, opening) in [(wrong_key, opening), (wrong_job, opening), (KEY, wrong_peer)] {
            let credentials = Credentials { key, ..way.credentials() };
            let end = connect(&credentials, opening, &target, None, &clock);
            assert!(end.is_err(), "{way:?}: {credentials:?} {opening:?}");
        }
        // Bytes without sense: the doorman has had enough of them and closes.
        let mut raw = Socket::new(target.socket.domain(), socket2::Type::STREAM, None).unwrap();
        raw.connect(&target.socket).unwrap();
        raw.write_all(&[0xff; 4096]).unwrap();
        let mut byte = [0];
        let end = raw.read(&mut byte);
        assert!(matches!(end, Ok(0) | Err(_)), "{way:?}: {end:?}");
        // One of ours is let in after all that.
        assert!(connect(&way.credentials(), opening, &target, None, &clock).is_ok(), "{way:?}");
        // Whoever is refused tries again.
        let refused = two.refused();
        assert!(refused > 4, "{way:?}: {refused}");
    }
}

/// Whoever connects and says nothing cannot keep others out, nor use up what a process may have open.
#[test]
fn silent_strangers_keep_nobody_out() {
    for way in WAYS {
        let two = Process::start(2, way);
        let target = two.target();
        let opening = Opening { from: PeerId(1), to: PeerId(2), generation: 0 };
        let clock = Clock::start();
        let (most, rounds) = (400, 25);
        let mut crowd = std::collections::VecDeque::new();
        for number in 0..most * rounds {
            let raw = Socket::new(target.socket.domain(), socket2::Type::STREAM, None).unwrap();
            raw.connect(&target.socket).unwrap();
            crowd.push_back(raw);
            if crowd.len() > most {
                crowd.pop_front();
            }
            if number % most == 0 {
                assert!(
                    connect(&way.credentials(), opening, &target, None, &clock).is_ok(),
                    "{way:?}: {number}"
                );
            }
        }
        assert!(connect(&way.credentials(), opening, &target, None, &clock).is_ok(), "{way:?}");
        assert!(two.refused() as usize >= most * rounds - NEWCOMERS_MAX - most, "{way:?}");
    }
}

/// Many of a large job may be on their way in at once, each after its first word.
#[test]
fn all_who_have_spoken_are_let_in() {
    for way in WAYS {
        let mut two = Process::start(2, way);
        two.transport.change(0, &[(PeerId(1), two.address.clone())]);
        let target = two.target();
        let opening = Opening { from: PeerId(1), to: PeerId(2), generation: 0 };
        let begin = |_| {
            let mut socket = Socket::new(target.socket.domain(), socket2::Type::STREAM, None).unwrap();
            socket.connect(&target.socket).unwrap();
            let client = Client::new(&way.credentials(), opening, target.is_far);
            socket.write_all(client.hello()).unwrap();
            let mut reply = vec![0; client.reply_bytes()];
            socket.read_exact(&mut reply).unwrap();
            (socket, client.reply(&reply).unwrap().proof)
        };
        let mut crowd: Vec<(Socket, Vec<u8>)> = (0..300).map(begin).collect();
        crowd.iter_mut().for_each(|(socket, proof)| socket.write_all(proof).unwrap());
        (0..crowd.len()).for_each(|_| assert_eq!(two.accept().0, PeerId(1)));
        assert_eq!(two.refused(), 0, "{way:?}");
    }
}

#[test]
fn a_unix_socket_is_for_processes_of_the_same_user() {
    let root = rustix::process::Uid::ROOT;
    if rustix::process::geteuid() != root {
        eprintln!("skipped: only root can be somebody else");
        return;
    }
    let two = Process::start(2, Way::Unix);
    let target = two.target();
    let opening = Opening { from: PeerId(1), to: PeerId(2), generation: 0 };
    let knocks = move |user: u32| {
        let target = target.clone();
        // It is this thread only that becomes somebody else; it knows the key nevertheless.
        let knock = move || {
            let user = rustix::process::Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            connect(&Way::Unix.credentials(), opening, &target, None, &Clock::start()).is_ok()
        };
        std::thread::spawn(knock).join().unwrap()
    };
    assert!(knocks(0));
    assert!(!knocks(65_534), "another user was let in");
    assert!(two.refused() >= 1);
}

/// Forwards one handshake; gives what the client has said.
fn overhear(listener: &Socket, to: &SockAddr) -> Vec<u8> {
    let (mut client, _) = listener.accept().unwrap();
    let mut server = Socket::new(to.domain(), socket2::Type::STREAM, None).unwrap();
    server.connect(to).unwrap();
    let (mut hello, mut reply, mut proof) = ([0; HELLO_BYTES], [0; REPLY_BYTES], [0; PROOF_BYTES]);
    client.read_exact(&mut hello).unwrap();
    server.write_all(&hello).unwrap();
    server.read_exact(&mut reply).unwrap();
    client.write_all(&reply).unwrap();
    client.read_exact(&mut proof).unwrap();
    server.write_all(&proof).unwrap();
    let all = [&hello[..], &reply, &proof].concat();
    let has = |part: &[u8]| all.windows(part.len()).any(|window| window == part);
    assert!(has(&KEY.job) && !has(&KEY.key[..8]), "the key crosses the wire");
    [&hello[..], &proof].concat()
}

#[test]
fn a_replayed_handshake_is_refused() {
    let two = Process::start(2, Way::Tcp);
    let target = two.target();
    let between = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    between.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    between.listen(1).unwrap();
    let (front, back) = (between.local_addr().unwrap(), target.socket.clone());
    let ear = std::thread::spawn(move || overhear(&between, &back));
    let opening = Opening { from: PeerId(1), to: PeerId(2), generation: 3 };
    let front = Target { socket: front, is_far: false };
    assert!(connect(&Way::Tcp.credentials(), opening, &front, None, &Clock::start()).is_ok());
    let said = ear.join().unwrap();

    // The same words again.
    for words in [said.clone(), said] {
        let mut raw = Socket::new(target.socket.domain(), socket2::Type::STREAM, None).unwrap();
        raw.connect(&target.socket).unwrap();
        raw.write_all(&words).unwrap();
        let mut rest = Vec::new();
        // It answers the hello and hangs up on the proof.
        let _ = raw.read_to_end(&mut rest);
        assert!(rest.len() <= REPLY_BYTES);
    }
    assert_eq!(two.refused(), 2);
}

#[test]
fn a_peer_that_answers_nothing_is_given_up_when_news_come() {
    for way in WAYS {
        // It listens, but nobody serves its handshakes.
        let options = LinkOptions {
            host: way.there().to_owned(),
            listen: Some([127, 0, 0, 1].into()),
            carrier: way.carrier(),
            waiting: Waiting::Auto,
            congestion: Congestion::Auto,
        };
        let silent = Doorman::listen_for_links(
            way.credentials(),
            PeerId(2),
            &options,
            Accounts::default(),
            Room::default(),
        )
        .unwrap();
        let mut one = Process::start(1, way);
        one.transport.change(0, &[(PeerId(2), silent.address(way.there()).unwrap().to_string())]);
        ring(&one.wake);
        assert_eq!(one.transport.open(PeerId(2)), Err(LinkError::Interrupted), "{way:?}");
    }
}

#[test]
fn a_peer_whose_address_makes_no_sense_is_unknown() {
    let mut one = Process::start(1, Way::Unix);
    one.transport.change(0, &[(PeerId(2), "here 127.0.0.1 -".to_owned())]);
    assert_eq!(one.transport.open(PeerId(2)), Err(LinkError::Down("unknown peer".to_owned())));
}

#[test]
fn every_link_that_is_ready_is_told_at_once() {
    const LINKS: usize = 150;
    for way in WAYS {
        let (mut one, mut two, ours, theirs) = pair(way);
        let mut links = vec![(ours, theirs)];
        while links.len() < LINKS {
            let ours = one.transport.open(PeerId(2)).unwrap();
            links.push((ours, two.accept().1));
        }
        for (ours, _) in &links {
            assert_eq!(one.transport.send(*ours, &[IoSlice::new(b"x")]), Ok(1));
        }
        // What lies in memory is there at once.
        for (_, theirs) in &links {
            let link = two.transport.links.get(*theirs).unwrap();
            if link.has_ring {
                continue;
            }
            let socket = link.channel.socket();
            rustix::event::poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
        }
        let mut ready = two.ready(Duration::from_secs(10));
        ready.sort_unstable();
        assert_eq!(ready, links.iter().map(|(_, theirs)| *theirs).collect::<Vec<_>>(), "{way:?}");
    }
}

#[test]
fn links_for_which_no_memory_is_left_have_their_sockets() {
    // The second of the two has room for one link, the first for as many as it likes.
    let room = Room::of(4096 + 2 * RING_BYTES.1);
    let with = |peer, room| Process::with(peer, Way::Near.credentials(), "here", Carrier::Auto, room);
    let (mut one, mut two) = (with(1, Room::default()), with(2, room));
    one.transport.change(0, &[one.me(), two.me()]);
    two.transport.change(0, &[one.me(), two.me()]);
    let open = |one: &mut Process, two: &mut Process| {
        let ours = one.open(two.peer);
        let theirs = two.accept().1;
        let has_ring = |process: &Process, link| process.transport.links.get(link).unwrap().has_ring;
        let has = has_ring(one, ours);
        assert_eq!(has, has_ring(two, theirs), "both know");
        assert_eq!(one.transport.send(ours, &[IoSlice::new(b"bytes")]), Ok(5));
        assert_eq!(two.receive(theirs, 5), b"bytes");
        (ours, theirs, has)
    };
    let (ours, theirs, has_ring) = open(&mut one, &mut two);
    assert!(has_ring);
    assert!(!open(&mut one, &mut two).2);
    // Who has none to offer does not offer it.
    let back = two.open(one.peer);
    let there = one.accept().1;
    assert!(!one.transport.links.get(there).unwrap().has_ring);
    two.transport.close(back);
    one.transport.close(ours);
    two.transport.close(theirs);
    assert!(open(&mut one, &mut two).2, "there is room again");
}

#[test]
fn a_waiting_caller_is_told_of_room_only_if_it_asks() {
    for way in WAYS {
        let (mut one, mut two, ours, theirs) = pair(way);
        let armed = |process: &Process| {
            process.transport.links.iter().map(|(_, link)| link).filter(|link| link.armed).count()
        };
        // Of room in memory the system cannot tell.
        let tells = usize::from(way != Way::Near);
        while one.transport.send(ours, &[IoSlice::new(&[0; 65536])]).unwrap() > 0 {}
        one.transport.wait(&[ours], Duration::ZERO, &mut Vec::new());
        assert_eq!(armed(&one), tells);
        one.transport.wait(&[ours], Duration::ZERO, &mut Vec::new());
        assert_eq!(armed(&one), tells);
        one.transport.wait(&[], Duration::ZERO, &mut Vec::new());
        assert_eq!(armed(&one), 0, "{way:?}");
        // There is room again: a caller that asks is woken by it, and the link has nothing to receive.
        let mut buffer = vec![0; 1 << 20];
        while two.transport.receive(theirs, &mut [IoSliceMut::new(&mut buffer)]).unwrap() > 0 {}
        let mut ready = Vec::new();
        one.transport.wait(&[ours], Duration::from_secs(10), &mut ready);
        assert_eq!(ready, []);
        assert!(one.transport.send(ours, &[IoSlice::new(b"x")]).unwrap() == 1, "{way:?}");
        // A link that was closed meanwhile is no matter.
        one.transport.close(ours);
        one.transport.wait(&[], Duration::ZERO, &mut Vec::new());
    }
}

/// Relays one connection to `back`: the handshake, and of what the client says then all but the last 18 bytes, which follow when
/// `rest` is rung.
fn tear(between: &Socket, back: &SockAddr, rest: &OwnedFd) -> (Socket, Socket) {
    let (mut client, _) = between.accept().unwrap();
    let mut server = Socket::new(back.domain(), socket2::Type::STREAM, None).unwrap();
    server.connect(back).unwrap();
    let pass = |from: &mut Socket, to: &mut Socket, count: usize| {
        let mut bytes = vec![0; count];
        from.read_exact(&mut bytes).unwrap();
        to.write_all(&bytes).unwrap();
    };
    pass(&mut client, &mut server, noise::HELLO_BYTES);
    pass(&mut server, &mut client, noise::REPLY_BYTES);
    pass(&mut client, &mut server, noise::PROOF_BYTES + 102);
    rustix::event::poll(&mut [PollFd::new(rest, PollFlags::IN)], None).unwrap();
    pass(&mut client, &mut server, 18);
    (client, server)
}

#[test]
fn bytes_that_are_lost_between_hosts_are_missed() {
    for way in [Way::Far, Way::Open] {
        let (mut one, mut two) = (Process::start(1, way), Process::start(2, way));
        let between = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        between.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        between.listen(1).unwrap();
        let at = Address::new("there", between.local_addr().unwrap().as_socket(), None).unwrap();
        let (back, rest) = (two.target().socket, Arc::new(eventfd()));
        let rung = rest.clone();
        let relay = std::thread::spawn(move || tear(&between, &back, &rung));
        two.transport.change(5, &[one.me(), two.me()]);
        one.transport.change(5, &[one.me(), (PeerId(2), at.to_string())]);
        let ours = one.transport.open(PeerId(2)).unwrap();
        assert_eq!(one.transport.send(ours, &[IoSlice::new(&[7; 100])]), Ok(100));
        let (_, theirs) = two.accept();

        // The other process has sent something, but nobody knows.
        assert!(!two.transport.misses(PeerId(1)) && !two.transport.misses(PeerId(1)));
        two.ask(&one, &way.credentials(), 4);
        assert!(!two.transport.misses(PeerId(1)) && !two.transport.misses(PeerId(1)), "an older generation");
        two.ask(&one, &way.credentials(), 5);
        // Something is there that was not looked at.
        two.await_ready(theirs);
        assert!(!two.transport.misses(PeerId(1)) && !two.transport.misses(PeerId(1)));
        // A part of a record is nothing.
        let mut buffer = [0; 1000];
        assert_eq!(two.transport.receive(theirs, &mut [IoSliceMut::new(&mut buffer)]), Ok(0));
        assert!(two.transport.misses(PeerId(1)), "{way:?}");
        // It was late.
        ring(&rest);
        assert_eq!(two.receive(theirs, 100), [7; 100]);
        two.ask(&one, &way.credentials(), 5);
        assert!(!two.transport.misses(PeerId(1)) && !two.transport.misses(PeerId(1)));
        drop(relay.join().unwrap());
    }
}

#[test]
fn tcp_within_a_host_avoids_what_paces() {
    let (one, two, ours, theirs) = pair(Way::Tcp);
    let expected = Congestion::Auto.in_use().unwrap();
    for (process, link) in [(&one, ours), (&two, theirs)] {
        let socket = process.transport.links.get(link).unwrap().channel.socket();
        let used = String::from_utf8(socket.tcp_congestion().unwrap()).unwrap();
        assert_eq!(used.trim_end_matches('\0'), expected);
        assert_ne!(expected, "bbr");
        assert!(socket.tcp_nodelay().unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_first_bytes_hurt_only_their_connection(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for way in WAYS {
            let two = Process::start(2, way);
            let target = two.target();
            let mut raw = Socket::new(target.socket.domain(), socket2::Type::STREAM, None).unwrap();
            raw.connect(&target.socket).unwrap();
            let _ = raw.write_all(&bytes);
            let _ = raw.shutdown(std::net::Shutdown::Write);
            let _ = raw.read_to_end(&mut Vec::new());
            let opening = Opening { from: PeerId(1), to: PeerId(2), generation: 0 };
            prop_assert!(connect(&way.credentials(), opening, &target, None, &Clock::start()).is_ok());
            prop_assert_eq!(two.refused(), 1);
        }
    }
}
