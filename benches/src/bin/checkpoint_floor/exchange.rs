//! What each rank does in a checkpoint.

use std::io;
use std::iter::once;
use std::ops::Range;

use ft_benches::checkpoints::Scheme;
use ft_benches::sockets::Mesh;
use ft_encoders::{Code, ReedSolomon, Xor};

use super::Options;
use super::file::OwnFile;
use super::state::fill;

/// Chunks begin with a line of the cache.
const LINE: usize = 64;

/// One rank and its memory.
pub(super) struct Member {
    me: usize,
    /// Ranks with a state.
    ranks: usize,
    /// Length of a state.
    bytes: usize,
    segment: usize,
    live: Vec<u8>,
    /// The copy, filled up with zeros to whole chunks.
    copy: Vec<u8>,
    keeps: Keeps,
}

/// Where the state goes.
enum Keeps {
    Copy,
    File(OwnFile),
    Coded(Coded),
}

/// Redundant blocks in the memory of others.
struct Coded {
    code: Box<dyn Code>,
    is_dedicated: bool,
    /// Bytes of a chunk and of a redundant block.
    chunk: usize,
    /// Those that are held here.
    blocks: Vec<Vec<u8>>,
    scratch: Vec<Vec<u8>>,
}

impl Member {
    pub(super) fn new(options: &Options, me: usize) -> io::Result<Self> {
        let Options { scheme, ranks, mib, segment_kib, ref folder, .. } = *options;
        let (bytes, segment) = (mib << 20, segment_kib << 10);
        let has_state = me < ranks;
        let mut copied = bytes;
        let keeps = match (scheme.code(ranks), folder) {
            (None, Some(folder)) if scheme == Scheme::File => Keeps::File(OwnFile::new(folder, me)),
            (None, _) => Keeps::Copy,
            (Some((data, redundant)), _) => {
                let is_dedicated = scheme.parity_ranks() > 0;
                let chunk = if is_dedicated { bytes } else { bytes.div_ceil(data).next_multiple_of(LINE) };
                copied = if is_dedicated { bytes } else { data * chunk };
                let (held, pieces, piece) = match is_dedicated {
                    false => (redundant, data + redundant - 1, segment),
                    true => (usize::from(!has_state), 2, redundant * segment),
                };
                Keeps::Coded(Coded {
                    code: code(data, redundant).map_err(io::Error::other)?,
                    is_dedicated,
                    chunk,
                    blocks: vec![vec![0; chunk]; held],
                    scratch: vec![vec![0; piece]; pieces],
                })
            }
        };
        let (live, copy) = if has_state { (vec![0; bytes], vec![0; copied]) } else { (vec![], vec![]) };
        Ok(Self { me, ranks, bytes, segment, live, copy, keeps })
    }

    /// The state that checkpoint `number` is taken of.
    pub(super) fn change(&mut self, number: usize) {
        fill(&mut self.live, self.me, number, 0, self.bytes);
    }

    /// Takes a checkpoint.
    pub(super) fn protect(&mut self, mesh: &Mesh) -> io::Result<()> {
        if let Keeps::File(file) = &self.keeps {
            return file.write(&self.live);
        }
        self.copy[..self.live.len()].copy_from_slice(&self.live);
        match &mut self.keeps {
            Keeps::Coded(coded) if coded.is_dedicated => coded.chain(mesh, &self.copy, self.segment),
            Keeps::Coded(coded) => coded.rotate(mesh, &self.copy, self.segment),
            _ => Ok(()),
        }
    }

    /// Holds all that is kept here against checkpoint `number`.
    pub(super) fn verify(&self, number: usize) -> io::Result<()> {
        let is_right = match &self.keeps {
            Keeps::File(file) => file.holds(&self.live)?,
            Keeps::Copy => self.copy == self.live,
            Keeps::Coded(coded) => {
                self.copy[..self.live.len()] == self.live
                    && (0..coded.blocks.len()).all(|block| self.is_right(coded, block, number))
            }
        };
        match is_right {
            true => Ok(()),
            false => Err(io::Error::other(format!("rank {} holds something else than it should", self.me))),
        }
    }

    /// Whether the block `held` here is that of the states it belongs to.
    fn is_right(&self, coded: &Coded, held: usize, number: usize) -> bool {
        let (data, redundant) = (coded.code.data(), coded.code.redundant());
        let block = if coded.is_dedicated { self.me - self.ranks } else { held };
        let mut shards = vec![vec![0; self.segment]; data];
        let mut made = vec![vec![0; self.segment]; redundant];
        segments(coded.chunk, self.segment).all(|at| {
            for (index, shard) in shards.iter_mut().enumerate() {
                let (rank, start) = match coded.is_dedicated {
                    true => (index, 0),
                    // The stripe whose first block is held at `me - held`.
                    false => {
                        ((self.me + 2 * self.ranks - held - (index + 1)) % self.ranks, index * coded.chunk)
                    }
                };
                fill(&mut shard[..at.len()], rank, number, start + at.start, self.bytes);
            }
            let shards: Vec<&[u8]> = shards.iter().map(|shard| &shard[..at.len()]).collect();
            let mut blocks: Vec<&mut [u8]> = made.iter_mut().map(|block| &mut block[..at.len()]).collect();
            coded.code.encode(&shards, &mut blocks).is_ok() && blocks[block] == &coded.blocks[held][at]
        })
    }
}

