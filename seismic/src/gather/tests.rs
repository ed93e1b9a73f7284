use std::io::{self, Cursor, Write};

use proptest::prelude::*;

use super::*;
use crate::{Node, segy::write_segy, su::write_su};

/// Shot 7: three receivers on both sides of the source.
pub(crate) fn example_shot() -> Shot {
    let receivers = [0, 10, 20].map(|ix| Node { ix, iz: 1 }).to_vec();
    Shot { number: 7, source: Node { ix: 10, iz: 2 }, receivers }
}

const SAMPLES: usize = 4;

fn example(shot: &Shot) -> Gather<'_> {
    const TRACES: [f32; 12] = [0.0, -0.0, 1.5, f32::MIN_POSITIVE, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1e30, -1e-40];
    Gather {
        shot,
        spacing: 7.5,
        interval_s: 0.002,
        samples: SAMPLES,
        traces: &TRACES,
        delay_s: 0.0875,
        facts: &[],
    }
}

fn segy() -> Vec<u8> {
    let mut bytes = Vec::new();
    write_segy(&example(&example_shot()), &mut bytes).unwrap();
    bytes
}

fn su() -> Vec<u8> {
    let mut bytes = Vec::new();
    write_su(&example(&example_shot()), &mut bytes).unwrap();
    bytes
}

fn source(bytes: &[u8]) -> Source {
    Source::new(Cursor::new(bytes.to_vec()), Some(bytes.len() as u64)).unwrap()
}

fn parse_segy(bytes: &[u8]) -> Result<OwnedGather, TraceError> {
    TraceReader::segy(source(bytes)).and_then(read_all)
}

fn parse_su(bytes: &[u8]) -> Result<OwnedGather, TraceError> {
    TraceReader::su(source(bytes)).and_then(read_all)
}

fn assert_is_example(gather: &OwnedGather) {
    let shot = example_shot();
    assert_eq!((gather.samples, gather.interval_us, gather.headers.len()), (SAMPLES, 2000.0, 3));
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&gather.traces), bits(example(&shot).traces));
    assert_eq!(gather.trace(1), [4.0, 5.0, 6.0, 7.0]);
    for (channel, header) in (1..).zip(&gather.headers) {
        assert_eq!((header.trace_in_line, header.trace_in_file, header.channel), (channel, channel, channel));
        assert_eq!((header.shot, header.source_point, header.kind), (7, 7, 1));
        assert_eq!((header.source_x(), header.source_depth(), header.receiver_depth()), (75.0, 15.0, 7.5));
    }
    let receivers = gather.headers.iter().map(|header| (header.receiver_x(), header.offset));
    assert_eq!(receivers.collect::<Vec<_>>(), [(0.0, -75), (75.0, 0), (150.0, 75)]);
    let cdps = gather.headers.iter().map(|header| (header.cdp, header.cdp_x, header.delay_ms));
    assert_eq!(cdps.collect::<Vec<_>>(), [(11, 37_500, -88), (21, 75_000, -88), (31, 112_500, -88)]);
}

#[test]
fn both_formats_come_back_bit_for_bit() {
    assert_is_example(&parse_segy(&segy()).unwrap());
    assert_is_example(&parse_su(&su()).unwrap());
    assert_eq!((segy().len(), su().len()), (3600 + 3 * 256, 3 * 256));
    assert_eq!(segy(), segy());
}

#[test]
fn binary_header_fields_stand_at_their_bytes() {
    let bytes = segy();
    let at = |byte: usize| u16::from_be_bytes([bytes[byte - 1], bytes[byte]]);
    assert_eq!([3213, 3217, 3221, 3225, 3255, 3501, 3503, 3505].map(at), [3, 2000, 4, 5, 1, 0x0100, 1, 0]);
}

#[test]
fn su_of_the_other_byte_order_is_recognized() {
    let mut bytes = su();
    for trace in bytes.chunks_exact_mut(256) {
        let header = trace[..240].try_into().unwrap();
        let header = TraceHeader::from_bytes(header, crate::load::ByteOrder::Little);
        trace[..240].copy_from_slice(&header.to_bytes(crate::load::ByteOrder::Big));
        trace[240..].chunks_exact_mut(4).for_each(<[u8]>::reverse);
    }
    assert_is_example(&parse_su(&bytes).unwrap());
    // Neither the length of the file nor the number of samples decides here: 256 is 1 in the other order.
    let shot = Shot { receivers: vec![Node { ix: 0, iz: 0 }], ..example_shot() };
    let gather = Gather { samples: 256, traces: &[1.0; 256], ..example(&shot) };
    let mut bytes = Vec::new();
    write_su(&gather, &mut bytes).unwrap();
    let stream = Source::new(Cursor::new(bytes), None).unwrap();
    assert_eq!(TraceReader::su(stream).and_then(read_all).unwrap().samples, 256);
}

