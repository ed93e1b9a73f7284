//! What the codes cost on one core, in CPU time; started by `code_peers`, beside `peers/isal_codes.c`, which does the same.
//!
//! `codes K M KIB` prints a name and the seconds of a call, a line each: encoding `K` shards of `KIB`, and rebuilding 1 and 2 of
//! them with a combination made anew; and a sum over the redundant blocks, so that both sides can be seen to compute the same.
//! `codes xor MIB` adds a buffer to another, in turns with copying one.

use std::hint::black_box;
use std::process::ExitCode;

use ft_encoders::{Code, CodeError, Combinations, Kernel, ReedSolomon, Xor};
use rustix::time::{ClockId, clock_gettime};

const SAMPLES: usize = 9;
const SAMPLE_S: f64 = 0.004;
const PAGE: usize = 4096;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<usize>().ok();
    let outcome = match words[..] {
        ["xor", mib] => number(mib).map(|mib| xor(mib << 20)),
        [k, m, kib] => number(k)
            .zip(number(m))
            .zip(number(kib))
            .map(|((k, m), kib)| ReedSolomon::new(k, m).and_then(|code| cell(&code, kib << 10))),
        _ => None,
    };
    match outcome {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        None => {
            eprintln!("usage: codes K M KIB | codes xor MIB");
            ExitCode::from(2)
        }
    }
}

fn cell(code: &ReedSolomon, bytes: usize) -> Result<(), CodeError> {
    println!("kernel {}", Kernel::chosen()?.name());
    let (k, m) = (code.data(), code.redundant());
    let mut stripe: Vec<Memory> = (0..k + m).map(|i| Memory::new(bytes, i as u64)).collect();
    let mut made: Vec<Memory> = (0..2).map(|i| Memory::new(bytes, 100 + i)).collect();
    let (data, blocks) = stripe.split_at_mut(k);
    let data: Vec<&[u8]> = data.iter().map(Memory::bytes).collect();
    println!(
        "encode {:.9e}",
        seconds(|| {
            let mut blocks: Vec<&mut [u8]> = blocks.iter_mut().map(Memory::bytes_mut).collect();
            code.encode(black_box(&data), &mut blocks)
        })?
    );
    let words = blocks.iter().flat_map(|block| block.bytes().chunks_exact(8));
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    println!("sum {:016x}", words.fold(0, |sum: u64, word| (sum ^ word).wrapping_mul(0x100_0000_01b3)));

    for lost in 1..=m.min(2) {
        rebuild(code, &stripe, &mut made[..lost])?;
    }
    Ok(())
}

/// Computes as many blocks as there is room for, the first ones, as if they were lost.
fn rebuild(code: &ReedSolomon, stripe: &[Memory], made: &mut [Memory]) -> Result<(), CodeError> {
    let lost = made.len();
    let present: Vec<bool> = (0..stripe.len()).map(|index| index >= lost).collect();
    let rebuild = || {
        let combinations: Combinations = (0..lost)
            .map(|wanted| code.combination(black_box(&present), wanted))
            .collect::<Result<_, _>>()?;
        let sources: Vec<&[u8]> = combinations.sources().iter().map(|index| stripe[*index].bytes()).collect();
        let mut into: Vec<&mut [u8]> = made.iter_mut().map(Memory::bytes_mut).collect();
        combinations.rebuild(&sources, &mut into)
    };
    println!("rebuild{lost} {:.9e}", seconds(rebuild)?);
    for (made, original) in made.iter().zip(stripe) {
        assert!(made.bytes() == original.bytes(), "rebuilt bytes are the lost ones");
    }
    Ok(())
}

fn xor(bytes: usize) -> Result<(), CodeError> {
    println!("kernel {}", Kernel::chosen()?.name());
    let code = Xor::new(1)?;
    let (mut into, from) = (Memory::new(bytes, 1), Memory::new(bytes, 2));
    for _ in 0..3 {
        println!(
            "memcpy {:.9e}",
            seconds(|| {
                into.bytes_mut().copy_from_slice(black_box(from.bytes()));
                Ok(())
            })?
        );
        println!("xor {:.9e}", seconds(|| code.accumulate(0, 0, black_box(from.bytes()), into.bytes_mut()))?);
    }
    Ok(())
}

/// Median CPU seconds of a call.
fn seconds(mut call: impl FnMut() -> Result<(), CodeError>) -> Result<f64, CodeError> {
    call()?;
    let start = now();
    call()?;
    let calls = (SAMPLE_S / (now() - start).max(1e-8)) as usize + 1;
    let mut samples = [0.0; SAMPLES];
    for sample in &mut samples {
        let start = now();
        for _ in 0..calls {
            call()?;
        }
        *sample = (now() - start) / calls as f64;
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

/// CPU time of this process.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Bytes that begin with a page.
struct Memory {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Memory {
    fn new(length: usize, mut seed: u64) -> Self {
        let mut bytes = vec![0; length + PAGE];
        let from = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        for word in bytes[from..from + length].chunks_exact_mut(8) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&(seed ^ seed >> 29).to_le_bytes());
        }
        Self { bytes, from, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.from + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.length]
    }
}
