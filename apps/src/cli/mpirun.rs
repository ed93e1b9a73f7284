//! What users of `mpirun` write, in the words of this program.

use std::ffi::OsString;

/// Words of `mpirun`, some of them long and with one dash, and what they are called here.
const WORDS: [(&str, &str); 11] = [
    ("-np", "--ranks"),
    ("--np", "--ranks"),
    ("-wdir", "--wdir"),
    ("-wd", "--wdir"),
    ("-timeout", "--timeout"),
    ("-tag-output", "--tag-output"),
    ("-H", "--hosts"),
    ("-host", "--hosts"),
    ("--host", "--hosts"),
    ("-hostfile", "--hostfile"),
    ("-stdin", "--stdin"),
];

/// The same command line, word by word.
pub(super) fn translated(argv: &[OsString]) -> Vec<OsString> {
    let known = |word: &OsString| WORDS.iter().find(|(theirs, _)| word == theirs);
    argv.iter().map(|word| known(word).map_or(word.clone(), |(_, ours)| ours.into())).collect()
}
