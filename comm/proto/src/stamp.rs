//! What is said with each message, and noted of it, for recovery lines ([`crate::lines`]).

/// Four bits of the header of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp(u8);

/// Lines matter to this message.
const LINED: u8 = 8;
/// Its sender logs outcomes.
const LOGS: u8 = 4;
/// Lines that its sender has drawn, modulo 4.
const COLOUR: u8 = 3;

impl Stamp {
    /// Of a message that lines do not matter to.
    pub const NONE: Self = Self(0);

    /// Of a message whose sender has drawn so many lines.
    pub fn new(line: u64, logs: bool) -> Self {
        Self(LINED | if logs { LOGS } else { 0 } | (line % 4) as u8)
    }

    /// As a header has it; none if there is no such stamp.
    #[inline]
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits == 0 || bits & !(LOGS | COLOUR) == LINED).then_some(Self(bits))
    }

    /// As a header has it: the lowest four bits.
    #[inline]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether lines matter to the message.
    #[inline]
    pub fn is_lined(self) -> bool {
        self.0 != 0
    }

    /// Lines that its sender has drawn, modulo 4.
    #[inline]
    pub fn colour(self) -> u8 {
        self.0 & COLOUR
    }

    /// Whether its sender logs outcomes.
    #[inline]
    pub fn logs(self) -> bool {
        self.0 & LOGS != 0
    }
}

/// What a rank notes of a message: its stamp, and which one of its sender it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mark(u32);

const STAMP_BITS: u32 = 4;
/// It was kept with a line before it was received.
const KEPT: u32 = 1 << STAMP_BITS;
/// No credit was paid for it: its payload was fetched before anybody wanted it, or was put back.
const FREE: u32 = KEPT << 1;
const NUMBER_SHIFT: u32 = STAMP_BITS + 2;

impl Mark {
    /// Of a message that lines do not matter to.
    pub const NONE: Self = Self(0);
    /// Of a message that was kept with a line and put back into the queue: nobody has paid for it, and it is of no line any more.
    pub const PUT_BACK: Self = Self(KEPT | FREE);

    /// Of a message with this stamp.
    #[inline]
    pub fn of(stamp: Stamp) -> Self {
        Self(u32::from(stamp.0))
    }

    /// The message's stamp.
    #[inline]
    pub fn stamp(self) -> Stamp {
        Stamp((self.0 & ((1 << STAMP_BITS) - 1)) as u8)
    }

    /// The same of a message with this number.
    #[inline]
    pub fn numbered(self, number: u32) -> Self {
        Self(self.0 & ((1 << NUMBER_SHIFT) - 1) | number << NUMBER_SHIFT)
    }

    /// Which message of its sender it is, in the order in which they came, modulo 2^26.
    pub fn number(self) -> u32 {
        self.0 >> NUMBER_SHIFT
    }

    /// Whether a message with this mark came before one of the same sender with the `other`, neither of them long ago.
    pub fn is_before(self, other: Self) -> bool {
        let ahead =
            (other.0 >> NUMBER_SHIFT << NUMBER_SHIFT).wrapping_sub(self.0 >> NUMBER_SHIFT << NUMBER_SHIFT);
        ahead != 0 && ahead < 1 << 31
    }

    /// The same, as the message was kept with a line and waits for its receive.
    pub fn kept(self) -> Self {
        Self(self.0 >> STAMP_BITS << STAMP_BITS | KEPT)
    }

    /// The same, as the line that it is of was abandoned.
    pub fn stamped(self, stamp: Stamp) -> Self {
        Self(self.0 >> STAMP_BITS << STAMP_BITS | u32::from(stamp.0))
    }

    /// The same, as the message is of no line any more.
    pub(crate) fn unlined(self) -> Self {
        Self(self.0 >> STAMP_BITS << STAMP_BITS & !KEPT)
    }

    /// The same, as the payload was fetched before anybody wanted it.
    pub(crate) fn fetched(self) -> Self {
        Self(self.0 | FREE)
    }

    /// Whether the message was kept with a line before it was received.
    pub fn is_kept(self) -> bool {
        self.0 & KEPT != 0
    }

    /// Whether credit was paid for it that is to be given back.
    #[inline]
    pub(crate) fn has_credit(self) -> bool {
        self.0 & FREE == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_four_bits_that_say_what_was_said() {
        let stamp = Stamp::new(7, true);
        assert_eq!((stamp.is_lined(), stamp.colour(), stamp.logs()), (true, 3, true));
        let stamps = (0..=u8::MAX).filter_map(Stamp::from_bits);
        let (bits, all): (Vec<u8>, Vec<Stamp>) = stamps.map(|stamp| (stamp.bits(), stamp)).unzip();
        assert_eq!(bits, [0, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert!(all[1..].iter().all(|stamp| stamp.is_lined()) && !all[0].is_lined());
    }

    #[test]
    fn a_mark_keeps_stamp_and_number_apart() {
        let mark = Mark::of(Stamp::new(2, false)).numbered(77);
        assert_eq!((mark.stamp(), mark.number(), mark.has_credit()), (Stamp::new(2, false), 77, true));
        assert_eq!((mark.kept().stamp(), mark.kept().number()), (Stamp::NONE, 77));
        assert!(!mark.fetched().has_credit() && !Mark::PUT_BACK.has_credit() && Mark::PUT_BACK.is_kept());
        let last = mark.numbered(u32::MAX >> NUMBER_SHIFT);
        assert!(
            mark.is_before(mark.numbered(78)) && !mark.is_before(mark) && last.is_before(mark.numbered(0))
        );
    }
}
