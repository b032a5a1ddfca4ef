//! Sandboxed guardrails that trap, never end or say what nobody can understand: nothing passes them, the record says so, and the reason
//! reaches the user, by the turn's report and on their channel.

use std::sync::{Arc, Mutex};

use holdfast_bus::NewEvent;
use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::message::{AskedCall, Message, Usage};
use holdfast_contract::problem::Fault;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, TurnOutcome};
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Channel, NativeExtension, now};
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_runtime::TurnReport;
use holdfast_testkit::Lab;
use holdfast_testkit::pieces::tool;
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{Breaks, MapVault, broken_guard, lane, manifest};
use serde_json::{Value, json};

const SECRET: &str = "the treasure is under the oak";

/// What reached a user.
#[derive(Clone, Default)]
struct Phone(Arc<Mutex<Vec<String>>>);

impl Channel for Phone {
    fn send_to_user(
        &self,
        _: String,
        text: String,
        _: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        self.0.lock().unwrap().push(text);
        now(Ok(()))
    }
}

/// A model that fetches and then repeats all that it was told.
struct Parrot;

impl Model for Parrot {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let (text, calls) = match ask.messages.last() {
            Some(Message::Tool { content, .. }) => (content.clone(), Vec::new()),
            _ => {
                let arguments = Content::new(json!({}));
                (
                    Content::default(),
                    vec![AskedCall { model_id: "1".into(), tool: "fetch".into(), arguments }],
                )
            }
        };
        let returned = ModelReturned { text, reasoning: None, calls, usage: Usage::default() };
        Box::pin(std::future::ready(Ok(returned)))
    }
}

/// A lab whose only guardrail breaks like this.
async fn lab(point: &str, breaks: Breaks, phone: &Phone) -> Lab {
    let vault = Arc::new(MapVault::default());
    let guard = vault.add(&manifest("guard", ""), broken_guard(point, breaks), &SandboxOptions::small());
    let fetch = tool("fetch", EffectClass::Pure, |_| json!(SECRET));
    Lab::build()
        .model("script", Parrot)
        .extension(NativeExtension::new("web", "1.0.0").tool(fetch).replayable())
        .extension(NativeExtension::new("phone", "1.0.0").channel(phone.clone()))
        .lane(lane(&vault), [guard])
        .start()
        .await
}

/// What the turn's report says.
fn told(report: &TurnReport) -> String {
    match &report.outcome {
        TurnOutcome::Blocked { reason } => reason.clone(),
        _ => report.answer.as_ref().map(Content::to_text).unwrap_or_default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandboxed_guardrail_that_breaks_has_closed_and_the_user_is_told_why() {
    let ways = [Breaks::Traps, Breaks::Loops, Breaks::Babbles, Breaks::PointsAway];
    let points = [
        "sanitize-input",
        "guard-input",
        "sanitize-result",
        "guard-result",
        "sanitize-output",
        "guard-output",
    ];
    for (breaks, point) in ways.into_iter().flat_map(|way| points.map(|point| (way, point))) {
        let place = format!("{breaks:?} at {point}");
        let phone = Phone::default();
        let lab = lab(point, breaks, &phone).await;
        let report = lab.say("where is it?").await;
        let frames = lab.frames();

        let faulted = &bodies(&frames, FrameKind::HookFaulted)[0]["fault"];
        let code = faulted["code"].as_str().unwrap();
        let blocked: Vec<Value> =
            bodies(&frames, FrameKind::GuardVerdict).into_iter().filter(|it| it["blocked"] == true).collect();
        assert_eq!(blocked.len(), 1, "{place}");
        assert_eq!(blocked[0]["point"], point.replace('-', "_"), "{place}");
        assert!(
            blocked[0]["reasons"][0]["reason"].as_str().unwrap().starts_with(code),
            "{place}: {blocked:?}"
        );

        let stops_the_turn = !point.ends_with("-result");
        let ended_blocked = matches!(report.outcome, TurnOutcome::Blocked { .. });
        assert_eq!(ended_blocked, stops_the_turn, "{place}: {report:?}");
        assert!(told(&report).contains(code), "{place}: the report has the reason: {report:?}");
        assert!(!told(&report).contains(SECRET), "{place}: {report:?}");
        if point.ends_with("-input") {
            assert!(bodies(&frames, FrameKind::ToolCalled).is_empty(), "{place}: no model was asked");
        }
        if !stops_the_turn {
            let settled = &bodies(&frames, FrameKind::ToolSettled)[0];
            assert_eq!(
                (&settled["status"], &settled["fault"]["code"]),
                (&json!("failed"), &json!("HF-3204"))
            );
        }

        // The same on a channel. That it has broken before does not bypass it.
        let said = json!({ "text": "where is it?", "user_id": "ada", "channel_id": "phone" });
        lab.runtime.publish(NewEvent::new("user.message", said)).await.unwrap();
        lab.until("an answer", |_| !phone.0.lock().unwrap().is_empty()).await;
        let received = phone.0.lock().unwrap().join("\n");
        assert!(received.contains(code), "{place}: the channel has the reason: {received}");
        assert!(!received.contains(SECRET), "{place}: {received}");

        let verdict = lab.replay("s1");
        assert!(verdict.identical, "{place}: {verdict:#?}");
    }
}
