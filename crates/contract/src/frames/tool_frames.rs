//! The bodies of frames about tool calls: hooks and their decisions, guardrails, calls, approvals.

use std::sync::Arc;

use super::contents::bodies;
use super::session_choices::{Answer, CheckOutcome, ToolVerdict};
use crate::content::{Content, DigestOf};
use crate::hook::{Artifact, Decision, HookPoint};
use crate::ids::{CallId, HookId, RuleName, Seq, ToolName};
use crate::problem::Fault;
use crate::registry::ExtensionRef;
use crate::tool::{CallStatus, EffectClass, ToolOutcome};

bodies! {
    /// `hook.called`
    struct HookCalled {
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what is judged or rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// The hooks that are asked.
        hooks: Arc<[HookId]>,
    };

    /// `hook.agreed`
    struct HookAgreed {
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what was judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// The hooks, in the order in which they were asked.
        hooks: Arc<[HookId]>,
    };

    /// `hook.decided`
    struct HookDecided {
        /// The hook.
        hook: HookId,
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what was judged or rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// The decision.
        decision: Decision,
        /// The policy's rule, where the policy decided; the setting that a context provider's text was cut by, where it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<RuleName>,
    } holds decision;

    /// `hook.faulted`
    struct HookFaulted {
        /// The hook.
        hook: HookId,
        /// The point.
        point: HookPoint,
        /// The tool call, at the tool points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The digest of what was to be judged or rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<DigestOf>,
        /// What happened.
        fault: Fault,
    };

    /// `guard.verdict`
    struct GuardVerdict {
        /// The point.
        point: HookPoint,
        /// The tool call, for a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Whether it was blocked.
        blocked: bool,
        /// Each guardrail that objected or remarked, with its reason.
        reasons: Vec<GateReason>,
    };

    /// `tool.called`
    struct ToolCalled {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// The digest of its arguments as asked for.
        arguments: DigestOf,
    };

    /// `tool.checked`
    struct ToolChecked {
        /// The call.
        call: CallId,
        /// How the arguments fit.
        outcome: CheckOutcome,
    } holds outcome;

    /// `tool.decided`
    struct ToolDecided {
        /// The call.
        call: CallId,
        /// The digest of the arguments it was decided on.
        arguments: DigestOf,
        /// The verdict.
        verdict: ToolVerdict,
    };

    /// `tool.dispatched`
    struct ToolDispatched {
        /// The call.
        call: CallId,
        /// The tool.
        tool: ToolName,
        /// Whose implementation runs.
        implementation: Arc<ExtensionRef>,
        /// The digest of the final arguments.
        arguments: DigestOf,
        /// What the tool does to the world.
        effects: EffectClass,
        /// Which attempt: above 1 only after a crash, and only without side effects.
        attempt: u32,
    };

    /// `tool.returned`
    struct ToolReturned {
        /// The call.
        call: CallId,
        /// What it came to.
        outcome: ToolOutcome,
    } holds outcome;

    /// `tool.settled`
    struct ToolSettled {
        /// The call.
        call: CallId,
        /// How it ended.
        status: CallStatus,
        /// The digest of what the model is told.
        content: DigestOf,
        /// Why, when it did not end well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<Fault>,
        /// Artifacts that hooks attached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
        /// How a surface may show it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        render: Option<Content>,
    } holds artifacts, render;

    /// `approval.requested`
    struct ApprovalRequested {
        /// The call.
        call: CallId,
        /// The digest of the arguments that are to be approved.
        arguments: DigestOf,
        /// Who asks, and why.
        reasons: Vec<GateReason>,
    };

    /// A gate's or guardrail's word.
    struct GateReason {
        /// The hook.
        hook: HookId,
        /// What it said.
        reason: String,
    };

    /// `approval.answered`
    struct ApprovalAnswered {
        /// The `approval.requested` frame.
        approval: Seq,
        /// The answer.
        answer: Answer,
    } holds answer;
}
