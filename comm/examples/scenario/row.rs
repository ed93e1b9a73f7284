//! Calls in which death may strike, one a row of the table of scenarios. Every call is checked: it ends with the right
//! result, or with an error.

use ft_comm::{CommError, Communicator, EAGER_BYTES_MAX, Group, Layout, Piece, Source, wait_all};

use super::call::{self, Call, KINDS};

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
    match row {
        "idle" => idle(comm),
        "send" | "ssend" | "rendezvous" | "bsend" | "isend" | "sendrecv" => to_the_right(comm, row, number),
        "any-source" | "any-source-posted" | "probe" | "mprobe" => from_anybody(comm, row, number),
        "exchange" | "plan" => planned(comm, row, number),
        "barrier" | "finalize" => comm.barrier().map(|()| true),
        "ibarrier" => Ok(comm.ibarrier()?.wait()?.is_empty()),
        "dup" | "split" | "create" => making(comm, row),
        "agree" => Ok(comm.agree(u64::from(comm.rank() != 0) | 4)?.flags & 4 == 4),
        _ => match row.strip_prefix('i') {
            Some(name) => {
                let call = collective(comm, name, number);
                call.start()?.wait().map(|got| call.is_right(got))
            }
            None => collective(comm, row, number).run(),
        },
    }
}

/// What a rank sends.
fn word(number: u64, rank: usize) -> [u64; 2] {
    [number, rank as u64]
}

/// The ranks on the left and on the right in a ring.
fn beside(comm: &Communicator) -> (usize, usize) {
    let (rank, size) = (comm.rank(), comm.size());
    ((rank + size - 1) % size, (rank + 1) % size)
}

/// Nobody calls anything for a while, but for a look at the links.
fn idle(comm: &Communicator) -> Result<bool, CommError> {
    for _ in 0..10 {
        comm.iprobe(Source::Any, 99)?;
    }
    comm.barrier()?;
    Ok(true)
}

fn to_the_right(comm: &Communicator, row: &str, number: u64) -> Result<bool, CommError> {
    let (mine, (left, right)) = (word(number, comm.rank()), beside(comm));
    let mut got = [0; 2];
    if row == "sendrecv" {
        comm.sendrecv(&mine, right, &mut got, left, 1)?;
        return Ok(got == word(number, left));
    }
    let length = if row == "rendezvous" { LONG } else { 2 };
    let mut out = vec![7; length];
    out[..2].copy_from_slice(&mine);
    let receive = comm.irecv(vec![0; length], left, 1)?;
    let mut sends = vec![];
    match row {
        "ssend" => drop(comm.issend(out, right, 1)?.wait()?),
        "bsend" => comm.bsend(&out, right, 1)?,
        "isend" => {
            for _ in 0..3 {
                sends.push(comm.isend(out.clone(), right, 1)?);
            }
        }
        _ => comm.send(&out, right, 1)?,
    }
    got.copy_from_slice(&receive.wait()?.0[..2]);
    for _ in 1..sends.len() {
        comm.recv(&mut [0u64; 2], left, 1)?;
    }
    wait_all(sends)?;
    Ok(got == word(number, left))
}

fn planned(comm: &Communicator, row: &str, number: u64) -> Result<bool, CommError> {
    let (mine, (left, right)) = (word(number, comm.rank()), beside(comm));
    let piece = |peer| Piece { peer, tag: 4, layout: Layout::strided(0, 2, 1, 1).expect("it is small") };
    let plan = comm.plan::<u64>(&[piece(right)], &[piece(left)])?;
    let mut got = vec![0; 2];
    if row == "exchange" {
        plan.run(&mine, &mut got)?;
    } else {
        got = plan.start(mine.to_vec(), got)?.wait()?.1;
    }
    Ok(got == word(number, left))
}

/// A new communicator, whose messages must reach whoever is in it.
fn making(comm: &Communicator, row: &str) -> Result<bool, CommError> {
    let made = match row {
        "dup" => Some(comm.dup()?),
        "split" => comm.split(Some((comm.rank() % 2) as u32), 0)?,
        _ => {
            let half = comm.group().ranks()[..comm.size().div_ceil(2)].to_vec();
            comm.create(&Group::new(half).expect("ranks differ"))?
        }
    };
    let Some(made) = made else { return Ok(true) };
    let mut sum = [1u64];
    made.allreduce(&mut sum, ft_comm::Op::Sum)?;
    Ok(sum[0] == made.size() as u64)
}

fn collective<'a>(comm: &'a Communicator, name: &str, number: u64) -> Call<'a> {
    let of = |kind: &&call::Kind| format!("{kind:?}").to_lowercase() == name;
    let kind = *KINDS.iter().find(of).unwrap_or_else(|| panic!("there is no row '{name}'"));
    Call::of_numbers(comm, kind, number, [3, 900][number as usize % 2])
}

/// All say something to one, who takes it as it comes.
fn from_anybody(comm: &Communicator, row: &str, number: u64) -> Result<bool, CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    let root = number as usize % size;
    if rank != root {
        comm.send(&word(number, rank), root, 2)?;
        return Ok(true);
    }
    let posted = match row {
        "any-source-posted" => (1..size).map(|_| comm.irecv(vec![0u64; 2], Source::Any, 2)).collect(),
        _ => Ok(vec![]),
    };
    let mut came: Vec<([u64; 2], usize)> =
        wait_all(posted?)?.into_iter().map(|(got, status)| ([got[0], got[1]], status.source)).collect();
    while came.len() + 1 < size {
        let mut got = [0; 2];
        let status = match row {
            "probe" => {
                let status = comm.probe(Source::Any, 2)?;
                comm.recv(&mut got, status.source, 2)?
            }
            "mprobe" => comm.mprobe(Source::Any, 2)?.recv(&mut got)?,
            _ => comm.recv(&mut got, Source::Any, 2)?,
        };
        came.push((got, status.source));
    }
    let all_right = came.iter().all(|(got, source)| *got == word(number, *source));
    let mut heard: Vec<usize> = came.into_iter().map(|(_, source)| source).chain([rank]).collect();
    heard.sort_unstable();
    Ok(all_right && heard.into_iter().eq(0..size))
}
