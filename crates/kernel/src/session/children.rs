//! Child sessions: agents that a call asks, each within what is left of its parent's limits.

use holdfast_contract::effect::{Act, ChildAct};
use holdfast_contract::ids::{AgentId, StreamId};
use holdfast_contract::message::{Limits, Spent};
use holdfast_contract::problem::Code;
use holdfast_contract::session_frames::{ChildEnded, ChildOpened};

use super::budget::charge;
use super::call::{CallStage, CallStep};
use crate::limits::remaining;

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

    /// A child has ended. What it used counts for its parent.
    pub fn child_ended(&mut self, fact: &ChildEnded) {
        let Spent { tokens, cost_micros, .. } = fact.spent;
        charge(self.session, self.turn, Spent { tokens, cost_micros, ..Spent::default() });
        self.returned(&fact.outcome);
    }

    /// What is left of the turn's limits for a child agent.
    fn child_limits(&self, agent: &AgentId) -> Limits {
        let spec = self.session.registry.view.as_ref().and_then(|registry| registry.agent(agent));
        let own = spec.map(|spec| spec.limits).unwrap_or_default();
        let time = self.turn.deadline.since(self.recorder.now());
        remaining(&self.session.limits(), own, &self.turn.spent, &self.session.spent, time)
    }
}
