//! The capability `agents`: tasks for agents; and agents, tools and models that are asked for an answer. Beside it, what an extension is told
//! of its own agent, which belongs to the capability `context`.

use std::sync::Arc;

use holdfast_bus::{NewEvent, topics as known};
use holdfast_contract::agents::{AgentSpec, ToolScope};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::host_call::arguments::{
    DescribeAgentArguments, InvokeModelArguments, InvokeToolArguments, TaskArguments,
};
use holdfast_contract::ids::{AgentId, Millis, ModelName, StreamId};
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{ExtensionRef, ToolEntry};
use holdfast_contract::wire::Later;
use holdfast_kernel::registry::offers;
use serde_json::{Value, json};

use super::{Caller, failed};
use crate::messaging::{AgentTask, Invocation};
use crate::runtime::Inner;

impl Inner {
    pub(super) fn agent_task(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: TaskArguments,
    ) -> Later<Result<Content, Fault>> {
        self.start_task(caller, known::AGENT_TASK, arguments)
    }

    pub(super) fn agent_background(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: TaskArguments,
    ) -> Later<Result<Content, Fault>> {
        self.start_task(caller, known::AGENT_BACKGROUND, arguments)
    }

    fn start_task(
        self: &Arc<Self>,
        caller: &Caller,
        topic: &str,
        arguments: TaskArguments,
    ) -> Later<Result<Content, Fault>> {
        let TaskArguments { task: prompt, agent, channel: channel_id, user: user_id, correlation } =
            arguments;
        let depth = match self.nested(caller) {
            Ok((_, depth)) => depth,
            Err(fault) => return failed(fault),
        };
        let payload = Content::of(&AgentTask { prompt, agent, channel_id, user_id, depth });
        let event = NewEvent { correlation, ..NewEvent::new(topic, payload) };
        self.published(event.source(FrameSource::Extension(caller.extension.clone())))
    }

    /// Runs an agent and returns its answer. Without a timeout the agent's own limits bound it.
    pub(super) fn agent_invoke(
        self: &Arc<Self>,
        caller: Caller,
        arguments: TaskArguments,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let TaskArguments { agent, task, .. } = arguments;
        self.invoke_within(caller, Invocation::Agent { agent, task }, timeout)
    }

    /// Runs a tool that the caller's agent has, as a model's call of it would run, and returns its result.
    pub(super) fn tool_invoke(
        self: &Arc<Self>,
        caller: Caller,
        arguments: InvokeToolArguments,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let InvokeToolArguments { tool, arguments } = arguments;
        let arguments = if arguments.is_null() { json!({}) } else { arguments };
        self.invoke_within(caller, Invocation::Tool { tool, arguments }, timeout)
    }

    /// Asks the model that an agent uses, and returns its text. It counts as a model call of the turn that it belongs to.
    pub(super) fn model_invoke(
        self: &Arc<Self>,
        caller: Caller,
        arguments: InvokeModelArguments,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        if caller.budget.as_ref().is_some_and(|budget| budget.model_calls() == 0) {
            let message = "no model call is left of the limit `max_turns` of this turn";
            return failed(Fault::new(Code::TurnLimit, message));
        }
        let InvokeModelArguments { prompt, instructions, agent } = arguments;
        self.invoke_within(caller, Invocation::Model { agent, instructions, prompt }, timeout)
    }

    fn invoke_within(
        self: &Arc<Self>,
        caller: Caller,
        asked: Invocation,
        timeout: Option<Millis>,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        let late = timeout.map(|timeout| (timeout, self.clock.sleep(timeout)));
        Box::pin(async move {
            let answer = inner.invoke(&caller, asked);
            match late {
                None => answer.await,
                Some((timeout, late)) => tokio::select! {
                    biased;
                    answer = answer => answer,
                    () = late => {
                        let message = format!("there was no answer within {} ms", timeout.0);
                        Err(Fault::new(Code::ExtensionFault, message))
                    }
                },
            }
        })
    }

