//! The network by itself: two processes, and whatever is due happens at once.

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::*;

const A: PeerId = PeerId(1);
const B: PeerId = PeerId(2);

fn two(seed: u64) -> (Net, Agenda, ConnId) {
    let mut agenda = Agenda::new(Pcg64::seed_from_u64(seed), Network::rough());
    let mut net = Net::default();
    let conn = net.connect(&mut agenda, A, B);
    (net, agenda, conn)
}

/// All that is due until a moment.
fn until(net: &mut Net, agenda: &mut Agenda, end: Duration) {
    let end = Time(0).after(end);
    while let Some((at, what)) = agenda.next() {
        if at > end {
            return agenda.at(at, what);
        }
        agenda.now = agenda.now.max(at);
        match what {
            Happening::Arrive { conn, side } => drop(net.arrive(agenda, (conn, side))),
            Happening::Down { conn, side } => drop(net.down(agenda, (conn, side))),
            other => panic!("{other:?} is none of the network's"),
        }
    }
}

fn received(net: &mut Net, agenda: &mut Agenda, end: EndId) -> Result<Vec<u8>, LinkError> {
    let mut all = vec![];
    loop {
        let mut buf = [0; 700];
        match net.receive(agenda, end, &mut [IoSliceMut::new(&mut buf)])? {
            (0, _) => return Ok(all),
            (count, _) => all.extend(&buf[..count]),
        }
    }
}

#[test]
fn bytes_arrive_in_order_and_once() {
    for seed in 0..50 {
        let (mut net, mut agenda, conn) = two(seed);
        let bytes: Vec<u8> = (0..20_000u32).map(|at| (at % 251) as u8).collect();
        let (mut sent, mut got) = (0, vec![]);
        while got.len() < bytes.len() {
            sent += net.send(&mut agenda, (conn, 0), &[IoSlice::new(&bytes[sent..])]).unwrap();
            until(&mut net, &mut agenda, Duration::from_secs(1000));
            got.extend(received(&mut net, &mut agenda, (conn, 1)).unwrap());
        }
        assert_eq!(got, bytes, "seed {seed}");
        assert_eq!(received(&mut net, &mut agenda, (conn, 0)).unwrap(), []);
    }
}

#[test]
fn a_cut_holds_back_what_was_sent_until_it_heals() {
    let (mut net, mut agenda, conn) = two(7);
    let heals = Duration::from_secs(1);
    let cut = Cut {
        inside: BTreeSet::from([B]),
        outside: None,
        from_ranks: true,
        from_launcher: false,
        until: Some(Time(0).after(heals)),
    };
    let number = net.cut(cut);
    assert_eq!(net.way(A, B), Way::CutUntil(Time(0).after(heals)));
    assert_eq!(net.way(B, PeerId::LAUNCHER), Way::Open);
    let mut sent = 0;
    while sent == 0 {
        sent = net.send(&mut agenda, (conn, 0), &[IoSlice::new(b"held back")]).unwrap();
    }
    until(&mut net, &mut agenda, heals - Duration::from_nanos(1));
    assert!(received(&mut net, &mut agenda, (conn, 1)).unwrap().is_empty() && !net.is_open((conn, 0)));
    net.heal(&mut agenda, number);
    until(&mut net, &mut agenda, 2 * heals);
    assert_eq!(received(&mut net, &mut agenda, (conn, 1)).unwrap(), b"held back"[..sent]);
    assert!(net.is_open((conn, 0)));
}

#[test]
fn an_end_that_is_closed_is_known_at_the_other_one_when_nothing_is_on_its_way() {
    for seed in 0..50 {
        let (mut net, mut agenda, conn) = two(seed);
        net.close(&mut agenda, (conn, 0));
        // The news has not come yet.
        assert_eq!(net.send(&mut agenda, (conn, 1), &[IoSlice::new(b"swallowed")]).unwrap(), 9);
        until(&mut net, &mut agenda, Duration::from_secs(1));
        assert!(received(&mut net, &mut agenda, (conn, 1)).is_err());
        assert!(net.send(&mut agenda, (conn, 1), &[IoSlice::new(b"refused")]).is_err());
        net.close(&mut agenda, (conn, 1));
        assert_eq!(net.readable((conn, 1)), None, "it is gone when both ends are closed");
    }
}
