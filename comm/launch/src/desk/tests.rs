use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;

use super::protocol::{Command, RankStatus, VERSION};
use super::*;
use ft_comm::time::Clock;
use ft_comm::transport::timespec;

/// A desk at a pair of sockets, without a folder.
struct Room {
    desk: Desk,
    clock: Clock,
    answered: usize,
}

impl Room {
    fn new() -> Self {
        Self { desk: Desk::new("x"), clock: Clock::start(), answered: 0 }
    }

    /// Somebody comes.
    fn guest(&mut self) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let guest = Guest::new(self.desk.next, ours.into(), Tongue::Lines, self.clock.now());
        self.desk.guests.push(guest);
        self.desk.next += 1;
        theirs.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        theirs
    }

    /// One turn; whoever asks gets a status with so many ranks.
    fn turn(&mut self, ranks: usize) {
        self.turn_at(self.clock.now(), ranks);
    }

    fn turn_at(&mut self, now: Time, ranks: usize) {
        let ranks: Vec<RankStatus> =
            (0..ranks).map(|rank| RankStatus { rank, ..RankStatus::default() }).collect();
        let status = Status { job: 7, ranks, ..Status::default() };
        for (guest, ask) in self.desk.serve(now) {
            self.answered += 1;
            match ask {
                Ask::Metrics => self.desk.show(now, guest, &status),
                Ask::Command(_) => self.desk.answer(now, guest, Answer::Status(Box::new(status.clone()))),
                Ask::Board | Ask::Stream(_) => panic!("the desk does this by itself"),
            }
        }
        if self.desk.is_to_tell(now) {
            self.desk.tell(now, &status, &[]);
        }
    }

    /// Turns until `is_done` says so, each when there is something to do.
    fn until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            let left = self.desk.poll_timeout().since(self.clock.now());
            let mut fds: Vec<PollFd<'_>> = self.desk.fds().collect();
            rustix::event::poll(&mut fds, Some(&timespec(left))).unwrap();
            drop(fds);
            self.turn(1);
        }
    }
}

