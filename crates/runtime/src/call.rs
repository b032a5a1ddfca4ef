//! Calls into extensions: a panic is a fault, a deadline is kept, and an answer that is there at once costs no task.

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

/// A call under way, contained: polling it never unwinds.
pub(crate) struct CatchUnwind(Later<Result<Reply, Fault>>);

/// A call that was made: answered already, or under way.
pub(crate) enum CallState {
    Answered(Result<Reply, Fault>),
    UnderWay(CatchUnwind),
}

/// Makes a call and looks once whether its answer is there.
pub(crate) fn start_call(instance: &Arc<dyn Instance>, call: Call, host: Arc<dyn Host>) -> CallState {
    let begun = catch_unwind(AssertUnwindSafe(|| instance.call(call, host)));
    let mut under_way = match begun {
        Ok(later) => CatchUnwind(later),
        Err(panic) => return CallState::Answered(Err(panicked(&*panic))),
    };
    match (&mut under_way).now_or_never() {
        Some(answer) => CallState::Answered(answer),
        None => CallState::UnderWay(under_way),
    }
}

/// A call that is made as soon as something else has come about.
pub(crate) fn later(call: Later<Result<Reply, Fault>>) -> CallState {
    CallState::UnderWay(CatchUnwind(call))
}

/// Has a hook decide here and now, if it does.
pub(crate) fn try_now(instance: &Arc<dyn Instance>, input: &HookInput) -> Option<Result<Decision, Fault>> {
    let answer = catch_unwind(AssertUnwindSafe(|| instance.try_decide(input)));
    answer.unwrap_or_else(|panic| Some(Err(panicked(&*panic))))
}

impl CallState {
    /// The answer of a call that waits for nothing but itself; none if it waits for the outside.
    pub(crate) fn run_through(self) -> Option<Result<Reply, Fault>> {
        struct Woken(AtomicBool);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let mut call = match self {
            CallState::Answered(answer) => return Some(answer),
            CallState::UnderWay(call) => call,
        };
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        // The first look was with a waker that wakes nobody.
        while woken.0.swap(false, Ordering::SeqCst) {
            if let Poll::Ready(answer) = Pin::new(&mut call).poll(&mut Context::from_waker(&waker)) {
                return Some(answer);
            }
        }
        None
    }
}

/// Waits for all of these, each of which goes on while the others wait.
pub(crate) async fn join_all<T>(all: Vec<Later<T>>) -> Vec<T> {
    let mut open: Vec<_> = all.into_iter().map(Some).collect();
    let mut done: Vec<Option<T>> = open.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (open, done) in open.iter_mut().zip(&mut done) {
            if let Some(Poll::Ready(value)) = open.as_mut().map(|it| it.as_mut().poll(context)) {
                (*open, *done) = (None, Some(value));
            }
        }
        if open.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// Waits for an answer for as long as the caller does.
pub(crate) async fn wait(made: CallState) -> Result<Reply, Fault> {
    match made {
        CallState::Answered(answer) => answer,
        CallState::UnderWay(call) => call.await,
    }
}

/// Waits for an answer, but no longer than this.
pub(crate) async fn wait_timeout(
    made: CallState,
    limit: Millis,
    late: Code,
    clock: Arc<dyn Clock>,
) -> Result<Reply, Fault> {
    match made {
        CallState::Answered(answer) => answer,
        CallState::UnderWay(call) => {
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
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Fault::new(Code::ExtensionFault, format!("panicked: {}", text.unwrap_or("no message")))
}
