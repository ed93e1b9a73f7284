//! What holds for every code, tried on every small one with every pattern of losses.

mod common;

use common::{bytes, codes, data, recovered, redundant, stripe, without};
use ft_encoders::{Code, CodeError, Combinations, Mirror, ReedSolomon, Xor, accumulate};
use proptest::prelude::*;

#[test]
fn every_pattern_of_losses_is_recovered_or_refused() {
    for code in codes(8) {
        let (k, m) = (code.data(), code.redundant());
        for length in [0, 1, 13] {
            let stripe = stripe(&*code, length, 1);
            for lost in 0..1_u32 << (k + m) {
                let damaged = without(&stripe, lost);
                if lost.count_ones() as usize <= m {
                    assert_eq!(recovered(&*code, &damaged), stripe, "{code:?}, lost {lost:#b}");
                } else {
                    let present: Vec<bool> = damaged.iter().map(Option::is_some).collect();
                    let text = format!(
                        "{} of {} blocks lost, this code ({k}+{m}) survives at most {m}",
                        lost.count_ones(),
                        k + m
                    );
                    for wanted in 0..k + m {
                        assert_eq!(code.combination(&present, wanted).unwrap_err().to_string(), text);
                    }
                }
            }
        }
    }
}

#[test]
fn a_plan_reads_no_more_than_it_needs_and_data_first() {
    for code in codes(8) {
        let (k, m) = (code.data(), code.redundant());
        for lost in (0..1_u32 << (k + m)).filter(|lost| lost.count_ones() as usize <= m) {
            let present: Vec<bool> = (0..k + m).map(|i| lost >> i & 1 == 0).collect();
            let first: Vec<usize> = (0..k + m).filter(|i| present[*i]).take(k).collect();
            for wanted in 0..k + m {
                let combination = code.combination(&present, wanted).unwrap();
                let sources: Vec<usize> = combination.sources().map(|(index, _)| index).collect();
                let expected = if present[wanted] { &[wanted][..] } else { &first[..] };
                assert_eq!(sources, expected, "{code:?}, lost {lost:#b}, wanted {wanted}");
                assert!(combination.sources().all(|(_, weight)| weight != 0));
            }
        }
    }
}

#[test]
fn sources_of_a_plan_may_be_shorter_and_the_block_too() {
    for code in [ReedSolomon::new(3, 2).unwrap(), ReedSolomon::vandermonde(3, 2).unwrap()] {
        let data = [bytes(20, 1), bytes(7, 2), bytes(31, 3)];
        let blocks = redundant(&code, &data);
        let combination = code.combination(&[true, false, true, true, true], 1).unwrap();
        let sources = [&data[0][..], &data[2], &blocks[0]];
        let (mut whole, mut beginning) = ([9; 31], [9; 7]);
        combination.rebuild(&sources, &mut whole).unwrap();
        assert_eq!(whole[..7], data[1]);
        assert_eq!(whole[7..], [0; 24]);
        combination.rebuild(&sources, &mut beginning).unwrap();
        assert_eq!(beginning[..], data[1]);

        // Piece by piece, as bytes arrive.
        let mut pieces = [0; 31];
        for (at, source) in sources.iter().enumerate() {
            for (piece, into) in source.chunks(5).zip(pieces.chunks_mut(5)) {
                combination.add(at, piece, into).unwrap();
            }
        }
        assert_eq!(pieces, whole);
    }
}

#[test]
fn ragged_shards_count_as_padded_with_zeros() {
    for code in codes(8) {
        // Members 0, 1, 2, .. have 17, 10, 3, 18, 11, 4, .. bytes.
        let ragged: Vec<Vec<u8>> =
            (0..code.data()).map(|member| bytes((17 + member * 15) % 22, member as u64)).collect();
        let longest = ragged.iter().map(Vec::len).max().unwrap();
        let mut padded = ragged.clone();
        padded.iter_mut().for_each(|shard| shard.resize(longest, 0));

        let blocks = redundant(&*code, &ragged);
        assert!(blocks.iter().all(|block| block.len() == longest), "{code:?}");
        assert_eq!(blocks, redundant(&*code, &padded), "{code:?}");
    }
}

