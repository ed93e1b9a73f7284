//! When a step has to wait for steps that are under way: the rules of [`Step`] as one function.

use super::{Part, Step};

/// What a step reads and sends from; what it changes.
fn parts(step: &Step) -> (Option<&Part>, Option<&Part>) {
    match step {
        Step::Send { part, .. } => (Some(part), None),
        Step::Recv { part, .. } | Step::RecvReduce { part, .. } => (None, Some(part)),
        Step::Copy { from, to } => (Some(from), Some(to)),
        Step::Reduce { other, part, .. } => (Some(other), Some(part)),
        Step::Fence => (None, None),
    }
}

/// Whether `part` is changed by one of `under_way`.
fn changed<'a>(part: &Part, mut under_way: impl Iterator<Item = &'a Step>) -> bool {
    under_way.any(|step| parts(step).1.is_some_and(|other| other.overlaps(part)))
}

/// Whether `part` is read by one of `under_way`.
pub(crate) fn read<'a>(part: &Part, mut under_way: impl Iterator<Item = &'a Step>) -> bool {
    under_way.any(|step| parts(step).0.is_some_and(|other| other.overlaps(part)))
}

/// Whether `step` may not start yet while `under_way` are.
///
/// A part leaves for one rank after the other, so that the first of them has it early and can pass it on. A
/// [`Step::RecvReduce`] of a part that is still being sent starts nevertheless, as its message is received aside; it is
/// the change that waits ([`read`]). So two ranks can exchange a part and reduce into it.
pub(crate) fn must_wait<'a>(step: &Step, under_way: impl Iterator<Item = &'a Step> + Clone) -> bool {
    if matches!(step, Step::Fence) {
        return receives(under_way);
    }
    let (from, to) = parts(step);
    let aside = matches!(step, Step::RecvReduce { .. });
    let sends = matches!(step, Step::Send { .. });
    from.is_some_and(|from| changed(from, under_way.clone()) || (sends && read(from, under_way.clone())))
        || to.is_some_and(|to| changed(to, under_way.clone()) || (!aside && read(to, under_way)))
}

fn receives<'a>(mut under_way: impl Iterator<Item = &'a Step>) -> bool {
    under_way.any(|step| matches!(step, Step::Recv { .. } | Step::RecvReduce { .. }))
}
