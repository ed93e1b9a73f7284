//! Where a process stands in its job, as scripts and programs that know nothing of this library read it: in the variables that
//! Open MPI, MPICH and PyTorch have for it.

use ft_proto::wire::agent::Standing;

/// Rank, ranks that compute, rank among those of the host.
const RANKS: [&str; 3] = ["OMPI_COMM_WORLD_RANK", "RANK", "PMI_RANK"];
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "WORLD_SIZE", "PMI_SIZE"];
const LOCALS: [&str; 2] = ["OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"];

/// All of them. A process that has no rank must have none of them, not even from whoever has started the launcher.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    RANKS.into_iter().chain(SIZES).chain(LOCALS)
}

/// What a process finds in its environment.
pub(super) fn variables(standing: Standing) -> impl Iterator<Item = (String, String)> {
    let Standing { rank, size, local } = standing;
    let numbers = [(&RANKS[..], rank), (&SIZES, size), (&LOCALS, local)];
    numbers
        .into_iter()
        .flat_map(|(names, number)| names.iter().map(move |name| ((*name).to_owned(), number.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_number() {
        let all: Vec<(String, String)> = variables(Standing { rank: 5, size: 6, local: 1 }).collect();
        assert!(all.iter().map(|(name, _)| name.as_str()).eq(names()));
        let of =
            |wanted: &str| all.iter().find(|(name, _)| name == wanted).map(|(_, number)| number.as_str());
        assert_eq!((of("PMI_RANK"), of("WORLD_SIZE"), of("LOCAL_RANK")), (Some("5"), Some("6"), Some("1")));
    }
}
