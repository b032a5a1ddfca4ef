//! What goes into the kernel and what comes out: an [`Input`] is a fact to be recorded, [`Effects`] are frames to record and
//! acts to perform. The kernel itself performs nothing.

use std::sync::Arc;

use crate::agents::ToolScope;
use crate::body::Body;
use crate::content::Content;
use crate::frame::{Draft, FrameSource};
use crate::hook::HookInput;
use crate::ids::{AgentId, CallId, ExtensionId, Millis, ModelName, ScheduleId, Seq, StreamId};
use crate::message::{CallView, Limits, Message, Spent, TurnView};
use crate::registry::{AskedHooks, ExtensionRef, Outage, Registry, RegistryPin};
use crate::session_frames::{GateReason, TurnOutcome, UiQuestion};
use crate::system_frames::LifecycleCommand;
use crate::tool::ToolSpec;

/// An outside fact on its way into a machine.
#[derive(Clone, Debug)]
pub struct Input {
    /// When it was noticed.
    pub at: Millis,
    /// Who says so.
    pub source: FrameSource,
    /// The frame it answers.
    pub cause: Option<Seq>,
    /// The fact.
    pub body: Body,
}

/// What a machine wants done: the frames are written, and then the acts are performed, each in order.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// The fact itself, and then what was decided on it.
    pub frames: Vec<Draft>,
    /// What is to be performed.
    pub acts: Vec<Act>,
}

/// An act. Each names the frame that decided it; what the act leads to comes back as an input with that frame as its cause.
#[derive(Clone, Debug)]
pub enum Act {
    /// Ask hooks about one subject.
    CallHooks(Box<RoundAct>),
    /// Evaluate the policy on a call.
    EvaluatePolicy(Box<CallAct>),
    /// Check a call's arguments against the tool's schema.
    CheckArguments(Box<CallAct>),
    /// Run a tool.
    Dispatch(Box<CallAct>),
    /// Ask a model.
    CallModel(Box<ModelAct>),
    /// Ask a person about a call.
    AskApproval(Box<ApprovalAct>),
    /// Ask the user on an extension's behalf.
    AskUi {
        /// The `ui.requested` frame.
        decided_by: Seq,
        /// The extension that asks.
        extension: ExtensionId,
        /// The question.
        question: UiQuestion,
    },
    /// Open a child session and give it a prompt.
    OpenChild(Box<ChildAct>),
    /// Write a summary of these messages.
    Summarise(Box<SummaryAct>),
    /// Report a turn's end to those who wait for it.
    Deliver {
        /// The `turn.ended` frame.
        decided_by: Seq,
        /// How it ended.
        outcome: TurnOutcome,
        /// What the user is told.
        answer: Option<Content>,
        /// What the turn used.
        spent: Spent,
    },
    /// Fire a timer at this moment unless it is aborted.
    SetTimer {
        /// The frame that set it, which is its name.
        decided_by: Seq,
        /// When.
        at: Millis,
    },
    /// Stop what this frame began: hooks, a model call, a tool, a child, a timer. Its answer is no longer wanted.
    Abort {
        /// The frame that began it.
        begun_by: Seq,
    },
    /// Carry out a lifecycle command.
    Lifecycle {
        /// The `extension.commanded` frame.
        decided_by: Seq,
        /// The activation.
        extension: Arc<ExtensionRef>,
        /// The command.
        command: LifecycleCommand,
    },
    /// Let new turns start on this registry.
    Activate {
        /// The registry and the `registry.changed` frame.
        pin: RegistryPin,
    },
    /// Run a schedule's task.
    RunTask {
        /// The `schedule.fired` frame.
        decided_by: Seq,
        /// The schedule.
        schedule: ScheduleId,
        /// The extension.
        extension: Arc<ExtensionRef>,
        /// The task.
        task: String,
        /// The moment it was due.
        due: Millis,
    },
}

/// Hooks to ask about one subject.
#[derive(Clone, Debug)]
pub struct RoundAct {
    /// The `hook.called` frame.
    pub decided_by: Seq,
    /// What each is told, apart from which hook it is.
    pub input: HookInput,
    /// The hooks.
    pub hooks: AskedHooks,
}

