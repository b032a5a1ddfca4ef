//! The bodies of the system stream's and the bus's frames. What each kind is for stands in [`crate::body`].

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contents::bodies;
use crate::body::Contents;
use crate::content::{Content, DigestOf};
use crate::digest::Digest;
use crate::hook::HookSpec;
use crate::ids::{
    DescriptorId, ExtensionId, Generation, Millis, RegistryKind, ScheduleId, Seq, StreamId, ToolName, Topic,
};
use crate::manifest::HandlerSpec;
use crate::names::Overrides;
use crate::problem::Fault;
use crate::registry::{AgentSpec, Descriptor, ExtensionRef, Payload};
use crate::tool::ToolSpec;

impl Contents for Descriptor {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        match &mut self.payload {
            Payload::Tool(spec) => tool_contents(spec, visit),
            Payload::Agent(agent) => agent.contents(visit),
            Payload::Other(content) => visit(content),
            Payload::Hook(_) | Payload::Hooks(_) => {}
        }
    }
}

impl Contents for AgentSpec {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        visit(&mut self.instructions);
    }
}

fn tool_contents(spec: &mut Arc<ToolSpec>, visit: &mut dyn FnMut(&mut Content)) {
    let spec = Arc::make_mut(spec);
    visit(&mut spec.input_schema);
    spec.output_schema.contents(visit);
    spec.render.contents(visit);
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

bodies! {
    /// `system.started`
    #[derive(Default)]
    struct SystemStarted {
        /// The kernel's behaviour version.
        kernel: u32,
        /// The program's version.
        version: String,
        /// The content whose code was executing in the earlier process when that died. Without this, in logs of earlier versions, every
        /// extension that was starting then is a suspect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        executing: Option<Vec<Digest>>,
        /// The content whose code ended the earlier process: the signal that it died of came in that code.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        crashed: Vec<Digest>,
        /// Whether the last good content of an extension takes the place of content that cannot be used.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        last_good: bool,
        /// Whether extensions are only loaded, to be listed. What is active then has not shown that it can start.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inspects: bool,
    };

    /// `system.stopping`
    struct SystemStopping {
        /// Why.
        reason: String,
    };

    /// `system.stopped`
    struct SystemStopped {};

    /// `system.settled`
    #[derive(Default)]
    struct SystemSettled {
        /// Whether the registry is to be made again with the hooks of extensions that judge and are not up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        outages: bool,
    };

    /// `extension.found`
    struct ExtensionsFound {
        /// Everything that was found new or changed at once, so that dependencies are judged on the whole.
        found: Vec<FoundExtension>,
    } holds found;

    /// An extension as discovery met it; the kernel assigns its generation.
    #[derive(Default)]
    struct FoundExtension {
        /// The extension.
        id: ExtensionId,
        /// Its version.
        version: Arc<str>,
        /// The digest of its content, settings and grants.
        digest: Digest,
        /// The lane that runs it.
        lane: String,
        /// What it does, in a line or two.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
        /// What it needs to have loaded before it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        depends_on: Vec<ExtensionId>,
        /// What it may call besides: extensions that its manifest requests and the user grants.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        may_call: Vec<ExtensionId>,
        /// The priority of its descriptors that name none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<i32>,
        /// The hooks that its manifest declares and that judge. They count before its code has ever been loaded.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        judges: Vec<HookSpec>,
        /// Its schedules.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        schedules: Vec<ScheduleSpec>,
        /// What it subscribes to.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        subscribes: Vec<SubscriptionSpec>,
        /// The secrets that it is granted, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
        /// The interfaces of the host that it is granted, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interfaces: Vec<String>,
        /// What it needs before it can work, if its manifest names anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup: Option<SetupSpec>,
        /// Set where the program brings the extension along; none for what others install.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        built_in: Option<BuiltIn>,
        /// The agent that its manifest declares beside its code, with the prompt rendered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentSpec>,
        /// Its place in the list of the settings, if it is there. Of equal priority the last one comes first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<u32>,
        /// Whether no turn waits for its start, unless it is known to judge.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        patient: bool,
    } holds agent;

    /// What an extension has because it is built in.
    #[derive(Default)]
    struct BuiltIn {
        /// The names that are reserved for its tools, besides those that it registers: also while it does not offer them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolName>,
    };

    /// A subscription as a manifest has it.
    struct SubscriptionSpec {
        /// The topic, or a pattern of topics.
        topic: Topic,
        /// What happens with its events.
        handler: HandlerSpec,
    };

    /// What an extension needs before it can work, as its manifest has it.
    #[derive(Default)]
    struct SetupSpec {
        /// How to set it up.
        instructions: String,
        /// The secrets without which it does not work.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<String>,
    };

    /// A schedule as a manifest has it.
    struct ScheduleSpec {
        /// Its name within the extension.
        name: String,
        /// When.
        cron: String,
        /// The task that is run.
        task: String,
        /// The time zone; the host's if none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
        /// What happens to runs that were missed.
        #[serde(default)]
        missed: MissedPolicy,
    };

    /// `extension.rejected`
    struct ExtensionRejected {
        /// The extension.
        id: ExtensionId,
        /// Why.
        fault: Fault,
    };

    /// `extension.removed`
    struct ExtensionRemoved {
        /// The extension.
        id: ExtensionId,
    };

    /// `extension.commanded`
    struct ExtensionCommanded {
        /// The activation.
        extension: Arc<ExtensionRef>,
        /// What is to be done.
        command: LifecycleCommand,
    };

    /// `extension.reported`
    struct ExtensionReported {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// What was to be done.
        command: LifecycleCommand,
        /// Its outcome.
        outcome: LifecycleOutcome,
    } holds outcome;

    /// `extension.state`
    struct ExtensionStateChanged {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// Its state from now on.
        state: ExtensionState,
        /// Why, when it is in error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        /// When it is sent up again, if it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<Millis>,
    };

    /// `extension.retried`
    struct ExtensionRetried {
        /// The extension.
        id: ExtensionId,
        /// Why.
        reason: String,
        /// Whether a new generation of the same content starts although one is up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reload: bool,
    };

    /// `extension.faulted`
    struct ExtensionFaulted {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// What it was doing: `tool.call`, `hook`, `service`.
        phase: String,
        /// What happened.
        fault: Fault,
    };

    /// `extension.reloaded`
    struct ExtensionReloaded {
        /// The extension.
        id: ExtensionId,
        /// The generation that leaves.
        from: Generation,
        /// The generation that takes over.
        to: Generation,
    };

    /// `extension.rolled_back`
    struct ExtensionRolledBack {
        /// The extension.
        id: ExtensionId,
        /// The generation that kept faulting.
        from: Generation,
        /// The generation that is active again.
        to: Generation,
        /// How often it faulted.
        faults: u32,
    };

    /// `health.reported`
    struct HealthReported {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// Whether it is healthy. Checks that passed are counted in `extension.checked`.
        healthy: bool,
    };

    /// `extension.checked`
    struct ExtensionsChecked {
        /// When the first of them was made.
        since: Millis,
        /// By extension.
        checks: Vec<CheckCount>,
    };

    /// How often an extension was checked with the same outcome as before, and how often it was asked what has no frame of its own.
    struct CheckCount {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// Health checks that passed.
        #[serde(default, skip_serializing_if = "is_zero")]
        healthy: u32,
        /// Calls of set-up functions that answered as before.
        #[serde(default, skip_serializing_if = "is_zero")]
        setup: u32,
        /// Events about turns that are kept in memory only and were handed over.
        #[serde(default, skip_serializing_if = "is_zero")]
        events: u32,
        /// Of these, those that its handler failed on.
        #[serde(default, skip_serializing_if = "is_zero")]
        events_failed: u32,
        /// Such events that its queue had no room for.
        #[serde(default, skip_serializing_if = "is_zero")]
        events_missed: u32,
        /// Times that its context provider was asked outside of a turn, for `context.enrich`.
        #[serde(default, skip_serializing_if = "is_zero")]
        enriched: u32,
        /// Of these, those in which it failed or was late.
        #[serde(default, skip_serializing_if = "is_zero")]
        enriched_failed: u32,
        /// The connections to the ports that it listens on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ports: Vec<PortUse>,
    };

    /// The connections from this machine to a port that an extension listens on.
    struct PortUse {
        /// The port.
        port: u16,
        /// How many were forwarded to the extension.
        #[serde(default, skip_serializing_if = "is_zero")]
        connections: u32,
        /// How many were closed at once: too many were open, or the extension did not accept them.
        #[serde(default, skip_serializing_if = "is_zero")]
        refused: u32,
        /// Bytes from the clients.
        received: u64,
        /// Bytes to the clients.
        sent: u64,
    };

    /// `setup.called`
    struct SetupCalled {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// The function: `schema`, `apply` or `complete`.
        function: String,
        /// The parameters that it asks for, or that it was given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// The digest of its answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<DigestOf>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    };

    /// `renderer.called`
    struct RendererCalled {
        /// The extension.
        id: ExtensionId,
        /// Which activation.
        generation: Generation,
        /// The tool whose call is shown.
        tool: ToolName,
        /// The digest of the call's arguments, as in its `tool.called`.
        arguments: DigestOf,
        /// The digest of the call's result, as in its `tool.settled`.
        result: DigestOf,
        /// What `render-call` answered; none if the surface shows the call itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_shown: Option<ShownText>,
        /// What `render-result` answered; none if the surface shows the result itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_shown: Option<ShownText>,
        /// Why a function failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        faults: Vec<Fault>,
    };

    /// A text that was shown to a person, without the text.
    struct ShownText {
        /// Its digest, after redaction.
        digest: Digest,
        /// Its length.
        bytes: u64,
    };

    /// `overrides.set`
    struct OverridesSet {
        /// By kind and descriptor.
        overrides: Overrides,
    };

    /// `policy.changed`
    struct PolicyChanged {
        /// The digest of the policy in force, and its key in the store.
        policy: Digest,
        /// Why.
        reason: String,
    };

    /// `registry.changed`
    struct RegistryChanged {
        /// The digest of the active set, and its key in the store.
        registry: Digest,
        /// The active descriptor of every `(kind, id)` that changed, with the stack below it.
        changes: Vec<StackChange>,
    };

    /// What became of one stack.
    struct StackChange {
        /// The registry.
        kind: RegistryKind,
        /// The id within it.
        id: DescriptorId,
        /// From top to bottom; empty when nothing is left.
        stack: Vec<Arc<ExtensionRef>>,
    };

    /// `schedule.due`
    #[derive(Default)]
    struct ScheduleDue {
        /// The schedule.
        schedule: ScheduleId,
        /// The moment it was due, which is the run's key.
        due: Millis,
        /// Which attempt this is, if an earlier one failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Retry>,
        /// Why the run is not to be made, if it is not. It counts as dealt with, and so does everything before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        passed: Option<String>,
        /// The clock was put back: due times count from this one on, also those before the last that was dealt with.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        corrected: bool,
    };

    /// Another attempt at a run that failed.
    struct Retry {
        /// The attempt, from 2.
        attempt: u32,
        /// The chance that was drawn for the wait before it.
        jitter: u32,
    };

    /// `schedule.fired`
    struct ScheduleFired {
        /// The schedule.
        schedule: ScheduleId,
        /// The moment it was due.
        due: Millis,
        /// The task.
        task: String,
    };

    /// `schedule.ended`
    struct ScheduleEnded {
        /// The schedule.
        schedule: ScheduleId,
        /// The moment it was due.
        due: Millis,
        /// What happened, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
    };

    /// `schedule.skipped`
    struct ScheduleSkipped {
        /// The schedule.
        schedule: ScheduleId,
        /// The moment it was due.
        due: Millis,
        /// Why.
        reason: String,
    };

    /// `head.anchored`
    struct HeadAnchored {
        /// The session.
        stream: StreamId,
        /// Its last frame.
        seq: Seq,
        /// That frame's hash.
        hash: Digest,
    };

    /// `log.checkpointed`
    struct LogCheckpointed {
        /// The stream.
        stream: StreamId,
        /// The last frame that was collected.
        seq: Seq,
        /// That frame's hash, which the next one's `prev` must be.
        hash: Digest,
    };

    /// `log.erased`
    struct LogErased {
        /// The stream.
        stream: StreamId,
        /// The first frame.
        from: Seq,
        /// The last frame.
        to: Seq,
        /// Why.
        reason: String,
    };

    /// `log.migrated`
    struct LogMigrated {
        /// The format it had.
        from: u32,
        /// The format it has.
        to: u32,
    };

    /// `event.published`
    struct EventPublished {
        /// The topic.
        topic: Topic,
        /// What it says.
        payload: Content,
        /// The key within which events keep their order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// What it answers or belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correlation: Option<String>,
        /// Against doubles.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idempotency: Option<String>,
    } holds payload;

    /// `event.delivered`
    struct EventDelivered {
        /// The `event.published` frames.
        events: Vec<Seq>,
        /// Who took them.
        subscriber: String,
    };

    /// `event.retried`
    struct EventRetried {
        /// The `event.published` frame.
        event: Seq,
        /// Who failed.
        subscriber: String,
        /// Which attempt failed, from 1.
        attempt: u32,
        /// When it is tried again.
        next: Millis,
        /// What happened.
        fault: Fault,
    };

    /// `event.dead`
    struct EventDead {
        /// The `event.published` frame.
        event: Seq,
        /// Who failed.
        subscriber: String,
        /// How often.
        attempts: u32,
        /// What happened last.
        fault: Fault,
    };

    /// `event.discarded`
    struct EventDiscarded {
        /// The `event.published` frame.
        event: Seq,
        /// Who will not get it any more.
        subscriber: String,
        /// Why.
        reason: String,
    };
}

/// An extension as others see it.
#[derive(Clone, Debug)]
pub struct ExtensionView {
    /// The extension.
    pub id: ExtensionId,
    /// The generation that serves.
    pub active: Option<Arc<ExtensionRef>>,
    /// Why it is in error, or why what was found last does not serve.
    pub fault: Option<Fault>,
    /// The lane that runs it.
    pub lane: String,
    /// Names of tools that it does not get, or that others register too.
    pub conflicts: Vec<Fault>,
    /// Whether a generation is starting.
    pub starting: bool,
}

impl ExtensionView {
    /// Its state.
    pub fn state(&self) -> ExtensionState {
        match (&self.active, &self.fault) {
            (Some(_), _) => ExtensionState::Active,
            (None, Some(_)) => ExtensionState::Error,
            (None, None) => ExtensionState::Inactive,
        }
    }
}

impl FoundExtension {
    /// This content as the activation of this number.
    pub fn activation(&self, generation: u64) -> ExtensionRef {
        let FoundExtension { id, version, digest, .. } = self.clone();
        ExtensionRef { id, version, digest, generation: Generation(generation) }
    }
}

/// What a lane is asked to do with an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleCommand {
    /// Read its code and find its roles.
    Load,
    /// Hand it its context.
    Initialize,
    /// Let it begin.
    Start,
    /// Let it end.
    Stop,
    /// Let it free what it holds.
    Destroy,
}

impl LifecycleCommand {
    /// Its name, as it stands in frames.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Initialize => "initialize",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Destroy => "destroy",
        }
    }
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LifecycleOutcome {
    /// Done.
    Done,
    /// Loaded: this is what it registers.
    Loaded {
        /// Its descriptors, in registration order.
        descriptors: Vec<Descriptor>,
        /// Whether its life has steps: only then is it initialised, started, stopped and destroyed.
        lives: bool,
        /// Whether two of its generations never run side by side: the old one stops before the new one starts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        alone: bool,
    },
    /// It failed.
    Failed(Fault),
}

impl Contents for LifecycleOutcome {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        if let LifecycleOutcome::Loaded { descriptors, .. } = self {
            descriptors.contents(visit);
        }
    }
}

/// The three states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExtensionState {
    /// Known, not running.
    #[default]
    Inactive,
    /// Running.
    Active,
    /// Stopped, with a reason.
    Error,
}

/// What happens to runs that were missed while nothing was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedPolicy {
    /// The latest missed run is run once.
    #[default]
    RunOnce,
    /// Missed runs are passed over.
    Skip,
    /// Every missed run is run, the oldest first; of more than a hundred, the latest hundred.
    RunAll,
}
