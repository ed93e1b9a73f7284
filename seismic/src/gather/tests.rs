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
    assert_eq!((gather.samples, gather.interval_us, gather.headers.len()), (SAMPLES, 2000, 3));
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
