//! What settings say, and what a person sees when they cannot be used.

use std::fs;
use std::path::Path;
use std::process::Command;

use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::yaml::{self, Codes, Format};
use holdfast_contract::message::Limits;
use holdfast_contract::problem::Code;
use holdfast_yaml::Field;
use serde_json::{Value, json};

use crate::testing::{scene, write};
use crate::{LogLevelSetting, Settings, schema};

const EVERYTHING: &str = "
models:
  default: fast
  fast: { provider: some, model: small-1, base_url: 'https://host/v1', api_key_env: KEY, price_in: 0.25, price_out: 2 }
  demo: { provider: 'script:answers.yaml' }
  none: { provider: offline }
agents:
  main: { model: demo, instructions: Be short., limits: { max_turns: 3, max_cost_usd: 0.1 } }
extensions:
  weather: { city: Vienna, days: [1, 2] }
channels: { default: cli_channel }
overrides: { tool: { web_search: { enabled: false, priority: -5 }, shell: { extension: my_shell } } }
workspace: ~/projects
limits: { max_turns: 20, max_tokens: 90_000, time_budget_ms: 60000, session_tokens: 5, session_cost_usd: 1.5, max_tool_calls: 9, session_time_ms: 9000 }
retention: { keep_days: 30, keep_frames: 1000 }
health: { every_seconds: 60 }
tools: { show_at_most: 20 }
calls: { at_once: 9, per_extension: { weather: 2 }, per_tool: { shell: 1 }, timeout_ms: { shell: 120000 }, breaker: { faults: 3, pause_seconds: 7 }, host_rate: { burst: 5 } }
log: { level: debug }
remotes: { office: { address: 'office:7441', token: OFFICE_TOKEN, insecure: true, definitions: 3f79 } }
serve: { address: '0.0.0.0:7441', tools: [file_read], callers: { laptop: LAPTOP_TOKEN }, insecure: true }
";

fn parse(text: &str) -> Settings {
    Settings::parse(Path::new("s.yaml"), text.as_bytes()).unwrap().value
}

