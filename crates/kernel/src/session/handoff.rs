//! Which agent answers: the session's own, or one that the conversation was handed over to, until that one hands it back.

use std::sync::Arc;

use holdfast_contract::agents::{AgentSpec, ToolScope};
use holdfast_contract::content::Content;
use holdfast_contract::ids::{AgentId, CallId, ExtensionId};
use holdfast_contract::message::Limits;
use holdfast_contract::session_frames::AgentChanged;
use holdfast_contract::tool::ToolOutcome;

use super::SessionState;
use super::call::CallStep;
use super::turn::{Turn, TurnStep};
use crate::limits::within;
use crate::step_recorder::StepRecorder;

impl SessionState {
    /// The agent that the conversation was handed over to, as the registry has it.
    pub fn agent(&self) -> Option<&AgentSpec> {
        self.registry.view.as_ref()?.agent(self.speaker.as_ref()?)
    }

    /// The tools of the agent that answers.
    pub fn scope(&self) -> ToolScope {
        ToolScope {
            extensions: self.tool_extensions().map(<[ExtensionId]>::to_vec),
            speaker: self.speaker.clone(),
        }
    }

    /// The extensions whose tools those are; all if there is no list.
    pub fn tool_extensions(&self) -> Option<&[ExtensionId]> {
        self.agent().map_or(&self.start.settings.tools, |agent| &agent.tools).as_deref()
    }

    /// The instructions of the agent that answers.
    pub fn instructions(&self) -> &Content {
        self.agent().map_or(&self.start.instructions, |agent| &agent.instructions)
    }

    /// The limits of a turn: an agent that was handed the conversation has limits of its own, within the session's.
    pub fn limits(&self) -> Limits {
        let all = self.start.settings.limits;
        let Some(agent) = self.agent() else { return all };
        within(agent.limits, &all)
    }
}

impl TurnStep<'_> {
    /// From here on this agent answers, or the session's own if it does not exist.
    pub fn switch_agent(&mut self, to: Option<AgentId>) {
        switch_agent(self.recorder, self.session, self.turn, to, None);
    }
}

impl CallStep<'_> {
    /// Hands the conversation over to an agent, or back to the session's own.
    pub fn hand_over(&mut self, to: Option<AgentId>) {
        switch_agent(self.recorder, self.session, self.turn, to, Some(self.call.view.id));
        let told = format!("The conversation is with `{}` now.", self.turn.context.agent);
        self.returned(&ToolOutcome::Result(Content::text(told)));
    }
}

fn switch_agent(
    recorder: &mut StepRecorder,
    session: &mut SessionState,
    turn: &mut Turn,
    to: Option<AgentId>,
    call: Option<CallId>,
) {
    let before = session.speaker.take();
    session.speaker = to;
    if session.agent().is_none() {
        session.speaker = None;
    }
    let agent = session.speaker.clone().unwrap_or_else(|| session.start.agent.clone());
    if before != session.speaker {
        recorder.record(AgentChanged { call, agent: agent.clone() });
    }
    Arc::make_mut(&mut turn.context).agent = agent;
    let own = session.agent().map(AgentSpec::answered_by).filter(|models| !models.is_empty());
    turn.models = own.unwrap_or_else(|| session.start.settings.models.clone());
}
