//! Spare instances: when a turn lets an instance go, a thread of its own wipes it and makes the next one, so that no turn waits for
//! either. An extension has at most one spare, and only if it was used.

use std::sync::mpsc::{Receiver, RecvError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::extension::WasmExtension;
use crate::instance::running::RunningInstance;

/// Instances that may wait for the thread; past that they are wiped where they are let go, so that their places are free in time.
const WAITING: usize = 128;

/// The instance that an extension has in store.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Option<RunningInstance>>);

impl Spare {
    /// Takes it, if it is there.
    pub(crate) fn take(&self) -> Option<RunningInstance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Makes one if there is none; false if there was one.
    fn refill(&self, make: impl FnOnce() -> Option<RunningInstance>) -> bool {
        let missing = self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        if missing {
            let made = make();
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = made;
        }
        missing
    }
}

/// Something for the thread to do.
enum Job {
    /// Wipe an instance that its extension no longer needs, and make the next one.
    LetGo(Arc<WasmExtension>, RunningInstance),
    /// Give back the places of everything that is in store, and say when that is done.
    GiveBack(SyncSender<()>),
}

/// Lets an instance go.
pub(crate) fn recycle(extension: Arc<WasmExtension>, used: RunningInstance) {
    let Some(thread) = thread() else { return };
    // Where too many wait, or there is no thread, it goes here and now.
    drop(thread.try_send(Job::LetGo(extension, used)));
}

/// Somebody needs a place, and all are taken: waits until those that are only in store, or on their way back, are free.
pub(crate) fn reclaim() {
    let (done, wait) = sync_channel(1);
    if thread().is_some_and(|thread| thread.send(Job::GiveBack(done)).is_ok()) {
        // Without an answer the thread is gone, and nothing is in store.
        let _answered = wait.recv();
    }
}

/// The thread, which lives as long as the process; none where none can be started.
fn thread() -> Option<&'static SyncSender<Job>> {
    static THREAD: OnceLock<Option<SyncSender<Job>>> = OnceLock::new();
    let start = || {
        let (sender, jobs) = sync_channel(WAITING);
        let named = std::thread::Builder::new().name("wasm-spares".to_owned());
        named.spawn(move || work(jobs)).ok().map(|_| sender)
    };
    THREAD.get_or_init(start).as_ref()
}

fn work(jobs: Receiver<Job>) {
    let mut stocked: Vec<Weak<WasmExtension>> = Vec::new();
    let mut used: Vec<RunningInstance> = Vec::new();
    loop {
        // First everything that the next turn may want, and then what the last one has left.
        if used.len() >= WAITING {
            used.clear();
        }
        let job = jobs.try_recv().or_else(|_| {
            used.clear();
            jobs.recv()
        });
        match job {
            Err(RecvError) => return,
            Ok(Job::LetGo(extension, live)) => {
                used.push(live);
                // One that nobody else holds is gone, and needs no spare.
                if Arc::strong_count(&extension) > 1 && extension.spare.refill(|| extension.fresh()) {
                    stocked.retain(|other| {
                        other.strong_count() > 0 && !other.ptr_eq(&Arc::downgrade(&extension))
                    });
                    stocked.push(Arc::downgrade(&extension));
                }
            }
            Ok(Job::GiveBack(done)) => {
                used.clear();
                for extension in stocked.drain(..).filter_map(|extension| extension.upgrade()) {
                    drop(extension.spare.take());
                }
                // Whoever asked may have gone.
                let _asker = done.send(());
            }
        }
    }
}
