//! One call into an extension: a panic becomes a fault, a timeout is enforced, and a reply that is ready immediately costs no task.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use holdfast_contract::hook::{Decision, HookInput};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Call, Host, Instance, Later, Reply};

use crate::clock::Clock;

/// A pending call. Polling it never unwinds.
pub struct CatchUnwind(Later<Result<Reply, Fault>>);

/// A call that was started: answered already, or pending.
pub enum CallState {
    /// The reply was ready immediately.
    Answered(Result<Reply, Fault>),
    /// The reply is awaited.
    Pending(CatchUnwind),
}

/// Starts a call and polls it once.
pub fn start_call(instance: &Arc<dyn Instance>, call: Call, host: Arc<dyn Host>) -> CallState {
    let begun = catch_unwind(AssertUnwindSafe(|| instance.call(call, host)));
    let mut under_way = match begun {
        Ok(later) => CatchUnwind(later),
        Err(panic) => return CallState::Answered(Err(panicked(&*panic))),
    };
    match (&mut under_way).now_or_never() {
        Some(answer) => CallState::Answered(answer),
        None => CallState::Pending(under_way),
    }
}

/// A call that starts when something else has completed.
pub(crate) fn later(call: Later<Result<Reply, Fault>>) -> CallState {
    CallState::Pending(CatchUnwind(call))
}

/// The decision of a hook that answers synchronously; none if it does not.
pub(crate) fn try_now(instance: &Arc<dyn Instance>, input: &HookInput) -> Option<Result<Decision, Fault>> {
    let answer = catch_unwind(AssertUnwindSafe(|| instance.try_decide(input)));
    answer.unwrap_or_else(|panic| Some(Err(panicked(&*panic))))
}

impl CallState {
    /// Polls until the call is done or waits for something outside itself; none in the second case.
    pub fn run_through(self) -> Option<Result<Reply, Fault>> {
        struct Woken(AtomicBool);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let mut call = match self {
            CallState::Answered(answer) => return Some(answer),
            CallState::Pending(call) => call,
        };
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        // The first poll was with a waker that does nothing.
        while woken.0.swap(false, Ordering::SeqCst) {
            if let Poll::Ready(answer) = Pin::new(&mut call).poll(&mut Context::from_waker(&waker)) {
                return Some(answer);
            }
        }
        None
    }
}

/// Waits for the reply, without a timeout.
pub(crate) async fn wait(state: CallState) -> Result<Reply, Fault> {
    match state {
        CallState::Answered(answer) => answer,
        CallState::Pending(call) => call.await,
    }
}

/// Waits for the reply, up to a timeout, which is a fault of this code.
pub async fn wait_timeout(
    state: CallState,
    limit: Millis,
    late: Code,
    clock: Arc<dyn Clock>,
) -> Result<Reply, Fault> {
    match state {
        CallState::Answered(answer) => answer,
        CallState::Pending(call) => {
            tokio::select! {
                biased;
                answer = call => answer,
                () = clock.sleep(limit) => Err(Fault::new(late, format!("no answer within {} ms", limit.0))),
            }
        }
    }
}

impl Future for CatchUnwind {
    type Output = Result<Reply, Fault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(&*panic))))
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Fault {
    Fault::panicked(Code::ExtensionFault, panic)
}
