//! The loop over memory, once for all instruction sets: `into[j] (^)= XOR_i weights[i][j] * sources[i]`.
//!
//! An instruction set is a file: an implementation of [`Lanes`], the vector with its few operations, and the function
//! `combine` that is this loop compiled with it. Each step of the loop loads some vectors from every source and keeps the
//! sums in registers, so every source is read once and every block written once. Sources go in pairs, because AVX-512
//! adds three values at once.
//!
//! # Safety
//!
//! All `unsafe` of the crate is in this file and those below it. What it rests on:
//! - [`Call::new`] is the only way to a [`Call`], and checks: one to [`ROWS_MAX`] blocks, at most [`SOURCES_MAX`] sources,
//!   a weight for each pair, and all of the same length. So any `at` with `at + n <= bytes` is `n` bytes inside each of them.
//! - The pointers of a call come from slices that it borrows; those of the blocks from exclusive ones, so nothing that is
//!   written is also read through another pointer.
//! - [`Call::step`] and [`Call::part`] are called for ranges inside `0..bytes` only. Streaming stores want aligned addresses:
//!   they begin where all blocks are aligned, and are fenced before the call returns. A prefetch may have any address.
//! - [`Lanes`] of an instruction set are used only in its own `combine`, which only [`Usable::combine`] calls; those are made
//!   of the sets that this processor was found to have.
//!
//! Tests compare every instruction set with plain arithmetic for all lengths and alignments up to some hundred bytes;
//! Miri runs the loop with the portable lanes (`CONTRIBUTING.md`).
#![expect(unsafe_code, reason = "vector instructions and unchecked offsets: three to ten times faster")]

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx2_gfni;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod ssse3;

/// Most blocks that are made at once: their sums stay in registers.
pub(super) const ROWS_MAX: usize = 4;
/// Most sources that are read at once.
pub(super) const SOURCES_MAX: usize = 32;

/// Streaming stores begin at multiples of a cache line.
const LINE: usize = 64;
/// How far ahead of the loads sources are asked for, in bytes.
const AHEAD: usize = 2048;

/// Where the bytes are expected to be, which decides how they are best moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// In the caches of this core.
    Near,
    /// Beyond them: sources are asked for ahead of time.
    Far,
    /// In memory, and the blocks will not be used soon: these bypass the caches, which saves reading them first.
    Memory,
}

/// An instruction set, as the table of them has it.
pub(super) struct Set {
    pub(super) name: &'static str,
    is_there: fn() -> bool,
    /// May be called where [`Set::is_there`].
    combine: unsafe fn(Call<'_>),
}

/// All that this program has code for, the fastest first; the last runs everywhere.
pub(super) static SETS: &[Set] = &[
    #[cfg(target_arch = "x86_64")]
    Set { name: "avx512-gfni", is_there: avx512_gfni::is_there, combine: avx512_gfni::combine },
    #[cfg(target_arch = "x86_64")]
    Set { name: "avx2-gfni", is_there: avx2_gfni::is_there, combine: avx2_gfni::combine },
    #[cfg(target_arch = "x86_64")]
    Set { name: "avx2", is_there: avx2::is_there, combine: avx2::combine },
    #[cfg(target_arch = "x86_64")]
    Set { name: "ssse3", is_there: ssse3::is_there, combine: ssse3::combine },
    #[cfg(target_arch = "aarch64")]
    Set { name: "neon", is_there: neon::is_there, combine: neon::combine },
    Set { name: "portable", is_there: || true, combine: portable::combine },
];

/// A set of instructions that this processor has.
#[derive(Clone, Copy)]
pub(super) struct Usable(&'static Set);

impl Usable {
    /// All of them, the fastest first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        // Miri knows no vector instructions.
        SETS.iter().filter(|set| if cfg!(miri) { set.name == "portable" } else { (set.is_there)() }).map(Self)
    }

    pub(super) fn name(self) -> &'static str {
        self.0.name
    }

    pub(super) fn combine(self, call: Call<'_>) {
        // SAFETY: only `all` makes these, of sets that are there.
        unsafe { (self.0.combine)(call) }
    }
}

/// A checked order.
pub(super) struct Call<'a> {
    weights: &'a [u8],
    sources: &'a [&'a [u8]],
    into: [*mut u8; ROWS_MAX],
    rows: usize,
    bytes: usize,
    add: bool,
    reach: Reach,
    blocks: PhantomData<&'a mut [u8]>,
}

