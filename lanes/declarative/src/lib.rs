//! The declarative lane: a manifest with an `agent` section is an agent, and there is nothing to run.
//!
//! Use it for an agent that consists of words: instructions, a model, limits. What needs code is a component.

use std::future::ready;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::ids::AgentId;
use holdfast_contract::manifest::{AgentSection, Manifest};
use holdfast_contract::message::Limits;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AgentSpec, Descriptor, ExtensionRef};
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, Lane, Later, Reply, Vault};

/// The file beside the manifest whose text comes before the manifest's instructions.
pub const PROMPT: &str = "prompt.jinja2";

const NAME: &str = "declarative";

/// Turns manifests into agents.
pub struct DeclarativeLane(Arc<dyn Vault>);

impl DeclarativeLane {
    /// A lane over the activations of a vault.
    pub fn new(vault: Arc<dyn Vault>) -> Self {
        Self(vault)
    }

    fn read(&self, extension: &ExtensionRef) -> Result<Declared, Fault> {
        let bundle = self.0.bundle(extension.digest)?;
        if bundle.lane != NAME {
            let message = format!("`{}` is no extension of the declarative lane", extension.id);
            return Err(Fault::new(Code::ExtensionUnknown, message));
        }
        let prompt = match bundle.files.get(PROMPT) {
            Some(file) => String::from_utf8_lossy(&self.0.file(*file)?).into_owned(),
            None => String::new(),
        };
        let missing = || Fault::new(Code::ManifestMissingField, "the manifest has no `agent`");
        let Manifest { id, description, agent, .. } = bundle.parsed()?;
        let agent = agent.ok_or_else(missing)?;
        Ok(Declared(Descriptor::agent(spec(id.as_str().into(), description, agent, &prompt))))
    }
}

impl Lane for DeclarativeLane {
    fn name(&self) -> &str {
        NAME
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let read = self.read(extension);
        Box::pin(ready(read.map(|declared| Arc::new(declared) as Arc<dyn Instance>)))
    }
}

fn spec(id: AgentId, description: String, section: AgentSection, prompt: &str) -> AgentSpec {
    let AgentSection { integration_mode: mode, model, instructions, limits, .. } = section;
    let texts: Vec<&str> =
        [prompt.trim(), instructions.trim()].into_iter().filter(|text| !text.is_empty()).collect();
    AgentSpec {
        id,
        description,
        mode,
        models: model.into_iter().collect(),
        instructions: Content::text(texts.join("\n\n")),
        limits: Limits {
            max_turns: limits.max_turns,
            max_tokens: limits.max_tokens_per_invocation,
            time_budget: limits.time_budget_ms,
            max_cost_micros: limits.max_cost_micros,
            max_tool_calls: limits.max_tool_calls,
            ..Limits::default()
        },
    }
}

/// An agent that is all words.
struct Declared(Descriptor);

impl Instance for Declared {
    fn call(&self, call: Call, _: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        Box::pin(ready(match call {
            Call::Lifecycle(LifecycleCommand::Load) => Ok(Reply::Descriptors(vec![self.0.clone()])),
            Call::Lifecycle(_) => Ok(Reply::Done),
            Call::Health => Ok(Reply::Health(true)),
            _ => Err(Fault::new(
                Code::ExtensionFault,
                format!("`{}` has no code that could be called", self.0.id),
            )),
        }))
    }

    fn replayable(&self) -> bool {
        true
    }

    fn lives(&self) -> bool {
        false
    }
}
