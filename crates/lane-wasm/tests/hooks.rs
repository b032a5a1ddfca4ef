//! The answers of hooks as kernel decisions, point by point.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Artifact, Decision, HookPoint};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::wire::{Lane, Reply};
use holdfast_lane_wasm::WasmLane;
use serde_json::json;
use support::{Extension, MemoryVault, NotingHost, hook};

#[tokio::test]
async fn every_answer_becomes_its_decision() {
    let vault = Arc::new(MemoryVault::default());
    let lane = WasmLane::new(SandboxOptions::small(), vault.clone()).unwrap();
    let loaded = lane.load(&vault.put(&Extension::guest("hooks.wat"))).await.unwrap();
    let turn = loaded.fresh().unwrap();
    let (done, reason) = (|| Content::text("done"), || "not today".to_owned());
    let object = || Content::new(json!({}));
    let expected = [
        (HookPoint::InputNormalise, Decision::Replace { content: done() }),
        (HookPoint::SanitizeInput, Decision::Replace { content: object() }),
        (HookPoint::GuardInput, Decision::Flag { reason: reason() }),
        (HookPoint::Context, Decision::Inject { content: done() }),
        (
            HookPoint::ModelRoute,
            Decision::Route { model: "done".into(), authoritative: true, reason: reason() },
        ),
        (
            HookPoint::ToolModify,
            Decision::Modify { arguments: Some(object()), implementation: Some("done".into()) },
        ),
        (
            HookPoint::ToolAfter,
            Decision::Enrich {
                result: Some(done()),
                artifacts: vec![Artifact {
                    name: "done".to_owned(),
                    media_type: reason(),
                    content: object(),
                }],
                render: Some(object()),
            },
        ),
        (HookPoint::GuardResult, Decision::Block { reason: reason() }),
        (
            HookPoint::CompactionBefore,
            Decision::Compact { instructions: Some("done".to_owned()), keep: Some(7) },
        ),
        (HookPoint::CompactionProvide, Decision::Continue),
    ];
    for (point, decision) in expected {
        assert!(point.accepts(&decision), "{point:?}");
        let call = hook(point, json!({ "path": "a" }), Some(Content::text("said")));
        let answer = turn.call(call, Arc::new(NotingHost::default())).await;
        assert_eq!(answer, Ok(Reply::Decision(decision)), "{point:?}");
    }
    let failed = turn.call(hook(HookPoint::TurnEnd, json!({}), None), Arc::new(NotingHost::default())).await;
    assert_eq!(failed, Err(Fault::new(Code::HookFault, "not today")));
}
