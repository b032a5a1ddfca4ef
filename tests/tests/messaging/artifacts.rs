//! Files that tools make: the model sees them, the user has them, and what was stopped has none.

use std::sync::{Arc, Mutex};

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::manifest::{Grants, HandlerSpec};
use holdfast_contract::message::Message;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::Later;
use holdfast_ext_results::{ResultsOptions, extension};
use holdfast_lane_native::NativeExtension;
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_testkit::pieces::{agent, hook, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{MapVault, lane, manifest, telltale};
use holdfast_testkit::{Lab, LabBuilder, Script, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Mailbox, Takes, later};
use crate::streaming_fixtures::Screen;

/// What each request had of results and their files.
type Seen = Arc<Mutex<Vec<Vec<String>>>>;

/// A model that keeps the results that it is shown, each with its files.
struct Seeing(Script, Seen);

impl Model for Seeing {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let results = ask.messages.iter().filter_map(|message| match message {
            Message::Tool { content, attachments, .. } => {
                let files: Vec<String> = attachments.iter().map(ToString::to_string).collect();
                Some(format!("{} + {files:?}", content.to_text()))
            }
            _ => None,
        });
        self.1.lock().unwrap().push(results.collect());
        self.0.complete(ask, deltas)
    }
}

fn drawn(base64: &str) -> Value {
    json!({ "points": 3, "attachments": [{ "name": "chart.png", "media_type": "image/png", "base64": base64 }] })
}

/// A tool that draws, and the built-in extension that takes what it draws.
fn drawing() -> LabBuilder {
    let kit =
        NativeExtension::new("kit", "1.0.0").tool(tool("draw", EffectClass::Pure, |_| drawn("iVBORw0K")));
    Lab::build().extension(kit).extension(extension(ResultsOptions::default()))
}

fn draws() -> [ScriptStep; 2] {
    [ScriptStep::calls([("draw", json!({}))]), ScriptStep::says("here it is")]
}

fn asked() -> NewEvent {
    NewEvent::new("user.message", json!({ "text": "draw it", "user_id": "ada", "channel_id": "chat" }))
}

const CHART: &str = "chart.png (image/png, 6 bytes)";

