//! What a turn and a session may use up, what they have used, and which bound is reached first.

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
    /// What is left of these limits after this much was spent in the turn and in the session and with this much time to go, for
    /// someone who has limits of their own.
    pub fn left_for(&self, own: Limits, turn: &Spent, session: &Spent, time: Millis) -> Limits {
        let least = |own: Option<u64>, bound: Option<u64>, used: u64| {
            own.into_iter().chain(bound.map(|bound| bound.saturating_sub(used))).min()
        };
        let calls = |own: Option<u32>, bound: Option<u32>, used: u32| {
            own.into_iter().chain(bound.map(|bound| bound.saturating_sub(used))).min()
        };
        Limits {
            max_tokens: own.max_tokens.min(self.max_tokens.saturating_sub(turn.tokens)),
            time_budget: own.time_budget.min(time),
            max_cost_micros: least(own.max_cost_micros, self.max_cost_micros, turn.cost_micros),
            session_tokens: least(own.session_tokens, self.session_tokens, session.tokens),
            session_cost_micros: least(
                own.session_cost_micros,
                self.session_cost_micros,
                session.cost_micros,
            ),
            max_tool_calls: calls(own.max_tool_calls, self.max_tool_calls, turn.tool_calls),
            session_tool_calls: calls(own.session_tool_calls, self.session_tool_calls, session.tool_calls),
            session_time: (own.session_time.into_iter())
                .chain(self.session_time.map(|bound| bound.since(session.time)))
                .min(),
            ..own
        }
    }

    /// The bound of this kind; none where there is none, and for what is bounded in a day.
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

    /// The time that a turn may take after so much was spent in the session.
    pub fn allotted(&self, session: &Spent) -> (LimitKind, Millis) {
        let left = self.session_time.map(|bound| (LimitKind::SessionTime, bound.since(session.time)));
        [(LimitKind::Time, self.time_budget)]
            .into_iter()
            .chain(left)
            .min_by_key(|(_, time)| *time)
            .unwrap_or_default()
    }

    /// The limit that forbids another model call after so much was spent in the turn and in the session.
    pub fn reached(&self, turn: &Spent, session: &Spent, time: Millis) -> Option<Reached> {
        let bounds = [
            (LimitKind::Turns, Some(u64::from(self.max_turns)), u64::from(turn.turns)),
            (LimitKind::Tokens, Some(self.max_tokens), turn.tokens),
            (LimitKind::Cost, self.max_cost_micros, turn.cost_micros),
            (LimitKind::SessionTokens, self.session_tokens, session.tokens),
            (LimitKind::SessionCost, self.session_cost_micros, session.cost_micros),
            (LimitKind::Time, Some(self.time_budget.0), time.0),
            (LimitKind::SessionTime, self.session_time.map(|bound| bound.0), session.time.plus(time).0),
        ];
        let mut bounds = bounds.into_iter().filter_map(|(kind, allowed, used)| Some((kind, allowed?, used)));
        bounds.find(|(_, allowed, used)| used >= allowed)
    }

    /// The limit that forbids so many more tool calls.
    pub fn reached_by_calls(&self, turn: &Spent, session: &Spent, more: usize) -> Option<Reached> {
        let bounds = [
            (LimitKind::ToolCalls, self.max_tool_calls, turn.tool_calls),
            (LimitKind::SessionToolCalls, self.session_tool_calls, session.tool_calls),
        ];
        bounds.into_iter().find_map(|(kind, allowed, used)| {
            let (allowed, asked) = (u64::from(allowed?), u64::from(used) + more as u64);
            (asked > allowed).then_some((kind, allowed, asked))
        })
    }
}

/// Which limit, its bound, and what was used or asked for.
pub type Reached = (LimitKind, u64, u64);

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
    /// Adds what more was used; the largest number stands for anything larger.
    pub fn add(&mut self, more: Spent) {
        self.turns = self.turns.saturating_add(more.turns);
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost_micros = self.cost_micros.saturating_add(more.cost_micros);
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
        self.time = self.time.plus(more.time);
    }
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        Self { tokens, cost_micros: usage.cost_micros, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_sessions_time_is_not_what_is_left_of_a_turns() {
        let all =
            Limits { time_budget: Millis(5_000), session_time: Some(Millis(60_000)), ..Limits::default() };
        let spent = Spent { time: Millis(20_000), ..Spent::default() };
        let left = all.left_for(Limits::default(), &Spent::default(), &spent, Millis(3_000));
        assert_eq!((left.time_budget, left.session_time), (Millis(3_000), Some(Millis(40_000))));
        let own = Limits { session_time: Some(Millis(10_000)), ..Limits::default() };
        let left = all.left_for(own, &Spent::default(), &spent, Millis(3_000));
        assert_eq!(left.session_time, Some(Millis(10_000)));
    }
}
