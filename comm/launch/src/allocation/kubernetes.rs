//! Indexed Jobs of Kubernetes with a headless service. A pod there is called `JOB-INDEX` (`HOSTNAME`), its index is `JOB_COMPLETION_INDEX`, and
//! the others are found as `JOB-INDEX.SERVICE`. How many there are, and what the service is called, no variable says by itself: the
//! manifest of the job sets `FTRUN_PODS` and `FTRUN_SERVICE` beside each other. Without `FTRUN_PODS` a pod is a host like any other.
//!
//! Agents are started by `ssh`, so the other pods run `sshd`.

use super::{Allocation, AllocationError, Surroundings};
use crate::cluster::{Host, HostList};
use crate::starter::Starter;

const INDEX: &str = "JOB_COMPLETION_INDEX";
const PODS: &str = "FTRUN_PODS";
const SERVICE: &str = "FTRUN_SERVICE";
const NAME: &str = "HOSTNAME";

/// Most pods of a job.
const PODS_MAX: usize = 1 << 16;

pub(super) fn allocation(around: &Surroundings<'_>) -> Result<Option<Allocation>, AllocationError> {
    let (Some(index), Some(pods)) = ((around.variable)(INDEX), (around.variable)(PODS)) else {
        return Ok(None);
    };
    let count = pods.parse().ok().filter(|count| (1..=PODS_MAX).contains(count));
    let wrong = |variable, text, what| AllocationError::Pods { variable, text, what };
    let count = count.ok_or_else(|| wrong(PODS, pods, "no number of pods"))?;
    let pod = (around.variable)(NAME).unwrap_or_default();
    let Some(job) = pod.strip_suffix(&index).and_then(|job| job.strip_suffix('-')) else {
        return Err(wrong(NAME, pod, "no pod of an indexed job: JOB-INDEX"));
    };
    let service = (around.variable)(SERVICE).filter(|service| !service.is_empty());
    let Some(service) = service else {
        return Err(wrong(SERVICE, String::new(), "not the name of the headless service"));
    };
    let name = |index: &dyn std::fmt::Display| format!("{job}-{index}.{service}");
    let hosts = (0..count).map(|index| Host::new(&name(&index), 1)).collect::<Result<HostList, _>>();
    Ok(Some(Allocation {
        name: format!("Kubernetes job {job}"),
        hosts: hosts.map_err(AllocationError::Host)?,
        own: Some(name(&index)),
        starter: Starter::Ssh,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::allocated;
    use super::*;

    #[test]
    fn pods_are_found_by_the_service() {
        let variables = [(INDEX, "0"), (PODS, "3"), (SERVICE, "cg"), (NAME, "poisson-0")];
        let allocation = allocated(&variables, &[], &[]).unwrap().unwrap();
        assert_eq!(allocation.name, "Kubernetes job poisson");
        assert_eq!(allocation.hosts, "poisson-0.cg,poisson-1.cg,poisson-2.cg".parse().unwrap());
        assert_eq!((allocation.own.as_deref(), allocation.starter), (Some("poisson-0.cg"), Starter::Ssh));
        let without_pods = [variables[0], variables[2], variables[3]];
        assert_eq!(allocated(&without_pods, &[], &[]), Ok(None));
    }

    #[test]
    fn what_the_manifest_forgets_is_named() {
        let error = |pods, service, name| {
            let variables = [(INDEX, "1"), (PODS, pods), (SERVICE, service), (NAME, name)];
            allocated(&variables, &[], &[]).unwrap_err().to_string()
        };
        assert!(error("0", "cg", "poisson-1").starts_with("FTRUN_PODS is '0', which is no number of pods;"));
        assert!(
            error("all", "cg", "poisson-1").starts_with("FTRUN_PODS is 'all', which is no number of pods;")
        );
        assert!(error("3", "", "poisson-1").starts_with("FTRUN_SERVICE is '', which is not the name of"));
        assert!(
            error("3", "cg", "poisson-2")
                .starts_with("HOSTNAME is 'poisson-2', which is no pod of an indexed")
        );
    }
}
