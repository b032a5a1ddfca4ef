//! Calls into a lane without a runtime: what an extension registers, the steps of its life, and the roles that no turn reaches. The
//! calls are data in `tests/conformance/lane/calls.yaml`.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::Fault;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::wire::{Call, Host, Later, Reply};
use serde::Deserialize;
use serde_json::{Value, json};

use super::lanes::{ConformingLane, MANIFEST};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    manifest: String,
    call: Value,
}

/// Makes every call in every lane, and holds the replies against each other and against the golden file.
pub async fn compare(lanes: &[Box<dyn ConformingLane>]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/lane/calls.yaml");
    let mut cases: Vec<Case> = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    cases.extend(HookPoint::ALL.iter().map(untold));
    let mut golden = String::new();
    for case in &cases {
        let mut first: Option<(&str, String)> = None;
        for lane in lanes {
            let reply = reply(&**lane, case).await;
            match &first {
                None => first = Some((lane.name(), reply)),
                Some((other, expected)) => {
                    assert_eq!(reply, *expected, "{}: {} against {other}", case.name, lane.name());
                }
            }
        }
        writeln!(golden, "== {} ==\n{}", case.name, first.unwrap().1).unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../golden/conformance");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("lane_calls", golden));
}

/// A hook that is told nothing.
fn untold(point: &HookPoint) -> Case {
    let name = format!("nothing to say at {}", json!(point).as_str().unwrap());
    Case { name, manifest: String::new(), call: json!({ "hook": { "point": point, "subject": "hello" } }) }
}

async fn reply(lane: &dyn ConformingLane, case: &Case) -> String {
    let (lane, reference) = lane.alone(&format!("{MANIFEST}{}", case.manifest), lane.least());
    let loaded = lane.load(&reference).await.unwrap();
    let instance = loaded.fresh().unwrap_or(loaded);
    // As in a runtime, it is loaded first; some are initialised on the way.
    let load = instance.call(Call::Lifecycle(LifecycleCommand::Load), Arc::new(Quiet)).await;
    if let Err(fault) = load {
        return fault.to_string();
    }
    match instance.call(call(&case.call), Arc::new(Quiet)).await {
        Ok(Reply::Descriptors(descriptors)) => {
            let lines = descriptors.iter().map(|it| serde_json::to_string(it).unwrap());
            lines.collect::<Vec<_>>().join("\n")
        }
        Ok(reply) => serde_json::to_string(&reply).unwrap(),
        Err(fault) => fault.to_string(),
    }
}

/// A call as the file has it, with the turn and the hook's id that stand for themselves.
fn call(written: &Value) -> Call {
    let mut written = written.clone();
    // Values on their way are written as frames have them.
    for value in written.as_object_mut().into_iter().flat_map(|call| call.values_mut()) {
        for name in ["arguments", "subject"] {
            if let Some(field) = value.get_mut(name) {
                *field = json!({ "json": field.take() });
            }
        }
    }
    let turn = json!({
        "session": "s1", "turn": 1, "agent": "main", "origin": { "channel": "test", "user": "ada" },
    });
    if let Some(hook) = written.get_mut("hook") {
        let place = HookPoint::ALL.iter().position(|point| json!(point) == hook["point"]).unwrap();
        hook["hook"] = format!("conformance/{place}").into();
        hook["turn"] = turn;
    } else if let Some(tool) = written.get_mut("tool") {
        tool["call"] = "1.1".into();
        tool["turn"] = turn;
    }
    serde_json::from_value(written).unwrap()
}

/// A host that has nothing to say to anything.
struct Quiet;

impl Host for Quiet {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::ready(Ok(Content::default())))
    }
}