/// Errors first, then warnings, as they are printed.
fn printed(text: impl AsRef<[u8]>) -> String {
    match Settings::parse(Path::new("s.yaml"), text.as_ref()) {
        Err(rejected) => rejected.to_string(),
        Ok(read) => read.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn every_key_is_read() {
    let settings = parse(EVERYTHING);
    assert_eq!(printed(EVERYTHING), "");
    assert_eq!(settings.default_model().as_str(), "fast");
    let fast = &settings.models.named[&"fast".into()];
    assert_eq!((fast.price_in.unwrap().micros, fast.price_out.unwrap().micros), (250_000, 2_000_000));
    let demo = &settings.models.named[&"demo".into()];
    assert_eq!((demo.provider.as_str(), demo.file.as_deref()), ("script", Some("answers.yaml")));
    assert_eq!(settings.extensions[&"weather".into()]["days"], json!([1, 2]));
    assert_eq!(settings.overrides[&"tool".into()][&"web_search".into()].enabled, Some(false));
    assert_eq!(settings.overrides[&"tool".into()][&"shell".into()].extension, Some("my_shell".into()));
    assert_eq!((settings.retention.keep_days, settings.log.level), (Some(30), LogLevelSetting::Debug));
    let (calls, breaker) = (&settings.calls, settings.calls.breaker);
    assert_eq!(
        (calls.at_once, calls.per_extension[&"weather".into()], calls.per_tool[&"shell".into()]),
        (9, 2, 1)
    );
    assert_eq!(calls.timeout_ms[&"shell".into()], Millis(120_000));
    assert_eq!((breaker.faults, breaker.pause().0, calls.host_rate.burst), (3, 7_000, 5));
    let office = &settings.remotes["office"];
    assert_eq!((office.token.as_str(), office.definitions.as_deref()), ("OFFICE_TOKEN", Some("3f79")));
    let serve = settings.serve.as_ref().unwrap();
    assert_eq!((serve.tools.len(), serve.callers["laptop"].as_str()), (1, "LAPTOP_TOKEN"));
    let main = settings.limits(&"main".into(), Limits::default());
    assert_eq!((main.max_turns, main.max_tokens, main.max_cost_micros), (3, 90_000, Some(100_000)));
    let other = settings.limits(&"other".into(), Limits::default());
    assert_eq!(
        (other.max_turns, other.session_cost_micros, other.max_cost_micros),
        (20, Some(1_500_000), None)
    );
}

#[test]
fn what_is_read_can_be_stored_and_read_back() {
    let settings = parse(EVERYTHING);
    let stored = serde_json::to_value(&settings).unwrap();
    assert_eq!(serde_json::from_value::<Settings>(stored).unwrap(), settings);
    assert_eq!(serde_json::to_value(Settings::default()).unwrap(), json!({}));
}

#[test]
fn the_schema_agrees_with_the_reader() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let format = Format { name: "settings", max_bytes: 1 << 20, codes: Codes::all(Code::SettingsInvalid) };
    let as_json = |text: &str| -> Value {
        yaml::read(&format, Path::new("s.yaml"), text, |field: &Field<'_>| field.json()).unwrap().value
    };
    let written = as_json(&EVERYTHING.replace("90_000", "90000"));
    let errors: Vec<_> = validator.iter_errors(&written).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for wrong in [
        "modles: {}",
        "models: { a: { provder: x } }",
        "limits: { max_turns: 0 }",
        "models: { a: { provider: x, model: m, price_in: -1 } }",
        "log: { level: loud }",
        "web: { listen: '127.0.0.1:80' }",
        "agents: { main: { limits: { turns: 1 } } }",
        "remotes: { office: { address: 'office:7441' } }",
        "serve: { address: '127.0.0.1:7441', tools: [x], clients: {} }",
    ] {
        assert!(!validator.is_valid(&as_json(wrong)), "{wrong}");
        if !wrong.contains("listen") {
            assert!(Settings::parse(Path::new("s.yaml"), wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}

#[test]
fn what_other_machines_can_reach_must_be_said() {
    let serve = |address: &str, more: &str| {
        let text = format!("serve: {{ address: '{address}', tools: [x], callers: {{ a: T }}{more} }}");
        Settings::parse(Path::new("s.yaml"), text.as_bytes()).is_ok()
    };
    for address in ["127.0.0.1:7441", "[::1]:7441"] {
        assert!(serve(address, ""), "{address}");
    }
    for address in ["0.0.0.0:7441", "[::]:7441", "192.0.2.1:7441"] {
        assert!(!serve(address, "") && serve(address, ", insecure: true"), "{address}");
    }
    for address in ["localhost:7441", "127.0.0.1", "7441", "/tmp/socket"] {
        assert!(!serve(address, ", insecure: true"), "{address}");
    }
    for name in ["Office", "of/fice", "of fice", ""] {
        let text = format!("remotes: {{ '{name}': {{ address: 'a:1', token: T }} }}");
        assert!(Settings::parse(Path::new("s.yaml"), text.as_bytes()).is_err(), "{name}");
    }
}

#[test]
fn nothing_written_is_the_default() {
    for text in ["", "\n", "# only a comment\n", "models:\nlimits:\n", "\u{feff}", "models: { default: }"] {
        assert_eq!(parse(text), Settings::default(), "{text:?}");
        assert_eq!(printed(text), "");
    }
    let scene = scene();
    let loaded = Settings::load(&scene.home).unwrap();
    assert!(loaded.settings == Settings::default() && loaded.source.is_none());
}

#[test]
fn what_a_person_sees() {
    let cases = [
        (
            "modles:\n  default: x\n",
            "error[HF-1103]: unknown field `modles`
  --> s.yaml:1:1 (modles)
  help: Did you mean `models`?",
        ),
        (
            "models:\n  fast: { provider: p, model: m, api_key: sk-secret }\n",
            "error[HF-1103]: unknown field `api_key` in `models.fast`
  --> s.yaml:2:34 (models.fast.api_key)
  help: Keys do not belong here: put it in `.env` as `NAME=…`, and write `api_key_env: NAME`.",
        ),
        (
            "models:\n  fast: { provider: p, model: m, api_key_env: sk-secret }\n",
            "error[HF-1101]: `models.fast.api_key_env` is not the name of a variable
  --> s.yaml:2:47 (models.fast.api_key_env)
  help: Name the variable that holds the key, such as `MY_API_KEY`; the key itself is in `.env`.",
        ),
        (
            "models:\n  fast: { provider: p }\n  demo: { provider: script }\n  other: { model: m }\n",
            "error[HF-1101]: `models.fast.model` is missing
  --> s.yaml:2:9 (models.fast.model)
  help: Add `model: …`, what the provider calls it.
error[HF-1101]: `models.demo.file` is missing
  --> s.yaml:3:9 (models.demo.file)
  help: Add `file: answers.yaml`, the file that is played.
error[HF-1101]: `models.other.provider` is missing
  --> s.yaml:4:10 (models.other.provider)
  help: Add `provider: offline`.",
        ),
        (
            "models:\n  default: { provider: offline }\n",
            "error[HF-1101]: `models.default` should be the name of a model, but is a mapping
  --> s.yaml:2:12 (models.default)
  help: Call the model something else, and write that name: `default: NAME`.",
        ),
        (
            "models:\n  default: fsat\n  fast: { provider: offline }\nagents: { main: { model: slow } }\n",
            "warning[HF-1101]: there is no model `fsat` in these settings
  --> s.yaml:2:12 (models.default)
  help: Did you mean `fast`?
warning[HF-1101]: there is no model `slow` in these settings
  --> s.yaml:4:26 (agents.main.model)
  help: Describe it below `models:`, as `slow:`, unless an extension brings it.",
        ),
        (
            "limits:\n  max_turns: many\n  max_cost_usd: cheap\n  max_cost: 5\n",
            "error[HF-1101]: `limits.max_turns` should be a whole number, but is the text `many`
  --> s.yaml:2:14 (limits.max_turns)
  help: Write a whole number from 1 to 4294967295.
error[HF-1101]: `limits.max_cost_usd` is not an amount of money
  --> s.yaml:3:17 (limits.max_cost_usd)
  help: Write a number of dollars, such as `max_cost_usd: 2.50`.
error[HF-1103]: unknown field `max_cost` in `limits`
  --> s.yaml:4:3 (limits.max_cost)
  help: Did you mean `max_cost_usd`?",
        ),
        // What nothing reads is refused, and the rest of the file is read all the same.
        (
            "packs: [{ package: a, module: b }]\nmcp: { servers: { a: { command: x } } }\nstore: { url: 'nats://host:4222' }\nweb: { listen: '127.0.0.1:80' }\nextensions: [x]\n",
            "error[HF-1101]: `packs[0]` needs `package`, `module` or `folder`
  --> s.yaml:1:9 (packs[0])
  help: Name one of them: `package: \"@scope/name\"`, `module: ./pack.mjs` or `folder: ./pack`.
error[HF-1009]: `store` is not available in this version
  --> s.yaml:3:8 (store)
  help: Remove it.
error[HF-1009]: `web` is not available in this version
  --> s.yaml:4:6 (web)
  help: Remove it.
error[HF-1101]: `extensions` should be a mapping, but is a list
  --> s.yaml:5:13 (extensions)
  help: Write indented `key: value` lines below `extensions:`.",
        ),
        (
            "overrides: { guardrial: { length-guard: { enabled: false } } }\n",
            "warning[HF-1101]: nothing consumes the kind `guardrial`
  --> s.yaml:1:25 (overrides.guardrial)
  help: Did you mean `guardrail`?",
        ),
        (
            "log: { level: info }\nlog: { level: warn }\n",
            "warning[HF-1104]: duplicate key `log`, first at line 1
  --> s.yaml:2:1 (log)
  help: The last value counts; remove the others.",
        ),
        (
            "models: [\n",
            "error[HF-1101]: the file is not valid YAML: unclosed bracket '['
  --> s.yaml:1:9
  help: Close the bracket that opens above, and put commas between its items.",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(printed(text), expected, "\n{text}");
    }
    assert!(printed(b"log:\n  level: \xff\n").starts_with("error[HF-1102]: the file is not valid UTF-8"));
    assert_eq!(parse("log: { level: info }\nlog: { level: trace }\n").log.level, LogLevelSetting::Trace);
}

#[test]
fn marks_and_line_ends_of_other_systems_do_not_matter() {
    let text = "models:\n  default: a\n  a:\n    provider: offline\nworkspace: /w\n";
    let crlf = text.replace('\n', "\r\n");
    for text in [text.to_owned(), crlf.clone(), format!("\u{feff}{text}"), format!("\u{feff}{crlf}")] {
        let settings = parse(&text);
        assert_eq!(
            (settings.default_model().as_str(), settings.workspace.as_deref()),
            ("a", Some("/w")),
            "{text:?}"
        );
    }
}

#[test]
fn files_that_cannot_be_read() {
    let scene = scene();
    let file = scene.home.settings_file();
    let load = || Settings::load(&scene.home).unwrap_err().to_string();

    write(file.clone(), "a".repeat(10 << 20));
    let problem = load();
    assert!(
        problem.starts_with("error[HF-1105]: the file has 10485760 bytes; the limit is 1048576"),
        "{problem}"
    );

    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let problem = load();
    assert!(problem.contains("settings.yaml is a pipe, not a file"), "a pipe is not waited for: {problem}");

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let problem = load();
    assert!(problem.contains("settings.yaml is a folder, not a file"), "{problem}");
}

/// The file after a setting was written.
fn with_setting(before: &str, id: &str, name: &str, value: Value) -> Option<String> {
    let scene = scene();
    write(scene.home.settings_file(), before);
    scene.home.set_extension(&id.into(), name, &value).ok()?;
    Some(fs::read_to_string(scene.home.settings_file()).unwrap())
}

#[test]
fn one_setting_is_written_and_every_other_line_stays() {
    let set = |before: &str| with_setting(before, "weather", "city", json!("Graz"));
    assert_eq!(set("# Mine.\n").unwrap(), "# Mine.\n\nextensions:\n  weather:\n    city: \"Graz\"\n");
    let other = "extensions: # all of them\n  # the lights\n  lights:\n    on: true\nlog: { level: debug }\n";
    let written = set(other).unwrap();
    assert!(
        written.starts_with("extensions: # all of them\n  weather:\n    city: \"Graz\"\n  # the lights\n")
    );
    assert!(written.ends_with("    on: true\nlog: { level: debug }\n"), "{written}");
    let known = "extensions:\n  weather:\n    # where\n    city: Vienna\n    days: 2\n";
    assert_eq!(set(known).unwrap(), known.replace("Vienna", "\"Graz\""));
    let more = with_setting(known, "weather", "units", json!({ "wind": "km/h" })).unwrap();
    assert_eq!(parse(&more).extensions[&"weather".into()]["units"]["wind"], "km/h");
}

#[test]
fn what_cannot_be_changed_without_harm_is_left_to_the_user() {
    let folded = "extensions: { weather: { city: Vienna } }\n";
    assert_eq!(with_setting(folded, "weather", "city", json!("Graz")), None);
    let spread = "extensions:\n  weather:\n    city:\n      name: Vienna\n";
    assert_eq!(with_setting(spread, "weather", "city", json!("Graz")), None);
}

#[test]
fn a_decision_about_an_extension_is_written_beside_what_is_there() {
    let disable = |before: &str| with_setting(before, "weather", "enabled", json!(false));
    let before = "extensions: { weather: { city: Vienna } } # mine\nlog: { level: debug }\n";
    let written = "extensions: { weather: { enabled: false, city: Vienna } } # mine\nlog: { level: debug }\n";
    assert_eq!(disable(before).unwrap(), written);
    let enabled = with_setting(written, "weather", "enabled", json!(true)).unwrap();
    assert_eq!(enabled, written.replace("false", "true"));
    let line = "extensions:\n  weather: { city: Vienna }\n";
    assert_eq!(disable(line).unwrap(), "extensions:\n  weather: { enabled: false, city: Vienna }\n");
    let other = "extensions: { lights: { on: true } }\n";
    assert_eq!(
        disable(other).unwrap(),
        "extensions: { weather: { enabled: false }, lights: { on: true } }\n"
    );
    let comment = "extensions:\n  weather:\n    enabled: true # for now\n    city: Graz\n";
    assert_eq!(disable(comment).unwrap(), comment.replace("true", "false"));
    let problem = Settings::parse(Path::new("settings.yaml"), b"extensions: { weather: { enabled: 1 } }\n");
    assert!(problem.is_err());
}

#[test]
fn packs_become_manifests_of_extensions() {
    let text = r#"
packs:
  - package: "@some/agentos-ext-kit@^1"
    priority: 7
    options: { depth: 2, secrets: { "maps.apiKey": "${MAPS_KEY}" } }
    secrets: [OTHER]
    network: [api.example.com]
    tools: { look: { ask: true, timeout_ms: 5 }, hide: { enabled: false } }
  - module: packs/notes.mjs
    prefix: my
  - folder: /srv/pack
    identifier: own
    required: true
  - package: off
    enabled: false
"#;
    let all = parse(text).named_extensions(Path::new("/home/of"));
    let ids: Vec<_> = all.keys().map(|id| id.to_string()).collect();
    assert_eq!(ids, ["pack-kit", "pack-notes", "pack-own"]);
    let read = |id: &str| {
        let text = &all[&id.into()];
        let parsed = holdfast_contract::manifest::parse(Path::new("settings.yaml"), text).unwrap();
        assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
        parsed.manifest
    };
    let kit = read("pack-kit");
    assert_eq!((kit.package.as_deref(), kit.priority), (Some("@some/agentos-ext-kit@^1"), Some(7)));
    assert_eq!(kit.grants.secrets, ["MAPS_KEY", "OTHER"]);
    assert_eq!(kit.policy.ask, ["look"]);
    let pack = &kit.config["pack"];
    assert_eq!(pack["options"], json!({ "depth": 2 }), "without the secrets");
    assert_eq!(pack["secrets"], json!({ "maps.apiKey": "MAPS_KEY" }));
    assert_eq!((&pack["disabled"], &pack["order"]), (&json!(["hide"]), &json!(0)));
    assert_eq!(read("pack-notes").package.as_deref(), Some("/home/of/packs/notes.mjs"));
    assert_eq!(read("pack-own").config["pack"]["required"], true);
    for (wrong, why) in [
        ("[{}]", "needs `package`, `module` or `folder`"),
        ("[{ package: a }, { package: '@b/a' }]", "another pack is known as `a` too"),
        ("[{ package: ./a }]", "is not the name of a package"),
        ("[{ folder: ~/a }]", "is not where a pack can be found"),
        ("[{ package: a, options: { secrets: { key: 'sk-123' } } }]", "is not the name of a secret"),
        ("[{ package: a, factory: x }]", "unknown field `factory`"),
        ("[{ package: A B }]", "is not the name of a package"),
        ("[{ package: a, identifier: A B }]", "cannot be known as"),
        ("[{ package: a, prefix: '' }]", "`prefix` has other signs"),
    ] {
        let rejected = Settings::parse(Path::new("s.yaml"), format!("packs: {wrong}\n").as_bytes());
        let errors = rejected.err().map(|rejected| format!("{:?}", rejected.errors)).unwrap_or_default();
        assert!(errors.contains(why), "{wrong}: {errors}");
    }
}