impl<'a> Call<'a> {
    /// `weights[i * into.len() + j]` is that of source `i` in block `j`; with `add` the blocks keep what they have.
    ///
    /// # Panics
    /// Counts or lengths are not as the safety of this module wants them.
    pub(super) fn new(
        weights: &'a [u8],
        sources: &'a [&'a [u8]],
        into: &'a mut [&mut [u8]],
        add: bool,
        reach: Reach,
    ) -> Self {
        let (rows, bytes) = (into.len(), into.first().map_or(0, |block| block.len()));
        assert!((1..=ROWS_MAX).contains(&rows) && sources.len() <= SOURCES_MAX);
        assert_eq!(weights.len(), rows * sources.len());
        assert!(sources.iter().all(|source| source.len() == bytes));
        assert!(into.iter().all(|block| block.len() == bytes));
        let mut pointers = [std::ptr::null_mut(); ROWS_MAX];
        for (pointer, block) in pointers.iter_mut().zip(into) {
            *pointer = block.as_mut_ptr();
        }
        Self { weights, sources, into: pointers, rows, bytes, add, reach, blocks: PhantomData }
    }

    /// Runs the loop with `V`, by `U` vectors a step; fewer where there are many blocks, as `U_MANY`.
    ///
    /// # Safety
    /// The processor has the instructions of `V`.
    #[inline(always)]
    unsafe fn run<V: Lanes, const U: usize, const U_MANY: usize>(self) {
        // SAFETY: as demanded of the caller.
        unsafe {
            match self.rows {
                1 if self.weights.iter().all(|weight| *weight == 1) => self.all::<Plain<V>, 1, U>(),
                1 => self.all::<V, 1, U>(),
                2 => self.all::<V, 2, U>(),
                3 => self.all::<V, 3, U_MANY>(),
                _ => self.all::<V, 4, U_MANY>(),
            }
        }
    }

    /// All bytes for `M` blocks.
    ///
    /// # Safety
    /// The processor has the instructions of `V`, and there are `M` blocks.
    #[inline(always)]
    unsafe fn all<V: Lanes, const M: usize, const U: usize>(self) {
        debug_assert_eq!(self.rows, M);
        // SAFETY: ranges end at `bytes` at most; the rest as demanded of the caller.
        unsafe {
            let mut factors = [[V::factor(0); M]; SOURCES_MAX];
            for (factors, weights) in factors.iter_mut().zip(self.weights.chunks_exact(M)) {
                *factors = std::array::from_fn(|j| V::factor(weights[j]));
            }
            let mut at = 0;
            let head = self.into[0].align_offset(LINE);
            let is_aligned = self.into[..M].iter().all(|block| block.align_offset(LINE) == head);
            let streams = self.reach == Reach::Memory && !self.add && is_aligned && head < self.bytes;
            if streams {
                at = self.parts::<V, M>(&factors, 0, head);
            }
            let far = self.reach != Reach::Near;
            while at + U * V::BYTES <= self.bytes {
                self.step::<V, M, U>(&factors, at, far, streams);
                at += U * V::BYTES;
            }
            self.parts::<V, M>(&factors, at, self.bytes);
            if streams {
                V::fence();
            }
        }
    }

    /// The bytes `at..at + U * V::BYTES` of all blocks.
    ///
    /// # Safety
    /// The range is inside `0..bytes`; the processor has the instructions of `V`; there are `M` blocks, which are
    /// aligned at `at` if `streams`.
    #[inline(always)]
    unsafe fn step<V: Lanes, const M: usize, const U: usize>(
        &self,
        factors: &[[V::Factor; M]; SOURCES_MAX],
        at: usize,
        far: bool,
        streams: bool,
    ) {
        // SAFETY: `U` vectors at `at` are inside every source and block; `i` counts the sources, which are no more
        // than there are factors.
        unsafe {
            let mut sums = [[V::zero(); U]; M];
            if self.add {
                for (sums, block) in sums.iter_mut().zip(self.into) {
                    *sums = vectors::<V, U>(block.add(at), far);
                }
            }
            let k = self.sources.len();
            let mut i = 0;
            while i + 2 <= k {
                let one = vectors::<V, U>(self.sources.get_unchecked(i).as_ptr().add(at), far);
                let two = vectors::<V, U>(self.sources.get_unchecked(i + 1).as_ptr().add(at), far);
                let (by_one, by_two) = (factors.get_unchecked(i), factors.get_unchecked(i + 1));
                for j in 0..M {
                    for u in 0..U {
                        sums[j][u] =
                            V::sum(sums[j][u], V::product(one[u], by_one[j]), V::product(two[u], by_two[j]));
                    }
                }
                i += 2;
            }
            if i < k {
                let one = vectors::<V, U>(self.sources.get_unchecked(i).as_ptr().add(at), far);
                let by_one = factors.get_unchecked(i);
                for j in 0..M {
                    for u in 0..U {
                        sums[j][u] = V::xor(sums[j][u], V::product(one[u], by_one[j]));
                    }
                }
            }
            for (sums, block) in sums.into_iter().zip(self.into) {
                for (u, sum) in sums.into_iter().enumerate() {
                    let to = block.add(at + u * V::BYTES);
                    if streams { sum.stream(to) } else { sum.store(to) }
                }
            }
        }
    }

    /// The bytes `from..end`, too few for a step, a vector or less at a time; gives `end`.
    ///
    /// # Safety
    /// `end <= bytes`; the processor has the instructions of `V`; there are `M` blocks.
    #[inline(always)]
    unsafe fn parts<V: Lanes, const M: usize>(
        &self,
        factors: &[[V::Factor; M]; SOURCES_MAX],
        from: usize,
        end: usize,
    ) -> usize {
        let mut at = from;
        while at < end {
            let n = V::BYTES.min(end - at);
            // SAFETY: `at + n <= end`; the rest as demanded of the caller.
            unsafe {
                let mut sums = [V::zero(); M];
                if self.add {
                    for (sum, block) in sums.iter_mut().zip(self.into) {
                        *sum = V::load_part(block.add(at), n);
                    }
                }
                for (source, factors) in self.sources.iter().zip(factors) {
                    let vector = V::load_part(source.as_ptr().add(at), n);
                    for (sum, factor) in sums.iter_mut().zip(factors) {
                        *sum = V::xor(*sum, V::product(vector, *factor));
                    }
                }
                for (sum, block) in sums.into_iter().zip(self.into) {
                    V::store_part(sum, block.add(at), n);
                }
            }
            at += n;
        }
        at
    }
}

