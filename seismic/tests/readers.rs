//! Gathers as others read them, and files that others wrote as they are read here: segyio and obspy, in `python3` or
//! the interpreter that `FT_PYTHON` names.

use std::{env, ffi::OsString, fs, path::Path, process::Command};

use ft_seismic::{
    Node,
    gather::{Gather, read_gather},
    geometry::Shot,
    load::{ModelOptions, read_model},
    segy::write_segy,
    su::write_su,
};

/// Prints what [`facts`] does, as segyio sees it, after the first line of the textual header.
const SEGYIO: &str = "
import sys, segyio
from segyio import TraceField as T, BinField as B
with segyio.open(sys.argv[1], ignore_geometry=True) as f:
    assert f.bin[B.Format] == 5 and f.bin[B.MeasurementSystem] == 1
    assert f.bin[B.SEGYRevision] == 1 and f.bin[B.TraceFlag] == 1
    text = f.text[0].decode()
    assert text.startswith('C 1 SYNTHETIC SHOT GATHER') and text[80:].startswith('C 2 SHOT 12 '), text
    assert text[3120:].startswith('C40 END TEXTUAL HEADER')
    print(f.tracecount, len(f.samples), f.bin[B.Interval])
    for i, h in enumerate(f.header):
        xy, z = -h[T.SourceGroupScalar], -h[T.ElevationScalar]
        print(h[T.FieldRecord], h[T.TraceNumber], h[T.offset], h[T.TRACE_SAMPLE_COUNT], h[T.TRACE_SAMPLE_INTERVAL],
              '%.3f %.3f %.3f %.3f' % (h[T.SourceX] / xy, h[T.SourceDepth] / z, h[T.GroupX] / xy,
                                       -h[T.ReceiverGroupElevation] / z),
              f.trace[i].astype('>f4').tobytes().hex())
";

/// The same by obspy, in the format of the second argument.
const OBSPY: &str = "
import sys, warnings
warnings.simplefilter('ignore')
import obspy
if sys.argv[2] == 'SEGY':
    stream = obspy.read(sys.argv[1], format='SEGY', unpack_trace_headers=True)
else:
    stream = obspy.read(sys.argv[1], format='SU', byteorder='<', unpack_trace_headers=True)
print(len(stream), stream[0].stats.npts, round(stream[0].stats.delta * 1e6))
for t in stream:
    h = (t.stats.segy if sys.argv[2] == 'SEGY' else t.stats.su).trace_header
    xy = -h.scalar_to_be_applied_to_all_coordinates
    z = -h.scalar_to_be_applied_to_all_elevations_and_depths
    print(h.original_field_record_number, h.trace_number_within_the_original_field_record,
          h.distance_from_center_of_the_source_point_to_the_center_of_the_receiver_group,
          h.number_of_samples_in_this_trace, h.sample_interval_in_ms_for_this_trace,
          '%.3f %.3f %.3f %.3f' % (h.source_coordinate_x / xy, h.source_depth_below_surface / z,
                                   h.group_coordinate_x / xy, -h.receiver_group_elevation / z),
          t.data.astype('>f4').tobytes().hex())
";

/// Writes 5 traces of 7 samples, 1500 + 100 trace + sample, the traces 12.5 m apart, as SEG-Y with IBM floats.
const SEGYIO_WRITES: &str = "
import sys, segyio, numpy
spec = segyio.spec()
spec.format, spec.samples, spec.tracecount = 1, range(7), 5
with segyio.create(sys.argv[1], spec) as f:
    f.bin[segyio.BinField.Interval] = 4000
    for i in range(5):
        f.header[i] = {segyio.TraceField.CDP_X: 125 * i, segyio.TraceField.SourceGroupScalar: -10}
        f.trace[i] = (1500 + 100 * i + numpy.arange(7)).astype('float32')
";

/// The same as Seismic Unix in big endian.
const OBSPY_WRITES: &str = "
import sys, obspy, numpy
traces = [obspy.Trace((1500 + 100 * i + numpy.arange(7)).astype('float32')) for i in range(5)]
for t in traces:
    t.stats.delta = 0.004
obspy.Stream(traces).write(sys.argv[1], format='SU', byteorder='>')
";

const SPACING: f64 = 3.125;
const SAMPLES: usize = 301;