    /// The agents that others may ask.
    pub(super) fn agent_list(&self) -> Content {
        let registry = self.registry.view();
        let described = |agent: &AgentSpec| {
            json!({
                "id": agent.id, "name": agent.name, "description": agent.description, "models": agent.models,
                "tools": agent.tools, "extension": registry.owner(&agent.id),
            })
        };
        Content::new(registry.agents.iter().map(described).collect())
    }

    /// The definition of an agent: the caller's own with its instructions and tools, of another one the models.
    pub(super) fn agent_describe(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: &DescribeAgentArguments,
    ) -> Result<Content, Fault> {
        let own = self.own_agent(&caller.extension);
        let asked = arguments.agent.as_ref();
        let models = self.models_for(caller, asked).map_err(|problem| problem.to_fault())?;
        if let Some(other) = asked.filter(|asked| **asked != own.id) {
            return Ok(Content::new(json!({ "id": other, "models": models })));
        }
        let tools = self.tools_of(&own);
        let AgentSpec { id, instructions, limits, parameters, .. } = own;
        let instructions = instructions.to_text();
        Ok(Content::new(json!({
            "id": id, "models": models, "instructions": instructions, "tools": tools, "limits": limits,
            "parameters": parameters,
        })))
    }

    /// The agent of an extension: the one that is registered, or before that what its manifest declares. Without either it has no tools.
    pub(crate) fn own_agent(&self, extension: &ExtensionRef) -> AgentSpec {
        let declared = self.extensions.found(&extension.digest).and_then(|found| found.agent);
        let mut own = declared.unwrap_or_else(|| AgentSpec::code(&extension.id, extension.id.as_str(), ""));
        let registry = self.registry.view();
        match registry.agent(&own.id).filter(|agent| registry.owner(&agent.id) == Some(&extension.id)) {
            // What is registered has the settings; the instructions are those of the manifest and its prompt.
            Some(registered) => AgentSpec { instructions: own.instructions, ..registered.clone() },
            None => {
                self.set_agent(&mut own);
                own
            }
        }
    }

    /// The models that an agent uses, best first: those in the settings or its manifest, or else those of new sessions.
    pub(crate) fn models_for(
        self: &Arc<Self>,
        caller: &Caller,
        agent: Option<&AgentId>,
    ) -> Result<Vec<ModelName>, Problem> {
        let own = self.own_agent(&caller.extension);
        let origin = Origin::extension(&caller.extension.id);
        let usual = |agent| Ok(self.main_session(StreamId::system(), origin, agent)?.settings.models);
        let models = match agent.filter(|agent| **agent != own.id) {
            None => own.models,
            Some(other) => match self.registry.view().agent(other) {
                Some(registered) => registered.models.clone(),
                // The main agent is not registered. Of any other this says that there is none.
                None => return usual(Some(other.clone())),
            },
        };
        if models.is_empty() { usual(None) } else { Ok(models) }
    }

    /// The tools that an agent has, as a model is shown them.
    fn tools_of(&self, agent: &AgentSpec) -> Vec<Value> {
        let scope = ToolScope { extensions: Some(agent.tools.clone().unwrap_or_default()), speaker: None };
        let registry = self.registry.view();
        let of_others = |entry: &&ToolEntry| {
            let active = entry.stack.first();
            active.is_some_and(|it| it.agent.as_ref().and_then(|used| used.agent()) != Some(&agent.id))
        };
        let tools = registry.tools.iter().filter(|entry| offers(&scope, entry)).filter(of_others);
        let sheet = |entry: &ToolEntry| {
            let active = entry.stack.first()?;
            Some(json!({
                "name": entry.name, "description": active.spec.description, "effects": active.spec.effects,
                "input_schema": active.spec.input_schema.value(), "extension": active.extension.id,
            }))
        };
        tools.filter_map(sheet).collect()
    }
}
