//! From YAML to [`Settings`]. An unknown key is an error, because the user believes the setting to be in force; a duplicate key is a
//! warning, and the last value counts.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_contract::context::ContextBudget;
use holdfast_contract::digest::MAX_EXACT_INTEGER;
use holdfast_contract::ids::{ExtensionId, Millis, ModelName};
use holdfast_contract::manifest::yaml::{self, Codes, Format, YamlRead, YamlRejected};
use holdfast_contract::manifest::{ENABLED, REPLACE};
use holdfast_contract::names::{is_kind, is_known_kind, nearest_kind};
use holdfast_contract::problem::Code;
use holdfast_contract::registry::Override;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_policy::read_dollars as dollars;
use holdfast_yaml::{Field, Object, Reported, nearest};
use serde_json::{Map, Value};

use super::{
    AgentSettings, BreakerSettings, CallSettings, Channels, Health, HostCallRate, LimitSettings,
    LogLevelSetting, LogSettings, MAX_BYTES, McpSettings, ModelSettings, Models, OFFLINE, RemoteSettings,
    RetentionSettings, SecretPlace, SecretSettings, ServeSettings, SessionRule, Settings, ToolSettings,
};

type Result<T> = std::result::Result<T, Reported>;

const FORMAT: Format = Format {
    name: "settings",
    max_bytes: MAX_BYTES,
    codes: Codes {
        unreadable: Code::SettingsUnreadable,
        unknown_field: Code::SettingsUnknownField,
        duplicate_key: Code::SettingsDuplicateKey,
        too_large: Code::SettingsTooLarge,
        ..Codes::all(Code::SettingsInvalid)
    },
};

/// Keys that are planned, and that nothing reads yet.
const PLANNED: &[&str] = &["store", "web"];

/// The provider that plays a file.
const SCRIPT: &str = "script";

pub(super) fn settings(file: &Path, bytes: &[u8]) -> std::result::Result<YamlRead<Settings>, YamlRejected> {
    // Some editors write a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let read = yaml::read_bytes(&FORMAT, file, bytes, root);
    yaml::stricter(read, |problem| problem.code == Code::SettingsUnknownField)
}

fn root(root: &Field<'_>) -> Result<Settings> {
    if root.is_null() {
        return Ok(Settings::default());
    }
    root.object(|object| {
        object.advise("model", "Did you mean `models`? Name a model there, and make it the `default`.");
        object.advise("profile", "Set the profile in `config/policy.yaml` or with --profile.");
        object.advise("policy", "The policy is in `config/policy.yaml`.");
        object.advise("secrets", "Secrets are in `.env`.");
        let models = object.defaulted("models", Models::default(), models);
        let known = models.as_ref().ok();
        let agents =
            object.defaulted("agents", Vec::new(), |field| field.entries(|_, each| agent(each, known)));
        let extensions =
            object.defaulted("extensions", Vec::new(), |field| field.entries(|_, each| extension(each)));
        let channels = object.defaulted("channels", Channels::default(), channels);
        let refused =
            |planned: &&'static str| object.optional(planned, |field| Err::<(), _>(field.unavailable()));
        let planned: Vec<_> = PLANNED.iter().map(refused).collect();
        let overrides = object.defaulted("overrides", Vec::new(), |field| field.entries(of_kind));
        let workspace = object.optional("workspace", Field::filled);
        let mcp = object.defaulted("mcp", McpSettings::default(), super::mcp::mcp);
        let packs = object.defaulted("packs", Vec::new(), super::packs::packs);
        let tools = object.defaulted("tools", ToolSettings::default(), tools);
        let limits = object.defaulted("limits", LimitSettings::default(), limits);
        let calls = object.defaulted("calls", CallSettings::default(), calls);
        let context = object.defaulted("context", ContextBudget::default(), context);
        let retention = object.defaulted("retention", RetentionSettings::default(), retention);
        let health = object.defaulted("health", Health::default(), health);
        let log = object.defaulted("log", LogSettings::default(), log);
        let secrets = object.defaulted("secrets", SecretSettings::default(), secrets);
        let wasm = object.defaulted("wasm", SandboxOptions::default(), sandbox);
        let remotes = object.defaulted("remotes", Vec::new(), |field| field.entries(remote));
        let serve = object.optional("serve", serve);
        planned.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Settings {
            models: models?,
            agents: keyed(agents?),
            extensions: keyed(extensions?),
            mcp: mcp?,
            packs: packs?,
            channels: channels?,
            overrides: keyed(overrides?.into_iter().map(|(kind, ids)| (kind, keyed(ids)))),
            workspace: workspace?,
            tools: tools?,
            limits: limits?,
            calls: calls?,
            context: context?,
            retention: retention?,
            health: health?,
            log: log?,
            secrets: secrets?,
            wasm: wasm?,
            remotes: keyed(remotes?),
            serve: serve?,
        })
    })
}

