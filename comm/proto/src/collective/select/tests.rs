//! Tables as texts, and what is chosen from them.

use proptest::prelude::*;

use super::algorithm::Need;
use super::*;

fn error(text: &str) -> String {
    Selection::parse(text).expect_err(text).to_string()
}

#[test]
fn the_builtin_table_reads_back_as_itself() {
    let builtin = Selection::builtin();
    assert_eq!(builtin.identity(), SELECTION);
    let again = Selection::parse(&builtin.to_string()).expect("it was printed");
    assert_eq!((again.identity(), &again), (SELECTION, &builtin));
}

#[test]
fn the_identity_tells_tables_apart() {
    let table = |text: &str| Selection::parse(text).expect("the text is right").identity().to_owned();
    let ring = table("name: mine\nallreduce * * ring");
    assert!(ring.strip_prefix("mine-").is_some_and(|hash| hash.len() == 8), "{ring}");
    assert_ne!(ring, table("name: mine\nallreduce * bytes<=1 ring"));
    assert_eq!(ring, table("# the same\n\n  name: mine   # again\n\tallreduce  *   *   ring # and again\n"));
    // Lines of different operations may change places.
    let (scan, exscan) = ("scan * * linear\n", "exscan * * linear\n");
    assert_eq!(table(&format!("{scan}{exscan}")), table(&format!("{exscan}{scan}")));
    assert!(table(scan).starts_with("custom-"));
    // A changed table keeps its name, not its identity.
    assert_ne!(table("name: builtin\nallreduce * * ring"), SELECTION);
}

#[test]
fn the_first_line_that_matches_wins() {
    let table = Selection::parse(
        "allreduce  ranks<=4  bytes<=100  recursive-doubling
         allreduce  *         bytes<=200  halving-doubling
         allreduce  ranks<=6  *           tree
         allreduce  *         *           ring",
    )
    .expect("the text is right");
    let chosen = |size, bytes| table.algorithm(Operation::Allreduce, size, bytes, true);
    assert_eq!((chosen(4, 100), chosen(5, 100)), ("recursive-doubling", "halving-doubling"));
    assert_eq!((chosen(4, 101), chosen(4, 201)), ("halving-doubling", "tree"));
    assert_eq!((chosen(6, usize::MAX), chosen(7, 201)), ("tree", "ring"));
}

#[test]
fn an_algorithm_that_does_not_fit_is_passed_over() {
    let table = Selection::parse(
        "allgather  *  *  recursive-doubling
         allgather  *  *  ring
         allreduce  *  *  ring",
    )
    .expect("the text is right");
    let allgather = |size| table.algorithm(Operation::Allgather, size, 0, true);
    assert_eq!((allgather(8), allgather(9)), ("recursive-doubling", "ring"));
    let allreduce = |commutative| table.algorithm(Operation::Allreduce, 5, 0, commutative);
    assert_eq!((allreduce(true), allreduce(false)), ("ring", "recursive-doubling"));
}

/// Of reductions the bits stay, whatever the next line says: ranks may move to other hosts.
#[test]
fn two_levels_want_several_hosts_of_which_one_has_several_ranks() {
    let text = "allreduce * * two-level\nallreduce * * ring\nreduce * * two-level\nreduce * * scatter-gather
                bcast * * two-level\nbcast * * linear";
    let table = Selection::parse(text).expect("the text is right");
    for (hosts, fits) in
        [(&[][..], false), (&[4, 4, 4], false), (&[4, 2, 0], false), (&[4, 2, 4], true), (&[0, 0, 1], true)]
    {
        let shape = Shape { len: 1, hosts, ..Shape::new(1, 3) };
        for (operation, otherwise) in [
            (Operation::Allreduce, "recursive-doubling"),
            (Operation::Reduce, "binomial"),
            (Operation::Bcast, "linear"),
        ] {
            let due = if fits { "two-level" } else { otherwise };
            assert_eq!(table.choose(operation, 8, &shape).name, due, "{operation} on {hosts:?}");
            assert_eq!(steps(operation, "two-level", shape).is_some(), fits, "{operation} on {hosts:?}");
        }
    }
    let few =
        Selection::parse("allreduce * bytes<=7 two-level\nallreduce * * ring").expect("the text is right");
    let chosen = |bytes| few.algorithm(Operation::Allreduce, 3, bytes, true);
    assert_eq!((chosen(7), chosen(8)), ("recursive-doubling", "ring"));
}

