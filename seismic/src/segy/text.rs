//! The textual header: 40 lines of 80 characters in EBCDIC.

use super::TEXT_BYTES;
use crate::{Node, gather::Gather};

const LINE_BYTES: usize = 80;

/// Code page 037 for the printable characters of ASCII, from the space on.
const EBCDIC: [u8; 95] = [
    0x40, 0x5a, 0x7f, 0x7b, 0x5b, 0x6c, 0x50, 0x7d, 0x4d, 0x5d, 0x5c, 0x4e, 0x6b, 0x60, 0x4b, 0x61, 0xf0,
    0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0x7a, 0x5e, 0x4c, 0x7e, 0x6e, 0x6f, 0x7c, 0xc1,
    0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9,
    0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xba, 0xe0, 0xbb, 0xb0, 0x6d, 0x79, 0x81, 0x82, 0x83,
    0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0xa2, 0xa3,
    0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xc0, 0x4f, 0xd0, 0xa1,
];

/// The header of a gather, facts only.
pub(super) fn header(gather: &Gather<'_>, interval_us: u16) -> [u8; TEXT_BYTES] {
    let mut bytes = [EBCDIC[0]; TEXT_BYTES];
    let facts = facts(gather, interval_us);
    for (number, line) in (1..).zip(bytes.chunks_exact_mut(LINE_BYTES)) {
        let fact = match number {
            39 => "SEG Y REV1",
            40 => "END TEXTUAL HEADER",
            _ => facts.get(number - 1).map_or("", String::as_str),
        };
        let text = format!("C{number:>2} {fact}");
        for (place, byte) in line.iter_mut().zip(text.bytes()) {
            *place = ebcdic(byte);
        }
    }
    bytes
}

fn facts(gather: &Gather<'_>, interval_us: u16) -> Vec<String> {
    let Gather { shot, spacing, samples, delay_s, .. } = gather;
    let at =
        |node: &Node| format!("X {:.3} M, DEPTH {:.3} M", node.ix as f64 * spacing, node.iz as f64 * spacing);
    let mut facts = vec![
        "SYNTHETIC SHOT GATHER, ACOUSTIC FINITE DIFFERENCES, 2D (X, DEPTH)".to_owned(),
        format!("SHOT {}", shot.number),
        format!("SOURCE AT {}", at(&shot.source)),
        format!("{} RECEIVERS, ONE TRACE EACH", shot.receivers.len()),
    ];
    if let (Some(first), Some(last)) = (shot.receivers.first(), shot.receivers.last()) {
        facts.push(format!("FIRST RECEIVER AT {}", at(first)));
        facts.push(format!("LAST RECEIVER AT {}", at(last)));
    }
    facts.extend([
        format!("{samples} SAMPLES PER TRACE, EVERY {interval_us} MICROSECONDS"),
        format!("FIRST SAMPLE AT {:.3} MS OF THE SOURCE, BYTE 109 IN WHOLE MS", -delay_s * 1e3 + 0.0),
        "SAMPLES ARE IEEE FLOATS OF 32 BITS, BIG ENDIAN (FORMAT CODE 5)".to_owned(),
        format!("POSITIONS ARE POINTS OF A GRID WITH A SPACING OF {spacing} M"),
        "TRACE HEADERS: SHOT BYTE 9, CHANNEL BYTE 13, SOURCE POINT BYTE 17".to_owned(),
        "SOURCE X BYTE 73, RECEIVER X BYTE 81, IN MM (SCALAR -1000 IN BYTE 71)".to_owned(),
        "SOURCE DEPTH BYTE 49, RECEIVER ELEVATION BYTE 41, IN MM (BYTE 69)".to_owned(),
        "OFFSET BYTE 37: RECEIVER X MINUS SOURCE X, ROUNDED TO METERS".to_owned(),
        "CDP BYTE 21: MIDPOINTS IN HALF POINTS OF THE GRID, FROM 1; CDP X BYTE 181".to_owned(),
        "Y IS 0 THROUGHOUT".to_owned(),
    ]);
    facts.extend(gather.facts.iter().map(|fact| fact.to_uppercase()));
    facts
}

/// The code of an ASCII character; what is not printable becomes a question mark.
fn ebcdic(ascii: u8) -> u8 {
    EBCDIC.get(usize::from(ascii.wrapping_sub(b' '))).copied().unwrap_or(0x6f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::tests::example_shot;

    #[test]
    fn forty_lines_of_facts() {
        let shot = example_shot();
        let more = ["Wavelet: Ricker".to_owned()];
        let gather = Gather {
            shot: &shot,
            spacing: 7.5,
            interval_s: 0.002,
            samples: 4,
            traces: &[0.0; 12],
            delay_s: 0.1,
            facts: &more,
        };
        let ascii = |byte: &u8| (b' ' + EBCDIC.iter().position(|code| code == byte).unwrap() as u8) as char;
        let text: String = header(&gather, 2000).iter().map(ascii).collect();
        let lines: Vec<&str> = (0..40).map(|line| text[80 * line..80 * (line + 1)].trim_end()).collect();
        assert_eq!(lines[1], "C 2 SHOT 7");
        assert_eq!(lines[2], "C 3 SOURCE AT X 75.000 M, DEPTH 15.000 M");
        assert_eq!(lines[5], "C 6 LAST RECEIVER AT X 150.000 M, DEPTH 7.500 M");
        assert_eq!(lines[6], "C 7 4 SAMPLES PER TRACE, EVERY 2000 MICROSECONDS");
        assert_eq!(lines[7], "C 8 FIRST SAMPLE AT -100.000 MS OF THE SOURCE, BYTE 109 IN WHOLE MS");
        assert_eq!(lines[16], "C17 WAVELET: RICKER");
        assert_eq!((lines[37], lines[38], lines[39]), ("C38", "C39 SEG Y REV1", "C40 END TEXTUAL HEADER"));
        assert!(facts(&gather, 2000).iter().all(|fact| fact.len() <= LINE_BYTES - 4));
    }
}
