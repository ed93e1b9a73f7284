use std::time::Duration;

use super::super::looks::with_looks;
use super::super::wires::engines;
use super::*;

/// Adds bytes; which operand comes first shows in the top bit, which is that of the first.
fn add(into: &mut [u8], from: &[u8], order: Order) {
    for (a, b) in into.iter_mut().zip(from) {
        let first = if order == Order::MineFirst { *a } else { *b };
        *a = ((*a & 0x7f) + (*b & 0x7f)) | (first & 0x80);
    }
}

fn list(steps: Vec<Step>, ranks: usize) -> StepList {
    StepList {
        name: "test",
        steps: steps.into(),
        world: (0..ranks).collect(),
        context: 1,
        tag: 9,
        messages: None,
        element: 1,
        apply: None,
    }
}

fn own(buffer: Vec<u8>) -> Own {
    Own { input: None, buffer: Some(Box::new(buffer)), combine: Some(Box::new(add)) }
}

/// Two ranks, and the step list of each.
struct Pair {
    engines: Vec<Engine>,
    lists: [Lists; 2],
}

impl Pair {
    fn new(most: usize) -> Self {
        Self { engines: engines(2, most).0, lists: [Lists::default(), Lists::default()] }
    }

    fn start(&mut self, rank: Rank, steps: Vec<Step>, buffer: Vec<u8>) -> ActivityId {
        let engine = &mut self.engines[rank];
        self.lists[rank].start(engine, list(steps, 2), own(buffer), Walk::default(), &mut Memory::none())
    }

    fn turn(&mut self, times: usize) {
        for (engine, lists) in (0..times).flat_map(|_| [0, 1]).map(|rank| (rank, rank)) {
            let (engine, lists) = (&mut self.engines[engine], &mut self.lists[lists]);
            engine.accept();
            engine.flush_all(&Memory::none());
            engine.wait(Duration::ZERO, &mut Memory::none());
            lists.advance(engine, &mut Memory::none());
        }
    }

    fn finish(&mut self, rank: Rank, id: ActivityId) -> Result<Vec<u8>, CommError> {
        assert!(self.lists[rank].is_done(id));
        let (_, buffer) = self.lists[rank].finish(&mut self.engines[rank], id)?;
        Ok(buffer.expect("it was its own").bytes().to_vec())
    }
}

/// What can be done at once is done on the stack; what is left goes on as a list, from there.
#[test]
fn a_walk_goes_on_as_a_list_where_it_has_to_wait() {
    for most in [1, 1 << 20] {
        let mut pair = Pair::new(most);
        let mut buffers = [vec![1, 2, 3], vec![10, 20, 30]];
        // Each has heard of the other.
        for rank in [0, 1] {
            let id = pair.start(rank, allreduce(rank, 3), vec![0; 3]);
            pair.turn(200);
            if rank == 1 {
                pair.finish(rank, id).unwrap();
            }
        }
        let steps = |rank| [allreduce(rank, 3), vec![Step::Fence], allreduce(rank, 3)].concat();
        let mut walks = vec![];
        let add: &Combine<'_> = &add;
        for rank in [0, 1, 0, 1] {
            let mut list = list(steps(rank), 2);
            list.tag = 5;
            if walks.len() < 2 {
                let memory = &mut Memory { read: &[], write: &mut buffers[rank], combine: Some(add) };
                let engine = &mut pair.engines[rank];
                walks.push(with_looks(0, |looks| list.walk(engine, looks, memory)).unwrap());
            }
        }
        let came = |rank: usize| (walks[rank].steps, walks[rank].under_way.is_some());
        if most == 1 {
            assert_eq!((came(0), came(1)), ((1, true), (1, true)), "a part has left");
        } else {
            // Rank 0 has sent, rank 1 has answered, reduced and sent again.
            assert_eq!((came(0), came(1)), ((1, false), (4, false)));
        }
        let ids: Vec<ActivityId> = [0, 1]
            .map(|rank| {
                let mut list = list(steps(rank), 2);
                list.tag = 5;
                let walk = std::mem::take(&mut walks[rank]);
                let memory = &mut Memory { read: &[], write: &mut buffers[rank], combine: Some(add) };
                pair.lists[rank].start(&mut pair.engines[rank], list, Own::default(), walk, memory)
            })
            .into();
        for _ in 0..500 {
            for (rank, buffer) in buffers.iter_mut().enumerate() {
                let memory = &mut Memory { read: &[], write: buffer, combine: Some(add) };
                let (engine, lists) = (&mut pair.engines[rank], &mut pair.lists[rank]);
                engine.flush_all(memory);
                engine.wait(Duration::ZERO, memory);
                lists.advance(engine, memory);
            }
        }
        for rank in [0, 1] {
            assert!(pair.lists[rank].is_done(ids[rank]), "{most}");
            pair.lists[rank].finish(&mut pair.engines[rank], ids[rank]).unwrap();
        }
        assert_eq!(buffers, [[22, 44, 66], [22, 44, 66]], "{most}");
        assert!(pair.engines[1].endpoint.is_idle(), "{most}: what was under way has been taken");
    }
}

/// The step list of one of two ranks that add up what both have.
fn allreduce(me: Rank, length: usize) -> Vec<Step> {
    let (other, part) = (1 - me, Span::from(0..length));
    let order = Order::of(me, other);
    vec![Step::Send { to: other, part: part.clone() }, Step::RecvReduce { from: other, part, order }]
}

