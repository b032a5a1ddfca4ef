//! What an extension registers: made of what its code says about itself and of what its manifest adds. What the code says is
//! asked once for each activation and remembered, so that a start reads no code at all.

use std::collections::BTreeSet;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{HookPoint, HookSpec};
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::manifest::{Manifest, Scope};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_contract::tool::{EffectClass, ToolSpec, agent_arguments_schema, default_timeout};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::abi;
use crate::faults::one_line;
use crate::interfaces::{Function, VERSION};

/// The form in which it is remembered, changed whenever that changes.
const FORMAT: u32 = 2;

/// What an extension's code says about itself, and what it therefore registers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    format: u32,
    /// The version of the interface that it was held against.
    version: String,
    /// The interfaces that it exports.
    pub interfaces: Vec<String>,
    pub tools: Vec<abi::ToolSpec>,
    pub methods: Vec<abi::Named>,
    pub commands: Vec<abi::Named>,
    pub agent: Option<abi::AgentSpec>,
    /// Everything that it registers, as its manifest has it.
    pub descriptors: Vec<Descriptor>,
    /// How long an instance lives.
    pub scope: Scope,
}

impl Known {
    /// Nothing but what it exports.
    pub(crate) fn of(interfaces: Vec<String>) -> Self {
        Self { format: FORMAT, version: VERSION.to_owned(), interfaces, ..Self::default() }
    }

    /// What was remembered, if it is of this form.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let known: Self = serde_json::from_slice(bytes).ok()?;
        (known.format == FORMAT && known.version == VERSION).then_some(known)
    }

    /// The form in which it is remembered.
    pub(crate) fn written(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether it exports a function.
    pub(crate) fn has(&self, function: Function) -> bool {
        self.interfaces.iter().any(|interface| interface == function.interface())
    }

    /// The same with what its manifest makes of it.
    pub(crate) fn under(mut self, manifest: &Manifest) -> Result<Self, Fault> {
        self.descriptors = self.registered(manifest)?;
        let lasting = [Function::SendToUser, Function::SchedulerTask, Function::RunBackground];
        let lasts = lasting.into_iter().any(|function| self.has(function));
        self.scope = manifest.scope.unwrap_or(if lasts { Scope::Shared } else { Scope::default() });
        Ok(self)
    }

    fn registered(&self, manifest: &Manifest) -> Result<Vec<Descriptor>, Fault> {
        let mut all = Vec::new();
        for tool in &self.tools {
            all.push(Descriptor::tool(hinted(tool_spec(tool)?, manifest)));
        }
        if let Some(agent) = &self.agent {
            all.push(Descriptor::tool(hinted(agent_spec(agent)?, manifest)));
        }
        all.extend(self.hooks(manifest));
        for command in &self.commands {
            filled("a command's name", &command.name)?;
            all.push(other("command", &command.name, json!({ "description": command.description })));
        }
        if self.has(Function::ApiCall) {
            for method in &self.methods {
                filled("a method's name", &method.name)?;
            }
            unique("method", self.methods.iter().map(|method| method.name.as_str()))?;
            all.push(other("api", manifest.id.as_str(), json!({ "methods": self.methods })));
        }
        let (calls, results) = (self.has(Function::RenderCall), self.has(Function::RenderResult));
        if calls || results {
            all.push(other("renderer", manifest.id.as_str(), json!({ "calls": calls, "results": results })));
        }
        if self.has(Function::SendToUser) {
            all.push(Descriptor::channel(&manifest.id, self.has(Function::SendMessage)));
        }
        for kind in ["tool", "command"] {
            let of_kind = all.iter().filter(|descriptor| descriptor.kind.as_str() == kind);
            unique(kind, of_kind.map(|descriptor| descriptor.id.as_str()))?;
        }
        for descriptor in &mut all {
            let hint = manifest
                .descriptors
                .iter()
                .find(|hint| hint.kind == descriptor.kind && hint.id == descriptor.id);
            descriptor.priority = hint.and_then(|hint| hint.priority);
        }
        Ok(all)
    }

    /// Its hooks in the order of the points, one for each hint that the manifest has for a point and one where it has none.
    fn hooks(&self, manifest: &Manifest) -> Vec<Descriptor> {
        let id: &ExtensionId = &manifest.id;
        let points = HookPoint::ALL.iter().filter(|point| self.has(Function::at(**point)));
        let specs = points.flat_map(|point| {
            let hints = manifest.hooks.iter().filter(|hint| hint.point == *point);
            let hinted = hints.map(|hint| {
                let spec = HookSpec::at(*point);
                HookSpec {
                    point: *point,
                    matcher: hint.matcher.clone(),
                    priority: hint.priority.unwrap_or(spec.priority),
                    timeout: hint.timeout_ms.unwrap_or(spec.timeout),
                }
            });
            let mut specs: Vec<_> = hinted.collect();
            if specs.is_empty() {
                specs.push(HookSpec::at(*point));
            }
            specs
        });
        specs.enumerate().map(|(index, spec)| Descriptor::hook(id, index, spec)).collect()
    }
}

