//! Jobs of Slurm, in a batch script (`sbatch`) and in a shell (`salloc`): `SLURM_JOB_NODELIST` has the nodes, `SLURM_TASKS_PER_NODE` the number of
//! tasks of each, and `SLURMD_NODENAME` the node where the script runs. Agents are steps of the job, started by `srun`. A step whose tasks are to be
//! one job has nodes and tasks of its own, and agents on all of these: its first task has cores for one rank alone.

use super::{Allocation, AllocationError, Surroundings};
use crate::cluster::{Host, HostList, SLOTS_MAX};
use crate::starter::{SRUN, Starter};

/// Most hosts that a list may name.
const HOSTS_MAX: usize = 1 << 16;

/// Tasks that `srun` has started, each with the same program, which are to be one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// How many, more than one.
    pub count: u64,
    /// This is the first one, which starts the job; the others stand aside.
    pub is_first: bool,
}

impl Tasks {
    /// Those that this process is one of, by the variables of its environment; none if it is alone.
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let count = variable("SLURM_STEP_NUM_TASKS")?.parse().ok().filter(|count| *count > 1)?;
        let is_first = variable("SLURM_PROCID").is_none_or(|own| own == "0");
        Some(Self { count, is_first })
    }
}

pub(super) fn allocation(around: &Surroundings<'_>) -> Result<Option<Allocation>, AllocationError> {
    let variable = around.variable;
    let tasks = Tasks::of(variable);
    let nodes = if tasks.is_some() { "SLURM_STEP_NODELIST" } else { "SLURM_JOB_NODELIST" };
    let (Some(job), Some(text)) = (variable("SLURM_JOB_ID"), variable(nodes)) else { return Ok(None) };
    let names = match expand_list(&text) {
        Some(names) if !names.is_empty() => names,
        _ => return Err(AllocationError::Hosts { variable: nodes, text }),
    };
    let slots = slots(around, names.len(), tasks)?;
    let hosts = names.iter().zip(slots).map(|(name, slots)| Host::new(name, slots));
    let hosts = hosts.collect::<Result<HostList, _>>().map_err(AllocationError::Host)?;
    let name = format!("Slurm job {job}");
    let own = variable("SLURMD_NODENAME").filter(|_| tasks.is_none());
    if names.iter().any(|name| Some(name) != own.as_ref()) && !(around.has_command)(SRUN) {
        return Err(AllocationError::Command { name, command: SRUN });
    }
    Ok(Some(Allocation { name, hosts, own, starter: Starter::Slurm }))
}

/// How many tasks each of the hosts has, or cores if no tasks were asked for.
fn slots(
    around: &Surroundings<'_>,
    hosts: usize,
    tasks: Option<Tasks>,
) -> Result<Vec<usize>, AllocationError> {
    let counts: &[&'static str] = match tasks {
        Some(_) => &["SLURM_STEP_TASKS_PER_NODE"],
        None => &["SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"],
    };
    let said = counts.iter().copied().find_map(|name| Some((name, (around.variable)(name)?)));
    let Some((variable, text)) = said else { return Ok(vec![1; hosts]) };
    let slots = expand_counts(&text).filter(|slots| slots.len() == hosts);
    slots.ok_or(AllocationError::Counts { variable, text, hosts })
}

/// The names of a list such as `a,rack[0-1]n[08-10,12]`; none if it is no such list or names too many.
fn expand_list(text: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (vec![], text);
    while !rest.is_empty() {
        let mut depth = 0;
        let is_end = |c: char| {
            depth += match c {
                '[' => 1,
                ']' => -1,
                _ => 0,
            };
            c == ',' && depth == 0
        };
        let end = rest.find(is_end).unwrap_or(rest.len());
        expand(&rest[..end], String::new(), &mut names)?;
        rest = match rest[end..].strip_prefix(',') {
            Some("") => return None,
            Some(rest) => rest,
            None => "",
        };
    }
    Some(names)
}

/// Adds `before` with everything that `text` stands for behind it.
fn expand(text: &str, before: String, names: &mut Vec<String>) -> Option<()> {
    let Some((fixed, rest)) = text.split_once('[') else {
        let name = before + text;
        (!name.is_empty() && !text.contains(']') && names.len() < HOSTS_MAX).then(|| names.push(name))?;
        return Some(());
    };
    let (ranges, rest) = rest.split_once(']')?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (number(first)?, number(last)?);
        (from <= to && to - from < HOSTS_MAX).then_some(())?;
        for at in from..=to {
            // Numbers are as long as the first one is written.
            expand(rest, format!("{before}{fixed}{at:0width$}", width = first.len()), names)?;
        }
    }
    Some(())
}

/// As many numbers as `2(x3),1` stands for: four; none if it stands for none, or for one that is no number of slots.
fn expand_counts(text: &str) -> Option<Vec<usize>> {
    let mut counts = vec![];
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, number(times.strip_suffix(')')?)?),
            None => (part, 1),
        };
        let count = number(count).filter(|count| (1..=SLOTS_MAX).contains(count))?;
        (times <= HOSTS_MAX - counts.len()).then(|| counts.extend(std::iter::repeat_n(count, times)))?;
    }
    Some(counts)
}

