//! The list of frame kinds: each with its body, whether it is a fact from outside or a decision of the kernel, and one sentence.
//!
//! Replay feeds the facts to a fresh machine and compares the decisions. `docs/reference/frames.md` is generated from here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;
use crate::digest::{NotCanonical, canonical};
use crate::event_json;
use crate::ids::CallId;
use crate::session_frames::*;
use crate::system_frames::*;

/// Whether a frame came from outside or from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameOrigin {
    /// An outside fact: an input of the kernel.
    Fact,
    /// Decided by the kernel from the facts before it.
    Decision,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $wire:literal $origin:ident $name:ident;)+) => {
        /// A frame's kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum FrameKind { $($(#[doc = $doc])+ #[serde(rename = $wire)] $name,)+ }

        impl FrameKind {
            /// Every kind.
            pub const ALL: &'static [FrameKind] = &[$(FrameKind::$name,)+];

            /// The kind as it is written: `turn.started`.
            pub fn as_str(self) -> &'static str {
                match self { $(FrameKind::$name => $wire,)+ }
            }

            /// Fact or decision.
            pub fn origin(self) -> FrameOrigin {
                match self { $(FrameKind::$name => FrameOrigin::$origin,)+ }
            }

            /// What the kind records.
            pub fn describe(self) -> &'static str {
                match self { $(FrameKind::$name => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// The JSON Schema of the kind's body.
            pub fn body_schema(self, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                match self { $(FrameKind::$name => generator.subschema_for::<$name>(),)+ }
            }
        }

        /// What a frame says, typed by its kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Body { $($(#[doc = $doc])+ $name($name),)+ }

        impl Body {
            /// The kind.
            pub fn kind(&self) -> FrameKind {
                match self { $(Body::$name(_) => FrameKind::$name,)+ }
            }

            /// The body's canonical JSON.
            pub fn canonical(&self) -> Result<Vec<u8>, NotCanonical> {
                if let Some(json) = event_json::canonical(self) {
                    return Ok(json);
                }
                match self { $(Body::$name(body) => canonical(body),)+ }
            }

            /// A body read back from its JSON.
            pub fn read(kind: FrameKind, json: Value) -> Result<Self, serde_json::Error> {
                Ok(match kind { $(FrameKind::$name => Body::$name(serde_json::from_value(json)?),)+ })
            }

            /// Every piece of content in the body that may be kept as a blob of its own.
            pub fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
                match self { $(Body::$name(body) => body.contents(visit),)+ }
            }
        }

        $(impl From<$name> for Body {
            fn from(body: $name) -> Self {
                Body::$name(body)
            }
        })+
    };
}

/// A body's pieces of [`Content`], so that large ones can be stored beside it and found again.
pub trait Contents {
    /// Visits each piece.
    fn contents(&mut self, _visit: &mut dyn FnMut(&mut Content)) {}
}

