//! A turn cancelled at every phase: whatever is under way stops, open calls are settled, and the session goes on.

use holdfast_contract::hook::HookPoint;
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::Profile;
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::{echo, hanging_hook, hanging_tool, write};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

/// Cancels once the turn hangs at a frame of this kind.
fn cancelled_at(lab: LabBuilder, kind: &'static str) -> Scenario {
    Scenario::new(lab, move |lab| async move {
        let turn = lab.begin("go");
        lab.until_kind(kind).await;
        lab.session().cancel("the user pressed Ctrl-C").await.unwrap();
        assert!(matches!(turn.await.unwrap().outcome, TurnOutcome::Cancelled { .. }));
        assert!(lab.session().cancel("again").await.is_err(), "there is nothing to cancel any more");
        lab
    })
}

fn calls_echo(hook: HookPoint) -> LabBuilder {
    Lab::build()
        .script([ScriptStep::calls([("echo", json!({})), ("write", json!({}))])])
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).tool(write()))
        .extension(NativeExtension::new("hangs", "1.0.0").hook(hanging_hook(hook, Millis(5_000))))
}

pub fn cancelled_in_input_hook() -> Scenario {
    let hangs =
        NativeExtension::new("hangs", "1.0.0").hook(hanging_hook(HookPoint::InputNormalise, Millis(5_000)));
    cancelled_at(Lab::build().script([]).extension(hangs), "hook.called")
}

pub fn cancelled_in_model() -> Scenario {
    cancelled_at(Lab::build().script([ScriptStep::Stalls("I was just".to_owned())]), "model.requested")
}

pub fn cancelled_in_modifier() -> Scenario {
    cancelled_at(calls_echo(HookPoint::ToolModify), "hook.called")
}

pub fn cancelled_in_gate() -> Scenario {
    cancelled_at(calls_echo(HookPoint::ToolGate), "hook.decided")
}

pub fn cancelled_in_approval() -> Scenario {
    let lab = Lab::build()
        .profile(Profile::Safe)
        .script([ScriptStep::calls([("write", json!({}))])])
        .extension(NativeExtension::new("kit", "1.0.0").tool(write()));
    cancelled_at(lab, "approval.requested")
}

pub fn cancelled_in_tool() -> Scenario {
    let lab = Lab::build().script([ScriptStep::calls([("slow", json!({}))])]).extension(
        NativeExtension::new("kit", "1.0.0").tool(hanging_tool("slow", EffectClass::Write, Millis(60_000))),
    );
    cancelled_at(lab, "tool.dispatched")
}

pub fn cancelled_in_after_hook() -> Scenario {
    Scenario::new(calls_echo(HookPoint::ToolAfter), |lab| async {
        let turn = lab.begin("go");
        let returned = |lab: &Lab| {
            lab.frames().iter().filter(|frame| frame.envelope.kind.as_str() == "tool.returned").count()
        };
        lab.until("both calls have returned", |lab| returned(lab) == 2).await;
        lab.session().cancel("the user pressed Ctrl-C").await.unwrap();
        assert!(matches!(turn.await.unwrap().outcome, TurnOutcome::Cancelled { .. }));
        lab
    })
}

pub fn cancelled_in_output_guard() -> Scenario {
    let hangs =
        NativeExtension::new("hangs", "1.0.0").hook(hanging_hook(HookPoint::GuardOutput, Millis(5_000)));
    cancelled_at(Lab::build().script([ScriptStep::says("too much")]).extension(hangs), "hook.called")
}
