//! Calls in which death may strike, one a row of the table of scenarios. Every call is checked: it ends with the right
//! result, or with an error.

use ft_comm::{CommError, Communicator, EAGER_BYTES_MAX, Group, Layout, Piece, Source, wait_all};

use super::operation::{self, Call, KINDS};

/// The rows that are no collectives of [`KINDS`]; these follow, as they are and without waiting.
const OTHERS: [&str; 20] = [
    "idle",
    "send",
    "isend",
    "ssend",
    "bsend",
    "rendezvous",
    "sendrecv",
    "any-source",
    "any-source-posted",
    "probe",
    "mprobe",
    "exchange",
    "plan",
    "barrier",
    "ibarrier",
    "dup",
    "split",
    "create",
    "agree",
    "finalize",
];

/// The names of all rows.
pub(crate) fn rows() -> Vec<String> {
    let kinds = KINDS.iter().map(|kind| format!("{kind:?}").to_lowercase());
    let started = kinds.clone().map(|kind| format!("i{kind}"));
    OTHERS.iter().map(ToString::to_string).chain(kinds).chain(started).collect()
}

/// Elements of a message that is announced before it is sent.
const LONG: usize = EAGER_BYTES_MAX / 8 + 3;

/// Does what the row says among the ranks of `comm`; whether the result is right.
pub(crate) fn call(comm: &Communicator, row: &str, number: u64) -> Result<bool, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let word = |of: usize| [number, of as u64];
    let mut got = [0; 2];
    match row {
        "idle" => {
            // Nobody calls anything for a while, but for a look at the links.
            for _ in 0..10 {
                comm.iprobe(Source::Any, 99)?;
            }
            comm.barrier()?;
            return Ok(true);
        }
        // Half of the ranks send first, the others receive first.
        "send" | "ssend" | "rendezvous" | "bsend" => {
            let length = if row == "rendezvous" { LONG } else { 2 };
            let mut out = vec![7; length];
            out[..2].copy_from_slice(&word(rank));
            let mut buf = vec![0; length];
            let receive = comm.irecv(vec![0; length], left, 1)?;
            match row {
                "ssend" => drop(comm.issend(out, right, 1)?.wait()?),
                "bsend" => comm.bsend(&out, right, 1)?,
                _ => comm.send(&out, right, 1)?,
            }
            buf.copy_from_slice(&receive.wait()?.0);
            got.copy_from_slice(&buf[..2]);
        }
        "isend" => {
            let receive = comm.irecv(vec![0; 2], left, 1)?;
            let sends = (0..3).map(|_| comm.isend(word(rank).to_vec(), right, 1));
            let sends = sends.collect::<Result<Vec<_>, _>>()?;
            got.copy_from_slice(&receive.wait()?.0);
            for _ in 1..3 {
                comm.recv(&mut [0u64; 2], left, 1)?;
            }
            wait_all(sends)?;
        }
        "sendrecv" => drop(comm.sendrecv(&word(rank), right, &mut got, left, 1)?),
        // All say something to one, who takes it as it comes.
        "any-source" | "any-source-posted" | "probe" | "mprobe" => {
            return from_anybody(comm, row, number);
        }
        "exchange" | "plan" => {
            let piece =
                |peer| Piece { peer, tag: 4, layout: Layout::strided(0, 2, 1, 1).expect("it is small") };
            let plan = comm.plan::<u64>(&[piece(right)], &[piece(left)])?;
            if row == "exchange" {
                plan.run(&word(rank), &mut got)?;
            } else {
                got.copy_from_slice(&plan.start(word(rank).to_vec(), vec![0; 2])?.wait()?.1);
            }
        }
        "barrier" | "finalize" => return comm.barrier().map(|()| true),
        "ibarrier" => return Ok(comm.ibarrier()?.wait()?.is_empty()),
        "dup" | "split" | "create" => {
            let made = match row {
                "dup" => Some(comm.dup()?),
                "split" => comm.split(Some((rank % 2) as u32), 0)?,
                _ => {
                    let all = comm.group();
                    comm.create(&Group::new(all.ranks()[..size.div_ceil(2)].to_vec()).expect("ranks differ"))?
                }
            };
            // Messages of the new one must reach whoever is in it.
            let Some(made) = made else { return Ok(true) };
            let mut sum = [1u64];
            made.allreduce(&mut sum, ft_comm::Op::Sum)?;
            return Ok(sum[0] == made.size() as u64);
        }
        "agree" => return Ok(comm.agree(u64::from(rank != 0) | 4)?.flags & 4 == 4),
        _ => {
            let (waits, name) = match row.strip_prefix('i') {
                Some(name) => (false, name),
                None => (true, row),
            };
            let of = |kind: &&operation::Kind| format!("{kind:?}").to_lowercase() == name;
            let kind = *KINDS.iter().find(of).unwrap_or_else(|| panic!("there is no row '{row}'"));
            let call = Call { comm, kind, number, len: [3, 900][number as usize % 2] };
            return match waits {
                true => call.run(),
                false => call.start()?.wait().map(|got| call.is_right(got)),
            };
        }
    }
    Ok(got == word(left))
}

fn from_anybody(comm: &Communicator, row: &str, number: u64) -> Result<bool, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let root = number as usize % size;
    let word = |of: usize| [number, of as u64];
    if rank != root {
        comm.send(&word(rank), root, 2)?;
        return Ok(true);
    }
    let posted = match row {
        "any-source-posted" => (1..size).map(|_| comm.irecv(vec![0u64; 2], Source::Any, 2)).collect(),
        _ => Ok(vec![]),
    };
    let mut heard = vec![rank];
    for (got, status) in wait_all(posted?)? {
        if got != word(status.source) {
            return Ok(false);
        }
        heard.push(status.source);
    }
    while heard.len() < size {
        let mut got = [0; 2];
        let status = match row {
            "probe" => {
                let status = comm.probe(Source::Any, 2)?;
                comm.recv(&mut got, status.source, 2)?
            }
            "mprobe" => comm.mprobe(Source::Any, 2)?.recv(&mut got)?,
            _ => comm.recv(&mut got, Source::Any, 2)?,
        };
        if got != word(status.source) {
            return Ok(false);
        }
        heard.push(status.source);
    }
    heard.sort_unstable();
    Ok(heard.into_iter().eq(0..size))
}
