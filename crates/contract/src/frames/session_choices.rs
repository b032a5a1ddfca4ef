//! The choices that stand inside a session's frames: how a turn ended, what gates came to, what a person answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body::Contents;
use crate::content::Content;
use crate::hook::Decision;
use crate::ids::HookId;
use crate::message::LimitKind;
use crate::problem::Fault;
use crate::session_frames::{ChunkVerdict, GateReason, StreamGuarded};
use crate::wire::CallUpdate;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TurnOutcome {
    /// With an answer.
    Answered,
    /// It was cancelled.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// A limit ended it.
    Limited(LimitKind),
    /// A guardrail blocked it.
    Blocked {
        /// Why.
        reason: String,
    },
    /// No model could answer.
    Failed(Fault),
}

/// What a guardrail said about a part of a streamed text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ChunkSaid {
    /// It decided.
    Decided(Decision),
    /// It trapped, timed out or gave an invalid answer.
    Faulted(Fault),
}

impl ChunkVerdict {
    /// Why nothing more of the text may be shown: the guardrail stops it, or has failed.
    pub fn objection(&self) -> Option<String> {
        match &self.said {
            ChunkSaid::Decided(decision) => decision.objection().map(str::to_owned),
            ChunkSaid::Faulted(fault) => Some(fault.to_string()),
        }
    }
}

impl StreamGuarded {
    /// Why nothing more of the text may be shown, if so: the first objection.
    pub fn objection(&self) -> Option<String> {
        self.words.iter().find_map(ChunkVerdict::objection)
    }

    /// Each guardrail that objected or remarked, with its reason.
    pub fn reasons(&self) -> Vec<GateReason> {
        let reason = |word: &ChunkVerdict| match &word.said {
            ChunkSaid::Decided(decision) => decision.remark().map(str::to_owned).or_else(|| word.objection()),
            ChunkSaid::Faulted(_) => word.objection(),
        };
        let words = self.words.iter().filter_map(|word| Some((word.hook.clone(), reason(word)?)));
        words.map(|(hook, reason)| GateReason { hook, reason }).collect()
    }
}

/// What an extension was told while a host call of it was served.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamedUpdates {
    /// Which of the session's streamed calls it is, in the order in which they began; 0 outside of a session.
    pub begun: u32,
    /// The updates, in order and in the pieces in which it got them.
    pub updates: Vec<CallUpdate>,
    /// How many updates it did not get, because there were too many. The answer has all of the text.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub left_out: u64,
}

fn is_none_left_out(count: &u64) -> bool {
    *count == 0
}

impl Contents for StreamedUpdates {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        for update in &mut self.updates {
            match update {
                CallUpdate::Text(content) | CallUpdate::ToolCall { arguments: content, .. } => visit(content),
            }
        }
    }
}

/// How arguments fit a tool's schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckOutcome {
    /// As they are.
    Valid,
    /// After a conversion that the schema asks for, such as `"5"` to `5`.
    Coerced {
        /// The arguments that fit.
        arguments: Content,
    },
    /// Not at all.
    Invalid {
        /// What is wrong, and where.
        errors: Vec<String>,
    },
}

impl Contents for CheckOutcome {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        if let CheckOutcome::Coerced { arguments } = self {
            visit(arguments);
        }
    }
}

/// What the gates came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolVerdict {
    /// It may run.
    Allowed,
    /// It may not.
    Denied {
        /// The gate.
        by: HookId,
        /// Its reason.
        reason: String,
    },
    /// A person must say.
    Asked,
}

/// A person's answer to an approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// Go on.
    Approve {
        /// For how long the answer counts.
        #[serde(default)]
        scope: ApprovalScope,
    },
    /// Go on with other arguments; every gate is asked again.
    Edit {
        /// The new arguments.
        arguments: Content,
    },
    /// Do not.
    Deny {
        /// Why; the model is told.
        reason: String,
    },
}

impl Contents for Answer {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        if let Answer::Edit { arguments } = self {
            visit(arguments);
        }
    }
}

/// For how long an approval counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// Every call of this tool in this session for which only the policy asks.
    Session,
}

/// A question to the user, the same on every surface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum UiQuestion {
    /// One of several.
    Select {
        /// The question.
        prompt: String,
        /// The choices.
        options: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// The question.
        prompt: String,
    },
    /// A line of text.
    Input {
        /// The question.
        prompt: String,
        /// Whether it must not be shown or recorded.
        #[serde(default)]
        secret: bool,
    },
    /// In a surface's own words; others fall back on the prompt.
    Custom {
        /// What to show elsewhere.
        prompt: String,
        /// For the surfaces that know it.
        view: Content,
    },
}

impl UiQuestion {
    /// The question as a text, which every kind of question has.
    pub fn prompt(&self) -> &str {
        match self {
            Self::Select { prompt, .. }
            | Self::Confirm { prompt }
            | Self::Input { prompt, .. }
            | Self::Custom { prompt, .. } => prompt,
        }
    }
}

impl Contents for UiQuestion {
    fn contents(&mut self, visit: &mut dyn FnMut(&mut Content)) {
        if let UiQuestion::Custom { view, .. } = self {
            visit(view);
        }
    }
}
