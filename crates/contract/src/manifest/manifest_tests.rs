//! Manifests as the seeds write them, and one with everything in it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::ids::Millis;
use crate::message::Limits;
use crate::registry::AgentMode;
use crate::system_frames::{MissedPolicy, ScheduleSpec};

/// A manifest that has no problem at all.
fn clean(text: &str) -> Manifest {
    let parsed = parse(Path::new("manifest.yaml"), text).unwrap();
    assert_eq!(parsed.warnings, []);
    parsed.manifest
}

#[test]
fn the_declarative_agent_of_seed_000() {
    let manifest = clean(
        "\
id: simple_agent
name: Simple Agent
description: A simple agent for testing

agent:
  integration_mode: tool
  model: gpt-5-mini
  instructions: |
    Always reply in the format of a haiku
  uses_tools:
    - kv
  limits:
    max_turns: 3

depends_on:
  - kv
enabled: true
",
    );
    let agent = manifest.agent.clone().unwrap();
    assert_eq!(agent.integration_mode, AgentMode::Tool);
    assert_eq!(agent.model, Some("gpt-5-mini".into()));
    assert_eq!(agent.instructions, "Always reply in the format of a haiku\n");
    assert_eq!(agent.uses_tools, ["kv".into()]);
    assert_eq!(agent.limits, AgentLimits { max_turns: 3, ..AgentLimits::default() });
    assert_eq!(manifest.depends_on, ["kv".into()]);
    assert_eq!(lane(&manifest, &["manifest.yaml", "prompt.jinja2"]), Ok(LaneKind::Declarative));
}

#[test]
fn the_minimal_manifest_of_seed_000() {
    let manifest = clean(
        "\
id: my_extension
name: My Extension
version: \"1.0.0\"
entrypoint: main:MyExtension
description: |
  What this extension does. Shown to Orchestrator.
depends_on: []        # e.g. [\"kv\"] if you need KV store
config: {}
enabled: true
",
    );
    assert_eq!(manifest.description, "What this extension does. Shown to Orchestrator.\n");
    assert_eq!(lane(&manifest, &["main.py", "manifest.yaml"]), Ok(LaneKind::Python));
}

#[test]
fn the_schedules_and_events_of_seed_000() {
    let manifest = clean(
        "\
id: memory
name: Memory
entrypoint: main:Memory
schedules:
  - name: nightly_consolidation
    cron: \"0 3 * * *\"
    task: execute_consolidation   # optional; if empty, uses name
  - name: daily_decay
    cron: \"0 4 * * *\"
  - {name: weekly, cron: '@weekly', task: '', timezone: Europe/Vienna, missed: skip}
events:
  publishes:
    - memory.consolidated
    - {topic: memory.decayed, description: After the nightly decay.}
  subscribes:
    - topic: alert.urgent
      handler: notify_user
    - {topic: reminder.due, handler: invoke_agent}
    - {topic: memory.wanted, handler: custom}
",
    );
    let tasks: Vec<_> = manifest.schedules.iter().map(Schedule::task_name).collect();
    assert_eq!(tasks, ["execute_consolidation", "daily_decay", "weekly"]);
    assert_eq!(manifest.schedules[0].missed, MissedPolicy::RunOnce);
    let spec = ScheduleSpec::from(&manifest.schedules[2]);
    assert_eq!((spec.task.as_str(), spec.timezone.as_deref()), ("weekly", Some("Europe/Vienna")));
    assert_eq!(spec.missed, MissedPolicy::Skip);
    let handlers: Vec<_> =
        manifest.events.subscribes.iter().map(|subscription| subscription.handler).collect();
    assert_eq!(handlers, [HandlerSpec::NotifyUser, HandlerSpec::InvokeAgent, HandlerSpec::Custom]);
    assert_eq!(manifest.events.publishes[1].description, "After the nightly decay.");
}

