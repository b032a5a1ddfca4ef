//! Calls that are served alike to a component of each language with an SDK for them and to a Python class: what
//! `tests/conformance/caller/` has in its tool `call_more`. In `table.rs` a class is as every other lane, and as a component in C.

use std::sync::Arc;

use holdfast_contract::digest::canonical;
use holdfast_contract::host_call::HostCallKind;
use holdfast_contract::manifest::Profile;
use holdfast_contract::wire::Vault;
use holdfast_model::script::ScriptStep;
use holdfast_testkit::wasm::{MapVault, lane};
use serde_json::{Value, json};

use super::asks::{Asked, Grounds, Made, everything, lab, make};
use crate::conformance::lanes;
use crate::conformance::languages::kept;

/// The calls of `call_more`, in its order.
fn calls() -> Vec<Asked> {
    use HostCallKind as K;
    let task = json!({ "agent": "idle", "task": "rest", "channel": null, "user": null, "correlation": "c" });
    vec![
        (K::EventPublish, json!({ "topic": "news.weather", "payload": { "n": 1 }, "key": "k" })),
        (K::UserNotify, json!({ "text": "hello", "channel": "office", "user": "ada" })),
        (K::ChannelList, json!({})),
        (K::AgentTask, task.clone()),
        (K::AgentBackground, task),
        (K::ContextEnrich, json!({ "prompt": "hello", "agent": "idle" })),
        (K::ScheduleNext, json!({ "when": "every 1h", "timezone": "Europe/Berlin" })),
        (K::FileMakeFolder, json!({ "path": "made" })),
        (K::FileWrite, json!({ "path": "made/new.txt", "content": "text" })),
        (K::FileStat, json!({ "path": "made/new.txt" })),
        (K::FileList, json!({ "path": "made" })),
        (K::FileRemove, json!({ "path": "made/new.txt" })),
        (K::EnvironmentGet, json!("LANG")),
        (K::SystemRestart, json!({ "reason": "why not" })),
    ]
}

/// The frames without the extension's own name.
fn unnamed(made: Vec<Made>) -> Vec<Made> {
    let unnamed = |mut made: Made| {
        for (_, body) in &mut made.frames {
            body["extension"] = Value::Null;
        }
        made
    };
    made.into_iter().map(unnamed).collect()
}

/// What a class is served.
pub async fn by_a_class() -> Vec<Made> {
    let lanes = lanes::of_every_profile();
    let class = lanes.iter().find(|lane| lane.name() == "python").unwrap();
    let place = tempfile::tempdir().unwrap();
    let (lane, profile) = (&**class, Profile::FullAuto);
    let grounds = Grounds { lane, profile, is_granted: true, place: place.path() };
    let made = unnamed(grounds.make(&calls()).await);
    for ((kind, _), made) in calls().iter().zip(&made) {
        assert_eq!(made.outcome, "served", "{kind}: {made:#?}");
    }
    made
}

/// A component is served the same.
pub async fn compare(language: &str, component: &[u8], of_a_class: &[Made]) {
    let (vault, place) = (Arc::new(MapVault::default()), tempfile::tempdir().unwrap());
    let found = kept(&vault, "caller", component, everything(place.path()));
    let bundle = canonical(&vault.bundle(found.digest).unwrap()).unwrap();
    let steps = vec![ScriptStep::calls([("call_more", json!({}))]), ScriptStep::says("done")];
    let lab =
        lab(place.path(), Profile::FullAuto, steps, |lab| (lab.lane(lane(&vault), [found]), Some(bundle)));
    let made = unnamed(make(lab.await, &calls(), language).await);
    for (made, expected) in made.iter().zip(of_a_class) {
        assert_eq!(made, expected, "{language}");
    }
}
