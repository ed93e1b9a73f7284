//! Jobs of LSF: `LSB_DJOB_HOSTFILE` names a file with a host a line, each as often as it has slots, `LSB_JOBID` the job. Where there is
//! no such file `LSB_MCPU_HOSTS` has hosts and slots in turn.
//!
//! The first of them is where the script runs. It is given for ranks like the others ("LSF starts one controlling process for the parallel
//! batch job on the first host in the host list", Administering LSF, How LSF runs parallel jobs), but for clusters under IBM's CSM, where it is a
//! launch node (`bsub -ln_slots` in IBM's reference); there `CSM_ALLOCATION_ID` is set.
//!
//! Agents are started by `blaunch HOST COMMAND`, which IBM's reference calls a replacement of `rsh` and `ssh`, and which hands standard input on
//! unless it is given `-n`. Where it is missing, and under CSM, that is done by `ssh`.

use super::{Allocation, AllocationError, Surroundings};
use crate::cluster::{Host, HostList, SLOTS_MAX};
use crate::starter::Starter;

/// Hosts and slots in turn.
const HOSTS: &str = "LSB_MCPU_HOSTS";
/// The command of LSF that starts a program on another host.
const BLAUNCH: &str = "blaunch";

pub(super) fn allocation(around: &Surroundings<'_>) -> Result<Option<Allocation>, AllocationError> {
    let Some(job) = (around.variable)("LSB_JOBID") else { return Ok(None) };
    let hosts = match around.hosts_in_file("LSB_DJOB_HOSTFILE")? {
        Some(hosts) => Some(hosts),
        None => (around.variable)(HOSTS).map(pairs).transpose()?,
    };
    let Some(hosts) = hosts else { return Ok(None) };
    let has_launch_node = (around.variable)("CSM_ALLOCATION_ID").is_some();
    let hosts = if has_launch_node { hosts.without_first() } else { hosts };
    let starter = match (around.has_command)(BLAUNCH) && !has_launch_node {
        true => Starter::Command(BLAUNCH.into()),
        false => Starter::Ssh,
    };
    Ok(Some(Allocation { name: format!("LSF job {job}"), own: hosts.own(), hosts, starter }))
}

/// Hosts and slots in turn, with blanks in between.
fn pairs(text: String) -> Result<HostList, AllocationError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pair = |pair: &[&str]| match *pair {
        [name, slots] => {
            Host::new(name, slots.parse().ok().filter(|slots| (1..=SLOTS_MAX).contains(slots))?).ok()
        }
        _ => None,
    };
    let hosts = words.chunks(2).map(pair).collect::<Option<HostList>>().filter(|_| !words.is_empty());
    hosts.ok_or(AllocationError::Hosts { variable: HOSTS, text })
}

#[cfg(test)]
mod tests {
    use super::super::tests::allocated;
    use super::*;

    const JOB: [(&str, &str); 3] = [
        ("LSB_JOBID", "1701"),
        ("LSB_DJOB_HOSTFILE", "/home/me/.lsbatch/1701.hostfile"),
        (HOSTS, "hosta 2 hostb 2 "),
    ];
    const FILE: [(&str, &str); 1] = [("/home/me/.lsbatch/1701.hostfile", "hosta\nhosta\nhostb\nhostb\n")];

    /// As for `bsub -n 4 -R "span[ptile=2]"`.
    #[test]
    fn the_file_has_all_hosts_and_the_first_is_one_of_them() {
        let allocation = allocated(&JOB, &FILE, &[BLAUNCH]).unwrap().unwrap();
        assert_eq!((allocation.name.as_str(), allocation.own), ("LSF job 1701", None));
        assert_eq!(allocation.hosts, "hosta:2,hostb:2".parse().unwrap());
        assert_eq!(allocation.starter, Starter::Command(BLAUNCH.into()));
        assert_eq!(allocated(&JOB, &FILE, &[]).unwrap().unwrap().starter, Starter::Ssh);
    }

    #[test]
    fn without_the_file_there_are_pairs() {
        let of = |text: &str| allocated(&[JOB[0], (HOSTS, text)], &[], &[]);
        assert_eq!(of("hosta 2 hostb 1").unwrap().unwrap().hosts, "hosta:2,hostb".parse().unwrap());
        for text in ["", "hosta", "hosta 0", "hosta x", "2 hosta", "h;a 2"] {
            let error = of(text).unwrap_err().to_string();
            assert_eq!(error, format!("{HOSTS} is '{text}', which is no list of hosts; --hosts names them"));
        }
        assert_eq!(allocated(&JOB[..1], &[], &[]), Ok(None), "not started by LSF for several slots");
    }

    /// As on Summit: one slot on the launch node, 42 on each of the others.
    #[test]
    fn a_launch_node_gets_no_ranks() {
        let text = format!("batch5\n{}{}", "a01n01\n".repeat(42), "a01n02\n".repeat(42));
        let variables = [JOB[0], JOB[1], ("CSM_ALLOCATION_ID", "9")];
        let allocation = allocated(&variables, &[(FILE[0].0, &text)], &[BLAUNCH]).unwrap().unwrap();
        assert_eq!(allocation.hosts, "a01n01:42,a01n02:42".parse().unwrap());
        assert_eq!(allocation.starter, Starter::Ssh);
    }
}
