//! Concurrency limits, queues and circuit breakers for tool calls. `session/effects.rs` gets a permit here before it makes a call
//! and reports the outcome.
//!
//! Nothing of this is recorded by itself: a call that was refused is recorded with its failure.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use futures_util::FutureExt;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, Millis, ToolName};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::tool::{ToolOutcome, ToolSpec};
use holdfast_contract::wire::{Later, Reply};
use holdfast_home::CallSettings;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{CallState, wait};
use crate::clock::Clock;

/// Decides when tool calls are made.
pub(crate) struct Executor {
    set: CallSettings,
    everything: Arc<Semaphore>,
    by_extension: Mutex<HashMap<ExtensionId, Arc<Semaphore>>>,
    by_tool: Mutex<HashMap<ToolKey, Arc<Semaphore>>>,
    breakers: Mutex<BTreeMap<ToolKey, Breaker>>,
    /// The number of breakers: nearly always none, and then nothing is looked up.
    breaker_count: AtomicUsize,
}

/// One implementation of a tool. Other code is another key, with a breaker of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ToolKey {
    extension: ExtensionId,
    tool: ToolName,
    digest: Digest,
}

impl ToolKey {
    pub(crate) fn of(extension: &ExtensionRef, spec: &ToolSpec) -> Self {
        let (id, tool, digest) = (extension.id.clone(), spec.name.clone(), extension.digest);
        Self { extension: id, tool, digest }
    }
}

/// The circuit breaker of a tool that failed.
struct Breaker {
    /// Consecutive failures.
    faults: u32,
    last: Fault,
    since: Millis,
    /// Open until then; `None` while it is closed.
    until: Option<Millis>,
    /// Half-open: a trial call is in progress.
    half_open: bool,
}

/// A tool whose circuit breaker is open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Suspended {
    pub extension: ExtensionId,
    pub since: Millis,
    pub fault: Fault,
}

impl Executor {
    pub(crate) fn new(set: CallSettings) -> Self {
        let everything = Arc::new(Semaphore::new(places(set.at_once)));
        let (by_extension, by_tool) = (Mutex::default(), Mutex::default());
        let (breakers, breaker_count) = (Mutex::default(), AtomicUsize::new(0));
        Self { set, everything, by_extension, by_tool, breakers, breaker_count }
    }

    /// The queues of a call, the narrowest first, so that a call that waits for its tool holds no permit that others need. A pure
    /// tool without a limit of its own is not counted.
    pub(crate) fn queues(&self, extension: &ExtensionRef, spec: &ToolSpec) -> Vec<Arc<Semaphore>> {
        let tool = [spec.concurrency, self.set.per_tool.get(&spec.name).copied()].into_iter().flatten().min();
        let all = self.set.per_extension.get(&extension.id).copied();
        if tool.is_none() && all.is_none() && !spec.effects.leaves_the_machine() {
            return Vec::new();
        }
        let queue = |most: u32| Arc::new(Semaphore::new(places(most)));
        let tool = tool.map(|most| {
            let mut queues = self.by_tool.lock();
            queues.entry(ToolKey::of(extension, spec)).or_insert_with(|| queue(most)).clone()
        });
        let all = all.map(|most| {
            let mut queues = self.by_extension.lock();
            queues.entry(extension.id.clone()).or_insert_with(|| queue(most)).clone()
        });
        tool.into_iter().chain(all).chain([self.everything.clone()]).collect()
    }

    /// How long a call of a tool may take.
    pub(crate) fn timeout(&self, spec: &ToolSpec) -> Millis {
        self.set.timeout_ms.get(&spec.name).copied().unwrap_or(spec.timeout)
    }

    /// A permit to call a tool at this steady time, held until the outcome is known; a fault if its circuit breaker is open.
    pub(crate) fn enter(
        self: &Arc<Self>,
        extension: &ExtensionRef,
        spec: &ToolSpec,
        now: Millis,
    ) -> Result<Permit, Fault> {
        let entered = |trial| Permit { executor: self.clone(), trial };
        if self.breaker_count.load(Ordering::Relaxed) == 0 {
            return Ok(entered(None));
        }
        let tool = ToolKey::of(extension, spec);
        let mut breakers = self.breakers.lock();
        let Some(breaker) = breakers.get_mut(&tool) else { return Ok(entered(None)) };
        match breaker.until {
            None => Ok(entered(None)),
            Some(until) if now >= until && !breaker.half_open => {
                breaker.half_open = true;
                Ok(entered(Some(tool)))
            }
            Some(until) => Err(breaker.refusal(&tool, until.since(now))),
        }
    }

