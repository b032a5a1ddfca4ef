//! The host's data of an instance: its activation, the call that it serves, and what that call has used of its limits.

use std::sync::Arc;

use holdfast_contract::budgets::Budgets;
use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::log::LogLevel;
use holdfast_contract::log::Sinks;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Host;
use wasmtime::{Engine, ResourceLimiter, Result, Store, StoreContextMut, UpdateDeadline};

use crate::faults::{Stop, stop};
use crate::host::invocations::Invocations;

/// Shared by all instances of an activation.
pub(crate) struct Activation {
    pub id: ExtensionId,
    pub budgets: Budgets,
    /// Its configuration.
    pub config: Content,
    /// The largest table that the pool can hold, independent of the budget.
    pub max_table_elements: usize,
    /// The largest memory that the pool can hold, independent of the budget.
    pub max_memory_bytes: usize,
    pub sinks: Sinks,
}

/// Core instances, memories and tables of one component. A Python guest has about 38 core instances.
const MAX_PARTS: usize = 256;

/// The data of a store.
pub(crate) struct Guest {
    pub activation: Arc<Activation>,
    /// Serves the host calls of the current call; `None` for a synchronous call.
    pub host: Option<Arc<dyn Host>>,
    /// The turn of the current call, or of the last one.
    pub turn: Option<TurnView>,
    /// The agents that it follows.
    pub invocations: Invocations,
    /// Epoch ticks left for the call.
    ticks: u64,
    /// The limits of the call.
    allowance: Allowance,
    host_calls: u32,
    log_bytes: u64,
    memory: usize,
    elements: usize,
}

impl Guest {
    /// A store for a new instance.
    pub(crate) fn store(engine: &Engine, activation: &Arc<Activation>) -> Store<Guest> {
        let budgets = activation.budgets;
        let guest = Guest {
            activation: activation.clone(),
            host: None,
            turn: None,
            invocations: Invocations::default(),
            ticks: 0,
            allowance: Allowance { fuel: 0, ticks: 0, yields: false, renews: false },
            host_calls: 0,
            log_bytes: 0,
            memory: 0,
            elements: 0,
        };
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| guest);
        store.epoch_deadline_callback(|mut store| store.data_mut().tick());
        store.set_hostcall_fuel(budgets.answer_bytes as usize);
        store.set_max_component_handles(budgets.handles as usize);
        store
    }

    /// Begins a call with full limits. Without a host it can make no host calls.
    pub(crate) fn begin(
        store: &mut Store<Guest>,
        host: Option<Arc<dyn Host>>,
        turn: Option<&TurnView>,
        allowance: Allowance,
    ) -> Result<()> {
        let guest = store.data_mut();
        guest.host = host;
        // Most calls belong to the same turn as the last one, and cloning is not free.
        if guest.turn.as_ref().map(Arc::as_ptr) != turn.map(Arc::as_ptr) {
            guest.turn = turn.cloned();
        }
        guest.reset(allowance);
        store.set_fuel(allowance.fuel)?;
        store.set_epoch_deadline(1);
        Ok(())
    }

    fn reset(&mut self, allowance: Allowance) {
        (self.allowance, self.ticks) = (allowance, allowance.ticks);
        (self.host_calls, self.log_bytes) = (0, 0);
    }

    /// Whether the call is a background loop, which does not return.
    pub(crate) fn is_a_loop(&self) -> bool {
        self.allowance.renews
    }

    /// Resets the limits of a background loop after it has waited.
    pub(crate) fn renew(store: &mut StoreContextMut<'_, Guest>) -> Result<()> {
        let allowance = store.data().allowance;
        if allowance.renews {
            store.data_mut().reset(allowance);
            store.set_fuel(allowance.fuel)?;
        }
        Ok(())
    }

    /// Ends an asynchronous call: releases its host.
    pub(crate) fn end(&mut self) {
        self.host = None;
    }

    fn tick(&mut self) -> Result<UpdateDeadline> {
        let Some(left) = self.ticks.checked_sub(1) else { return Ok(UpdateDeadline::Interrupt) };
        self.ticks = left;
        Ok(if self.allowance.yields { UpdateDeadline::Yield(1) } else { UpdateDeadline::Continue(1) })
    }

    /// Counts a host call.
    pub(crate) fn count(&mut self) -> Result<()> {
        let limit = self.activation.budgets.host_calls;
        if self.host_calls >= limit {
            let message = format!("it made more than {limit} host calls (`host_calls`)");
            return Err(stop(Code::HostCallsExhausted, message));
        }
        self.host_calls += 1;
        Ok(())
    }

    /// The host of the current call, for one host call.
    pub(crate) fn host(&mut self) -> Result<Arc<dyn Host>> {
        self.count()?;
        self.host.clone().ok_or_else(|| stop(Code::Internal, "a guest made a host call outside of a call"))
    }

    /// Logs a line. Above the limit lines are dropped, with one warning; above twice the limit the call is stopped.
    pub(crate) fn log(&mut self, level: LogLevel, line: &str) -> Result<()> {
        let limit = u64::from(self.activation.budgets.log_bytes);
        let before = self.log_bytes;
        self.log_bytes = before.saturating_add(line.len().max(1) as u64);
        let (id, sinks) = (&self.activation.id, &self.activation.sinks);
        if self.log_bytes <= limit {
            sinks.log(id, level, line);
        } else if before <= limit {
            sinks.log(
                id,
                LogLevel::Warning,
                &format!("this call logged more than {limit} bytes; the rest is dropped"),
            );
        }
        if self.log_bytes > limit.saturating_mul(2) {
            let message = format!("it logged more than twice its limit of {limit} bytes (`log_bytes`)");
            return Err(stop(Code::HostCallsExhausted, message));
        }
        Ok(())
    }
}

