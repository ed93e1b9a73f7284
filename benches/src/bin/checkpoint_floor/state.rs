//! States that every rank can compute, so that each can check what it holds of others.

/// Fills `into` with the bytes from `start`, a multiple of 8, of the state of `rank` at its checkpoint `number`; behind its
/// `length` there are zeros.
pub(super) fn fill(into: &mut [u8], rank: usize, number: usize, start: usize, length: usize) {
    let within = length.saturating_sub(start).min(into.len());
    let (state, beyond) = into.split_at_mut(within);
    beyond.fill(0);
    let seed = (rank as u64 + 1) << 40 | (number as u64) << 32;
    for (at, word) in state.chunks_mut(8).enumerate() {
        let mixed = (seed + (start / 8 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bytes = (mixed ^ mixed >> 29).to_le_bytes();
        word.copy_from_slice(&bytes[..word.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_whole() {
        let filled = |rank, number, start, bytes: usize| {
            let mut into = vec![1; bytes];
            fill(&mut into, rank, number, start, 1000);
            into
        };
        let whole = filled(3, 2, 0, 1024);
        assert_eq!(whole[1000..], [0; 24]);
        assert_eq!(filled(3, 2, 512, 512), whole[512..]);
        assert_eq!(filled(3, 2, 1024, 16), [0; 16]);
        for other in [filled(2, 2, 0, 1024), filled(3, 1, 0, 1024)] {
            let mut words = whole[..1000].chunks(8).zip(other.chunks(8));
            assert!(words.all(|(one, other)| one != other), "every word is another");
        }
    }
}