fn tool_spec(tool: &abi::ToolSpec) -> Result<ToolSpec, Fault> {
    filled("a tool's name", &tool.name)?;
    let of = |what: &str| format!("the {what} of its tool `{}`", one_line(&tool.name));
    Ok(ToolSpec {
        name: tool.name.as_str().into(),
        description: tool.description.clone(),
        input_schema: schema(&of("input schema"), &tool.input_schema)?,
        output_schema: tool
            .output_schema
            .as_ref()
            .map(|text| schema(&of("output schema"), text))
            .transpose()?,
        effects: match tool.effects {
            abi::Effects::Unknown => EffectClass::Unknown,
            abi::Effects::Pure => EffectClass::Pure,
            abi::Effects::Read => EffectClass::Read,
            abi::Effects::Write => EffectClass::Write,
            abi::Effects::Exec => EffectClass::Exec,
            abi::Effects::Network => EffectClass::Network,
        },
        timeout: tool.timeout_ms.map_or_else(default_timeout, |millis| Millis(millis.into())),
        render: tool.render.as_ref().map(|text| parsed(&of("render hint"), text)).transpose()?,
    })
}

fn agent_spec(agent: &abi::AgentSpec) -> Result<ToolSpec, Fault> {
    filled("an agent's id", &agent.id)?;
    if agent.integration == abi::Integration::Handoff {
        let message = format!(
            "its agent `{}` wants conversations handed over, which this program does not offer yet",
            one_line(&agent.id)
        );
        return Err(Fault::new(Code::ComponentExport, message));
    }
    let spec = ToolSpec::named(&agent.id, &agent.description);
    Ok(ToolSpec { input_schema: agent_arguments_schema(), ..spec })
}

fn hinted(spec: ToolSpec, manifest: &Manifest) -> ToolSpec {
    let hint = manifest.tools.get(&spec.name).copied().unwrap_or_default();
    ToolSpec {
        timeout: hint.timeout_ms.unwrap_or(spec.timeout),
        effects: hint.effects.unwrap_or(spec.effects),
        ..spec
    }
}

fn other(kind: &str, id: &str, payload: Value) -> Descriptor {
    Descriptor {
        kind: kind.into(),
        id: id.into(),
        priority: None,
        payload: Payload::Other(Content::new(payload)),
    }
}

fn parsed(what: &str, text: &str) -> Result<Content, Fault> {
    let value: Result<Value, _> = serde_json::from_str(text);
    value
        .map(Content::new)
        .map_err(|error| wrong(format!("{what} is no JSON: {}", one_line(&error.to_string()))))
}

fn schema(what: &str, text: &str) -> Result<Content, Fault> {
    let schema = parsed(what, text)?;
    match schema.value() {
        Some(Value::Object(_) | Value::Bool(_)) => Ok(schema),
        _ => Err(wrong(format!("{what} is no JSON Schema: it must be an object"))),
    }
}

fn filled(what: &str, text: &str) -> Result<(), Fault> {
    match text.trim().is_empty() || text.chars().any(char::is_control) {
        true => Err(wrong(format!("{what} is empty or has control characters"))),
        false => Ok(()),
    }
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(wrong(format!("it has two of the {kind} `{}`", one_line(name))));
        }
    }
    Ok(())
}

fn wrong(message: String) -> Fault {
    Fault::new(Code::ComponentExport, message)
}
