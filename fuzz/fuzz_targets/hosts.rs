//! Hosts as `--hosts` and a host file name them: what is read can be written and read, and ranks find a place.

#![no_main]

use ft_fuzz::{BUFFERS, within};
use ft_launch::{Cluster, Host, HostList};
use libfuzzer_sys::fuzz_target;

/// Ranks that are placed.
const RANKS: usize = 100;

fn hosts(list: &HostList) -> Vec<Host> {
    Cluster::new(list, Some("exec".into())).hosts().to_vec()
}

/// Names with colons in them are addresses of IPv6.
fn written(host: &Host) -> String {
    let Host { name, slots, .. } = host;
    if name.contains(':') { format!("[{name}]:{slots}") } else { format!("{name}:{slots}") }
}

fuzz_target!(|text: &str| {
    let enough = BUFFERS + 200 * text.len();
    let listed = within(enough, || text.parse::<HostList>().ok());
    let lines = within(enough, || HostList::from_lines(text).ok());
    for list in listed.into_iter().chain(lines) {
        let hosts = hosts(&list);
        assert!(!hosts.is_empty() && hosts.len() <= text.len());
        assert_eq!(hosts.iter().map(|host| host.slots).sum::<usize>(), list.slots());
        for host in &hosts {
            // It becomes an argument of ssh.
            assert!(!host.name.is_empty() && !host.name.starts_with('-') && host.slots > 0);
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-_@%:".contains(c);
            assert!(host.name.chars().all(plain), "{host:?}");
        }
        let all: Vec<String> = hosts.iter().map(written).collect();
        assert_eq!(all.join(",").parse::<HostList>().as_ref(), Ok(&list));
        assert_eq!(HostList::from_lines(&all.join("\n")).as_ref(), Ok(&list));
        let places = Cluster::new(&list, Some("exec".into())).place(RANKS);
        assert!(places.len() == RANKS && places.iter().all(|place| *place < hosts.len()));
    }
});
