//! Limits on turns, tokens, time, money and tool calls: where they are checked and what reaching one means.

use holdfast_contract::effect::Act;
use holdfast_contract::ids::Millis;
use holdfast_contract::message::{LimitKind, Limits};
use holdfast_contract::session_frames::{LimitReached, TurnOutcome};

use super::Way;
use super::call::CallStage;
use super::turn::Turn;

/// Which limit, its bound, and what was used or asked for.
pub(super) type Reached = (LimitKind, u64, u64);

impl Way<'_> {
    /// The limit that forbids another model call.
    pub(super) fn limit_before_model(&self, turn: &Turn) -> Option<Reached> {
        let limits = &self.base.settings.limits;
        let (spent, session) = (&turn.spent, &self.base.spent);
        let bounds = [
            (LimitKind::Turns, Some(u64::from(limits.max_turns)), u64::from(spent.turns)),
            (LimitKind::Tokens, Some(limits.max_tokens), spent.tokens),
            (LimitKind::Cost, limits.max_cost_micros, spent.cost_micros),
            (LimitKind::SessionTokens, limits.session_tokens, session.tokens),
            (LimitKind::SessionCost, limits.session_cost_micros, session.cost_micros),
            (LimitKind::Time, Some(turn.deadline.0), self.desk.now().0),
        ];
        bounds.into_iter().find_map(|(kind, allowed, used)| {
            let allowed = allowed?;
            (used >= allowed).then(|| match kind {
                LimitKind::Time => (kind, limits.time_budget.0, limits.time_budget.0 + (used - allowed)),
                _ => (kind, allowed, used),
            })
        })
    }

    /// The limit that forbids the tool calls that the model asks for.
    pub(super) fn limit_before_tools(&self, turn: &Turn) -> Option<Reached> {
        let allowed = u64::from(self.base.settings.limits.max_tool_calls?);
        let asked = u64::from(turn.spent.tool_calls) + turn.calls.len() as u64;
        (asked > allowed).then_some((LimitKind::ToolCalls, allowed, asked))
    }

    pub(super) fn end_by_limit(&mut self, turn: &mut Turn, (limit, allowed, used): Reached) {
        self.desk.record(LimitReached { limit, allowed, used });
        self.end_early(turn, TurnOutcome::Limited(limit));
    }

    /// The turn's timer fired. While a person is asked the clock stands still.
    pub(super) fn time_is_up(&mut self, turn: &mut Turn) {
        turn.timer = None;
        if is_approving(turn) {
            return;
        }
        let budget = self.base.settings.limits.time_budget.0;
        self.end_by_limit(turn, (LimitKind::Time, budget, budget));
    }

    /// The last person who was asked has answered: the time they took does not count.
    pub(super) fn extend_deadline(&mut self, turn: &mut Turn, since: Millis) {
        if is_approving(turn) {
            return;
        }
        let waited = self.desk.now().since(since);
        turn.deadline = turn.deadline.plus(waited);
        self.set_timer(turn);
    }

    /// Sets the turn's timer anew, in place of the one before.
    pub(super) fn set_timer(&mut self, turn: &mut Turn) {
        if let Some(timer) = turn.timer {
            self.desk.act(Act::Abort { begun_by: timer });
        }
        let decided_by = self.desk.cause();
        turn.timer = Some(decided_by);
        self.desk.act(Act::SetTimer { decided_by, at: turn.deadline });
    }

    /// What is left of the turn's budget for a child with limits of its own.
    pub(super) fn remaining(&self, turn: &Turn, own: Limits) -> Limits {
        let limits = &self.base.settings.limits;
        let left = |bound: Option<u64>, used: u64| bound.map(|bound| bound.saturating_sub(used));
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let time = turn.deadline.since(self.desk.now());
        Limits {
            max_turns: own.max_turns,
            max_tokens: own.max_tokens.min(limits.max_tokens.saturating_sub(turn.spent.tokens)),
            time_budget: own.time_budget.min(time),
            max_cost_micros: least(own.max_cost_micros, left(limits.max_cost_micros, turn.spent.cost_micros)),
            max_tool_calls: own.max_tool_calls,
            session_tokens: least(own.session_tokens, left(limits.session_tokens, self.base.spent.tokens)),
            session_cost_micros: least(
                own.session_cost_micros,
                left(limits.session_cost_micros, self.base.spent.cost_micros),
            ),
        }
    }
}

fn is_approving(turn: &Turn) -> bool {
    turn.calls.iter().any(|call| matches!(call.stage, CallStage::Approving { .. }))
}
