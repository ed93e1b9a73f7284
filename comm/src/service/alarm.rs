//! What a program that computes, and makes no call, can know of failures.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::lifeline::Flag;
use ft_proto::rank::{Generation, Rank};
use ft_proto::wire::control::News;

type Hook = Box<dyn FnMut(&[Rank]) + Send>;

/// Whether a failure is known that was not repaired yet.
///
/// Raised by another thread, whatever the program does meanwhile, and on the launcher's host by the launcher itself, in memory
/// that it shares with its ranks, within a fraction of a millisecond of a death; lowered by
/// [`World::repair`](crate::World::repair). Clones see the same alarm, on any thread. A program that computes for
/// long between two calls looks at it now and then: a look costs as much as reading a few words of memory.
#[derive(Clone, Default)]
pub struct Alarm(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// One more than the newest generation that has failed.
    failed: AtomicU64,
    /// The generation that the program is in.
    current: AtomicU64,
    /// Where the launcher says the same, if it shares memory with this process.
    flag: OnceLock<Flag>,
    listener: Mutex<Listener>,
}

#[derive(Default)]
struct Listener {
    hook: Option<Hook>,
    /// The newest generation that has failed, and the ranks lost in it.
    last: Option<(Generation, Vec<Rank>)>,
}

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarm").field("raised", &self.is_raised()).finish()
    }
}

impl Alarm {
    /// Whether the next call will report a failure, or the end of the job; it may have to wait for the details.
    pub fn is_raised(&self) -> bool {
        let current = self.0.current.load(Ordering::Relaxed);
        self.0.failed.load(Ordering::Acquire) > current
            || self.0.flag.get().is_some_and(|flag| flag.failed() > current)
    }

    /// From now on `flag` raises it too.
    pub(crate) fn heed(&self, flag: Flag) {
        let _ = self.0.flag.set(flag);
    }

    /// Passes `news` on: the hook is called first, the alarm is raised last, so that whoever sees it finds the rest done, unless
    /// the launcher was faster.
    pub fn pass_on(&self, news: News, tell: impl FnOnce(News)) {
        let failed = match &news {
            News::Failed { generation, ranks } => {
                let mut listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner);
                listener.last = Some((*generation, ranks.clone()));
                if let Some(hook) = &mut listener.hook {
                    hook(ranks);
                }
                u64::from(*generation) + 1
            }
            News::Ended { .. } => u64::MAX,
            _ => 0,
        };
        tell(news);
        self.0.failed.fetch_max(failed, Ordering::Release);
    }

    /// The program enters this generation.
    pub(crate) fn entered(&self, generation: Generation) {
        self.0.current.store(u64::from(generation), Ordering::Relaxed);
    }

    /// Calls `hook` at every failure; at once if one is known already.
    pub(crate) fn on_failure(&self, mut hook: Hook) {
        let mut listener = self.0.listener.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.0.current.load(Ordering::Relaxed);
        if let Some((_, ranks)) = listener.last.as_ref().filter(|(failed, _)| u64::from(*failed) >= current) {
            hook(ranks);
        }
        listener.hook = Some(hook);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(alarm: &Alarm, generation: Generation, ranks: &[Rank]) {
        alarm.pass_on(News::Failed { generation, ranks: ranks.to_vec() }, |_| {});
    }

    #[test]
    fn is_raised_from_a_failure_to_its_repair() {
        let alarm = Alarm::default();
        alarm.entered(0);
        assert!(!alarm.is_raised());
        failed(&alarm, 0, &[2]);
        assert!(alarm.clone().is_raised());
        // The next generation fails before the program has entered it.
        failed(&alarm, 1, &[3]);
        alarm.entered(1);
        assert!(alarm.is_raised());
        alarm.entered(2);
        assert!(!alarm.is_raised());
        // Old news is no news.
        failed(&alarm, 1, &[3]);
        assert!(!alarm.is_raised());
        alarm.pass_on(News::Ended { code: 0, message: String::new() }, |_| {});
        assert!(alarm.is_raised());
    }

    #[test]
    fn the_hook_hears_of_every_failure() {
        let alarm = Alarm::default();
        let heard = Arc::new(Mutex::new(vec![]));
        let (copy, late) = (heard.clone(), heard.clone());
        alarm.on_failure(Box::new(move |ranks| copy.lock().unwrap().push(ranks.to_vec())));
        failed(&alarm, 0, &[2]);
        failed(&alarm, 0, &[1, 2]);
        assert_eq!(*heard.lock().unwrap(), [vec![2], vec![1, 2]]);
        // One that comes late hears of what is known.
        alarm.on_failure(Box::new(move |ranks| late.lock().unwrap().push(ranks.to_vec())));
        assert_eq!(heard.lock().unwrap()[2..], [vec![1, 2]]);
        // Whoever sees the alarm finds the hook called and the news told.
        let news = News::Failed { generation: 7, ranks: vec![0] };
        alarm.entered(7);
        alarm.pass_on(news, |_| assert!(heard.lock().unwrap().len() == 4 && !alarm.is_raised()));
        assert!(alarm.is_raised());
    }
}
