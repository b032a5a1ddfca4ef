//! What the runtime holds of an extension: a handle on one instance of it, which is made at its first call and made anew after a
//! fault.

pub(crate) mod guest;
pub(crate) mod pool;
pub(crate) mod running;

use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_contract::hook::{Decision, HookInput};
use holdfast_contract::manifest::Scope;
use holdfast_contract::problem::Fault;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Later, Reply};

use crate::component::code::CompiledCode;
use crate::extension::{WasmExtension, is_background, turn};
use crate::instance::guest::Guest;
use crate::instance::pool::{reclaim, recycle};
use crate::instance::running::{CallFailure, RunningInstance};

/// The largest stack that a guest may use on its caller's own; a larger one might not be there, and running over it would end the
/// process. The threads of the runtime have 2 MiB.
const STACK_AT_ONCE: u32 = 512 << 10;

/// A handle on an extension.
pub(crate) struct WasmInstance {
    extension: Arc<WasmExtension>,
    keeps: InstanceScope,
}

/// What a handle keeps between calls.
#[derive(Clone)]
enum InstanceScope {
    /// Nothing: every call has an instance of its own.
    Nothing,
    /// One instance, for whoever calls it one call at a time.
    Own(Arc<Mutex<Slot>>),
    /// One instance for everybody. Calls wait for each other.
    Shared(Arc<tokio::sync::Mutex<Option<RunningInstance>>>),
}

/// Where a handle's own instance is.
#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    /// A call has it. Others that come meanwhile get an instance for themselves alone.
    Busy,
    Idle(RunningInstance),
}

impl WasmInstance {
    /// The handle that loading gives.
    pub(crate) fn loaded(extension: Arc<WasmExtension>) -> Self {
        let keeps = match extension.known.scope {
            Scope::Shared => InstanceScope::Shared(Arc::default()),
            Scope::Turn | Scope::Call => InstanceScope::Nothing,
        };
        Self { extension, keeps }
    }

    /// The code, if it is here and a hook can be called at once.
    fn ready(&self) -> Option<&CompiledCode> {
        let code = self.extension.code.get().filter(|code| !code.waits)?;
        let fits =
            self.extension.options.stack <= STACK_AT_ONCE && !matches!(self.keeps, InstanceScope::Shared(_));
        fits.then_some(code)
    }
}

impl Instance for WasmInstance {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        if let Some(answer) = self.extension.at_once(&call) {
            return Box::pin(ready(answer));
        }
        if let (Call::Hook(input), Some(code)) = (&call, self.ready()) {
            let answer = now(&self.extension, code, &self.keeps, input);
            return Box::pin(ready(answer.map(Reply::Decision)));
        }
        let extension = self.extension.clone();
        // Whoever calls the others would wait for a loop for ever.
        let keeps = if is_background(&call) { InstanceScope::Nothing } else { self.keeps.clone() };
        Box::pin(async move {
            let code = extension.code().await?;
            match &keeps {
                InstanceScope::Shared(shared) => {
                    let mut kept = shared.lock().await;
                    // Taken out: a call that is given up takes the instance with it.
                    let live = kept.take();
                    let (answer, live) = waiting(&extension, code, live, &call, host).await;
                    *kept = live;
                    answer
                }
                keeps => {
                    let mut taken = Checkout::from(keeps);
                    let live = taken.live.take();
                    let (answer, live) = waiting(&extension, code, live, &call, host).await;
                    taken.live = live;
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
        // What is wrong with it, its first call says.
        Some(Box::pin(async move { drop(extension.code().await) }))
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        Some(now(&self.extension, self.ready()?, &self.keeps, input))
    }

    fn fresh(&self) -> Option<Arc<dyn Instance>> {
        let keeps = match self.extension.known.scope {
            Scope::Turn => InstanceScope::Own(Arc::default()),
            Scope::Call => InstanceScope::Nothing,
            Scope::Shared => return None,
        };
        Some(Arc::new(WasmInstance { extension: self.extension.clone(), keeps }))
    }
}

impl Drop for WasmInstance {
    fn drop(&mut self) {
        let InstanceScope::Own(slot) = &self.keeps else { return };
        if let Slot::Idle(live) = std::mem::take(&mut *lock(slot)) {
            recycle(self.extension.clone(), live);
        }
    }
}

/// A handle's own instance while a call that can wait has it. Put back when the call ends, and the place freed when the call is given
/// up.
struct Checkout<'a> {
    live: Option<RunningInstance>,
    back: Option<&'a Mutex<Slot>>,
}

impl<'a> Checkout<'a> {
    fn from(keeps: &'a InstanceScope) -> Self {
        let InstanceScope::Own(slot) = keeps else { return Self { live: None, back: None } };
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
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A hook called at once, on the handle's own instance or on a new one. Code that never waits asks the host for nothing.
fn now(
    extension: &WasmExtension,
    code: &CompiledCode,
    keeps: &InstanceScope,
    input: &HookInput,
) -> Result<Decision, Fault> {
    let mut own = match keeps {
        InstanceScope::Own(slot) => slot.try_lock().ok().filter(|slot| !matches!(**slot, Slot::Busy)),
        InstanceScope::Nothing | InstanceScope::Shared(_) => None,
    };
    // Held while it runs, which waits for nothing; a panic leaves the place empty.
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

/// A call that can wait, on a kept instance or on a new one. Gives the instance back if it can be used again.
async fn waiting(
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
        None => match start_waiting(extension, code, call, &host).await {
            Err(trouble) if trouble.is_pool_exhausted() => {
                reclaim();
                start_waiting(extension, code, call, &host).await
            }
            started => started,
        },
    };
    let mut live = match ready {
        Ok(live) => live,
        Err(trouble) => return (Err(WasmExtension::faulted(call, trouble)), None),
    };
    match extension.make_waiting(code, &mut live, call).await {
        Err(trouble @ CallFailure::Broken(_)) => (Err(WasmExtension::faulted(call, trouble)), None),
        answer => {
            live.store.data_mut().end();
            (answer.map_err(|trouble| WasmExtension::faulted(call, trouble)), Some(live))
        }
    }
}

/// A new instance for a call that can wait, which pays for its start.
async fn start_waiting(
    extension: &WasmExtension,
    code: &CompiledCode,
    call: &Call,
    host: &Arc<dyn Host>,
) -> Result<RunningInstance, CallFailure> {
    let mut store = RunningInstance::store(code, &extension.activation);
    Guest::begin(&mut store, Some(host.clone()), turn(call), extension.allowance(call, true))?;
    RunningInstance::make_waiting(code, store).await
}
