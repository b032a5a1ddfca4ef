//! What an extension's code declares, in any lane, and what it therefore registers: the same rules for all of them. The
//! manifest adds what is not the code's to say: priorities, matchers, time limits.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::content::Content;
use crate::hook::{HookPoint, HookSpec};
use crate::ids::{DescriptorId, Millis, RegistryKind, ToolName};
use crate::manifest::{DescriptorHint, Manifest, SecretNeed};
use crate::matcher::glob;
use crate::names::is_kind;
use crate::problem::{Code, Fault};
use crate::registry::{AgentMode, ChannelFeatures, Descriptor, Payload};
use crate::text::is_invisible;
use crate::tool::{EffectClass, ToolSpec};

/// Characters of an invalid name that a message has.
const MAX_SHOWN_CHARS: usize = 80;

/// Something that is called by name: a command, or a method for other extensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
}

/// An agent as an extension's code describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentExport {
    /// The name under which it is called.
    pub name: String,
    /// What it is good for.
    pub description: String,
    /// How others reach it.
    pub mode: AgentMode,
    /// What calling it does to the world, if the code says so.
    pub effects: Option<EffectClass>,
}

/// What of a call an extension renders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RendererFeatures {
    /// The call itself.
    pub calls: bool,
    /// Its result.
    pub results: bool,
}

/// Something that an extension registers under a kind and an id: text and values for what consumes the kind, or hooks that belong
/// together, such as those of one guardrail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescriptorSheet {
    /// The kind, such as `guardrail` or `persona`. It can be any; where nothing consumes it, the user is told.
    pub kind: RegistryKind,
    /// The id within the kind.
    pub id: DescriptorId,
    /// What it is, in words.
    #[serde(default)]
    pub description: String,
    /// Its priority among those of this kind and id; the extension's if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The secrets that it needs, by name. While one of them is missing that is not optional, it is not registered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_secrets: Vec<SecretNeed>,
    /// Its hooks. With any it has no payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookSheet>,
    /// What is registered, in the words of its kind.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
}

/// A hook of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSheet {
    /// Where it is asked.
    pub point: HookPoint,
    /// Lower is asked earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// How long it may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// Whether a sanitizer of answers may be asked about the beginning of an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams: bool,
}

impl From<HookSheet> for HookSpec {
    fn from(sheet: HookSheet) -> Self {
        let usual = Self::at(sheet.point);
        Self {
            priority: sheet.priority.unwrap_or(usual.priority),
            timeout: sheet.timeout_ms.unwrap_or(usual.timeout),
            streams: sheet.streams,
            ..usual
        }
    }
}

/// What a tool's code says of its registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNeeds {
    /// Its priority among tools of its name.
    pub priority: Option<i32>,
    /// The secrets that it needs.
    pub required_secrets: Vec<SecretNeed>,
}

/// What an extension's code says that it is.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// Its tools.
    pub tools: Vec<ToolSpec>,
    /// The priorities and needs of tools whose code names any.
    pub needs: BTreeMap<ToolName, ToolNeeds>,
    /// What it registers of other kinds.
    pub descriptors: Vec<DescriptorSheet>,
    /// Its agent.
    pub agent: Option<AgentExport>,
    /// What it is, in words.
    pub description: String,
    /// The points at which it has a hook.
    pub points: Vec<HookPoint>,
    /// The priorities of its hooks, where the manifest names none.
    pub priorities: BTreeMap<HookPoint, i32>,
    /// Its commands.
    pub commands: Vec<Named>,
    /// Its methods for other extensions; none where it has no `api`.
    pub methods: Option<Vec<Named>>,
    /// What of a call it renders.
    pub renders: RendererFeatures,
    /// What it can do as a channel, if it is one.
    pub channel: Option<ChannelFeatures>,
}

