//! The declarative lane: a manifest with an `agent` section is an agent; there is no code to run.
//!
//! Use it for an agent that consists of instructions, a model and limits. An extension that needs code is a component.

mod prompt;

use std::future::ready;
use std::sync::Arc;

use holdfast_contract::manifest::{Manifest, Scope};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AgentSpec, Descriptor, ExtensionRef};
use holdfast_contract::role::RoleSet;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Instance, InstanceCapabilities, Lane, Later, Reply, Vault};

pub use crate::prompt::{RENDER_WORK, serve_render};

/// A file beside the manifest with text that precedes the manifest's instructions.
pub const PROMPT: &str = "prompt.jinja2";

const NAME: &str = "declarative";

/// Turns manifests into agents.
pub struct DeclarativeLane(Arc<dyn Vault>);

impl DeclarativeLane {
    /// A lane over the activations of a vault.
    pub fn new(vault: Arc<dyn Vault>) -> Self {
        Self(vault)
    }

    fn read(&self, extension: &ExtensionRef) -> Result<DeclarativeInstance, Fault> {
        let bundle = self.0.bundle(extension.digest)?;
        if bundle.lane != NAME {
            let message = format!("`{}` is not an extension of the declarative lane", extension.id);
            return Err(Fault::new(Code::ExtensionUnknown, message));
        }
        let prompt = match bundle.files.get(PROMPT) {
            Some(file) => String::from_utf8_lossy(&self.0.file(*file)?).into_owned(),
            None => String::new(),
        };
        let manifest = bundle.parsed()?;
        let descriptor = Descriptor::agent(agent(&manifest, &prompt)?);
        Ok(DeclarativeInstance(descriptor.with_hint(&manifest)))
    }
}

impl Lane for DeclarativeLane {
    fn name(&self) -> &str {
        NAME
    }

    fn runs_in_process(&self) -> bool {
        false
    }

    fn load(&self, extension: &ExtensionRef) -> Later<Result<Arc<dyn Instance>, Fault>> {
        let read = self.read(extension);
        Box::pin(ready(read.map(|declared| Arc::new(declared) as Arc<dyn Instance>)))
    }
}

/// The agent that a manifest declares, with the text of its prompt file.
pub fn agent(manifest: &Manifest, prompt: &str) -> Result<AgentSpec, Fault> {
    if manifest.agent.is_none() {
        return Err(Fault::new(Code::ManifestMissingField, "the manifest has no `agent`"));
    }
    Ok(manifest.agent_spec(&prompt::render(manifest, prompt)?))
}

/// The agent that a manifest declares beside its code, with the text of its prompt file; none if it declares nothing of the kind. Without
/// an `agent` section the prompt is the code's own template, with values that only the code has, so it stays as it is.
pub fn declared_agent(manifest: &Manifest, prompt: &str) -> Result<Option<AgentSpec>, Fault> {
    let Manifest { agent, agent_id, agent_config, .. } = manifest;
    if agent.is_none() && agent_id.is_none() && agent_config.is_none() && prompt.is_empty() {
        return Ok(None);
    }
    let prompt = if agent.is_some() { prompt::render(manifest, prompt)? } else { prompt.to_owned() };
    let spec = manifest.agent_spec(&prompt);
    Ok(Some(AgentSpec { code: Some(manifest.id.clone()), ..spec }))
}

/// A loaded agent without code.
struct DeclarativeInstance(Descriptor);

impl Instance for DeclarativeInstance {
    fn call(&self, call: Call, _: Arc<dyn Host>) -> Later<Result<Reply, Fault>> {
        Box::pin(ready(match call {
            Call::Lifecycle(LifecycleCommand::Load) => Ok(Reply::Descriptors(vec![self.0.clone()])),
            Call::Lifecycle(_) => Ok(Reply::Done),
            Call::Health => Ok(Reply::Health(true)),
            _ => Err(Fault::new(Code::ExtensionFault, format!("`{}` has no code to call", self.0.id))),
        }))
    }

    fn capabilities(&self) -> InstanceCapabilities {
        InstanceCapabilities {
            scope: Scope::Shared,
            replayable: true,
            has_lifecycle: false,
            exclusive: false,
            synchronous_hooks: false,
            roles: RoleSet::default(),
        }
    }
}
