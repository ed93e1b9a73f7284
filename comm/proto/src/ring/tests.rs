use std::sync::Arc;

use loom::sync::Arc as LoomArc;

use super::*;
use crate::shared::seen::{Bell, Flaw, seen};

/// Two threads, one of which sends more than there is room for; both sleep when they have nothing to do. In every order of what they do (with up to three
/// preemptions), and of what they see of it, all bytes arrive and nobody sleeps for ever.
#[test]
fn all_bytes_arrive_in_every_order_and_nobody_sleeps_for_ever() {
    const TEXT: [u8; 6] = [1, 2, 3, 4, 5, 6];
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let memory = seen(Flaw::None);
        let (bell_there, bell_here) = (LoomArc::new(Bell::default()), LoomArc::new(Bell::default()));
        let (mut sender, mut receiver) =
            (Sender::new(LoomArc::clone(&memory)), Receiver::new(LoomArc::clone(&memory)));
        let (there, here) = (LoomArc::clone(&bell_there), LoomArc::clone(&bell_here));
        let thread = loom::thread::spawn(move || {
            let mut rest = &TEXT[..];
            while !rest.is_empty() {
                let count = sender.send(&[rest]).unwrap();
                if count > 0 && sender.must_wake() {
                    there.ring();
                }
                rest = &rest[count..];
                if count == 0 {
                    sender.sleeps(true);
                    sender.memory.fence();
                    if sender.look() == Ok(0) {
                        here.wait();
                    }
                    sender.sleeps(false);
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < TEXT.len() {
            let mut into = [0; 3];
            let (count, wakes) = receiver.receive(&mut [&mut into[..]]).unwrap();
            if wakes {
                bell_here.ring();
            }
            got.extend_from_slice(&into[..count]);
            if count == 0 {
                receiver.sleeps(true);
                receiver.memory.fence();
                if receiver.look() == Ok(0) {
                    bell_there.wait();
                }
                receiver.sleeps(false);
            }
        }
        assert_eq!(got, TEXT);
        thread.join().unwrap();
    });
}

/// Whether, in some order, one byte is read before it is there, and the receiver goes to sleep although it came.
fn what_goes_wrong(flaw: Flaw) -> (bool, bool) {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    let found = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let wrong = Arc::clone(&found);
    loom::model(move || {
        let memory = seen(flaw);
        let (mut sender, mut receiver) =
            (Sender::new(LoomArc::clone(&memory)), Receiver::new(LoomArc::clone(&memory)));
        let thread = loom::thread::spawn(move || {
            sender.send(&[&[7][..]]).unwrap();
            sender.must_wake()
        });
        receiver.sleeps(true);
        receiver.memory.fence();
        let has_come = receiver.look() != Ok(0);
        let mut into = [0];
        let (count, _) = receiver.receive(&mut [&mut into[..]]).unwrap();
        let is_woken = thread.join().unwrap();
        wrong[0].fetch_or(count == 1 && into != [7], SeqCst);
        wrong[1].fetch_or(!has_come && !is_woken, SeqCst);
    });
    (found[0].load(SeqCst), found[1].load(SeqCst))
}

#[test]
fn a_memory_without_order_is_found_out() {
    assert_eq!(what_goes_wrong(Flaw::None), (false, false));
    assert_eq!(what_goes_wrong(Flaw::PublishesEarly), (true, false), "a byte that is not there");
    assert_eq!(what_goes_wrong(Flaw::HasNoFence), (false, true), "a wake-up that is lost");
}
