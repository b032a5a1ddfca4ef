//! Many sessions on one sandbox: ten thousand stay open on sixty-four slots, because a turn gives its own back; and where there
//! is really no room, the host says so, names the setting to raise, and is never counted against the extension.

use std::sync::Arc;

use holdfast_contract::body::FrameKind;
use holdfast_contract::ids::Seq;
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::Code;
use holdfast_contract::sandbox::{Pools, SandboxOptions};
use holdfast_contract::session_frames::{Answer, ApprovalScope, TurnOutcome};
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_runtime::{SessionHandle, TurnReport};
use holdfast_testkit::pieces::tool;
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{Gates, MapVault, gate, lane_with, manifest};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};

/// A lab with a tool and a sandboxed gate, whose model calls the tool once in each turn.
fn lab(options: SandboxOptions, waits: bool, effects: EffectClass) -> LabBuilder {
    let vault = Arc::new(MapVault::default());
    let found = vault.add(&manifest("gate", ""), gate(&Gates::Allows, waits), &options);
    let kit = NativeExtension::new("kit", "1.0.0").tool(tool("work", effects, |_| json!("ran")));
    Lab::build()
        .lane(lane_with(&vault, options), [found])
        .extension(kit.replayable())
        .script([ScriptStep::calls([("work", json!({}))]), ScriptStep::says("done")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_sessions_stay_open() {
    const SESSIONS: usize = 10_000;
    const CONCURRENT_TURNS: usize = 50;
    let options = SandboxOptions::small();
    assert!(CONCURRENT_TURNS < options.pools.instances as usize && options.pools.instances < 100);
    let lab = lab(options, false, EffectClass::Pure).start().await;
    let mut open: Vec<SessionHandle> = Vec::with_capacity(SESSIONS);
    let mut turns = JoinSet::new();
    for number in 0..SESSIONS {
        let session = lab.open(&format!("session-{number}"));
        open.push(session.clone());
        turns.spawn(async move { session.say("test", "go").await.unwrap() });
        if turns.len() == CONCURRENT_TURNS {
            let report = turns.join_next().await.unwrap().unwrap();
            assert!(matches!(report.outcome, TurnOutcome::Answered), "{report:?}");
        }
    }
    while let Some(report) = turns.join_next().await {
        assert!(matches!(report.unwrap().outcome, TurnOutcome::Answered));
    }
    assert_eq!(lab.ledger.count("tool"), SESSIONS, "every gate let its call pass");
    for session in [&open[0], &open[SESSIONS / 2], &open[SESSIONS - 1]] {
        assert!(lab.runtime.is_open(session.id()), "{} is still there", session.id());
        let verdict = lab.replay(session.id().as_str());
        assert!(verdict.identical && verdict.mocked.is_empty(), "{verdict:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_gates_are_alive_at_once() {
    const SESSIONS: usize = 10_000;
    let lab = lab(SandboxOptions::default(), false, EffectClass::Write).profile(Profile::Safe).start().await;
    let sessions: Vec<_> = (0..SESSIONS).map(|number| lab.open(&format!("session-{number}"))).collect();
    let mut turns = JoinSet::new();
    for session in &sessions {
        let session = session.clone();
        turns.spawn(async move { session.say("test", "go").await.unwrap() });
    }
    // Every turn waits for a person, and its gate's instance waits with it.
    let mut asked = Seq(0);
    for _ in 0..SESSIONS {
        asked = lab.approval().await.approval;
    }
    assert_eq!(lab.ledger.count("tool"), 0);
    for session in &sessions {
        session.approve(asked, Answer::Approve { scope: ApprovalScope::Once }).await.unwrap();
    }
    while let Some(report) = turns.join_next().await {
        assert!(matches!(report.unwrap().outcome, TurnOutcome::Answered));
    }
    assert_eq!(lab.ledger.count("tool"), SESSIONS, "every gate had allowed its call");
}

/// A turn that waits for a person while the gate's instance waits with it.
async fn waits_for_a_person(lab: &Lab, id: &str) -> (SessionHandle, JoinHandle<TurnReport>, Seq) {
    let session = lab.open(id);
    let turn = {
        let session = session.clone();
        tokio::spawn(async move { session.say("test", "go").await.unwrap() })
    };
    let asked = |lab: &Lab| {
        let frames = lab.frames_of(id);
        frames.iter().find(|it| it.envelope.kind == FrameKind::ApprovalRequested).map(|it| it.envelope.seq)
    };
    lab.until("an approval", |lab| asked(lab).is_some()).await;
    (session, turn, asked(lab).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_too_small_is_the_hosts_word() {
    type Shrink = fn(&mut Pools);
    let pools: [(&str, bool, Shrink); 4] = [
        ("pools.instances", false, |pools| pools.instances = 2),
        ("pools.core_instances", false, |pools| pools.core_instances = 2),
        ("pools.memories", false, |pools| pools.memories = 2),
        ("pools.stacks", true, |pools| pools.stacks = 2),
    ];
    for (setting, waits, shrink) in pools {
        let mut options = SandboxOptions::small();
        shrink(&mut options.pools);
        let lab = lab(options, waits, EffectClass::Write).profile(Profile::Safe).start().await;
        let waiting = [waits_for_a_person(&lab, "one").await, waits_for_a_person(&lab, "two").await];

        let refused = lab.open("three").say("test", "go").await.unwrap();
        assert!(matches!(refused.outcome, TurnOutcome::Answered), "{setting}: the turn goes on: {refused:?}");
        let faults = bodies(&lab.frames_of("three"), FrameKind::HookFaulted);
        assert_eq!(faults.len(), 1, "{setting}: {faults:?}");
        assert_eq!(faults[0]["fault"]["code"], Code::SlotsExhausted.as_str(), "{setting}");
        let message = faults[0]["fault"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{setting}`")), "{setting} is not named: {message}");
        assert_eq!(lab.ledger.count("tool three"), 0, "{setting}: a gate without room has denied");

        for (session, turn, approval) in waiting {
            let answer = Answer::Approve { scope: ApprovalScope::Once };
            session.approve(approval, answer).await.unwrap();
            assert!(matches!(turn.await.unwrap().outcome, TurnOutcome::Answered), "{setting}");
        }
        let (session, turn, approval) = waits_for_a_person(&lab, "four").await;
        session.approve(approval, Answer::Approve { scope: ApprovalScope::Once }).await.unwrap();
        turn.await.unwrap();
        assert_eq!(lab.ledger.count("tool four"), 1, "{setting}: with room again the next call works");

        lab.runtime.settled().await.unwrap();
        let all = lab.runtime.extensions().await.unwrap();
        let it = all.iter().find(|it| it.id.as_str() == "gate").unwrap();
        assert!(it.active.is_some() && it.fault.is_none(), "{setting}: it is not its fault: {it:#?}");
        assert!(bodies(&lab.frames_of("system"), FrameKind::ExtensionFaulted).is_empty(), "{setting}");
        for id in ["one", "three", "four"] {
            let verdict = lab.replay(id);
            assert!(verdict.identical && verdict.snapshot_identical, "{setting}, {id}: {verdict:#?}");
        }
        lab.stop().await;
    }
}
