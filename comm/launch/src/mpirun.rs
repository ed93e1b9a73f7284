//! What `mpirun`, `mpiexec` or a batch system with MPI has started: as many processes of `ftrun` as it was told to. The first becomes the launcher, the others become ranks
//! and spares.

/// The process among them that this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiTask {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are.
    pub count: u32,
    /// How many of them are on this host.
    pub beside: u32,
}

/// Number, count, and count on the host: Open MPI, MPICH and Intel MPI, Slurm.
const NAMES: [[&str; 3]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"],
    ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"],
];

impl MpiTask {
    /// That of this process, by the variables of its environment; none if no such command has started it.
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let value = |name| variable(name).and_then(|text| text.parse::<u32>().ok());
        NAMES.iter().find_map(|[number, count, beside]| {
            let (number, count) = (value(number)?, value(count)?);
            let beside = value(beside).filter(|beside| (1..=count).contains(beside)).unwrap_or(1);
            (number < count).then_some(Self { number, count, beside })
        })
    }

    /// Whether there are others on other hosts.
    pub fn spans_hosts(self) -> bool {
        self.beside < self.count
    }

    /// Whether this one becomes the launcher.
    pub fn is_first(self) -> bool {
        self.number == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(variables: &[(&str, &str)]) -> Option<MpiTask> {
        MpiTask::of(&|name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_command_has_its_variables() {
        let open = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        ];
        assert_eq!(task(&open), Some(MpiTask { number: 3, count: 4, beside: 4 }));
        assert!(!task(&open).unwrap().spans_hosts());
        let hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "6"), ("MPI_LOCALNRANKS", "2")];
        assert!(task(&hydra).is_some_and(|task| task.is_first() && task.spans_hosts()));
        // Slurm says how many there are on each host, which may be a list.
        let slurm =
            [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_STEP_TASKS_PER_NODE", "2(x2)")];
        assert!(task(&slurm).is_some_and(MpiTask::spans_hosts));
        for nothing in [
            &[][..],
            &open[..1],
            &[("PMI_RANK", "4"), ("PMI_SIZE", "4")],
            &[("PMI_RANK", "x"), ("PMI_SIZE", "4")],
        ] {
            assert_eq!(task(nothing), None);
        }
    }
}
