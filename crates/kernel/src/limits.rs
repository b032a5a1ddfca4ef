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

/// What is left of limits for a session that has limits of its own, after the turn and the session have used this much and with this
/// much time to go.
pub fn remaining(limits: &Limits, own: Limits, turn: &Spent, session: &Spent, time: Millis) -> Limits {
    Limits {
        max_turns: own.max_turns,
        max_tokens: own.max_tokens.min(limits.max_tokens.saturating_sub(turn.tokens)),
        time_budget: own.time_budget.min(time),
        max_cost_micros: least(own.max_cost_micros, left(limits.max_cost_micros, turn.cost_micros)),
        max_tool_calls: least(own.max_tool_calls, left_calls(limits.max_tool_calls, turn.tool_calls)),
        session_tokens: least(own.session_tokens, left(limits.session_tokens, session.tokens)),
        session_cost_micros: least(
            own.session_cost_micros,
            left(limits.session_cost_micros, session.cost_micros),
        ),
        session_tool_calls: least(
            own.session_tool_calls,
            left_calls(limits.session_tool_calls, session.tool_calls),
        ),
        session_time: least(own.session_time, limits.session_time.map(|limit| limit.since(session.time))),
    }
}

fn left(limit: Option<u64>, used: u64) -> Option<u64> {
    limit.map(|limit| limit.saturating_sub(used))
}

fn left_calls(limit: Option<u32>, used: u32) -> Option<u32> {
    limit.map(|limit| limit.saturating_sub(used))
}

/// The stricter of two limits, of which either may be absent.
fn least<T: Ord>(own: Option<T>, other: Option<T>) -> Option<T> {
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
