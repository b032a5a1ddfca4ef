//! Who the conversation is with: the session's own agent, or one that it was handed over to, until that one gives it back.

use super::*;

impl Base {
    /// The agent that the conversation was handed over to, as the registry has it.
    pub fn agent(&self) -> Option<&AgentSpec> {
        self.registry.view.as_ref()?.agent(self.speaker.as_ref()?)
    }

    /// The tools that whoever speaks has.
    pub fn scope(&self) -> ToolScope {
        ToolScope { extensions: self.offered().clone(), speaker: self.speaker.clone() }
    }

    /// Whose tools those are; everybody's if nothing is said.
    pub fn offered(&self) -> &Option<Vec<ExtensionId>> {
        self.agent().map_or(&self.start.settings.tools, |agent| &agent.tools)
    }

    /// What a turn may use up: an agent that was handed the conversation has limits of its own, within the session's.
    pub fn limits(&self) -> Limits {
        let (all, nothing) = (self.start.settings.limits, Spent::default());
        let own = self.agent().map(|agent| agent.limits);
        own.map_or(all, |own| limit_rules::remaining(&all, own, &nothing, &nothing, all.time_budget))
    }
}

impl StepContext<'_> {
    /// The conversation goes to an agent, or back to the session's own.
    pub fn hand_over(&mut self, call: &mut Call, to: Option<AgentId>) {
        self.address(to, Some(call.view.id));
        let told = format!("The conversation is with `{}` now.", self.turn.context.agent);
        self.returned(call, &ToolOutcome::Result(Content::text(told)));
    }

    /// From here on this agent answers, or the session's own if it is not there.
    pub fn address(&mut self, to: Option<AgentId>, call: Option<CallId>) {
        let (before, own) = (self.base.speaker.take(), self.base.start.agent.clone());
        self.base.speaker = to;
        if self.base.agent().is_none() {
            self.base.speaker = None;
        }
        let agent = self.base.speaker.clone().unwrap_or(own);
        if before != self.base.speaker {
            self.desk.record(AgentChanged { call, agent: agent.clone() });
        }
        Arc::make_mut(&mut self.turn.context).agent = agent;
        let models = self.base.agent().map(|agent| &agent.models).filter(|models| !models.is_empty());
        self.turn.models = models.unwrap_or(&self.base.start.settings.models).clone();
    }
}
