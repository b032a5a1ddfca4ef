//! From YAML to a [`Manifest`]. Each function reads one section: it asks for every field first, so that all
//! problems are reported, and only then gives up on what is missing.

use std::collections::{BTreeMap, BTreeSet};

use super::RESERVED_IDS;
use super::command::{ProgramCommand, Transport};
use super::grants::{Access, FileGrant, Grants, ListenPort, PolicyHints};
use super::model::{
    AgentLimits, AgentSection, DescriptorHint, Events, HandlerSpec, HookHint, Manifest, ManifestSubscription,
    McpServer, PARAMETERS, Publication, Schedule, Scope, SecretNeed, ToolHint, first_version,
};
use crate::digest::MAX_EXACT_INTEGER;
use crate::hook::HookPoint;
use crate::host_call::Capability;
use crate::ids::{ExtensionId, Millis, ToolName};
use crate::matcher::Matcher;
use crate::registry::AgentMode;
use crate::system_frames::MissedPolicy;
use crate::tool::EffectClass;
use holdfast_yaml::{Field, Object, Reported};

type Result<T> = std::result::Result<T, Reported>;

/// Not a model's name: in the settings this key names the model that is used by default.
const DEFAULT_MODEL: &str = "default";
const TRANSPORTS: &[Transport] = &[Transport::Stdio, Transport::Socket];
const MODES: &[AgentMode] = &[AgentMode::Tool, AgentMode::Handoff];
const MISSED: &[MissedPolicy] = &[MissedPolicy::RunOnce, MissedPolicy::Skip, MissedPolicy::RunAll];
const EFFECTS: &[EffectClass] = &[
    EffectClass::Pure,
    EffectClass::Read,
    EffectClass::Write,
    EffectClass::Exec,
    EffectClass::Network,
    EffectClass::Unknown,
];

/// What people write at the top that stands elsewhere, or nowhere.
const ADVICE: &[(&str, &str)] = &[
    ("type", "Remove it: roles are found by what the extension exports, not declared."),
    ("roles", "Remove it: roles are found by what the extension exports, not declared."),
    ("capabilities", "Did you mean `grants`? Roles are found by what the extension exports."),
    ("permissions", "Did you mean `grants`?"),
    ("requests", "Did you mean `grants`?"),
    ("dependencies", "Did you mean `depends_on`?"),
    ("requires", "Did you mean `depends_on`?"),
    ("packages", "Did you mean `package`?"),
    ("main", "Did you mean `entrypoint`?"),
    ("integration_mode", "Move it below `agent:`."),
    ("model", "Move it below `agent:`."),
    ("instructions", "Move it below `agent:`."),
    ("parameters", "Move it below `agent:`."),
    ("uses_tools", "Move it below `agent:`."),
    ("limits", "Move it below `agent:`."),
    ("publishes", "Move it below `events:`."),
    ("subscribes", "Move it below `events:`."),
    ("required_secrets", "Did you mean `secrets`?"),
    ("requiredSecrets", "Did you mean `secrets`?"),
];

