//! Spare instances: when a turn is done with an instance, a background thread drops it and starts the next one, so that no turn
//! waits for either. An extension has at most one spare, and only if it was used.

use std::sync::mpsc::{Receiver, RecvError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use crate::extension::WasmExtension;
use crate::instance::running::RunningInstance;

/// Instances that may be queued for the thread. Beyond that they are dropped by the caller, so that their slots are freed in time.
const MAX_QUEUED_INSTANCES: usize = 128;

/// The spare instance of an extension.
#[derive(Default)]
pub(crate) struct Spare(Mutex<Option<RunningInstance>>);

impl Spare {
    /// Takes it, if it is there.
    pub(crate) fn take(&self) -> Option<RunningInstance> {
        self.0.lock().take()
    }

    /// Creates one if there is none; false if there was one.
    fn refill(&self, make: impl FnOnce() -> Option<RunningInstance>) -> bool {
        let missing = self.0.lock().is_none();
        if missing {
            let made = make();
            *self.0.lock() = made;
        }
        missing
    }
}

/// A job for the thread.
enum Job {
    /// Drop a used instance and start the next one.
    Recycle(Arc<WasmExtension>, RunningInstance),
    /// Drop all spare and queued instances, then signal.
    Reclaim(SyncSender<()>),
}

/// Hands a used instance to the thread.
pub(crate) fn recycle(extension: Arc<WasmExtension>, used: RunningInstance) {
    let Some(thread) = thread() else { return };
    // If the queue is full, the instance is dropped here.
    drop(thread.try_send(Job::Recycle(extension, used)));
}

/// Frees the slots of spare and queued instances, because the pool is exhausted, and waits until that is done.
pub(crate) fn reclaim() {
    let (done, wait) = sync_channel(1);
    if thread().is_some_and(|thread| thread.send(Job::Reclaim(done)).is_ok()) {
        // An error means that the thread has ended, and there are no spares.
        let _answered = wait.recv();
    }
}

/// The thread, which runs as long as the process; `None` if it cannot be started.
fn thread() -> Option<&'static SyncSender<Job>> {
    static THREAD: OnceLock<Option<SyncSender<Job>>> = OnceLock::new();
    let start = || {
        let (sender, jobs) = sync_channel(MAX_QUEUED_INSTANCES);
        let named = std::thread::Builder::new().name("wasm-spares".to_owned());
        named.spawn(move || work(jobs)).ok().map(|_| sender)
    };
    THREAD.get_or_init(start).as_ref()
}

fn work(jobs: Receiver<Job>) {
    let mut stocked: Vec<Weak<WasmExtension>> = Vec::new();
    let mut used: Vec<RunningInstance> = Vec::new();
    loop {
        // Spares for the next turn come first; used instances are dropped when the queue is empty.
        if used.len() >= MAX_QUEUED_INSTANCES {
            used.clear();
        }
        let job = jobs.try_recv().or_else(|_| {
            used.clear();
            jobs.recv()
        });
        match job {
            Err(RecvError) => return,
            Ok(Job::Recycle(extension, live)) => {
                used.push(live);
                // An extension with no other reference is unloaded and needs no spare.
                if Arc::strong_count(&extension) > 1 && extension.spare.refill(|| extension.fresh()) {
                    stocked.retain(|other| {
                        other.strong_count() > 0 && !other.ptr_eq(&Arc::downgrade(&extension))
                    });
                    stocked.push(Arc::downgrade(&extension));
                }
            }
            Ok(Job::Reclaim(done)) => {
                used.clear();
                for extension in stocked.drain(..).filter_map(|extension| extension.upgrade()) {
                    drop(extension.spare.take());
                }
                // The receiver may be gone.
                let _received = done.send(());
            }
        }
    }
}
