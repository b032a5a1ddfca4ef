//! Calls into extensions: starting a call, waiting for its reply, reading the reply, limits on concurrency, and the instance
//! that a call runs on.
//!
//! What is public here is what decides how a recorded call is repeated: strict replay, the test harness for authors and the
//! benchmarks make their calls through the same functions as the session's actor.
//!
//! | file | contents |
//! |---|---|
//! | `call.rs` | one call: panics become faults, timeouts, replies that are ready immediately |
//! | `reply.rs` | the decision or the result in a reply |
//! | `instances.rs` | which sandboxed instance serves which call of a turn |
//! | `schema_check.rs` | arguments and results against the JSON Schemas of a tool |
//! | `coercion.rs` | conversions of arguments, such as of a text to a number |
//! | `context_budget.rs` | how many tokens context providers may add to a prompt |
//! | `chunk.rs`, `stream_windows.rs` | guardrails on streamed text: the windows, the questions, the verdicts |
//! | `executor.rs` | concurrency limits, queues and circuit breakers for tool calls |
//! | `call_gate.rs` | calls in progress per extension, held back while an exclusive generation is replaced |

mod call;
mod call_gate;
mod chunk;
mod coercion;
mod context_budget;
mod executor;
mod instances;
mod reply;
mod schema_check;
mod schema_cost;
mod stream_windows;

pub use call::{CallState, start_call, wait_timeout};
pub(crate) use call::{later, try_now, wait};
pub(crate) use call_gate::{CallGates, CallGuard};
pub use chunk::{chunk_guards, chunk_input, chunk_instance, chunk_verdict};
pub use context_budget::ContextTokenBudget;
pub(crate) use executor::{Admission, Permit, Suspended, run};
pub use instances::{CallEnd, CallKey, Instances};
pub(crate) use reply::accepted;
pub use reply::{decision_of, result_of};
pub use schema_check::{SchemaChecks, schema_error};
pub(crate) use stream_windows::{releasable_until, settled_until, window_end};
pub use stream_windows::{window_with_overlap, windows};

use std::sync::Arc;

use executor::Executor;
use holdfast_contract::content::Content;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::CheckOutcome;
use holdfast_contract::tool::{ToolOutcome, ToolSpec};
use holdfast_home::CallSettings;
use tokio::sync::Semaphore;

use crate::usage::HostCallRates;

/// The tool calls of all sessions: concurrency limits, circuit breakers and compiled schemas.
pub(crate) struct Calls {
    executor: Arc<Executor>,
    schemas: SchemaChecks,
    /// The host calls of extensions.
    pub(crate) host_rates: HostCallRates,
}

impl Calls {
    pub(crate) fn new(settings: CallSettings) -> Self {
        let host_rates = HostCallRates::new(settings.host_rate);
        Self { executor: Arc::new(Executor::new(settings)), schemas: SchemaChecks::default(), host_rates }
    }

    /// A permit to call a tool now; a fault if its circuit breaker is open.
    pub(crate) fn permit(
        &self,
        extension: &ExtensionRef,
        spec: &ToolSpec,
        now: Millis,
    ) -> Result<Permit, Fault> {
        self.executor.enter(extension, spec, now)
    }

    /// The queues that a call has to pass.
    pub(crate) fn queues(&self, extension: &ExtensionRef, spec: &ToolSpec) -> Vec<Arc<Semaphore>> {
        self.executor.queues(extension, spec)
    }

    /// How long a call of a tool may take.
    pub(crate) fn timeout(&self, spec: &ToolSpec) -> Millis {
        self.executor.timeout(spec)
    }

    /// The tools whose circuit breakers are open.
    pub(crate) fn suspended(&self, now: Millis) -> Vec<Suspended> {
        self.executor.suspended(now)
    }

    /// Checks arguments against the tool's schema.
    pub(crate) fn check_arguments(&self, spec: &Arc<ToolSpec>, arguments: &Content) -> CheckOutcome {
        self.schemas.arguments(spec, arguments)
    }

    /// Checks a result against the tool's schema.
    pub(crate) fn check_result(&self, spec: &Arc<ToolSpec>, result: Content) -> ToolOutcome {
        self.schemas.result(spec, result)
    }
}