#[test]
fn the_manifest_of_seed_001_has_one_key_twice() {
    let text = "\
# sandbox/extensions/telegram_channel/manifest.yaml

id: telegram_channel
name: Telegram Bot Channel
version: \"1.0.0\"

description: >
  User communication channel via Telegram bot.
  Receives incoming messages and sends agent responses.

entrypoint: main:TelegramChannelExtension   # module:Class

# Description for agent system prompt
description: |
  Telegram channel. User writes to bot in Telegram,
  messages go to the agent. Responses are sent back to Telegram.
  Supports proactive notifications.

# Setup instructions — visible to agent while extension is not configured
setup_instructions: |
  A bot token from @BotFather is needed for setup.
  Call configure_extension(\"telegram_channel\", \"token\", \"<TOKEN>\").

# Dependencies: loaded before this extension
depends_on:
  - kv

# Secrets from .env (optional, if not via SetupProvider)
secrets: []

# Extension config (accessible via context.get_config())
config:
  parse_mode: MarkdownV2

enabled: true
";
    let parsed = parse(Path::new("extensions/telegram_channel/manifest.yaml"), text).unwrap();
    let rendered: Vec<_> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        rendered,
        ["warning[HF-1005]: duplicate key `description`, first at line 7
  --> extensions/telegram_channel/manifest.yaml:14:1 (description)
  help: The last value counts; remove the others."]
    );
    assert!(parsed.manifest.description.starts_with("Telegram channel. User writes"));
    assert!(parsed.manifest.setup_instructions.contains("@BotFather"));
    assert_eq!(Value::Object(parsed.manifest.config), json!({ "parse_mode": "MarkdownV2" }));
}

#[test]
fn a_pack_of_seed_002() {
    let manifest = clean(
        "\
id: web-search
name: Web search
package: \"@framers/agentos-ext-web-search\"
priority: 10
descriptors:
  - id: web_search
    kind: tool
    priority: 20
    requiredSecrets:
      - id: serper.apiKey
      - {id: brave.apiKey, optional: true}
  - {id: research, kind: workflow, required_secrets: [SERPER]}
",
    );
    assert_eq!(manifest.priority, Some(10));
    let needs = |index: usize| manifest.descriptors[index].required_secrets.clone();
    let need = |id: &str, optional| SecretNeed { id: id.into(), optional };
    assert_eq!(needs(0), [need("serper.apiKey", false), need("brave.apiKey", true)]);
    assert_eq!(needs(1), [need("SERPER", false)]);
    assert_eq!(lane(&manifest, &["manifest.yaml"]), Ok(LaneKind::Node));
}

#[test]
fn defaults_are_those_of_seed_000() {
    let manifest = clean("{id: a, name: A, agent: {}}");
    assert_eq!(manifest.version, "1.0.0");
    assert_eq!(manifest.agent_id().as_str(), "a");
    assert_eq!((manifest.description.as_str(), manifest.setup_instructions.as_str()), ("", ""));
    assert!(manifest.enabled && manifest.depends_on.is_empty() && manifest.schedules.is_empty());
    let agent = manifest.agent.unwrap();
    assert_eq!(Limits::from(agent.limits), Limits::default());
    assert_eq!(agent.limits.max_tokens_per_invocation, 50_000);
    assert_eq!(agent.limits.time_budget_ms, Millis(120_000));
}

#[test]
fn nothing_counts_as_left_out() {
    let manifest =
        clean("{id: a, name: A, entrypoint: null, description: , depends_on: ~, agent: {limits: , model: }}");
    assert_eq!(manifest, clean("{id: a, name: A, agent: {}}"));
}

#[test]
fn numbers_without_quotes_are_text_where_text_is_wanted() {
    let manifest = clean("{id: a, name: 007, version: 1.10.0, agent: {model: 4.10}}");
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("007", "1.10.0"));
    assert_eq!(manifest.agent.unwrap().model, Some("4.10".into()));
}

#[test]
fn configuration_is_json() {
    let manifest = clean(
        "{id: a, name: A, agent: {}, config: {b: yes, c: true, d: 1.5, e: [0x10, ~, '1'], f: {g: 1_0}}}",
    );
    let expected = json!({ "b": "yes", "c": true, "d": 1.5, "e": [16, null, "1"], "f": { "g": "1_0" } });
    assert_eq!(Value::Object(manifest.config), expected);
}

#[test]
fn booleans_and_numbers_are_read_as_people_write_them() {
    let manifest =
        clean("{id: a, name: A, enabled: No, agent: {limits: {max_tokens_per_invocation: 80_000}}}");
    assert!(!manifest.enabled);
    assert_eq!(manifest.agent.unwrap().limits.max_tokens_per_invocation, 80_000);
}

#[test]
fn requests_gather_what_is_needed() {
    let manifest = clean(
        "{id: a, name: A, agent: {}, depends_on: [kv, clock], secrets: [KEY, {id: TOKEN, optional: true}],
          grants: {secrets: [KEY, OTHER], extensions: [kv], network: [example.com]}}",
    );
    let requests = manifest.requests();
    assert_eq!(requests.secrets, ["KEY", "OTHER", "TOKEN"]);
    assert_eq!(requests.extensions, ["clock".into(), "kv".into()]);
    assert_eq!(requests.network, ["example.com"]);
}

/// Every field there is. `mcp` has two shapes, so there are two of these.
pub(super) const EVERYTHING: &str = "\
id: everything
name: Everything
version: 2.3.4-beta.1
description: All of it.
setup_instructions: Ask for a key.
entrypoint: main:Everything
agent:
  integration_mode: handoff
  model: large
  instructions: Be brief.
  parameters: {temperature: 0.2}
  uses_tools: [kv, core_tools]
  limits:
    max_turns: 3
    max_tokens_per_invocation: 1000
    time_budget_ms: 5000
    max_cost_micros: 20000
    max_tool_calls: 0
agent_id: everything_agent
agent_config: {model: large}
depends_on: [kv]
secrets: [KEY, {id: TOKEN, optional: true}]
config: {depth: {is: [fine]}}
enabled: false
events:
  publishes: [{topic: a.done, description: Done.}]
  subscribes: [{topic: a.*, handler: custom}]
