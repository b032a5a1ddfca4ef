//! Setting an extension up from a conversation, and where its secret is not: a value that was typed once is looked for everywhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, ExtensionId, Millis, StreamId};
use holdfast_contract::manifest::{self, HandlerSpec};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::role::Role;
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::system_frames::SetupSpec;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Functions, NativeExtension, Subscriber, Tool, now};
use holdfast_runtime::Configuration;
use holdfast_runtime::secrets::{Chain, Digester, Secrets};
use holdfast_secrets::{EncryptedFile, StoreKind};
use holdfast_store::{Store, StoreOptions};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::{Map, Value, json};

/// What nobody may find anywhere.
const CANARY: &str = "7312345:AAE-canary-kq9vX2";

/// As a guide for authors has it, with its second description.
const TELEGRAM: &str = r#"
id: telegram_channel
name: Telegram Bot Channel
version: "1.0.0"

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
  Call configure_extension("telegram_channel", "token", "<TOKEN>").

# Dependencies: loaded before this extension
depends_on:
  - kv

# Secrets from .env (optional, if not via SetupProvider)
secrets: []

# Extension config (accessible via context.get_config())
config:
  parse_mode: MarkdownV2

enabled: true
"#;

/// Settings that are written nowhere but here.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<ExtensionId, Map<String, Value>>>);

impl Configuration for Notes {
    fn grant(&self, _: &holdfast_policy::Grant) -> Result<(), Problem> {
        Ok(())
    }

    fn of(&self, extension: &ExtensionId) -> Map<String, Value> {
        self.0.lock().unwrap().get(extension).cloned().unwrap_or_default()
    }

    fn set(
        &self,
        extension: &ExtensionId,
        name: &str,
        value: &Value,
        _: &holdfast_runtime::ReportChanges<'_>,
    ) -> Result<(), Problem> {
        let mut all = self.0.lock().unwrap();
        all.entry(extension.clone()).or_default().insert(name.to_owned(), value.clone());
        Ok(())
    }
}

/// A channel that needs a token and may be told how to write.
#[derive(Clone, Default)]
struct Telegram {
    applied: Arc<Mutex<Vec<Value>>>,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl Functions for Telegram {
    fn has(&self, role: Role) -> bool {
        role == Role::Setup
    }

    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        _: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        if role != Role::Setup {
            return None;
        }
        let answer = match function.as_str() {
            "schema" => Ok(json!([
                { "name": "token", "description": "Bot token from @BotFather", "secret": true, "required": true },
                { "name": "parse_mode", "description": "How messages are written" },
            ])),
            "apply" => {
                self.applied.lock().unwrap().push(arguments.value().clone());
                Ok(Value::Null)
            }
            _ => {
                if self.applied.lock().unwrap().iter().any(|it| it.get("token").is_some()) {
                    Ok(json!("the bot answers"))
                } else {
                    return Some(now(Err(Fault::new(Code::ExtensionFault, "there is no token"))));
                }
            }
        };
        Some(now(answer.map(Content::new)))
    }
}

/// A tool that uses the token, and carelessly says it to everybody.
struct Send;

impl Tool for Send {
    fn spec(&self) -> ToolSpec {
        ToolSpec { effects: EffectClass::Network, ..ToolSpec::named("send", "Sends a message.") }
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let arguments = Content::text("token");
            let ask = HostCall::named("secret.get", arguments);
            let token = host.call(ask).await?.to_text();
            assert_eq!(token, CANARY, "the extension has the value itself");
            for (name, arguments) in [
                ("event.publish", json!({ "topic": "telegram.sent", "payload": { "with": token } })),
                ("user.notify", json!({ "text": format!("sent with {token}"), "channel": "nowhere" })),
            ] {
                let ask = HostCall::named(name, arguments);
                host.call(ask).await?;
            }
            Ok(json!({ "sent": true, "url": format!("https://api.example/bot{token}/send") }).into())
        })
    }
}

/// Takes the events of the tool, and fails in words that nobody may find.
impl Subscriber for Telegram {
    fn on_event(&self, event: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        self.taken.lock().unwrap().push(event.value().clone());
        now(Err(Fault::new(Code::ToolFailed, format!("https://api.example/bot{CANARY} does not answer"))))
    }
}