#[test]
fn half_points_and_quarters_of_a_metre_survive() {
    let shot = example_shot();
    let mut bytes = Vec::new();
    write_segy(&Gather { spacing: 3.125, ..example(&shot) }, &mut bytes).unwrap();
    let read = parse_segy(&bytes).unwrap();
    assert_eq!((read.headers[1].receiver_x(), read.headers[0].source_depth()), (31.25, 6.25));
    assert_eq!(read.headers[0].receiver_depth(), 3.125);
}

#[test]
fn what_the_formats_cannot_hold_is_refused_before_a_byte_is_written() {
    let shot = example_shot();
    let refused = |gather: Gather<'_>| {
        let mut bytes = Vec::new();
        let error = write_segy(&gather, &mut bytes).unwrap_err().to_string();
        assert_eq!(write_su(&gather, &mut bytes).unwrap_err().to_string(), error);
        assert!(bytes.is_empty());
        error
    };
    let gather = example(&shot);
    let many = vec![0.0; 3 * 32_768];
    assert_eq!(
        refused(Gather { samples: 32_768, traces: &many, ..gather }),
        "32768 samples per trace, SEG-Y and SU hold 1 to 32767; record fewer or less often"
    );
    for (interval_s, nearest) in
        [(0.0012345, 1235), (1e-9, 1), (0.05, 32_767), (0.0, 1), (-0.002, 1), (f64::NAN, 1)]
    {
        assert_eq!(
            refused(Gather { interval_s, ..gather }),
            format!(
                "sampling interval {interval_s} s is not a whole number of microseconds from 1 to 32767, the \
                 nearest is {nearest} us"
            )
        );
    }
    for delay_s in [33.0, -33.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            refused(Gather { delay_s, ..gather }),
            format!("time 0 is {delay_s} s after the first sample, a trace header holds up to 32.767 s")
        );
    }
    assert_eq!(check_sampling(32_767, 3.0 * 0.0001 + 0.0).unwrap(), 300);
    assert_eq!(
        refused(Gather { traces: &many[..11], ..gather }),
        "11 samples for 3 receivers of 4 samples each, expected 12"
    );
    assert_eq!(
        refused(Gather { spacing: 1e6, ..gather }),
        "position of a receiver of shot 7 is 10000000, does not fit into a trace header; at most 2147483.647 does"
    );
    let high = Shot { number: u32::MAX, ..shot.clone() };
    assert_eq!(
        refused(Gather { shot: &high, ..gather }),
        "number of shot 4294967295 is 4294967295, does not fit into a trace header; at most 2147483647 does"
    );
}

#[test]
fn a_full_disk_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(write_segy(&example(&example_shot()), &mut Full), Err(WriteError::Io(_))));
}

#[test]
fn damaged_files_are_refused_with_the_place() {
    let error = |bytes: &[u8]| parse_segy(bytes).unwrap_err().to_string();
    let with = |byte: usize, value: u16| {
        let mut bytes = segy();
        bytes[byte - 1..=byte].copy_from_slice(&value.to_be_bytes());
        error(&bytes)
    };
    let whole = segy();
    assert_eq!(error(b""), "file ends after 0 bytes, within the 3600 bytes of the file headers");
    assert_eq!(error(&whole[..3600]), "file has no traces");
    assert_eq!(
        error(&whole[..3700]),
        "file ends after 100 bytes, within the 240 bytes of the first trace header"
    );
    let cut =
        |found| format!("file ends within trace 3, after {found} of its 256 bytes; copy or write it again");
    assert_eq!(error(&whole[..whole.len() - 1]), cut(255));
    assert_eq!(error(&whole[..3600 + 2 * 256 + 10]), cut(10));
    assert_eq!(with(3221, 0), "header says 0 samples per trace: not a SEG-Y or SU file, or a damaged one");
    assert_eq!(with(3221, 9), "trace 1 has 4 samples, expected 9 as in the whole file");
    assert_eq!(with(3600 + 256 + 115, 5), "trace 2 has 5 samples, expected 4 as in the whole file");
    assert_eq!(
        with(3225, 3),
        "SEG-Y sample format 3 is not read, convert to 5 (IEEE float) or 1 (IBM float)"
    );
    assert_eq!(
        with(3225, 0x0500),
        "SEG-Y sample format 1280 is not read, convert to 5 (IEEE float) or 1 (IBM float); the file looks little \
         endian, SEG-Y is big endian"
    );
    assert_eq!(
        with(3505, 0xffff),
        "SEG-Y file with -1 extended textual headers is not read, only counts from 0 are"
    );
    assert_eq!(
        with(3505, 2),
        "file ends after 768 bytes, within the 6400 bytes of the extended textual headers"
    );
    assert_eq!(parse_su(b"").unwrap_err().to_string(), "file has no traces");
    assert_eq!(
        parse_su(&su()[..700]).unwrap_err().to_string(),
        "file ends within trace 3, after 188 of its 256 bytes; copy or write it again"
    );
}