/// `U` vectors; where they are `far` away, asks for those that come later.
///
/// # Safety
/// `U * V::BYTES` may be read; the processor has the instructions of `V`.
#[inline(always)]
unsafe fn vectors<V: Lanes, const U: usize>(from: *const u8, far: bool) -> [V; U] {
    // SAFETY: as demanded of the caller; a prefetch may have any address.
    unsafe {
        if far {
            for line in 0..(U * V::BYTES).div_ceil(LINE) {
                V::prefetch(from.wrapping_add(AHEAD + line * LINE));
            }
        }
        let mut vectors = [V::zero(); U];
        for (u, vector) in vectors.iter_mut().enumerate() {
            *vector = V::load(from.add(u * V::BYTES));
        }
        vectors
    }
}

/// A vector of bytes in a register, and what the loop does with it.
///
/// # Safety
///
/// `load` and `load_part` read, `store`, `stream` and `store_part` write as many bytes as they say, no others. All functions
/// may be called only where the processor has their instructions, and only inlined into a function that is
/// compiled for them.
unsafe trait Lanes: Copy {
    /// Bytes of a vector.
    const BYTES: usize;
    /// A weight as the product takes it.
    type Factor: Copy;

    unsafe fn factor(weight: u8) -> Self::Factor;
    unsafe fn zero() -> Self;
    /// Reads [`Self::BYTES`].
    unsafe fn load(from: *const u8) -> Self;
    /// Writes [`Self::BYTES`].
    unsafe fn store(self, to: *mut u8);
    /// Each byte times the weight.
    unsafe fn product(self, factor: Self::Factor) -> Self;
    unsafe fn xor(self, other: Self) -> Self;

    #[inline(always)]
    unsafe fn sum(self, one: Self, two: Self) -> Self {
        // SAFETY: as demanded of the caller.
        unsafe { self.xor(one).xor(two) }
    }

    /// Writes [`Self::BYTES`] past the caches; `to` is a multiple of them.
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as demanded of the caller.
        unsafe { self.store(to) }
    }

    /// Ends a row of [`Self::stream`]: others see the bytes in order again.
    #[inline(always)]
    unsafe fn fence() {}

    /// Asks for the cache line of any address.
    #[inline(always)]
    unsafe fn prefetch(_: *const u8) {}

    /// Reads `n <= BYTES`, the others are zero.
    #[inline(always)]
    unsafe fn load_part(from: *const u8, n: usize) -> Self {
        let mut bytes = [0_u8; LINE];
        // SAFETY: the caller has `n` bytes there, and no vector is longer than a line.
        unsafe {
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), n);
            Self::load(bytes.as_ptr())
        }
    }

    /// Writes the first `n <= BYTES`.
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, n: usize) {
        let mut bytes = [0_u8; LINE];
        // SAFETY: no vector is longer than a line, and the caller has `n` bytes there.
        unsafe {
            self.store(bytes.as_mut_ptr());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, n);
        }
    }
}

/// The same vector where all weights are 1: the product is left out.
#[derive(Clone, Copy)]
struct Plain<V>(V);

// SAFETY: every function is that of `V`.
unsafe impl<V: Lanes> Lanes for Plain<V> {
    const BYTES: usize = V::BYTES;
    type Factor = ();

    #[inline(always)]
    unsafe fn factor(_: u8) {}

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as demanded of the caller, as in all that follow.
        Self(unsafe { V::zero() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: as above.
        Self(unsafe { V::load(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn product(self, (): ()) -> Self {
        self
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { self.0.xor(other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self, one: Self, two: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { self.0.sum(one.0, two.0) })
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { self.0.stream(to) }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: as above.
        unsafe { V::fence() }
    }

    #[inline(always)]
    unsafe fn prefetch(from: *const u8) {
        // SAFETY: as above.
        unsafe { V::prefetch(from) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, n: usize) -> Self {
        // SAFETY: as above.
        Self(unsafe { V::load_part(from, n) })
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, n: usize) {
        // SAFETY: as above.
        unsafe { self.0.store_part(to, n) }
    }
}
