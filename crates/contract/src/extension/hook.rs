//! Hook points: where extensions are asked, in what order, what they may decide, and what their failure means.
//!
//! Everything that is asked during a turn is a hook here: observers, modifiers, gates, guardrails, context providers,
//! routers. One table, [`HookPoint::rules`], says how each behaves, so that no point is a special case in the kernel.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::ids::{ExtensionId, HookId, Millis, ModelName};
use crate::manifest::HookHint;
use crate::matcher::Matcher;

/// A place in a session where extensions are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// A session began.
    SessionStart,
    /// A session ended.
    SessionEnd,
    /// A turn was cancelled.
    SessionCancel,
    /// A turn begins.
    TurnStart,
    /// A turn is about to end.
    TurnEnd,
    /// The user's text may be rewritten.
    InputNormalise,
    /// A sanitizer may rewrite the user's text.
    SanitizeInput,
    /// A guardrail judges the user's text.
    GuardInput,
    /// A context provider adds to the system role.
    Context,
    /// A router names a model.
    ModelRoute,
    /// A modifier rewrites a tool call's arguments or chooses its implementation.
    ToolModify,
    /// A gate judges a tool call's final arguments.
    ToolGate,
    /// A tool's result may be rewritten, or given artifacts and render hints.
    ToolAfter,
    /// A sanitizer may rewrite a tool's result.
    SanitizeResult,
    /// A guardrail judges a tool's result.
    GuardResult,
    /// A sanitizer may rewrite the answer.
    SanitizeOutput,
    /// A guardrail judges the answer.
    GuardOutput,
    /// A guardrail judges a chunk of a streamed answer.
    GuardChunk,
    /// A response processor rewrites the answer.
    ResponseProcess,
    /// Before compaction: instructions and a cut point.
    CompactionBefore,
    /// A provider writes the summary itself.
    CompactionProvide,
}

/// Whether hooks of a point are asked one after the other, each seeing the last one's change, or all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sequence,
    /// All at once; answers are applied in hook order.
    Together,
}

/// What a failed, late or senseless answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFault {
    /// A fault frame, and the turn goes on as if the hook had said nothing.
    Note,
    /// The gate has closed: the call is denied, or the text blocked.
    Close,
}

/// How a point behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointRules {
    /// One by one, or together.
    pub order: Order,
    /// What a fault means.
    pub on_fault: OnFault,
    /// The point that follows at once; none where something else has to happen first.
    pub next: Option<HookPoint>,
}

impl HookPoint {
    /// Every point, in the order a turn meets them.
    pub const ALL: &'static [HookPoint] = &[
        Self::SessionStart,
        Self::TurnStart,
        Self::InputNormalise,
        Self::SanitizeInput,
        Self::GuardInput,
        Self::Context,
        Self::ModelRoute,
        Self::GuardChunk,
        Self::ToolModify,
        Self::ToolGate,
        Self::ToolAfter,
        Self::SanitizeResult,
        Self::GuardResult,
        Self::SanitizeOutput,
        Self::GuardOutput,
        Self::ResponseProcess,
        Self::CompactionBefore,
        Self::CompactionProvide,
        Self::SessionCancel,
        Self::TurnEnd,
        Self::SessionEnd,
    ];

    /// The table that the kernel follows.
    pub fn rules(self) -> PointRules {
        use HookPoint as P;
        let order = match self {
            P::InputNormalise
            | P::SanitizeInput
            | P::SanitizeResult
            | P::SanitizeOutput
            | P::ResponseProcess
            | P::ToolModify
            | P::ToolAfter
            | P::CompactionBefore
            | P::CompactionProvide => Order::Sequence,
            _ => Order::Together,
        };
        let on_fault = match self {
            P::ToolGate
            | P::GuardInput
            | P::GuardResult
            | P::GuardOutput
            | P::GuardChunk
            | P::SanitizeInput
            | P::SanitizeResult
            | P::SanitizeOutput => OnFault::Close,
            _ => OnFault::Note,
        };
        let next = match self {
            P::SessionStart => Some(P::TurnStart),
            P::TurnStart => Some(P::InputNormalise),
            P::InputNormalise => Some(P::SanitizeInput),
            P::SanitizeInput => Some(P::GuardInput),
            P::GuardInput => Some(P::Context),
            P::Context => Some(P::ModelRoute),
            P::ToolAfter => Some(P::SanitizeResult),
            P::SanitizeResult => Some(P::GuardResult),
            P::SanitizeOutput => Some(P::GuardOutput),
            P::GuardOutput => Some(P::ResponseProcess),
            P::ResponseProcess | P::SessionCancel => Some(P::TurnEnd),
            P::CompactionBefore => Some(P::CompactionProvide),
            _ => None,
        };
        PointRules { order, on_fault, next }
    }

    /// What a hook says that has nothing to add or to object.
    pub fn consent(self) -> &'static Decision {
        use HookPoint as P;
        match self {
            P::ToolGate | P::GuardInput | P::GuardResult | P::GuardOutput | P::GuardChunk => &Decision::Allow,
            _ => &Decision::Continue,
        }
    }

    /// Whether a decision is one that this point may give.
    pub fn accepts(self, decision: &Decision) -> bool {
        use Decision as D;
        use HookPoint as P;
        match decision {
            D::Continue | D::Allow => decision == self.consent(),
            D::Deny { .. } | D::Ask { .. } => self == P::ToolGate,
            D::Modify { .. } => self == P::ToolModify,
            D::Replace { .. } => matches!(
                self,
                P::InputNormalise
                    | P::SanitizeInput
                    | P::SanitizeResult
                    | P::SanitizeOutput
                    | P::ResponseProcess
                    | P::CompactionProvide
            ),
            D::Enrich { .. } => self == P::ToolAfter,
            D::Inject { .. } => self == P::Context,
            D::Route { .. } => self == P::ModelRoute,
            D::Flag { .. } | D::Block { .. } => matches!(
                self,
                P::GuardInput
                    | P::GuardResult
                    | P::GuardOutput
                    | P::GuardChunk
                    | P::SanitizeInput
                    | P::SanitizeResult
                    | P::SanitizeOutput
            ),
            D::Compact { .. } => self == P::CompactionBefore,
        }
    }
}