/// The whole manifest.
pub(super) fn manifest(root: &Field<'_>) -> Result<Manifest> {
    root.object(|object| {
        for (name, help) in ADVICE {
            object.advise(name, help);
        }
        let id = object.required("id", "my_extension", own_id);
        let own = id.as_ref().ok();
        let name = object.required("name", "My Extension", Field::filled);
        let version = object.defaulted("version", first_version(), version);
        let description = object.defaulted("description", String::new(), Field::text);
        let setup_instructions = object.defaulted("setup_instructions", String::new(), Field::text);
        let entrypoint = object.optional("entrypoint", entrypoint);
        let command = object.optional("command", command);
        let transport = object.defaulted("transport", Transport::default(), |field| field.choice(TRANSPORTS));
        let package = object.optional("package", Field::word);
        let mcp = object.optional("mcp", mcp);
        let agent = object.optional("agent", agent);
        let agent_id = object.optional("agent_id", Field::word);
        // Code reads it as it stands.
        let is_code = object.field("entrypoint").is_some();
        let agent_config = object.optional("agent_config", |field| agent_config(field, is_code));
        let depends_on =
            object.defaulted("depends_on", Vec::new(), |field| field.each(|item| dependency(item, own)));
        let secrets = object.defaulted("secrets", Vec::new(), secrets);
        let config = object.defaulted("config", serde_json::Map::new(), Field::json_map);
        let enabled = object.defaulted("enabled", true, Field::boolean);
        let events = object.defaulted("events", Events::default(), events);
        let schedules = object.defaulted("schedules", Vec::new(), schedules);
        let grants = object.defaulted("grants", Grants::default(), grants);
        let policy = object.defaulted("policy", PolicyHints::default(), policy);
        let priority = object.optional("priority", priority);
        let scope = object.optional("scope", |field| field.choice(Scope::ALL));
        let tools = object.defaulted("tools", BTreeMap::new(), tools);
        let hooks = object.defaulted("hooks", Vec::new(), |field| field.each_mapping(hook));
        let descriptors = object.defaulted("descriptors", Vec::new(), |field| field.each_mapping(descriptor));
        warn_about_idle_ways(object);
        Ok(Manifest {
            id: id?,
            name: name?,
            version: version?,
            description: description?,
            setup_instructions: setup_instructions?,
            entrypoint: entrypoint?,
            command: command?,
            transport: transport?,
            package: package?,
            mcp: mcp?,
            agent: agent?,
            agent_id: agent_id?.map(Into::into),
            agent_config: agent_config?,
            depends_on: depends_on?,
            secrets: secrets?,
            config: config?,
            enabled: enabled?,
            events: events?,
            schedules: schedules?,
            grants: grants?,
            policy: policy?,
            priority: priority?,
            scope: scope?,
            tools: tools?,
            hooks: hooks?,
            descriptors: descriptors?,
        })
    })
}

/// An entrypoint decides alone. Warns about files that could be started but are not.
fn warn_about_idle_ways(object: &mut Object<'_, '_>) {
    if object.field("entrypoint").is_none() {
        return;
    }
    for name in ["command", "package", "mcp"] {
        if object.field(name).is_some() {
            let what = format!("`{name}` is not used, because `entrypoint` says what to start");
            object.unread(name, what, format!("Remove `entrypoint` or `{name}`."));
        }
    }
}

fn own_id(field: &Field<'_>) -> Result<ExtensionId> {
    let id = extension_id(field)?;
    if RESERVED_IDS.contains(&id.as_str()) {
        let what = format!("the id `{id}` is reserved");
        return Err(
            field.reject(what, format!("Choose another, such as `{}`.", field.written(format!("my_{id}"))))
        );
    }
    Ok(id)
}

fn extension_id(field: &Field<'_>) -> Result<ExtensionId> {
    let id = field.filled()?;
    let letters =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '_' | '-');
    if id.len() <= 64 && id.chars().all(letters) && id.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Ok(id.into());
    }
    let rule = "An id has at most 64 small letters, digits, `_` and `-`, and begins with a letter";
    let help = match possible_id(&id) {
        Some(possible) => format!("{rule}: write `{}`.", field.written(possible)),
        None => format!("{rule}."),
    };
    Err(field.reject(format!("`{id}` cannot be an extension's id"), help))
}

/// A suggestion for a misspelt id.
fn possible_id(text: &str) -> Option<String> {
    let letters = text.chars().map(|letter| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() || letter == '-' => letter,
        _ => '_',
    });
    let id: String = letters.skip_while(|letter| !letter.is_ascii_lowercase()).take(64).collect();
    let id = id.trim_end_matches('_');
    (!id.is_empty()).then(|| id.to_owned())
}

fn dependency(field: &Field<'_>, own: Option<&ExtensionId>) -> Result<ExtensionId> {
    let id = extension_id(field)?;
    if Some(&id) == own {
        return Err(field.reject(format!("`{id}` depends on itself"), "Remove it from the list."));
    }
    Ok(id)
}

fn version(field: &Field<'_>) -> Result<String> {
    let version = field.word()?;
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<_> = core.split('.').collect();
    let semantic =
        numbers.iter().all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    if !semantic || numbers.len() != 3 {
        let what = format!("`{version}` is not a semantic version");
        field.warn(what, format!("Write three numbers: `{}`.", field.written("\"1.0.0\"")));
    }
    Ok(version)
}

fn entrypoint(field: &Field<'_>) -> Result<String> {
    let entrypoint = field.word()?;
    if leaves_the_folder(&entrypoint) {
        let what = format!("`{entrypoint}` lies outside of the extension's folder");
        return Err(field.reject(what, "Name a file in the folder, or `module:Class`."));
    }
    Ok(entrypoint)
}

