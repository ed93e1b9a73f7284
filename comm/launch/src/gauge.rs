//! How busy this host is, as its kernel counts that: processes that want to run, on average over the last minute.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ft_proto::wire::agent::Busy;

const FILE: &str = "/proc/loadavg";
/// More than there is in it.
const BYTES_MAX: usize = 128;

/// See the module. The file is opened once, so that looking costs a call.
#[derive(Debug)]
pub(super) struct Gauge {
    file: File,
    cores: u32,
}

impl Gauge {
    /// None where the kernel does not say.
    pub(super) fn open() -> Option<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        Some(Self { file: File::open(FILE).ok()?, cores })
    }

    /// What the kernel says now.
    pub(super) fn read(&self) -> Option<Busy> {
        let mut bytes = [0; BYTES_MAX];
        let count = self.file.read_at(&mut bytes, 0).ok()?;
        Some(Busy { running: running(&bytes[..count])?, cores: self.cores })
    }
}

/// Thousandths of processes: the first of the numbers.
fn running(text: &[u8]) -> Option<u32> {
    let word = text.split(|byte| *byte == b' ').next()?;
    let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_that_of_the_last_minute() {
        assert_eq!(running(b"1.25 0.50 0.07 3/412 9377\n"), Some(1250));
        assert_eq!(running(b"0.00 "), Some(0));
        for text in ["", "\n", "-1 0", "nan 1", "many 1", "inf"] {
            assert_eq!(running(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn this_host_says_how_busy_it_is_again_and_again() {
        let gauge = Gauge::open().unwrap();
        assert!((0..3).all(|_| gauge.read().is_some_and(|busy| busy.cores > 0)));
    }
}
