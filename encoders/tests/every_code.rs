//! What holds for every code, tried on every small one with every pattern of losses.

mod common;

use common::{bytes, codes, data, redundant, stripe, without};
use ft_encoders::{Code, CodeError, Mirror, ReedSolomon, Xor, encode};
use proptest::prelude::*;

#[test]
fn every_pattern_of_losses_is_recovered_or_refused() {
    for code in codes(8) {
        let (k, m) = (code.data(), code.redundant());
        for length in [0, 1, 13] {
            let stripe = stripe(&*code, length, 1);
            for lost in 0..1_u32 << (k + m) {
                let damaged = without(&stripe, lost);
                let mut shards = damaged.clone();
                let outcome = code.recover(&mut shards);
                if lost.count_ones() as usize <= m {
                    assert_eq!(outcome, Ok(()), "{code:?}, lost {lost:#b}");
                    assert_eq!(shards, without(&stripe, 0), "{code:?}, lost {lost:#b}");
                } else {
                    let text = format!(
                        "{} of {} blocks lost, this code ({k}+{m}) survives at most {m}",
                        lost.count_ones(),
                        k + m
                    );
                    assert_eq!(outcome.unwrap_err().to_string(), text);
                    assert_eq!(shards, damaged, "{code:?}, lost {lost:#b}: changed on error");
                }
            }
        }
    }
}

#[test]
fn a_whole_stripe_is_left_as_it_is() {
    for code in codes(8) {
        // A stripe that contradicts itself: nothing is missing, so nothing is looked at.
        let mut shards: Vec<_> =
            (0..code.data() + code.redundant()).map(|i| Some(bytes(9, i as u64))).collect();
        let before = shards.clone();
        code.recover(&mut shards).unwrap();
        assert_eq!(shards, before, "{code:?}");
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
        }
    }
}

#[test]
fn codes_of_one_member_are_all_mirrors() {
    let shard = bytes(33, 5);
    for copies in 1..8 {
        let copied = vec![shard.clone(); copies];
        assert_eq!(encode(&Mirror::new(copies).unwrap(), &[&shard]).unwrap(), copied);
        assert_eq!(encode(&ReedSolomon::new(1, copies).unwrap(), &[&shard]).unwrap(), copied);
    }
    assert_eq!(encode(&Xor::new(1).unwrap(), &[&shard]).unwrap(), [shard]);
}

#[test]
fn wrong_arguments_are_refused_and_change_nothing() {
    for code in codes(8) {
        let (data, redundant) = (code.data(), code.redundant());

        let mut block = *b"block";
        let no_block = CodeError::BlockOutOfRange { block: redundant, data, redundant };
        assert_eq!(code.accumulate(redundant, 0, b"shard", &mut block), Err(no_block));
        let no_member = CodeError::MemberOutOfRange { member: data, data, redundant };
        assert_eq!(code.accumulate(0, data, b"shard", &mut block), Err(no_member));
        let too_long = CodeError::ShardTooLong { shard_bytes: 6, block_bytes: 5 };
        assert_eq!(code.accumulate(0, 0, b"shards", &mut block), Err(too_long));
        assert_eq!(&block, b"block", "{code:?}");

        let taken = data + redundant;
        for given in [0, taken - 1, taken + 1] {
            let mut shards = vec![Some(vec![1]); given];
            let wrong_count = CodeError::WrongShardCount { given, taken, data, redundant };
            assert_eq!(code.recover(&mut shards), Err(wrong_count));
            assert_eq!(shards, vec![Some(vec![1]); given]);
        }

        // The last shard is too long, and the first is missing if the code can bear it.
        let mut shards = vec![Some(vec![1, 2]); taken];
        shards[taken - 1] = Some(vec![1, 2, 3]);
        let other_index = usize::from(taken > 2);
        if other_index == 1 {
            shards[0] = None;
        }
        let before = shards.clone();
        let unequal = CodeError::UnequalLengths { index: taken - 1, bytes: 3, other_index, other_bytes: 2 };
        assert_eq!(code.recover(&mut shards), Err(unequal), "{code:?}");
        assert_eq!(shards, before);

        let too_many: Vec<&[u8]> = vec![b"shard"; data + 1];
        let wrong_count = CodeError::WrongShardCount { given: data + 1, taken: data, data, redundant };
        assert_eq!(encode(&*code, &too_many), Err(wrong_count));
    }
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

    let text = |shards: &mut [Option<Vec<u8>>]| code.recover(shards).unwrap_err().to_string();
    assert_eq!(text(&mut [const { None }; 5]), "5 shards given, this code (4+2) takes 6");
    assert_eq!(text(&mut [const { None }; 6]), "6 of 6 blocks lost, this code (4+2) survives at most 2");
    let mut unequal = vec![Some(vec![0; 8]); 6];
    unequal[3] = Some(vec![0; 9]);
    assert_eq!(text(&mut unequal), "shard 3 has 9 bytes, shard 0 has 8");
}

/// A code of any kind with up to 40 blocks.
fn any_code() -> impl Strategy<Value = Box<dyn Code>> {
    prop_oneof![
        (1..=8_usize).prop_map(|copies| Box::new(Mirror::new(copies).unwrap()) as Box<dyn Code>),
        (1..=39_usize).prop_map(|data| Box::new(Xor::new(data).unwrap()) as Box<dyn Code>),
        (1..=32_usize, 1..=8_usize)
            .prop_map(|(data, m)| Box::new(ReedSolomon::new(data, m).unwrap()) as Box<dyn Code>),
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
        prop_assert_eq!(code.recover(&mut shards), Ok(()));
        let recovered: Vec<Vec<u8>> = shards.into_iter().flatten().collect();
        prop_assert_eq!(recovered, stripe);
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
        code.recover(&mut shards).unwrap();
        assert_eq!(shards.into_iter().flatten().collect::<Vec<_>>(), stripe, "{code:?}");
    }
}