/// The name of another Holdfast, which becomes a part of ids, of names of tools and of origins.
fn peer_name(name: &str, field: &Field<'_>) -> Result<()> {
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    if !name.is_empty() && name.len() <= 32 && name.chars().all(fits) {
        return Ok(());
    }
    let help = "Use up to 32 lower-case letters, digits and `-`.";
    Err(field.reject(format!("`{name}` is not a valid name for another Holdfast"), help))
}

fn remote(name: &str, field: &Field<'_>) -> Result<RemoteSettings> {
    peer_name(name, field)?;
    field.object(|object| {
        let address = object.required("address", "127.0.0.1:7441", Field::filled);
        let token = object.required("token", "OFFICE_TOKEN", Field::filled);
        let insecure = object.defaulted("insecure", false, Field::boolean);
        let definitions = object.optional("definitions", Field::filled);
        Ok(RemoteSettings {
            address: address?,
            token: token?,
            insecure: insecure?,
            definitions: definitions?,
        })
    })
}

fn serve(field: &Field<'_>) -> Result<ServeSettings> {
    field.object(|object| {
        object.advise("clients", "Did you mean `callers`?");
        let insecure = object.defaulted("insecure", false, Field::boolean);
        let open = *insecure.as_ref().unwrap_or(&false);
        let address = object.required("address", "127.0.0.1:7441", |field| listening_address(field, open));
        let tools = object.required("tools", "[file_read]", |field| field.each(Field::filled));
        let callers = object.required("callers", "{ laptop: LAPTOP_TOKEN }", |field| {
            field.entries(|name, secret| peer_name(name, secret).and_then(|()| secret.filled()))
        });
        Ok(ServeSettings {
            address: address?,
            tools: tools?.into_iter().map(Into::into).collect(),
            callers: keyed(callers?),
            insecure: insecure?,
        })
    })
}

/// An address to listen on. Beyond this machine only if that is said.
fn listening_address(field: &Field<'_>, insecure: bool) -> Result<String> {
    let text = field.filled()?;
    match text.parse::<std::net::SocketAddr>() {
        Ok(address) if insecure || address.ip().is_loopback() => Ok(text),
        Ok(_) => Err(field.reject(
            format!(
                "{} can be reached from other machines, and what is sent is not encrypted",
                field.subject()
            ),
            "Use `127.0.0.1` and a tunnel, or set `insecure: true` beside it.",
        )),
        Err(_) => Err(field.reject(
            format!("{} is not an address to listen on", field.subject()),
            "Write an IP address and a port, such as `127.0.0.1:7441`.",
        )),
    }
}

fn secrets(field: &Field<'_>) -> Result<SecretSettings> {
    field.object(|object| {
        let store = object.defaulted("store", SecretPlace::default(), |field| field.choice(SecretPlace::ALL));
        Ok(SecretSettings { store: store? })
    })
}

fn sandbox(field: &Field<'_>) -> Result<SandboxOptions> {
    let written = Value::Object(field.json_map()?);
    serde_json::from_value(written).map_err(|error| {
        let what = format!("{} cannot be used: {error}", field.subject());
        field.reject(what, "`holdfast docs settings` lists what can be set.")
    })
}