impl Exports {
    /// What it registers under this manifest.
    pub fn descriptors(self, manifest: &Manifest) -> Result<Vec<Descriptor>, Fault> {
        let Self {
            tools,
            mut needs,
            descriptors,
            agent,
            description,
            points,
            priorities,
            commands,
            methods,
            renders,
            channel,
        } = self;
        let mut all = Vec::new();
        for tool in tools {
            let ToolNeeds { priority, required_secrets } = needs.remove(&tool.name).unwrap_or_default();
            let missing_secrets = blocking(&required_secrets);
            all.push(Descriptor { priority, missing_secrets, ..Descriptor::tool(hinted(tool, manifest)) });
        }
        if let Some(agent) = &agent {
            all.push(Descriptor::agent(manifest.code_agent(agent)));
        }
        all.extend(hooks(&points, &priorities, manifest));
        for command in &commands {
            all.push(other("command", &command.name, json!({ "description": command.description })));
        }
        if let Some(methods) = methods {
            for method in &methods {
                named("a method", &method.name)?;
            }
            unique("method", methods.iter().map(|method| method.name.as_str()))?;
            all.push(other("api", manifest.id.as_str(), json!({ "methods": methods })));
        }
        if renders != RendererFeatures::default() {
            all.push(other("renderer", manifest.id.as_str(), json!(renders)));
        }
        let channel = channel.map(|features| Descriptor::channel(&manifest.id, features));
        all.extend(channel.map(|channel| channel.described(&description)));
        for sheet in descriptors {
            all.push(sheet.descriptor()?);
        }
        let declared = manifest.descriptors.iter().filter_map(DescriptorSheet::declared);
        for sheet in declared {
            if !all.iter().any(|it: &Descriptor| it.kind == sheet.kind && it.id == sheet.id) {
                all.push(sheet.descriptor()?);
            }
        }
        all.iter().try_for_each(Descriptor::check_names)?;
        let tools: Vec<_> = all.iter().flat_map(Descriptor::tool_names).collect();
        unique("tool", tools.iter().map(ToolName::as_str))?;
        let commands = all.iter().filter(|descriptor| descriptor.kind.as_str() == "command");
        unique("command", commands.map(|descriptor| descriptor.id.as_str()))?;
        let others = all.iter().filter(|it| matches!(it.payload, Payload::Hooks(_) | Payload::Other(_)));
        let others: Vec<_> = others.map(|it| format!("{} {}", it.kind, it.id)).collect();
        unique("descriptor", others.iter().map(String::as_str))?;
        Ok(all.into_iter().map(|descriptor| descriptor.with_hint(manifest)).collect())
    }
}

impl DescriptorSheet {
    /// The descriptor that a manifest declares with a payload.
    fn declared(hint: &DescriptorHint) -> Option<Self> {
        let payload = Value::Object(hint.payload.clone()?);
        let (kind, id) = (hint.kind.clone(), hint.id.clone());
        Some(Self {
            kind,
            id,
            description: String::new(),
            priority: hint.priority,
            required_secrets: hint.required_secrets.clone(),
            hooks: Vec::new(),
            payload,
        })
    }

    /// What it registers. All secrets count as missing until the host has looked.
    fn descriptor(self) -> Result<Descriptor, Fault> {
        let Self { kind, id, description, priority, required_secrets, hooks, payload } = self;
        named("a descriptor", id.as_str())?;
        if !is_kind(kind.as_str()) {
            return Err(wrong(format!("`{}` is not a valid kind", escaped(kind.as_str()))));
        }
        // These are made from the other parts of what the code declares.
        if ["tool", "agent", "hook"].contains(&kind.as_str()) {
            return Err(wrong(format!("a descriptor cannot be of the kind `{kind}`")));
        }
        let payload = if hooks.is_empty() {
            let payload = if payload.is_null() { json!({}) } else { payload };
            Payload::Other(Content::new(payload))
        } else {
            Payload::Hooks(hooks.into_iter().map(HookSpec::from).collect())
        };
        let missing_secrets = blocking(&required_secrets);
        let descriptor = Descriptor { kind, id, priority, missing_secrets, payload };
        let has_fields =
            matches!(&descriptor.payload, Payload::Other(content) if content.value().is_object());
        Ok(if has_fields { descriptor.described(&description) } else { descriptor })
    }
}

/// The secrets without which something is not registered.
fn blocking(needs: &[SecretNeed]) -> Vec<String> {
    needs.iter().filter(|need| !need.optional).map(|need| need.id.clone()).collect()
}

