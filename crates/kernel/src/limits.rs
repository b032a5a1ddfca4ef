//! Limit arithmetic: what is left of limits, and which one is reached first.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::{LimitKind, Limits, Spent};
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::LimitReached;

/// The time that a turn may take, and the limit that sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub struct TimeLimit {
    /// The limit.
    pub kind: LimitKind,
    /// The time.
    pub budget: Millis,
}

impl TimeLimit {
    /// The time of a turn that begins after its session has used this much: the turn's own limit, or what is left of the session's.
    pub fn of(limits: &Limits, session: &Spent) -> Self {
        let turn = Self { kind: LimitKind::Time, budget: limits.time_budget };
        let Some(session_time) = limits.session_time else { return turn };
        let left = Self { kind: LimitKind::SessionTime, budget: session_time.since(session.time) };
        if left.budget < turn.budget { left } else { turn }
    }
}

/// What is left of limits after the turn and the session have used this much, with this much time to go.
pub fn left(limits: &Limits, turn: &Spent, session: &Spent, time: Millis) -> Limits {
    let less = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
    let fewer = |limit: Option<u32>, used: u32| limit.map(|limit| limit.saturating_sub(used));
    Limits {
        max_turns: limits.max_turns.saturating_sub(turn.turns),
        max_tokens: limits.max_tokens.saturating_sub(turn.tokens),
        time_budget: time,
        max_cost_micros: less(limits.max_cost_micros, turn.cost_micros),
        max_tool_calls: fewer(limits.max_tool_calls, turn.tool_calls),
        session_tokens: less(limits.session_tokens, session.tokens),
        session_cost_micros: less(limits.session_cost_micros, session.cost_micros),
        session_tool_calls: fewer(limits.session_tool_calls, session.tool_calls),
        session_time: limits.session_time.map(|limit| limit.since(session.time)),
    }
}

/// Limits of an agent's own, within what is left for it. It has its own number of model calls.
pub fn within(own: Limits, left: &Limits) -> Limits {
    Limits {
        max_turns: own.max_turns,
        max_tokens: own.max_tokens.min(left.max_tokens),
        time_budget: own.time_budget.min(left.time_budget),
        max_cost_micros: stricter(own.max_cost_micros, left.max_cost_micros),
        max_tool_calls: stricter(own.max_tool_calls, left.max_tool_calls),
        session_tokens: stricter(own.session_tokens, left.session_tokens),
        session_cost_micros: stricter(own.session_cost_micros, left.session_cost_micros),
        session_tool_calls: stricter(own.session_tool_calls, left.session_tool_calls),
        session_time: stricter(own.session_time, left.session_time),
    }
}

/// One of this many equal parts of what is left. Time is not divided: it passes for all of them at once.
pub(crate) fn share(left: Limits, parts: u32) -> Limits {
    let parts = parts.max(1);
    let part = |limit: Option<u64>| limit.map(|limit| limit / u64::from(parts));
    let few = |limit: Option<u32>| limit.map(|limit| limit / parts);
    Limits {
        max_tokens: left.max_tokens / u64::from(parts),
        max_cost_micros: part(left.max_cost_micros),
        max_tool_calls: few(left.max_tool_calls),
        session_tokens: part(left.session_tokens),
        session_cost_micros: part(left.session_cost_micros),
        session_tool_calls: few(left.session_tool_calls),
        ..left
    }
}

/// The most that a session with these limits is expected to use.
pub(crate) fn most_used(limits: &Limits) -> Spent {
    Spent {
        tokens: stricter(Some(limits.max_tokens), limits.session_tokens).unwrap_or_default(),
        cost_micros: stricter(limits.max_cost_micros, limits.session_cost_micros).unwrap_or_default(),
        tool_calls: stricter(limits.max_tool_calls, limits.session_tool_calls).unwrap_or_default(),
        ..Spent::default()
    }
}

/// The stricter of two limits, of which either may be absent.
fn stricter<T: Ord>(own: Option<T>, other: Option<T>) -> Option<T> {
    own.into_iter().chain(other).min()
}

/// The limit that forbids another model call after the turn and the session have used this much and the turn has run for this time.
pub(crate) fn reached(limits: &Limits, turn: &Spent, session: &Spent, time: Millis) -> Option<LimitReached> {
    let session_time = limits.session_time.map(|limit| limit.0);
    let checks = [
        (LimitKind::Turns, Some(u64::from(limits.max_turns)), u64::from(turn.turns)),
        (LimitKind::Tokens, Some(limits.max_tokens), turn.tokens),
        (LimitKind::Cost, limits.max_cost_micros, turn.cost_micros),
        (LimitKind::SessionTokens, limits.session_tokens, session.tokens),
        (LimitKind::SessionCost, limits.session_cost_micros, session.cost_micros),
        (LimitKind::Time, Some(limits.time_budget.0), time.0),
        (LimitKind::SessionTime, session_time, session.time.plus(time).0),
    ];
    checks.into_iter().find_map(|(limit, allowed, used)| {
        let allowed = allowed?;
        (used >= allowed).then_some(LimitReached { limit, allowed, used })
    })
}

/// The limit that forbids this many more tool calls.
pub(crate) fn reached_by_calls(
    limits: &Limits,
    turn: &Spent,
    session: &Spent,
    more: usize,
) -> Option<LimitReached> {
    let checks = [
        (LimitKind::ToolCalls, limits.max_tool_calls, turn.tool_calls),
        (LimitKind::SessionToolCalls, limits.session_tool_calls, session.tool_calls),
    ];
    checks.into_iter().find_map(|(limit, allowed, used)| {
        let allowed = u64::from(allowed?);
        let used = u64::from(used) + more as u64;
        (used > allowed).then_some(LimitReached { limit, allowed, used })
    })
}