/// A job on several hosts has the bits of one host: what two levels stand for is what a table without them would choose.
#[test]
fn two_levels_of_the_builtin_table_stand_for_algorithms_with_the_same_bits() {
    let table = Selection::builtin();
    let mut of_two = 0;
    for (operation, same) in [(Operation::Allreduce, "recursive-doubling"), (Operation::Reduce, "binomial")] {
        for size in 1..=140 {
            let hosts: Vec<usize> = (0..size).map(|rank| rank / 2).collect();
            for bytes in (0..3000).step_by(8) {
                let shape = Shape { hosts: &hosts, ..Shape::new(0, size) };
                if table.choose(operation, bytes, &shape).name == "two-level" {
                    assert_eq!(
                        table.algorithm(operation, size, bytes, true),
                        same,
                        "{operation} {size} {bytes}"
                    );
                    of_two += 1;
                } else {
                    let everywhere = table.algorithm(operation, size, bytes, true);
                    assert_eq!(table.choose(operation, bytes, &shape).name, everywhere);
                }
            }
        }
    }
    assert!(of_two > 10_000, "{of_two}");
}

#[test]
fn named_steps_respect_demands() {
    let starts = equal_starts(6, 1);
    let shape = Shape { starts: &starts, len: 6, ..Shape::new(0, 6) };
    assert!(steps(Operation::Allgather, "recursive-doubling", shape).is_none());
    assert!(steps(Operation::Allgather, "ring", shape).is_some());
    assert!(steps(Operation::Allreduce, "ring", shape).is_some());
    assert!(steps(Operation::Allreduce, "ring", Shape { commutative: false, ..shape }).is_none());
    assert!(steps(Operation::Allreduce, "bruck", shape).is_none());
    assert!(cost(Operation::Allreduce, "ring").is_some() && cost(Operation::Scan, "ring").is_none());
}

/// The last resort must fit everything, and names must be unique, as tables refer to them.
#[test]
fn every_operation_has_a_general_algorithm_and_unique_names() {
    for operation in Operation::ALL {
        assert_eq!(Operation::named(operation.name()), Some(operation));
        let general = Algorithm::of(operation).next().expect("there is one");
        assert_eq!(general.needs, [], "{general:?}");
        let mut names: Vec<_> = operation.algorithms().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), operation.algorithms().count(), "{operation}");
        let commutative = |algorithm: &Algorithm| algorithm.needs.contains(&Need::Commutative);
        assert!(operation.reduces() || !Algorithm::of(operation).any(commutative), "{operation}");
    }
}

#[test]
fn every_line_of_the_builtin_table_is_reached() {
    let table = Selection::builtin();
    let mut reached = vec![false; table.lines().len()];
    for operation in Operation::ALL {
        for size in 1..=140 {
            for bytes in (0..40).map(|bit| 1usize << bit).flat_map(|power| [power - 1, power, power + 1]) {
                for (commutative, hosts) in [true, false].into_iter().flat_map(|it| [(it, 1), (it, 2)]) {
                    let hosts: Vec<usize> = (0..size).map(|rank| rank % hosts).collect();
                    let shape = Shape { commutative, hosts: &hosts, ..Shape::new(0, size) };
                    let matches = |line: &line::Line| line.serves(operation, bytes, &shape).is_some();
                    let first = table.lines().iter().position(matches);
                    reached[first.expect("the builtin table leaves nothing open")] = true;
                }
            }
        }
    }
    let unreached: Vec<_> = table.lines().iter().zip(reached).filter(|(_, reached)| !reached).collect();
    assert!(unreached.is_empty(), "{unreached:?}");
}

