//! Checkpoints in files: when they are asked for while the program computes, and what has become of them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ft_proto::wire::control::{Saved, ToArbiter};

type Hook = Box<dyn FnMut() + Send>;
type Say = Box<dyn Fn(ToArbiter) + Send + Sync>;

/// The launcher asks for checkpoints in files (a signal has told it to), and hears of those that are there. For a layer that writes
/// them, from any thread; clones are the same.
#[derive(Clone, Default)]
pub struct Saves(Arc<Shared>);

#[derive(Default)]
struct Shared {
    hook: Mutex<Listener>,
    /// How the launcher is told; not set without one.
    say: OnceLock<Say>,
}

#[derive(Default)]
struct Listener {
    hook: Option<Hook>,
    /// A request came before the hook.
    is_asked: bool,
}

impl std::fmt::Debug for Saves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saves").finish_non_exhaustive()
    }
}

impl Saves {
    /// Whoever is told what has become of checkpoints is told by `say`.
    pub fn new(say: impl Fn(ToArbiter) + Send + Sync + 'static) -> Self {
        let saves = Self::default();
        let _ = saves.0.say.set(Box::new(say));
        saves
    }

    /// From now on `hook` is called when what is protected is to be written to files at once. It must not wait for anything: the thread
    /// that calls it tells the launcher that this process lives. A request that has come before counts too.
    pub fn on_request(&self, mut hook: impl FnMut() + Send + 'static) {
        let mut listener = self.listener();
        if std::mem::take(&mut listener.is_asked) {
            hook();
        }
        listener.hook = Some(Box::new(hook));
    }

    /// Nobody writes any more.
    pub fn forget(&self) {
        self.listener().hook = None;
    }

    /// Tells the launcher what has become of a checkpoint.
    pub fn say(&self, saved: Saved) {
        if let Some(say) = self.0.say.get() {
            say(ToArbiter::Saved(saved));
        }
    }

    /// Asks for checkpoints in files.
    pub fn request(&self) {
        let mut listener = self.listener();
        match &mut listener.hook {
            Some(hook) => hook(),
            None => listener.is_asked = true,
        }
    }

    fn listener(&self) -> std::sync::MutexGuard<'_, Listener> {
        self.0.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_request_is_heard_and_the_answer_is_told() {
        let told = Arc::new(Mutex::new(vec![]));
        let (heard, tell) = (Arc::new(AtomicU32::new(0)), Arc::clone(&told));
        let saves = Saves::new(move |message| tell.lock().unwrap().push(message));
        saves.request();
        let (count, answer) = (Arc::clone(&heard), saves.clone());
        saves.on_request(move || {
            count.fetch_add(1, Ordering::Relaxed);
            answer.say(Saved { number: 3, bytes: 5, error: None });
        });
        saves.request();
        saves.forget();
        saves.request();
        // The one before the hook is heard too; nobody hears the one after it.
        assert_eq!(heard.load(Ordering::Relaxed), 2);
        let due = ToArbiter::Saved(Saved { number: 3, bytes: 5, error: None });
        assert_eq!(*told.lock().unwrap(), [due.clone(), due]);
    }
}
