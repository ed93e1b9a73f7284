//! Jobs of PBS (OpenPBS, PBS Professional, Torque): `PBS_NODEFILE` names a file with a host a line, each as often as it has ranks
//! (`mpiprocs`, `ppn`), `PBS_JOBID` the job.
//!
//! Agents are started by `ssh`. The command of PBS for that, `pbs_tmrsh`, hands on no standard input (`tm_spawn` in its source), on which
//! an agent is told the job key.

use super::{Allocation, AllocationError, Surroundings};
use crate::starter::Starter;

pub(super) fn allocation(around: &Surroundings<'_>) -> Result<Option<Allocation>, AllocationError> {
    let Some(job) = (around.variable)("PBS_JOBID") else { return Ok(None) };
    let hosts = around.hosts_in_file("PBS_NODEFILE")?;
    Ok(hosts.map(|hosts| Allocation {
        name: format!("PBS job {job}"),
        own: hosts.own(),
        hosts,
        starter: Starter::Ssh,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::allocated;
    use super::*;

    const JOB: [(&str, &str); 2] = [("PBS_JOBID", "4242.head"), ("PBS_NODEFILE", "/aux/4242")];

    /// As the MOM writes it for `-l select=2:ncpus=2:mpiprocs=2`.
    #[test]
    fn a_host_has_as_many_slots_as_lines() {
        let text = "r1i0n3.example.org\nr1i0n3.example.org\nr1i0n7.example.org\nr1i0n7.example.org\n";
        let allocation = allocated(&JOB, &[("/aux/4242", text)], &["pbs_tmrsh"]).unwrap().unwrap();
        assert_eq!(allocation.name, "PBS job 4242.head");
        assert_eq!(allocation.hosts, "r1i0n3.example.org:2,r1i0n7.example.org:2".parse().unwrap());
        assert_eq!((allocation.own, allocation.starter), (None, Starter::Ssh));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = |files: &[(&str, &str)]| allocated(&JOB, files, &[]).unwrap_err().to_string();
        assert_eq!(error(&[]), "PBS_NODEFILE is '/aux/4242': No such file; --hosts names hosts");
        assert_eq!(
            error(&[("/aux/4242", "\n")]),
            "PBS_NODEFILE is '/aux/4242': no host is named; --hosts names hosts"
        );
        assert!(error(&[("/aux/4242", "n1\nn;2\n")]).contains("line 2: 'n;2' is no host"));
        assert_eq!(allocated(&JOB[..1], &[], &[]), Ok(None), "an interactive job without nodes");
    }
}
