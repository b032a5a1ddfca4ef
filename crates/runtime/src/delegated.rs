//! What a turn may still use for agents that its extensions ask. Their sessions are their own, so that the turn's machine does not see
//! what they use; it is kept here, for as long as the session is open.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::message::{Limits, Spent};
use holdfast_kernel::limits::remaining;

/// What agents that were asked have used.
#[derive(Default)]
pub(crate) struct DelegatedUsage {
    turn: Arc<Mutex<Spent>>,
    /// In turns that have ended.
    earlier: Spent,
    /// What the session itself had used before this turn.
    before: Spent,
}

impl DelegatedUsage {
    /// What a session has used that is taken up.
    pub(crate) fn resumed(before: Spent) -> Self {
        Self { before, ..Self::default() }
    }

    /// What the session itself had used before this turn.
    pub(crate) fn before(&self) -> Spent {
        self.before
    }

    /// A turn has ended; this is what the session has used.
    pub(crate) fn turn_ended(&mut self, before: Spent) {
        let turn = std::mem::take(&mut self.turn);
        self.earlier = self.earlier.plus(*turn.lock().unwrap_or_else(PoisonError::into_inner));
        self.before = before;
    }

    /// What is left in a session of these limits that has used this much.
    pub(crate) fn budget(&self, limits: Limits, session: Spent) -> DelegatedBudget {
        let turn = Spent {
            turns: session.turns.saturating_sub(self.before.turns),
            tokens: session.tokens.saturating_sub(self.before.tokens),
            cost_micros: session.cost_micros.saturating_sub(self.before.cost_micros),
            tool_calls: session.tool_calls.saturating_sub(self.before.tool_calls),
            time: session.time.since(self.before.time),
        };
        DelegatedBudget { limits, turn, session: session.plus(self.earlier), lent: self.turn.clone() }
    }
}

/// What a session may use and has used, as an agent is asked.
pub(crate) struct DelegatedBudget {
    limits: Limits,
    turn: Spent,
    session: Spent,
    lent: Arc<Mutex<Spent>>,
}

impl DelegatedBudget {
    /// What is left for an agent that has limits of its own. Its time ends with the call that asks for it.
    pub(crate) fn left_for(&self, own: Limits) -> Limits {
        let lent = *self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let (turn, session) = (self.turn.plus(lent), self.session.plus(lent));
        remaining(&self.limits, own, &turn, &session, self.limits.time_budget)
    }

    /// An agent has used this much.
    pub(crate) fn charge(&self, spent: Spent) {
        let mut lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        *lent = lent.plus(spent);
    }
}
