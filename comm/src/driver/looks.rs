//! How a call looks for a short message before it makes an operation of its receive: often, then between yields, at one link alone. What takes longer
//! is for [`super::waiting`], which looks at everything.

use super::waiting::Waiting;
use crate::service::Service;
use crate::transport::{Patience, Transport};

/// A look at a link begins with so many that see next to nothing else, where that is cheap.
pub(super) const GLANCES: u32 = 16;
/// So often others run meanwhile at most.
const YIELDS: u32 = 15;

/// See the module.
pub(super) struct Looks<'a> {
    waiting: &'a mut Waiting,
    service: &'a dyn Service,
    spins: u32,
    yields: u32,
}

impl<'a> Looks<'a> {
    pub(super) fn new(waiting: &'a mut Waiting, service: &'a dyn Service) -> Self {
        Self { waiting, service, spins: 0, yields: 0 }
    }

    /// How often to glance at a link in a look. Where cores are shared the sender does not run meanwhile.
    pub(super) fn glances(&self) -> u32 {
        if self.waiting.patience.spins > 0 { GLANCES } else { 1 }
    }

    /// A message was found: the next one has as much time.
    pub(super) fn found(&mut self) {
        (self.spins, self.yields) = (0, 0);
    }

    /// A look has found nothing: whether there is to be another one, before which others may have run.
    pub(super) fn again(&mut self, transport: &mut dyn Transport) -> bool {
        let Patience { spins, yields, gives_way } = self.waiting.patience;
        if self.spins < spins {
            self.spins += 1;
            return true;
        }
        let sleeps_soon = gives_way.is_some() && self.waiting.company.is_there();
        if self.yields == yields.min(YIELDS) || sleeps_soon {
            return false;
        }
        self.yields += 1;
        let Waiting { company, clock, .. } = &mut *self.waiting;
        match gives_way {
            Some(slice) => {
                company.yields(self.yields, slice, || self.service.now(clock), || transport.relax());
            }
            None => transport.relax(),
        }
        true
    }
}

/// What `call` does with so many looks that see nothing, without letting others run.
#[cfg(test)]
pub(super) fn with_looks<T>(spins: u32, call: impl FnOnce(&mut Looks<'_>) -> T) -> T {
    let mut waiting = Waiting::default();
    waiting.patience = Patience { spins, ..Patience::default() };
    call(&mut Looks::new(&mut waiting, &crate::service::alone::Alone::default()))
}

#[cfg(test)]
mod tests {
    use super::super::wires::wires;
    use super::*;
    use crate::service::alone::Alone;
    use std::time::Duration;

    #[test]
    fn a_look_is_followed_by_others_then_by_yields_and_then_by_none() {
        let (mut waiting, service, mut transport) =
            (Waiting::default(), Alone::default(), wires(1, 1).remove(0));
        let slice = Some(Duration::from_secs(100));
        waiting.patience = Patience { spins: 5, yields: 2000, gives_way: slice };
        let mut looks = Looks::new(&mut waiting, &service);
        let mut count = || (0..100).take_while(|_| looks.again(&mut transport)).count();
        assert_eq!((count(), count()), (5 + YIELDS as usize, 0));
        looks.found();
        assert_eq!((0..100).take_while(|_| looks.again(&mut transport)).count(), 5 + YIELDS as usize);
        // Who is to sleep at once has one look; who has company does not yield.
        waiting.patience = Patience::default();
        assert!(!Looks::new(&mut waiting, &service).again(&mut transport));
        waiting.patience = Patience { spins: 0, yields: 60, gives_way: Some(Duration::ZERO) };
        let mut looks = Looks::new(&mut waiting, &service);
        assert_eq!(looks.glances(), 1);
        assert_eq!((0..100).take_while(|_| looks.again(&mut transport)).count(), 2, "the second is timed");
    }
}