/// The limits of one call, and how it runs.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    pub fuel: u64,
    pub ticks: u64,
    pub yields: bool,
    /// Whether the limits are reset after each wait, as for a background loop.
    pub renews: bool,
}

/// A request to grow a memory or table, and its limits.
struct Growth {
    current: usize,
    desired: usize,
    /// The maximum that the component declares.
    declared: Option<usize>,
    /// The maximum of the pool.
    pool: usize,
    /// The budget for the whole instance.
    budget: usize,
    name: &'static str,
}

impl Growth {
    /// Adds the growth to what is in use, or fails with the limit that it exceeds.
    fn within(self, held: &mut usize) -> Result<bool> {
        // Growing beyond its own maximum is a failure that the component expects.
        if self.declared.is_some_and(|declared| declared < self.pool && self.desired > declared) {
            return Ok(false);
        }
        let total = held.saturating_sub(self.current).saturating_add(self.desired);
        if total > self.budget || self.desired > self.pool {
            let limit = self.budget.min(self.pool);
            let message = format!("it requested {total} in all; the limit is {limit} (`{}`)", self.name);
            return Err(Stop(Fault::new(Code::MemoryExhausted, message)).into());
        }
        *held = total;
        Ok(true)
    }
}

impl ResourceLimiter for Guest {
    fn memory_growing(&mut self, current: usize, desired: usize, declared: Option<usize>) -> Result<bool> {
        let budget = usize::try_from(self.activation.budgets.memory_bytes).unwrap_or(usize::MAX);
        let pool = self.activation.max_memory_bytes;
        let growth = Growth { current, desired, declared, pool, budget, name: "memory_bytes" };
        growth.within(&mut self.memory)
    }

    fn table_growing(&mut self, current: usize, desired: usize, declared: Option<usize>) -> Result<bool> {
        let budget = self.activation.budgets.table_elements as usize;
        let pool = self.activation.max_table_elements;
        let growth = Growth { current, desired, declared, pool, budget, name: "table_elements" };
        growth.within(&mut self.elements)
    }

    fn instances(&self) -> usize {
        MAX_PARTS
    }

    fn memories(&self) -> usize {
        MAX_PARTS
    }

    fn tables(&self) -> usize {
        MAX_PARTS
    }
}
