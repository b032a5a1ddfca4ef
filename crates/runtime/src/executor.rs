//! Tool calls on their way to their extensions: how many run at once, and which tools are left alone for a while because they keep breaking
//! down. `driver/perform.rs` asks here before it makes a call and tells what came of it.
//!
//! Nothing of this is part of a session: what it leads to is, as the failure that the call comes to.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use futures_util::FutureExt;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::{ExtensionId, Millis, ToolName};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::tool::{ToolOutcome, ToolSpec};
use holdfast_contract::wire::{Later, Reply};
use holdfast_home::CallSettings;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::call::{CallState, wait};
use crate::clock::Clock;

/// Decides when calls are made.
pub(crate) struct Executor {
    set: CallSettings,
    everything: Arc<Semaphore>,
    by_extension: Mutex<HashMap<ExtensionId, Arc<Semaphore>>>,
    by_tool: Mutex<HashMap<ToolKey, Arc<Semaphore>>>,
    breakers: Mutex<BTreeMap<ToolKey, Breaker>>,
    /// How many tools have a breaker: none, nearly always, and then nothing is looked up.
    troubled: AtomicUsize,
}

/// One implementation of a tool. Other code is another one, and begins anew.
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

/// What is remembered of a tool that broke down.
struct Breaker {
    /// How often in a row.
    faults: u32,
    last: Fault,
    since: Millis,
    /// Until when it is left alone; none while it is still called.
    until: Option<Millis>,
    /// Whether a call is under way that finds out whether it works again.
    trying: bool,
}

/// A tool that is left alone for a while.
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
        let (breakers, troubled) = (Mutex::default(), AtomicUsize::new(0));
        Self { set, everything, by_extension, by_tool, breakers, troubled }
    }

    /// What a call has to wait for, the narrowest first, so that who waits for a place of one tool keeps none from others. A tool that
    /// computes from its arguments and names no limit is not counted: it runs where it is called.
    pub(crate) fn queues(&self, extension: &ExtensionRef, spec: &ToolSpec) -> Vec<Arc<Semaphore>> {
        let tool = [spec.concurrency, self.set.per_tool.get(&spec.name).copied()].into_iter().flatten().min();
        let all = self.set.per_extension.get(&extension.id).copied();
        if tool.is_none() && all.is_none() && !spec.effects.leaves_the_machine() {
            return Vec::new();
        }
        let queue = |most: u32| Arc::new(Semaphore::new(places(most)));
        let tool = tool.map(|most| {
            let mut queues = lock(&self.by_tool);
            queues.entry(ToolKey::of(extension, spec)).or_insert_with(|| queue(most)).clone()
        });
        let all = all.map(|most| {
            let mut queues = lock(&self.by_extension);
            queues.entry(extension.id.clone()).or_insert_with(|| queue(most)).clone()
        });
        tool.into_iter().chain(all).chain([self.everything.clone()]).collect()
    }

    /// Whether a tool may be called now. What it gives is kept until the call has come to something.
    pub(crate) fn enter(
        self: &Arc<Self>,
        extension: &ExtensionRef,
        spec: &ToolSpec,
        now: Millis,
    ) -> Result<Permit, Fault> {
        let entered = |trial| Permit { executor: self.clone(), trial };
        if self.troubled.load(Ordering::Relaxed) == 0 {
            return Ok(entered(None));
        }
        let tool = ToolKey::of(extension, spec);
        let mut breakers = lock(&self.breakers);
        let Some(breaker) = breakers.get_mut(&tool) else { return Ok(entered(None)) };
        match breaker.until {
            None => Ok(entered(None)),
            Some(until) if now >= until && !breaker.trying => {
                breaker.trying = true;
                Ok(entered(Some(tool)))
            }
            Some(until) => Err(breaker.refusal(&tool, until.since(now))),
        }
    }

    /// Tells what a call came to.
    fn settled(&self, tool: impl FnOnce() -> ToolKey, fault: Option<&Fault>, now: Millis) {
        match fault {
            Some(fault) if breaks(fault.code) => {
                let mut breakers = lock(&self.breakers);
                let fresh =
                    || Breaker { faults: 0, last: fault.clone(), since: now, until: None, trying: false };
                let breaker = breakers.entry(tool()).or_insert_with(fresh);
                breaker.faults = breaker.faults.saturating_add(1);
                breaker.last = fault.clone();
                if breaker.faults >= self.set.breaker.faults {
                    breaker.until = Some(now.plus(self.set.breaker.pause()));
                    breaker.trying = false;
                }
                self.troubled.store(breakers.len(), Ordering::Relaxed);
            }
            // What the host had no room for says nothing about the tool.
            Some(fault) if is_the_hosts(fault.code) => {}
            _ if self.troubled.load(Ordering::Relaxed) == 0 => {}
            _ => {
                let mut breakers = lock(&self.breakers);
                breakers.remove(&tool());
                self.troubled.store(breakers.len(), Ordering::Relaxed);
            }
        }
    }

    /// The tools that are left alone at the moment.
    pub(crate) fn suspended(&self, now: Millis) -> Vec<Suspended> {
        let breakers = lock(&self.breakers);
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
            seconds => format!("is left alone for {seconds} s more"),
        };
        let message = format!(
            "`{tool}` of `{extension}` {when}: it broke down {} times in a row, the last time with {}. Do without it, or try \
             again later",
            self.faults, self.last
        );
        Fault::new(Code::ToolSuspended, message)
    }
}

