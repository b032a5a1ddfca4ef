//! The tasks that an actor has begun, by the frame that began them, so that they can be stopped.

use std::collections::HashMap;
use std::future::Future;

use holdfast_contract::ids::Seq;
use tokio::task::AbortHandle;

/// Tasks under way.
#[derive(Default)]
pub(crate) struct Tasks {
    begun: HashMap<Seq, Vec<AbortHandle>>,
}

impl Tasks {
    /// Begins a task.
    pub(crate) fn begin(&mut self, by: Seq, task: impl Future<Output = ()> + Send + 'static) {
        let handle = tokio::spawn(task).abort_handle();
        let tasks = self.begun.entry(by).or_default();
        tasks.retain(|task| !task.is_finished());
        tasks.push(handle);
        if self.begun.len() > 256 {
            self.begun.retain(|_, tasks| tasks.iter().any(|task| !task.is_finished()));
        }
    }

    /// Stops what this frame began.
    pub(crate) fn abort(&mut self, by: Seq) {
        for task in self.begun.remove(&by).into_iter().flatten() {
            task.abort();
        }
    }

    /// Stops everything.
    pub(crate) fn abort_all(&mut self) {
        for task in std::mem::take(&mut self.begun).into_values().flatten() {
            task.abort();
        }
    }
}