#[test]
fn an_empty_shard_adds_nothing() {
    for code in codes(8) {
        let mut block = bytes(7, 1);
        code.accumulate(0, 0, &[], &mut block).unwrap();
        assert_eq!(block, bytes(7, 1), "{code:?}");
        code.accumulate(0, 0, &[], &mut []).unwrap();
    }
}

#[test]
fn the_members_may_be_added_in_any_order() {
    for code in codes(8) {
        let data = data(&*code, 11, 2);
        for (block, expected) in redundant(&*code, &data).into_iter().enumerate() {
            let mut backwards = vec![0; 11];
            for (member, shard) in data.iter().enumerate().rev() {
                code.accumulate(block, member, shard, &mut backwards).unwrap();
            }
            assert_eq!(backwards, expected, "{code:?}");
        }
    }
}

#[test]
fn adding_the_difference_updates_a_block() {
    for code in codes(8) {
        for member in 0..code.data() {
            let old = data(&*code, 11, 3);
            let mut new = old.clone();
            new[member] = bytes(11, 77);
            let difference: Vec<u8> = old[member].iter().zip(&new[member]).map(|(o, n)| o ^ n).collect();

            let mut blocks = redundant(&*code, &old);
            for (block, into) in blocks.iter_mut().enumerate() {
                code.accumulate(block, member, &difference, into).unwrap();
            }
            assert_eq!(blocks, redundant(&*code, &new), "{code:?}, member {member}");

            // And back, by the call that is made for it: of the whole shard, then of a part of it.
            let mut update = |old: &[u8], new: &[u8], from: usize| {
                let mut parts: Vec<&mut [u8]> = blocks.iter_mut().map(|block| &mut block[from..]).collect();
                code.update(member, old, new, &mut parts).unwrap();
            };
            update(&new[member], &old[member], 0);
            update(&old[member][3..], &new[member][3..9], 3);
            update(&[], &old[member][9..], 9);
            let mut mixed = old.clone();
            mixed[member][3..9].copy_from_slice(&new[member][3..9]);
            assert_eq!(blocks, redundant(&*code, &mixed), "{code:?}, member {member}");
        }
    }
}

#[test]
fn codes_of_one_member_or_one_block_are_the_simple_ones() {
    let shard = vec![bytes(33, 5)];
    for copies in 1..8 {
        let copied = redundant(&Mirror::new(copies).unwrap(), &shard);
        assert_eq!(copied, vec![shard[0].clone(); copies]);
        assert_eq!(redundant(&ReedSolomon::vandermonde(1, copies).unwrap(), &shard), copied);
    }
    for members in 1..8 {
        let xor = Xor::new(members).unwrap();
        let data = data(&xor, 33, 6);
        assert_eq!(redundant(&ReedSolomon::new(members, 1).unwrap(), &data), redundant(&xor, &data));
    }
}

