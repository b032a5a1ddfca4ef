//! Slash commands: typed on a channel, and run over the protocol; and the orchestrator's own tools that reach channels and other agents.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_contract::role::Role;
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Functions, NativeExtension, now};
use holdfast_runtime::CommandDone;
use holdfast_testkit::pieces::{agent, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder, Script, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Mailbox, inputs, outcomes};

/// An extension with a command that says what it was given, and one that fails.
struct Dice;

impl Functions for Dice {
    fn has(&self, role: Role) -> bool {
        role == Role::Commands
    }

    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        _: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        (role == Role::Commands && function == "run").then(|| {
            let asked = arguments.value().clone();
            now(match asked["name"].as_str() {
                Some("roll") => Ok(Content::text(format!("rolled {}", asked["arguments"].as_str().unwrap()))),
                _ => Err(Fault::new(Code::ToolFailed, "the dice are lost")),
            })
        })
    }
}

fn dice() -> NativeExtension {
    let dice = NativeExtension::new("dice", "1.0.0").functions(Dice);
    dice.command("roll", "Rolls dice.").command("lose", "Loses them.").command("help", "Is not heard.")
}

pub fn lab(mailbox: &Mailbox, steps: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    let chat = NativeExtension::new("chat", "1.0.0").channel(mailbox.clone());
    let tutor = NativeExtension::new("tutor", "1.0.0").agent(agent("tutor", "other"));
    Lab::build()
        .script(steps)
        .model("other", Script::new(vec![ScriptStep::says("from the other"); 4]))
        .extension(chat)
        .extension(tutor)
        .extension(dice())
        .extension(holdfast_ext_orchestrator::extension())
}

pub async fn typed(lab: &Lab, mailbox: &Mailbox, text: &str) -> String {
    let before = mailbox.all().len();
    let said = json!({ "text": text, "user_id": "ada", "channel_id": "chat" });
    lab.runtime.publish(NewEvent::new("user.message", said)).await.unwrap();
    lab.until("an answer", |_| mailbox.all().len() > before).await;
    mailbox.all().pop().unwrap()
}

