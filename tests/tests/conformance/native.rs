//! The conformance extension in Rust, for the native lane: every role and every hook point, each doing what its directive says.
//! `tests/conformance/guest/main.c` is the same in C.

use std::sync::Arc;

use holdfast_contract::agents::AgentMode;
use holdfast_contract::content::Content;
use holdfast_contract::exports::AgentExport;
use holdfast_contract::hook::{Artifact, Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::manifest::Manifest;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_contract::role::Role;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Api, Functions, Hook, Lifecycle, NativeExtension, Tool, now};
use serde_json::{Value, json};

use super::directive::{Deed, Place, split};

/// The extension as this manifest sets it up.
pub fn extension(manifest: &Manifest) -> NativeExtension {
    let config: Arc<Value> = Arc::new(Content::of(&manifest.config).value().clone());
    let mut it = NativeExtension::new(manifest.id.as_str(), &manifest.version);
    if let Some(priority) = manifest.priority {
        it = it.priority(priority);
    }
    let depends_on: Vec<&str> = manifest.depends_on.iter().map(|id| id.as_str()).collect();
    it = it.depends_on(&depends_on);
    for spec in tools() {
        let hint = manifest.tools.get(&spec.name).copied().unwrap_or_default();
        let (timeout, effects) =
            (hint.timeout_ms.unwrap_or(spec.timeout), hint.effects.unwrap_or(spec.effects));
        it = it.tool(Obeys { spec: ToolSpec { timeout, effects, ..spec }, config: config.clone() });
    }
    let helper = AgentExport {
        name: "helper".to_owned(),
        description: "Helps in words.".to_owned(),
        mode: AgentMode::Tool,
        effects: None,
    };
    it = it.agent(manifest.code_agent(&helper));
    for spec in hooks(manifest) {
        it = it.hook(Decides { spec, config: config.clone() });
    }
    let calls = Calls { config };
    it.descriptor(other("command", "obey", json!({ "description": "Does what it is told." })))
        .descriptor(other(
            "api",
            manifest.id.as_str(),
            json!({ "methods": [
            { "name": "obey", "description": "Does what it is told." },
        ] }),
        ))
        .descriptor(other("renderer", manifest.id.as_str(), json!({ "calls": true, "results": true })))
        .lifecycle(calls.clone())
        .api(calls.clone())
        .functions(calls)
        .replayable()
}

fn tools() -> [ToolSpec; 3] {
    let count = json!({
        "type": "object",
        "properties": { "count": { "type": "integer" } },
        "required": ["count"],
    });
    [
        ToolSpec { effects: EffectClass::Pure, ..ToolSpec::named("act", "Does what it is told.") },
        ToolSpec {
            effects: EffectClass::Write,
            timeout: Millis(2_000),
            ..ToolSpec::named("change", "Says that it changes things.")
        },
        ToolSpec {
            effects: EffectClass::Pure,
            input_schema: count.into(),
            output_schema: Some(json!({ "type": "string" }).into()),
            render: Some(json!({ "as": "table" }).into()),
            ..ToolSpec::named("typed", "Takes a count and promises text.")
        },
    ]
}

/// A hook at every point, or one for each hint that the manifest has for it.
fn hooks(manifest: &Manifest) -> Vec<HookSpec> {
    let at = |point: &HookPoint| {
        let hints = manifest.hooks.iter().filter(move |hint| hint.point == *point);
        let mut specs: Vec<_> = hints
            .map(|hint| {
                let plain = HookSpec::at(hint.point);
                HookSpec {
                    matcher: hint.matcher.clone(),
                    priority: hint.priority.unwrap_or(plain.priority),
                    timeout: hint.timeout_ms.unwrap_or(plain.timeout),
                    ..plain
                }
            })
            .collect();
        if specs.is_empty() {
            specs.push(HookSpec::at(*point));
        }
        specs
    };
    HookPoint::ALL.iter().flat_map(at).collect()
}

fn other(kind: &str, id: &str, payload: Value) -> Descriptor {
    Descriptor {
        kind: kind.into(),
        id: id.into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Other(payload.into()),
    }
}

/// A point's name in directives.
fn name(point: HookPoint) -> String {
    json!(point).as_str().unwrap().to_owned()
}

struct Decides {
    spec: HookSpec,
    config: Arc<Value>,
}

impl Hook for Decides {
    fn spec(&self) -> HookSpec {
        self.spec.clone()
    }

    fn decide(&self, input: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        let config = self.config.clone();
        Box::pin(async move {
            let place = Place {
                where_: &name(input.point),
                subject: input.subject.as_ref(),
                arguments: input.call.as_ref().map(|call| &call.arguments),
                config: &config,
                turn: Some(&input.turn),
                host: Some(&host),
            };
            let deed = place.directive().await?;
            if deed.failing() {
                Err(Fault::new(Code::HookFault, deed.text))
            } else {
                Ok(decision(input.point, deed))
            }
        })
    }
}

