//! Operations that nobody waits for.

use super::*;

/// A send under way, one that is over, a receive that nothing has matched, and one whose message is on its way.
#[test]
fn what_nobody_waits_for_gives_its_place_back_once_when_it_is_over() {
    let mut pair = Pair::new();
    let under_way = pair.0[0].send(1, message(1, 7, 100), 10);
    assert_eq!((pair.0[0].detach(under_way), pair.0[0].reap()), (None, None));
    let open = pair.0[1].receive(Pattern { tag: Some(8), ..ANY }, 100, None, 20);
    assert_eq!(pair.0[1].detach(open), Some(20), "nobody sends to it");
    let matched = pair.0[1].receive(Pattern { tag: Some(7), ..ANY }, 100, None, 21);
    let frame = pair.0[0].frames(1).front().cloned().unwrap();
    let header = Header::decode(&frame.header).unwrap();
    let landing = pair.0[1].handle_header(0, &header, |bytes| bytes).unwrap();
    assert_eq!((pair.0[1].detach(matched), pair.0[1].reap()), (None, None), "its payload lands there");
    assert_eq!((pair.0[0].detached_sends(), pair.0[1].detached_sends()), (1, 0));
    pair.0[1].handle_payload(0, &header, landing);
    assert_eq!((pair.0[1].reap(), pair.0[1].reap()), (Some(21), None));
    pair.0[0].handle_sent(1);
    assert_eq!(pair.0[0].detached_sends(), 0);
    assert_eq!((pair.0[0].reap(), pair.0[0].reap()), (Some(10), None));
    let over = pair.0[0].send(1, message(1, 9, 4), 11);
    pair.deliver(0);
    assert_eq!((pair.0[0].detach(over), pair.0[0].reap()), (Some(11), None));
    assert!(pair.0[0].is_idle());
}

/// It does not wait for its message any more when that is lost.
#[test]
fn what_nobody_waits_for_is_over_with_the_rank_that_it_needs() {
    let mut pair = Pair::new();
    let send = pair.0[0].send(1, Outgoing { mode: Mode::Synchronous, ..message(1, 7, 4) }, 10);
    assert_eq!(pair.0[0].detach(send), None);
    pair.0[0].handle_loss(1, &[]);
    assert_eq!((pair.0[0].reap(), pair.0[0].is_idle()), (Some(10), true));
}
