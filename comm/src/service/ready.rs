//! Memory that is there before it is needed: while a spare waits, it is given as much as a rank of the job keeps.
//!
//! New memory comes from the system page by page, cleared, when it is first written; that takes longer than to fill it. So a layer that
//! keeps much says how much, the launcher tells the spares, and each has it ready when a rank is lost.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ft_proto::wire::control::ToArbiter;

/// Shorter pieces are not worth it, in bytes.
const LEAST: u64 = 64 << 10;
/// So many bytes are taken from the system at a time, and then it is seen whether they are still wanted.
const PORTION: usize = 1 << 20;
/// What is in memory that nobody has used.
const UNUSED: u8 = 0xA5;

/// A length that does not change with every few bytes, and is an eighth more at most.
fn rounded(len: u64) -> u64 {
    len.next_multiple_of(1 << (len / 8).max(1).ilog2())
}

type Say = Box<dyn Fn(ToArbiter) + Send + Sync>;

/// What a process has ready, and tells others to have. For a layer that keeps much memory, from any thread; clones are the same.
#[derive(Clone, Default)]
pub struct ReadyMemory(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// How the launcher is told; not set without one.
    say: OnceLock<Say>,
}

#[derive(Default)]
struct State {
    /// Lengths of what each part of the layer keeps.
    kept: BTreeMap<u32, Vec<u64>>,
    /// Lengths of what is to be ready.
    wanted: Vec<u64>,
    pieces: Vec<Vec<u8>>,
    is_preparing: bool,
}

impl State {
    /// What is wanted and not there; pieces that are not wanted go.
    fn missing(&mut self) -> Option<u64> {
        let mut wanted = self.wanted.clone();
        self.pieces.retain(|piece| {
            let at = wanted.iter().position(|len| *len == piece.len() as u64);
            at.map(|at| wanted.swap_remove(at)).is_some()
        });
        wanted.into_iter().max()
    }
}

impl std::fmt::Debug for ReadyMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadyMemory").finish_non_exhaustive()
    }
}

impl ReadyMemory {
    /// The launcher is told by `say` what a process in the place of this one would need.
    pub fn new(say: impl Fn(ToArbiter) + Send + Sync + 'static) -> Self {
        let ready = Self::default();
        let _ = ready.0.say.set(Box::new(say));
        ready
    }

    /// From now on `part` of the layer keeps pieces of so many bytes. A process that takes this rank needs the same. What is
    /// ready here is of no more use.
    pub fn keeps(&self, part: u32, lens: impl IntoIterator<Item = u64>) {
        let mut state = self.state();
        (state.wanted, state.pieces) = (vec![], vec![]);
        let lens: Vec<u64> = lens.into_iter().filter(|len| *len >= LEAST).map(rounded).collect();
        if state.kept.get(&part).is_some_and(|kept| *kept == lens) {
            return;
        }
        state.kept.insert(part, lens);
        let mut pieces: Vec<u64> = state.kept.values().flatten().copied().collect();
        pieces.sort_unstable_by(|a, b| b.cmp(a));
        drop(state);
        if let Some(say) = self.0.say.get() {
            say(ToArbiter::Keeps { pieces });
        }
    }

    /// A piece of `len` bytes or some more, if one is ready; its bytes are any. It is the shortest that will do, and not more
    /// than twice as long.
    pub fn take(&self, len: usize) -> Option<Vec<u8>> {
        let mut state = self.state();
        let fits = |piece: &Vec<u8>| piece.len() >= len && piece.len() / 2 <= len;
        let fitting = state.pieces.iter().enumerate().filter(|(_, piece)| fits(piece));
        let (at, _) = fitting.min_by_key(|(_, piece)| piece.len())?;
        Some(state.pieces.swap_remove(at))
    }

