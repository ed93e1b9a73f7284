//! Records: what a link between hosts carries. Each is authenticated, in order, and secret unless that was not wanted.
//!
//! ```text
//! length (4 bytes, little endian)   text   tag (16 bytes)
//! ```
//!
//! The length counts text and tag, and is authenticated with them. Each direction has a key of its own, and the number of a
//! record is its nonce: one that is changed, left out, repeated or comes out of its turn does not open, and then the link is
//! of no use any more. (AES-GCM: NIST SP 800-38D; ChaCha20-Poly1305: RFC 8439; both by the crate `aws-lc-rs`.)

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// Most bytes of text in a record: they stay in the cache while they are sealed and sent, and a record is one segment of
/// TCP on the loopback (65,463 bytes at least), not one and a small one.
pub(super) const TEXT_MAX: usize = 127 << 9;
/// Bytes before the text.
pub(super) const HEAD_BYTES: usize = 4;
/// Bytes behind it.
const TAG_BYTES: usize = 16;
/// Bytes of a record without its text.
pub(super) const FRAME_BYTES: usize = HEAD_BYTES + TAG_BYTES;

/// A record does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("somebody between the hosts changes what is sent: a record does not open")]
pub(super) struct Broken;

impl From<Broken> for std::io::Error {
    fn from(broken: Broken) -> Self {
        Self::other(broken)
    }
}

/// How records are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suite {
    /// Secret, by AES-256-GCM: the fastest where the processor has instructions for it.
    Aes,
    /// Secret, by ChaCha20-Poly1305.
    ChaCha,
    /// To be read by everybody, and authenticated by Poly1305 under keys of ChaCha20.
    Open,
}

impl Suite {
    /// All, the best first; the place of each is its number on the wire.
    const ALL: [Self; 3] = [Self::Aes, Self::ChaCha, Self::Open];

    /// Those that this process offers, as bits.
    pub(super) fn offered(secret: bool) -> u8 {
        let offers = |suite: Self| match suite {
            Self::Aes => secret && has_aes(),
            Self::ChaCha => secret,
            Self::Open => !secret,
        };
        (0..).zip(Self::ALL).filter(|(_, suite)| offers(*suite)).map(|(at, _)| 1 << at).sum()
    }

    /// The best of those that both sides offer.
    pub(super) fn best(ours: u8, theirs: u8) -> Option<Self> {
        Self::ALL.get((ours & theirs).trailing_zeros() as usize).copied()
    }
}

/// Whether the processor has instructions for AES-GCM; without them it is slow.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// How much text is in the record at the front of `bytes`. None if the record has not all come yet.
///
/// # Errors
/// There is no record of that length.
pub(super) fn text_length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let text = (u32::from_le_bytes(*head) as usize).checked_sub(TAG_BYTES);
    let text = text.filter(|text| *text <= TEXT_MAX).ok_or(Broken)?;
    Ok((bytes.len() >= FRAME_BYTES + text).then_some(text))
}

/// One direction of a link, at one of its ends.
#[derive(Debug)]
pub(super) struct Half {
    key: LessSafeKey,
    suite: Suite,
    /// Number of the next record.
    next: u64,
}

impl Half {
    pub(super) fn new(suite: Suite, key: &[u8; 32]) -> Self {
        let algorithm = if suite == Suite::Aes { &AES_256_GCM } else { &CHACHA20_POLY1305 };
        let key = UnboundKey::new(algorithm, key).expect("both algorithms have keys of 32 bytes");
        Self { key: LessSafeKey::new(key), suite, next: 0 }
    }

    /// A link that sends 64 records a nanosecond lasts for nine years before numbers are used up; then it is of no use.
    fn nonce(&mut self) -> Result<Nonce, Broken> {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.next.to_le_bytes());
        self.next = self.next.checked_add(1).ok_or(Broken)?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    /// Writes the record of `text` to the front of `record`; how long it is.
    pub(super) fn seal(&mut self, text: &[u8], record: &mut [u8]) -> Result<usize, Broken> {
        let (head, rest) = record.split_first_chunk_mut::<HEAD_BYTES>().ok_or(Broken)?;
        let (cipher, rest) = rest.split_at_mut_checked(text.len()).ok_or(Broken)?;
        let tag = rest.get_mut(..TAG_BYTES).ok_or(Broken)?;
        *head = u32::try_from(text.len() + TAG_BYTES).map_err(|_| Broken)?.to_le_bytes();
        let nonce = self.nonce()?;
        let sealed = match self.suite {
            Suite::Open => {
                cipher.copy_from_slice(text);
                let told = &record[..HEAD_BYTES + text.len()];
                self.key.seal_in_place_separate_tag(nonce, Aad::from(told), &mut []).map(|sealed| {
                    record[HEAD_BYTES + text.len()..][..TAG_BYTES].copy_from_slice(sealed.as_ref());
                })
            }
            _ => self.key.seal_out_of_place_scatter(nonce, Aad::from(*head), text, cipher, &[], tag),
        };
        sealed.map_err(|_| Broken)?;
        Ok(FRAME_BYTES + text.len())
    }