#[test]
fn wrong_arguments_are_refused_and_change_nothing() {
    for code in codes(8) {
        let (data, redundant) = (code.data(), code.redundant());

        let mut block = *b"block";
        let no_block = CodeError::BlockOutOfRange { block: redundant, data, redundant };
        assert_eq!(code.accumulate(redundant, 0, b"shard", &mut block), Err(no_block));
        let no_member = CodeError::MemberOutOfRange { member: data, data, redundant };
        assert_eq!(code.accumulate(0, data, b"shard", &mut block), Err(no_member.clone()));
        let too_long = CodeError::ShardTooLong { shard_bytes: 6, block_bytes: 5 };
        assert_eq!(code.accumulate(0, 0, b"shards", &mut block), Err(too_long.clone()));
        assert_eq!(&block, b"block", "{code:?}");

        let before: Vec<Vec<u8>> = (0..redundant).map(|i| bytes(5, i as u64)).collect();
        let mut blocks = before.clone();
        let mut into: Vec<&mut [u8]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
        for given in [0, data - 1, data + 1].into_iter().filter(|given| *given != data) {
            let wrong_count = CodeError::WrongShardCount { given, taken: data, data, redundant };
            assert_eq!(code.encode(&vec![&b"shard"[..]; given], &mut into), Err(wrong_count));
        }
        let shards = vec![&b"shards"[..]; data];
        assert_eq!(code.encode(&shards, &mut into), Err(too_long.clone()));
        assert_eq!(code.update(0, b"shards", b"", &mut into), Err(too_long.clone()));
        assert_eq!(code.update(0, b"", b"shards", &mut into), Err(too_long));
        assert_eq!(code.update(data, b"", b"", &mut into), Err(no_member));
        let wrong_blocks = CodeError::WrongBlockCount { given: redundant - 1, data, redundant };
        assert_eq!(code.encode(&vec![&[][..]; data], &mut into[1..]), Err(wrong_blocks.clone()));
        assert_eq!(code.update(0, b"", b"", &mut into[1..]), Err(wrong_blocks));
        if redundant > 1 {
            into[1] = &mut [];
            let unequal = CodeError::UnequalLengths { index: 1, bytes: 0, first_bytes: 5 };
            assert_eq!(code.encode(&vec![&[][..]; data], &mut into), Err(unequal.clone()));
            assert_eq!(code.update(0, b"", b"", &mut into), Err(unequal));
        }
        assert_eq!(blocks, before, "{code:?}");

        let taken = data + redundant;
        for given in [0, taken - 1, taken + 1] {
            let wrong_count = CodeError::WrongShardCount { given, taken, data, redundant };
            assert_eq!(code.combination(&vec![true; given], 0), Err(wrong_count));
        }
        let no_index = CodeError::IndexOutOfRange { index: taken, data, redundant };
        assert_eq!(code.combination(&vec![true; taken], taken), Err(no_index));
    }
}

#[test]
fn plans_refuse_what_they_do_not_take() {
    let code = ReedSolomon::new(4, 2).unwrap();
    let present = [true, false, true, true, true, true];
    let combination = code.combination(&present, 1).unwrap();
    let mut block = *b"block";
    for given in [0, 3, 5] {
        let wrong_count = Err(CodeError::WrongSourceCount { given, taken: 4 });
        assert_eq!(combination.rebuild(&vec![&b"shard"[..]; given], &mut block), wrong_count);
    }
    assert_eq!(combination.add(4, b"", &mut block), Err(CodeError::NoSuchSource { at: 4, sources: 4 }));
    let too_long = CodeError::ShardTooLong { shard_bytes: 6, block_bytes: 5 };
    assert_eq!(combination.add(0, b"shards", &mut block), Err(too_long.clone()));
    assert_eq!(accumulate(2, b"shards", &mut block), Err(too_long));

    let combinations = Combinations::from_iter([combination]);
    let wrong_count = CodeError::WrongSourceCount { given: 3, taken: 4 };
    assert_eq!(combinations.rebuild(&[&b"shard"[..]; 3], &mut [&mut block]), Err(wrong_count));
    let wrong_count = CodeError::WrongSourceCount { given: 2, taken: 1 };
    assert_eq!(combinations.rebuild(&[&b"shard"[..]; 4], &mut [&mut block, &mut [0; 5]]), Err(wrong_count));
    assert_eq!(&block, b"block");
    let both: Combinations =
        [1, 1].map(|wanted| code.combination(&present, wanted).unwrap()).into_iter().collect();
    let unequal = CodeError::UnequalLengths { index: 1, bytes: 4, first_bytes: 5 };
    assert_eq!(both.rebuild(&[&b"shard"[..]; 4], &mut [&mut block, &mut [0; 4]]), Err(unequal));
    assert_eq!(&block, b"block");
}