    /// Pieces of these lengths are to be ready; a thread sees to it, after all others of the host if the system knows how. For a
    /// process that has nothing else to do.
    pub fn prepare(&self, pieces: Vec<u64>) {
        let mut state = self.state();
        state.wanted = pieces;
        if !std::mem::replace(&mut state.is_preparing, true) {
            let ready = self.clone();
            let thread = std::thread::Builder::new().name("memory".into()).spawn(move || {
                let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 19);
                ready.make();
            });
            state.is_preparing = thread.is_ok(); // without it memory comes when it is needed
        }
    }

    /// As [`ReadyMemory::prepare`], at once and on this thread.
    pub fn prepare_here(&self, pieces: Vec<u64>) {
        self.state().wanted = pieces;
        self.make();
    }

    /// This process has other things to do: what is not ready yet is given up.
    pub fn stop(&self) {
        self.state().wanted.clear();
    }

    fn make(&self) {
        while let Some(len) = self.next() {
            let piece = self.fill(len);
            let mut state = self.state();
            match piece {
                Some(piece) if state.wanted.contains(&len) => state.pieces.push(piece),
                Some(_) => {}
                None => state.wanted.retain(|wanted| *wanted != len),
            }
        }
    }

    /// What is to be made next; none: this is over.
    fn next(&self) -> Option<u64> {
        let mut state = self.state();
        let missing = if state.wanted.is_empty() { None } else { state.missing() };
        state.is_preparing = missing.is_some();
        missing
    }

    /// Memory that is there; none if it cannot be had. It is shorter if it is not wanted any more.
    fn fill(&self, len: u64) -> Option<Vec<u8>> {
        let len = usize::try_from(len).ok()?;
        let mut piece = Vec::new();
        piece.try_reserve_exact(len).ok()?;
        while piece.len() < len && self.state().wanted.contains(&(len as u64)) {
            piece.resize(len.min(piece.len() + PORTION), UNUSED);
        }
        Some(piece)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn ready(pieces: &[u64]) -> ReadyMemory {
        let ready = ReadyMemory::default();
        ready.prepare_here(pieces.to_vec());
        ready
    }

    #[test]
    fn the_launcher_hears_once_of_what_all_parts_keep() {
        let told = Arc::new(Mutex::new(vec![]));
        let tell = Arc::clone(&told);
        let ready = ReadyMemory::new(move |message| tell.lock().unwrap().push(message));
        ready.keeps(0, [MIB, 10, 3 * MIB]);
        ready.keeps(0, [MIB - 7, 10, 3 * MIB - 1]);
        ready.keeps(1, [2 * MIB]);
        let due = |pieces: &[u64]| ToArbiter::Keeps { pieces: pieces.to_vec() };
        assert_eq!(*told.lock().unwrap(), [due(&[3 * MIB, MIB]), due(&[3 * MIB, 2 * MIB, MIB])]);
    }

    #[test]
    fn the_shortest_that_will_do_is_taken_once() {
        let ready = ready(&[4 * MIB, 2 * MIB, 2 * MIB]);
        let len = |wanted: u64| ready.take(wanted as usize).map(|piece| piece.len() as u64);
        assert_eq!(len(MIB - 1), None, "that would be a waste");
        assert_eq!(
            [len(2 * MIB), len(MIB), len(MIB), len(3 * MIB)],
            [Some(2 * MIB), Some(2 * MIB), None, Some(4 * MIB)]
        );
    }

    #[test]
    fn what_is_not_wanted_any_more_goes() {
        let ready = ready(&[2 * MIB, MIB]);
        ready.prepare_here(vec![2 * MIB, 3 * MIB]);
        assert_eq!(ready.take(MIB as usize).map(|piece| piece.len() as u64), Some(2 * MIB));
        assert_eq!(ready.take(MIB as usize), None);
        assert!(ready.take(3 * MIB as usize).is_some());
        ready.prepare_here(vec![2 * MIB]);
        ready.keeps(0, []);
        assert_eq!(ready.take(2 * MIB as usize), None);
    }

    #[test]
    fn what_cannot_be_had_is_done_without() {
        let ready = ready(&[u64::MAX, 1 << 62, MIB]);
        assert!(ready.take(MIB as usize).is_some());
    }

    #[test]
    fn a_thread_makes_it() {
        let ready = ReadyMemory::default();
        ready.prepare(vec![MIB, 2 * MIB]);
        ready.prepare(vec![3 * MIB, 2 * MIB]);
        while ready.state().is_preparing {
            std::thread::yield_now();
        }
        assert!(ready.take(3 * MIB as usize).is_some());
        ready.prepare(vec![1 << 40]);
        ready.stop();
        while ready.state().is_preparing {
            std::thread::yield_now();
        }
        assert_eq!(ready.take(1 << 40), None);
    }

    #[test]
    fn lengths_are_rounded_by_an_eighth_at_most() {
        for len in (1..5000).chain([LEAST, LEAST + 1, 9 * MIB + 5, (1 << 40) - 1]) {
            let to = rounded(len);
            assert!(to >= len && to - len <= len / 8 && rounded(to) == to, "{len} to {to}");
        }
        assert_eq!(rounded(100 * MIB), rounded(100 * MIB - 1000));
    }
}
