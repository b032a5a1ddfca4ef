//! Answers about extensions: tools, agents, faults, setup, and what the policy says of a call.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{AgentSpec, ToolEntry};
use holdfast_policy::{Policy, PolicyRequest};
use holdfast_runtime::diagnosis::FaultReport;
use holdfast_runtime::{InstalledExtension, RemovedExtension};
use serde_json::{Value, json};

use super::{Connection, value, word};
use crate::protocol::*;

impl Connection {
    pub(super) async fn answer_extensions(&self, method: ExtensionMethod) -> Result<Value, Problem> {
        let runtime = &self.owner.runtime;
        // What is listed is complete, unless an extension takes too long.
        runtime.ready().await;
        match method {
            ExtensionMethod::Tools(NoParams {}) => value(&self.tools().await?),
            ExtensionMethod::ToolRender(ToolRender { tool, arguments, result }) => {
                let (call, result) = runtime.rendered(&tool, arguments, result).await?;
                value(&ToolRendered { call, result })
            }
            ExtensionMethod::Agents(NoParams {}) => value(&self.agents()),
            ExtensionMethod::Channels(NoParams {}) => value(&self.channels().await?),
            ExtensionMethod::List(NoParams {}) => value(&self.extensions().await?),
            ExtensionMethod::Restart(ExtensionParams { id }) => {
                runtime.retry(id.as_str().into(), "the user asked for it");
                runtime.settled().await?;
                self.ack_durable().await
            }
            ExtensionMethod::Enable(ExtensionParams { id }) => {
                runtime.set_enabled(&id.as_str().into(), true).await?;
                value(&self.extension(&id).await?)
            }
            ExtensionMethod::Disable(ExtensionParams { id }) => {
                runtime.set_enabled(&id.as_str().into(), false).await?;
                value(&self.extension(&id).await?)
            }
            ExtensionMethod::Reload(ExtensionParams { id }) => {
                runtime.reload(&id.as_str().into()).await?;
                value(&self.extension(&id).await?)
            }
            ExtensionMethod::Remove(ExtensionRemove { id, data }) => {
                let removed = runtime.remove_extension(&id.as_str().into(), data).await?;
                let RemovedExtension { path, data: place, revoked: grants_revoked } = removed;
                let (path, data_removed) = (path.display().to_string(), data && place.is_some());
                let place = place.map(|place| place.display().to_string());
                value(&ExtensionRemovedInfo { id, path, data: place, data_removed, grants_revoked })
            }
            ExtensionMethod::McpTest(McpTest { id }) => {
                let id = ExtensionId::from(id.as_str());
                let tested = runtime.list_server(&id).await?;
                // What was listed for the first time is registered now, and not when the files are looked at next.
                let registers = |entry: &ToolEntry| entry.stack.iter().any(|it| it.extension.id == id);
                if !runtime.registry().tools.iter().any(registers) {
                    runtime.reload(&id).await?;
                }
                Ok(tested.value().clone())
            }
            ExtensionMethod::Doctor(ExtensionDoctor { id }) => value(&self.faults(id.as_deref()).await?),
            ExtensionMethod::SetupShow(SetupShow { extension }) => value(&runtime.setup(&extension).await?),
            ExtensionMethod::SetupApply(SetupApply { extension, name, value: set }) => {
                value(&runtime.configure(&extension, &name, set).await?)
            }
            ExtensionMethod::PolicyExplain(asked) => self.explain(&asked),
        }
    }

    /// The policy as it counts for this client: in the profile that it asked for.
    fn policy(&self) -> Result<Arc<Policy>, Problem> {
        let asked = self.hello.lock().as_ref().and_then(|hello| hello.profile);
        Ok(self.owner.runtime.policy()?.under(asked))
    }