fn keyed<K: From<String> + Ord, V>(entries: impl IntoIterator<Item = (String, V)>) -> BTreeMap<K, V> {
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

fn models(field: &Field<'_>) -> Result<Models> {
    let mut chosen = None;
    let entries = field.entries(|name, each| match name {
        "default" if each.is_null() => Ok(None),
        "default" if each.is_map() => {
            let what = "`models.default` should be the name of a model, but is a mapping";
            Err(each.reject(what, "Call the model something else, and write that name: `default: NAME`."))
        }
        "default" => {
            chosen = Some((each.clone(), ModelName::from(each.word()?)));
            Ok(None)
        }
        _ => model(each).map(Some),
    });
    let named = entries?.into_iter().filter_map(|(name, model)| Some((name, model?)));
    let models = Models { default: None, named: keyed(named) };
    if let Some((field, name)) = &chosen {
        doubt_unknown(field, name, &models);
    }
    Ok(Models { default: chosen.map(|(_, name)| name), ..models })
}

/// A model may also come from an extension, so an unknown name is odd and no more.
fn doubt_unknown(field: &Field<'_>, name: &ModelName, models: &Models) {
    // A file is opened by its name alone.
    let is_file = ["script:", "cassette:"].iter().any(|kind| name.as_str().starts_with(kind));
    if name.as_str() == OFFLINE || models.named.contains_key(name) || is_file {
        return;
    }
    let known = models.named.keys().map(ModelName::as_str).chain([OFFLINE]);
    let help = match nearest(name.as_str(), known) {
        Some(near) => format!("Did you mean `{near}`?"),
        None => format!("Describe it below `models:`, as `{name}:`, unless an extension brings it."),
    };
    field.warn(format!("there is no model `{name}` in these settings"), help);
}

/// What is set for an extension. All of it is the extension's own, except whether it is enabled and whether it replaces a built-in one.
fn extension(field: &Field<'_>) -> Result<Map<String, Value>> {
    let set = field.json_map()?;
    for name in [ENABLED, REPLACE] {
        if let Some(other) = set.get(name).filter(|value| !value.is_boolean()) {
            let what = format!("`{name}` is {other}, and must be `true` or `false`");
            return Err(field.reject(what, format!("Write `{name}: true` or `{name}: false`.")));
        }
    }
    Ok(set)
}

fn model(field: &Field<'_>) -> Result<ModelSettings> {
    field.object(|object| {
        for key in ["api_key", "key", "token"] {
            object.advise(
                key,
                "Keys do not belong here: put it in `.env` as `NAME=…`, and write `api_key_env: NAME`.",
            );
        }
        object.advise("name", "Did you mean `model`?");
        object.advise("url", "Did you mean `base_url`?");
        let provider = object.required("provider", OFFLINE, Field::word);
        let model = object.optional("model", Field::word);
        let base_url = object.optional("base_url", address);
        let api_key_env = object.optional("api_key_env", variable);
        let price_in = object.optional("price_in", dollars);
        let price_out = object.optional("price_out", dollars);
        let reasoning = object.optional("reasoning", Field::word);
        let record = object.optional("record", Field::filled);
        let file = object.optional("file", Field::filled);
        let (provider, file) = (provider?, file?);
        let (provider, file) = match provider.split_once(':') {
            Some((SCRIPT, name)) if file.is_none() && !name.is_empty() => {
                (SCRIPT.to_owned(), Some(name.to_owned()))
            }
            _ => (provider, file),
        };
        let model = model?;
        check_parts(object, &provider, model.as_deref(), file.as_deref())?;
        Ok(ModelSettings {
            provider,
            model,
            base_url: base_url?,
            api_key_env: api_key_env?,
            price_in: price_in?,
            price_out: price_out?,
            reasoning: reasoning?,
            record: record?,
            file,
        })
    })
}

fn check_parts(
    object: &Object<'_, '_>,
    provider: &str,
    model: Option<&str>,
    file: Option<&str>,
) -> Result<()> {
    match provider {
        SCRIPT if file.is_none() => {
            Err(object.missing("file", "Add `file: answers.yaml`, the file that is played."))
        }
        SCRIPT | OFFLINE => Ok(()),
        _ if file.is_some() => {
            object.unread("file", "`file` is only read where the provider is `script`", "Remove it.");
            Ok(())
        }
        _ if model.is_none() => Err(object.missing("model", "Add `model: …`, what the provider calls it.")),
        _ => Ok(()),
    }
}

fn address(field: &Field<'_>) -> Result<String> {
    let url = field.word()?;
    if url.starts_with("https://") || url.starts_with("http://") {
        return Ok(url);
    }
    Err(field
        .reject(format!("`{url}` is not an address"), "Write one that begins with `https://` or `http://`."))
}

/// The name of a variable. An invalid name may be the key itself, so it is not shown.
fn variable(field: &Field<'_>) -> Result<String> {
    let name = field.text()?;
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(letters)
        && name.len() <= 64
    {
        return Ok(name);
    }
    let what = format!("{} is not the name of a variable", field.subject());
    Err(field.reject(
        what,
        "Name the variable that holds the key, such as `MY_API_KEY`; the key itself is in `.env`.",
    ))
}

fn agent(field: &Field<'_>, known: Option<&Models>) -> Result<AgentSettings> {
    field.object(|object| {
        object.advise("prompt", "Did you mean `instructions`?");
        let model = object.optional("model", |field| {
            let name = ModelName::from(field.word()?);
            if let Some(models) = known {
                doubt_unknown(field, &name, models);
            }
            Ok(name)
        });
        let fallback = object.defaulted("fallback", Vec::new(), |field| {
            field.each(|field| {
                let name = ModelName::from(field.word()?);
                if let Some(models) = known {
                    doubt_unknown(field, &name, models);
                }
                Ok(name)
            })
        });
        let instructions = object.optional("instructions", Field::text);
        let limits = object.defaulted("limits", LimitSettings::default(), limits);
        Ok(AgentSettings { model: model?, fallback: fallback?, instructions: instructions?, limits: limits? })
    })
}

fn channels(field: &Field<'_>) -> Result<Channels> {
    field.object(|object| {
        let default = object.optional("default", Field::word);
        let sessions = object.defaulted("sessions", Vec::new(), |field| {
            field.entries(|_, each| each.choice(SessionRule::ALL))
        });
        Ok(Channels { default: default?.map(ExtensionId::from), sessions: keyed(sessions?) })
    })
}

fn of_kind(kind: &str, field: &Field<'_>) -> Result<Vec<(String, Override)>> {
    if !is_kind(kind) {
        let help = "Use small letters, digits and `-`, beginning with a letter.";
        return Err(field.reject(format!("`{kind}` is not a kind of what extensions register"), help));
    }
    if !is_known_kind(kind) {
        let help = match nearest_kind(kind) {
            Some(near) => format!("Did you mean `{near}`?"),
            None => "It counts once an extension registers something of this kind.".to_owned(),
        };
        field.warn(format!("nothing consumes the kind `{kind}`"), help);
    }
    field.entries(overridden)
}

fn overridden(_: &str, field: &Field<'_>) -> Result<Override> {
    field.object(|object| {
        object.advise("disabled", "Did you mean `enabled: false`?");
        let enabled = object.optional("enabled", Field::boolean);
        let priority = object.optional("priority", |field| field.whole(i32::MIN..=i32::MAX));
        let extension = object.optional("extension", Field::word);
        Ok(Override { enabled: enabled?, priority: priority?, extension: extension?.map(Into::into) })
    })
}

fn limits(field: &Field<'_>) -> Result<LimitSettings> {
    field.object(|object| {
        object.advise("timeout_ms", "Did you mean `time_budget_ms`?");
        object.advise("max_cost", "Did you mean `max_cost_usd`?");
        let max_turns = object.optional("max_turns", |field| field.whole(1..=u32::MAX));
        let max_tokens = object.optional("max_tokens", |field| field.whole(1..=MAX_EXACT_INTEGER));
        let time_budget_ms = object.optional("time_budget_ms", |field| field.whole(1..=u64::from(u32::MAX)));
        let max_cost_usd = object.optional("max_cost_usd", dollars);
        let max_tool_calls = object.optional("max_tool_calls", |field| field.whole(0..=u32::MAX));
        let session_tokens = object.optional("session_tokens", |field| field.whole(1..=MAX_EXACT_INTEGER));
        let session_cost_usd = object.optional("session_cost_usd", dollars);
        let session_tool_calls = object.optional("session_tool_calls", |field| field.whole(0..=u32::MAX));
        let session_time_ms = object.optional("session_time_ms", |field| field.whole(1..=MAX_EXACT_INTEGER));
        Ok(LimitSettings {
            max_turns: max_turns?,
            max_tokens: max_tokens?,
            time_budget_ms: time_budget_ms?.map(Millis),
            max_cost_usd: max_cost_usd?,
            max_tool_calls: max_tool_calls?,
            session_tokens: session_tokens?,
            session_cost_usd: session_cost_usd?,
            session_tool_calls: session_tool_calls?,
            session_time_ms: session_time_ms?.map(Millis),
        })
    })
}

fn calls(field: &Field<'_>) -> Result<CallSettings> {
    field.object(|object| {
        object.advise("concurrency", "Did you mean `at_once`?");
        let usual = CallSettings::default();
        let at_once = object.defaulted("at_once", usual.at_once, at_least_one);
        let each = |field: &Field<'_>| field.entries(|_, most| at_least_one(most));
        let per_extension = object.defaulted("per_extension", Vec::new(), each);
        let per_tool = object.defaulted("per_tool", Vec::new(), each);
        let timeout_ms = object.defaulted("timeout_ms", Vec::new(), |field| {
            field.entries(|_, each| each.whole(1..=u64::from(u32::MAX)).map(Millis))
        });
        let breaker = object.defaulted("breaker", usual.breaker, breaker);
        let host_rate = object.defaulted("host_rate", usual.host_rate, host_rate);
        let (per_extension, per_tool) = (keyed(per_extension?), keyed(per_tool?));
        let (timeout_ms, breaker, host_rate) = (keyed(timeout_ms?), breaker?, host_rate?);
        Ok(CallSettings { at_once: at_once?, per_extension, per_tool, timeout_ms, breaker, host_rate })
    })
}

fn host_rate(field: &Field<'_>) -> Result<HostCallRate> {
    field.object(|object| {
        let usual = HostCallRate::default();
        let bytes = |field: &Field<'_>| field.whole(1..=MAX_EXACT_INTEGER);
        let per_second = object.defaulted("per_second", usual.per_second, at_least_one);
        let burst = object.defaulted("burst", usual.burst, at_least_one);
        let bytes_per_second = object.defaulted("bytes_per_second", usual.bytes_per_second, bytes);
        let burst_bytes = object.defaulted("burst_bytes", usual.burst_bytes, bytes);
        let (per_second, burst) = (per_second?, burst?);
        Ok(HostCallRate { per_second, burst, bytes_per_second: bytes_per_second?, burst_bytes: burst_bytes? })
    })
}

fn breaker(field: &Field<'_>) -> Result<BreakerSettings> {
    field.object(|object| {
        let usual = BreakerSettings::default();
        let faults = object.defaulted("faults", usual.faults, at_least_one);
        let pause =
            object.defaulted("pause_seconds", usual.pause_seconds, |field| field.whole(1..=86_400_u32));
        Ok(BreakerSettings { faults: faults?, pause_seconds: pause? })
    })
}

fn context(field: &Field<'_>) -> Result<ContextBudget> {
    field.object(|object| {
        object.advise("max_tokens", "Did you mean `total_tokens`?");
        let usual = ContextBudget::default();
        let provider_tokens = object.defaulted("provider_tokens", usual.provider_tokens, at_least_one);
        let total_tokens = object.defaulted("total_tokens", usual.total_tokens, at_least_one);
        let providers =
            object.defaulted("providers", Vec::new(), |field| field.entries(|_, most| at_least_one(most)));
        let (provider_tokens, total_tokens) = (provider_tokens?, total_tokens?);
        Ok(ContextBudget { provider_tokens, total_tokens, providers: keyed(providers?) })
    })
}

fn at_least_one(field: &Field<'_>) -> Result<u32> {
    field.whole(1..=u32::MAX)
}

fn retention(field: &Field<'_>) -> Result<RetentionSettings> {
    field.object(|object| {
        object.advise("days", "Did you mean `keep_days`?");
        let keep_days = object.optional("keep_days", |field| field.whole(1..=36_500_u32));
        let keep_frames = object.optional("keep_frames", |field| field.whole(1..=MAX_EXACT_INTEGER));
        Ok(RetentionSettings { keep_days: keep_days?, keep_frames: keep_frames? })
    })
}

fn health(field: &Field<'_>) -> Result<Health> {
    field.object(|object| {
        let every_seconds = object
            .defaulted("every_seconds", Health::default().every_seconds, |field| field.whole(1..=86_400_u32));
        Ok(Health { every_seconds: every_seconds? })
    })
}

fn tools(field: &Field<'_>) -> Result<ToolSettings> {
    field.object(|object| {
        let usual = ToolSettings::default().show_at_most;
        let show_at_most = object.defaulted("show_at_most", usual, |field| field.whole(1..=1_000_u32));
        Ok(ToolSettings { show_at_most: show_at_most? })
    })
}

fn log(field: &Field<'_>) -> Result<LogSettings> {
    field.object(|object| {
        let level =
            object.defaulted("level", LogLevelSetting::default(), |field| field.choice(LogLevelSetting::ALL));
        Ok(LogSettings { level: level? })
    })
}
