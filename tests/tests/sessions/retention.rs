//! Retention of a log in use: old frames go, in every stream, and what is left verifies and can be taken up.

use holdfast_contract::body::FrameKind;
use holdfast_contract::ids::{Millis, Seq, StreamId};
use holdfast_contract::problem::Code;
use holdfast_contract::session_frames::SessionSettings;
use holdfast_rpc::session_summaries;
use holdfast_store::{Retention, StoreOptions};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{FakeClock, Lab, LabBuilder, ScriptStep};
use serde_json::json;

const DAY: Millis = Millis(86_400_000);

fn lab() -> LabBuilder {
    Lab::build().script((0..40).map(|number| ScriptStep::says(&format!("answer {number}"))))
}

fn frames(lab: &Lab, stream: &str) -> u64 {
    lab.runtime.store().flush().unwrap();
    let streams = lab.runtime.store().streams().unwrap();
    streams.iter().find(|info| info.id.as_str() == stream).map_or(0, |info| info.frames)
}

fn keep(max_frames: u64) -> Retention {
    Retention { max_frames: Some(max_frames), max_age: None }
}

// Finding D13: `retention` was read and not applied.
#[tokio::test]
async fn retention_is_applied_at_once_and_every_day() {
    let lab = lab().start().await;
    for _ in 0..5 {
        lab.say("go").await;
    }
    let before = frames(&lab, "s1");
    lab.runtime.watch_retention(keep(12));
    lab.until("collection", |lab| frames(lab, "s1") == 12).await;
    assert!(before > 20, "{before}");
    // The conversation goes on where it was.
    assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "answer 5");
    assert!(frames(&lab, "s1") > 12);
    lab.until("the next round", |lab| lab.clock.sleepers() > 0).await;
    lab.clock.advance(DAY);
    lab.until("collection", |lab| frames(lab, "s1") == 12).await;
    assert_eq!(lab.say("go").await.answer.unwrap().to_text(), "answer 6");
    assert_eq!(lab.findings(), vec![]);
}

#[tokio::test]
async fn frames_of_the_last_days_are_kept() {
    let lab = lab().start().await;
    lab.say("go").await;
    let old = frames(&lab, "s1");
    lab.clock.advance(Millis(3 * DAY.0));
    lab.say("go").await;
    let all = frames(&lab, "s1");
    let retention = Retention { max_age: Some(DAY), max_frames: None };
    lab.runtime.collect_all(None, retention).await.unwrap();
    assert_eq!(frames(&lab, "s1"), all - old);
    assert_eq!(lab.findings(), vec![]);
}

// Finding M9: a flood of the system stream could not be collected.
#[tokio::test]
async fn a_flood_of_the_system_stream_is_collected_and_its_anchors_are_kept() {
    let clock = FakeClock::default();
    let lab = lab().clock(clock.clone()).start().await;
    for session in ["s1", "s2", "s3"] {
        lab.open(session).say("lab", "go").await.unwrap();
    }
    for _ in 0..4_000 {
        lab.runtime.set_overrides(Default::default());
    }
    lab.runtime.settled().await.unwrap();
    assert_eq!(bodies(&lab.frames_of("system"), FrameKind::OverridesSet).len(), 4_000);
    let before = frames(&lab, "system");
    assert!(before > 4_000, "{before}");
    let report = lab.runtime.collect_all(Some(StreamId::system()), keep(1)).await.unwrap();
    let (_, collected) = &report.streams[0];
    assert!(collected.unwrap().frames > 2_000, "{report:?}");
    assert!(frames(&lab, "system") < before - 2_000);
    assert_eq!(lab.findings(), vec![]);
    // An anchor that was recorded before still holds: a session that is cut is noticed.
    let path = lab.path().to_owned();
    let _folder = lab.stop().await;
    let again = self::lab().clock(clock).on(&path, StoreOptions::default()).start().await;
    assert_eq!(again.findings(), vec![]);
    assert_eq!(again.say("go").await.answer.unwrap().to_text(), "answer 1");
    let head = again.runtime.store().head(&"s2".into()).unwrap().unwrap().seq;
    let database = rusqlite::Connection::open(&path).unwrap();
    let cut = "DELETE FROM frames WHERE seq > ?1 AND stream = (SELECT id FROM streams WHERE name = 's2')";
    assert!(database.execute(cut, [Seq(head.0 - 2).0 as i64]).unwrap() > 0);
    let kinds: Vec<_> = again.findings().into_iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&"tail_cut".to_owned()), "{kinds:?}");
}

