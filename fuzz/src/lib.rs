//! What the targets share: the memory that a call takes, files that hold an input, and shot gathers to write.

use std::path::PathBuf;

use arbitrary::Arbitrary;
use ft_seismic::Node;
use ft_seismic::gather::{Gather, OwnedGather};
use ft_seismic::geometry::Shot;
use peak_alloc::PeakAlloc;
use tempfile::TempDir;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What a reader may take however short its input is: buffers of files and of decompression, some entries ahead.
pub const BUFFERS: usize = 4 << 20;

/// Does `call`, which must get by with so many bytes of memory more than there were.
pub fn within<T>(bytes: usize, call: impl FnOnce() -> T) -> T {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let value = call();
    let taken = HEAP.peak_usage().saturating_sub(before);
    assert!(taken <= bytes, "{taken} bytes of memory, {bytes} are enough");
    value
}

/// A file of this name and contents, until it is dropped.
pub struct Held {
    folder: TempDir,
    name: &'static str,
}

impl Held {
    pub fn new(name: &'static str, bytes: &[u8]) -> Self {
        let held = Self { folder: tempfile::tempdir().expect("a folder for the input"), name };
        std::fs::write(held.path(), bytes).expect("the input is written");
        held
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }
}

/// A gather to write: sources, receivers and samples as they come.
#[derive(Arbitrary, Debug)]
pub struct Recording {
    number: u32,
    source: (u16, u16),
    receivers: Vec<(u16, u16)>,
    samples: u8,
    interval_us: u16,
    quarter_metres: u8,
    values: Vec<f32>,
}

impl Recording {
    /// Hands the gather to `use_it`: its samples are the values that there are, again and again.
    pub fn with<T>(&self, use_it: impl FnOnce(&Gather<'_>) -> T) -> T {
        let node = |(ix, iz): (u16, u16)| Node { ix: ix.into(), iz: iz.into() };
        let receivers: Vec<Node> = self.receivers.iter().copied().map(node).collect();
        let count = receivers.len() * usize::from(self.samples);
        let traces: Vec<f32> = self.values.iter().copied().chain([0.5]).cycle().take(count).collect();
        let shot = Shot { number: self.number, source: node(self.source), receivers };
        use_it(&Gather {
            shot: &shot,
            spacing: f64::from(self.quarter_metres) / 4.0,
            interval_s: f64::from(self.interval_us) * 1e-6,
            samples: self.samples.into(),
            traces: &traces,
            delay_s: f64::from(self.interval_us) * 1e-5,
            facts: &[],
        })
    }
}

/// What was written is what was read: samples to the bit, positions to the millimeter.
pub fn same(written: &Gather<'_>, read: &OwnedGather) {
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
    assert_eq!(bits(&read.traces), bits(written.traces));
    assert_eq!((read.samples, read.headers.len()), (written.samples, written.shot.receivers.len()));
    let near = |index: usize, meters: f64| (index as f64 * written.spacing - meters).abs() <= 0.5e-3;
    for (header, receiver) in read.headers.iter().zip(&written.shot.receivers) {
        let Shot { number, source, .. } = written.shot;
        assert_eq!(header.shot, number.cast_signed());
        assert!(near(source.ix, header.source_x()) && near(source.iz, header.source_depth()));
        assert!(near(receiver.ix, header.receiver_x()) && near(receiver.iz, header.receiver_depth()));
    }
}

/// A gather has as many samples as its headers say.
pub fn consistent(gather: &OwnedGather) {
    assert_eq!(gather.traces.len(), gather.samples * gather.headers.len());
    assert!(gather.samples > 0 && !gather.headers.is_empty());
    let fits = |samples: u16| samples == 0 || usize::from(samples) == gather.samples;
    let is_open = gather.samples > usize::from(u16::MAX);
    assert!(is_open || gather.headers.iter().all(|header| fits(header.samples)));
}
