//! gzip, recognized by its first two bytes. As `gunzip`, the reader accepts several members one
//! after the other, and zeros after the last one: tapes and archives fill their last block with
//! them.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 64 << 10;
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Most zeros after a member. Blocks of tapes have at most 16 MiB, while a sparse file could have
/// any number.
pub(crate) const PADDING_MAX: u64 = 16 << 20;

/// The bytes of a source after decompression.
pub struct Unpacked<'a> {
    /// These bytes.
    pub bytes: Box<dyn BufRead + 'a>,
    /// Whether the source is compressed.
    pub gzip: bool,
}

/// Recognizes gzip by the first two bytes, and decompresses it.
///
/// # Errors
/// Those of the source. Damage in the compressed data is an error of a later read.
pub fn unpack<'a>(mut source: impl Read + 'a) -> io::Result<Unpacked<'a>> {
    let mut start = Vec::new();
    source.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    let gzip = start == MAGIC;
    let whole = BufReader::with_capacity(BUFFER_BYTES, Cursor::new(start).chain(source));
    let bytes: Box<dyn BufRead + 'a> = match gzip {
        true => Box::new(BufReader::with_capacity(BUFFER_BYTES, Members::new(whole))),
        false => Box::new(whole),
    };
    Ok(Unpacked { bytes, gzip })
}

/// The members of a gzip file, one after the other.
struct Members<R> {
    /// The current one; none after the end of the last.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(source: R) -> Self {
        Self { member: Some(GzDecoder::new(source)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 {
                return Ok(read);
            }
            self.member =
                self.member.take().map(GzDecoder::into_inner).map(next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// The member that begins after the end of another one and zeros, if there is one.
fn next_member<R: BufRead>(mut source: R) -> io::Result<Option<GzDecoder<R>>> {
    let mut padding = 0;
    loop {
        let ahead = source.fill_buf()?;
        let zeros = ahead.iter().take_while(|byte| **byte == 0).count();
        let next = ahead.get(zeros).copied();
        let is_end = ahead.is_empty();
        source.consume(zeros);
        padding += zeros as u64;
        let wrong = |text: String| Err(io::Error::new(ErrorKind::InvalidData, text));
        match next {
            _ if padding > PADDING_MAX => {
                return wrong(format!("more than {PADDING_MAX} zeros follow the end of the gzip data"));
            }
            Some(byte) if byte == MAGIC[0] => return Ok(Some(GzDecoder::new(source))),
            Some(_) => return wrong("bytes that are not gzip follow the end of the gzip data".into()),
            None if is_end => return Ok(None),
            None => {}
        }
    }
}