#[test]
fn extended_textual_headers_are_passed_over() {
    let mut bytes = segy();
    bytes[3505] = 1;
    bytes.splice(3600..3600, [0x40; 3200]);
    assert_is_example(&parse_segy(&bytes).unwrap());
}

/// The example as SEG-Y with numbers put at bytes of its file headers.
fn segy_with(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = segy();
    for (byte, value) in fields {
        bytes[byte - 1..][..value.len()].copy_from_slice(value);
    }
    bytes
}

fn refused(bytes: &[u8]) -> String {
    parse_segy(bytes).unwrap_err().to_string()
}

#[test]
fn extended_headers_without_a_revision_are_found_by_the_first_trace() {
    // Count of extended headers, whether they are there, and what they are filled with.
    for (count, is_there, fill) in
        [(1, true, 0), (1, true, 0x40), (3, true, 0), (1, false, 0), (0x2020, false, 0)]
    {
        for revision in [[0, 0], [0, 1], [0x20, 0x20]] {
            let mut bytes = segy_with(&[(3501, &revision), (3505, &i16::to_be_bytes(count))]);
            let headers = if is_there { 3200 * usize::try_from(count).unwrap() } else { 0 };
            bytes.splice(3600..3600, vec![fill; headers]);
            assert_is_example(&parse_segy(&bytes).unwrap());
        }
    }
    assert_is_example(&parse_segy(&segy_with(&[(3501, &[0, 0]), (3505, &[0xff, 0xff])])).unwrap());
    let why = |count: i16, revision: u8| {
        format!(
            "bytes 3505-3506 announce {count} extended textual headers, which revision {revision} (byte 3501) does not \
             have: set the revision to 1 if they follow byte 3600, else set the count to 0"
        )
    };
    // Traces that leave the number of samples open could begin anywhere.
    let open: &[(usize, &[u8])] = &[(3600 + 115, &[0, 0]), (3501, &[0, 0]), (3505, &[0, 1])];
    let mut bytes = segy_with(open);
    assert_eq!(refused(&bytes), why(1, 0));
    bytes.splice(3600..3600, [0; 3200]);
    assert_eq!(refused(&bytes), why(1, 0));
    bytes[3504..3506].copy_from_slice(&[0xff, 0xff]);
    bytes[3500] = 0x40;
    assert_eq!(refused(&bytes), why(-1, 0x40));
    bytes[3504..3506].copy_from_slice(&[0, 0]);
    bytes[3500] = 0;
    parse_segy(&bytes[..3600 + 512]).expect("no count, so these zeros are two traces");
}

/// What revision 2 has added, alone and together.
#[test]
fn fields_of_revision_2_are_read() {
    const TWO: (usize, &[u8]) = (3501, &[2, 0]);
    assert_is_example(&parse_segy(&segy_with(&[TWO])).unwrap());
    assert_is_example(&parse_segy(&segy_with(&[TWO, (3297, &[1, 2, 3, 4])])).unwrap());
    // Samples and interval in the places of before, or in the new ones alone.
    let interval = 1250.5_f64.to_be_bytes();
    let moved: &[(usize, &[u8])] =
        &[TWO, (3221, &[0, 0]), (3217, &[0, 0]), (3269, &[0, 0, 0, 4]), (3273, &interval)];
    let gather = parse_segy(&segy_with(moved)).unwrap();
    assert_eq!((gather.samples, gather.interval_us), (SAMPLES, 1250.5));
    // They are nothing in files of revision 1.
    let one = [&moved[3..], &[(3507, &[0, 0, 0, 1][..]), (3523, &[0xff; 8]), (3297, &[4, 3, 2, 1])]].concat();
    assert_is_example(&parse_segy(&segy_with(&one)).unwrap());
    // Additional headers of each trace: their number by the file alone, or by each trace too.
    for count in 1..=3_u8 {
        for name in [&[0; 8], b"SEG00001"] {
            let mut bytes = segy_with(&[TWO, (3507, &[0, 0, 0, count])]);
            for trace in (0..3).rev() {
                let mut headers = vec![0; 240 * usize::from(count)];
                headers[157] = count;
                headers[136..140].copy_from_slice(&[0, 0, 0, 4]);
                headers[232..240].copy_from_slice(name);
                bytes.splice(3600 + 256 * trace + 240..3600 + 256 * trace + 240, headers);
            }
            assert_is_example(&parse_segy(&bytes).unwrap());
            let second = 3600 + 256 + 240 * usize::from(count) + 240;
            if name == b"SEG00001" {
                bytes[second + 157] = count + 1;
                assert_eq!(
                    refused(&bytes),
                    format!(
                        "trace 2 has {} additional headers, expected {count} as in the whole file (bytes 3507-3510)",
                        count + 1
                    )
                );
                bytes[second + 157] = 0;
                bytes[second + 139] = 9;
                assert_eq!(refused(&bytes), "trace 2 has 9 samples, expected 4 as in the whole file");
            }
            let expected = 256 + 240 * usize::from(count);
            assert_eq!(
                refused(&bytes[..3600 + 250]),
                format!(
                    "file ends within trace 1, after 250 of its {expected} bytes; copy or write it again"
                )
            );
        }
    }
    // Other records before the first trace and after the last.
    let first = (3600_u64 + 100).to_be_bytes();
    let mut bytes = segy_with(&[TWO, (3523, &first), (3515, &[0, 0, 0, 0, 0, 0, 0, 3]), (3531, &[0xff; 4])]);
    bytes.splice(3600..3600, [7; 100]);
    assert_is_example(&parse_segy(&bytes).unwrap());
    bytes.extend([8; 3200]);
    assert_is_example(&parse_segy(&bytes).unwrap());
}