/// Leave to make one call.
pub(crate) struct Permit {
    executor: Arc<Executor>,
    /// The tool that this call finds out about. Whoever gives the call up lets the next one find out.
    trial: Option<ToolKey>,
}

impl Permit {
    /// Tells what the call came to.
    pub(crate) fn settled(
        mut self,
        extension: &ExtensionRef,
        spec: &ToolSpec,
        outcome: &ToolOutcome,
        now: Millis,
    ) {
        let fault = outcome.fault();
        if fault.is_none_or(|fault| !is_the_hosts(fault.code)) {
            self.trial = None;
        }
        self.executor.settled(|| ToolKey::of(extension, spec), fault, now);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(tool) = &self.trial
            && let Some(breaker) = lock(&self.executor.breakers).get_mut(tool)
        {
            breaker.trying = false;
        }
    }
}

/// A place in the queues of a call: had, or waited for.
pub(crate) enum Admission {
    In(Vec<OwnedSemaphorePermit>),
    Waiting(Later<Vec<OwnedSemaphorePermit>>),
}

impl Admission {
    /// Joins the queues now, so that calls are made in the order in which they were decided.
    pub(crate) fn new(queues: Vec<Arc<Semaphore>>) -> Self {
        let mut waiting: Later<_> = Box::pin(admitted(queues));
        match (&mut waiting).now_or_never() {
            Some(places) => Self::In(places),
            None => Self::Waiting(waiting),
        }
    }
}

/// Makes a call when its turn has come, and waits for the answer, all within this time.
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
    // An answer that is there at once needs no timer.
    if let Poll::Ready(answer) = poll_fn(|context| Poll::Ready(called.as_mut().poll(context))).await {
        return answer;
    }
    tokio::select! {
        biased;
        answer = &mut called => answer,
        () = clock.sleep(limit) => Err(match begun.load(Ordering::Relaxed) {
            true => Fault::new(Code::ToolTimeout, format!("no answer within {} ms", limit.0)),
            false => {
                let message = format!("not called: no place was free within {} ms", limit.0);
                Fault::new(Code::ToolBusy, message)
            }
        }),
    }
}

/// Waits in each queue for a place. A queue serves in the order in which it was joined.
async fn admitted(queues: Vec<Arc<Semaphore>>) -> Vec<OwnedSemaphorePermit> {
    let mut places = Vec::with_capacity(queues.len());
    for queue in queues {
        // No queue is ever closed.
        places.extend(queue.acquire_owned().await);
    }
    places
}

/// Whether a fault is a breakdown: the code failed, was late or broke its own promise. What a tool says itself is an answer.
fn breaks(code: Code) -> bool {
    code.is_crash() || matches!(code, Code::ToolTimeout | Code::ToolResult)
}

/// Whether a fault tells of the host, not of the tool.
fn is_the_hosts(code: Code) -> bool {
    matches!(code, Code::ToolBusy | Code::SlotsExhausted | Code::ExtensionUnknown | Code::ExtensionGone)
}

fn places(most: u32) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
