//! What an extension's code says that it is, in whatever lane, and what it therefore registers: the same rules for all of them. The
//! manifest adds what is not the code's to say: priorities, matchers, time limits.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::content::Content;
use crate::hook::{HookPoint, HookSpec};
use crate::manifest::Manifest;
use crate::problem::{Code, Fault};
use crate::registry::{AgentSpec, Descriptor, Payload};
use crate::tool::ToolSpec;

/// Something that goes by a name: a command, or a method for other extensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The name.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
}

/// What an extension's code says that it is.
#[derive(Clone, Debug, Default)]
pub struct Exports {
    /// Its tools, an agent that is called like one among them.
    pub tools: Vec<ToolSpec>,
    /// Its agent, if conversations are handed over to it.
    pub handoff: Option<Named>,
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
    /// Whether it shows calls, and results.
    pub renders: (bool, bool),
    /// Where it is a channel, whether it knows whom to write to where no user is named.
    pub channel: Option<bool>,
    /// Whether, being a channel, it shows answers as they are written.
    pub streams: bool,
    /// Whether, being a channel, it sends files.
    pub files: bool,
}

impl Exports {
    /// What it registers under this manifest.
    pub fn descriptors(self, manifest: &Manifest) -> Result<Vec<Descriptor>, Fault> {
        let Self {
            tools,
            handoff,
            description,
            points,
            priorities,
            commands,
            methods,
            renders,
            channel,
            streams,
            files,
        } = self;
        let (calls, results) = renders;
        let mut all = Vec::new();
        for tool in tools {
            filled("a tool's name", tool.name.as_str())?;
            all.push(Descriptor::tool(hinted(tool, manifest)));
        }
        if let Some(Named { name, description }) = &handoff {
            filled("an agent's name", name)?;
            all.push(Descriptor::agent(AgentSpec::code(&manifest.id, name, description)));
        }
        all.extend(hooks(&points, &priorities, manifest));
        for command in &commands {
            filled("a command's name", &command.name)?;
            all.push(other("command", &command.name, json!({ "description": command.description })));
        }
        if let Some(methods) = methods {
            for method in &methods {
                filled("a method's name", &method.name)?;
            }
            unique("method", methods.iter().map(|method| method.name.as_str()))?;
            all.push(other("api", manifest.id.as_str(), json!({ "methods": methods })));
        }
        if calls || results {
            all.push(other("renderer", manifest.id.as_str(), json!({ "calls": calls, "results": results })));
        }
        all.extend(channel.map(|messages| {
            let channel = Descriptor::channel(&manifest.id, messages);
            channel.able("streams", streams).able("files", files).described(&description)
        }));
        for kind in ["tool", "command"] {
            let of_kind = all.iter().filter(|descriptor| descriptor.kind.as_str() == kind);
            unique(kind, of_kind.map(|descriptor| descriptor.id.as_str()))?;
        }
        for descriptor in &mut all {
            let mut hints = manifest.descriptors.iter();
            let hint = hints.find(|hint| hint.kind == descriptor.kind && hint.id == descriptor.id);
            descriptor.priority = hint.and_then(|hint| hint.priority);
        }
        Ok(all)
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
            let shown: String =
                name.chars().map(|it| if it.is_control() { ' ' } else { it }).take(80).collect();
            return Err(wrong(format!("it has two of the {kind} `{shown}`")));
        }
    }
    Ok(())
}

fn wrong(message: String) -> Fault {
    Fault::new(Code::ComponentExport, message)
}
