//! Limits on turns, tokens, time, money and tool calls: where they are checked and what reaching one means.

use super::*;

impl StepContext<'_> {
    /// Counts what was used, for the turn and for the session.
    pub fn charge(&mut self, more: Spent) {
        self.turn.spent = self.turn.spent.plus(more);
        self.base.spent = self.base.spent.plus(more);
    }

    /// The limit that forbids another model call, of which so many were counted in advance.
    pub fn limit_before_model(&self, counted: u32) -> Option<LimitReached> {
        let (spent, session) = (&self.turn.spent, &self.base.spent);
        let spent = Spent { turns: spent.turns.saturating_sub(counted), ..*spent };
        limit_rules::reached(&self.base.limits(), &spent, session, self.elapsed())
    }

    /// The time that the turn has taken, less what people took to answer.
    pub fn elapsed(&self) -> Millis {
        let (now, deadline) = (self.desk.now(), self.turn.deadline);
        let budget = self.turn.time_limit.budget;
        if now <= deadline { budget.since(deadline.since(now)) } else { budget.plus(now.since(deadline)) }
    }

    /// The limit that forbids the tool calls that the model asks for.
    pub fn limit_before_tools(&self) -> Option<LimitReached> {
        limit_rules::reached_by_calls(
            &self.base.limits(),
            &self.turn.spent,
            &self.base.spent,
            self.turn.calls.len(),
        )
    }

    pub fn end_by_limit(&mut self, reached: LimitReached) {
        let limit = reached.limit;
        self.desk.record(reached);
        self.end_early(TurnOutcome::Limited(limit));
    }

    /// The turn's timer fired, which means nothing while the clock stands still.
    pub fn time_is_up(&mut self) {
        self.turn.timer = None;
        if self.turn.paused.is_none() {
            let TimeLimit { kind, budget } = self.turn.time_limit;
            self.end_by_limit(LimitReached { limit: kind, allowed: budget.0, used: budget.0 });
        }
    }

    /// While a person is asked the clock stands still: the time they take does not count.
    pub fn pause(&mut self, asking: bool) {
        match self.turn.paused {
            None if asking => self.turn.paused = Some(self.desk.now()),
            Some(since) if !asking => {
                self.turn.paused = None;
                self.turn.deadline = self.turn.deadline.plus(self.desk.now().since(since));
                self.set_timer(self.desk.cause);
            }
            _ => {}
        }
    }

    /// Sets the turn's timer, in place of the one before.
    pub fn set_timer(&mut self, decided_by: Seq) {
        let before = self.turn.timer.replace(decided_by);
        self.desk.act(before.map(|begun_by| Act::Abort { begun_by }));
        self.desk.act(Act::SetTimer { decided_by, at: self.turn.deadline });
    }

    /// What is left of the turn's budget for a child agent.
    pub fn remaining(&self, agent: &AgentId) -> Limits {
        let spec = self.base.registry.view.as_ref().and_then(|registry| registry.agent(agent));
        let own = spec.map(|spec| spec.limits).unwrap_or_default();
        let time = self.turn.deadline.since(self.desk.now());
        limit_rules::remaining(&self.base.limits(), own, &self.turn.spent, &self.base.spent, time)
    }
}
