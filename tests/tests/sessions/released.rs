//! Sessions that nobody uses are not kept in memory, and are resumed when they are used.

use holdfast_contract::manifest::Profile;
use holdfast_contract::session_frames::{Answer, ApprovalScope, TurnOutcome};
use holdfast_contract::tool::EffectClass;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::tool;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::json;

// Finding D14: ended sessions stayed open, and their memory with them.
#[tokio::test]
async fn ended_sessions_are_released_at_once() {
    const SESSIONS: usize = 200;
    let lab = Lab::build().script([ScriptStep::says("one"), ScriptStep::says("two")]).start().await;
    for number in 0..SESSIONS {
        let session = lab.open(&format!("session-{number}"));
        session.say("lab", "first").await.unwrap();
        session.end("done").await.unwrap();
    }
    lab.until("release", |lab| lab.runtime.open_sessions() == 0).await;
    assert_eq!(lab.runtime.store().count_sessions().unwrap(), SESSIONS as u64);
    // One that has ended is resumed only to refuse.
    let refused = lab.runtime.resume(&"session-7".into()).unwrap().say("lab", "more").await.unwrap_err();
    assert_eq!(refused.code, holdfast_contract::problem::Code::SessionEnded);
    assert!(lab.replay("session-7").identical);
    assert_eq!(lab.findings(), vec![]);
}

// Finding D14: sessions without a turn for a while.
#[tokio::test]
async fn unused_sessions_are_released_and_taken_up_again_from_their_snapshots() {
    const SESSIONS: usize = 50;
    let lab = Lab::build().script([ScriptStep::says("one"), ScriptStep::says("two")]).start().await;
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        let session = lab.open(&format!("session-{number}"));
        session.say("lab", "first").await.unwrap();
        sessions.push(session);
    }
    assert_eq!(lab.runtime.release_unused_sessions().await, 0, "all of them were used just now");
    assert_eq!(lab.runtime.open_sessions(), SESSIONS);
    assert_eq!(lab.runtime.release_unused_sessions().await, SESSIONS);
    assert_eq!(lab.runtime.open_sessions(), 0);
    // The handles that clients hold go on working, also many at the same time.
    let again: Vec<_> = sessions
        .iter()
        .cloned()
        .map(|session| tokio::spawn(async move { session.say("lab", "second").await }))
        .collect();
    for report in again {
        assert_eq!(report.await.unwrap().unwrap().answer.unwrap().to_text(), "two");
    }
    assert_eq!(lab.runtime.open_sessions(), SESSIONS);
    for session in &sessions {
        assert!(lab.replay(session.id().as_str()).identical);
    }
    assert_eq!(lab.findings(), vec![]);
}

#[tokio::test]
async fn a_session_that_waits_for_a_person_is_in_use() {
    let kit = NativeExtension::new("kit", "1.0.0").tool(tool("work", EffectClass::Write, |_| json!("ran")));
    let script = [ScriptStep::calls([("work", json!({}))]), ScriptStep::says("done")];
    let lab = Lab::build().extension(kit).profile(Profile::Safe).script(script).start().await;
    let turn = lab.begin("go");
    let asked = lab.approval().await;
    for _ in 0..3 {
        assert_eq!(lab.runtime.release_unused_sessions().await, 0);
    }
    let answer = Answer::Approve { scope: ApprovalScope::Once };
    lab.session().approve(asked.approval, answer).await.unwrap();
    assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
}

/// A client may open a session twice at once. The actor of the first has recorded nothing yet when the second asks: a test on one
/// thread, where it runs only when this one waits.
#[tokio::test]
async fn a_session_that_was_opened_just_now_has_its_settings() {
    let lab = Lab::build().script([ScriptStep::says("one")]).start().await;
    let session = lab.open("new");
    assert_eq!(lab.runtime.store().head(session.id()).unwrap(), None, "nothing is recorded yet");
    let opened = lab.runtime.session_settings(session.id()).unwrap();
    session.say("lab", "first").await.unwrap();
    assert_eq!(lab.runtime.release_unused_sessions().await, 0);
    assert_eq!(lab.runtime.release_unused_sessions().await, 1);
    assert_eq!(lab.runtime.session_settings(session.id()).unwrap(), opened, "as its first frame has them");
}