fn shot() -> Shot {
    let receivers = (0..12).map(|channel| Node { ix: 7 * channel, iz: 3 }).collect();
    Shot { number: 12, source: Node { ix: 41, iz: 2 }, receivers }
}

/// Samples of any size and sign, subnormal numbers and both zeros among them.
fn samples() -> Vec<f32> {
    let mut bits = 1u32;
    let mut next = || {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(bits)
    };
    let any = std::iter::from_fn(|| Some(next())).filter(|sample| sample.is_finite());
    [0.0, -0.0, 1e-40].into_iter().chain(any).take(12 * SAMPLES).collect()
}

/// Number of traces, samples and microseconds; then per trace shot, channel, offset, samples, microseconds, x and
/// depth of source and receiver, and the bits of its samples.
fn facts(shot: &Shot, samples: &[f32]) -> String {
    let mut lines = vec![format!("{} {SAMPLES} 1500", shot.receivers.len())];
    for (channel, (receiver, trace)) in (1..).zip(shot.receivers.iter().zip(samples.chunks_exact(SAMPLES))) {
        let meters = |index: usize| index as f64 * SPACING;
        let offset = (meters(receiver.ix) - meters(shot.source.ix)).round();
        let hex: String = trace.iter().map(|sample| format!("{:08x}", sample.to_bits())).collect();
        lines.push(format!(
            "{} {channel} {offset} {SAMPLES} 1500 {:.3} {:.3} {:.3} {:.3} {hex}",
            shot.number,
            meters(shot.source.ix),
            meters(shot.source.iz),
            meters(receiver.ix),
            meters(receiver.iz)
        ));
    }
    lines.join("\n")
}

fn python() -> OsString {
    env::var_os("FT_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Whether a module can be imported; if not, says so.
fn has(module: &str) -> bool {
    let import = Command::new(python()).args(["-c", &format!("import {module}")]).output();
    let found = import.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {} has no module {module}, set FT_PYTHON to one that has", python().display());
    }
    found
}

fn run(script: &str, file: &Path, format: &str) -> String {
    let output = Command::new(python()).args(["-c", script]).arg(file).arg(format).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn assert_same(found: &str, expected: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn segyio_and_obspy_read_what_was_written() {
    let folder = tempfile::TempDir::new().unwrap();
    let (shot, samples) = (shot(), samples());
    let gather = Gather {
        shot: &shot,
        spacing: SPACING,
        interval_s: 0.0015,
        samples: SAMPLES,
        traces: &samples,
        delay_s: 0.1,
        facts: &[],
    };
    let (segy, su) = (folder.path().join("shot.sgy"), folder.path().join("shot.su"));
    let mut bytes = Vec::new();
    write_segy(&gather, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 3600 + 12 * (240 + 4 * SAMPLES));
    fs::write(&segy, bytes).unwrap();
    let mut bytes = Vec::new();
    write_su(&gather, &mut bytes).unwrap();
    fs::write(&su, bytes).unwrap();

    let expected = facts(&shot, &samples);
    for file in [&segy, &su] {
        let read = read_gather(file).unwrap();
        assert!(read.traces.iter().zip(&samples).all(|(read, written)| read.to_bits() == written.to_bits()));
    }
    if has("segyio") {
        assert_same(&run(SEGYIO, &segy, "SEGY"), &expected);
    }
    if has("obspy") {
        assert_same(&run(OBSPY, &segy, "SEGY"), &expected);
        assert_same(&run(OBSPY, &su, "SU"), &expected);
    }
}

#[test]
fn what_segyio_and_obspy_write_is_read() {
    let folder = tempfile::TempDir::new().unwrap();
    let expected: Vec<f32> = (0..5).flat_map(|x| (0..7).map(move |z| (1500 + 100 * x + z) as f32)).collect();
    if has("segyio") {
        let file = folder.path().join("model.sgy");
        run(SEGYIO_WRITES, &file, "SEGY");
        let model = read_model(&file, &ModelOptions::default()).unwrap();
        assert_eq!((model.nx, model.nz, model.spacing), (5, 7, 12.5));
        assert_eq!(model.velocity, expected);
    }
    if has("obspy") {
        let file = folder.path().join("model.su");
        run(OBSPY_WRITES, &file, "SU");
        let gather = read_gather(&file).unwrap();
        assert_eq!((gather.headers.len(), gather.samples, gather.interval_us), (5, 7, 4000.0));
        assert_eq!(gather.traces, expected);
    }
}