kinds! {
    /// A session began, with the kernel's behaviour version, its origin, limits and parent.
    "session.started" Fact SessionStarted;
    /// The session was resumed after a stop or a crash.
    "session.resumed" Fact SessionResumed;
    /// Someone cancelled the running turn.
    "session.cancelled" Fact SessionCancelled;
    /// The session is over and takes no more input.
    "session.ended" Fact SessionEnded;
    /// A person chose other models for the rest of the session.
    "session.set" Fact SessionSet;
    /// The conversation was handed over to an agent, or back.
    "agent.changed" Decision AgentChanged;
    /// A user's input arrived, and with it the registry that its turn is pinned to.
    "input.received" Fact InputReceived;
    /// Hooks rewrote the input.
    "input.normalised" Decision InputNormalised;
    /// A turn began on a registry.
    "turn.started" Decision TurnStarted;
    /// A turn is over; says how, what it answered and what it cost.
    "turn.ended" Decision TurnEnded;
    /// Context providers' texts were put into the system role, each with its origin.
    "context.injected" Decision ContextInjected;
    /// An extension put a message into the conversation.
    "message.injected" Fact MessageInjected;
    /// A model was chosen for the turn.
    "model.routed" Decision ModelRouted;
    /// A model was asked; attempts are numbered.
    "model.requested" Decision ModelRequested;
    /// A model answered. Streamed text is stored here in one piece.
    "model.returned" Fact ModelReturned;
    /// A model did not answer.
    "model.failed" Fact ModelFailed;
    /// Guardrails have judged what a model wrote, piece by piece, before anybody was shown it.
    "stream.guarded" Fact StreamGuarded;
    /// A stream ended without its end: what had been shown was provisional.
    "stream.interrupted" Decision StreamInterrupted;
    /// A channel was shown an answer while it was written: how many chunks and status lines it was given, and their digests.
    "stream.shown" Fact StreamShown;
    /// A channel may have been shown part of an answer by a process that ended. What it was given is not known.
    "stream.lost" Fact StreamLost;
    /// Sanitizers of answers were asked about texts that were shown before the answer: how often, what they said, and a digest of it all.
    "preview.asked" Fact PreviewAsked;
    /// Hooks of one point were asked, all those whose matcher applies.
    "hook.called" Decision HookCalled;
    /// Hooks that were asked together answered at once, and none of them had anything to add or to object.
    "hook.agreed" Fact HookAgreed;
    /// A hook decided. The policy's verdict is one of these, with the rule's name.
    "hook.decided" Fact HookDecided;
    /// A hook trapped, timed out or gave an invalid answer.
    "hook.faulted" Fact HookFaulted;
    /// Guardrails were heard: the worst verdict of the round.
    "guard.verdict" Decision GuardVerdict;
    /// A model's tool call was accepted.
    "tool.called" Decision ToolCalled;
    /// The arguments were checked against the tool's schema.
    "tool.checked" Fact ToolChecked;
    /// All gates have decided on the final arguments.
    "tool.decided" Decision ToolDecided;
    /// The call was handed to its implementation.
    "tool.dispatched" Decision ToolDispatched;
    /// The implementation answered, failed or was late.
    "tool.returned" Fact ToolReturned;
    /// The call is over; says what the model is told.
    "tool.settled" Decision ToolSettled;
    /// A person is asked to decide on a call.
    "approval.requested" Decision ApprovalRequested;
    /// A person, or the headless default, decided.
    "approval.answered" Fact ApprovalAnswered;
    /// An extension asks the user something.
    "ui.requested" Fact UiRequested;
    /// The user, or the headless default, answered.
    "ui.answered" Fact UiAnswered;
    /// An extension stored a value in the session.
    "state.written" Fact StateWritten;
    /// A child session was opened for an agent.
    "child.opened" Decision ChildOpened;
    /// A child session's turn is over.
    "child.ended" Fact ChildEnded;
    /// A limit was reached, and the turn ends.
    "limit.reached" Decision LimitReached;
    /// A timer that the kernel set has fired.
    "timer.fired" Fact TimerFired;
    /// The user asks for compaction.
    "compaction.requested" Fact CompactionRequested;
    /// Compaction begins.
    "compaction.started" Decision CompactionStarted;
    /// A summary was written.
    "compaction.provided" Fact CompactionProvided;
    /// The conversation was shortened.
    "compaction.applied" Decision CompactionApplied;
    /// An extension read the clock.
    "clock.read" Fact ClockRead;
    /// An extension drew random bytes.
    "random.drawn" Fact RandomDrawn;
    /// An extension used a secret; recorded as a keyed digest.
    "secret.used" Fact SecretUsed;
    /// An extension in the middle of a call asked the host for something, and was answered.
    "host.called" Fact HostCalled;
    /// A channel took the end of a streamed answer, or failed.
    "delivery.reported" Fact DeliveryReported;
    /// A slash command was run.
    "command.run" Fact CommandRun;
    /// The system started.
    "system.started" Fact SystemStarted;
    /// The system is to stop: everything is stopped in reverse order.
    "system.stopping" Fact SystemStopping;
    /// Everything has stopped.
    "system.stopped" Decision SystemStopped;
    /// Extensions were found, or found changed.
    "extension.found" Fact ExtensionsFound;
    /// An extension could not be loaded: its manifest, its lane or its contract is at fault.
    "extension.rejected" Fact ExtensionRejected;
    /// An extension's folder is gone.
    "extension.removed" Fact ExtensionRemoved;
    /// The kernel asks a lane to load, initialise, start, stop, destroy or unload an extension.
    "extension.commanded" Decision ExtensionCommanded;
    /// A lane carried such a command out.
    "extension.reported" Fact ExtensionReported;
    /// An extension is now inactive, active or in error, with the reason.
    "extension.state" Decision ExtensionStateChanged;
    /// A restart of an extension was requested, regardless of its earlier failures.
    "extension.retried" Fact ExtensionRetried;
    /// An extension faulted while it was running.
    "extension.faulted" Fact ExtensionFaulted;
    /// A new generation took over.
    "extension.reloaded" Decision ExtensionReloaded;
    /// A generation that kept faulting was replaced by the one before.
    "extension.rolled_back" Decision ExtensionRolledBack;
    /// An extension is unhealthy: its health check failed, or its background loop ended.
    "health.reported" Fact HealthReported;
    /// Health checks passed and set-up functions answered as before: how often, by extension, since the last such frame.
    "extension.checked" Fact ExtensionsChecked;
    /// A set-up function of an extension was called, and its answer is another than before. Values are not recorded.
    "setup.called" Fact SetupCalled;
    /// The renderer of an extension was called for a surface, with the digests of what it was given and of what it answered.
    "renderer.called" Fact RendererCalled;
    /// The user's overrides were set.
    "overrides.set" Fact OverridesSet;
    /// A policy came into force.
    "policy.changed" Fact PolicyChanged;
    /// Everything that was reported so far has been taken, and what follows from it is decided.
    "system.settled" Fact SystemSettled;
    /// The active set changed.
    "registry.changed" Decision RegistryChanged;
    /// A schedule is due.
    "schedule.due" Fact ScheduleDue;
    /// A schedule's task was started, once for its due time.
    "schedule.fired" Decision ScheduleFired;
    /// A schedule's task ended.
    "schedule.ended" Fact ScheduleEnded;
    /// A due time was passed over, with the reason.
    "schedule.skipped" Decision ScheduleSkipped;
    /// A session's head, so that a cut tail or a lost session is noticed.
    "head.anchored" Fact HeadAnchored;
    /// Old frames were collected up to here.
    "log.checkpointed" Fact LogCheckpointed;
    /// Bodies of a stream were erased.
    "log.erased" Fact LogErased;
    /// The database was brought to a newer format.
    "log.migrated" Fact LogMigrated;
    /// An event was published on the bus.
    "event.published" Fact EventPublished;
    /// A subscriber took events: as many as were recorded together.
    "event.delivered" Fact EventDelivered;
    /// A subscriber failed, or its outcome is unknown, and it will be tried again.
    "event.retried" Fact EventRetried;
    /// A subscriber failed permanently: the event is its dead letter.
    "event.dead" Fact EventDead;
    /// A subscriber will not get an event any more: its dead letter was discarded, or no subscriber of its name is left.
    "event.discarded" Fact EventDiscarded;
}

impl Body {
    /// The tool call that a fact is about, if it is about one.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Body::HookAgreed(fact) => fact.call,
            Body::HookDecided(fact) => fact.call,
            Body::HookFaulted(fact) => fact.call,
            Body::ToolChecked(fact) => Some(fact.call),
            Body::ToolReturned(fact) => Some(fact.call),
            Body::ChildEnded(fact) => Some(fact.call),
            _ => None,
        }
    }
}

impl std::fmt::Display for FrameKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl FrameKind {
    /// The kind written this way.
    pub fn parse(text: &str) -> Option<FrameKind> {
        FrameKind::ALL.iter().copied().find(|kind| kind.as_str() == text)
    }
}
