//! Numbers of bytes, as people write them.

/// More than any host has.
const BYTES_MAX: u64 = 1 << 50;

/// Reads a number of bytes that is a whole number of 64-bit words, at least one: `4096`, `64KiB`, `16MiB`, `1GiB`.
pub(crate) fn of_words(text: &str) -> Result<u64, String> {
    let units = [("KiB", 1u64 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let with_unit =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), *factor)));
    let (digits, factor) = with_unit.unwrap_or((text, 1));
    let number =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    match number.and_then(|number| number.checked_mul(factor)) {
        None => Err("must be bytes, or a number with KiB, MiB or GiB behind it".to_owned()),
        Some(bytes) if bytes > BYTES_MAX => Err("must be at most 1024 TiB".to_owned()),
        Some(bytes) if bytes == 0 || bytes % 8 != 0 => Err("must be a multiple of 8 bytes".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read() {
        for (text, number) in
            [("8", 8), ("64KiB", 64 << 10), ("16 MiB", 16 << 20), ("1024MiB", 1 << 30), ("3GiB", 3 << 30)]
        {
            assert_eq!(of_words(text), Ok(number));
        }
    }

    #[test]
    fn refused() {
        for text in ["0", "9", "7KiB5", "1MB", "MiB", "", "-8", "1.5MiB", "99999999999GiB", "1048577GiB"] {
            assert!(of_words(text).is_err(), "{text}");
        }
    }
}