fn telegram(functions: Telegram) -> NativeExtension {
    let parsed = manifest::parse(Path::new("manifest.yaml"), TELEGRAM).unwrap();
    let instructions = parsed.manifest.setup_instructions.clone();
    NativeExtension::new("telegram_channel", "1.0.0")
        .setup(SetupSpec { instructions, secrets: Vec::new() })
        .subscribes("telegram.sent", HandlerSpec::Custom)
        .subscriber(functions.clone())
        .functions(functions)
        .tool(Send)
}

fn lab(home: &Path, functions: Telegram) -> LabBuilder {
    let stores: Vec<Box<dyn holdfast_secrets::SecretStore>> = vec![Box::new(EncryptedFile::new(home, None))];
    let chain = Chain::new(stores, StoreKind::File).unwrap();
    let secrets = Secrets::new(chain, Digester::open(home).unwrap(), Vec::new()).unwrap();
    Lab::build()
        .secrets(Arc::new(secrets))
        .configuration(Arc::new(Notes::default()))
        .extension(telegram(functions))
        .extension(holdfast_ext_setup::extension())
}

/// The files under a folder in which the value stands.
fn hits(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(hits(&path));
            continue;
        }
        let bytes = match std::fs::read(&path) {
            // The database's side files go with its last connection.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            read => read.unwrap(),
        };
        if bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_manifest_with_two_descriptions_is_read_with_a_warning() {
    let parsed = manifest::parse(Path::new("manifest.yaml"), TELEGRAM).unwrap();
    assert_eq!(parsed.manifest.id.as_str(), "telegram_channel");
    assert!(parsed.manifest.description.starts_with("Telegram channel."), "the last one counts");
    let warning = parsed.warnings.iter().find(|warning| warning.what.contains("description")).unwrap();
    assert_eq!(warning.location.as_ref().unwrap().line, 13);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_typed_once_used_and_found_nowhere() {
    let home = tempfile::tempdir().unwrap();
    let telegram = Telegram::default();
    let place = json!({ "extension_id": "telegram_channel", "param_name": "token", "value": "<TOKEN>" });
    let lab = lab(home.path(), telegram.clone())
        .script([
            ScriptStep::Calls(vec![("configure_extension".to_owned(), place)]),
            ScriptStep::says("It is set up."),
            ScriptStep::Calls(vec![("send".to_owned(), json!({}))]),
            // Bit by bit, as a model writes that was told by somebody.
            ScriptStep::says(&format!("Sent with {CANARY} today.")),
        ])
        .on(&home.path().join("holdfast.db"), Default::default())
        .start()
        .await;
    let turn = lab.begin("set telegram up");
    let (request, question) = lab.question().await;
    assert!(matches!(&question, UiQuestion::Input { secret: true, prompt } if prompt.contains("@BotFather")));
    lab.session().answer(request, Some(Content::text(CANARY))).await.unwrap();
    turn.await.unwrap();
    lab.say(&format!("send it; my token is {CANARY}, by the way")).await;

    assert!(lab.shown().ends_with("Sent with [secret telegram_channel.token] today."), "{}", lab.shown());

    // The agent was told what is missing, once, and how to go on.
    let context = bodies(&lab.frames(), FrameKind::HookDecided);
    let told: Vec<String> =
        context.iter().map(Value::to_string).filter(|it| it.contains("not set up")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("needs token (secret): Bot token") && told[0].contains("configure_extension"));
    // The extension has the secret's reference, and its user is on record.
    assert_eq!(*telegram.applied.lock().unwrap(), [json!({ "token": "secret:telegram_channel/token" })]);
    let used = bodies(&lab.frames(), FrameKind::SecretUsed);
    assert_eq!((&used[0]["extension"], &used[0]["name"]), (&json!("telegram_channel"), &json!("token")));
    let returned = bodies(&lab.frames(), FrameKind::ToolReturned);
    let (configured, sent) = (returned[0].to_string(), returned[1].to_string());
    assert!(configured.contains("the bot answers") && configured.contains("\"missing\":[]"), "{configured}");
    assert!(sent.contains("bot[secret telegram_channel.token]/send"), "{sent}");

    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:?}");
    assert!(lab.findings().is_empty(), "{:?}", lab.findings());
    // Nor on the bus: what the extension publishes, what it has the user told, and in which words it fails.
    let bus = || {
        lab.runtime.store().flush().unwrap();
        let streams = holdfast_bus::streams();
        let frames = streams.flat_map(|stream| lab.frames_of(stream.as_str()));
        frames.map(|frame| format!("{frame:?}")).collect::<String>()
    };
    lab.until("a failure on the bus", |_| bus().contains("does not answer")).await;
    let hidden = "[secret telegram_channel.token]";
    assert_eq!(telegram.taken.lock().unwrap()[0]["payload"], json!({ "with": hidden }));
    for words in [format!("sent with {hidden}"), format!("bot{hidden} does not answer")] {
        assert!(bus().contains(&words), "{words}: {}", bus());
    }
    let whole: String = lab.frames().iter().map(|frame| format!("{frame:?}")).collect();
    assert!(!whole.contains(CANARY) && !bus().contains(CANARY));
    // Neither in the database nor in its side files, which are there while it is open.
    let files: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(files.iter().any(|name| name == "holdfast.db-wal"), "{files:?}");
    assert_eq!(hits(home.path()), Vec::<String>::new());
    // Waiting for a channel that never comes ends with the timeout.
    let clock = lab.clock.clone();
    let passing = tokio::spawn(async move {
        loop {
            clock.advance(Millis(500));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    lab.stop().await;
    passing.abort();
    assert_eq!(hits(home.path()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_secret_goes_to_the_settings() {
    let home = tempfile::tempdir().unwrap();
    let telegram = Telegram::default();
    let lab = lab(home.path(), telegram.clone()).start().await;
    let id = ExtensionId::from("telegram_channel");
    let state = lab.runtime.setup(&id).await.unwrap();
    assert_eq!((state.complete, state.missing()), (false, vec!["token"]));
    let state = lab.runtime.configure(&id, "parse_mode", json!("HTML")).await.unwrap();
    assert!(!state.complete && state.questions[1].answered);
    let problem = lab.runtime.configure(&id, "tokn", json!("x")).await.unwrap_err();
    assert!(problem.help.contains("token, parse_mode"), "{problem}");
    let state = lab.runtime.configure(&id, "token", json!(CANARY)).await.unwrap();
    assert_eq!((state.complete, state.word.as_str()), (true, "the bot answers"));
    assert_eq!(telegram.applied.lock().unwrap()[0], json!({ "parse_mode": "HTML" }));
}

// Row E15.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_up_functions_are_recorded_without_values_and_counted_when_nothing_changed() {
    let home = tempfile::tempdir().unwrap();
    let lab = lab(home.path(), Telegram::default()).start().await;
    let id = ExtensionId::from("telegram_channel");
    for _ in 0..3 {
        lab.runtime.setup(&id).await.unwrap();
    }
    lab.runtime.configure(&id, "parse_mode", json!("a-value-of-parse-mode")).await.unwrap();
    lab.runtime.configure(&id, "token", json!(CANARY)).await.unwrap();
    lab.runtime.settled().await.unwrap();
    let called = bodies(&lab.frames_of("system"), FrameKind::SetupCalled);
    let line = |it: &Value| {
        let names: Vec<&str> =
            it["names"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fault = it["fault"]["message"].as_str().unwrap_or_default();
        format!(
            "{} {}: {} {fault}",
            it["id"].as_str().unwrap(),
            it["function"].as_str().unwrap(),
            names.join(",")
        )
    };
    assert_eq!(
        called.iter().map(line).collect::<Vec<_>>(),
        [
            "telegram_channel schema: token,parse_mode ",
            "telegram_channel complete:  there is no token",
            "telegram_channel apply: parse_mode ",
            "telegram_channel apply: token ",
            "telegram_channel complete:  ",
        ]
    );
    let recorded: String = called.iter().map(Value::to_string).collect();
    assert!(!recorded.contains(CANARY) && !recorded.contains("a-value-of-parse-mode"), "{recorded}");
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("system").identical);
    let folder = lab.stop().await;
    // The calls that changed nothing were counted, and recorded at the stop: of five more rounds of two functions, one differed.
    let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
    let frames = store.frames(&StreamId::system(), ..).unwrap();
    let counted = bodies(&frames, FrameKind::ExtensionsChecked);
    assert_eq!(counted.len(), 1, "{counted:?}");
    assert!(counted[0]["checks"][0]["setup"].as_u64().unwrap() >= 7, "{counted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_has_no_secret_that_it_was_not_granted() {
    let home = tempfile::tempdir().unwrap();
    let stores: Vec<Box<dyn holdfast_secrets::SecretStore>> =
        vec![Box::new(EncryptedFile::new(home.path(), None))];
    let secrets = Secrets::new(
        Chain::new(stores, StoreKind::File).unwrap(),
        Digester::open(home.path()).unwrap(),
        Vec::new(),
    )
    .unwrap();
    let name = holdfast_secrets::SecretName::global("token").unwrap();
    secrets.keep(&name, &CANARY.to_owned().into()).unwrap();
    let secrets = Arc::new(secrets);
    for (granted, outcome) in [(false, "not granted"), (true, "\"sent\":true")] {
        let extension = NativeExtension::new("other", "1.0.0").tool(Send);
        let extension = if granted { extension.secrets(&["token"]) } else { extension };
        let call = ScriptStep::Calls(vec![("send".to_owned(), json!({}))]);
        let lab = Lab::build().script([call, ScriptStep::says("done")]).secrets(secrets.clone());
        let lab = lab.extension(extension).start().await;
        lab.say("send").await;
        let returned = bodies(&lab.frames(), FrameKind::ToolReturned)[0].to_string();
        assert!(returned.contains(outcome), "{returned}");
        assert!(!returned.contains(CANARY));
    }
}

// Finding C5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_secret_that_is_missing_is_not_registered_and_is_reported() {
    let name = |own: bool| {
        if own {
            holdfast_secrets::SecretName::own(&"kit".into(), "TOKEN").unwrap()
        } else {
            holdfast_secrets::SecretName::global("TOKEN").unwrap()
        }
    };
    // Which secrets there are, whether the global one is granted, and whether the tool is there.
    let cases: [(&str, &[bool], bool, bool); 5] = [
        ("none", &[], true, false),
        ("its own", &[true], false, true),
        ("a global one that is granted", &[false], true, true),
        ("a global one that is not granted", &[false], false, false),
        ("both, and only its own may be used", &[true, false], false, true),
    ];
    for (what, kept, granted, is_there) in cases {
        let home = tempfile::tempdir().unwrap();
        let stores: Vec<Box<dyn holdfast_secrets::SecretStore>> =
            vec![Box::new(EncryptedFile::new(home.path(), None))];
        let chain = Chain::new(stores, StoreKind::File).unwrap();
        let secrets = Secrets::new(chain, Digester::open(home.path()).unwrap(), Vec::new()).unwrap();
        for own in kept {
            secrets.keep(&name(*own), &CANARY.to_owned().into()).unwrap();
        }
        let spec = holdfast_contract::tool::ToolSpec::named("needs", "Needs a token.");
        let mut needy = holdfast_contract::registry::Descriptor::tool(spec.clone());
        needy.missing_secrets = vec!["TOKEN".to_owned()];
        let mut free = holdfast_contract::registry::Descriptor::tool(spec);
        free.id = "free".into();
        let kit = NativeExtension::new("kit", "1.0.0").descriptor(needy).descriptor(free);
        let kit = if granted { kit.secrets(&["TOKEN"]) } else { kit };
        let lab = Lab::build().secrets(Arc::new(secrets)).extension(kit).start().await;
        let registry = lab.runtime.registry();
        assert_eq!(registry.tool(&"needs".into()).is_some(), is_there, "{what}");
        assert!(registry.tool(&"free".into()).is_some(), "{what}: the others are there in any case");
        let views = lab.runtime.extensions().await.unwrap();
        let conflicts = &views.iter().find(|view| view.id.as_str() == "kit").unwrap().conflicts;
        if is_there {
            assert!(conflicts.is_empty(), "{what}: {conflicts:?}")
        } else {
            assert_eq!(conflicts[0].code, holdfast_contract::problem::Code::SecretMissing, "{what}");
            assert!(conflicts[0].message.contains("`needs` of `kit` is not registered"), "{what}");
        }
        lab.stop().await;
    }
}
