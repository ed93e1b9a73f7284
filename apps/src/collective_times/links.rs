//! What a message costs between two ranks, and a reduction in memory.

use std::hint::black_box;

use ft_comm::collective::Order;
use ft_comm::time::Clock;
use ft_comm::{CommError, Communicator, Op, Operation as _};
use serde::{Deserialize, Serialize};

use ft_tools::collectives::{LONG_BYTES, SHORT_BYTES};

/// Short messages in a row.
const BURST: usize = 64;
/// Batches; the middle one counts.
const BATCHES: usize = 9;

/// Seconds, each the middle of some batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Links {
    /// Half a round trip of a short message.
    #[serde(with = "crate::number")]
    short_s: f64,
    /// The same of a long one.
    #[serde(with = "crate::number")]
    long_s: f64,
    /// Of each of many short messages one after the other, to the answer to the last.
    #[serde(with = "crate::number")]
    each_s: f64,
    /// Per byte of one long buffer that is added to another.
    #[serde(with = "crate::number")]
    reduce_byte_s: f64,
}

impl Links {
    /// Measures in about `4 time_s`; on rank 0 of at least two.
    pub(super) fn measure(comm: &Communicator, clock: Clock, time_s: f64) -> Result<Option<Self>, CommError> {
        let peer = 1usize.wrapping_sub(comm.rank());
        if comm.size() < 2 || comm.rank() > 1 {
            comm.barrier()?;
            return Ok(None);
        }
        let mut long = vec![1u64; LONG_BYTES / 8];
        let mut short = vec![1u64; SHORT_BYTES / 8];
        let is_first = comm.rank() == 0;
        let round_trip = |buf: &mut [u64]| {
            if is_first {
                comm.send(buf, peer, 0)?;
                comm.recv(buf, peer, 0).map(drop)
            } else {
                comm.recv(buf, peer, 0)?;
                comm.send(buf, peer, 0)
            }
        };
        let short_s = middle(comm, clock, time_s, &mut || round_trip(&mut short))? / 2.0;
        let long_s = middle(comm, clock, time_s, &mut || round_trip(&mut long))? / 2.0;
        let mut word = [1u64; SHORT_BYTES / 8];
        let burst_s = middle(comm, clock, time_s, &mut || {
            for _ in 0..BURST {
                if is_first {
                    comm.send(&word, peer, 0)?;
                } else {
                    comm.recv(&mut word, peer, 0)?;
                }
            }
            round_trip(&mut word)
        })?;
        let other = long.clone();
        let reduce_s = middle(comm, clock, time_s, &mut || {
            if is_first {
                Op::Sum.combine(black_box(&mut long[..]), black_box(&other[..]), Order::MineFirst);
            }
            Ok(())
        })?;
        comm.barrier()?;
        let each_s = (burst_s - 2.0 * short_s).max(0.0) / BURST as f64;
        Ok(is_first.then_some(Self { short_s, long_s, each_s, reduce_byte_s: reduce_s / LONG_BYTES as f64 }))
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let Self { short_s, long_s, each_s, reduce_byte_s } = self;
        vec![
            format!(
                "{SHORT_BYTES} bytes there: {:.2} us, in a row {:.2} us each",
                short_s * 1e6,
                each_s * 1e6
            ),
            format!("{LONG_BYTES} bytes there: {:.1} us", long_s * 1e6),
            format!("added in memory: {:.2} GB/s", 1e-9 / reduce_byte_s),
        ]
    }
}

/// Seconds of one `act` of rank 0, in the middle of some batches that take about `time_s` together.
fn middle(
    comm: &Communicator,
    clock: Clock,
    time_s: f64,
    act: &mut dyn FnMut() -> Result<(), CommError>,
) -> Result<f64, CommError> {
    let mut batch = |count: u64| {
        let start = clock.now();
        for _ in 0..count {
            act()?;
        }
        Ok::<f64, CommError>(clock.now().since(start).as_secs_f64() / count as f64)
    };
    // Rank 0 says how many.
    let once_s = batch(1)?.min(batch(4)?);
    let mut count = [((time_s / BATCHES as f64 / once_s) as u64).clamp(1, 1 << 20)];
    if comm.rank() == 0 {
        comm.send(&count, 1, 1)?;
    } else {
        comm.recv(&mut count, 0, 1)?;
    }
    let mut all = (0..BATCHES).map(|_| batch(count[0])).collect::<Result<Vec<f64>, _>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[BATCHES / 2])
}
