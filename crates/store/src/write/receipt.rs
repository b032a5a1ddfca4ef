//! What whoever hands over frames and rows together gets in return: a receipt that says when they are on disk.
//!
//! A stream's own waiters wait for a place in that stream. A receipt is for one hand-over, which may touch several streams or no
//! frame at all. The writer holds the other half, a promise; one that is dropped unkept says that the log was closed.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use holdfast_contract::problem::Problem;

use crate::failure;

/// Resolves when what was handed over is on disk, or with the reason why it never will be. Clones resolve together; dropping them
/// gives up the wait, not what was handed over.
#[derive(Clone)]
pub struct Receipt(Arc<ReceiptState>);

/// The writer's half of a receipt.
pub(crate) struct Promise {
    slip: Arc<ReceiptState>,
    /// Whether someone cannot go on before it is kept.
    pub(crate) awaited: bool,
}

#[derive(Default)]
struct ReceiptState {
    outcome: OnceLock<Result<(), Problem>>,
    waiting: Mutex<Vec<Waker>>,
}

pub(crate) fn promise(awaited: bool) -> (Promise, Receipt) {
    let slip = Arc::<ReceiptState>::default();
    (Promise { slip: Arc::clone(&slip), awaited }, Receipt(slip))
}

impl Receipt {
    /// What came of it, if that is known by now.
    pub fn outcome(&self) -> Option<&Result<(), Problem>> {
        self.0.outcome.get()
    }

    /// Wakes this waker when the outcome is known, or at once if it is.
    pub fn on_outcome(&self, waker: &Waker) {
        if !self.0.wake_later(waker) {
            waker.wake_by_ref();
        }
    }
}

impl Future for Receipt {
    type Output = Result<(), Problem>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.outcome().is_none() && self.0.wake_later(context.waker()) {
            return Poll::Pending;
        }
        self.outcome().map_or(Poll::Pending, |outcome| Poll::Ready(outcome.clone()))
    }
}

impl Promise {
    /// Says what came of it. Those who wait are added to `waiting`, so that all promises of a commit are kept before anyone is woken.
    pub(crate) fn keep(&self, outcome: Result<(), Problem>, waiting: &mut Vec<Waker>) {
        if self.slip.outcome.set(outcome).is_ok() {
            waiting.append(&mut self.slip.waiting());
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.slip.outcome.get().is_none() {
            let mut waiting = Vec::new();
            self.keep(Err(failure::closed()), &mut waiting);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl ReceiptState {
    /// Notes whom to wake; false if the outcome is already known.
    fn wake_later(&self, waker: &Waker) -> bool {
        let mut waiting = self.waiting();
        // Looked at under the lock: whoever keeps the promise takes the wakers after it has said the outcome.
        if self.outcome.get().is_some() {
            return false;
        }
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        true
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
