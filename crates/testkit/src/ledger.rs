//! A lane that keeps a ledger of every call into an extension, outside the log: the witness of what really ran.

use std::sync::{Arc, Mutex};

use holdfast_contract::hook::{Decision, HookInput};
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Lane, Later, Reply};
use holdfast_lane_native::{NativeExtension, NativeLane};

/// What really ran, in order, one line each: `tool 1.1 write`, `hook policy/0 tool_gate`, `life kv start`.
#[derive(Clone, Default)]
pub struct EffectLedger(Arc<Mutex<Vec<String>>>);

impl EffectLedger {
    /// Writes a line.
    pub fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// How many lines begin like this.
    pub fn count(&self, beginning: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|line| line.starts_with(beginning)).count()
    }
}

/// The native lane, with a ledger.
#[derive(Default)]
pub struct RecordingLane {
    native: NativeLane,
    ledger: EffectLedger,
}

impl RecordingLane {
    /// A lane that writes into this ledger.
    pub fn new(ledger: EffectLedger) -> Self {
        Self { native: NativeLane::default(), ledger }
    }

    /// Adds an extension.
    pub fn add(&self, extension: NativeExtension) -> FoundExtension {
        self.native.add(extension)
    }
}

impl Lane for RecordingLane {
    fn name(&self) -> &str {
        self.native.name()
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let (loading, ledger, id) =
            (self.native.load(extension), self.ledger.clone(), extension.id.to_string());
        Box::pin(async move {
            let inner = loading.await?;
            Ok(Arc::new(Recorded { inner, ledger, id }) as Arc<dyn Instance>)
        })
    }
}

struct Recorded {
    inner: Arc<dyn Instance>,
    ledger: EffectLedger,
    id: String,
}

impl Instance for Recorded {
    fn call(&self, call: Call, host: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        self.ledger.note(match &call {
            Call::Hook(input) => format!("hook {} {:?}", input.hook, input.point),
            Call::Tool { call, tool, turn, .. } => format!("tool {} {call} {tool}", turn.session),
            Call::Lifecycle(command) => format!("life {} {command:?}", self.id),
            Call::Health => format!("health {}", self.id),
            Call::Task { task } => format!("task {} {task}", self.id),
            Call::Api { method, .. } => format!("api {} {method}", self.id),
            Call::Function { function, .. } => format!("function {} {function}", self.id),
        });
        self.inner.call(call, host)
    }

    fn capabilities(&self) -> InstanceCapabilities {
        self.inner.capabilities()
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        self.ledger.note(format!("hook {} {:?}", input.hook, input.point));
        self.inner.try_decide(input)
    }
}
