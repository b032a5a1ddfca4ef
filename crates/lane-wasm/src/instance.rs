//! A loaded component: a handle on one instance, which is started at the first call and replaced after a fault.

pub(crate) mod guest;
pub(crate) mod pool;
pub(crate) mod running;

use std::future::ready;
use std::sync::Arc;

use holdfast_contract::hook::{Decision, HookInput};
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::Fault;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Later, Reply};
use parking_lot::{Mutex, MutexGuard};

use crate::component::code::CompiledCode;
use crate::extension::{WasmExtension, is_background, turn};
use crate::instance::guest::Guest;
use crate::instance::pool::{reclaim, recycle};
use crate::instance::running::{CallFailure, RunningInstance};

/// The largest guest stack for synchronous calls, which run on the caller's stack: an overflow there would abort the process. The
/// threads of the runtime have 2 MiB.
const MAX_SYNCHRONOUS_STACK_BYTES: u32 = 512 << 10;

/// A loaded component.
pub(crate) struct WasmInstance {
    extension: Arc<WasmExtension>,
    scope: InstanceScope,
}

/// Which instance serves the calls of a handle.
#[derive(Clone)]
enum InstanceScope {
    /// Every call has its own instance.
    PerCall,
    /// One instance, for one call at a time.
    Own(Arc<Mutex<Slot>>),
    /// One instance for all callers. Calls wait for each other.
    Shared(Arc<tokio::sync::Mutex<Option<RunningInstance>>>),
}

/// The instance of a handle.
#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    /// A call uses it. Concurrent calls get an instance of their own.
    Busy,
    Idle(RunningInstance),
}

impl WasmInstance {
    /// The handle that loading returns.
    pub(crate) fn loaded(extension: Arc<WasmExtension>) -> Self {
        let scope = match extension.known.scope {
            Scope::Shared => InstanceScope::Shared(Arc::default()),
            Scope::Turn | Scope::Call => InstanceScope::PerCall,
        };
        Self { extension, scope }
    }

    /// The code, if it is loaded and hooks can be called synchronously.
    fn synchronous_code(&self) -> Option<&CompiledCode> {
        let code = self.extension.code.get().filter(|code| !code.waits)?;
        let fits = self.extension.options.stack <= MAX_SYNCHRONOUS_STACK_BYTES
            && !matches!(self.scope, InstanceScope::Shared(_));
        fits.then_some(code)
    }
}

impl Instance for WasmInstance {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        if let Some(answer) = self.extension.answer_without_code(&call) {
            return Box::pin(ready(answer));
        }
        if let (Call::Hook(input), Some(code)) = (&call, self.synchronous_code()) {
            let answer = decide(&self.extension, code, &self.scope, input);
            return Box::pin(ready(answer.map(Reply::Decision)));
        }
        let extension = self.extension.clone();
        // A background loop does not return, so it must not occupy the shared instance.
        let scope = if is_background(&call) { InstanceScope::PerCall } else { self.scope.clone() };
        Box::pin(async move {
            let code = extension.code().await?;
            match &scope {
                InstanceScope::Shared(shared) => {
                    let mut kept = shared.lock().await;
                    // Taken out, so that a cancelled call drops the instance with it.
                    let live = kept.take();
                    let (answer, live) = call_async(&extension, code, live, &call, host).await;
                    *kept = live;
                    answer
                }
                scope => {
                    let mut checkout = Checkout::from(scope);
                    let live = checkout.live.take();
                    let (answer, live) = call_async(&extension, code, live, &call, host).await;
                    checkout.live = live;
                    answer
                }
            }
        })
    }

    fn capabilities(&self) -> InstanceCapabilities {
        let capabilities = self.extension.capabilities;
        let synchronous = self.extension.code.get().is_some_and(|code| !code.waits);
        InstanceCapabilities {
            synchronous_hooks: synchronous && capabilities.scope == Scope::Turn,
            ..capabilities
        }
    }

    fn prepare(&self) -> Option<Later<()>> {
        if self.extension.code.get().is_some() {
            return None;
        }
        let extension = self.extension.clone();
        // An error is reported by the first call.
        Some(Box::pin(async move { drop(extension.code().await) }))
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        Some(decide(&self.extension, self.synchronous_code()?, &self.scope, input))
    }

    fn fresh(&self) -> Option<Arc<dyn Instance>> {
        let scope = match self.extension.known.scope {
            Scope::Turn => InstanceScope::Own(Arc::default()),
            Scope::Call => InstanceScope::PerCall,
            Scope::Shared => return None,
        };
        Some(Arc::new(WasmInstance { extension: self.extension.clone(), scope }))
    }
}

