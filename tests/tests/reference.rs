//! The generated references under `docs/reference/`: made from the code, and compared with what is committed.
//!
//! To generate them again: `HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test reference`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[path = "reference/abi.rs"]
mod abi;
#[path = "reference/host_calls.rs"]
mod host_calls;
#[path = "reference/roles.rs"]
mod roles;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use holdfast_contract::body::{FrameKind, FrameOrigin};
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint, OnFault, Order};
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::problem::Code;
use holdfast_contract::role::RoleFunction;
use serde_json::Value;

const GENERATED: &str = "<!-- Generated from the code by `HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test reference`. -->\n\n";

fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference").join(name);
    let text = format!("{GENERATED}{}\n", text.trim_end());
    if std::env::var_os("HOLDFAST_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/reference/{name} is stale: run HOLDFAST_UPDATE=1 cargo test -p holdfast-tests --test reference"
    );
}

#[test]
fn errors() {
    let mut text = "# Error codes\n\nEvery failure has a stable code. An error is printed as `error[HF-…]: what`, a warning (the operation\n\
         continues) as `warning[HF-…]: what`; then follow where it happened and `help: what to do`.\n".to_owned();
    let groups = [
        ("1", "Manifests, settings, policy, the home"),
        ("2", "The log"),
        ("3", "Turns, tools, hooks"),
        ("4", "Extensions"),
        ("5", "Models"),
        ("6", "Replay and verification"),
        ("7", "The owner of the home"),
        ("8", "The bus and the channels"),
        ("9", "Usage"),
    ];
    for (digit, title) in groups {
        writeln!(text, "\n## {title}\n\n| code | what | what to do |\n|---|---|---|").unwrap();
        for code in Code::ALL.iter().filter(|code| code.as_str()[3..].starts_with(digit)) {
            writeln!(text, "| `{code}` | {} | {} |", code.title(), code.help()).unwrap();
        }
    }
    check("errors.md", &text);
    let listed = groups
        .iter()
        .map(|(digit, _)| Code::ALL.iter().filter(|code| code.as_str()[3..].starts_with(digit)).count());
    assert_eq!(listed.sum::<usize>(), Code::ALL.len(), "every code is in a group");
}

#[test]
fn frames() {
    let mut text = String::from(
        "# Frames\n\nA frame is one recorded fact or decision. A **fact** came from outside and is an input of the kernel;\n\
         a **decision** is the kernel's. Replay feeds the facts to a new machine and compares the decisions.\n\n\
         Every frame has `stream`, `seq`, `at`, `kind`, `source`, `cause`, `body`, `body_digest`, `prev` and\n\
         `hash`; `holdfast schema frames` prints the whole schema. A value in a body is written as\n\
         `{\"json\": …}`, or as `{\"blob\": {\"digest\", \"bytes\"}}` when its canonical form is larger than 4 KiB.\n",
    );
    let mut family = "";
    for kind in FrameKind::ALL {
        let name = kind.as_str().split('.').next().unwrap();
        if name != family {
            family = name;
            writeln!(text, "\n## {family}\n\n| kind | is a | what it says | body |\n|---|---|---|---|")
                .unwrap();
        }
        let origin = match kind.origin() {
            FrameOrigin::Fact => "fact",
            FrameOrigin::Decision => "decision",
        };
        writeln!(text, "| `{kind}` | {origin} | {} | {} |", kind.describe(), fields(*kind)).unwrap();
    }
    check("frames.md", &text);
}