#[tokio::test]
async fn a_migration_of_the_database_is_recorded() {
    let clock = FakeClock::default();
    let lab = lab().clock(clock.clone()).start().await;
    lab.say("go").await;
    let path = lab.path().to_owned();
    let _folder = lab.stop().await;
    let older =
        "DROP TABLE deliveries; DROP TABLE subscribers; DROP TABLE event_names; PRAGMA user_version = 3;";
    rusqlite::Connection::open(&path).unwrap().execute_batch(older).unwrap();
    let again = self::lab().clock(clock).on(&path, StoreOptions::default()).start().await;
    let migrated = bodies(&again.frames_of("system"), FrameKind::LogMigrated);
    assert_eq!((migrated.len(), &migrated[0]["from"]), (1, &json!(3)));
    assert_eq!(again.findings(), vec![]);
    again.stop().await;
}

#[tokio::test]
async fn a_session_in_which_a_turn_runs_is_left_alone() {
    let lab = Lab::build().script([ScriptStep::says("one"), ScriptStep::Hangs]).start().await;
    lab.say("go").await;
    let turn = lab.begin("go");
    lab.until("a model call", |lab| {
        lab.frames().iter().filter(|it| it.envelope.kind.as_str() == "model.requested").count() == 2
    })
    .await;
    let report = lab.runtime.collect_all(None, keep(2)).await.unwrap();
    let of = |name: &str| report.streams.iter().find(|(id, _)| id.as_str() == name).unwrap().1;
    assert_eq!(of("s1"), None);
    lab.session().cancel("enough").await.unwrap();
    turn.await.unwrap();
    let report = lab.runtime.collect_all(None, keep(2)).await.unwrap();
    assert!(
        report.streams.iter().any(|(id, collected)| id.as_str() == "s1" && collected.unwrap().frames > 0)
    );
    assert_eq!(lab.findings(), vec![]);
}

// Finding D13: what a session began with was read from its first frame alone, which retention collects.
#[tokio::test]
async fn a_session_whose_first_frame_was_collected_keeps_its_settings_and_is_listed() {
    let scene = || {
        let settings = |settings: &mut SessionSettings| {
            settings.depth_cap = 3;
            settings.workspace = Some("/srv/work".into());
        };
        lab().settings(settings)
    };
    let lab = scene().start().await;
    for _ in 0..5 {
        lab.say("go").await;
    }
    lab.runtime.collect_all(None, keep(12)).await.unwrap();
    assert_eq!(lab.runtime.store().frames(&"s1".into(), Seq(0)..=Seq(0)).unwrap(), vec![]);
    let (path, clock) = (lab.path().to_owned(), lab.clock.clone());
    let _folder = lab.stop().await;

    let again = scene().clock(clock).on(&path, StoreOptions::default()).start().await;
    let settings = again.runtime.session_settings(&"s1".into()).unwrap();
    assert_eq!((settings.depth_cap, settings.workspace.as_deref()), (3, Some("/srv/work")));
    let listed = session_summaries(again.runtime.store(), false, None).unwrap();
    let listed: Vec<_> = listed.iter().map(|it| (it.session.as_str(), &*it.channel, &*it.about)).collect();
    assert_eq!(listed, [("s1", "test", "go")]);
    let refused = again.runtime.fork(&"s1".into(), None, &"s2".into()).unwrap_err();
    assert!(refused.code == Code::SessionFork && refused.what.contains("collected"), "{refused:?}");
    again.stop().await;
}
