//! Child sessions: agents that calls ask, each within what is left of its parent's limits.
//!
//! Children that run at the same time share what is left. A call that is expected to open a child counts from the start, so that the
//! first child gets its part and not everything; what a child may use is reserved until it has ended, and then it is charged.

use holdfast_contract::agents::AgentUse;
use holdfast_contract::effect::{Act, ChildAct};
use holdfast_contract::ids::{AgentId, Millis, StreamId};
use holdfast_contract::message::{Limits, Spent};
use holdfast_contract::problem::Code;
use holdfast_contract::serde::{Deserialize, Serialize};
use holdfast_contract::session_frames::{ChildEnded, ChildOpened};

use super::SessionState;
use super::budget::{charge, delegated};
use super::call::{CallStage, CallStep};
use super::turn::{Turn, TurnStep};
use crate::limits::{left, most_used, share, within};

/// What the children of a turn have of its limits.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(crate = "holdfast_contract::serde")]
pub(super) struct ChildBudget {
    /// Calls that are expected to open a child and have not.
    waiting: u32,
    /// The most that the children that run may use.
    reserved: Spent,
}

impl ChildBudget {
    fn release(&mut self, limits: &Limits) {
        let released = most_used(limits);
        self.reserved.tokens = self.reserved.tokens.saturating_sub(released.tokens);
        self.reserved.cost_micros = self.reserved.cost_micros.saturating_sub(released.cost_micros);
        self.reserved.tool_calls = self.reserved.tool_calls.saturating_sub(released.tool_calls);
    }
}

/// What is left of a turn's limits for other sessions at this moment, without what its running children may use.
pub(super) fn left_in_turn(session: &SessionState, turn: &Turn, now: Millis) -> Limits {
    let reserved = turn.children.reserved;
    let time = turn.deadline.since(now);
    left(&session.limits(), &turn.spent.plus(reserved), &session.spent.plus(reserved), time)
}

impl TurnStep<'_> {
    /// Counts the calls that are expected to open a child, before the first one does.
    pub fn expect_children(&mut self) {
        for call in self.calls.iter_mut() {
            let active = self.session.implementations(&call.view.tool).first();
            call.awaits_child = active.is_some_and(|it| matches!(it.agent, Some(AgentUse::Ask(_))));
            self.turn.children.waiting += u32::from(call.awaits_child);
        }
    }
}

impl CallStep<'_> {
    /// Opens a child session for an agent, unless it would be nested too deep.
    pub fn open_child(&mut self, agent: AgentId) {
        let depth = self.session.start.depth;
        if depth >= self.session.start.settings.depth_cap {
            let message = format!("`{agent}` would be agent {} deep", u32::from(depth) + 1);
            return self.fail(Code::ChildDepth, message);
        }
        let limits = self.child_limits(&agent);
        let stream: StreamId = format!("{}.{}", self.session.id, self.call.view.id).into();
        let begun = self.recorder.record(ChildOpened {
            call: self.call.view.id,
            child: stream.clone(),
            agent,
            limits,
        });
        self.end_child();
        self.turn.children.reserved = self.turn.children.reserved.plus(most_used(&limits));
        self.call.wait(begun, CallStage::RunningChild { stream, limits });
        self.run_child();
    }

    /// Has the child that the call waits for opened or resumed.
    pub fn run_child(&mut self) {
        let CallStage::RunningChild { stream, limits } = &self.call.stage else { return };
        let agent = self.call.implementation.as_ref().and_then(|it| it.agent.as_ref()?.agent());
        let Some(agent) = agent.cloned() else { return };
        self.recorder.act(Act::OpenChild(Box::new(ChildAct {
            decided_by: self.call.begun,
            call: self.call.view.id,
            child: stream.clone(),
            agent,
            arguments: self.call.view.arguments.clone(),
            limits: *limits,
            depth: self.session.start.depth.saturating_add(1),
            registry: self.session.registry.clone(),
            turn: self.turn.context.clone(),
        })));
    }

    /// A child has ended. What it used is charged to its parent.
    pub fn child_ended(&mut self, fact: &ChildEnded) {
        self.end_child();
        self.call.stage = CallStage::Queued;
        charge(self.session, self.turn, delegated(fact.spent));
        self.returned(&fact.outcome);
    }

    /// The call no longer has, or awaits, a part of the turn's limits for a child.
    pub fn end_child(&mut self) {
        if self.call.awaits_child {
            self.call.awaits_child = false;
            self.turn.children.waiting = self.turn.children.waiting.saturating_sub(1);
        }
        if let CallStage::RunningChild { limits, .. } = &self.call.stage {
            self.turn.children.release(limits);
        }
    }

    /// The limits of a child agent: its own, within its part of what is left.
    fn child_limits(&self, agent: &AgentId) -> Limits {
        let spec = self.session.registry.view.as_ref().and_then(|registry| registry.agent(agent));
        let own = spec.map(|spec| spec.limits).unwrap_or_default();
        let left = left_in_turn(self.session, self.turn, self.recorder.now());
        within(own, &share(left, self.turn.children.waiting))
    }
}