#[test]
fn fields_of_revision_2_that_are_not_read_are_named() {
    let with = |byte: usize, value: &[u8]| refused(&segy_with(&[(3501, &[2, 0]), (byte, value)]));
    for (bytes, shown) in [([4, 3, 2, 1], "0x04030201"), ([2, 1, 4, 3], "0x02010403")] {
        assert_eq!(
            with(3297, &bytes),
            format!(
                "SEG-Y of revision 2 with the byte order {shown} in bytes 3297-3300 is not read, convert to big \
                 endian (0x01020304)"
            )
        );
    }
    assert_eq!(
        with(3507, &[0, 1, 0, 0]),
        "SEG-Y with 65536 additional headers a trace (bytes 3507-3510) is not read, at most 1000 are"
    );
    assert_eq!(
        with(3531, &[0, 0, 0, 1]),
        "SEG-Y with 1 trailer records (bytes 3531-3534) and without the number of traces (bytes 3515-3522) is not \
         read: write either"
    );
    assert_eq!(
        with(3523, &[0, 0, 0, 0, 0, 0, 0, 9]),
        "SEG-Y whose first trace begins at byte 9 (bytes 3523-3530) is not read: its headers end at byte 3600, and at \
         most 1 GiB of other records may follow"
    );
    assert!(with(3523, &[0xff; 8]).contains("its headers end at byte 3600"));
    let traces = |count: u8| with(3515, &[0, 0, 0, 0, 0, 0, 0, count]);
    assert_eq!(traces(2), "file goes on after its 2 traces (bytes 3515-3522), and names no trailer records");
    assert_eq!(traces(4), "file ends after 3 of 4 traces (bytes 3515-3522); copy or write it again");
    assert!(with(3269, &[0xff; 4]).contains("samples"));
}

#[test]
fn files_are_told_by_their_names() {
    let folder = tempfile::TempDir::new().unwrap();
    for (name, bytes) in [("shot.sgy", segy()), ("shot.SEGY", segy()), ("shot.su", su())] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        assert_is_example(&read_gather(&folder.path().join(name)).unwrap());
    }
    let error = |name| read_gather(Path::new(name)).unwrap_err().to_string();
    assert_eq!(error("absent.su"), "absent.su: file not found, check the path");
    assert_eq!(
        error("shot.dat"),
        "shot.dat: format unknown, gathers are read from files ending in .sgy, .segy or .su"
    );
}

proptest! {
    #[test]
    fn random_bytes_never_panic(head in proptest::collection::vec(any::<u8>(), 0..400), fill in any::<u8>()) {
        let _ = parse_su(&head);
        let mut bytes = vec![fill; 3200];
        bytes.extend(head);
        let _ = parse_segy(&bytes);
        bytes.resize(8000, fill);
        let _ = parse_segy(&bytes);
        let _ = parse_su(&bytes);
    }

    #[test]
    fn damaged_files_never_panic(at in 0usize..4368, byte in any::<u8>(), cut in 0usize..4368) {
        let (mut segy, mut su) = (segy(), su());
        let (in_segy, in_su) = (at % segy.len(), at % su.len());
        segy[in_segy] = byte;
        su[in_su] = byte;
        let cut_su = cut % (su.len() + 1);
        for (whole, cut) in [(parse_segy(&segy), parse_segy(&segy[..cut])), (parse_su(&su), parse_su(&su[..cut_su]))] {
            for gather in [whole, cut].into_iter().flatten() {
                prop_assert_eq!(gather.traces.len(), gather.headers.len() * gather.samples);
            }
        }
    }
}
