//! Agents that call agents: each a session of its own, within its parent's budget and the depth cap.

use holdfast_contract::body::FrameKind;
use holdfast_contract::ids::Millis;
use holdfast_contract::message::{LimitKind, Limits};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::{agent, echo};
use holdfast_testkit::{Lab, Script, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

pub fn nested_to_the_depth_cap() -> Scenario {
    let deeper = Script::new([
        ScriptStep::calls([("diver", json!({ "task": "go deeper" }))]),
        ScriptStep::says("this is as far as I got"),
    ]);
    let lab = Lab::build()
        .settings(|settings| settings.depth_cap = 2)
        .script([
            ScriptStep::calls([("diver", json!({ "task": "dive" }))]),
            ScriptStep::says("we have been down"),
        ])
        .model("deeper", deeper)
        .extension(NativeExtension::new("divers", "1.0.0").agent(agent("diver", "deeper")));
    Scenario::new(lab, |lab| async {
        lab.say("dive").await;
        let streams = lab.runtime.store().streams().unwrap();
        let sessions: Vec<_> =
            streams.iter().map(|info| info.id.as_str()).filter(|id| *id != "system").collect();
        assert_eq!(sessions, ["s1", "s1.1.1", "s1.1.1.1.1"], "two agents deep, and no deeper");
        lab
    })
}

pub fn child_pays_from_the_parents_budget() -> Scenario {
    let lab = Lab::build()
        .limits(Limits { max_tokens: 100, ..Limits::default() })
        .script([
            ScriptStep::calls([("clerk", json!({ "task": "count" }))]).costing(40, 0),
            ScriptStep::says("counted"),
        ])
        .model("costly", Script::new([ScriptStep::says("one, two, three").costing(70, 0)]))
        .extension(NativeExtension::new("office", "1.0.0").agent(agent("clerk", "costly")));
    Scenario::new(lab, |lab| async {
        let report = lab.say("count").await;
        assert_eq!(
            report.outcome,
            TurnOutcome::Limited(LimitKind::Tokens),
            "40 of its own and 70 of the child's"
        );
        assert_eq!(report.spent.tokens, 110);
        lab
    })
}

/// The limits that a child was opened with, in tokens and tool calls.
fn granted(lab: &Lab, child: &str) -> (u64, u64) {
    let opened = lab.frames().into_iter().filter_map(|frame| frame.body);
    let opened = opened.filter(|body| body["child"] == child).find(|body| !body["limits"].is_null()).unwrap();
    let limit = |name: &str| opened["limits"][name].as_u64().unwrap();
    (limit("max_tokens"), limit("max_tool_calls"))
}

/// The first child waits before it asks its model again, so the second one ends before it.
pub fn parallel_children_share_what_is_left() -> Scenario {
    let slow = ScriptStep::Fails {
        times: 1,
        retryable: true,
        then: Box::new(ScriptStep::says("one").costing(10, 0)),
    };
    let quick =
        [ScriptStep::calls([("echo", json!({}))]).costing(5, 0), ScriptStep::says("two").costing(10, 0)];
    let lab = Lab::build()
        .limits(Limits { max_tokens: 100, max_tool_calls: Some(8), ..Limits::default() })
        .script([
            ScriptStep::calls([("ann", json!({ "task": "one" })), ("bob", json!({ "task": "two" }))])
                .costing(40, 0),
            ScriptStep::calls([("bob", json!({ "task": "three" }))]).costing(5, 0),
            ScriptStep::says("counted"),
        ])
        .model("slow", Script::new([slow]))
        .model("quick", Script::new(quick))
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
        .extension(NativeExtension::new("first", "1.0.0").agent(agent("ann", "slow")))
        .extension(NativeExtension::new("second", "1.0.0").agent(agent("bob", "quick")));
    Scenario::new(lab, |lab| async {
        let turn = lab.begin("count");
        lab.until("the second child's end", |lab| {
            lab.frames().iter().any(|frame| frame.envelope.kind == FrameKind::ChildEnded)
        })
        .await;
        lab.until("the first child's delay", |lab| {
            let asked = lab.frames_of("s1.1.1").into_iter();
            asked.filter(|frame| frame.envelope.kind == FrameKind::ModelRequested).count() == 2
        })
        .await;
        // The two turns' timers and the delay.
        lab.pass(Millis(500), 3).await;
        let report = turn.await.unwrap();
        assert_eq!(granted(&lab, "s1.1.1"), (30, 3), "half of 60 tokens and of 6 tool calls");
        assert_eq!(granted(&lab, "s1.1.2"), (30, 3), "the other half");
        assert_eq!(granted(&lab, "s1.1.3"), (30, 4), "all that is left after 70 tokens and 4 tool calls");
        assert_eq!(
            (report.spent.tokens, report.spent.tool_calls),
            (85, 5),
            "40, 10, 15, 5 and 15: children included"
        );
        lab
    })
}