fn decision(point: HookPoint, Deed { verb, text }: Deed) -> Decision {
    let json = |text: &str| Content::new(serde_json::from_str(text).unwrap());
    match verb.as_str() {
        "deny" => Decision::Deny { reason: text },
        "ask" => Decision::Ask { reason: text },
        "flag" => Decision::Flag { reason: text },
        "block" => Decision::Block { reason: text },
        "inject" => Decision::Inject { content: Content::text(text) },
        "replace" => Decision::Replace { content: Content::text(text) },
        "route" | "order" => {
            let (model, reason) = split(&text, " ");
            Decision::Route { model: model.into(), authoritative: verb == "order", reason }
        }
        "arguments" => Decision::Modify { arguments: Some(json(&text)), implementation: None },
        "implementation" => Decision::Modify { arguments: None, implementation: Some(text.into()) },
        "result" => enriched(Some(Content::text(text)), Vec::new(), None),
        "json" if point == HookPoint::ToolAfter => enriched(Some(json(&text)), Vec::new(), None),
        "json" => Decision::Replace { content: json(&text) },
        "artifact" => {
            let (name, content) = split(&text, " ");
            let content = Content::text(content);
            enriched(None, vec![Artifact { name, media_type: "text/plain".to_owned(), content }], None)
        }
        "render" => enriched(None, Vec::new(), Some(json(&text))),
        "keep" => {
            let (keep, text) = split(&text, " ");
            let instructions = (!text.is_empty()).then_some(text);
            Decision::Compact { instructions, keep: Some(keep.parse().unwrap()) }
        }
        "instructions" => Decision::Compact { instructions: Some(text), keep: None },
        _ if point.accepts(&Decision::Allow) => Decision::Allow,
        _ => Decision::Continue,
    }
}

fn enriched(result: Option<Content>, artifacts: Vec<Artifact>, render: Option<Content>) -> Decision {
    Decision::Enrich { result, artifacts, render }
}

struct Obeys {
    spec: ToolSpec,
    config: Arc<Value>,
}

impl Tool for Obeys {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let config = self.config.clone();
        Box::pin(async move { told("tool", &arguments, Some(&arguments), &config, Some(&turn), &host).await })
    }
}

/// What a tool, method, agent or command answers: text, JSON, a failure, or else what it was given.
async fn told(
    where_: &str,
    given: &Content,
    arguments: Option<&Content>,
    config: &Value,
    turn: Option<&TurnView>,
    host: &Arc<dyn Host>,
) -> Result<Content, Fault> {
    let place = Place { where_, subject: Some(given), arguments, config, turn, host: Some(host) };
    let Deed { verb, text } = place.directive().await?;
    match verb.as_str() {
        "text" => Ok(Content::text(text)),
        "json" => Ok(Content::new(serde_json::from_str(&text).unwrap())),
        "invalid" => Err(Fault::new(Code::ToolArguments, text)),
        "refused" | "missing" | "failed" => Err(Fault::new(Code::ToolFailed, text)),
        _ => Ok(given.clone()),
    }
}

fn field(arguments: &Content, name: &str) -> Content {
    arguments.value().get(name).cloned().map(Content::new).unwrap_or_default()
}

/// The roles that are called by name, and the steps of a life.
#[derive(Clone)]
struct Calls {
    config: Arc<Value>,
}

impl Calls {
    fn step(&self, where_: &'static str, host: Option<Arc<dyn Host>>) -> Later<Result<Deed, Fault>> {
        let config = self.config.clone();
        Box::pin(async move {
            let host = host.as_ref();
            let place = Place { where_, subject: None, arguments: None, config: &config, turn: None, host };
            let deed = place.directive().await?;
            if deed.failing() { Err(Fault::new(Code::ExtensionFault, deed.text)) } else { Ok(deed) }
        })
    }

    fn done(&self, where_: &'static str, host: Option<Arc<dyn Host>>) -> Later<Result<(), Fault>> {
        let step = self.step(where_, host);
        Box::pin(async move { step.await.map(drop) })
    }
}

impl Lifecycle for Calls {
    fn initialize(&self, host: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        self.done("initialize", Some(host))
    }

    fn start(&self) -> Later<Result<(), Fault>> {
        self.done("start", None)
    }

    fn stop(&self) -> Later<Result<(), Fault>> {
        self.done("stop", None)
    }

    fn destroy(&self) -> Later<Result<(), Fault>> {
        self.done("destroy", None)
    }

    fn health_check(&self) -> Later<bool> {
        let health = self.step("health", None);
        Box::pin(async move { health.await.is_ok_and(|deed| deed.verb != "unwell") })
    }
}

impl Api for Calls {
    fn call(&self, _: String, arguments: Content, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let config = self.config.clone();
        Box::pin(async move { told("api", &arguments, Some(&arguments), &config, None, &host).await })
    }
}

impl Functions for Calls {
    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        host: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        let config = self.config.clone();
        let by_words = |where_: &'static str, name: &str| -> Later<Result<Content, Fault>> {
            let (words, config) = (field(&arguments, name), config.clone());
            Box::pin(async move { told(where_, &words, None, &config, None, &host).await })
        };
        let shown = |name: &str| {
            let (tool, what) = (field(&arguments, "tool").to_text(), field(&arguments, name));
            let what = match what.value() {
                Value::String(text) => text.clone(),
                _ => what.json().to_owned(),
            };
            let text = Content::text(format!("**{tool}** {what}"));
            now(Ok(if tool == "plain" { Content::default() } else { text }))
        };
        Some(match (role, function.as_str()) {
            (Role::Commands, "run") => by_words("command", "arguments"),
            (Role::Agent, "invoke") => by_words("agent", "task"),
            (Role::Renderer, "render-call") => shown("arguments"),
            (Role::Renderer, "render-result") => shown("result"),
            _ => return None,
        })
    }
}