/// A number of digits alone.
fn number(text: &str) -> Option<usize> {
    let is_plain = !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::allocated;
    use super::*;

    fn of_slurm(variables: &[(&str, &str)]) -> Result<Option<Allocation>, AllocationError> {
        allocated(variables, &[], &[SRUN])
    }

    #[test]
    fn hosts_and_slots_of_a_job() {
        let variables = [
            ("SLURM_JOB_ID", "17"),
            ("SLURM_JOB_NODELIST", "n[1-3]"),
            ("SLURM_TASKS_PER_NODE", "2(x2),1"),
            ("SLURM_JOB_CPUS_PER_NODE", "8(x3)"),
            ("SLURMD_NODENAME", "n1"),
        ];
        let allocation = of_slurm(&variables).unwrap().unwrap();
        assert_eq!((allocation.name.as_str(), allocation.own.as_deref()), ("Slurm job 17", Some("n1")));
        assert_eq!(allocation.hosts, "n1:2,n2:2,n3:1".parse().unwrap());
        let without_tasks: Vec<_> =
            variables.into_iter().filter(|(name, _)| !name.contains("TASKS")).collect();
        assert_eq!(of_slurm(&without_tasks).unwrap().unwrap().hosts.slots(), 24);
        assert_eq!(of_slurm(&variables[..2]).unwrap().unwrap().hosts.slots(), 3);
        assert_eq!(of_slurm(&variables[1..]), Ok(None), "outside of a job");
    }

    #[test]
    fn tasks_of_a_step_are_one_job_of_the_first_one() {
        let step = |own| {
            [
                ("SLURM_JOB_ID", "17"),
                ("SLURM_JOB_NODELIST", "n[1-3]"),
                ("SLURM_TASKS_PER_NODE", "8(x3)"),
                ("SLURM_STEP_NODELIST", "n[1-2]"),
                ("SLURM_STEP_TASKS_PER_NODE", "3,1"),
                ("SLURM_STEP_NUM_TASKS", "4"),
                ("SLURM_PROCID", own),
                ("SLURMD_NODENAME", "n1"),
            ]
        };
        let allocation = of_slurm(&step("0")).unwrap().unwrap();
        assert_eq!((allocation.hosts, allocation.own), ("n1:3,n2".parse().unwrap(), None));
        let tasks = |variables: &[(&str, &str)]| {
            Tasks::of(&|name| Some(variables.iter().find(|(other, _)| *other == name)?.1.to_owned()))
        };
        assert_eq!(tasks(&step("0")), Some(Tasks { count: 4, is_first: true }));
        assert_eq!(tasks(&step("3")), Some(Tasks { count: 4, is_first: false }));
        // A batch script is no task, whatever number it has.
        assert_eq!(tasks(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(tasks(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]), None);
    }

    #[test]
    fn lists_as_slurm_writes_them() {
        for (text, names) in [
            ("n1", "n1"),
            ("n[1,3]", "n1 n3"),
            ("n[08-10,12],login", "n08 n09 n10 n12 login"),
            ("a,rack[0-1]n[1-2]-ib", "a rack0n1-ib rack0n2-ib rack1n1-ib rack1n2-ib"),
            ("n[001-002]", "n001 n002"),
        ] {
            assert_eq!(expand_list(text).unwrap().join(" "), names, "{text}");
        }
        assert_eq!(expand_list("n[0-65535]").unwrap().len(), HOSTS_MAX);
        for text in [
            "n[1-",
            "n[",
            "n]",
            "n[]",
            "n[2-1]",
            "n[a]",
            "n[1--2]",
            "n,",
            ",n",
            "n[0-65536]",
            "n[0-999][0-99]",
        ] {
            assert_eq!(expand_list(text), None, "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_said() {
        let with = |nodes, tasks| {
            let variables =
                [("SLURM_JOB_ID", "1"), ("SLURM_JOB_NODELIST", nodes), ("SLURM_TASKS_PER_NODE", tasks)];
            of_slurm(&variables).unwrap_err().to_string()
        };
        assert_eq!(
            with("n[1-", "1"),
            "SLURM_JOB_NODELIST is 'n[1-', which is no list of hosts; --hosts names them"
        );
        for tasks in ["2", "2(x4)", "0(x3)", "2(x3", "", "x", "1,1,1,"] {
            let said =
                format!("SLURM_TASKS_PER_NODE is '{tasks}', which is no number of tasks for each of 3 hosts");
            assert!(with("n[1-3]", tasks).starts_with(&said), "{}", with("n[1-3]", tasks));
        }
        assert!(with("a;b", "1").starts_with("a host of the allocation: 'a;b' is no host"));
    }

    #[test]
    fn other_nodes_need_srun() {
        let of = |nodes| {
            let variables = [("SLURM_JOB_ID", "9"), ("SLURM_JOB_NODELIST", nodes), ("SLURMD_NODENAME", "n1")];
            allocated(&variables, &[], &[])
        };
        let complaint =
            "Slurm job 9 starts things on its hosts by srun, and there is no such command in $PATH";
        assert_eq!(of("n[1-2]").unwrap_err().to_string(), complaint);
        assert_eq!(of("n1").unwrap().unwrap().hosts.slots(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(nodes in "[-a0-9,\\[\\]]{0,16}|\\PC{0,9}", counts in "[0-9x(),]{0,12}") {
            if let Some(names) = expand_list(&nodes) {
                prop_assert!(names.len() <= HOSTS_MAX && names.iter().all(|name| !name.is_empty()));
            }
            if let Some(counts) = expand_counts(&counts) {
                prop_assert!(counts.len() <= HOSTS_MAX && !counts.contains(&0));
            }
        }
    }
}
