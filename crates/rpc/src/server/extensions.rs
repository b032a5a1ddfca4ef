//! Answers about extensions: tools, agents, faults, setup, and what the policy says of a call.

use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::registry::AgentSpec;
use holdfast_policy::PolicyRequest;
use holdfast_runtime::diagnosis::FaultReport;
use serde_json::{Value, json};

use super::{Connection, value, word};
use crate::protocol::*;

impl Connection {
    pub(super) async fn answer_extensions(&self, method: ExtensionMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        match method {
            ExtensionMethod::Tools(NoParams {}) => value(&self.tools().await?),
            ExtensionMethod::ToolRender(ToolRender { tool, arguments, result }) => {
                let (call, result) = runtime.rendered(&tool, arguments, result).await?;
                value(&ToolRendered { call, result })
            }
            ExtensionMethod::Agents(NoParams {}) => value(&self.agents()),
            ExtensionMethod::List(NoParams {}) => value(&self.extensions().await?),
            ExtensionMethod::Restart(ExtensionParams { id }) => {
                runtime.retry(id.as_str().into(), "the user asked for it");
                runtime.settled().await?;
                self.ack_durable().await
            }
            ExtensionMethod::Doctor(ExtensionDoctor { id }) => value(&self.faults(id.as_deref()).await?),
            ExtensionMethod::SetupShow(SetupShow { extension }) => value(&runtime.setup(&extension).await?),
            ExtensionMethod::SetupApply(SetupApply { extension, name, value: set }) => {
                value(&runtime.configure(&extension, &name, set).await?)
            }
            ExtensionMethod::PolicyExplain(asked) => self.explain(&asked),
        }
    }

    async fn tools(&self) -> Result<Vec<ToolInfo>, Problem> {
        let runtime = &self.owner.runtime;
        let (registry, policy) = (runtime.registry(), runtime.policy()?);
        let lanes = runtime.extensions().await?;
        let (arguments, turn) = (Content::new(json!({})), no_turn("tools"));
        let lines = registry.tools.iter().filter_map(|entry| {
            let active = entry.stack.first()?;
            let verdict = policy.evaluate(&PolicyRequest {
                tool: &active.spec,
                extension: &active.extension,
                arguments: &arguments,
                turn: &turn,
            });
            let lane = lanes.iter().find(|view| view.id == active.extension.id);
            Some(ToolInfo {
                name: entry.name.clone(),
                description: active.spec.description.clone(),
                effects: word(&active.spec.effects),
                extension: active.extension.id.to_string(),
                version: active.extension.version.to_string(),
                lane: lane.map(|view| view.lane.clone()).unwrap_or_default(),
                generation: active.extension.generation.0,
                policy: word(&verdict.decision),
                input_schema: active.spec.input_schema.value().cloned().unwrap_or_default(),
                render: active.spec.render.as_ref().and_then(Content::value).cloned(),
                renders: runtime.renderer_of(&entry.name).is_some(),
            })
        });
        Ok(lines.collect())
    }

    fn agents(&self) -> Vec<AgentInfo> {
        let registry = self.owner.runtime.registry();
        let line = |agent: &AgentSpec| AgentInfo {
            id: agent.id.to_string(),
            description: agent.description.clone(),
            mode: agent.mode,
            models: agent.models.clone(),
        };
        registry.agents.iter().map(line).collect()
    }

    async fn extensions(&self) -> Result<Vec<ExtensionInfo>, Problem> {
        let registry = self.owner.runtime.registry();
        let views = self.owner.runtime.extensions().await?;
        let lines = views.into_iter().map(|view| {
            let own = |id: &ExtensionId| *id == view.id;
            let tools =
                registry.tools.iter().filter(|entry| entry.stack.iter().any(|it| own(&it.extension.id)));
            let hooks = registry.hooks.iter().filter(|hook| own(&hook.extension.id));
            ExtensionInfo {
                tools: tools.map(|entry| entry.name.clone()).collect(),
                hooks: hooks.map(|hook| format!("{} at {}", hook.id, word(&hook.spec.point))).collect(),
                id: view.id.to_string(),
                version: view.active.as_ref().map(|active| active.version.to_string()),
                state: word(&view.state()),
                lane: view.lane.clone(),
                generation: view.active.as_ref().map(|active| active.generation.0),
                digest: view.active.as_ref().map(|active| active.digest.to_string()),
                fault: view.fault.as_ref().map(ToString::to_string),
                conflicts: view.conflicts.iter().map(ToString::to_string).collect(),
            }
        });
        Ok(lines.collect())
    }

    async fn faults(&self, id: Option<&str>) -> Result<Vec<FaultRecord>, Problem> {
        let (runtime, now) = (&self.owner.runtime, self.owner.runtime.now());
        let views = runtime.extensions().await?.into_iter();
        let asked = views.filter(|view| id.is_none_or(|id| view.id.as_str() == id));
        let conflicts = asked.flat_map(|view| {
            let extension = view.id.to_string();
            view.conflicts.into_iter().map(move |fault| FaultRecord {
                extension: extension.clone(),
                at: now.0,
                phase: "registry".to_owned(),
                code: fault.code.as_str().to_owned(),
                fix: fault.code.help().to_owned(),
                message: fault.message,
            })
        });
        let troubles = runtime.troubles(id.map(ExtensionId::from).as_ref())?;
        let line = |trouble: FaultReport| FaultRecord {
            extension: trouble.extension.to_string(),
            at: trouble.at.0,
            phase: trouble.phase,
            code: trouble.code.to_owned(),
            message: trouble.message,
            fix: trouble.fix.to_owned(),
        };
        Ok(conflicts.chain(troubles.into_iter().map(line)).collect())
    }

    fn explain(&self, asked: &PolicyExplain) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        let registry = runtime.registry();
        let unknown = || Problem::new(Code::ToolUnknown, format!("there is no tool `{}`", asked.tool));
        let entry = registry.tool(&asked.tool).ok_or_else(unknown)?;
        let wanted = |id: &str| asked.extension.as_deref().is_none_or(|extension| extension == id);
        let found = entry.stack.iter().find(|it| wanted(it.extension.id.as_str())).ok_or_else(unknown)?;
        let arguments = Content::new(asked.arguments.clone());
        let turn = no_turn(asked.channel.as_deref().unwrap_or("cli"));
        let judged = PolicyRequest {
            tool: &found.spec,
            extension: &found.extension,
            arguments: &arguments,
            turn: &turn,
        };
        value(&runtime.policy()?.explain(&judged))
    }
}

/// A turn that never runs, for a question about the policy.
pub(super) fn no_turn(channel: &str) -> TurnContext {
    TurnContext {
        session: "none".into(),
        turn: 0,
        agent: "main".into(),
        origin: Origin { channel: channel.to_owned(), user: None },
    }
}