/// One hook to ask.
#[derive(Clone, Debug)]
pub struct HookAct {
    /// The `hook.called` frame.
    pub decided_by: Seq,
    /// Whose hook it is.
    pub extension: Arc<ExtensionRef>,
    /// How long it may take.
    pub timeout: Millis,
    /// How many tokens it may add, where it says so itself.
    pub tokens: Option<u32>,
    /// What it is told.
    pub input: HookInput,
    /// Why it cannot be asked, if its extension is not up.
    pub outage: Option<Box<Outage>>,
}

impl RoundAct {
    /// The same for each hook.
    pub fn each(self) -> impl Iterator<Item = HookAct> {
        let Self { decided_by, input, hooks } = self;
        (0..hooks.entries.len()).filter_map(move |place| {
            let hook = hooks.entries.get(place)?;
            let input = HookInput { hook: hook.id.clone(), ..input.clone() };
            let (extension, timeout, tokens) = (hook.extension.clone(), hook.spec.timeout, hook.spec.tokens);
            let outage = hook.outage.clone();
            Some(HookAct { decided_by, extension, timeout, tokens, input, outage })
        })
    }
}

/// A call to check, judge or run.
#[derive(Clone, Debug)]
pub struct CallAct {
    /// The frame that led to the check, the `hook.called` frame, or the `tool.dispatched` frame.
    pub decided_by: Seq,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub spec: Arc<ToolSpec>,
    /// The arguments as they stand.
    pub arguments: Content,
    /// Whose implementation it is.
    pub extension: Arc<ExtensionRef>,
    /// The turn it belongs to.
    pub turn: TurnView,
    /// The registry it is pinned to, and with it the policy in force.
    pub registry: Arc<Registry>,
}

/// A model to ask.
#[derive(Clone, Debug)]
pub struct ModelAct {
    /// The `model.requested` frame.
    pub decided_by: Seq,
    /// The model.
    pub model: ModelName,
    /// How long to wait first.
    pub delay: Millis,
    /// Which of the registry's tools the agent has.
    pub scope: ToolScope,
    /// The agent's instructions.
    pub instructions: Content,
    /// What context providers add to them, in order.
    pub context: Arc<Vec<Content>>,
    /// The conversation.
    pub messages: Arc<Vec<Message>>,
    /// The registry whose tools it may call.
    pub registry: Arc<Registry>,
    /// The turn it belongs to.
    pub turn: TurnView,
}

/// A question to a person.
#[derive(Clone, Debug)]
pub struct ApprovalAct {
    /// The `approval.requested` frame, which is the approval's id.
    pub decided_by: Seq,
    /// The call.
    pub call: CallView,
    /// The extension whose tool it is.
    pub extension: Option<ExtensionId>,
    /// Who asks, and why.
    pub reasons: Vec<GateReason>,
}

/// A question that waits for a person, as a surface is shown it.
#[derive(Clone, Debug)]
pub struct Pending {
    /// The `approval.requested` frame.
    pub approval: Seq,
    /// The call.
    pub call: CallView,
    /// The extension whose tool it is.
    pub extension: Option<ExtensionId>,
    /// The same with its content, as the registry of the turn has it.
    pub implementation: Option<ExtensionRef>,
    /// Who asks, and why.
    pub reasons: Vec<GateReason>,
}

/// A child session to open.
#[derive(Clone, Debug)]
pub struct ChildAct {
    /// The `child.opened` frame.
    pub decided_by: Seq,
    /// The call that it answers.
    pub call: CallId,
    /// Its stream.
    pub child: StreamId,
    /// The agent.
    pub agent: AgentId,
    /// What it is asked.
    pub arguments: Content,
    /// What is left for it.
    pub limits: Limits,
    /// How deep it is nested.
    pub depth: u8,
    /// The registry that its first turn is pinned to.
    pub registry: RegistryPin,
    /// The turn that opens it.
    pub turn: TurnView,
}

/// A summary to write.
#[derive(Clone, Debug)]
pub struct SummaryAct {
    /// The `compaction.started` frame.
    pub decided_by: Seq,
    /// The model to ask.
    pub model: Option<ModelName>,
    /// What to summarise.
    pub messages: Arc<Vec<Message>>,
    /// How many messages at the end are kept whole.
    pub keep: u32,
    /// What the summary must keep.
    pub instructions: Vec<String>,
}