#[test]
fn texts_of_errors_show_the_numbers() {
    let code = ReedSolomon::new(4, 2).unwrap();
    let mut block = [0; 8];
    let mut text = |block_index, member, shard: &[u8]| {
        code.accumulate(block_index, member, shard, &mut block).unwrap_err().to_string()
    };
    assert_eq!(text(2, 0, &[]), "block 2 of a code (4+2) with 2 redundant blocks, counted from 0");
    assert_eq!(text(0, 4, &[]), "member 4 of a code (4+2) with 4 data members, counted from 0");
    assert_eq!(text(0, 0, &[0; 9]), "shard of 9 bytes is longer than its redundant block of 8");

    let text = |present: &[bool], wanted| code.combination(present, wanted).unwrap_err().to_string();
    assert_eq!(text(&[false; 5], 0), "5 shards given, this code (4+2) takes 6");
    assert_eq!(text(&[false; 6], 0), "6 of 6 blocks lost, this code (4+2) survives at most 2");
    assert_eq!(text(&[true; 6], 6), "block 6 of a stripe (4+2) of 6 blocks, counted from 0");
    let text = |blocks: &mut [&mut [u8]]| code.encode(&[&[][..]; 4], blocks).unwrap_err().to_string();
    assert_eq!(text(&mut []), "0 redundant blocks given, this code (4+2) makes 2");
    assert_eq!(text(&mut [&mut [0; 2], &mut [0]]), "block 1 has 1 bytes, the first one has 2");
}

/// One hop of a reduction: products of the field, added.
#[test]
fn accumulate_multiplies_and_adds() {
    let mut into = [0x10, 0x20, 0x30];
    accumulate(2, &[0x80, 1], &mut into).unwrap();
    assert_eq!(into, [0x10 ^ 0x1d, 0x20 ^ 2, 0x30]);
    accumulate(0, &[1, 2, 3], &mut into).unwrap();
    assert_eq!(into, [0x0d, 0x22, 0x30]);
}

/// A code of any kind with up to 40 blocks.
fn any_code() -> impl Strategy<Value = Box<dyn Code>> {
    prop_oneof![
        (1..=8_usize).prop_map(|copies| Box::new(Mirror::new(copies).unwrap()) as Box<dyn Code>),
        (1..=39_usize).prop_map(|data| Box::new(Xor::new(data).unwrap()) as Box<dyn Code>),
        (1..=32_usize, 1..=8_usize)
            .prop_map(|(data, m)| Box::new(ReedSolomon::new(data, m).unwrap()) as Box<dyn Code>),
        (1..=32_usize, 1..=8_usize)
            .prop_map(|(data, m)| Box::new(ReedSolomon::vandermonde(data, m).unwrap()) as Box<dyn Code>),
    ]
}

proptest! {
    #[test]
    fn larger_codes_recover_any_losses(
        code in any_code(),
        length in 0..300_usize,
        seed in 0..1_000_000_u64,
        order in any::<u64>(),
    ) {
        let stripe = stripe(&*code, length, seed);
        // The blocks in an order drawn at random, of which the first `m` are lost.
        let draws = bytes(stripe.len(), order / 2);
        let mut shuffled: Vec<usize> = (0..stripe.len()).collect();
        shuffled.sort_by_key(|&i| draws[i]);
        let mut shards: Vec<_> = stripe.iter().cloned().map(Some).collect();
        for &lost in &shuffled[..code.redundant()] {
            shards[lost] = None;
        }
        prop_assert_eq!(recovered(&*code, &shards), stripe);
    }
}

#[test]
fn the_largest_codes_recover() {
    for (data, redundant) in [(254, 2), (200, 56), (128, 128), (1, 255)] {
        let code = ReedSolomon::new(data, redundant).unwrap();
        let stripe = stripe(&code, 3, 9);
        let mut shards: Vec<_> = stripe.iter().cloned().map(Some).collect();
        // Losses among data and redundant blocks alike.
        let lost = (0..redundant).map(|i| i * (data + redundant) / redundant);
        lost.for_each(|i| shards[i] = None);
        assert_eq!(recovered(&code, &shards), stripe, "{code:?}");
    }
}