fn leaves_the_folder(path: &str) -> bool {
    path.starts_with(['/', '\\', '~']) || path.split(['/', '\\']).any(|step| step == "..")
}

fn command(field: &Field<'_>) -> Result<ProgramCommand> {
    if field.is_list() {
        let command = ProgramCommand::new(field.each(Field::text)?);
        return command.ok_or_else(|| no_program(field));
    }
    let line = field.filled()?;
    ProgramCommand::split(&line).ok_or_else(|| {
        let what = format!("{} has a quote or a backslash with nothing to go with it", field.subject());
        field.reject(what, format!("Write the words as a list: `{}`.", field.written("[program, argument]")))
    })
}

fn no_program(field: &Field<'_>) -> Reported {
    let help = format!("Write the program and its arguments: `{}`.", field.written("[program, argument]"));
    field.reject(format!("{} names no program", field.subject()), help)
}

fn mcp(field: &Field<'_>) -> Result<McpServer> {
    field.object(|object| {
        let args = object.optional("args", |field| field.each(Field::text));
        let with_args = !matches!(args, Ok(None));
        let command = object.optional("command", |field| {
            if with_args && !field.is_list() {
                ProgramCommand::new(vec![field.filled()?]).ok_or_else(|| no_program(field))
            } else {
                command(field)
            }
        });
        let env = object.optional("env", texts);
        let url = object.optional("url", url);
        let headers = object.optional("headers", texts);
        match (command?, url?) {
            (Some(command), None) => {
                idle(object, "headers", "url");
                Ok(McpServer::Local {
                    command,
                    args: args?.unwrap_or_default(),
                    env: env?.unwrap_or_default(),
                })
            }
            (None, Some(url)) => {
                idle(object, "args", "command");
                idle(object, "env", "command");
                Ok(McpServer::Remote { url, headers: headers?.unwrap_or_default() })
            }
            (Some(_), Some(_)) => {
                let help = "Keep `command` to start a server, or `url` to reach one.";
                Err(field.reject("`mcp` has both `command` and `url`", help))
            }
            (None, None) => {
                let help =
                    "Add `command: npx some-server` to start a server, or `url: https://…` to reach one.";
                Err(object.missing("command", help))
            }
        }
    })
}

fn idle(object: &mut Object<'_, '_>, name: &'static str, without: &str) {
    if object.field(name).is_some() {
        object.unread(name, format!("`{name}` is not used without `{without}`"), "Remove it.");
    }
}

fn url(field: &Field<'_>) -> Result<String> {
    let url = field.word()?;
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(url);
    }
    Err(field
        .reject(format!("`{url}` is not an address"), "Write one that begins with `https://` or `http://`."))
}

fn texts(field: &Field<'_>) -> Result<BTreeMap<String, String>> {
    Ok(field.entries(|_, value| value.text())?.into_iter().collect())
}

/// Of the agent's configuration the model and its parameters are read. The rest is for the extension's code, if it has any.
fn agent_config(field: &Field<'_>, is_code: bool) -> Result<serde_json::Map<String, serde_json::Value>> {
    let entries = field.entries(|name, each| match name {
        "model" => each.json(),
        name if PARAMETERS.contains(&name) => parameter(name, each),
        _ => {
            if !is_code {
                each.ignored();
            }
            each.json()
        }
    })?;
    Ok(entries.into_iter().collect())
}

fn agent(field: &Field<'_>) -> Result<AgentSection> {
    field.object(|object| {
        let integration_mode =
            object.defaulted("integration_mode", AgentMode::default(), |field| field.choice(MODES));
        let model = object.optional("model", Field::word);
        let instructions = object.defaulted("instructions", String::new(), Field::text);
        let parameters = object.defaulted("parameters", serde_json::Map::new(), parameters);
        let uses_tools = object.defaulted("uses_tools", Vec::new(), |field| field.each(extension_id));
        let limits = object.defaulted("limits", AgentLimits::default(), limits);
        object.advise("tools", "Did you mean `uses_tools`?");
        object.advise(
            "parallel_tool_calls",
            "Remove it: the calls of one answer run together, within the `concurrency` of each tool.",
        );
        object.advise(
            "instructions_file",
            "Write `instructions`, or rename the file to `prompt.jinja2`, which is found without a field.",
        );
        object.advise(
            "prompt",
            "Did you mean `instructions`? A `prompt.jinja2` in the folder is found without a field.",
        );
        Ok(AgentSection {
            integration_mode: integration_mode?,
            model: model?.filter(|name| name != DEFAULT_MODEL).map(Into::into),
            instructions: instructions?,
            parameters: parameters?,
            uses_tools: uses_tools?,
            limits: limits?,
        })
    })
}

