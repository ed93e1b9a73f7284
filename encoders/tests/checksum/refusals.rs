//! What is refused, with which words, and that nothing has changed then.

use ft_encoders::{Bound, Checksum, ChecksumError, CodeError, Drift, add_product};

use crate::samples::{encoded, slices, slices_mut, stripe};

fn code() -> Checksum {
    Checksum::new(4, 2).unwrap()
}

const ONE_LOST: [bool; 6] = [true, false, true, true, true, true];

#[test]
fn impossible_codes_say_why() {
    let text = |data, redundant| Checksum::new(data, redundant).unwrap_err().to_string();
    assert_eq!(text(0, 2), "a code (0+2) is impossible, both numbers must be at least 1");
    assert_eq!(text(2, 0), "a code (2+0) is impossible, both numbers must be at least 1");
    let no_weights = |shape: &str| {
        format!(
            "no weights for a checksum code ({shape}): they go to 60 data members and 4 checksum blocks; \
             use smaller groups, or an exact code such as rs"
        )
    };
    assert_eq!(text(61, 1), no_weights("61+1"));
    assert_eq!(text(8, 5), no_weights("8+5"));
    assert!(Checksum::new(usize::MAX, usize::MAX).is_err());
    assert_eq!(format!("{:?}", code()), "Checksum { shape: 4+2, .. }");
}

/// The stripe of `code()` with one member lost: sources and the recovery.
fn rebuild(stripe: &[Vec<f64>], limit: Bound) -> Result<Vec<Bound>, ChecksumError> {
    let recovery = code().recovery(&ONE_LOST, &[1]).unwrap();
    let sources: Vec<&[f64]> = recovery.sources().iter().map(|index| stripe[*index].as_slice()).collect();
    let mut into = vec![7.0; 5];
    let bounds = recovery.rebuild(&sources, &mut [&mut into], limit);
    assert_eq!(into == [7.0; 5], bounds.is_err(), "{bounds:?}");
    bounds
}

#[test]
fn what_is_beyond_the_limit_is_refused() {
    let mut stripe = stripe(4, 5, 0, 1);
    stripe.extend(encoded(&code(), &stripe));
    let bound = rebuild(&stripe, Bound::UNLIMITED).unwrap()[0];
    assert!(rebuild(&stripe, bound).is_ok());
    for limit in [
        Bound::absolute(bound.absolute / 2.0),
        Bound::relative_to_largest(bound.relative_to_largest / 2.0),
        Bound::EXACT,
        Bound::absolute(f64::NAN),
    ] {
        match rebuild(&stripe, limit).unwrap_err() {
            ChecksumError::BeyondLimit { block: 1, bound: refused, .. } => assert_eq!(refused, bound),
            other => panic!("{other}"),
        }
    }
    let limit = Bound { absolute: 1e-30, relative_to_largest: 1e-6 };
    let error = ChecksumError::BeyondLimit {
        block: 1,
        bound: Bound { absolute: 2e-15, relative_to_largest: 4e-15 },
        limit,
    };
    assert_eq!(
        error.to_string(),
        "block 1 would be rebuilt with errors of up to 2.0e-15 (4.0e-15 of the largest value), the limit is 1.0e-30 \
         (1.0e-6 of the largest value); raise the limit, restore an older checkpoint, or use an exact code such as rs"
    );
}

#[test]
fn a_block_that_is_there_is_exact() {
    let mut stripe = stripe(4, 5, 0, 1);
    stripe.extend(encoded(&code(), &stripe));
    let recovery = code().recovery(&ONE_LOST, &[2, 5]).unwrap();
    assert_eq!(recovery.sources(), [2, 5]);
    let mut made = vec![vec![0.0; 5]; 2];
    let bounds =
        recovery.rebuild(&[&stripe[2], &stripe[5]], &mut slices_mut(&mut made), Bound::EXACT).unwrap();
    assert_eq!(bounds, [Bound::EXACT; 2]);
    assert_eq!(made, [stripe[2].clone(), stripe[5].clone()]);
    // Beside one that is not.
    let recovery = code().recovery(&ONE_LOST, &[1, 5]).unwrap();
    assert_eq!(recovery.sources(), [0, 2, 3, 5]);
    let sources: Vec<&[f64]> = recovery.sources().iter().map(|index| stripe[*index].as_slice()).collect();
    let bounds = recovery.rebuild(&sources, &mut slices_mut(&mut made), Bound::UNLIMITED).unwrap();
    assert!(bounds[0].absolute > 0.0 && bounds[1] == Bound::EXACT);
    assert_eq!(made[1], stripe[5]);
}

