//! What an extension registers: what its code exports, and what its manifest adds. The code is asked once for each activation and
//! the answer cached, so that a start loads no code.

use holdfast_contract::content::{Content, written_whole};
use holdfast_contract::exports::{AgentExport, Exports, Named, RendererFeatures};
use holdfast_contract::hook::HookPoint;
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::{Manifest, Scope};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{AgentMode, ChannelFeatures, Descriptor};
use holdfast_contract::tool::{EffectClass, ToolSpec, default_timeout};
use holdfast_contract::wire::InstanceCapabilities;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::faults::one_line;
use crate::wit::abi;
use crate::wit::interfaces::{Function, VERSION};

/// The version of the cached form. Increased whenever that changes.
const FORMAT: u32 = 2;

/// What an extension's code exports, and what it registers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    format: u32,
    /// The version of the interface that it was checked against.
    version: String,
    /// The interfaces that it exports.
    pub interfaces: Vec<String>,
    pub tools: Vec<abi::ToolSpec>,
    pub methods: Vec<Named>,
    pub commands: Vec<Named>,
    pub agent: Option<abi::AgentSpec>,
    /// Everything that it registers, with the manifest's settings.
    pub descriptors: Vec<Descriptor>,
    /// How long one instance is used.
    pub scope: Scope,
}

impl Known {
    /// Only the exported interfaces.
    pub(crate) fn of(interfaces: Vec<String>) -> Self {
        Self { format: FORMAT, version: VERSION.to_owned(), interfaces, ..Self::default() }
    }

    /// Reads the cached form; `None` if it is of another version.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let known: Self = serde_json::from_slice(bytes).ok()?;
        (known.format == FORMAT && known.version == VERSION).then_some(known)
    }

    /// The cached form.
    pub(crate) fn written(&self) -> Vec<u8> {
        // Written whole, because the schemas are stored nowhere else.
        written_whole(|| serde_json::to_vec(self)).unwrap_or_default()
    }

    /// Whether it exports a function.
    pub(crate) fn has(&self, function: Function) -> bool {
        self.interfaces.iter().any(|interface| interface == function.interface())
    }

    /// The same with the settings of its manifest.
    pub(crate) fn under(mut self, manifest: &Manifest) -> Result<Self, Fault> {
        self.descriptors = self.exports()?.descriptors(manifest)?;
        let lasting = [Function::SendToUser, Function::SchedulerTask, Function::RunBackground];
        let lasts = lasting.into_iter().any(|function| self.has(function));
        self.scope = manifest.scope.unwrap_or(if lasts { Scope::Shared } else { Scope::default() });
        Ok(self)
    }

    /// What it can do, as far as that is known without the code.
    pub(crate) fn capabilities(&self) -> InstanceCapabilities {
        let steps = [Function::Initialize, Function::Start, Function::Stop, Function::Destroy];
        let (scope, loops) = (self.scope, self.has(Function::RunBackground));
        InstanceCapabilities {
            scope,
            replayable: scope != Scope::Shared,
            has_lifecycle: loops || steps.into_iter().any(|step| self.has(step)),
            exclusive: scope == Scope::Shared,
            synchronous_hooks: false,
            roles: Function::ALL
                .iter()
                .filter(|function| self.has(**function))
                .map(|function| function.role())
                .collect(),
        }
    }

    fn exports(&self) -> Result<Exports, Fault> {
        let tools = self.tools.iter().map(tool_spec).collect::<Result<Vec<_>, _>>()?;
        let points = HookPoint::ALL.iter().copied().filter(|point| self.has(Function::at(*point)));
        Ok(Exports {
            tools,
            agent: self.agent.as_ref().map(agent_export),
            points: points.collect(),
            commands: self.commands.clone(),
            methods: self.has(Function::ApiCall).then(|| self.methods.clone()),
            renders: RendererFeatures {
                calls: self.has(Function::RenderCall),
                results: self.has(Function::RenderResult),
            },
            channel: self.has(Function::SendToUser).then(|| ChannelFeatures {
                messages: self.has(Function::SendMessage),
                streams: self.has(Function::StreamStart) && self.has(Function::StreamStatus),
                files: self.has(Function::SendFile),
                questions: self.has(Function::SendQuestion),
            }),
            ..Exports::default()
        })
    }
}

fn tool_spec(tool: &abi::ToolSpec) -> Result<ToolSpec, Fault> {
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
        concurrency: None,
        render: tool.render.as_ref().map(|text| parsed(&of("render hint"), text)).transpose()?,
        group: None,
        asks: false,
    })
}

fn agent_export(agent: &abi::AgentSpec) -> AgentExport {
    AgentExport {
        name: agent.id.clone(),
        description: agent.description.clone(),
        mode: match agent.integration {
            abi::Integration::Tool => AgentMode::Tool,
            abi::Integration::Handoff => AgentMode::Handoff,
        },
        effects: None,
    }
}

fn parsed(what: &str, text: &str) -> Result<Content, Fault> {
    let value: Result<Value, _> = serde_json::from_str(text);
    value
        .map(Content::new)
        .map_err(|error| wrong(format!("{what} is not valid JSON: {}", one_line(&error.to_string()))))
}

fn schema(what: &str, text: &str) -> Result<Content, Fault> {
    let schema = parsed(what, text)?;
    match schema.value() {
        Value::Object(_) | Value::Bool(_) => Ok(schema),
        _ => Err(wrong(format!("{what} is not a JSON Schema: it must be an object"))),
    }
}

fn wrong(message: String) -> Fault {
    Fault::new(Code::ComponentExport, message)
}
