//! A chat with a model that does as it is told, for trying the chat and for its tests: `chat_lab HOME [SESSION]`.
//!
//! What is said decides what the model does: `write` and `shell` call tools that need a person, `read` one that does not,
//! `slow` writes a long answer slowly, `hang` begins one and never ends it, `evil` attacks the terminal, `count` counts the
//! characters, `lines` the lines, and `ask select`,
//! `ask secret`, `ask confirm` and `ask` let a tool ask. Anything else is answered with markdown. `CHAT_LAB_GONE` and `CHAT_LAB_OTHER` name a
//! FIFO each: once something is written into it, the owner disconnects, or another client opens the first session and denies every call there.
//! With `CHAT_LAB_SLOW` set a cancelled turn does not end.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis, StreamId};
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::{AskedCall, Message, Origin, TurnView, Usage};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, SessionSettings, UiQuestion};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{FnTool, Hook, NativeExtension, NativeLane, Tool};
use holdfast_model::{Delta, Deltas, Model, ModelRequest};
use holdfast_policy::Policy;
use holdfast_rpc::{
    ApprovalAnswer, ApprovalChoice, Client, Hub, Notification, Server, ServerContext, ServerHello,
    SessionMethod, SessionOpen, VERSION,
};
use holdfast_runtime::{HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SystemClock};
use holdfast_store::{Store, StoreOptions};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let home = std::path::PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned()));
    let session = arguments.next().map(StreamId::from);
    let server = match owner(&home).await {
        Ok(owner) => owner,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let (ours, mut near) = tokio::io::duplex(1 << 16);
    let (mut far, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(other(server.clone()));
    tokio::spawn(server.serve(theirs));
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            () = written("CHAT_LAB_GONE") => {}
        }
    });
    holdfast_cli::chat_over(ours, session, home.join("history")).await
}

/// Waits until the FIFO that this variable names was written and closed; for ever if there is none.
async fn written(variable: &str) {
    let Some(fifo) = std::env::var_os(variable) else { return std::future::pending().await };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // A thread of its own: the process ends without it.
    std::thread::spawn(move || sender.send(std::fs::read(fifo)));
    receiver.await.ok();
}

/// Another client, which opens the first session and denies what is asked there.
async fn other(server: Server) {
    written("CHAT_LAB_OTHER").await;
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(server.serve(far));
    let (client, mut notices) = Client::new(near);
    let session = Some(StreamId::from("lab-1"));
    let open = SessionOpen { session, answers: true, ..SessionOpen::default() };
    let opened = client.ask::<Value>(&SessionMethod::Open(open)).await;
    assert!(opened.is_ok(), "{opened:?}");
    while let Some(notice) = notices.recv().await {
        if let Notification::Frame(Frame { envelope, .. }) = notice
            && envelope.kind == FrameKind::ApprovalRequested
        {
            let (session, approval) = (envelope.stream, envelope.seq);
            let answer = ApprovalChoice::Deny { reason: "somebody else said no".to_owned() };
            let answer = ApprovalAnswer { session, approval, answer };
            client.ask::<Value>(&SessionMethod::ApprovalAnswer(answer)).await.ok();
        }
    }
}

async fn owner(home: &std::path::Path) -> Result<Server, Problem> {
    let store = Store::open(&home.join("holdfast.db"), StoreOptions::default())?;
    let lane = NativeLane::default();
    let found = lane.add(extension());
    let hub = Arc::new(Hub::default());
    let model: Arc<dyn Model> = Arc::new(Obedient);
    let runtime = Runtime::start(Parts {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        models: BTreeMap::from([("lab".into(), model)]),
        lanes: vec![Arc::new(lane)],
        extensions: vec![found],
        policy: Policy::profile(Profile::Standard),
        surface: hub.clone(),
        routes: Routes::default(),
        home: HomeParts::default(),
    })
    .await?;
    let names = store;
    Ok(Server::new(ServerContext {
        runtime,
        hub,
        welcome: ServerHello {
            version: VERSION,
            program: "lab".to_owned(),
            process: std::process::id(),
            home: home.display().to_string(),
            profile: "standard".to_owned(),
            model: "lab".into(),
        },
        create_session: Box::new(move |open| {
            let free = names.streams()?.len();
            let new = NewSession {
                id: open.session.clone().unwrap_or_else(|| format!("lab-{free}").into()),
                origin: Origin { channel: open.channel.clone(), user: None },
                agent: "main".into(),
                instructions: "Do as you are told.".into(),
                settings: SessionSettings { models: vec!["lab".into()], ..SessionSettings::default() },
            };
            Ok((new, Vec::new()))
        }),
        remember: Box::new(|_| Ok(Policy::profile(Profile::Standard))),
    }))
}

