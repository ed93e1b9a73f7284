//! The number formats of model and trace files.

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant.
    Little,
    /// The most significant.
    Big,
}

impl ByteOrder {
    pub(crate) fn i16(self, bytes: [u8; 2]) -> i16 {
        match self {
            Self::Little => i16::from_le_bytes(bytes),
            Self::Big => i16::from_be_bytes(bytes),
        }
    }

    pub(crate) fn i32(self, bytes: [u8; 4]) -> i32 {
        match self {
            Self::Little => i32::from_le_bytes(bytes),
            Self::Big => i32::from_be_bytes(bytes),
        }
    }

    pub(crate) fn i16_bytes(self, value: i16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn i32_bytes(self, value: i32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn f32_bytes(self, value: f32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// How one sample is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleFormat {
    /// IEEE 754, 32 bits.
    Ieee32(ByteOrder),
    /// IEEE 754, 64 bits; rounded to 32 when read.
    Ieee64(ByteOrder),
    /// IBM System/360 single precision, big endian.
    Ibm32,
}

impl SampleFormat {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Ieee32(_) | Self::Ibm32 => 4,
            Self::Ieee64(_) => 8,
        }
    }

    /// The value of one sample. A slice of another length than [`Self::bytes`] has no value: NaN.
    pub(crate) fn decode(self, bytes: &[u8]) -> f32 {
        match self {
            Self::Ieee32(ByteOrder::Little) => bytes.try_into().map_or(f32::NAN, f32::from_le_bytes),
            Self::Ieee32(ByteOrder::Big) => bytes.try_into().map_or(f32::NAN, f32::from_be_bytes),
            Self::Ieee64(ByteOrder::Little) => {
                bytes.try_into().map_or(f32::NAN, |b| f64::from_le_bytes(b) as f32)
            }
            Self::Ieee64(ByteOrder::Big) => {
                bytes.try_into().map_or(f32::NAN, |b| f64::from_be_bytes(b) as f32)
            }
            Self::Ibm32 => bytes.try_into().map_or(f32::NAN, |b| from_ibm(u32::from_be_bytes(b))),
        }
    }
}

/// Sign, 7 bits of exponent to base 16 with excess 64, 24 bits of fraction. Too large for IEEE becomes infinite.
///
/// Source: IBM System/360 Principles of Operation, GA22-6821, floating-point number representation.
fn from_ibm(bits: u32) -> f32 {
    let fraction = f64::from(bits & 0x00ff_ffff) / f64::from(1 << 24);
    let exponent = ((bits >> 24) & 0x7f) as i32 - 64;
    let magnitude = fraction * 16f64.powi(exponent);
    (if bits >> 31 == 0 { magnitude } else { -magnitude }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ibm_numbers() {
        assert_eq!(from_ibm(0xC276_A000), -118.625);
        assert_eq!(from_ibm(0x4110_0000), 1.0);
        assert_eq!(from_ibm(0xBF19_999A), -1_677_722.0 / 268_435_456.0);
        assert_eq!(from_ibm(0), 0.0);
        assert_eq!(from_ibm(0x7fff_ffff), f32::INFINITY);
    }

    #[test]
    fn every_format_decodes_1500() {
        use ByteOrder::{Big, Little};
        let (single, double) = (1500f32, 1500f64);
        assert_eq!(SampleFormat::Ieee32(Little).decode(&single.to_le_bytes()), single);
        assert_eq!(SampleFormat::Ieee32(Big).decode(&single.to_be_bytes()), single);
        assert_eq!(SampleFormat::Ieee64(Little).decode(&double.to_le_bytes()), single);
        assert_eq!(SampleFormat::Ieee64(Big).decode(&double.to_be_bytes()), single);
        assert_eq!(SampleFormat::Ibm32.decode(&[0x43, 0x5d, 0xc0, 0x00]), single);
    }
}
