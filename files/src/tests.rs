use std::fs;
use std::io::{Cursor, Read, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::tempdir;

use super::gzip::PADDING_MAX;
use super::*;

#[test]
fn open_of_anything_but_a_regular_file_returns_its_kind() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    let _socket = UnixListener::bind(path("socket")).unwrap();
    symlink("/dev/zero", path("device")).unwrap();
    symlink(path("fifo"), path("link to the fifo")).unwrap();
    for (name, found) in [
        ("fifo", "a pipe"),
        ("link to the fifo", "a pipe"),
        ("socket", "a socket"),
        ("device", "a device"),
        ("", "a directory"),
    ] {
        let expected = format!("it is {found}, and a regular file is expected");
        assert_eq!(open(path(name)).unwrap_err().to_string(), expected, "{name}");
        assert_eq!(read(path(name), 10).unwrap_err().to_string(), expected, "{name}");
        assert_eq!(io::Error::from(open(path(name)).unwrap_err()).to_string(), expected);
    }
    let missing = io::Error::from(open(path("missing")).unwrap_err());
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn read_of_a_file_beyond_the_limit_is_refused_whatever_its_length_says() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "0123456789").unwrap();
    symlink(&path, dir.path().join("link")).unwrap();
    assert_eq!(read(dir.path().join("link"), 10).unwrap(), b"0123456789");
    assert_eq!(read(&path, 9).unwrap_err().to_string(), "it has more than 9 bytes");
    File::options().write(true).open(&path).unwrap().set_len(8 << 40).unwrap();
    assert_eq!(read(&path, 4096).unwrap_err().to_string(), "it has more than 4096 bytes");
    assert!(!read("/proc/self/status", 1 << 20).unwrap().is_empty(), "its length is said to be 0");
}

#[test]
fn create_over_a_link_or_a_fifo_leaves_what_it_names() {
    let dir = tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("other"), "untouched").unwrap();
    symlink(path("other"), path("link")).unwrap();
    fs::hard_link(path("other"), path("hard link")).unwrap();
    mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    for name in ["link", "hard link", "fifo", "new"] {
        create(path(name)).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(path(name)).unwrap(), b"new");
    }
    assert_eq!(fs::read(path("other")).unwrap(), b"untouched");
    create(dir.path()).expect_err("a directory");
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::default());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

/// Gives one byte at a time, as a slow source may.
struct Slow<R>(R);

impl<R: Read> Read for Slow<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let one = into.len().min(1);
        self.0.read(&mut into[..one])
    }
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let all = |mut source: Unpacked<'_>| {
        let mut bytes = Vec::new();
        source.bytes.read_to_end(&mut bytes).map(|_| bytes).map_err(|error| error.to_string())
    };
    let slowly = all(unpack(Slow(Cursor::new(bytes))).unwrap());
    let found = all(unpack(bytes).unwrap());
    assert_eq!(found, slowly);
    found
}

#[test]
fn zeros_after_gzip_members_are_skipped() {
    let (one, two) = (member(b"one "), member(b"two"));
    let zeros = [0; 512];
    for (parts, expected) in [
        (&[&one[..]][..], "one "),
        (&[&one, &two], "one two"),
        (&[&one, &zeros], "one "),
        (&[&one, &[0]], "one "),
        (&[&one, &two, &zeros], "one two"),
        (&[&one, &zeros, &two, &zeros], "one two"),
        (&[&member(b""), &two], "two"),
        (&[&member(b""), &zeros], ""),
    ] {
        assert_eq!(unpacked(&parts.concat()), Ok(expected.to_owned().into_bytes()));
    }
    let most = vec![0; PADDING_MAX as usize];
    assert_eq!(unpack(&[&one[..], &most].concat()[..]).unwrap().bytes.read_to_end(&mut vec![]).unwrap(), 4);
}

#[test]
fn other_bytes_after_gzip_members_are_refused() {
    let one = member(b"one ");
    let foreign = Err("bytes that are not gzip follow the end of the gzip data".to_owned());
    assert_eq!(unpacked(&[&one[..], b"more"].concat()), foreign);
    assert_eq!(unpacked(&[&one[..], &[0; 300], b"more"].concat()), foreign);
    let endless = one.chain(io::repeat(0));
    let error = unpack(endless).unwrap().bytes.read_to_end(&mut vec![]).unwrap_err().to_string();
    assert_eq!(error, "more than 16777216 zeros follow the end of the gzip data");
    for cut in 3..one.len() {
        unpacked(&one[..cut]).expect_err("cut off");
        unpacked(&[&one[..], &one[..cut]].concat()).expect_err("the second member is cut off");
    }
    unpacked(&[&one[..], &one[..1]].concat()).expect_err("the second member has one byte");
}

#[test]
fn plain_bytes_pass_unchanged() {
    for bytes in [&b""[..], b"\x1f", b"plain", b"\x8b\x1f", &[0; 100]] {
        assert_eq!(unpacked(bytes).as_deref(), Ok(bytes));
        assert!(!unpack(bytes).unwrap().gzip);
    }
    assert!(unpack(&member(b"")[..]).unwrap().gzip);
}
