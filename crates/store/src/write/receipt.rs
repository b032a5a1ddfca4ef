//! Receipts: tell the caller of an atomic append when it is on disk.
//!
//! A stream's own waiters wait for a sequence number of that stream. A receipt is for one append, which may concern several streams
//! or no frame at all. The writer has the other half, a promise; dropping it resolves the receipt with "the log was closed".
//!
//! Not `tokio::sync::watch`: the writer sets all outcomes of a commit before it wakes any waiter, and wakers are collected for that.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use holdfast_contract::problem::Problem;
use parking_lot::{Mutex, MutexGuard};

use crate::failure;

/// Resolves when the append is on disk, or with the reason why it never will be. Clones resolve together; dropping them does not
/// cancel the append.
#[derive(Clone)]
pub struct Receipt(Arc<ReceiptState>);

/// The writer's half of a receipt.
pub(crate) struct Promise {
    state: Arc<ReceiptState>,
    /// Whether a caller waits for it.
    pub(crate) awaited: bool,
}

#[derive(Default)]
struct ReceiptState {
    outcome: OnceLock<Result<(), Problem>>,
    waiting: Mutex<Vec<Waker>>,
}

pub(crate) fn promise(awaited: bool) -> (Promise, Receipt) {
    let state = Arc::<ReceiptState>::default();
    (Promise { state: Arc::clone(&state), awaited }, Receipt(state))
}

impl Receipt {
    /// The outcome, if it is known.
    pub fn outcome(&self) -> Option<&Result<(), Problem>> {
        self.0.outcome.get()
    }

    /// Wakes this waker when the outcome is known, or immediately if it is.
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
    /// Sets the outcome. The wakers are added to `waiting`, so that all outcomes of a commit are set before any waiter is woken.
    pub(crate) fn keep(&self, outcome: Result<(), Problem>, waiting: &mut Vec<Waker>) {
        if self.state.outcome.set(outcome).is_ok() {
            waiting.append(&mut self.state.waiting());
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if self.state.outcome.get().is_none() {
            let mut waiting = Vec::new();
            self.keep(Err(failure::closed()), &mut waiting);
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

impl ReceiptState {
    /// Registers a waker; false if the outcome is already known.
    fn wake_later(&self, waker: &Waker) -> bool {
        let mut waiting = self.waiting();
        // Checked under the lock: `Promise::keep` takes the wakers after it has set the outcome.
        if self.outcome.get().is_some() {
            return false;
        }
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        true
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.waiting.lock()
    }
}
