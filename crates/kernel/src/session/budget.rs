//! The budget of a turn: what it has used, where limits are checked, and its deadline.

use holdfast_contract::effect::Act;
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::message::Spent;
use holdfast_contract::session_frames::{LimitReached, TurnOutcome};

use super::SessionState;
use super::turn::{Turn, TurnStep};
use crate::limits::{reached, reached_by_calls};

/// What counts for a turn of what another session used for it. Its model calls and its time are its own: the turn has waited meanwhile.
pub(super) fn delegated(spent: Spent) -> Spent {
    Spent { turns: 0, time: Millis(0), ..spent }
}

/// Counts what was used, for the turn and for the session.
pub(super) fn charge(session: &mut SessionState, turn: &mut Turn, more: Spent) {
    turn.spent = turn.spent.plus(more);
    session.spent = session.spent.plus(more);
}

impl TurnStep<'_> {
    /// Counts what was used, for the turn and for the session.
    pub fn charge(&mut self, more: Spent) {
        charge(self.session, self.turn, more);
    }

    /// The limit that forbids another model call. `counted` model calls were charged in advance.
    pub fn limit_before_model(&self, counted: u32) -> Option<LimitReached> {
        let turns = self.turn.spent.turns.saturating_sub(counted);
        let spent = Spent { turns, ..self.turn.spent };
        reached(&self.session.limits(), &spent, &self.session.spent, self.elapsed())
    }

    /// The limit that forbids the tool calls that the model asks for.
    pub fn limit_before_tools(&self) -> Option<LimitReached> {
        reached_by_calls(&self.session.limits(), &self.turn.spent, &self.session.spent, self.calls.len())
    }

    /// Running time so far, without the time spent waiting for a person.
    pub fn elapsed(&self) -> Millis {
        let (now, deadline, budget) = (self.recorder.now(), self.turn.deadline, self.turn.time_limit.budget);
        if now <= deadline { budget.since(deadline.since(now)) } else { budget.plus(now.since(deadline)) }
    }

    pub fn end_by_limit(&mut self, reached: LimitReached) {
        let limit = reached.limit;
        self.recorder.record(reached);
        self.end_early(TurnOutcome::Limited(limit));
    }

    /// The turn's timer fired, which means nothing while the clock is paused.
    pub fn deadline_reached(&mut self) {
        self.turn.timer = None;
        if self.turn.paused.is_none() {
            let limit = self.turn.time_limit;
            self.end_by_limit(LimitReached {
                limit: limit.kind,
                allowed: limit.budget.0,
                used: limit.budget.0,
            });
        }
    }

    /// Pauses the clock while a person is asked: the time that takes does not count.
    pub fn pause(&mut self, asking: bool) {
        match self.turn.paused {
            None if asking => self.turn.paused = Some(self.recorder.now()),
            Some(since) if !asking => {
                self.turn.paused = None;
                self.turn.deadline = self.turn.deadline.plus(self.recorder.now().since(since));
                self.set_timer(self.recorder.cause);
            }
            _ => {}
        }
    }

    /// Sets the timer of the deadline, in place of the one before.
    pub fn set_timer(&mut self, decided_by: Seq) {
        let before = self.turn.timer.replace(decided_by);
        self.recorder.act(before.map(|begun_by| Act::Abort { begun_by }));
        self.recorder.act(Act::SetTimer { decided_by, at: self.turn.deadline });
    }
}
