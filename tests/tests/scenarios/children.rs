//! Agents that call agents: each a session of its own, within its parent's budget and the depth cap.

use holdfast_contract::message::{LimitKind, Limits};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::agent;
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
        lab
    })
}
