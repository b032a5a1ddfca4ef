//! What the host knows about an instance while it lives: whose it is, which call it serves, and what that call has used up.

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

/// What all instances of an activation share.
pub(crate) struct Activation {
    pub id: ExtensionId,
    pub budgets: Budgets,
    /// Its configuration.
    pub config: Content,
    /// The secrets that it may refer to.
    pub secrets: Vec<String>,
    /// Elements for which a table has room, whatever the budget says.
    pub table_room: usize,
    /// Bytes for which a memory has room, whatever the budget says.
    pub memory_room: usize,
    pub sinks: Sinks,
}

/// Instances, memories and tables that one component may consist of. A Python guest has about 38 core instances.
const PARTS: usize = 256;

/// The data of a store.
pub(crate) struct Guest {
    pub activation: Arc<Activation>,
    /// Who answers the call that runs; none where it can ask for nothing.
    pub host: Option<Arc<dyn Host>>,
    /// The turn that the call serves, or the last one did.
    pub turn: Option<TurnView>,
    /// Ticks that the call may still compute.
    ticks: u64,
    /// What the call could use up when it began.
    allowance: Allowance,
    host_calls: u32,
    log_bytes: u64,
    memory: usize,
    elements: usize,
}

impl Guest {
    /// A store for an instance that is yet to be made.
    pub(crate) fn store(engine: &Engine, activation: &Arc<Activation>) -> Store<Guest> {
        let budgets = activation.budgets;
        let guest = Guest {
            activation: activation.clone(),
            host: None,
            turn: None,
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

    /// Begins a call, with nothing of it used up yet. One without a host can ask for nothing.
    pub(crate) fn begin(
        store: &mut Store<Guest>,
        host: Option<Arc<dyn Host>>,
        turn: Option<&TurnView>,
        allowance: Allowance,
    ) -> Result<()> {
        let guest = store.data_mut();
        guest.host = host;
        // An instance serves one turn at a time, so it mostly has it.
        if guest.turn.as_ref().map(Arc::as_ptr) != turn.map(Arc::as_ptr) {
            guest.turn = turn.cloned();
        }
        guest.fresh(allowance);
        store.set_fuel(allowance.fuel)?;
        store.set_epoch_deadline(1);
        Ok(())
    }

    fn fresh(&mut self, allowance: Allowance) {
        (self.allowance, self.ticks) = (allowance, allowance.ticks);
        (self.host_calls, self.log_bytes) = (0, 0);
    }

    /// Whether the call is a loop, which has no end.
    pub(crate) fn is_a_loop(&self) -> bool {
        self.allowance.renews
    }

    /// Gives a loop all that it may use up again. It has waited.
    pub(crate) fn renew(store: &mut StoreContextMut<'_, Guest>) -> Result<()> {
        let allowance = store.data().allowance;
        if allowance.renews {
            store.data_mut().fresh(allowance);
            store.set_fuel(allowance.fuel)?;
        }
        Ok(())
    }

    /// Ends a call that could ask: whoever answered it is not held any longer.
    pub(crate) fn end(&mut self) {
        self.host = None;
    }

    fn tick(&mut self) -> Result<UpdateDeadline> {
        let Some(left) = self.ticks.checked_sub(1) else { return Ok(UpdateDeadline::Interrupt) };
        self.ticks = left;
        Ok(if self.allowance.yields { UpdateDeadline::Yield(1) } else { UpdateDeadline::Continue(1) })
    }

    /// Counts a question to the host.
    pub(crate) fn count(&mut self) -> Result<()> {
        let limit = self.activation.budgets.host_calls;
        if self.host_calls >= limit {
            let message = format!("it asked the host more than {limit} times (`host_calls`)");
            return Err(stop(Code::HostCallsExhausted, message));
        }
        self.host_calls += 1;
        Ok(())
    }

    /// Who can be asked.
    pub(crate) fn host(&mut self) -> Result<Arc<dyn Host>> {
        self.count()?;
        self.host.clone().ok_or_else(|| stop(Code::Internal, "a guest runs outside of any call"))
    }

    /// Passes a line on to the log. Past its limit lines are dropped, with one note; at twice the limit the call is stopped.
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
            let message = format!("it logged more than twice the {limit} bytes that it may (`log_bytes`)");
            return Err(stop(Code::HostCallsExhausted, message));
        }
        Ok(())
    }
}

/// What one call may use up, and how it runs.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    pub fuel: u64,
    pub ticks: u64,
    pub yields: bool,
    /// Whether all of it is there again after each wait: a loop has no end.
    pub renews: bool,
}

/// What memory or a table wants to be, and what bounds it.
struct Growth {
    current: usize,
    desired: usize,
    /// What the component itself declares.
    declared: Option<usize>,
    /// What the pool has room for.
    room: usize,
    /// What the budget allows over all of the instance.
    budget: usize,
    name: &'static str,
}

impl Growth {
    /// Adds to what is held, or says which bound is in the way.
    fn within(self, held: &mut usize) -> Result<bool> {
        // What the component declares itself is a failure that it expects.
        if self.declared.is_some_and(|declared| declared < self.room && self.desired > declared) {
            return Ok(false);
        }
        let total = held.saturating_sub(self.current).saturating_add(self.desired);
        if total > self.budget || self.desired > self.room {
            let bound = self.budget.min(self.room);
            let message = format!("it wants {total} in all and may have {bound} (`{}`)", self.name);
            return Err(Stop(Fault::new(Code::MemoryExhausted, message)).into());
        }
        *held = total;
        Ok(true)
    }
}

impl ResourceLimiter for Guest {
    fn memory_growing(&mut self, current: usize, desired: usize, declared: Option<usize>) -> Result<bool> {
        let budget = usize::try_from(self.activation.budgets.memory_bytes).unwrap_or(usize::MAX);
        let room = self.activation.memory_room;
        let growth = Growth { current, desired, declared, room, budget, name: "memory_bytes" };
        growth.within(&mut self.memory)
    }

    fn table_growing(&mut self, current: usize, desired: usize, declared: Option<usize>) -> Result<bool> {
        let budget = self.activation.budgets.table_elements as usize;
        let room = self.activation.table_room;
        let growth = Growth { current, desired, declared, room, budget, name: "table_elements" };
        growth.within(&mut self.elements)
    }

    fn instances(&self) -> usize {
        PARTS
    }

    fn memories(&self) -> usize {
        PARTS
    }

    fn tables(&self) -> usize {
        PARTS
    }
}
