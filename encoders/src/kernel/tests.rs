//! Every kernel against plain arithmetic, one product at a time.

use super::*;
use crate::field;

/// `length` bytes without a pattern, the same ones for the same seed.
fn bytes(length: usize, seed: usize) -> Vec<u8> {
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// What [`Kernel::combine`] has to give.
fn plain(weights: &[Vec<u8>], sources: &[&[u8]], into: &[Vec<u8>], add: bool) -> Vec<Vec<u8>> {
    let sum = |j: usize, at: usize, old: u8| {
        let parts = sources.iter().zip(&weights[j]);
        let parts =
            parts.map(|(source, weight)| field::product(*weight, source.get(at).copied().unwrap_or(0)));
        parts.fold(if add { old } else { 0 }, |sum, part| sum ^ part)
    };
    let block =
        |(j, block): (usize, &Vec<u8>)| block.iter().enumerate().map(|(at, old)| sum(j, at, *old)).collect();
    into.iter().enumerate().map(block).collect()
}

/// One case with every kernel. Source `i` begins `offset + i` bytes into an aligned piece of memory and block `j` `offset + 3 j`
/// bytes, between bytes that must stay as they are.
fn compare(length: usize, lengths: &[usize], rows: usize, offset: usize, add: bool, ones: bool) {
    let memory = |bytes: &[u8], offset: usize| {
        let mut memory = vec![0xa5; bytes.len() + offset + 192];
        let from = memory.as_ptr().align_offset(64).min(64) + offset;
        memory[from..from + bytes.len()].copy_from_slice(bytes);
        (memory, from)
    };
    let weights: Vec<Vec<u8>> = (0..rows)
        .map(|j| if ones { vec![1; lengths.len()] } else { bytes(lengths.len(), 100 + j) })
        .collect();
    let sources: Vec<_> =
        lengths.iter().enumerate().map(|(i, length)| memory(&bytes(*length, i), offset + i)).collect();
    let sources: Vec<&[u8]> =
        sources.iter().zip(lengths).map(|((memory, from), length)| &memory[*from..from + length]).collect();
    let old: Vec<Vec<u8>> = (0..rows).map(|j| bytes(length, 200 + j)).collect();
    let expected = plain(&weights, &sources, &old, add);
    for kernel in Kernel::all() {
        let mut blocks: Vec<_> =
            old.iter().enumerate().map(|(j, block)| memory(block, offset + 3 * j)).collect();
        let mut into: Vec<&mut [u8]> =
            blocks.iter_mut().map(|(memory, from)| &mut memory[*from..*from + length]).collect();
        kernel.combine(|j, i| weights[j][i], &sources, &mut into, add);
        for ((block, from), expected) in blocks.iter().zip(&expected) {
            let case =
                || format!("{kernel:?}, {length} bytes of {lengths:?}, {rows} rows at {offset}, add {add}");
            assert_eq!(&block[*from..from + length], expected, "{}", case());
            let (before, after) = (&block[..*from], &block[from + length..]);
            assert!(before.iter().chain(after).all(|byte| *byte == 0xa5), "{}: written outside", case());
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "long")]
fn threads_share_what_is_long() {
    ft_threads::Team::new(3).install(|| {
        for (length, lengths, add) in [
            (300_001, &[300_001, 250_000, 77][..], false),
            (200_000, &[200_000, 200_000, 199_999, 1], true),
            (SHARED_BYTES, &[12_345], false),
        ] {
            compare(length, lengths, 2, 5, add, false);
            compare(length, lengths, 5, 64, add, false);
            compare(length, lengths, 1, 0, add, true);
        }
    });
}

/// Miri is slow: it sees a part of the lengths.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=200).filter(|length| !cfg!(miri) || length % 23 == 0)
}

#[test]
fn every_length_and_alignment() {
    for length in lengths() {
        for offset in (0..64).filter(|offset| !cfg!(miri) || offset % 21 == 0) {
            compare(
                length,
                &[length; 3],
                1 + (length + offset) % 4,
                offset,
                (length / 2 + offset) % 2 == 1,
                false,
            );
        }
    }
}

#[test]
fn every_number_of_blocks_and_sources() {
    for length in [1, 33, 300, 513] {
        for rows in (1..=9).filter(|rows| !cfg!(miri) || rows % 3 == 1) {
            for sources in [0, 1, 2, 3, 4, 5, 16, 17, 31, 32, 33, 64, 65, 70] {
                let is_little = sources < 4 && length <= 33 || (sources, length, rows) == (33, 33, 1);
                if !cfg!(miri) || is_little {
                    compare(length, &vec![length; sources], rows, 5, (rows + sources) % 2 == 0, false);
                }
            }
        }
    }
}

#[test]
fn weights_of_one() {
    for length in lengths() {
        for rows in [1, 2] {
            compare(length, &[length; 4], rows, length % 64, false, true);
            compare(length, &[length; 3], rows, length % 64, true, true);
        }
    }
}

#[test]
fn ragged_sources_count_as_padded_and_longer_ones_are_cut() {
    for add in [false, true] {
        compare(200, &[0, 17, 200, 90, 91, 0, 17, 199], 4, 3, add, false);
        compare(200, &[150, 3], 2, 0, add, false);
        compare(200, &[0, 0], 5, 0, add, false);
        compare(100, &[200, 40, 100, 101], 3, 1, add, false);
    }
}

/// The loops that are chosen by size: with prefetches, with streaming stores that begin and end anywhere, and in
/// chunks.
#[test]
#[cfg_attr(miri, ignore = "much memory; the same loops")]
fn large_blocks() {
    for (length, sources, rows) in [(300_001, 4, 2), (1_000_003, 40, 1), (700_001, 7, 6)] {
        compare(length, &vec![length; sources], rows, 7, false, false);
    }
    // Blocks at the same distance from a line, which streaming stores want.
    let length = MEMORY_BYTES / 3 + 77;
    let sources = [bytes(length, 1), bytes(length, 2)];
    let sources: Vec<&[u8]> = sources.iter().map(|source| &source[..]).collect();
    let mut one = vec![0; length + 128];
    for ones in [true, false] {
        let weights = vec![if ones { vec![1, 1] } else { vec![77, 200] }];
        let expected = plain(&weights, &sources, &[vec![0; length]], false);
        for kernel in Kernel::all() {
            for offset in [0, 1, 33, 63] {
                one.fill(0x5a);
                let from = one.as_ptr().align_offset(64).min(64) + offset;
                let block = &mut one[from..from + length];
                kernel.combine(|j, i| weights[j][i], &sources, &mut [block], false);
                assert!(one[from..from + length] == expected[0], "{kernel:?} at {offset}");
                let outside = one[..from].iter().chain(&one[from + length..]);
                assert!(outside.into_iter().all(|byte| *byte == 0x5a), "{kernel:?} at {offset}");
            }
        }
    }
}

#[test]
fn every_kernel_of_this_processor_can_be_forced() {
    let names: Vec<&str> = Kernel::all().map(Kernel::name).collect();
    assert_eq!(names.last(), Some(&"portable"));
    for name in &names {
        assert_eq!(Kernel::choose(Some((*name).to_owned())).unwrap().name(), *name);
    }
    for none in [None, Some(String::new())] {
        assert_eq!(Kernel::choose(none).unwrap().name(), names[0]);
    }
}

#[test]
fn a_wrong_name_says_which_there_are() {
    let error = Kernel::choose(Some("sse9".into())).unwrap_err();
    assert_eq!(error.available, Kernel::all().map(Kernel::name).collect::<Vec<_>>());
    let text = error.to_string();
    assert!(text.starts_with("FT_KERNEL: no kernel \"sse9\" on this processor, which has: "), "{text}");
    assert!(text.ends_with("portable"), "{text}");
}

/// A processor that has the instructions must not be found without them.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn what_the_processor_has_is_used() {
    let has = |name: &str| Kernel::all().any(|kernel| kernel.name() == name);
    assert_eq!(has("ssse3"), is_x86_feature_detected!("ssse3"));
    assert_eq!(has("avx2"), is_x86_feature_detected!("avx2"));
    let gfni = is_x86_feature_detected!("gfni");
    assert_eq!(has("avx2-gfni"), is_x86_feature_detected!("avx2") && gfni);
    assert_eq!(has("avx512-gfni"), is_x86_feature_detected!("avx512bw") && gfni);
}
