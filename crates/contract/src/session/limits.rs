//! What a turn and a session may use, and what they have used. Which limit is reached, and what is left, is decided by the kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::Millis;

/// What a model call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Cost in millionths of a dollar.
    pub cost_micros: u64,
}

/// Upper bounds of a turn. Zero turns, tokens or calls is a bound like any other; absent means unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Model calls in a turn.
    pub max_turns: u32,
    /// Tokens in a turn.
    pub max_tokens: u64,
    /// Time in a turn.
    pub time_budget: Millis,
    /// Money in a turn, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_micros: Option<u64>,
    /// Tool calls in a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Tokens in the whole session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_tokens: Option<u64>,
    /// Money in the whole session, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_cost_micros: Option<u64>,
    /// Tool calls in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_tool_calls: Option<u32>,
    /// Time that the session's turns take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_time: Option<Millis>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 10,
            max_tokens: 50_000,
            time_budget: Millis(120_000),
            max_cost_micros: None,
            max_tool_calls: None,
            session_tokens: None,
            session_cost_micros: None,
            session_tool_calls: None,
            session_time: None,
        }
    }
}

impl Limits {
    /// The bound of this kind; `None` if it is not bounded, and for what is bounded per day.
    pub fn bound(&self, kind: LimitKind) -> Option<u64> {
        match kind {
            LimitKind::Turns => Some(self.max_turns.into()),
            LimitKind::Tokens => Some(self.max_tokens),
            LimitKind::Time => Some(self.time_budget.0),
            LimitKind::Cost => self.max_cost_micros,
            LimitKind::ToolCalls => self.max_tool_calls.map(u64::from),
            LimitKind::SessionTokens => self.session_tokens,
            LimitKind::SessionCost => self.session_cost_micros,
            LimitKind::SessionToolCalls => self.session_tool_calls.map(u64::from),
            LimitKind::SessionTime => self.session_time.map(|time| time.0),
            _ => None,
        }
    }
}

/// Which limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Model calls in a turn.
    #[default]
    Turns,
    /// Tokens in a turn.
    Tokens,
    /// Time in a turn.
    Time,
    /// Money in a turn.
    Cost,
    /// Tool calls in a turn.
    ToolCalls,
    /// Tokens in the session.
    SessionTokens,
    /// Money in the session.
    SessionCost,
    /// Tool calls in the session.
    SessionToolCalls,
    /// Time that the session's turns take.
    SessionTime,
    /// Tokens in a day.
    DayTokens,
    /// Money in a day.
    DayCost,
    /// Tool calls in a day.
    DayToolCalls,
    /// Time that turns take in a day.
    DayTime,
    /// Tokens that an extension's agents use in a day.
    ExtensionTokens,
    /// Money that an extension's agents use in a day.
    ExtensionCost,
    /// Calls of an extension's tools in a day.
    ExtensionToolCalls,
    /// Time that turns of an extension's agents take in a day.
    ExtensionTime,
}

impl LimitKind {
    /// What is limited, in words, and what the limit is called in the settings or, for a day, in the policy. An agent may have its own.
    pub fn explain(self) -> (&'static str, &'static str) {
        match self {
            Self::Turns => ("model calls in a turn", "limits.max_turns"),
            Self::Tokens => ("tokens in a turn", "limits.max_tokens"),
            Self::Time => ("milliseconds in a turn", "limits.time_budget_ms"),
            Self::Cost => ("millionths of a dollar in a turn", "limits.max_cost_usd"),
            Self::ToolCalls => ("tool calls in a turn", "limits.max_tool_calls"),
            Self::SessionTokens => ("tokens in a session", "limits.session_tokens"),
            Self::SessionCost => ("millionths of a dollar in a session", "limits.session_cost_usd"),
            Self::SessionToolCalls => ("tool calls in a session", "limits.session_tool_calls"),
            Self::SessionTime => ("milliseconds in a session", "limits.session_time_ms"),
            Self::DayTokens => ("tokens in a day", "caps.day.tokens"),
            Self::DayCost => ("millionths of a dollar in a day", "caps.day.dollars"),
            Self::DayToolCalls => ("tool calls in a day", "caps.day.tool_calls"),
            Self::DayTime => ("milliseconds in a day", "caps.day.time_ms"),
            Self::ExtensionTokens => ("tokens of an extension in a day", "caps.extensions.<id>.tokens"),
            Self::ExtensionCost => {
                ("millionths of a dollar of an extension in a day", "caps.extensions.<id>.dollars")
            }
            Self::ExtensionToolCalls => {
                ("tool calls of an extension in a day", "caps.extensions.<id>.tool_calls")
            }
            Self::ExtensionTime => ("milliseconds of an extension in a day", "caps.extensions.<id>.time_ms"),
        }
    }

    /// What is limited, and where the limit is set, if that is known.
    pub fn with_place(self, place: Option<&str>) -> String {
        match place {
            Some(place) => format!("{self} ({place})"),
            None => self.to_string(),
        }
    }
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.explain().0)
    }
}

/// What has been used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// Model calls.
    pub turns: u32,
    /// Tokens.
    pub tokens: u64,
    /// Money in millionths of a dollar.
    pub cost_micros: u64,
    /// Tool calls.
    pub tool_calls: u32,
    /// The time that turns took, less what people took to answer.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub time: Millis,
}

fn is_nothing(time: &Millis) -> bool {
    *time == Millis(0)
}

impl Spent {
    /// This and what more was used; saturates at the largest number.
    #[must_use]
    pub fn plus(self, more: Spent) -> Self {
        Self {
            turns: self.turns.saturating_add(more.turns),
            tokens: self.tokens.saturating_add(more.tokens),
            cost_micros: self.cost_micros.saturating_add(more.cost_micros),
            tool_calls: self.tool_calls.saturating_add(more.tool_calls),
            time: self.time.plus(more.time),
        }
    }
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Self { tokens, cost_micros: usage.cost_micros, ..Self::default() }
    }
}
