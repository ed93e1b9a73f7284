//! The one operation that all codes are made of, `into[j] (^)= XOR_i weights[j][i] * sources[i]` over GF(2^8), and the choice
//! of the instructions that it runs with.
//!
//! Everything here is safe: sources are cut into spans in which they have the same length, and those into calls of the
//! size that the loop in `simd.rs` takes.

mod simd;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::OnceLock;

use thiserror::Error;

use self::simd::{Call, ROWS_MAX, Reach, SOURCES_MAX, Usable};

/// Environment variable that names the kernel to use, such as `portable`.
const ENV_KERNEL: &str = "FT_KERNEL";

/// Bytes of all sources and blocks together up to which they are taken to be in the cache of a core.
const NEAR_BYTES: usize = 1 << 20;
/// Bytes of all sources and blocks together from which they are taken to be in memory.
const MEMORY_BYTES: usize = 32 << 20;
/// Bytes of all sources and blocks together that are gone through at a time when they are gone through more than once.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of all sources and blocks together from which the threads of a process share the work: some 20 microseconds.
const SHARED_BYTES: usize = 512 << 10;
/// Shared work is cut at multiples of so many bytes of a block.
const PIECE_BYTES: usize = 4 << 10;
/// Pieces for each thread.
const PIECES: usize = 2;

/// A way to compute: the instructions that products and sums over GF(2^8) are made with.
///
/// All kernels give the same bytes. The fastest that the processor has is used, unless the environment variable `FT_KERNEL`
/// names another one: `avx512-gfni`, `avx2-gfni`, `avx2` or `ssse3` on x86-64, `neon` on AArch64, `portable` everywhere.
#[derive(Clone, Copy)]
pub struct Kernel(Usable);

/// `FT_KERNEL` names no kernel that can be used here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("FT_KERNEL: no kernel {name:?} on this processor, which has: {}", .available.join(", "))]
pub struct KernelError {
    /// What was asked for.
    pub name: String,
    /// What can be asked for, the fastest first.
    pub available: Vec<&'static str>,
}

impl Kernel {
    /// All that this processor can run, the fastest first, `portable` last.
    pub fn all() -> impl Iterator<Item = Self> {
        Usable::all().map(Self)
    }

    /// The kernel that all codes use, chosen once for the process.
    ///
    /// # Errors
    /// `FT_KERNEL` names none that can be used; no code can be made then.
    pub fn chosen() -> Result<Self, KernelError> {
        static CHOSEN: OnceLock<Result<Kernel, KernelError>> = OnceLock::new();
        let choose =
            || Self::choose(std::env::var_os(ENV_KERNEL).map(|name| name.to_string_lossy().into_owned()));
        CHOSEN.get_or_init(choose).clone()
    }

    /// The name of this kernel, as in `FT_KERNEL`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The kernel `name`, or the fastest if there is no name.
    fn choose(name: Option<String>) -> Result<Self, KernelError> {
        match name.filter(|name| !name.is_empty()) {
            None => Ok(Self::fastest()),
            Some(name) => Self::all()
                .find(|kernel| kernel.name() == name)
                .ok_or_else(|| KernelError { name, available: Self::all().map(Self::name).collect() }),
        }
    }

    fn fastest() -> Self {
        Self::all().next().expect("the portable one is everywhere")
    }

    /// The kernel for calls that cannot fail: codes have told of a wrong `FT_KERNEL` before.
    pub(crate) fn current() -> Self {
        static CURRENT: OnceLock<Kernel> = OnceLock::new();
        *CURRENT.get_or_init(|| Self::chosen().unwrap_or_else(|_| Self::fastest()))
    }