fn fields(kind: FrameKind) -> String {
    let mut generator = schemars::SchemaGenerator::default();
    let schema = kind.body_schema(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let definition = definitions.get(name).unwrap_or(&schema);
    let required = definition["required"].as_array().cloned().unwrap_or_default();
    let properties = definition["properties"].as_object().cloned().unwrap_or_default();
    let name = |(field, _): (&String, &Value)| {
        if required.contains(&Value::String(field.clone())) {
            format!("`{field}`")
        } else {
            format!("`{field}`?")
        }
    };
    properties.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[test]
fn hooks() {
    let mut text = String::from(
        "# Hook points\n\nHooks are called in the order of priority (lower first), then extension id, then registration index:\n\
         the same on every machine. A hook whose matcher does not apply is not called. Each has its own\ntimeout.\n\n\
         | point | called | on a fault | may decide |\n|---|---|---|---|\n",
    );
    for point in HookPoint::ALL {
        let rules = point.rules();
        let order = match rules.order {
            Order::Sequence => "one after the other",
            Order::Together => "all concurrently",
        };
        let fault = match rules.on_fault {
            OnFault::Note => "the fault is recorded",
            OnFault::Close => "deny or block",
        };
        let name = serde_json::to_value(point).unwrap();
        let may: Vec<String> = decisions()
            .into_iter()
            .filter(|it| point.accepts(it))
            .map(|it| format!("`{}`", word(&it)))
            .collect();
        writeln!(text, "| `{}` | {order} | {fault} | {} |", name.as_str().unwrap(), may.join(", ")).unwrap();
    }
    check("hooks.md", &text);
}

fn decisions() -> Vec<Decision> {
    let (reason, content) = (String::new, || Content::text(""));
    vec![
        Decision::Continue,
        Decision::Allow,
        Decision::Deny { reason: reason() },
        Decision::Ask { reason: reason() },
        Decision::Modify { arguments: None, implementation: None },
        Decision::Replace { content: content() },
        Decision::Enrich { result: None, artifacts: Vec::new(), render: None },
        Decision::Inject { content: content() },
        Decision::Route { model: "".into(), authoritative: false, reason: reason() },
        Decision::Flag { reason: reason() },
        Decision::Block { reason: reason() },
        Decision::Compact { instructions: None, keep: None },
    ]
}

fn word(decision: &Decision) -> String {
    match serde_json::to_value(decision).unwrap() {
        Value::String(word) => word,
        Value::Object(fields) => fields.keys().next().unwrap().clone(),
        other => other.to_string(),
    }
}

#[test]
fn roles() {
    check("roles.md", &roles::page());
}

#[test]
fn the_table_of_roles_has_exactly_the_functions_of_the_interface() {
    let (table, interface) = (roles::in_the_table(), roles::in_the_interface());
    assert!(interface.contains("guard-input.guard-input") && !interface.contains("workflow.definition"));
    let missing: Vec<_> = interface.difference(&table).collect();
    let invented: Vec<_> = table.difference(&interface).collect();
    assert!(missing.is_empty() && invented.is_empty(), "missing {missing:?}, not in wit/ {invented:?}");
    assert_eq!(RoleFunction::ALL.len(), table.len(), "no function is twice in the table");
    for point in HookPoint::ALL {
        assert_eq!(RoleFunction::at(*point).point(), Some(*point));
    }
}

#[test]
fn manifest() {
    let schema = holdfast_contract::schema::manifest();
    let mut text = String::from(
        "# manifest.yaml\n\nOne per extension, in `extensions/<id>/manifest.yaml`. An unknown field is a warning with a\n\
         suggestion; `holdfast schema manifest` prints the JSON Schema.\n",
    );
    section(&mut text, "Fields", &schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        section(&mut text, name, definition);
    }
    check("manifest.md", &text);
}

#[test]
fn process() {
    let schema = holdfast_contract::schema::process();
    let mut text = String::from(
        "# Messages of the extension protocol\n\nEvery message between Holdfast and an extension that is a program, with its fields.\n\
         [The extension protocol](../protocol.md) explains them. They are not the\n[client protocol](../rpc.md), which other programs use to control Holdfast.\n\
         `holdfast schema process` prints the JSON Schemas. A message has `jsonrpc`, `method` and `params`,\nand an `id` unless it is a notification.\n",
    );
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        match name.as_str() {
            "ToExtension" | "ToHost" => methods(&mut text, name, definition),
            _ => section(&mut text, name, definition),
        }
    }
    check("process.md", &text);
}

/// One side's messages.
fn methods(text: &mut String, title: &str, schema: &Value) {
    let about = |schema: &Value| schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    writeln!(text, "\n## {title}\n\n{}\n\n| method | params | |\n|---|---|---|", about(schema)).unwrap();
    for message in schema["oneOf"].as_array().into_iter().flatten() {
        let params = &message["properties"]["params"];
        let fields = params["properties"].as_object().into_iter().flatten();
        let fields: Vec<_> = fields.map(|(name, field)| format!("`{name}`: {}", type_of(field))).collect();
        let params = match (params.is_null(), fields.is_empty()) {
            (true, _) => String::new(),
            (false, true) => type_of(params),
            (false, false) => fields.join(", "),
        };
        let method = message["properties"]["method"]["const"].as_str().unwrap_or_default();
        writeln!(text, "| `{method}` | {params} | {} |", about(message)).unwrap();
    }
}

#[test]
fn settings() {
    let schema = holdfast_home::schema();
    let mut text = String::from(
        "# settings.yaml\n\nThe file `config/settings.yaml` in the home. Every key is optional, and so is the file. An unknown\n\
         key is refused, with a suggestion; of a duplicate key the last value counts, with a warning.\n\
         `holdfast schema settings` prints the JSON Schema.\n",
    );
    section(&mut text, "Fields", &schema);
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        section(&mut text, name, definition);
    }
    check("settings.md", &text);
}