#[tokio::test]
async fn the_model_sees_what_a_tool_made_and_the_report_names_it() {
    let seen: Seen = Arc::default();
    let lab = drawing().model("script", Seeing(Script::new(draws()), seen.clone())).start().await;
    let report = lab.say("draw it").await;
    assert_eq!(report.files.iter().map(ToString::to_string).collect::<Vec<_>>(), [CHART]);
    let shown = format!(r#"{{"attachments":["{CHART}"],"points":3}} + ["{CHART}"]"#);
    assert_eq!(*seen.lock().unwrap(), [vec![], vec![shown]]);
    let settled = bodies(&lab.frames(), FrameKind::ToolSettled);
    assert_eq!(settled[0]["artifacts"][0]["name"], "chart.png");
    assert!(lab.replay("s1").identical);
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.say("thank you").await.files.is_empty(), "they are of the turn that made them");
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_sends_the_text_and_then_the_files() {
    let mailbox = Mailbox { files: true, ..Mailbox::default() };
    let chat = NativeExtension::new("chat", "1.0.0").channel(mailbox.clone());
    let lab = drawing().script(draws()).extension(chat).start().await;
    lab.runtime.publish(asked()).await.unwrap();
    lab.until("text and file", |_| mailbox.all().len() == 2).await;
    assert_eq!(mailbox.all(), ["ada: here it is".to_owned(), format!("ada: {CHART}")]);
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn on_a_channel_without_files_the_user_is_told_of_them() {
    let (mailbox, screen) = (Mailbox::default(), Screen::default());
    let told = format!("[{CHART} was made. This channel does not send files.]");
    let chat = NativeExtension::new("chat", "1.0.0").channel(mailbox.clone());
    for (chat, streams) in [(chat, false), (screen.extension(), true)] {
        let lab = drawing().script(draws()).extension(chat).start().await;
        lab.runtime.publish(asked()).await.unwrap();
        if streams {
            lab.until("the file", |_| !screen.told("ada", "whole").is_empty()).await;
            assert_eq!(screen.told("ada", "end"), ["here it is"]);
            assert_eq!(screen.told("ada", "whole"), [told.as_str()]);
        } else {
            lab.until("text and file", |_| mailbox.all().len() == 2).await;
            assert_eq!(mailbox.all(), ["ada: here it is".to_owned(), format!("ada: {told}")]);
        }
        lab.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandboxed_channel_sends_files() {
    let vault = Arc::new(MapVault::default());
    let grants = Grants { interfaces: vec!["events".to_owned()], ..Grants::default() };
    let found = vault.add_granted(&manifest("chat", ""), telltale(1), &SandboxOptions::small(), grants);
    let takes = Takes::default();
    let probe = NativeExtension::new("probe", "1.0.0")
        .subscribes("relay", HandlerSpec::Custom)
        .subscriber(takes.clone());
    let text =
        json!({ "attachments": [{ "name": "a.txt", "media_type": "text/plain", "text": "one, two" }] });
    let kit =
        NativeExtension::new("kit", "1.0.0").tool(tool("draw", EffectClass::Pure, move |_| text.clone()));
    let lab = Lab::build()
        .script(draws())
        .extension(kit)
        .extension(extension(ResultsOptions::default()))
        .extension(probe)
        .lane(lane(&vault), [found])
        .start()
        .await;
    lab.runtime.publish(asked()).await.unwrap();
    later(&lab, "text and file", |_| takes.all().len() == 3).await;
    let told: Vec<Value> = takes.all().iter().map(|event| event["payload"].clone()).collect();
    assert_eq!(told[0], json!([1, "started"]));
    assert_eq!((&told[1][2], &told[1][3]), (&json!("ada"), &json!("here it is")));
    assert_eq!((&told[2][2], &told[2][3]), (&json!("ada"), &json!("a.txt: one, two")));
    lab.stop().await;
}

#[tokio::test]
async fn the_user_has_what_an_agent_made_that_was_called() {
    let script = [
        ScriptStep::calls([("artist", json!({ "task": "draw" }))]),
        ScriptStep::says("the artist has drawn it"),
    ];
    let lab = drawing()
        .script(script)
        .model("other", Script::new(draws()))
        .extension(NativeExtension::new("studio", "1.0.0").agent(agent("artist", "other")))
        .start()
        .await;
    let report = lab.say("draw it").await;
    assert_eq!(report.files.iter().map(ToString::to_string).collect::<Vec<_>>(), [CHART]);
    lab.stop().await;
}

#[tokio::test]
async fn a_result_that_a_guardrail_stops_has_no_files() {
    let seen: Seen = Arc::default();
    let stops =
        hook(HookSpec::at(HookPoint::GuardResult), |_| Decision::Block { reason: "no charts".to_owned() });
    let lab = drawing()
        .model("script", Seeing(Script::new(draws()), seen.clone()))
        .extension(NativeExtension::new("guard", "1.0.0").hook(stops))
        .start()
        .await;
    let report = lab.say("draw it").await;
    assert!(report.files.is_empty() && report.answer.is_some(), "{report:?}");
    assert_eq!(bodies(&lab.frames(), FrameKind::ToolSettled)[0].get("artifacts"), None);
    let shown = seen.lock().unwrap().concat();
    assert!(shown.len() == 1 && shown[0].contains("no charts") && shown[0].ends_with("+ []"), "{shown:?}");
    lab.stop().await;
}

#[tokio::test]
async fn a_file_that_makes_no_sense_is_left_out_and_the_model_is_told_why() {
    let seen: Seen = Arc::default();
    let kit =
        NativeExtension::new("kit", "1.0.0").tool(tool("draw", EffectClass::Pure, |_| drawn("not base64!")));
    let lab = Lab::build()
        .extension(kit)
        .extension(extension(ResultsOptions::default()))
        .model("script", Seeing(Script::new(draws()), seen.clone()))
        .start()
        .await;
    assert!(lab.say("draw it").await.files.is_empty());
    let shown = seen.lock().unwrap().concat();
    assert!(shown[0].contains("not taken: the content of `chart.png` is not valid base64"), "{shown:?}");
    lab.stop().await;
}