    async fn tools(&self) -> Result<Vec<ToolInfo>, Problem> {
        let runtime = &self.owner.runtime;
        let (registry, policy) = (runtime.registry(), self.policy()?);
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
                input_schema: active.spec.input_schema.value().clone(),
                render: active.spec.render.as_ref().map(Content::value).cloned(),
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

    async fn channels(&self) -> Result<Vec<ChannelInfo>, Problem> {
        let views = self.owner.runtime.extensions().await?;
        let lane = |id: &ExtensionId| views.iter().find(|view| view.id == *id).map(|view| view.lane.clone());
        let channels = self.owner.runtime.channels()?.into_iter().map(|channel| ChannelInfo {
            id: channel.id.to_string(),
            extension: channel.extension.id.to_string(),
            version: channel.extension.version.to_string(),
            lane: lane(&channel.extension.id).unwrap_or_default(),
            generation: channel.extension.generation.0,
            streams: channel.features.streams,
            files: channel.features.files,
            questions: channel.features.questions,
            default: channel.is_default,
            sessions: channel.sessions,
            users: channel.users,
        });
        Ok(channels.collect())
    }

    async fn extensions(&self) -> Result<Vec<ExtensionInfo>, Problem> {
        let registry = self.owner.runtime.registry();
        let views = self.owner.runtime.extensions().await?;
        let lines = views.into_iter().map(|view| {
            let own = |id: &ExtensionId| *id == view.id;
            let tools =
                registry.tools.iter().filter(|entry| entry.stack.iter().any(|it| own(&it.extension.id)));
            let hooks = registry.hooks.iter().filter(|hook| own(&hook.extension.id));
            let interfaces = self.owner.runtime.interfaces(&view.id);
            ExtensionInfo {
                interfaces: interfaces.held,
                by_default: interfaces.by_default,
                lacking: interfaces.lacking,
                tools: tools.map(|entry| entry.name.clone()).collect(),
                hooks: hooks.map(|hook| format!("{} at {}", hook.id, word(&hook.spec.point))).collect(),
                id: view.id.to_string(),
                version: view.active.as_ref().map(|active| active.version.to_string()),
                state: word(&view.state()),
                lane: view.lane.clone(),
                generation: view.active.as_ref().map(|active| active.generation.0),
                digest: view.active.as_ref().map(|active| active.digest.to_string()),
                fault: view.fault.as_ref().map(|fault| self.with_reason(&view.id, fault)),
                conflicts: view.conflicts.iter().map(ToString::to_string).collect(),
                warnings: self.owner.runtime.warnings(&view.id).iter().map(ToString::to_string).collect(),
                grants: Vec::new(),
            }
        });
        let disabled = self.owner.runtime.installed().into_iter().filter(|it| it.disabled).map(disabled);
        let mut lines: Vec<ExtensionInfo> = lines.collect();
        // One that is stopping is both.
        let disabled: Vec<_> = disabled.filter(|it| lines.iter().all(|line| line.id != it.id)).collect();
        lines.extend(disabled);
        let policy = self.policy()?;
        for line in &mut lines {
            let own = policy.grants().iter().filter(|grant| grant.extension.as_str() == line.id);
            line.grants = own.cloned().collect();
        }
        lines.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(lines)
    }

    /// A fault as it is listed. Why an extension is unhealthy stands in the fault before it.
    fn with_reason(&self, id: &ExtensionId, fault: &Fault) -> String {
        let reason = || {
            let known = self.owner.runtime.recent_faults(Some(id)).ok()?;
            let of_its_life = |it: &FaultReport| !["discovery", "state"].contains(&it.phase.as_str());
            known.into_iter().find(of_its_life)
        };
        match (fault.code == Code::ExtensionUnhealthy).then(reason).flatten() {
            Some(reason) => format!("{fault}; {}: {}", reason.code, reason.message),
            None => fault.to_string(),
        }
    }

    async fn extension(&self, id: &str) -> Result<ExtensionInfo, Problem> {
        let found = self.extensions().await?.into_iter().find(|it| it.id == id);
        found.ok_or_else(|| Problem::new(Code::ExtensionUnknown, format!("`{id}` is no longer there")))
    }

    async fn faults(&self, id: Option<&str>) -> Result<Vec<FaultRecord>, Problem> {
        let (runtime, now) = (&self.owner.runtime, self.owner.runtime.now());
        let views = runtime.extensions().await?.into_iter();
        let asked = views.filter(|view| id.is_none_or(|id| view.id.as_str() == id));
        let conflicts = asked.flat_map(|view| {
            let extension = view.id.to_string();
            let warnings = runtime.warnings(&view.id).into_iter().map(|fault| ("discovery", fault));
            let conflicts = view.conflicts.into_iter().map(|fault| ("registry", fault));
            warnings.chain(conflicts).map(move |(phase, fault)| FaultRecord {
                extension: extension.clone(),
                at: now.0,
                phase: phase.to_owned(),
                code: fault.code.as_str().to_owned(),
                fix: fault.code.help().to_owned(),
                message: fault.message,
            })
        });
        let faults = runtime.recent_faults(id.map(ExtensionId::from).as_ref())?;
        let line = |report: FaultReport| FaultRecord {
            extension: report.extension.to_string(),
            at: report.at.0,
            phase: report.phase,
            code: report.code.to_owned(),
            message: report.message,
            fix: report.fix,
        };
        Ok(conflicts.chain(faults.into_iter().map(line)).collect())
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
        value(&self.policy()?.explain(&judged))
    }
}

/// An extension that is installed and disabled.
fn disabled(extension: InstalledExtension) -> ExtensionInfo {
    ExtensionInfo {
        id: extension.id.to_string(),
        version: None,
        state: DISABLED.to_owned(),
        lane: String::new(),
        generation: None,
        digest: None,
        tools: Vec::new(),
        hooks: Vec::new(),
        fault: None,
        conflicts: Vec::new(),
        warnings: Vec::new(),
        grants: Vec::new(),
        interfaces: Vec::new(),
        by_default: Vec::new(),
        lacking: Vec::new(),
    }
}

/// A turn that never runs, for a question about the policy.
fn no_turn(channel: &str) -> TurnContext {
    TurnContext {
        session: "none".into(),
        turn: 0,
        agent: "main".into(),
        origin: Origin { channel: channel.to_owned(), user: None },
        ..TurnContext::default()
    }
}
