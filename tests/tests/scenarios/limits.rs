//! A limit of each kind ends the turn with a frame that says which, and what was used.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::{LimitKind, Limits};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::{echo, write};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

fn calls() -> ScriptStep {
    ScriptStep::calls([("echo", json!({})), ("write", json!({}))])
}

fn lab(limits: Limits, script: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    Lab::build()
        .limits(limits)
        .script(script)
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).tool(write()))
}

fn ends_by(lab: LabBuilder, limit: LimitKind) -> Scenario {
    Scenario::new(lab, move |lab| async move {
        assert_eq!(lab.say("go").await.outcome, TurnOutcome::Limited(limit));
        lab
    })
}

pub fn limit_of_turns() -> Scenario {
    let limits = Limits { max_turns: 2, ..Limits::default() };
    ends_by(lab(limits, [calls(), calls(), calls()]), LimitKind::Turns)
}

pub fn limit_of_tokens() -> Scenario {
    let limits = Limits { max_tokens: 100, ..Limits::default() };
    ends_by(lab(limits, [calls().costing(60, 1), calls().costing(60, 1), calls()]), LimitKind::Tokens)
}

pub fn limit_of_cost() -> Scenario {
    let limits = Limits { max_cost_micros: Some(1_000), ..Limits::default() };
    ends_by(lab(limits, [calls().costing(1, 1_500), calls()]), LimitKind::Cost)
}

pub fn limit_of_cost_between_attempts() -> Scenario {
    let limits = Limits { max_cost_micros: Some(1_000), ..Limits::default() };
    let fails = ScriptStep::Fails { times: 3, retryable: true, then: Box::new(ScriptStep::says("too late")) };
    let costly = lab(limits, [fails.costing(1, 600)]);
    Scenario::new(costly, |lab| async {
        let turn = lab.begin("go");
        lab.pass(Millis(500), 2).await;
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Limited(LimitKind::Cost));
        lab
    })
}

pub fn limit_of_tool_calls() -> Scenario {
    let limits = Limits { max_tool_calls: Some(3), ..Limits::default() };
    ends_by(lab(limits, [calls(), calls()]), LimitKind::ToolCalls)
}

pub fn limit_of_time() -> Scenario {
    let limits = Limits { time_budget: Millis(10_000), ..Limits::default() };
    Scenario::new(lab(limits, [calls(), ScriptStep::Hangs]), |lab| async {
        let turn = lab.begin("go");
        lab.until("the second request", |lab| {
            lab.frames().iter().filter(|frame| frame.envelope.kind.as_str() == "model.requested").count() == 2
        })
        .await;
        lab.pass(Millis(10_000), 1).await;
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Limited(LimitKind::Time));
        lab
    })
}

/// The first turn spends it all; the second is not begun.
fn second_turn_ends_by(limits: Limits, limit: LimitKind) -> Scenario {
    Scenario::new(
        lab(limits, [ScriptStep::says("one").costing(100, 100), ScriptStep::says("two")]),
        move |lab| async move {
            assert_eq!(lab.say("first").await.outcome, TurnOutcome::Answered);
            assert_eq!(lab.say("second").await.outcome, TurnOutcome::Limited(limit));
            lab
        },
    )
}

pub fn limit_of_session_tokens() -> Scenario {
    second_turn_ends_by(Limits { session_tokens: Some(100), ..Limits::default() }, LimitKind::SessionTokens)
}

pub fn limit_of_session_cost() -> Scenario {
    second_turn_ends_by(
        Limits { session_cost_micros: Some(100), ..Limits::default() },
        LimitKind::SessionCost,
    )
}

pub fn limit_of_session_tool_calls() -> Scenario {
    let limits = Limits { session_tool_calls: Some(3), ..Limits::default() };
    Scenario::new(lab(limits, [calls(), ScriptStep::says("two"), calls()]), |lab| async {
        assert_eq!(lab.say("first").await.outcome, TurnOutcome::Answered);
        assert_eq!(lab.say("second").await.outcome, TurnOutcome::Limited(LimitKind::SessionToolCalls));
        lab
    })
}

pub fn limit_of_session_time() -> Scenario {
    let limits = Limits { session_time: Some(Millis(700)), ..Limits::default() };
    let late = ScriptStep::Fails { times: 1, retryable: true, then: Box::new(ScriptStep::says("one")) };
    Scenario::new(lab(limits, [late, ScriptStep::Hangs]), |lab| async {
        let turn = lab.begin("first");
        lab.pass(Millis(500), 2).await;
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
        let turn = lab.begin("second");
        lab.pass(Millis(200), 1).await;
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Limited(LimitKind::SessionTime));
        lab
    })
}