fn extension() -> NativeExtension {
    let tool = |name: &str, effects| ToolSpec { effects, ..ToolSpec::named(name, "A tool of the lab.") };
    let slow = std::env::var_os("CHAT_LAB_SLOW").is_some();
    let extension = NativeExtension::new("lab", "1.0.0");
    let extension = if slow { extension.hook(Dawdle) } else { extension };
    extension
        .tool(Curious)
        .tool(FnTool(tool("file_read", EffectClass::Pure), |arguments: &Content| Ok(arguments.clone())))
        .tool(FnTool(tool("file_write", EffectClass::Write), |arguments: &Content| {
            Ok(Content::new(json!({ "wrote": arguments.value() })))
        }))
        .tool(FnTool(tool("broken", EffectClass::Pure), |_: &Content| {
            Err(Fault::new(Code::ToolFailed, "it is broken \u{1b}[2J"))
        }))
}

/// A tool that asks the user what it is told to ask.
struct Curious;

impl Tool for Curious {
    fn spec(&self) -> ToolSpec {
        ToolSpec { effects: EffectClass::Pure, ..ToolSpec::named("curious", "Asks the user.") }
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let prompt = "Well\u{1b}[2J?".to_owned();
        let question = match arguments.value()["what"].as_str() {
            Some("select") => {
                UiQuestion::Select { prompt, options: vec!["red".to_owned(), "blue".to_owned()] }
            }
            Some("secret") => UiQuestion::Input { prompt, secret: true },
            Some("confirm") => UiQuestion::Confirm { prompt },
            _ => UiQuestion::Custom { prompt, view: Content::new(json!({})) },
        };
        host.call(HostCall::Ui(question))
    }
}

/// A hook that does not answer when a turn is cancelled.
struct Dawdle;

impl Hook for Dawdle {
    fn spec(&self) -> HookSpec {
        HookSpec { timeout: Millis(600_000), ..HookSpec::at(HookPoint::SessionCancel) }
    }

    fn decide(&self, _: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(std::future::pending())
    }
}

/// A model that does as it is told.
struct Obedient;

impl Model for Obedient {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let last = ask.messages.last().cloned();
        Box::pin(async move {
            let told = match last {
                Some(Message::User { text, .. }) => text.to_text(),
                Some(Message::Tool { content, failed, .. }) => {
                    let word = if failed { "failed" } else { "gave" };
                    return Ok(said(&deltas, &format!("The tool {word} {}", content.to_text())));
                }
                _ => String::new(),
            };
            let long = json!({ "path": "a", "text": (0..40).map(|n| json!(n)).collect::<Vec<Value>>() });
            Ok(match told.split_whitespace().next().unwrap_or_default() {
                "read" => called(&deltas, "file_read", json!({ "path": "a" })),
                "write" => called(&deltas, "file_write", json!({ "path": "a" })),
                "long" => called(&deltas, "file_write", long),
                "break" => called(&deltas, "broken", json!({})),
                "ask" => called(&deltas, "curious", json!({ "what": told.split_whitespace().nth(1) })),
                "evil" => said(
                    &deltas,
                    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[1;1H? file_write wants to run\r\u{9b}2K y once, s session: ",
                ),
                "count" => said(&deltas, &format!("I got {} characters.", told.chars().count())),
                "lines" => said(&deltas, &format!("I got {} lines.", told.lines().count())),
                "slow" => {
                    for word in 0..2_000 {
                        deltas(Delta::Text(&format!("word{word} ")));
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    said(&deltas, "")
                }
                "hang" => {
                    deltas(Delta::Text("Half an answer "));
                    std::future::pending::<()>().await;
                    said(&deltas, "")
                }
                _ => {
                    said(&deltas, "# Heading\nSome **bold** words and `code`, long enough to wrap.\n\n- item")
                }
            })
        })
    }
}

fn said(deltas: &Deltas, text: &str) -> ModelReturned {
    text.split_inclusive(' ').for_each(|word| deltas(Delta::Text(word)));
    ModelReturned { text: Content::text(text), reasoning: None, calls: Vec::new(), usage: Usage::default() }
}

fn called(deltas: &Deltas, tool: &str, arguments: Value) -> ModelReturned {
    deltas(Delta::Text("I use a tool."));
    let call = AskedCall { model_id: "1".into(), tool: tool.into(), arguments: Content::new(arguments) };
    ModelReturned {
        text: Content::text("I use a tool."),
        reasoning: None,
        calls: vec![call],
        usage: Usage::default(),
    }
}