impl Descriptor {
    /// Refuses names by which it is called and that a person could not read. It is asked in every lane.
    pub fn check_names(&self) -> Result<(), Fault> {
        for tool in self.tool_names() {
            named("a tool", tool.as_str())?;
        }
        match self.kind.as_str() {
            "agent" => named("an agent", self.id.as_str()),
            "command" => named("a command", self.id.as_str()),
            _ => Ok(()),
        }
    }

    /// With what the manifest says about it: its priority, and the secrets that it cannot do without. All of them count as missing
    /// until the host has looked.
    pub fn with_hint(mut self, manifest: &Manifest) -> Self {
        let names: Vec<_> = self.kinds_and_ids(&manifest.id).collect();
        let is_meant = |kind: &RegistryKind, id: &DescriptorId| {
            names.iter().any(|(own_kind, own_id)| own_kind == kind && own_id == id)
        };
        let Some(hint) = manifest.descriptors.iter().find(|hint| is_meant(&hint.kind, &hint.id)) else {
            return self;
        };
        self.priority = hint.priority.or(self.priority);
        for needed in blocking(&hint.required_secrets) {
            if !self.missing_secrets.contains(&needed) {
                self.missing_secrets.push(needed);
            }
        }
        self
    }
}

/// Hooks in the order of the points, one for each hint that the manifest has for a point and one where it has none.
fn hooks(
    points: &[HookPoint],
    priorities: &BTreeMap<HookPoint, i32>,
    manifest: &Manifest,
) -> impl Iterator<Item = Descriptor> {
    let points = HookPoint::ALL.iter().filter(|point| points.contains(point));
    let specs = points.flat_map(|point| {
        let mut plain = HookSpec::at(*point);
        plain.priority = priorities.get(point).copied().unwrap_or(plain.priority);
        let hints = manifest.hooks.iter().filter(|hint| hint.point == *point);
        let hinted = hints.map(|hint| HookSpec {
            point: *point,
            matcher: hint.matcher.clone(),
            priority: hint.priority.unwrap_or(plain.priority),
            timeout: hint.timeout_ms.unwrap_or(plain.timeout),
            tokens: hint.tokens,
            streams: hint.streams,
        });
        let mut specs: Vec<_> = hinted.collect();
        if specs.is_empty() {
            specs.push(plain);
        }
        specs
    });
    specs.enumerate().map(|(index, spec)| Descriptor::hook(&manifest.id, index, spec))
}

fn hinted(spec: ToolSpec, manifest: &Manifest) -> ToolSpec {
    let hint = manifest.tools.get(&spec.name).copied().unwrap_or_default();
    ToolSpec {
        timeout: hint.timeout_ms.unwrap_or(spec.timeout),
        effects: hint.effects.unwrap_or(spec.effects),
        concurrency: hint.concurrency.or(spec.concurrency),
        asks: manifest.policy.ask.iter().any(|pattern| glob(pattern, spec.name.as_str())),
        ..spec
    }
}

fn other(kind: &str, id: &str, payload: Value) -> Descriptor {
    Descriptor {
        kind: kind.into(),
        id: id.into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Other(Content::new(payload)),
    }
}

/// Names stand at the beginning of lines and in questions: one with a space or an invisible character in it could look like words of the
/// program.
fn named(what: &str, name: &str) -> Result<(), Fault> {
    let starts = name.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    let odd = |letter: char| letter.is_whitespace() || letter.is_control() || is_invisible(letter);
    if starts && !name.contains(odd) {
        return Ok(());
    }
    let shown = escaped(name);
    Err(wrong(format!(
        "{what} has the name `{shown}`: a name begins with a letter, a digit or `_`, and has no spaces, control characters or invisible characters"
    )))
}

/// A name with escapes for what would not be seen.
fn escaped(name: &str) -> String {
    let seen = |letter: char| {
        letter == ' ' || !(letter.is_whitespace() || letter.is_control() || is_invisible(letter))
    };
    let shown = name
        .chars()
        .take(MAX_SHOWN_CHARS)
        .map(|letter| if seen(letter) { letter.to_string() } else { letter.escape_unicode().to_string() });
    shown.collect()
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(wrong(format!("it has two of the {kind} `{}`", escaped(name))));
        }
    }
    Ok(())
}

fn wrong(message: String) -> Fault {
    Fault::new(Code::ComponentExport, message)
}