schedules: [{name: nightly, cron: 0 3 * * *, task: tidy, timezone: UTC, missed: skip}]
grants:
  network: [api.example.com, '*.example.org', 'localhost:8080']
  files: [~/notes, {path: /srv/data, access: write}]
  secrets: [OTHER]
  environment: [LANG]
  extensions: [clock]
  interfaces: [http, state]
  listen: [8080]
policy: {ask: [delete_*], reason: To look things up.}
priority: -5
scope: shared
tools:
  search: {timeout_ms: 10000, effects: read, concurrency: 4}
hooks:
  - point: tool_gate
    matcher: {tools: [shell], arguments: {/command: '*rm*'}, origins: [telegram]}
    timeout_ms: 50
    tokens: 500
    priority: 10
  - {point: sanitize_output, streams: true}
descriptors:
  - {id: search, kind: tool, priority: 1, required_secrets: [{id: KEY, optional: true}]}
  - {id: poet, kind: persona, payload: {}}
";

const WAYS: [&str; 2] = [
    "{id: b, name: B, command: ./run --fast, transport: socket, package: b, mcp: {command: npx, args: [-y, server], env: {LEVEL: 3}}}",
    "{id: c, name: C, mcp: {url: 'https://mcp.example.com/', headers: {X-Client: holdfast}}}",
];

#[test]
fn what_is_written_is_read_again() {
    for text in [EVERYTHING, WAYS[0], WAYS[1]] {
        let manifest = clean(text);
        let written = serde_json::to_string(&manifest).unwrap();
        assert_eq!(clean(&written), manifest, "{written}");
    }
}

#[test]
fn the_schema_and_the_reader_know_the_same_fields() {
    let mut read = BTreeSet::new();
    for text in [EVERYTHING, WAYS[0], WAYS[1]] {
        let mut written = serde_json::to_value(clean(text)).unwrap();
        for free in ["config", "agent_config"] {
            written[free] = Value::Null;
        }
        keys(&written, &mut read);
    }
    for free in ["temperature", "search", "/command", "LEVEL", "X-Client"] {
        assert!(read.remove(free), "{free}");
    }
    let mut described = BTreeSet::new();
    properties(&crate::schema::manifest(), &mut described);
    assert_eq!(described, read);
}

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

fn properties(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            if let (true, Value::Object(named)) = (key == "properties", value) {
                for (name, field) in named {
                    assert!(field.get("description").is_some(), "`{name}` is not described");
                    found.insert(name.clone());
                    properties(field, found);
                }
            } else {
                properties(value, found);
            }
        }),
        Value::Array(items) => items.iter().for_each(|item| properties(item, found)),
        _ => {}
    }
}

#[test]
fn commands_are_split_unless_they_have_arguments() {
    let manifest = clean(WAYS[0]);
    let command = manifest.command.unwrap();
    assert_eq!((command.program(), command.arguments()), ("./run", ["--fast".to_owned()].as_slice()));
    let spaced = clean("{id: b, name: B, mcp: {command: /opt/my server/run, args: [--stdio]}}");
    let Some(McpServer::Local { command, args, .. }) = spaced.mcp else { panic!("not local") };
    assert_eq!(
        (command.program(), args.as_slice()),
        ("/opt/my server/run", ["--stdio".to_owned()].as_slice())
    );
}

// Finding C5.
#[test]
fn a_descriptor_takes_its_hint_and_the_secrets_that_it_cannot_do_without() {
    use crate::registry::Descriptor;
    let text = "id: kit\nname: Kit\nentrypoint: kit.wasm\npolicy: { ask: ['send_*'], reason: It sends. }\ndescriptors:\n  \
                - { id: send_mail, kind: tool, priority: 7, required_secrets: [TOKEN, { id: EXTRA, optional: true }] }\n  \
                - { id: kit, kind: guardrail, requiredSecrets: [LIST] }\n";
    let manifest = parse(std::path::Path::new("manifest.yaml"), text).unwrap().manifest;
    let tool = Descriptor::tool(crate::tool::ToolSpec::named("send_mail", "")).with_hint(&manifest);
    assert_eq!((tool.priority, tool.missing_secrets), (Some(7), vec!["TOKEN".to_owned()]));
    let guard =
        Descriptor::hook(&"kit".into(), 0, crate::hook::HookSpec::at(crate::hook::HookPoint::GuardInput))
            .with_hint(&manifest);
    assert_eq!(guard.missing_secrets, ["LIST"]);
    assert_eq!(manifest.requests().secrets, ["EXTRA", "LIST", "TOKEN"], "they can be granted");
    let exports = crate::exports::Exports {
        tools: vec![
            crate::tool::ToolSpec::named("send_mail", ""),
            crate::tool::ToolSpec::named("read_mail", ""),
        ],
        ..Default::default()
    };
    let asks = |descriptor: &Descriptor| match &descriptor.payload {
        crate::registry::Payload::Tool(spec) => spec.asks,
        _ => false,
    };
    let asks: Vec<bool> = exports.descriptors(&manifest).unwrap().iter().map(asks).collect();
    assert_eq!(asks, [true, false]);
}