    /// `into[j] (^)= XOR_i weight(j, i) * sources[i]`; with `add` the blocks keep what they have, else it is replaced.
    ///
    /// Sources count as padded with zeros to the length of the blocks; what they have beyond it is not looked at. Each
    /// source is read once for up to 4 blocks; with more it comes from the cache again. What is long is shared by the threads
    /// of the process ([`ft_threads`]); no memory is taken otherwise.
    ///
    /// # Panics
    /// The blocks differ in length.
    pub(crate) fn combine(
        self,
        weight: impl Fn(usize, usize) -> u8 + Sync,
        sources: &[&[u8]],
        into: &mut [&mut [u8]],
        add: bool,
    ) {
        let Some(bytes) = into.first().map(|block| block.len()) else { return };
        assert!(into.iter().all(|block| block.len() == bytes), "blocks of one length");
        let all = bytes.saturating_mul(sources.len() + into.len());
        if all < SHARED_BYTES || ft_threads::threads() == 1 {
            return self.combine_alone(&weight, sources, into, (add, 1));
        }
        let count = PIECES * ft_threads::threads();
        let piece = bytes.div_ceil(count).next_multiple_of(PIECE_BYTES);
        let mut pieces: Vec<Vec<&mut [u8]>> = (0..bytes.div_ceil(piece)).map(|_| Vec::new()).collect();
        for block in into {
            pieces.iter_mut().zip(block.chunks_mut(piece)).for_each(|(blocks, part)| blocks.push(part));
        }
        let pieces: Vec<_> = pieces.into_iter().enumerate().collect();
        ft_threads::for_each(pieces, |(at, mut blocks)| {
            let part = |source: &&'_ [u8]| {
                let from = (at * piece).min(source.len());
                from..(from + piece).min(source.len())
            };
            let sources: Vec<&[u8]> = sources.iter().map(|source| &source[part(source)]).collect();
            self.combine_alone(&weight, &sources, &mut blocks, (add, count));
        });
    }

    /// As [`Kernel::combine`], on the calling thread; the whole is about `of_pieces` times as long.
    fn combine_alone(
        self,
        weight: &impl Fn(usize, usize) -> u8,
        sources: &[&[u8]],
        into: &mut [&mut [u8]],
        (add, of_pieces): (bool, usize),
    ) {
        let bytes = into.first().map_or(0, |block| block.len());
        let mut from = 0;
        while from < bytes {
            // Up to the end of the next source the same ones take part.
            let ends = sources.iter().map(|source| source.len()).filter(|end| *end > from);
            match ends.min() {
                Some(end) => {
                    let end = end.min(bytes);
                    self.span(weight, sources, into, from..end, (add, of_pieces));
                    from = end;
                }
                None if add => return,
                None => return into.iter_mut().for_each(|block| block[from..].fill(0)),
            }
        }
    }

    /// `into = source`, both of one length, written past the caches.
    pub(crate) fn stream(self, source: &[u8], into: &mut [u8]) {
        self.0.combine(Call::new(&[1], &[source], &mut [into], false, Reach::Memory));
    }

    /// The bytes `from..end`, in which no source ends.
    fn span(
        self,
        weight: &impl Fn(usize, usize) -> u8,
        sources: &[&[u8]],
        into: &mut [&mut [u8]],
        Range { start: from, end }: Range<usize>,
        (add, of_pieces): (bool, usize),
    ) {
        let count = sources.len() + into.len();
        let passes_once = into.len() <= ROWS_MAX && sources.len() <= SOURCES_MAX;
        let reach = match (end - from).saturating_mul(count * of_pieces) {
            ..=NEAR_BYTES => Reach::Near,
            MEMORY_BYTES.. if passes_once => Reach::Memory,
            _ => Reach::Far,
        };
        let chunk = if passes_once { end - from } else { (CHUNK_BYTES / count).next_multiple_of(64).max(64) };
        // Five blocks are 3 + 2, not 4 + 1.
        let rows = into.len().div_ceil(into.len().div_ceil(ROWS_MAX));
        for at in (from..end).step_by(chunk) {
            let to = end.min(at + chunk);
            for (group, blocks) in into.chunks_mut(rows).enumerate() {
                let mut parts: [&mut [u8]; ROWS_MAX] = Default::default();
                let count = blocks.len();
                for (part, block) in parts.iter_mut().zip(blocks) {
                    *part = &mut block[at..to];
                }
                let parts = &mut parts[..count];
                let weight = |j: usize, i: usize| weight(group * rows + j, i);
                let mut going_on =
                    sources.iter().enumerate().filter(|(_, source)| source.len() >= end).peekable();
                let mut adds = add;
                while going_on.peek().is_some() {
                    let batch = going_on.by_ref().take(SOURCES_MAX).map(|(i, source)| (i, &source[at..to]));
                    self.call(&weight, batch, parts, adds, reach);
                    adds = true;
                }
            }
        }
    }

    /// One call of the loop: at most [`SOURCES_MAX`] sources and [`ROWS_MAX`] blocks of one length.
    fn call<'a>(
        self,
        weight: &impl Fn(usize, usize) -> u8,
        batch: impl Iterator<Item = (usize, &'a [u8])>,
        into: &mut [&mut [u8]],
        add: bool,
        reach: Reach,
    ) {
        let mut weights = [0; ROWS_MAX * SOURCES_MAX];
        let mut sources: [&[u8]; SOURCES_MAX] = [&[]; SOURCES_MAX];
        let (rows, mut count) = (into.len(), 0);
        for (i, source) in batch {
            for j in 0..rows {
                weights[count * rows + j] = weight(j, i);
            }
            sources[count] = source;
            count += 1;
        }
        self.0.combine(Call::new(&weights[..count * rows], &sources[..count], into, add, reach));
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Kernel").field(&self.name()).finish()
    }
}