#[test]
fn what_is_sent_and_reduced_at_once_is_reduced_after_it_has_left() {
    for most in [1, 40, 1 << 20] {
        let mut pair = Pair::new(most);
        let ids =
            [0, 1].map(|me| pair.start(me, allreduce(me, 100), vec![if me == 0 { 0x81 } else { 2 }; 100]));
        assert!(most > 1 || !pair.lists[0].is_done(ids[0]));
        pair.turn(2 * 200 / most.min(200) + 5);
        for (rank, id) in ids.into_iter().enumerate() {
            // The contribution of the lower rank comes first on both sides.
            assert_eq!(pair.finish(rank, id), Ok(vec![0x83; 100]), "rank {rank}, {most} bytes at a time");
        }
    }
}

#[test]
fn steps_that_depend_on_each_other_wait_for_each_other() {
    let mut pair = Pair::new(3);
    let there = vec![
        Step::Recv { from: 1, part: (0..10).into() },
        Step::Copy { from: (0..10).into(), to: (10..20).into() },
        Step::Reduce { other: (0..5).into(), part: (15..20).into(), order: Order::OtherFirst },
        Step::Send { to: 1, part: (10..20).into() },
    ];
    let back =
        vec![Step::Send { to: 0, part: (0..10).into() }, Step::Recv { from: 0, part: (10..20).into() }];
    let first = pair.start(0, there, vec![0; 20]);
    let second = pair.start(1, back, (0..20).collect());
    pair.turn(100);
    assert_eq!(pair.finish(0, first).unwrap()[10..], [0, 1, 2, 3, 4, 5, 7, 9, 11, 13]);
    assert_eq!(pair.finish(1, second).unwrap()[10..], [0, 1, 2, 3, 4, 5, 7, 9, 11, 13]);
}

#[test]
fn whom_a_list_waits_for_is_known() {
    let mut pair = Pair::new(100);
    let receive = pair.start(0, vec![Step::Recv { from: 1, part: (0..10).into() }], vec![0; 10]);
    assert_eq!((pair.lists[0].awaited(receive), pair.lists[0].awaited_all(receive)), (Some(1), vec![1]));
    let send = pair.start(1, vec![Step::Send { to: 0, part: (0..10_000).into() }], vec![0; 10_000]);
    assert_eq!((pair.lists[1].awaited(send), pair.lists[1].awaited_all(send)), (None, vec![0]));
}

#[test]
fn a_message_of_another_length_is_an_error_and_no_other_step_is_begun() {
    let mut pair = Pair::new(1000);
    let steps =
        vec![Step::Recv { from: 1, part: (0..10).into() }, Step::Send { to: 1, part: (0..10).into() }];
    let id = pair.start(0, steps, vec![0; 10]);
    let short = pair.start(1, vec![Step::Send { to: 0, part: (0..4).into() }], vec![7; 4]);
    pair.turn(5);
    let error = pair.finish(0, id).unwrap_err().to_string();
    assert!(error.contains("test got 4 bytes from rank 1, 10 were due"), "{error}");
    assert!(pair.finish(1, short).is_ok());
    assert!(pair.engines.iter().all(|engine| engine.endpoint.is_idle() && engine.stock.spaces.is_empty()));
}

#[test]
fn a_list_that_is_broken_off_gives_its_memory_back() {
    let mut pair = Pair::new(1000);
    let id = pair.start(0, allreduce(0, 100), vec![1; 100]);
    let error = CommError::PeerFailed { ranks: vec![1], generation: 3 };
    pair.lists[0].break_off(|list| list.needs(5), || error.clone());
    assert!(!pair.lists[0].is_done(id), "it does not need rank 5");
    pair.lists[0].break_off(|list| list.needs(1), || error.clone());
    pair.lists[0].release(&mut pair.engines[0], &mut Memory::none());
    assert_eq!(pair.finish(0, id), Err(error));
    pair.engines[0].sweep();
    assert!(pair.engines[0].endpoint.is_idle() && pair.engines[0].stock.spaces.is_empty());
}

#[test]
fn a_communicator_is_closed_when_its_last_list_is_done() {
    let mut pair = Pair::new(1000);
    let context = ft_proto::endpoint::CONTEXT_DYNAMIC;
    for engine in &mut pair.engines {
        engine.open_context(context);
    }
    let there = |steps| StepList { context: context + 1, ..list(steps, 2) };
    let receive = there(vec![Step::Recv { from: 1, part: (0..4).into() }]);
    let id = pair.lists[0].start(
        &mut pair.engines[0],
        receive,
        own(vec![0; 4]),
        Walk::default(),
        &mut Memory::none(),
    );
    pair.lists[0].close_context(&mut pair.engines[0], context);
    pair.lists[0].detach(&mut pair.engines[0], id);
    let send = there(vec![Step::Send { to: 0, part: (0..4).into() }]);
    pair.lists[1].start(&mut pair.engines[1], send, own(vec![7; 4]), Walk::default(), &mut Memory::none());
    pair.turn(3);
    assert!(pair.lists[0].running.is_empty(), "it has ended behind the program's back");
    assert!(pair.engines[0].stock.spaces.is_empty() && pair.lists[0].closing.is_empty());
}
