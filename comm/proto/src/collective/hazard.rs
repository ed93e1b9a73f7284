//! When a step has to wait for steps that are under way: the rules of [`Step`] as one function.

use std::slice::from_ref;

use super::{Span, Step};

/// What a step reads and sends from; what it changes.
pub fn parts(step: &Step) -> (&[Span], &[Span]) {
    match step {
        Step::Send { part, .. } => (from_ref(part), &[]),
        Step::Recv { part, .. } | Step::RecvReduce { part, .. } => (&[], from_ref(part)),
        Step::Copy { from, to } => (from_ref(from), from_ref(to)),
        Step::Reduce { other, part, .. } => (from_ref(other), from_ref(part)),
        Step::Apply { reads, changes, .. } => (reads, changes),
        Step::Fence => (&[], &[]),
    }
}

/// Whether `part` is changed by one of `under_way`.
fn changed<'a>(part: &Span, mut under_way: impl Iterator<Item = &'a Step>) -> bool {
    under_way.any(|step| parts(step).1.iter().any(|other| other.overlaps(part)))
}

/// Whether `part` is read by one of `under_way`.
pub fn read<'a>(part: &Span, mut under_way: impl Iterator<Item = &'a Step>) -> bool {
    under_way.any(|step| parts(step).0.iter().any(|other| other.overlaps(part)))
}

/// Whether `step` may not start yet while `under_way` are.
///
/// A part leaves for one rank after the other, so that the first of them has it early and can pass it on. A
/// [`Step::RecvReduce`] of a part that is still being sent starts nevertheless, as its message is received aside; it is
/// the change that waits ([`read`]). So two ranks can exchange a part and reduce into it.
pub fn must_wait<'a>(step: &Step, under_way: impl Iterator<Item = &'a Step> + Clone) -> bool {
    if matches!(step, Step::Fence) {
        return receives(under_way);
    }
    let (from, to) = parts(step);
    let aside = matches!(step, Step::RecvReduce { .. });
    let sends = matches!(step, Step::Send { .. });
    from.iter().any(|from| changed(from, under_way.clone()) || (sends && read(from, under_way.clone())))
        || to.iter().any(|to| changed(to, under_way.clone()) || (!aside && read(to, under_way.clone())))
}

fn receives<'a>(mut under_way: impl Iterator<Item = &'a Step>) -> bool {
    under_way.any(|step| matches!(step, Step::Recv { .. } | Step::RecvReduce { .. }))
}