    /// Opens a whole record into `text`, which has the length of its text ([`text_length`]). If it does not open, `text` has any bytes.
    pub(super) fn open(&mut self, record: &[u8], text: &mut [u8]) -> Result<(), Broken> {
        let (told, tag) = record.split_at_checked(HEAD_BYTES + text.len()).ok_or(Broken)?;
        let (head, cipher) = told.split_at(HEAD_BYTES);
        let nonce = self.nonce()?;
        match self.suite {
            Suite::Open => {
                let mut tag: [u8; TAG_BYTES] = tag.try_into().map_err(|_| Broken)?;
                text.copy_from_slice(cipher);
                self.key.open_in_place(nonce, Aad::from(told), &mut tag).map(drop)
            }
            _ => self.key.open_separate_gather(nonce, Aad::from(head), cipher, tag, text),
        }
        .map_err(|_| Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(half: &mut Half, text: &[u8]) -> Vec<u8> {
        let mut record = vec![0; FRAME_BYTES + text.len()];
        assert_eq!(half.seal(text, &mut record), Ok(record.len()));
        record
    }

    fn text(half: &mut Half, record: &[u8]) -> Result<Vec<u8>, Broken> {
        let mut text = vec![0; text_length(record)?.expect("it is whole")];
        half.open(record, &mut text)?;
        Ok(text)
    }

    fn pair(suite: Suite) -> (Half, Half) {
        (Half::new(suite, &[7; 32]), Half::new(suite, &[7; 32]))
    }

    #[test]
    fn what_is_sealed_opens_in_its_turn_only() {
        for suite in Suite::ALL {
            let (mut ours, mut theirs) = pair(suite);
            let records = [&b"one"[..], b"", b"three"].map(|text| record(&mut ours, text));
            assert_eq!(text(&mut theirs, &records[0]).unwrap(), b"one");
            assert_eq!(text(&mut Half::new(suite, &[7; 32]), &records[1]), Err(Broken), "left out");
            assert_eq!(text(&mut theirs, &records[1]).unwrap(), b"");
            assert_eq!(text(&mut theirs, &records[1]), Err(Broken), "repeated");
            assert_eq!(text(&mut Half::new(suite, &[8; 32]), &records[0]), Err(Broken), "another key");
            assert_eq!(records[2].windows(5).any(|bytes| bytes == b"three"), suite == Suite::Open);
        }
    }

    #[test]
    fn a_record_waits_until_it_is_whole_but_not_for_a_length_that_none_has() {
        let (mut ours, mut theirs) = pair(Suite::Aes);
        let whole = record(&mut ours, b"text");
        for length in 0..whole.len() {
            assert_eq!(text_length(&whole[..length]), Ok(None));
        }
        assert_eq!(text(&mut theirs, &whole).unwrap(), b"text");
        for length in [0, TAG_BYTES - 1, TEXT_MAX + TAG_BYTES + 1, u32::MAX as usize] {
            assert_eq!(text_length(&(length as u32).to_le_bytes()), Err(Broken), "{length}");
        }
        assert_eq!(record(&mut ours, &[0; TEXT_MAX]).len(), TEXT_MAX + FRAME_BYTES);
    }

    #[test]
    fn numbers_are_never_used_twice() {
        let mut half = Half::new(Suite::ChaCha, &[7; 32]);
        half.next = u64::MAX - 1;
        record(&mut half, b"the last one");
        assert_eq!(half.seal(b"", &mut [0; FRAME_BYTES]), Err(Broken));
    }

    #[test]
    fn sides_that_do_not_both_want_secrecy_have_no_suite() {
        let (secret, open) = (Suite::offered(true), Suite::offered(false));
        assert_eq!(Suite::best(secret, open), None);
        assert_eq!(Suite::best(open, open), Some(Suite::Open));
        assert_eq!(Suite::best(secret, 0b010), Some(Suite::ChaCha));
        assert_eq!(Suite::best(0b111, 0b011), Some(Suite::Aes));
        assert_eq!(Suite::best(secret, 0), None);
        assert_eq!(Suite::best(0xf8, 0xf8), None, "unknown ones");
    }

    proptest! {
        #[test]
        fn no_bit_can_be_changed(bytes in proptest::collection::vec(any::<u8>(), 0..300), at: usize, bit in 0..8u8) {
            for suite in Suite::ALL {
                let (mut ours, mut theirs) = pair(suite);
                let mut record = record(&mut ours, &bytes);
                let at = at % record.len();
                record[at] ^= 1 << bit;
                // A length that was changed may only make the other side wait for more.
                let mut text = vec![];
                let opened = text_length(&record).and_then(|length| {
                    let Some(length) = length else { return Ok(false) };
                    text.resize(length, 0);
                    theirs.open(&record[..FRAME_BYTES + length], &mut text).map(|()| true)
                });
                prop_assert!(opened == Err(Broken) || at < HEAD_BYTES && opened == Ok(false));
            }
        }
    }
}
