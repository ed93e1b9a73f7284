//! Messages that are many, long or scattered.

use ft_proto::endpoint::{AHEAD_BYTES, CREDIT_BYTES};

use crate::common::{Outcome, Run, example};

/// The numbers of a line.
fn numbers(outcome: &Outcome) -> Vec<u64> {
    let words = outcome.stdout.split(|char: char| !char.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_flood_of_seven_senders_is_held_within_their_credit() {
    for transport in ["auto", "tcp"] {
        let run = Run::ftrun(&format!("-n 8 --transport {transport}")).limit(60);
        let outcome = run.arg(example("flood")).finish().expect(0);
        let [7, held, bound] = numbers(&outcome)[..] else { panic!("{outcome}") };
        assert_eq!(bound, 7 * (CREDIT_BYTES + AHEAD_BYTES), "{outcome}");
        // Links, their buffers, and what the allocator rounds up.
        let base = 8 << 20;
        assert!(held < bound + base, "{held} bytes are held, {bound} were promised: {outcome}");
        // Otherwise there was no flood. How much is there at a time is a matter of who runs when.
        assert!(held > CREDIT_BYTES, "only {held} bytes are held: {outcome}");
    }
}

#[test]
fn random_layouts_of_random_lengths_arrive_whole() {
    for (options, seed) in [("-n 8", 1), ("-n 3 --transport tcp", 2), ("-n 1", 3)] {
        let run = Run::ftrun(options).limit(60).arg(example("derived"));
        let arguments = ["--seconds", "1", "--seed", &seed.to_string()].map(str::to_owned);
        let outcome = arguments.iter().fold(run, Run::arg).finish().expect(0);
        assert!(outcome.stdout.contains("all right") && numbers(&outcome)[0] >= 20, "{outcome}");
    }
}

#[test]
#[ignore = "needs 7 GiB of memory and half a minute"]
fn a_message_of_three_gibibytes_arrives_whole() {
    for transport in ["auto", "tcp"] {
        let run = Run::ftrun(&format!("-n 2 --transport {transport}")).limit(300);
        let outcome = run.arg(example("huge")).arg((3u64 << 30).to_string()).finish().expect(0);
        assert!(outcome.stdout.starts_with("3221225472 bytes are right"), "{outcome}");
    }
}