/// The parameters that reach every provider.
fn parameters(field: &Field<'_>) -> Result<serde_json::Map<String, serde_json::Value>> {
    field.object(|object| {
        object.advise("max_output_tokens", "Did you mean `max_tokens`?");
        object.advise("stop_sequences", "Did you mean `stop`?");
        let read = PARAMETERS.map(|name| (name, object.optional(name, |field| parameter(name, field))));
        let mut all = serde_json::Map::new();
        for (name, value) in read {
            all.extend(value?.map(|value| (name.to_owned(), value)));
        }
        Ok(all)
    })
}

/// A parameter of a model, by its name.
fn parameter(name: &str, field: &Field<'_>) -> Result<serde_json::Value> {
    Ok(match name {
        "max_tokens" => field.whole(1..=u32::MAX)?.into(),
        "seed" => field.whole(0..=MAX_EXACT_INTEGER)?.into(),
        "stop" => field.each(Field::text)?.into(),
        _ => share(field)?,
    })
}

fn share(field: &Field<'_>) -> Result<serde_json::Value> {
    let value = field.json()?;
    if value.as_f64().is_some_and(|number| (0.0..=2.0).contains(&number)) {
        return Ok(value);
    }
    let what = format!("{} should be a number from 0 to 2", field.subject());
    Err(field.reject(what, format!("Write `{}`.", field.written("0.2"))))
}

fn limits(field: &Field<'_>) -> Result<AgentLimits> {
    let default = AgentLimits::default();
    field.object(|object| {
        let turns = object.defaulted("max_turns", default.max_turns, |field| field.whole(1..=u32::MAX));
        let tokens =
            object.defaulted("max_tokens_per_invocation", default.max_tokens_per_invocation, |field| {
                field.whole(1..=u64::MAX)
            });
        let time = object.defaulted("time_budget_ms", default.time_budget_ms, milliseconds);
        let cost = object.optional("max_cost_micros", |field| field.whole(0..=u64::MAX));
        let calls = object.optional("max_tool_calls", |field| field.whole(0..=u32::MAX));
        object.advise("timeout_ms", "Did you mean `time_budget_ms`?");
        Ok(AgentLimits {
            max_turns: turns?,
            max_tokens_per_invocation: tokens?,
            time_budget_ms: time?,
            max_cost_micros: cost?,
            max_tool_calls: calls?,
        })
    })
}

fn milliseconds(field: &Field<'_>) -> Result<Millis> {
    field.whole(1..=u64::from(u32::MAX)).map(Millis)
}

fn priority(field: &Field<'_>) -> Result<i32> {
    field.whole(i32::MIN..=i32::MAX)
}

fn secrets(field: &Field<'_>) -> Result<Vec<SecretNeed>> {
    field.each(|item| {
        if !item.is_map() {
            return Ok(SecretNeed { id: item.word()?, optional: false });
        }
        item.object(|object| {
            let id = object.required("id", "API_KEY", Field::word);
            let optional = object.defaulted("optional", false, Field::boolean);
            object.advise("name", "Did you mean `id`?");
            Ok(SecretNeed { id: id?, optional: optional? })
        })
    })
}

fn events(field: &Field<'_>) -> Result<Events> {
    field.object(|object| {
        let publishes = object.defaulted("publishes", Vec::new(), |field| field.each(publication));
        let subscribes = object.defaulted("subscribes", Vec::new(), |field| field.each_mapping(subscription));
        Ok(Events { publishes: publishes?, subscribes: subscribes? })
    })
}

fn publication(field: &Field<'_>) -> Result<Publication> {
    if !field.is_map() {
        return Ok(Publication { topic: field.word()?.into(), description: String::new() });
    }
    field.object(|object| {
        let topic = object.required("topic", "my_extension.done", Field::word);
        let description = object.defaulted("description", String::new(), Field::text);
        Ok(Publication { topic: topic?.into(), description: description? })
    })
}