/// What a hook decided. Which decisions fit where is [`HookPoint::accepts`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// Nothing to say.
    Continue,
    /// A gate or guardrail has no objection.
    Allow,
    /// A gate refuses the call.
    Deny {
        /// Why; the model and the user are told.
        reason: String,
    },
    /// A gate wants a person to decide.
    Ask {
        /// Why; shown with the question.
        reason: String,
    },
    /// A modifier's change to a tool call.
    Modify {
        /// New arguments, or none to leave them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Content>,
        /// The extension whose implementation of this tool shall run, or none to leave the active one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        implementation: Option<ExtensionId>,
    },
    /// New content in place of the old.
    Replace {
        /// The new content.
        content: Content,
    },
    /// A change to a tool's result.
    Enrich {
        /// A new result, or none to leave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Content>,
        /// Artifacts to attach.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
        /// How a surface may show it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        render: Option<Content>,
    },
    /// Text for the system role.
    Inject {
        /// The text.
        content: Content,
    },
    /// A model for this turn.
    Route {
        /// The model.
        model: ModelName,
        /// Whether it is an order; counts only where the profile enables authoritative routing.
        #[serde(default)]
        authoritative: bool,
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// A guardrail lets it pass with a remark.
    Flag {
        /// The remark.
        reason: String,
    },
    /// A guardrail stops it.
    Block {
        /// Why.
        reason: String,
    },
    /// How to compact.
    Compact {
        /// What the summary must keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
        /// The number of messages to keep whole at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<u32>,
    },
}

impl Decision {
    /// Why it refuses the call or stops the text.
    pub fn objection(&self) -> Option<&str> {
        match self {
            Decision::Deny { reason } | Decision::Block { reason } => Some(reason),
            _ => None,
        }
    }

    /// What it wants a person, or the record, to know.
    pub fn remark(&self) -> Option<&str> {
        match self {
            Decision::Ask { reason } | Decision::Flag { reason } => Some(reason),
            _ => None,
        }
    }

    /// What the decision puts in the place of what it judged.
    pub fn replacement(&self) -> Option<&Content> {
        match self {
            Decision::Replace { content } => Some(content),
            Decision::Modify { arguments, .. } => arguments.as_ref(),
            Decision::Enrich { result, .. } => result.as_ref(),
            _ => None,
        }
    }
}

/// Something attached to a tool's result: a file, an image, a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// A name a person reads.
    pub name: String,
    /// The media type.
    pub media_type: String,
    /// The artifact itself: a text as it is, anything else as an object with its bytes under `base64`.
    pub content: Content,
}

impl Artifact {
    /// Bytes that are not text, in base64.
    pub fn base64(&self) -> Option<&str> {
        self.content.value().get("base64")?.as_str()
    }

    /// The text of a text.
    pub fn text(&self) -> Option<&str> {
        self.content.value().as_str()
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        let coded = self.base64().map(|coded| coded.trim_end_matches('=').len() as u64 * 3 / 4);
        coded.unwrap_or_else(|| self.content.to_text().len() as u64)
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {} bytes)", self.name, self.media_type, self.size())
    }
}

/// A hook as its extension declares it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSpec {
    /// Where it is asked.
    pub point: HookPoint,
    /// When it applies.
    #[serde(default, skip_serializing_if = "Matcher::is_any")]
    pub matcher: Matcher,
    /// Lower is asked earlier.
    #[serde(default = "default_priority")]
    pub priority: i32,
    /// How long it may take.
    #[serde(default = "default_timeout")]
    pub timeout: Millis,
    /// How many tokens a context provider may add; the host's usual measure if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// Whether a sanitizer of answers may be asked about the beginning of an answer while the rest is written: what it makes of a
    /// beginning holds for the whole, except within the last 64 characters and the run of characters that they cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
}

/// The priority of a hook that names none.
pub fn default_priority() -> i32 {
    100
}

/// The time a hook has if it names none.
pub fn default_timeout() -> Millis {
    Millis(5_000)
}

impl From<&HookHint> for HookSpec {
    fn from(hint: &HookHint) -> Self {
        let HookHint { point, matcher, timeout_ms, priority, tokens, streams } = hint.clone();
        let Self { priority: usual_priority, timeout, .. } = Self::at(point);
        let (priority, timeout) = (priority.unwrap_or(usual_priority), timeout_ms.unwrap_or(timeout));
        Self { point, matcher, priority, timeout, tokens, streams }
    }
}

impl HookSpec {
    /// Whether it judges: it closes when it fails.
    pub fn judges(&self) -> bool {
        self.point.rules().on_fault == OnFault::Close
    }

    /// A hook at this point with every default.
    pub fn at(point: HookPoint) -> Self {
        Self {
            point,
            matcher: Matcher::default(),
            priority: default_priority(),
            timeout: default_timeout(),
            tokens: None,
            streams: false,
        }
    }
}

/// What a hook is told. It is derived from earlier frames and therefore not recorded again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookInput {
    /// The hook that is asked.
    pub hook: HookId,
    /// The point.
    pub point: HookPoint,
    /// The tool call, at the tool points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<crate::message::CallView>,
    /// What is judged or rewritten: the arguments, the result, the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Content>,
    /// Who is talking, on which channel, to which agent.
    pub turn: crate::message::TurnView,
}