fn section(text: &mut String, title: &str, schema: &Value) {
    let describe = |schema: &Value| {
        schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|")
    };
    writeln!(text, "\n## {title}\n\n{}\n", describe(schema)).unwrap();
    if let Some(properties) = schema["properties"].as_object() {
        writeln!(text, "| field | type | default | what it is |\n|---|---|---|---|").unwrap();
        for (name, property) in properties {
            let default = property.get("default").map(|value| format!("`{value}`")).unwrap_or_default();
            writeln!(text, "| `{name}` | {} | {default} | {} |", type_of(property), describe(property))
                .unwrap();
        }
        if let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) {
            writeln!(text, "| any other name | {} | | |", type_of(others)).unwrap();
        }
    }
    for choice in schema["oneOf"].as_array().or(schema["anyOf"].as_array()).into_iter().flatten() {
        writeln!(text, "- {}: {}", type_of(choice), describe(choice)).unwrap();
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" \\| ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", type_of(&schema["items"])),
        Value::String(kind) if kind == "object" && schema["additionalProperties"].is_object() => {
            format!("mapping to {}", type_of(&schema["additionalProperties"]))
        }
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect::<Vec<_>>()
            .join(" \\| "),
        _ => {
            let choices =
                schema["anyOf"].as_array().or(schema["oneOf"].as_array()).cloned().unwrap_or_default();
            let named = choices.iter().filter(|choice| choice["type"] != "null").map(type_of);
            let named = named.collect::<Vec<_>>().join(" \\| ");
            if named.is_empty() { "any".to_owned() } else { named }
        }
    }
}

#[test]
fn extension_interface() {
    check("abi.md", &abi::page());
}

#[test]
fn command_line() {
    let mut text = String::from(
        "# The command line\n\nExit codes:\n\n| code | meaning |\n|---|---|\n| 0 | done |\n\
         | 1 | it failed: a replay differs, verification failed, a turn or a call failed |\n\
         | 2 | invalid usage or configuration |\n| 3 | the call was denied |\n| 130 | interrupted |\n\
         | 141 | the reader of the output has closed it |\n\n\
         Errors go to standard error: `error[HF-…]: what`, where, `help: what to do`.\n",
    );
    help(&mut text, &mut holdfast_cli::command(), "");
    check("cli.md", &text);
}

fn help(text: &mut String, command: &mut clap::Command, before: &str) {
    let name = format!("{before}{}", command.get_name());
    writeln!(text, "\n## `{name}`\n\n```text\n{}\n```", command.render_help().to_string().trim_end())
        .unwrap();
    let before = format!("{name} ");
    for subcommand in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        help(text, subcommand, &before);
    }
}

#[test]
fn host_calls() {
    check("host-calls.md", &host_calls::page());
}

#[test]
fn the_documentation_lists_every_protected_name() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/builtin-tools.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, list) = page.split_once("The names, in any case:").unwrap();
    let (list, _) = list.split_once("- Files in a folder").unwrap();
    let listed: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(listed, holdfast_lane_native::PROTECTED_NAMES.iter().copied().collect());
}

// Finding H6: what an extension holds without a grant is written where its user looks for it.
#[test]
fn the_security_page_lists_what_each_lane_holds_without_a_grant() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../SECURITY.md");
    let (page, table) = (std::fs::read_to_string(page).unwrap(), host_calls::default_grants());
    assert!(page.contains(&format!("\n\n{table}\n")), "SECURITY.md does not have this table:\n\n{table}");
}

#[test]
fn host_calls_serve_every_function_that_a_component_can_import() {
    assert_eq!(host_calls::in_the_table(), host_calls::in_the_interface());
}

#[test]
fn components_can_make_every_host_call_but_those_that_are_listed() {
    let excepted =
        |kind: &HostCallKind| host_calls::NOT_FOR_COMPONENTS.iter().any(|(other, _)| other == kind);
    for kind in HostCallKind::ALL {
        assert_eq!(kind.wit_functions().is_empty(), excepted(kind), "{kind}");
    }
}

#[test]
fn the_python_worker_makes_known_host_calls() {
    let made = host_calls::of_the_python_worker();
    assert!(made.iter().any(|(_, name)| name == "event.publish"), "the worker is read: {made:?}");
    for (path, name) in made {
        assert!(HostCallKind::from_name(&name).is_some(), "{path} calls `{name}`");
    }
}

#[test]
fn an_unknown_host_call_of_the_python_worker_is_noticed() {
    let made = host_calls::calls_in("await self._wire.ask_later(\"moon.phase\", {})");
    assert_eq!(made, ["moon.phase"]);
    assert_eq!(HostCallKind::from_name("moon.phase"), None);
}

#[test]
fn the_documentation_names_known_host_calls() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for (page, expected) in [
        ("protocol.md", "state.get"),
        ("native-extensions.md", "service.get"),
        ("bus.md", "event.publish"),
        ("reference/host-calls.md", "setup.apply"),
    ] {
        let named = host_calls::named_in(&std::fs::read_to_string(docs.join(page)).unwrap());
        assert!(named.iter().any(|name| name == expected), "{page} names {named:?}");
        for name in named {
            assert!(HostCallKind::from_name(&name).is_some(), "docs/{page} names the host call `{name}`");
        }
    }
}

#[test]
fn an_unknown_host_call_in_a_page_is_noticed() {
    let page = "| host call | arguments |\n|---|---|\n| `moon.phase`, `clock` | `when` |\n\n| other |\n|---|\n| `x` |\n";
    assert_eq!(host_calls::named_in(page), ["moon.phase", "clock"]);
}