fn subscription(field: &Field<'_>) -> Result<ManifestSubscription> {
    field.object(|object| {
        let topic = object.required("topic", "alert.urgent", Field::word);
        let handler =
            object.defaulted("handler", HandlerSpec::default(), |field| field.choice(HandlerSpec::ALL));
        let description = object.defaulted("description", String::new(), Field::text);
        Ok(ManifestSubscription { topic: topic?.into(), handler: handler?, description: description? })
    })
}

fn schedules(field: &Field<'_>) -> Result<Vec<Schedule>> {
    let mut names = BTreeSet::new();
    field.each_mapping(|item| {
        let schedule = schedule(item)?;
        if !names.insert(schedule.name.clone()) {
            let what = format!("there are two schedules with the name `{}`", schedule.name);
            return Err(item.reject(what, "Give each schedule a name of its own; `task` may be the same."));
        }
        Ok(schedule)
    })
}

fn schedule(field: &Field<'_>) -> Result<Schedule> {
    field.object(|object| {
        let name = object.required("name", "nightly", Field::word);
        let cron = object.required("cron", "\"0 3 * * *\"", Field::filled);
        let task = object.optional("task", Field::text);
        let timezone = object.optional("timezone", Field::word);
        let missed = object.defaulted("missed", MissedPolicy::default(), |field| field.choice(MISSED));
        let description = object.defaulted("description", String::new(), Field::text);
        let task = task.map(|task| task.filter(|task| !task.is_empty()));
        let (timezone, missed, description) = (timezone?, missed?, description?);
        Ok(Schedule { name: name?, cron: cron?, task: task?, timezone, missed, description })
    })
}

fn grants(field: &Field<'_>) -> Result<Grants> {
    field.object(|object| {
        let network = object.defaulted("network", Vec::new(), |field| field.each(host));
        let listen = object.defaulted("listen", Vec::new(), |field| field.each(listen_port));
        let files = object.defaulted("files", Vec::new(), |field| field.each(file));
        let secrets = object.defaulted("secrets", Vec::new(), |field| field.each(Field::word));
        let environment = object.defaulted("environment", Vec::new(), |field| field.each(variable));
        let extensions = object.defaulted("extensions", Vec::new(), |field| field.each(extension_id));
        let interfaces = object.defaulted("interfaces", Vec::new(), |field| field.each(interface));
        object.advise("env", "Did you mean `environment`?");
        object.advise("hosts", "Did you mean `network`?");
        object.advise("ports", "Did you mean `listen`?");
        Ok(Grants {
            network: network?,
            listen: listen?,
            files: files?,
            secrets: secrets?,
            environment: environment?,
            extensions: extensions?,
            interfaces: interfaces?,
        })
    })
}

/// An interface of the host, or the beginning that several have in common before a `*`.
pub fn interface(field: &Field<'_>) -> Result<String> {
    let name = field.word()?;
    if Capability::is_grantable(&name) {
        return Ok(name);
    }
    let all = Capability::grantable().collect::<Vec<_>>().join(", ");
    let help = match holdfast_yaml::nearest(&name, Capability::grantable()) {
        Some(near) => format!("Did you mean `{near}`? The interfaces are: {all}."),
        None => format!("The interfaces are: {all}."),
    };
    Err(field.reject(format!("`{name}` is not an interface of the host that can be granted"), help))
}

/// A port to listen on, alone or after `127.0.0.1:`.
pub fn listen_port(field: &Field<'_>) -> Result<ListenPort> {
    let text = field.word()?;
    text.parse().map_err(|why: String| {
        let help = "Write a port from 1024 to 65535, such as `8080` or `127.0.0.1:8080`.";
        field.reject(format!("`{text}` cannot be listened on: {why}"), help)
    })
}