    /// Reports the outcome of a call.
    fn settled(&self, tool: impl FnOnce() -> ToolKey, fault: Option<&Fault>, (at, steady): (Millis, Millis)) {
        match fault {
            Some(fault) if breaks(fault.code) => {
                let mut breakers = self.breakers.lock();
                let fresh =
                    || Breaker { faults: 0, last: fault.clone(), since: at, until: None, half_open: false };
                let breaker = breakers.entry(tool()).or_insert_with(fresh);
                breaker.faults = breaker.faults.saturating_add(1);
                breaker.last = fault.clone();
                if breaker.faults >= self.set.breaker.faults {
                    breaker.until = Some(steady.plus(self.set.breaker.pause()));
                    breaker.half_open = false;
                }
                self.breaker_count.store(breakers.len(), Ordering::Relaxed);
            }
            // A fault of the host says nothing about the tool.
            Some(fault) if is_the_hosts(fault.code) => {}
            _ if self.breaker_count.load(Ordering::Relaxed) == 0 => {}
            _ => {
                let mut breakers = self.breakers.lock();
                breakers.remove(&tool());
                self.breaker_count.store(breakers.len(), Ordering::Relaxed);
            }
        }
    }

    /// The tools whose circuit breakers are open.
    pub(crate) fn suspended(&self, now: Millis) -> Vec<Suspended> {
        let breakers = self.breakers.lock();
        let suspended = breakers.iter().filter_map(|(tool, breaker)| {
            let fault = breaker.refusal(tool, breaker.until?.since(now));
            Some(Suspended { extension: tool.extension.clone(), since: breaker.since, fault })
        });
        suspended.collect()
    }
}

impl Breaker {
    fn refusal(&self, tool: &ToolKey, left: Millis) -> Fault {
        let ToolKey { extension, tool, .. } = tool;
        let when = match left.0.div_ceil(1_000) {
            0 => "is being tried again".to_owned(),
            seconds => format!("is suspended for {seconds} s more"),
        };
        let message = format!(
            "`{tool}` of `{extension}` {when}: it broke down {} times in a row, the last time with {}. Do without it, or try \
             again later",
            self.faults, self.last
        );
        Fault::new(Code::ToolSuspended, message)
    }
}

/// Permission to make one call.
pub(crate) struct Permit {
    executor: Arc<Executor>,
    /// The tool whose half-open breaker this call tests. If the call is dropped, the next one tests it.
    trial: Option<ToolKey>,
}

impl Permit {
    /// Reports the outcome of the call.
    pub(crate) fn settled(
        mut self,
        extension: &ExtensionRef,
        spec: &ToolSpec,
        outcome: &ToolOutcome,
        (at, steady): (Millis, Millis),
    ) {
        let fault = outcome.fault();
        if fault.is_none_or(|fault| !is_the_hosts(fault.code)) {
            self.trial = None;
        }
        self.executor.settled(|| ToolKey::of(extension, spec), fault, (at, steady));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(tool) = &self.trial
            && let Some(breaker) = self.executor.breakers.lock().get_mut(tool)
        {
            breaker.half_open = false;
        }
    }
}

/// The permits of a call's queues: held, or waited for.
pub(crate) enum Admission {
    In(Vec<OwnedSemaphorePermit>),
    Waiting(Later<Vec<OwnedSemaphorePermit>>),
}

impl Admission {
    /// Joins the queues immediately, so that calls are made in the order in which they were decided.
    pub(crate) fn new(queues: Vec<Arc<Semaphore>>) -> Self {
        let mut waiting: Later<_> = Box::pin(admitted(queues));
        match (&mut waiting).now_or_never() {
            Some(places) => Self::In(places),
            None => Self::Waiting(waiting),
        }
    }
}

/// Waits for admission, makes the call and waits for the reply, within this time in total.
pub(crate) async fn run(
    admission: Admission,
    limit: Millis,
    clock: Arc<dyn Clock>,
    make: impl FnOnce() -> CallState + Send,
) -> Result<Reply, Fault> {
    let begun = AtomicBool::new(false);
    let mut called = pin!(async {
        let _places = match admission {
            Admission::In(places) => places,
            Admission::Waiting(waiting) => waiting.await,
        };
        begun.store(true, Ordering::Relaxed);
        wait(make()).await
    });
    // A reply that is ready immediately needs no timer.
    if let Poll::Ready(answer) = poll_fn(|context| Poll::Ready(called.as_mut().poll(context))).await {
        return answer;
    }
    tokio::select! {
        biased;
        answer = &mut called => answer,
        () = clock.sleep(limit) => Err(if begun.load(Ordering::Relaxed) {
            Fault::new(Code::ToolTimeout, format!("no answer within {} ms", limit.0))
        } else {
            Fault::new(Code::ToolBusy, format!("not called: no place was free within {} ms", limit.0))
        }),
    }
}

/// Acquires a permit of each queue. A queue is first in, first out.
async fn admitted(queues: Vec<Arc<Semaphore>>) -> Vec<OwnedSemaphorePermit> {
    let mut places = Vec::with_capacity(queues.len());
    for queue in queues {
        // No queue is ever closed.
        places.extend(queue.acquire_owned().await);
    }
    places
}

/// Whether a fault counts for the circuit breaker: a crash, a timeout or an invalid result. A failure that the tool reports is a result.
fn breaks(code: Code) -> bool {
    code.is_crash() || matches!(code, Code::ToolTimeout | Code::ToolResult)
}

/// Whether a fault is the host's, not the tool's.
fn is_the_hosts(code: Code) -> bool {
    matches!(code, Code::ToolBusy | Code::SlotsExhausted | Code::ExtensionUnknown | Code::ExtensionGone)
}

fn places(most: u32) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}
