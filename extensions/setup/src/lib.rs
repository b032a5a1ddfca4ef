//! Configures other extensions from a conversation: `configure_extension` sets a parameter, `request_secure_input` asks for a secret
//! that only the secret store sees, and a context provider tells the agent what is not configured yet. `maintenance.rs` has the tools
//! for running extensions.
//!
//! [`extension`] is the entry point. The parameters of each extension, and where they are stored, are known to the host.

mod maintenance;

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::{Capability, HostCall, HostCallKind};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::tool::{EffectClass, ToolGroup, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::input::{anything, takes, text};
use holdfast_lane_native::{Hook, NativeExtension, Tool};
use serde_json::{Value, json};

use crate::maintenance::{Doctor, RequestRestart};

/// How long a person may take to type a secret.
const SECRET_INPUT_TIMEOUT: Millis = Millis(600_000);

/// The extension.
pub fn extension() -> NativeExtension {
    NativeExtension::new("setup", env!("CARGO_PKG_VERSION"))
        .interfaces(&[Capability::Setup.name()])
        .tool(Configure)
        .tool(SecureInput)
        .tool(Doctor)
        .tool(RequestRestart)
        .grouped(ToolGroup::Core)
        .hook(PendingSetup)
        .replayable()
}

/// `configure_extension`
struct Configure;

impl Tool for Configure {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Write,
            timeout: SECRET_INPUT_TIMEOUT,
            input_schema: takes([
                text("extension_id", "The extension's id."),
                text("param_name", "What is set, as the extension calls it."),
                anything(
                    "value",
                    "The value. Leave it out for a secret: the user is asked for it, and you never see it.",
                )
                .optional(),
            ]),
            ..ToolSpec::named(
                "configure_extension",
                "Sets a parameter that an extension needs before it can work, and tells what is still missing.",
            )
        }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let (id, name) = (field(&arguments, "extension_id")?, field(&arguments, "param_name")?);
            let given = arguments.value().get("value").cloned();
            let state = ask(&host, HostCallKind::SetupShow, Content::text(&id)).await?;
            let asked = state["questions"].as_array().into_iter().flatten();
            let question = asked.clone().find(|question| question["name"] == name.as_str());
            let secret = question.is_some_and(|question| question["secret"] == true);
            let value = match given.filter(|value| !is_placeholder(value)) {
                Some(value) => value,
                None if secret => {
                    let about = question.and_then(|it| it["description"].as_str()).unwrap_or_default();
                    Value::String(secret_input(&host, &format!("{id}: {name}. {about}")).await?)
                }
                None => return Err(Fault::new(Code::ToolArguments, "`value` is missing")),
            };
            let applied = json!({ "extension": id, "name": name, "value": value });
            let state = ask(&host, HostCallKind::SetupApply, applied.into()).await?;
            Ok(json!({ "complete": state["complete"], "message": state["word"], "missing": missing(&state) })
                .into())
        })
    }
}

/// `request_secure_input`
struct SecureInput;

impl Tool for SecureInput {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            effects: EffectClass::Write,
            timeout: SECRET_INPUT_TIMEOUT,
            input_schema: takes([
                text("name", "The secret's name: `NAME` for all, `extension.NAME` for one extension."),
                text("prompt", "What the user is asked."),
            ]),
            ..ToolSpec::named(
                "request_secure_input",
                "Asks the user for a secret and keeps it. You never see it, and it is nowhere in the conversation.",
            )
        }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let (name, prompt) = (field(&arguments, "name")?, field(&arguments, "prompt")?);
            let value = secret_input(&host, &prompt).await?;
            ask(&host, HostCallKind::SecretKeep, json!({ "name": name, "value": value }).into()).await?;
            Ok(json!({ "kept": name }).into())
        })
    }
}

/// Tells the agent which extensions are not configured.
struct PendingSetup;

impl Hook for PendingSetup {
    fn spec(&self) -> HookSpec {
        HookSpec::at(HookPoint::Context)
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(async move {
            let open = ask(&host, HostCallKind::SetupOpen, Content::default()).await?;
            let parts: Vec<String> = open.as_array().into_iter().flatten().map(describe).collect();
            if parts.is_empty() {
                return Ok(Decision::Continue);
            }
            let text = format!("[Extensions that are not set up]\n{}", parts.join("\n"));
            Ok(Decision::Inject { content: Content::text(text) })
        })
    }
}

/// The description of one extension's pending setup.
fn describe(state: &Value) -> String {
    let id = state["extension"].as_str().unwrap_or_default();
    let mut text = format!("{id}: {}", state["word"].as_str().unwrap_or_default());
    for line in state["instructions"].as_str().unwrap_or_default().lines() {
        text.push_str(&format!("\n  {line}"));
    }
    for question in state["questions"].as_array().into_iter().flatten() {
        if question["answered"] != true {
            let (name, about) = (&question["name"], question["description"].as_str().unwrap_or_default());
            let secret = if question["secret"] == true { " (secret)" } else { "" };
            text.push_str(&format!("\n  needs {}{secret}: {about}", name.as_str().unwrap_or_default()));
        }
    }
    text
}

fn missing(state: &Value) -> Vec<&Value> {
    let all = state["questions"].as_array().into_iter().flatten();
    all.filter(|it| it["required"] == true && it["answered"] != true).map(|it| &it["name"]).collect()
}

/// Whether a value is a placeholder, as instructions write it: `<TOKEN>`.
fn is_placeholder(value: &Value) -> bool {
    let text = value.as_str().unwrap_or("-").trim();
    value.is_null() || text.is_empty() || (text.starts_with('<') && text.ends_with('>'))
}

async fn secret_input(host: &Arc<dyn Host>, prompt: &str) -> Result<String, Fault> {
    let question = UiQuestion::Input { prompt: prompt.to_owned(), secret: true };
    let answer = host.call(HostCall::Ui(question)).await?;
    let text = answer.value().as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| Fault::new(Code::ToolFailed, "the user gave no answer"))
}

async fn ask(host: &Arc<dyn Host>, kind: HostCallKind, arguments: Content) -> Result<Value, Fault> {
    Ok(host.call(HostCall::of(kind, arguments)).await?.value().clone())
}

fn field(arguments: &Content, name: &str) -> Result<String, Fault> {
    let text = arguments.value().get(name).and_then(Value::as_str);
    let missing = || Fault::new(Code::ToolArguments, format!("`{name}` is missing"));
    text.map(str::to_owned).ok_or_else(missing)
}