/// A variable's whole name: no pattern, so that none is given by accident that holds a secret.
pub fn variable(field: &Field<'_>) -> Result<String> {
    let name = field.word()?;
    if is_variable(&name) {
        return Ok(name);
    }
    let what = format!("`{name}` is not the name of an environment variable");
    Err(field.reject(what, "Write each name in full: letters, digits and `_`, such as `LANG`."))
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

fn host(field: &Field<'_>) -> Result<String> {
    let host = field.word()?;
    let bare = host.split_once("://").map_or(&*host, |(_, rest)| rest);
    let bare = bare.split(['/', '?', '#']).next().unwrap_or_default();
    if bare == host {
        return Ok(host);
    }
    Err(field.reject(format!("`{host}` is more than a host"), format!("Write `{}`.", field.written(bare))))
}

fn file(field: &Field<'_>) -> Result<FileGrant> {
    if !field.is_map() {
        return Ok(FileGrant { path: path(field)?, access: Access::Read });
    }
    field.object(|object| {
        let path = object.required("path", "~/notes", path);
        let access = object.defaulted("access", Access::default(), |field| field.choice(Access::ALL));
        Ok(FileGrant { path: path?, access: access? })
    })
}

fn path(field: &Field<'_>) -> Result<String> {
    let path = field.filled()?;
    if path.split(['/', '\\']).any(|step| step == "..") {
        return Err(field.reject(format!("`{path}` has `..` in it"), "Write the folder that is meant."));
    }
    Ok(path)
}

fn policy(field: &Field<'_>) -> Result<PolicyHints> {
    field.object(|object| {
        let profile = object.optional("profile", |field| Err::<(), _>(field.unavailable()));
        let ask = object.defaulted("ask", Vec::new(), |field| field.each(Field::word));
        let reason = object.defaulted("reason", String::new(), Field::text);
        profile?;
        Ok(PolicyHints { ask: ask?, reason: reason? })
    })
}

fn tools(field: &Field<'_>) -> Result<BTreeMap<ToolName, ToolHint>> {
    let hints = field.entries(|_, hint| {
        hint.object(|object| {
            let timeout_ms = object.optional("timeout_ms", milliseconds);
            let effects = object.optional("effects", |field| field.choice(EFFECTS));
            let concurrency = object.optional("concurrency", |field| field.whole(1..=u32::MAX));
            Ok(ToolHint { timeout_ms: timeout_ms?, effects: effects?, concurrency: concurrency? })
        })
    })?;
    Ok(hints.into_iter().map(|(name, hint)| (name.into(), hint)).collect())
}

fn hook(field: &Field<'_>) -> Result<HookHint> {
    field.object(|object| {
        let point = object.required("point", "tool_gate", |field| field.choice(HookPoint::ALL));
        let matcher = object.defaulted("matcher", Matcher::default(), matcher);
        let timeout_ms = object.optional("timeout_ms", milliseconds);
        let priority = object.optional("priority", priority);
        let tokens = object.optional("tokens", |field| field.whole(1..=u32::MAX));
        let streams = object.defaulted("streams", false, Field::boolean);
        let (point, matcher, timeout_ms) = (point?, matcher?, timeout_ms?);
        let streams = streams?;
        if streams && point != HookPoint::SanitizeOutput {
            let what = "only a hook at `sanitize_output` can have `streams`";
            return Err(field.reject(what, "Leave out `streams`."));
        }
        Ok(HookHint { point, matcher, timeout_ms, priority: priority?, tokens: tokens?, streams })
    })
}

/// Reads when a hook or a rule applies; a policy's rules write it the same way.
pub fn matcher(field: &Field<'_>) -> std::result::Result<Matcher, Reported> {
    field.object(|object| {
        let tools = object.defaulted("tools", Vec::new(), |field| field.each(Field::word));
        let arguments = object.defaulted("arguments", BTreeMap::new(), |field| {
            Ok(field.entries(pointer_and_glob)?.into_iter().collect())
        });
        let origins = object.defaulted("origins", Vec::new(), |field| field.each(Field::word));
        Ok(Matcher { tools: tools?, arguments: arguments?, origins: origins? })
    })
}

fn pointer_and_glob(pointer: &str, glob: &Field<'_>) -> Result<String> {
    if !pointer.starts_with('/') {
        let what = format!("`{pointer}` is not a JSON pointer");
        return Err(glob.reject(what, format!("Write `/{pointer}: pattern`.")));
    }
    glob.text()
}

fn descriptor(field: &Field<'_>) -> Result<DescriptorHint> {
    field.object(|object| {
        let id = object.required("id", "my_tool", Field::word);
        let kind = object.required("kind", "tool", Field::word);
        let priority = object.optional("priority", priority);
        let name =
            if object.field("requiredSecrets").is_some() { "requiredSecrets" } else { "required_secrets" };
        let required_secrets = object.defaulted(name, Vec::new(), secrets);
        let payload = object.optional("payload", Field::json_map);
        Ok(DescriptorHint {
            id: id?.into(),
            kind: kind?.into(),
            priority: priority?,
            required_secrets: required_secrets?,
            payload: payload?,
        })
    })
}
