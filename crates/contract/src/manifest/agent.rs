//! The agent that a manifest declares: by itself, or beside its code.

use super::grants::Grants;
use super::model::{AgentSection, Manifest, PARAMETERS};
use crate::agents::{AgentMode, AgentSpec};
use crate::content::Content;
use crate::exports::AgentExport;
use crate::ids::{ModelName, ToolName};
use crate::matcher::glob;
use crate::tool::EffectClass;

impl Manifest {
    /// The agent that it declares, with the text of its prompt. What the `agent` section leaves out, `agent_config` says: the model
    /// and its parameters.
    pub fn agent_spec(&self, prompt: &str) -> AgentSpec {
        let AgentSection { integration_mode: mode, model, instructions, parameters, uses_tools, limits } =
            self.agent.clone().unwrap_or_default();
        let mut configured = self.agent_config.clone().unwrap_or_default();
        let usual = configured.remove("model").and_then(|model| model.as_str().map(ModelName::from));
        configured.retain(|name, _| PARAMETERS.contains(&name.as_str()));
        configured.extend(parameters);
        let texts = [prompt.trim(), instructions.trim()].into_iter().filter(|text| !text.is_empty());
        AgentSpec {
            mode,
            models: model.or(usual).into_iter().collect(),
            tools: Some(uses_tools),
            instructions: Content::text(texts.collect::<Vec<_>>().join("\n\n")),
            limits: limits.into(),
            parameters: configured,
            ..AgentSpec::named(self.agent_id().as_str(), &self.description)
        }
    }

    /// The agent that its code is, under the name that the code says. A call of it has the effects that are declared; where none are, an
    /// agent that asks for no grants acts only through tools and host calls, which are judged by themselves.
    pub fn code_agent(&self, export: &AgentExport) -> AgentSpec {
        let AgentExport { name, description, mode, effects } = export;
        let declared = self.agent_spec("");
        let tool = ToolName::from(name.as_str());
        let acts = Grants { extensions: Vec::new(), ..self.requests() } != Grants::default();
        let usual = if acts { EffectClass::Unknown } else { EffectClass::Read };
        let hinted = self.tools.get(&tool).and_then(|hint| hint.effects);
        AgentSpec {
            name: (name.as_str() != declared.id.as_str()).then_some(tool),
            description: if description.is_empty() { declared.description } else { description.clone() },
            mode: if declared.mode == AgentMode::Handoff { declared.mode } else { *mode },
            code: Some(self.id.clone()),
            effects: hinted.or(*effects).unwrap_or(usual),
            asks: self.policy.ask.iter().any(|pattern| glob(pattern, name)),
            ..declared
        }
    }
}