impl Coded {
    /// Chunk `d - 1` goes to rank + `d`, which holds the first block of its stripe; the next ones hold the others.
    fn rotate(&mut self, mesh: &Mesh, copy: &[u8], segment: usize) -> io::Result<()> {
        let Self { code, chunk, blocks, scratch, .. } = self;
        let data = code.data();
        let around = |distance: usize| {
            ((mesh.rank + distance) % mesh.size, (mesh.rank + mesh.size - distance) % mesh.size)
        };
        let (first, others) = blocks.split_first_mut().expect("every rank holds a block");
        if data == 1 {
            let (to, from) = around(1);
            return mesh.exchange(to, copy, from, first);
        }
        let (shards, sums) = scratch.split_at_mut(data);
        for at in segments(*chunk, segment) {
            for (index, shard) in shards.iter_mut().enumerate() {
                let (to, from) = around(index + 1);
                let out = &copy[index * *chunk..][at.clone()];
                mesh.exchange(to, out, from, &mut shard[..at.len()])?;
            }
            let shards: Vec<&[u8]> = shards.iter().map(|shard| &shard[..at.len()]).collect();
            let sums = sums.iter_mut().map(|sum| &mut sum[..at.len()]);
            let mut made: Vec<&mut [u8]> = once(&mut first[at.clone()]).chain(sums).collect();
            code.encode(&shards, &mut made).map_err(io::Error::other)?;
            for (index, (sum, block)) in made[1..].iter().zip(&mut *others).enumerate() {
                let (to, from) = around(index + 1);
                mesh.exchange(to, sum, from, &mut block[at.clone()])?;
            }
        }
        Ok(())
    }

    /// Sums of a segment go from rank to rank; the last one sends each to the rank that keeps it.
    fn chain(&mut self, mesh: &Mesh, copy: &[u8], segment: usize) -> io::Result<()> {
        let Self { code, chunk, blocks, scratch, .. } = self;
        let (me, data, redundant) = (mesh.rank, code.data(), code.redundant());
        if let Some(block) = blocks.first_mut() {
            return mesh.get(data - 1, block);
        }
        if me == 0 && redundant == 1 {
            return mesh.put(1, copy);
        }
        let [leaving, arriving] = &mut scratch[..] else { unreachable!("two pieces") };
        let (before, receivers) = (me.saturating_sub(1), if me == data - 1 { redundant } else { 1 });
        let mut ready = 0;
        // The last segment leaves after all have arrived.
        for at in segments(*chunk, segment).chain(once(0..0)) {
            let length = redundant * at.len();
            for receiver in 0..receivers {
                let part = ready / receivers;
                let out = &leaving[receiver * part..(receiver + 1) * part];
                let arrives = if me > 0 && receiver == 0 { length } else { 0 };
                mesh.exchange(me + 1 + receiver, out, before, &mut arriving[..arrives])?;
            }
            if me == 0 {
                arriving[..length].fill(0);
            }
            if length > 0 {
                let mut sums: Vec<&mut [u8]> = arriving[..length].chunks_exact_mut(at.len()).collect();
                code.update(me, &[], &copy[at], &mut sums).map_err(io::Error::other)?;
            }
            std::mem::swap(leaving, arriving);
            ready = length;
        }
        Ok(())
    }
}

fn code(data: usize, redundant: usize) -> Result<Box<dyn Code>, ft_encoders::CodeError> {
    Ok(match redundant {
        1 => Box::new(Xor::new(data)?),
        _ => Box::new(ReedSolomon::new(data, redundant)?),
    })
}

/// A block cut into segments, the last of which may be shorter.
fn segments(bytes: usize, segment: usize) -> impl Iterator<Item = Range<usize>> {
    (0..bytes).step_by(segment).map(move |start| start..(start + segment).min(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cover_a_block() {
        assert_eq!(segments(10, 4).collect::<Vec<_>>(), [0..4, 4..8, 8..10]);
        assert_eq!(segments(8, 4).collect::<Vec<_>>(), [0..4, 4..8]);
        assert_eq!(segments(3, 4).map(|at| at.len()).collect::<Vec<_>>(), [3]);
    }
}
