//! A table of collective algorithms: what is read can be written and read, and chooses an algorithm that there is for
//! every case.

#![no_main]

use ft_comm::collective::{Operation, Selection};
use ft_fuzz::{BUFFERS, within};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = within(BUFFERS + 100 * text.len(), || Selection::parse(text));
    let table = match read {
        Ok(table) => table,
        Err(error) => {
            let lines = text.lines().count();
            return assert!((1..=lines).contains(&error.line), "{error}");
        }
    };
    let again = Selection::parse(&table.to_string()).expect("it was a table");
    assert_eq!((&again, again.identity()), (&table, table.identity()));
    for operation in Operation::ALL {
        for size in [1, 2, 3, 7, 8, 4096] {
            for bytes in [0, 1, 8192, 8193, usize::MAX] {
                for commutative in [true, false] {
                    let name = table.algorithm(operation, size, bytes, commutative);
                    assert!(operation.algorithms().any(|known| known == name), "{operation} {name}");
                }
            }
        }
    }
});