impl Drop for WasmInstance {
    fn drop(&mut self) {
        let InstanceScope::Own(slot) = &self.scope else { return };
        if let Slot::Idle(live) = std::mem::take(&mut *lock(slot)) {
            recycle(self.extension.clone(), live);
        }
    }
}

/// A handle's own instance while an asynchronous call uses it. Returned when the call completes; the slot is freed when the call is
/// cancelled.
struct Checkout<'a> {
    live: Option<RunningInstance>,
    back: Option<&'a Mutex<Slot>>,
}

impl<'a> Checkout<'a> {
    fn from(scope: &'a InstanceScope) -> Self {
        let InstanceScope::Own(slot) = scope else { return Self { live: None, back: None } };
        match std::mem::replace(&mut *lock(slot), Slot::Busy) {
            Slot::Idle(live) => Self { live: Some(live), back: Some(slot) },
            Slot::Empty => Self { live: None, back: Some(slot) },
            Slot::Busy => Self { live: None, back: None },
        }
    }
}

impl Drop for Checkout<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.back {
            *lock(slot) = self.live.take().map_or(Slot::Empty, Slot::Idle);
        }
    }
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock()
}

/// Calls a hook synchronously, on the handle's own instance or on a new one. Such code makes no host calls.
fn decide(
    extension: &WasmExtension,
    code: &CompiledCode,
    scope: &InstanceScope,
    input: &HookInput,
) -> Result<Decision, Fault> {
    let mut own = match scope {
        InstanceScope::Own(slot) => slot.try_lock().filter(|slot| !matches!(**slot, Slot::Busy)),
        InstanceScope::PerCall | InstanceScope::Shared(_) => None,
    };
    // The lock is held during the call, which never waits; a panic leaves the slot empty.
    let kept = own.as_mut().and_then(|slot| match std::mem::take(&mut **slot) {
        Slot::Idle(live) => Some(live),
        Slot::Empty | Slot::Busy => None,
    });
    let live = kept.or_else(|| extension.spare.take()).map_or_else(|| extension.start(code), Ok);
    let answer = live.and_then(|mut live| {
        let allowance = extension.hook_allowance(input.point, false);
        Guest::begin(&mut live.store, None, Some(&input.turn), allowance)?;
        let answer = extension.decide(code, &mut live, input);
        if let (Some(slot), false) = (&mut own, matches!(answer, Err(CallFailure::Broken(_)))) {
            **slot = Slot::Idle(live);
        }
        answer
    });
    answer.map_err(WasmExtension::hook_faulted)
}

/// Makes an asynchronous call, on a kept instance or on a new one. Returns the instance if it can be used again.
async fn call_async(
    extension: &WasmExtension,
    code: &CompiledCode,
    kept: Option<RunningInstance>,
    call: &Call,
    host: Arc<dyn Host>,
) -> (Result<Reply, Fault>, Option<RunningInstance>) {
    let allowance = extension.allowance(call, true);
    let ready = match kept {
        Some(mut live) => {
            let begun = Guest::begin(&mut live.store, Some(host), turn(call), allowance);
            begun.map(|()| live).map_err(CallFailure::from)
        }
        None => match start_async(extension, code, call, &host).await {
            Err(failure) if failure.is_pool_exhausted() => {
                reclaim();
                start_async(extension, code, call, &host).await
            }
            started => started,
        },
    };
    let mut live = match ready {
        Ok(live) => live,
        Err(failure) => return (Err(WasmExtension::faulted(call, failure)), None),
    };
    let answer = extension.call_async(code, &mut live, call).await;
    live.store.data_mut().invocations.settle().await;
    match answer {
        Err(failure @ CallFailure::Broken(_)) => (Err(WasmExtension::faulted(call, failure)), None),
        answer => {
            live.store.data_mut().end();
            (answer.map_err(|failure| WasmExtension::faulted(call, failure)), Some(live))
        }
    }
}

/// A new instance for an asynchronous call. Starting it counts against the limits of the call.
async fn start_async(
    extension: &WasmExtension,
    code: &CompiledCode,
    call: &Call,
    host: &Arc<dyn Host>,
) -> Result<RunningInstance, CallFailure> {
    let mut store = RunningInstance::store(code, &extension.activation);
    Guest::begin(&mut store, Some(host.clone()), turn(call), extension.allowance(call, true))?;
    RunningInstance::instantiate_async(code, store).await
}
