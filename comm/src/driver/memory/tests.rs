use super::*;

fn bytes(place: Place) -> Vec<u8> {
    match place {
        Place::Owned(buffer) => buffer.bytes().to_vec(),
        _ => panic!("it owns its memory"),
    }
}

#[test]
fn a_payload_that_comes_in_pieces_lands_in_order() {
    let (mut stock, mut place) = (Stock::default(), Place::Owned(Box::new(vec![0_u8; 10])));
    stock.put(&mut place, 0, &[1, 2, 3], &mut Memory::none());
    let straight = stock.direct(&mut place, 3, 10, &mut Memory::none()).expect("it is in one piece").len();
    assert_eq!(straight, 7);
    stock.put(&mut place, 3, &[4, 5, 6, 7, 8, 9, 10], &mut Memory::none());
    assert_eq!(bytes(place), (1..=10).collect::<Vec<u8>>());
    let mut gone = Place::Gone(10);
    assert!(stock.direct(&mut gone, 0, 10, &mut Memory::none()).is_none());
    stock.put(&mut gone, 0, &[1, 2, 3], &mut Memory::none());
}

#[test]
fn only_long_pieces_of_a_layout_are_filled_straight() {
    let (short, long) = (DIRECT_BYTES / 2, 2 * DIRECT_BYTES);
    let layout = Rc::new(Layout::indexed(vec![0..short, short + 5..short + 5 + long]).unwrap());
    let (mut stock, mut place) = (Stock::default(), Place::Write(Extent::Layout(layout)));
    let mut buffer = vec![0; short + 5 + long];
    let mut room = |offset| {
        let memory = &mut Memory::of(&[], &mut buffer);
        stock.direct(&mut place, offset, short + long, memory).map(|bytes| bytes.len())
    };
    assert_eq!((room(0), room(short), room(short + 100)), (None, Some(long), Some(long - 100)));
    stock.put(&mut place, short - 1, &[1, 2, 3], &mut Memory::of(&[], &mut buffer));
    assert_eq!(buffer[short - 1..short + 8], [1, 0, 0, 0, 0, 0, 2, 3, 0]);
}

#[test]
fn packed_bytes_are_those_of_the_layout_from_any_place_on() {
    let layout = Rc::new(Layout::strided(1, 5, 3, 7).unwrap());
    let (stock, place) = (Stock::default(), Place::Read(Extent::Layout(layout.clone())));
    let source: Vec<u8> = (0..100).collect();
    let memory = Memory::of(&source, &mut []);
    let whole: Vec<u8> = layout.iter().flatten().map(|at| at as u8).collect();
    assert_eq!(stock.copy(&place, &memory).as_slice(), whole);
    let mut packed = vec![9; 9];
    for (offset, most) in [(0, 100), (4, 5), (14, 100), (15, 100)] {
        stock.pack(&place, offset, &memory, &mut packed, most);
        assert_eq!(packed, whole[offset..whole.len().min(offset + most)], "from {offset}, at most {most}");
    }
    assert!(stock.in_one_piece(&place, &memory).is_none());
}

#[test]
fn what_is_folded_is_combined_as_it_comes_whatever_pieces_it_comes_in() {
    let sum: Box<Combine<'static>> = Box::new(|into, from, _| {
        assert_eq!((into.len(), into.len() % 4), (from.len(), 0), "whole elements");
        into.iter_mut().zip(from).for_each(|(a, b)| *a += *b);
    });
    let count = 2 * FOLD_BYTES + 400;
    let mut stock = Stock::default();
    let buffer = Box::new(vec![1_u8; count + 8]);
    let id = stock.spaces_with(None, Some(buffer), 0, Some(sum));
    let mut place = stock.fold(id, Space::Buffer, 8..count + 8, 4, Order::MineFirst);
    let payload: Vec<u8> = (0..count).map(|at| (at % 200) as u8).collect();
    let mut offset = 0;
    for length in [1, 2, 3, 1000, FOLD_BYTES + 1, count].into_iter() {
        let piece = &payload[offset..count.min(offset + length)];
        stock.put(&mut place, offset, piece, &mut Memory::none());
        offset += piece.len();
    }
    assert!(stock.reclaim(place).is_none());
    let (_, buffer) = stock.take_spaces(id);
    let buffer = buffer.expect("it was its own");
    assert_eq!(buffer.bytes()[..8], [1; 8]);
    assert!(buffer.bytes()[8..].iter().zip(&payload).all(|(got, sent)| *got == *sent + 1));
}

#[test]
fn an_operand_in_the_same_memory_is_read_before_it_is_changed() {
    let sum: Box<Combine<'static>> =
        Box::new(|into, from, _| into.iter_mut().zip(from).for_each(|(a, b)| *a += *b));
    let mut stock = Stock::default();
    let id = stock.spaces_with(None, Some(Box::new((0..10_u8).collect::<Vec<_>>())), 4, Some(sum));
    stock.local(id, &(0..4).into(), &(2..6).into(), 1, None, &mut Memory::none());
    stock.local(id, &(0..4).into(), &(6..10).into(), 1, Some(Order::MineFirst), &mut Memory::none());
    stock.local(id, &(0..4).into(), &Span::scratch(0..4), 1, None, &mut Memory::none());
    let (spaces, memory) = (stock.spaces.get(id).expect("it is there"), Memory::none());
    assert_eq!(spaces.bytes(Space::Buffer, &memory), [0, 1, 0, 1, 2, 3, 6, 8, 8, 10]);
    assert_eq!(spaces.bytes(Space::Scratch, &memory)[..4], [0, 1, 0, 1]);
}

/// A part of a payload was combined when its sender was lost; it comes again as a whole, and waits for the end of the repair.
#[test]
fn what_was_combined_already_is_not_combined_again() {
    let payload: Vec<u8> = (0..100).collect();
    for done in [0, 5, 99, 100] {
        let mut stock = Stock::default();
        let sum: Box<Combine<'static>> =
            Box::new(|into, from, _| into.iter_mut().zip(from).for_each(|(a, b)| *a += *b));
        let id = stock.spaces_with(None, Some(Box::new(vec![1_u8; 100])), 0, Some(sum));
        let mut place = stock.fold(id, Space::Buffer, 0..100, 1, Order::MineFirst);
        stock.put(&mut place, 0, &payload[..done], &mut Memory::none());
        place.skip(done);
        stock.copy_kept(&Place::Kept(payload.as_slice().into()), &mut place, &mut Memory::none());
        let (spaces, memory) = (stock.spaces.get(id).expect("it is there"), Memory::none());
        let due: Vec<u8> = payload.iter().map(|byte| byte + 1).collect();
        assert_eq!(spaces.bytes(Space::Buffer, &memory), due, "{done} bytes had come");
    }
}
