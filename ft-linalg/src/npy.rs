//! Vectors as files of NumPy.
//!
//! Source: NumPy Enhancement Proposal 1, version 1.0 of the format.

use std::path::Path;

use ft_comm::Communicator;

use crate::in_turn::{self, PIECE_BYTES};
use crate::{DistVector, LinalgError, error::agree};

/// The header is a multiple of this many bytes, magic included.
const ALIGNMENT: usize = 64;

/// Writes a vector as `.npy`: an array of one dimension, of 8-byte numbers, the lowest byte first. Collective.
///
/// # Errors
/// [`LinalgError::Write`] on every rank when rank 0 cannot write; [`LinalgError::Comm`].
pub fn write_vector(path: impl AsRef<Path>, x: &DistVector, comm: &Communicator) -> Result<(), LinalgError> {
    agree(x.part().require(comm), comm)?;
    let mut pieces = x.local().chunks(PIECE_BYTES / size_of::<f64>());
    let piece = || {
        pieces.next().unwrap_or_default().iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()
    };
    in_turn::write(path.as_ref(), &head("<f8", &[x.part().n() as u64]), piece, comm)
}

/// What stands before the elements of an array with these lengths, row after row; `element` is what NumPy calls them, such as `<f8`.
/// There are few enough lengths for the version of the format: some thousand.
pub fn head(element: &str, lengths: &[u64]) -> Vec<u8> {
    let shape: String = lengths.iter().map(|length| format!("{length}, ")).collect();
    // A tuple of one has a comma behind it, others have none.
    let shape = if lengths.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let text = format!("{{'descr': '{element}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and the length of the rest are 10 bytes; a line feed ends it.
    let len = (10 + text.len() + 1).next_multiple_of(ALIGNMENT) - 10;
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend((len as u16).to_le_bytes());
    head.extend(format!("{text:<width$}\n", width = len - 1).into_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partition;

    #[test]
    fn a_file_is_what_numpy_writes() {
        let path = std::env::temp_dir().join(format!("ft-linalg-{}.npy", std::process::id()));
        ft_sim::ranks(3, |comm| {
            let x = DistVector::from_fn(Partition::of(comm, 100), |row| row.0 as f64);
            write_vector(&path, &x, comm).unwrap();
        });
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), 128 + 800);
        assert!(bytes.starts_with(
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (100,), }"
        ));
        assert_eq!(bytes[127], b'\n');
        let (values, _) = bytes[128..].as_chunks();
        assert!(values.iter().enumerate().all(|(at, value)| f64::from_le_bytes(*value) == at as f64));
    }

    #[test]
    fn shapes_are_tuples_of_python() {
        for (lengths, shape) in
            [(&[][..], "()"), (&[7], "(7,)"), (&[2, 3], "(2, 3)"), (&[0, 3, 1], "(0, 3, 1)")]
        {
            let head = String::from_utf8_lossy(&head("|b1", lengths)).into_owned();
            assert!(head.contains(&format!("'|b1', 'fortran_order': False, 'shape': {shape}, }}")), "{head}");
        }
    }

    #[test]
    fn a_missing_folder_and_a_full_disk_are_errors_of_all() {
        ft_sim::ranks(2, |comm| {
            let x = DistVector::from_fn(Partition::of(comm, 10), |row| row.0 as f64);
            let error = write_vector("/nonexistent/x.npy", &x, comm).unwrap_err();
            assert!(error.to_string().starts_with("/nonexistent/x.npy: No such file"), "{error}");
            let error = write_vector("/dev/full", &x, comm).unwrap_err();
            assert!(error.to_string().starts_with("/dev/full: No space left"), "{error}");
        });
    }
}