#[test]
fn infinities_and_nan_are_found_and_nothing_changes() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut data = stripe(4, 5, 0, 1);
        let good = encoded(&code(), &data);
        data[2][3] = bad;
        let mut blocks = good.clone();
        let refused = Err(ChecksumError::NotFinite { block: 2, at: 3 });
        assert_eq!(code().encode(&slices(&data), &mut slices_mut(&mut blocks)), refused);
        assert_eq!(code().accumulate(1, 2, &data[2], &mut blocks[1]), refused);
        let mut drift = Drift::none(2);
        assert_eq!(code().update(2, &[], &data[2], &mut slices_mut(&mut blocks), &mut drift), refused);
        assert_eq!(code().update(2, &data[2], &[], &mut slices_mut(&mut blocks), &mut drift), refused);
        assert_eq!((&blocks, drift), (&good, Drift::none(2)));

        let stripe: Vec<Vec<f64>> = data.iter().chain(&good).cloned().collect();
        assert_eq!(rebuild(&stripe, Bound::UNLIMITED), Err(ChecksumError::NotFinite { block: 2, at: 3 }));
        let mut blocks = good;
        blocks[1][4] = bad;
        let refused = Err(ChecksumError::NotFinite { block: 5, at: 4 });
        assert_eq!(code().update(0, &[], &[1.0], &mut slices_mut(&mut blocks), &mut Drift::none(2)), refused);
        assert_eq!(code().accumulate(1, 0, &[1.0], &mut blocks[1]), refused);
    }
    assert_eq!(
        ChecksumError::NotFinite { block: 2, at: 3 }.to_string(),
        "element 3 of block 2 is infinite or not a number, so no sum with it can be solved; use an exact code such as rs"
    );
}

#[test]
fn sums_that_overflow_are_refused() {
    let data = vec![vec![1e308; 5]; 4];
    let mut blocks = vec![vec![7.0; 5]; 2];
    let refused = Err(ChecksumError::Overflow { block: 4 });
    assert_eq!(code().encode(&slices(&data), &mut slices_mut(&mut blocks)), refused);
    let refused = Err(ChecksumError::Overflow { block: 5 });
    assert_eq!(code().accumulate(1, 0, &data[0], &mut blocks[1]), refused);
    let mut drift = Drift::none(2);
    let refused = Err(ChecksumError::Overflow { block: 4 });
    assert_eq!(code().update(0, &data[0], &data[1], &mut slices_mut(&mut blocks), &mut drift), refused);
    assert_eq!((blocks, drift), (vec![vec![7.0; 5]; 2], Drift::none(2)));

    // Blocks that no encoding makes.
    let stripe = vec![vec![-1.7e308; 5]; 6];
    assert_eq!(rebuild(&stripe, Bound::UNLIMITED), Err(ChecksumError::Overflow { block: 1 }));
    let text = ChecksumError::Overflow { block: 1 }.to_string();
    assert!(
        text.starts_with("sums for block 1 could exceed 1.7976931348623157e308, the largest double; scale"),
        "{text}"
    );
    let mut magnitudes = vec![1.0; 6];
    magnitudes[1] = f64::INFINITY;
    let recovery = code().recovery(&ONE_LOST, &[1]).unwrap();
    assert_eq!(recovery.bounds(&magnitudes), Err(ChecksumError::Overflow { block: 1 }));
    let drift = Drift::from(vec![f64::INFINITY; 2]);
    let recovery = recovery.with_drift(&drift).unwrap();
    assert_eq!(recovery.bounds(&[1.0; 6]), Err(ChecksumError::Overflow { block: 1 }));
}

