//! Registries change between turns, never within one.

use std::collections::BTreeMap;

use holdfast_contract::registry::Override;
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::tool;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

fn answers(id: &str, priority: i32, answer: &'static str) -> NativeExtension {
    NativeExtension::new(id, "1.0.0")
        .priority(priority)
        .tool(tool("ask", EffectClass::Pure, move |_| json!(answer)))
        .replayable()
}

fn ask_each_turn(turns: usize) -> Vec<ScriptStep> {
    (0..turns).flat_map(|_| [ScriptStep::calls([("ask", json!({}))]), ScriptStep::says("done")]).collect()
}

async fn told(lab: &Lab) -> String {
    lab.runtime.settled().await.unwrap();
    lab.say("ask").await;
    let returned =
        holdfast_testkit::story::bodies(&lab.frames(), holdfast_contract::body::FrameKind::ToolSettled);
    returned.last().unwrap()["content"].as_str().unwrap().to_owned()
}

fn digest(answer: &str) -> String {
    holdfast_contract::content::Content::text(answer).digest().to_string()
}

pub fn registry_changes_between_turns() -> Scenario {
    // The newer version is known to the lane from the start, so that a replay elsewhere finds both.
    let newer = || {
        NativeExtension::new("oracle", "2.0.0")
            .tool(tool("ask", EffectClass::Pure, |_| json!("new")))
            .replayable()
    };
    let lab = Lab::build().script(ask_each_turn(3)).extension(answers("oracle", 0, "old"));
    Scenario::new(lab, move |lab| async move {
        assert_eq!(told(&lab).await, digest("old"));
        let found = lab.lane.add(newer());
        lab.runtime.found(vec![found]);
        assert_eq!(told(&lab).await, digest("new"), "the next turn runs on the new generation");
        lab.runtime.removed("oracle".into());
        lab.runtime.settled().await.unwrap();
        lab.say("ask").await;
        assert!(lab.story().contains("HF-3101"), "a removed tool is gone");
        lab
    })
}

pub fn stack_uncovers_and_overrides() -> Scenario {
    let lab = Lab::build()
        .script(ask_each_turn(4))
        .extension(answers("low", 1, "low"))
        .extension(answers("high", 9, "high"));
    Scenario::new(lab, |lab| async {
        assert_eq!(told(&lab).await, digest("high"), "the higher priority is active");
        lab.runtime.removed("high".into());
        assert_eq!(told(&lab).await, digest("low"), "removing it uncovers the next");
        let disabled = Override { enabled: Some(false), ..Override::default() };
        lab.runtime
            .set_overrides(BTreeMap::from([("tool".into(), BTreeMap::from([("ask".into(), disabled)]))]));
        lab.runtime.settled().await.unwrap();
        lab.say("ask").await;
        assert!(lab.story().contains("HF-3101"), "an override takes it out");
        lab.runtime.set_overrides(BTreeMap::new());
        assert_eq!(told(&lab).await, digest("low"), "and gives it back");
        lab
    })
}
