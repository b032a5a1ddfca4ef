//! A hook in each lane tries every host call that has side effects or does I/O: each is refused and recorded, and the turn goes on as the
//! hook decides. A new host call that hooks may not make is tried without a change here.

use std::collections::BTreeMap;

use holdfast_contract::content::Content;
use holdfast_contract::frame::Frame;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Limits;
use holdfast_contract::problem::Code;
use holdfast_model::script::ScriptStep;
use holdfast_testkit::Lab;
use serde_json::{Value, json};

use super::asks::{Asked, Grounds, folder, stages};
use super::table::{arguments, askable};
use crate::conformance::lanes::{self, ConformingLane};

/// What a gate leaves behind of one tool call: the refusal, and the verdict.
type Judged = Vec<(String, Value)>;

/// The calls that a hook at this point may not make.
fn forbidden(grounds: &Grounds<'_>, point: HookPoint) -> Vec<Asked> {
    let folder = folder(grounds.place);
    let all = askable(grounds.lane, grounds.is_granted).filter(|kind| !kind.is_for_hooks(point));
    all.map(|kind| (kind, arguments(kind, &folder))).collect()
}

fn name(point: HookPoint) -> String {
    json!(point).as_str().unwrap().to_owned()
}

/// Whether the gate allows a call after it was refused this; it denies the others.
fn allows(kind: HostCallKind) -> bool {
    HostCallKind::ALL.iter().position(|other| *other == kind).unwrap() % 2 == 0
}

/// A session with enough rounds for all of them.
async fn session(grounds: &Grounds<'_>, steps: Vec<ScriptStep>, says: &str) -> Lab {
    let limits = Limits { max_turns: 200, ..Limits::default() };
    let lab = grounds.lab(steps, |lab| lab.limits(limits)).await;
    let report = lab.say(says).await;
    assert_eq!(report.answer.as_ref().map(Content::to_text).as_deref(), Some("done"), "{grounds}");
    assert!(lab.findings().is_empty(), "{grounds}: {:?}", lab.findings());
    assert!(lab.replay("s1").identical, "{grounds}: {:#?}", lab.replay("s1"));
    let place = folder(grounds.place);
    assert!(!place.join("new.txt").exists() && !place.join("made").exists(), "{grounds}: it did act");
    lab
}

/// The calls that were refused to the extension's hooks, in their order.
fn refused(frames: &[Frame], grounds: &Grounds<'_>, point: HookPoint) -> Vec<Value> {
    let is_called = |frame: &&Frame| frame.envelope.kind.as_str() == "host.called";
    let bodies: Vec<Value> = frames.iter().filter(is_called).filter_map(|it| it.body.clone()).collect();
    for body in &bodies {
        assert_eq!(
            body["outcome"]["failure"]["code"],
            Code::HookSideEffect.to_string(),
            "{grounds} at {point:?}: {body}"
        );
        assert!(body["hook"].as_str().is_some_and(|hook| hook.starts_with("conformance/")), "{body}");
    }
    bodies
}

/// A gate tries one call for each tool call, and then allows or denies it.
async fn gate(grounds: &Grounds<'_>) -> BTreeMap<HostCallKind, Judged> {
    let point = HookPoint::ToolGate;
    let calls = forbidden(grounds, point);
    let steps = calls.iter().map(|asked| {
        let rest = if allows(asked.0) { "allow" } else { "deny it was %" };
        let told = format!("tool_gate {}{rest}", stages(std::slice::from_ref(asked)));
        ScriptStep::calls([("act", json!({ "do": told }))])
    });
    let lab = session(grounds, steps.chain([ScriptStep::says("done")]).collect(), "go").await;
    let frames = lab.frames();
    let asked: Vec<Value> = refused(&frames, grounds, point).iter().map(|body| body["ask"].clone()).collect();
    let expected: Vec<Value> = calls.iter().map(|(kind, _)| json!(kind.name())).collect();
    assert_eq!(asked, expected, "{grounds}");
    let mut judged: Vec<Judged> = Vec::new();
    for frame in &frames {
        let (kind, mut body) = (frame.envelope.kind.as_str(), frame.body.clone().unwrap_or_default());
        if kind == "tool.called" {
            judged.push(Judged::new());
        }
        // What follows the last one is about the answer.
        if judged.last().and_then(|it| it.last()).is_some_and(|(kind, _)| kind == "tool.settled") {
            continue;
        }
        let Some(judged) = judged.last_mut() else { continue };
        if ["host.called", "hook.decided", "tool.decided", "tool.settled"].contains(&kind) {
            // Which call it is, and digests of arguments with this test's folder in them.
            for own in ["call", "subject", "content"] {
                body.as_object_mut().unwrap().remove(own);
            }
            body["arguments"].take();
            judged.push((kind.to_owned(), body));
        }
    }
    for ((kind, _), judged) in calls.iter().zip(&judged) {
        let verdict =
            judged.iter().find(|(kind, _)| kind == "tool.decided").map(|(_, body)| &body["verdict"]);
        let verdict = verdict.unwrap_or_else(|| panic!("{grounds}: {kind}: {judged:#?}"));
        if allows(*kind) {
            assert_eq!(*verdict, json!("allowed"), "{grounds}: {kind}");
        } else {
            assert_eq!(verdict["denied"]["reason"], "it was refused", "{grounds}: {kind}");
        }
    }
    lab.stop().await;
    calls.into_iter().map(|(kind, _)| kind).zip(judged).collect()
}

/// A hook that judges what is said tries all calls, one after the other, and then does what it is told.
async fn judge(grounds: &Grounds<'_>, point: HookPoint, rest: &str) {
    let calls = forbidden(grounds, point);
    let says = format!("{} {}{rest}", name(point), stages(&calls));
    let lab = session(grounds, vec![ScriptStep::says("done")], &says).await;
    let frames = lab.frames();
    let asked: Vec<Value> = refused(&frames, grounds, point).iter().map(|body| body["ask"].clone()).collect();
    let expected: Vec<Value> = calls.iter().map(|(kind, _)| json!(kind.name())).collect();
    assert_eq!(asked, expected, "{grounds} at {point:?}");
    let decided = frames.iter().filter(|frame| frame.envelope.kind.as_str() == "hook.decided");
    let mut bodies = decided.filter_map(|frame| frame.body.as_ref());
    let spoke = bodies.any(|body| {
        body["point"] == name(point).as_str() && body["decision"].to_string().contains("it was refused")
    });
    assert!(spoke, "{grounds} at {point:?}: what the hook decides counts");
    lab.stop().await;
}

/// Lets the hooks of every lane try, with every grant and with none.
pub async fn sweep() {
    for is_granted in [true, false] {
        let mut first: Option<BTreeMap<HostCallKind, Judged>> = None;
        for lane in lanes::all() {
            let place = tempfile::tempdir().unwrap();
            let lane: &dyn ConformingLane = &*lane;
            let grounds = Grounds { lane, profile: Profile::FullAuto, is_granted, place: place.path() };
            let judged = gate(&grounds).await;
            if let Some(first) = &first {
                for (kind, judged) in &judged {
                    assert_eq!(judged, &first[kind], "{grounds}: {kind}");
                }
            }
            first.get_or_insert(judged);
            judge(&grounds, HookPoint::Context, "inject it was %").await;
            judge(&grounds, HookPoint::GuardInput, "flag it was %").await;
        }
    }
}