#[test]
fn wrong_arguments_are_refused_and_change_nothing() {
    let code = code();
    let (data, redundant) = (4, 2);
    let shard = [1.0; 5];
    let mut blocks = vec![vec![7.0; 5]; 2];
    let mut into = slices_mut(&mut blocks);
    let wrong_count = CodeError::WrongShardCount { given: 3, taken: 4, data, redundant };
    assert_eq!(code.encode(&[&shard[..]; 3], &mut into), Err(wrong_count.into()));
    let wrong_blocks = ChecksumError::from(CodeError::WrongBlockCount { given: 1, data, redundant });
    assert_eq!(code.encode(&[&shard[..]; 4], &mut into[1..]), Err(wrong_blocks.clone()));
    let too_long = ChecksumError::from(CodeError::ShardTooLong { shard_bytes: 48, block_bytes: 40 });
    assert_eq!(code.encode(&[&shard[..], &[0.0; 6], &[], &[]], &mut into), Err(too_long.clone()));
    assert_eq!(code.update(0, &[0.0; 6], &[], &mut into, &mut Drift::none(2)), Err(too_long.clone()));
    assert_eq!(code.update(0, &[], &[], &mut into, &mut Drift::none(1)), Err(wrong_blocks));
    let no_member = ChecksumError::from(CodeError::MemberOutOfRange { member: 4, data, redundant });
    assert_eq!(code.update(4, &[], &[], &mut into, &mut Drift::none(2)), Err(no_member.clone()));
    assert_eq!(code.accumulate(0, 4, &shard, into[0]), Err(no_member));
    let no_block = CodeError::BlockOutOfRange { block: 2, data, redundant };
    assert_eq!(code.accumulate(2, 0, &shard, into[0]), Err(no_block.into()));
    assert_eq!(code.accumulate(0, 0, &[0.0; 6], into[0]), Err(too_long.clone()));
    assert_eq!(add_product(1.0, &[0.0; 6], into[0]).map_err(ChecksumError::from), Err(too_long));
    into[1] = &mut [];
    let unequal = CodeError::UnequalLengths { index: 1, bytes: 0, first_bytes: 40 };
    assert_eq!(code.encode(&[&[][..]; 4], &mut into), Err(unequal.into()));
    assert_eq!(blocks, vec![vec![7.0; 5]; 2]);
}

#[test]
fn wrong_recoveries_are_refused() {
    let code = code();
    let (data, redundant) = (4, 2);
    let wrong_count = CodeError::WrongShardCount { given: 5, taken: 6, data, redundant };
    assert_eq!(code.recovery(&[true; 5], &[0]), Err(wrong_count.clone().into()));
    let no_index = CodeError::IndexOutOfRange { index: 6, data, redundant };
    assert_eq!(code.recovery(&[true; 6], &[0, 6]), Err(no_index.into()));
    let lost = CodeError::TooManyLost { lost: 3, data, redundant };
    assert_eq!(code.recovery(&[false, false, false, true, true, true], &[0]), Err(lost.into()));

    let recovery = code.recovery(&ONE_LOST, &[1, 1]).unwrap();
    assert_eq!((recovery.sources(), recovery.wanted()), (&[0, 2, 3, 5][..], &[1, 1][..]));
    assert!(recovery.weights(1).is_some() && recovery.weights(2).is_none());
    assert_eq!(recovery.bounds(&[1.0; 5]), Err(wrong_count.into()));
    let (given, taken) = (5, 4);
    let wrong_count = CodeError::WrongShardCount { given, taken, data: 4, redundant: 2 };
    assert_eq!(recovery.bounds_of_members(&[1.0; 5]), Err(wrong_count.into()));
    let overflow = recovery.bounds_of_members(&[1.0, f64::INFINITY, 1.0, 1.0]);
    assert!(matches!(overflow, Err(ChecksumError::Overflow { .. })), "{overflow:?}");
    let source = [1.0; 5];
    let (mut one, mut two) = ([7.0; 5], [7.0; 5]);
    let wrong = CodeError::WrongSourceCount { given: 3, taken: 4 };
    assert_eq!(
        recovery.rebuild(&[&source[..]; 3], &mut [&mut one, &mut two], Bound::UNLIMITED),
        Err(wrong.into())
    );
    let wrong = CodeError::WrongSourceCount { given: 1, taken: 2 };
    assert_eq!(recovery.rebuild(&[&source[..]; 4], &mut [&mut one], Bound::UNLIMITED), Err(wrong.into()));
    let unequal = CodeError::UnequalLengths { index: 1, bytes: 32, first_bytes: 40 };
    let refused = recovery.rebuild(&[&source[..]; 4], &mut [&mut one, &mut two[1..]], Bound::UNLIMITED);
    assert_eq!(refused, Err(unequal.into()));
    assert_eq!((one, two), ([7.0; 5], [7.0; 5]));
    let wrong = CodeError::WrongBlockCount { given: 1, data, redundant };
    assert_eq!(recovery.with_drift(&Drift::none(1)), Err(wrong.into()));

    // Nothing is wanted: nothing is read.
    let nothing = code.recovery(&ONE_LOST, &[]).unwrap();
    assert!(nothing.sources().is_empty());
    assert_eq!(nothing.rebuild(&[], &mut [], Bound::EXACT), Ok(vec![]));
}
