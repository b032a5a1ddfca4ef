//! Approvals: edited, denied, remembered, and pending across a restart.

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::ids::Millis;
use holdfast_contract::manifest::Profile;
use holdfast_contract::session_frames::{Answer, ApprovalScope, TurnOutcome};
use holdfast_lane_native::NativeExtension;
use holdfast_store::StoreOptions;
use holdfast_testkit::pieces::{echo, hook, write};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

fn kit() -> NativeExtension {
    NativeExtension::new("kit", "1.0.0").tool(echo()).tool(write())
}

/// A gate that refuses anything that is not for Bob.
fn for_bob() -> NativeExtension {
    let gate = hook(HookSpec::at(HookPoint::ToolGate), |input| {
        let arguments = input.subject.as_ref().map(Content::value).cloned().unwrap_or_default();
        match arguments["to"].as_str() {
            Some("mallory") => Decision::Deny { reason: "not to Mallory".to_owned() },
            _ => Decision::Allow,
        }
    });
    NativeExtension::new("for_bob", "1.0.0").hook(gate).replayable()
}

pub fn approval_edits_arguments() -> Scenario {
    let lab = Lab::build()
        .profile(Profile::Standard)
        .script([
            ScriptStep::calls([("write", json!({ "to": "eve" })), ("write", json!({ "to": "eve" }))]),
            ScriptStep::says("sent once"),
        ])
        .extension(kit())
        .extension(for_bob());
    Scenario::new(lab, |lab| async {
        let turn = lab.begin("send it");
        let edit = |to: &str| Answer::Edit { arguments: Content::new(json!({ "to": to })) };
        let mut asked = [lab.approval().await, lab.approval().await];
        asked.sort_by_key(|pending| pending.call.id);
        lab.session().approve(asked[0].approval, edit("bob")).await.unwrap();
        lab.until_kind("tool.returned").await;
        lab.session().approve(asked[1].approval, edit("mallory")).await.unwrap();
        turn.await.unwrap();
        assert_eq!(lab.ledger.count("tool s1 1.1"), 1, "the edit passed the gates and ran");
        assert_eq!(lab.ledger.count("tool s1 1.2"), 0, "the edit was judged again and refused");
        lab
    })
}

pub fn approval_denied() -> Scenario {
    let lab = Lab::build()
        .profile(Profile::Safe)
        .script([ScriptStep::calls([("write", json!({}))]), ScriptStep::says("as you wish")])
        .extension(kit());
    Scenario::new(lab, |lab| async {
        let turn = lab.begin("write");
        let asked = lab.approval().await;
        assert!(
            lab.session()
                .approve(holdfast_contract::ids::Seq(0), Answer::Deny { reason: String::new() })
                .await
                .is_err()
        );
        lab.session().approve(asked.approval, Answer::Deny { reason: "not now".to_owned() }).await.unwrap();
        turn.await.unwrap();
        assert_eq!(lab.ledger.count("tool"), 0);
        lab
    })
}

pub fn approval_for_the_session() -> Scenario {
    let write_twice = [
        ScriptStep::calls([("write", json!({ "n": 1 }))]),
        ScriptStep::calls([("write", json!({ "n": 2 }))]),
        ScriptStep::says("written twice"),
    ];
    let lab = Lab::build().profile(Profile::Standard).script(write_twice).extension(kit());
    Scenario::new(lab, |lab| async {
        let turn = lab.begin("write twice");
        let asked = lab.approval().await;
        // An hour passes before the person answers: the turn's time does not run while it waits.
        lab.pass(Millis(3_600_000), 1).await;
        lab.until_kind("timer.fired").await;
        lab.session()
            .approve(asked.approval, Answer::Approve { scope: ApprovalScope::Session })
            .await
            .unwrap();
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
        lab
    })
}

pub fn approval_unattended() -> Scenario {
    let lab = Lab::build()
        .profile(Profile::Safe)
        .unattended()
        .script([ScriptStep::calls([("write", json!({}))]), ScriptStep::says("nobody let me")])
        .extension(kit());
    Scenario::new(lab, |lab| async {
        lab.say("write").await;
        assert_eq!(lab.ledger.count("tool"), 0, "no approver means no");
        lab
    })
}

fn across_restart() -> LabBuilder {
    Lab::build()
        .profile(Profile::Standard)
        .script([
            ScriptStep::calls([("write", json!({ "n": 1 })), ("echo", json!({ "n": 2 }))]),
            ScriptStep::says("written"),
        ])
        .extension(kit())
        .extension(for_bob())
}

pub fn approval_across_restart() -> Scenario {
    Scenario::new(across_restart(), |lab| async {
        let turn = lab.begin("write");
        let before = lab.approval().await;
        let (path, ledger) = (lab.path().to_owned(), lab.ledger.clone());
        let directory = lab.stop().await;
        assert!(turn.await.is_err(), "the process that asked is gone");

        let kept = directory.keep();
        let lab = across_restart().on(&path, StoreOptions::default()).ledger(ledger).start().await;
        let session = lab.session();
        let again = lab.approval().await;
        assert_eq!(again.approval, before.approval, "the same question, asked again");
        session.approve(again.approval, Answer::Approve { scope: ApprovalScope::Once }).await.unwrap();
        lab.until_kind("turn.ended").await;
        assert_eq!(lab.ledger.count("tool s1 1.1 write"), 1);
        assert_eq!(
            lab.ledger.count("tool s1 1.2 echo"),
            1,
            "what had returned before the restart is not run again"
        );
        assert!(kept.exists());
        lab
    })
}