#[test]
fn errors_say_the_line_what_is_wrong_and_what_is_allowed() {
    assert_eq!(
        error("# fine\n\nscan * * fast"),
        r#"line 3: no algorithm "fast" for scan; there are recursive-doubling, linear"#
    );
    assert_eq!(
        error("gossip * * fast"),
        "line 1: no operation \"gossip\"; there are barrier, bcast, reduce, allreduce, scan, exscan, \
         reduce-scatter, gather, scatter, allgather, alltoall, alltoallv"
    );
    for ranks in
        ["ranks<4", "ranks<=", "ranks<=+4", "ranks<=-1", "bytes<=4", "4", "ranks<=99999999999999999999"]
    {
        assert_eq!(
            error(&format!("scan {ranks} * linear")),
            format!(r#"line 1: "{ranks}" is no limit of ranks; write ranks<=N or *"#)
        );
    }
    assert_eq!(
        error("scan * ranks<=4 linear"),
        r#"line 1: "ranks<=4" is no limit of bytes; write bytes<=N or *"#
    );
    assert_eq!(
        error("scan ranks<=0 * linear"),
        "line 1: no communicator has 0 ranks; write ranks<=N from 1 up, or *"
    );
    assert_eq!(
        error("scan linear"),
        "line 1: 2 columns, 4 are due: OPERATION, ranks<=N or *, bytes<=N or *, ALGORITHM"
    );
    for operation in ["barrier", "alltoallv"] {
        let name = Operation::named(operation).and_then(|it| it.algorithms().next()).expect("there is one");
        assert_eq!(
            error(&format!("{operation} * bytes<=1 {name}")),
            format!(
                "line 1: {operation} is not chosen by bytes (no number of bytes is known to all its ranks); write *"
            )
        );
    }
    assert_eq!(
        error("name: a\nname: b"),
        "line 2: a second name; the first is on line 1, and one is allowed"
    );
    for name in ["", "two words", "a/b", &"x".repeat(41), "\u{fc}"] {
        let text = error(&format!("name: {name}"));
        assert!(
            text.ends_with("is no name of a table; 1 to 40 letters, digits, '-', '_' and '.' are"),
            "{text}"
        );
    }
}

#[test]
fn bytes_are_those_that_all_ranks_know() {
    let starts = [0, 10, 10, 15];
    let shape = Shape { len: 4, element_bytes: 8, starts: &starts, ..Shape::new(1, 3) };
    for operation in [Operation::Bcast, Operation::Reduce, Operation::Scan, Operation::Alltoall] {
        assert_eq!(shape.bytes(operation), 32, "{operation}");
    }
    assert_eq!(shape.bytes(Operation::ReduceScatter), 120);
    assert_eq!(shape.bytes(Operation::Allgather), 40);
    assert_eq!((shape.bytes(Operation::Barrier), shape.bytes(Operation::Alltoallv)), (0, 0));
    let huge = Shape { len: usize::MAX / 2, element_bytes: 16, ..Shape::new(0, 2) };
    assert_eq!(huge.bytes(Operation::Bcast), usize::MAX);
}

/// A line with an algorithm of its operation.
fn line() -> impl Strategy<Value = String> {
    let limit = |noun: &'static str| {
        prop_oneof![
            Just("*".to_owned()),
            (1..1usize << 20).prop_map(move |limit| format!("{noun}<={limit}")),
            Just(format!("{noun}<={}", usize::MAX)),
        ]
    };
    let columns = (0..Operation::ALL.len(), any::<prop::sample::Index>(), limit("ranks"), limit("bytes"));
    columns.prop_map(|(operation, name, ranks, bytes)| {
        let operation = Operation::ALL[operation];
        let names: Vec<_> = operation.algorithms().collect();
        let bytes = if operation.has_bytes() { bytes } else { "*".into() };
        format!("{operation} {ranks}\t{bytes}  {}", names[name.index(names.len())])
    })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(name in prop::option::of("[A-Za-z0-9._-]{1,40}"), lines in prop::collection::vec(line(), 0..20)) {
        let name = name.map(|name| format!("name:{name}\n")).unwrap_or_default();
        let table = Selection::parse(&format!("{name}{}", lines.join("\r\n# more\n"))).expect("the text is right");
        let again = Selection::parse(&table.to_string()).expect("it was printed");
        prop_assert_eq!(again.identity(), table.identity());
        prop_assert_eq!(again, table);
    }

    #[test]
    fn any_text_is_a_table_or_an_error_of_one_line(text in "(\\PC|[\n\r\t \u{0}<=*#:]){0,200}") {
        if let Err(error) = Selection::parse(&text) {
            prop_assert!((1..=text.lines().count()).contains(&error.line));
            let message = error.to_string();
            prop_assert!(!message.contains(char::is_control), "{:?}", message);
        }
    }

    #[test]
    fn nearly_right_texts_do_no_harm(line in line(), at in any::<prop::sample::Index>(), other in any::<char>()) {
        let mut chars: Vec<char> = line.chars().collect();
        let at = at.index(chars.len());
        chars[at] = other;
        let text: String = chars.into_iter().collect();
        if let Ok(table) = Selection::parse(&text) {
            prop_assert_eq!(Selection::parse(&table.to_string()), Ok(table));
        }
    }
}

#[test]
fn where_ranks_share_cores_few_bytes_go_through_one_of_them_and_bits_stay() {
    let (builtin, crowded) = (Selection::builtin(), Selection::crowded());
    let named = |table: &Selection, operation, size, bytes| table.algorithm(operation, size, bytes, true);
    assert_eq!(named(&crowded, Operation::Barrier, 8, 0), "linear");
    assert_eq!(named(&crowded, Operation::Barrier, 2, 0), "dissemination");
    for (size, bytes) in [(4, 8), (64, 2048)] {
        assert_eq!(named(&crowded, Operation::Allreduce, size, bytes), "linear");
        assert_eq!(named(&builtin, Operation::Allreduce, size, bytes), "recursive-doubling");
    }
    for operation in [Operation::Allreduce, Operation::Reduce, Operation::Scan, Operation::ReduceScatter] {
        for (size, bytes) in [(2, 8), (3, 100), (8, 2049), (8, 1 << 20), (64, 4096)] {
            assert_eq!(named(&crowded, operation, size, bytes), named(&builtin, operation, size, bytes));
        }
    }
    assert_eq!(crowded.identity(), builtin.identity());
}
