//! Pages of memory that is about to be filled.
//!
//! # Safety
//!
//! The `unsafe` here rests on this: advice on the size of pages changes nothing of what is in them.
#![expect(
    unsafe_code,
    reason = "advice about memory has no safe interface; what it saves is in ARCHITECTURE, decision 59"
)]

use rustix::mm::{Advice, madvise};

/// Bytes from which on large pages are asked for: few of them lie in less, and more is wasted at its ends.
const LARGE: usize = 4 << 20;
const PAGE: usize = 4096;

/// Says that all of `items`, new memory, will be written soon: where the system has large pages for who asks, it takes some, and the first
/// touch of each costs what that of a small one would. Changes nothing else.
pub fn fill_soon<T>(items: &mut [T]) {
    let (start, bytes) = (items.as_mut_ptr().cast::<u8>(), size_of_val(items));
    if bytes < LARGE {
        return;
    }
    let before = start.align_offset(PAGE);
    let within = bytes.saturating_sub(before) / PAGE * PAGE;
    // SAFETY: whole pages within `items`, which nobody else has; see the module. Where the system does not know it, nothing changes.
    let _ = unsafe { madvise(start.wrapping_add(before).cast(), within, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays() {
        for len in [0, 10, LARGE - 1, LARGE, LARGE + 4097] {
            let mut bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            fill_soon(&mut bytes[..]);
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
            fill_soon(&mut bytes[len / 3..]);
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        }
    }
}