fn read_line(stream: &mut UnixStream) -> String {
    let (mut line, mut byte) = (vec![], [0]);
    while line.last() != Some(&b'\n') {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "the end comes before the end of the line");
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

fn ask() -> Vec<u8> {
    protocol::request(Command::Status).into_bytes()
}

#[test]
fn requests_are_answered_in_order_whatever_comes_between() {
    let mut room = Room::new();
    let mut guest = room.guest();
    guest.write_all(b"nonsense\n{\"version\":9}\n").unwrap();
    guest.write_all(&ask()).unwrap();
    room.until(|room| room.answered == 1);
    assert!(read_line(&mut guest).contains("this is no request"));
    assert!(read_line(&mut guest).contains("version 9 of the protocol is not spoken here"));
    let answer = protocol::read_reply(read_line(&mut guest).as_bytes()).unwrap();
    assert!(matches!(answer, Answer::Status(status) if status.job == 7));
    // In pieces, by one who says nothing more after it.
    let request = ask();
    guest.write_all(&request[..9]).unwrap();
    room.turn(1);
    guest.write_all(&request[9..]).unwrap();
    guest.shutdown(std::net::Shutdown::Write).unwrap();
    room.until(|room| room.desk.guests.is_empty());
    assert!(read_line(&mut guest).contains("\"job\":7"));
}

#[test]
fn who_does_not_read_is_not_listened_to() {
    let mut room = Room::new();
    let mut guest = room.guest();
    guest.write_all(&ask().repeat(50)).unwrap();
    // No answer fits into a socket, so one is under way, and the desk keeps that one alone.
    (0..20).for_each(|_| room.turn(10_000));
    assert_eq!(room.answered, 1);
    assert!(room.desk.poll_timeout() > room.clock.now(), "it is not waited for in a busy loop");
    room.turn_at(room.clock.now().after(Duration::from_secs(6)), 1);
    assert!(room.desk.guests.is_empty());
}

#[test]
fn the_silent_and_the_long_winded_are_sent_away() {
    let mut room = Room::new();
    let (silent, mut long) = (room.guest(), room.guest());
    long.write_all(&vec![b'x'; 5000]).unwrap();
    room.until(|room| room.desk.guests.len() == 1);
    assert!(read_line(&mut long).contains("at most 4096 bytes"));
    // A byte now and then is not enough.
    (&silent).write_all(b"x").unwrap();
    let late = room.clock.now().after(Duration::from_secs(6));
    room.turn_at(late, 1);
    assert!(room.desk.guests.is_empty());
}

#[test]
fn who_is_there_at_the_end_hears_of_it() {
    let mut room = Room::new();
    let mut guest = room.guest();
    room.desk.close(room.clock.now(), 3, "why", None);
    let ended = Answer::Ended { code: 3, message: "why".into() };
    assert_eq!(protocol::read_reply(read_line(&mut guest).as_bytes()), Ok(ended));
    assert_eq!(guest.read(&mut [0]).unwrap(), 0);
    assert_eq!(VERSION, 1);
}

#[test]
fn a_crowd_keeps_nobody_out() {
    let mut room = Room::new();
    let address = room.desk.show_metrics((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a stranger comes by a socket of its own")]
    let come = || TcpStream::connect(address).unwrap();
    let crowd: Vec<TcpStream> = (0..100).map(|_| come()).collect();
    let mut guest = come();
    guest.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    room.until(|room| room.answered == 1);
    assert!(room.desk.guests.len() <= GUESTS_MAX);
    let mut page = String::new();
    room.until(|room| room.desk.guests.iter().all(|guest| guest.poll().is_some()));
    guest.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("\nftrun_ranks 1\n"), "{page}");
    drop(crowd);
}

/// A desk with a dashboard, and where its events are.
fn board() -> (Room, String) {
    let mut room = Room::new();
    let address = room.desk.show_dashboard((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    (room, address)
}

/// Somebody who asks for the events of a dashboard.
fn onlooker(address: &str) -> TcpStream {
    let (at, token) = address.strip_prefix("http://").unwrap().split_once("/?").unwrap();
    #[expect(clippy::disallowed_methods, reason = "a stranger comes by a socket of its own")]
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(format!("GET /events?{token} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    stream
}

#[test]
fn an_onlooker_that_takes_nothing_is_sent_away() {
    let (mut room, address) = board();
    let (_slow, mut quick) = (onlooker(&address), onlooker(&address));
    room.until(|room| room.desk.guests.iter().filter(|guest| guest.looks_on()).count() == 2);
    quick.set_nonblocking(true).unwrap();
    // Turns that each have more to tell than the last: what is not taken is not added to.
    let mut now = room.clock.now();
    let mut most = 0;
    let mut taken = vec![0; 1 << 20];
    while room.desk.guests.len() == 2 {
        now = now.after(Duration::from_secs(1));
        room.turn_at(now, 20_000);
        most = most.max(room.desk.guests.iter().map(Guest::untaken).max().unwrap_or(0));
        while quick.read(&mut taken).is_ok_and(|count| count > 0) {
            room.desk.guests.iter_mut().for_each(|guest| _ = guest.flush(now));
        }
        assert!(now < Time(0).after(Duration::from_secs(300)), "nobody is sent away");
    }
    assert!(most < 8 << 20, "{most} bytes wait for somebody who takes none");
    assert_eq!(room.desk.guests.len(), 1);
    assert!(room.desk.guests[0].looks_on() && room.desk.has_onlooker());
}

#[test]
fn nothing_is_told_where_nobody_looks_on() {
    let (mut room, address) = board();
    assert_eq!(room.desk.poll_timeout(), Time(u64::MAX), "a dashboard alone wakes nobody");
    let mut guest = onlooker(&address);
    room.until(|room| room.desk.has_onlooker());
    let told = room.desk.poll_timeout();
    assert!(told > room.clock.now() && told < room.clock.now().after(Duration::from_secs(1)));
    // A loss is told at once.
    let lost = ft_proto::arbiter::Event::Lost { rank: 1, cause: "x".into(), generation: None };
    room.desk.note(Seen::Event(&lost), room.clock.now());
    assert!(room.desk.poll_timeout() < told);
    room.until(|room| room.desk.poll_timeout() > told);
    room.desk.close(room.clock.now(), 3, "why", Some((Status::default(), vec![])));
    let mut text = String::new();
    guest.read_to_string(&mut text).unwrap();
    let parts = [
        "event: state\n",
        "\"lost\":{\"rank\":1,\"cause\":\"x\"}",
        "event: end\ndata: {\"code\":3,\"message\":\"why\"}\n\n",
    ];
    let places: Vec<usize> =
        parts.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
    assert!(places.is_sorted(), "{text}");
}