#[tokio::test]
async fn safe_commands_are_answered_on_a_channel_without_a_model() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, []).start().await;
    let help = typed(&lab, &mailbox, "/help").await;
    assert!(
        help.contains("/model [NAME]") && help.contains("/roll") && help.contains("Rolls dice. (dice)"),
        "{help}"
    );
    assert!(!help.contains("Is not heard."), "an extension's command does not hide a built-in one: {help}");
    assert!(typed(&lab, &mailbox, "/agents@bot").await.contains("tutor (tool): The agent tutor."));
    assert!(typed(&lab, &mailbox, "/tools").await.contains("find_tools: Searches all installed tools"));
    assert_eq!(typed(&lab, &mailbox, "/cost").await, "ada: 0 model calls, 0 tool calls, 0 tokens, $0.000000");
    let model = typed(&lab, &mailbox, "/model").await;
    assert_eq!(model, "ada: This conversation uses `script`. There are: other, script.");
    let unknown = typed(&lab, &mailbox, "/model nonsense").await;
    assert!(
        unknown.contains("no model `nonsense`") && unknown.contains("There are: other, script."),
        "{unknown}"
    );
    let run = bodies(&lab.frames_of("chat.ada"), FrameKind::CommandRun);
    let names: Vec<&str> = run.iter().map(|body| body["command"].as_str().unwrap()).collect();
    assert_eq!(names, ["help", "agents", "tools", "cost", "model"]);
    assert!(inputs(&lab, "chat.ada").is_empty(), "nothing of it was said to a model");
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn what_is_no_safe_command_is_said_to_the_agent() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, [ScriptStep::says("one"), ScriptStep::says("two")]).start().await;
    assert_eq!(typed(&lab, &mailbox, "/roll 2d6").await, "ada: one");
    assert_eq!(typed(&lab, &mailbox, "/etc/passwd is odd").await, "ada: two");
    assert_eq!(inputs(&lab, "chat.ada"), ["/roll 2d6", "/etc/passwd is odd"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_conversation_goes_on_with_another_model_and_a_new_one_begins() {
    let mailbox = Mailbox::default();
    let lab = lab(&mailbox, [ScriptStep::says("my name is Script")]).start().await;
    typed(&lab, &mailbox, "remember the blue door").await;
    assert_eq!(typed(&lab, &mailbox, "/model other").await, "ada: The conversation goes on with `other`.");
    assert_eq!(typed(&lab, &mailbox, "and now?").await, "ada: from the other");
    let frames = lab.frames_of("chat.ada");
    assert_eq!(bodies(&frames, FrameKind::SessionSet)[0]["models"], json!(["other", "script"]));
    let asked = bodies(&frames, FrameKind::ModelRequested);
    assert_eq!((&asked[0]["model"], &asked[1]["model"]), (&json!("script"), &json!("other")));

    assert_eq!(typed(&lab, &mailbox, "/new").await, "ada: A new conversation begins.");
    assert_eq!(typed(&lab, &mailbox, "hello").await, "ada: my name is Script");
    assert_eq!(lab.findings(), Vec::new());
    for session in ["chat.ada", "chat.ada.2"] {
        assert!(lab.replay(session).identical, "{session}");
    }
    lab.stop().await;
}

pub fn nowhere() -> Result<holdfast_runtime::NewSession, Problem> {
    panic!("no session is needed here")
}

#[tokio::test]
async fn an_extensions_command_is_run_and_recorded() {
    let lab = lab(&Mailbox::default(), []).start().await;
    let session = lab.session().id().clone();
    let names: Vec<String> = lab.runtime.commands().into_iter().map(|command| command.name).collect();
    assert_eq!(names, ["help", "tools", "agents", "model", "cost", "questions", "new", "lose", "roll"]);
    let done = lab.runtime.run_command(&session, "roll", " 2d6 ", nowhere).await.unwrap();
    assert_eq!(done, CommandDone { output: Content::text("rolled 2d6"), session: None });
    let run = bodies(&lab.frames(), FrameKind::CommandRun);
    assert_eq!((run.len(), &run[0]["command"], &run[0]["arguments"]), (1, &json!("roll"), &json!("2d6")));
    assert_eq!(run[0]["output"]["json"], "rolled 2d6");
    let lost = lab.runtime.run_command(&session, "lose", "", nowhere).await.unwrap_err();
    assert!(lost.what.contains("the dice are lost"), "{lost}");
    let unknown = lab.runtime.run_command(&session, "frobnicate", "", nowhere).await.unwrap_err();
    assert_eq!(unknown.code, Code::CommandUnknown);
    assert_eq!(bodies(&lab.frames(), FrameKind::CommandRun).len(), 1, "what did not happen is not recorded");
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test]
async fn the_agent_sends_to_a_channel_and_starts_work_in_the_background() {
    let mailbox = Mailbox { proactive: true, ..Mailbox::default() };
    let calls = [
        ("list_channels", json!({})),
        ("send_to_channel", json!({ "text": "the washing is done" })),
        ("send_to_channel", json!({ "text": "hello", "channel_id": "pigeon" })),
        ("start_background_task", json!({ "task": "tidy up", "agent": "tutor" })),
    ];
    let steps = [ScriptStep::calls(calls), ScriptStep::says("on its way")];
    let lab = lab(&mailbox, steps).start().await;
    lab.say("tell me on chat, and tidy up").await;
    let told: Vec<Result<Value, Fault>> = outcomes(&lab);
    assert_eq!(told[0].as_ref().unwrap(), &json!({ "channels": ["chat"], "default": "chat" }));
    assert_eq!(told[1].as_ref().unwrap(), &json!({ "sent_to": "chat" }));
    let unknown = told[2].as_ref().unwrap_err();
    assert!(
        unknown.code == Code::ChannelUnknown && unknown.message.contains("There are: chat."),
        "{unknown}"
    );
    assert!(told[3].as_ref().unwrap()["started"].as_str().unwrap().starts_with("bus."));
    lab.until("both", |_| mailbox.all().len() == 2).await;
    let mut all = mailbox.all();
    all.sort();
    assert_eq!(all, ["*: from the other", "*: the washing is done"]);
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test]
async fn sending_and_starting_are_judged_by_the_policy() {
    let calls = [
        ("list_channels", json!({})),
        ("send_to_channel", json!({ "text": "hello" })),
        ("start_background_task", json!({ "task": "tidy up" })),
    ];
    let mailbox = Mailbox { proactive: true, ..Mailbox::default() };
    let lab = lab(&mailbox, [ScriptStep::calls(calls), ScriptStep::says("no")])
        .profile(Profile::Safe)
        .unattended()
        .start()
        .await;
    lab.say("tell me").await;
    let settled: Vec<Value> =
        bodies(&lab.frames(), FrameKind::ToolSettled).iter().map(|body| body["status"].clone()).collect();
    assert_eq!(settled.iter().filter(|status| **status == json!("done")).count(), 1, "{settled:?}");
    assert!(mailbox.all().is_empty());
    lab.stop().await;
}

/// An extension that shows calls of its tool itself, and one of whose functions breaks for some of them.
struct Painter;

impl Functions for Painter {
    fn call(
        &self,
        role: Role,
        function: String,
        arguments: Content,
        _: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        let asked = arguments.value().clone();
        (role == Role::Renderer).then(|| {
            now(match function.as_str() {
                "render-call" if asked["arguments"]["path"] == "lost" => {
                    Err(Fault::new(Code::ToolFailed, "the paint is dry"))
                }
                "render-call" => Ok(Content::text(format!("looks at **{}**", asked["arguments"]["path"]))),
                _ if asked["result"] == "dull" => Ok(Content::default()),
                _ => Ok(Content::text(format!("saw {}", asked["result"]))),
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_shows_the_calls_of_its_own_tools_and_of_no_others() {
    let descriptor = Descriptor {
        kind: "renderer".into(),
        id: "painter".into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Other(Content::new(json!({ "calls": true, "results": true }))),
    };
    let own = tool("look", EffectClass::Pure, |_| json!("seen"));
    let other = tool("work", EffectClass::Pure, |_| json!("done"));
    let painter =
        NativeExtension::new("painter", "1.0.0").tool(own).functions(Painter).descriptor(descriptor);
    let lab = Lab::build().extension(painter).extension(NativeExtension::new("kit", "1.0.0").tool(other));
    let lab = lab.script([ScriptStep::says("hello")]).start().await;
    let shown = async |tool: &str, path: &str, result: &str| {
        let arguments = Content::new(json!({ "path": path }));
        lab.runtime.rendered(&tool.into(), arguments, Content::text(result)).await
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(shown("look", "a", "seen").await.unwrap(), (text("looks at **\"a\"**"), text("saw \"seen\"")));
    assert_eq!(
        shown("look", "a", "dull").await.unwrap(),
        (text("looks at **\"a\"**"), None),
        "left to the surface"
    );
    assert_eq!(
        shown("look", "lost", "x").await.unwrap(),
        (None, text("saw \"x\"")),
        "what fails is left to it too"
    );
    assert_eq!(shown("work", "a", "x").await.unwrap_err().code, Code::ToolUnknown);
    assert!(
        bodies(&lab.frames_of("system"), FrameKind::ExtensionFaulted).is_empty(),
        "and takes nobody down"
    );
    // Row E15: each is in the log, by digests.
    lab.runtime.settled().await.unwrap();
    let called = bodies(&lab.frames_of("system"), FrameKind::RendererCalled);
    assert_eq!(called.len(), 3, "{called:?}");
    let digest = |text: &str| json!({ "digest": Digest::of(text.as_bytes()), "bytes": text.len() });
    assert_eq!((&called[0]["id"], &called[0]["tool"]), (&json!("painter"), &json!("look")));
    assert_eq!(called[0]["arguments"], json!(Content::new(json!({ "path": "a" })).digest()));
    assert_eq!(called[0]["result"], json!(Content::text("seen").digest()));
    assert_eq!(called[0]["call_shown"], digest("looks at **\"a\"**"));
    assert_eq!(called[0]["result_shown"], digest("saw \"seen\""));
    assert_eq!(called[1].get("result_shown"), None, "it left that to the surface");
    assert_eq!(called[2].get("call_shown"), None);
    assert!(called[2]["faults"][0]["message"].as_str().unwrap().contains("the paint is dry"), "{called:?}");
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("system").identical);
    lab.stop().await;
}

/// A renderer that publishes, reads the clock, and says what became of it.
struct Meddling;

impl Functions for Meddling {
    fn call(
        &self,
        role: Role,
        _: String,
        _: Content,
        host: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        (role == Role::Renderer).then(|| -> Later<_> {
            Box::pin(async move {
                let event = json!({ "topic": "painter.drawn", "payload": {} });
                let published = host.call(HostCall::of(HostCallKind::EventPublish, event)).await;
                host.call(HostCall::Clock).await?;
                Ok(Content::text(published.unwrap_err().message))
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renderer_has_no_side_effects() {
    let descriptor = Descriptor {
        kind: "renderer".into(),
        id: "painter".into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Other(Content::new(json!({ "calls": true, "results": true }))),
    };
    let own = tool("look", EffectClass::Pure, |_| json!("seen"));
    let painter =
        NativeExtension::new("painter", "1.0.0").tool(own).functions(Meddling).descriptor(descriptor);
    let lab = Lab::build().extension(painter).script([ScriptStep::says("hello")]).start().await;
    let shown = lab.runtime.rendered(&"look".into(), Content::default(), Content::default()).await.unwrap();
    let refused = Some("a renderer may not call `event.publish`".to_owned());
    assert_eq!(shown, (refused.clone(), refused));
    lab.runtime.settled().await.unwrap();
    let called = bodies(&lab.frames_of("system"), FrameKind::HostCalled);
    assert_eq!(called.len(), 2, "{called:?}");
    assert_eq!(
        (&called[0]["ask"], &called[0]["outcome"]["failure"]["code"]),
        (&json!("event.publish"), &json!("HF-3206"))
    );
    assert!(lab.replay("system").identical);
    lab.stop().await;
}

/// A renderer that answers with more than a surface shows.
struct Verbose;

impl Functions for Verbose {
    fn call(
        &self,
        role: Role,
        _: String,
        _: Content,
        _: Arc<dyn Host>,
    ) -> Option<Later<Result<Content, Fault>>> {
        (role == Role::Renderer).then(|| now(Ok(Content::text("x".repeat(70_000)))))
    }
}

// Row E15: what a renderer answers does not reach the log, whatever its size.
#[tokio::test(flavor = "multi_thread")]
async fn a_renderer_that_answers_too_much_is_recorded_as_a_fault() {
    let descriptor = Descriptor {
        kind: "renderer".into(),
        id: "verbose".into(),
        priority: None,
        missing_secrets: Vec::new(),
        payload: Payload::Other(Content::new(json!({ "calls": true, "results": true }))),
    };
    let own = tool("look", EffectClass::Pure, |_| json!("seen"));
    let verbose =
        NativeExtension::new("verbose", "1.0.0").tool(own).functions(Verbose).descriptor(descriptor);
    let lab = Lab::build().extension(verbose).script([]).start().await;
    let shown = lab.runtime.rendered(&"look".into(), Content::default(), Content::text("x")).await.unwrap();
    assert_eq!(shown, (None, None), "left to the surface");
    lab.runtime.settled().await.unwrap();
    let called = bodies(&lab.frames_of("system"), FrameKind::RendererCalled);
    let faults: Vec<&str> =
        called[0]["faults"].as_array().unwrap().iter().map(|it| it["message"].as_str().unwrap()).collect();
    assert!(faults.len() == 2 && faults.iter().all(|it| it.contains("more than 65536 bytes")), "{faults:?}");
    lab.stop().await;
}
