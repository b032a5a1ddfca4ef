//! Sessions of the main agent: model, instructions and limits as the home is configured.

use holdfast_contract::content::Content;
use holdfast_contract::ids::{AgentId, ModelName};
use holdfast_contract::message::Limits;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::SessionSettings;
use holdfast_home::{ORCHESTRATOR, PromptContext, Prompts, Settings};
use holdfast_runtime::{NewSession, Runtime, SessionFactory, SessionRequest};

/// Makes sessions of the main agent.
pub(crate) struct MainSessionFactory {
    pub settings: Settings,
    pub model: ModelName,
    pub prompts: Prompts,
}

impl MainSessionFactory {
    pub(crate) fn session(
        &self,
        runtime: &Runtime,
        opening: SessionRequest,
        model: Option<ModelName>,
    ) -> Result<NewSession, Problem> {
        let SessionRequest { id, origin, agent: asked } = opening;
        let agent = AgentId::from("main");
        if let Some(asked) = asked.filter(|asked| *asked != agent) {
            let problem = Problem::new(Code::ExtensionUnknown, format!("there is no agent `{asked}`"));
            return Err(problem.help("`holdfast agents` shows those that are active."));
        }
        let set = self.settings.agents.get(&agent).cloned().unwrap_or_default();
        let model = model.or(set.model).unwrap_or_else(|| self.model.clone());
        let models = std::iter::once(&model).chain(&set.fallback).cloned().collect();
        runtime.model(&model)?;
        let registry = runtime.registry();
        let channels = registry.others.iter().filter(|entry| entry.kind.as_str() == "channel");
        let context = PromptContext {
            agent: agent.to_string(),
            date: Some(runtime.date()),
            tools: runtime.prompt_tools(),
            capabilities: Vec::new(),
            channels: channels.map(|entry| entry.id.to_string()).collect(),
        };
        let instructions = self.prompts.render(ORCHESTRATOR, &context)?;
        let instructions = match set.instructions {
            Some(more) => format!("{instructions}\n\n{more}"),
            None => instructions,
        };
        let limits = self.settings.limits(&agent, Limits::default());
        Ok(NewSession {
            id,
            origin,
            agent,
            instructions: Content::text(instructions),
            settings: SessionSettings {
                models,
                limits,
                context: self.settings.context.clone(),
                // The policy narrows it when the session opens.
                authoritative_routing: true,
                ..SessionSettings::default()
            },
        })
    }
}

impl SessionFactory for MainSessionFactory {
    fn create_session(&self, runtime: &Runtime, opening: SessionRequest) -> Result<NewSession, Problem> {
        self.session(runtime, opening, None)
    }
}
