//! Blocking work runs on its own thread, so that the caller's thread does not block.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use parking_lot::Mutex;

use crate::roles::now;

/// Runs blocking work on its own thread. Dropping the future does not stop the work, so it must terminate.
pub fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Later<Result<T, Fault>> {
    let answer = Answer(Arc::new(Mutex::new(Slot { value: None, waker: None })));
    let slot = answer.0.clone();
    let run = move || {
        let done = catch_unwind(AssertUnwindSafe(work));
        let value = done.unwrap_or_else(|panic| Err(Fault::panicked(Code::Internal, &*panic)));
        let mut slot = slot.lock();
        slot.value = Some(value);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    };
    match std::thread::Builder::new().spawn(run) {
        Ok(_) => Box::pin(answer),
        Err(error) => now(Err(Fault::new(Code::ToolFailed, format!("could not start a thread: {error}")))),
    }
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

struct Answer<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Answer<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut slot = self.0.lock();
        match slot.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
