//! Taking up a session again reads its newest snapshot and the frames after it, however long it is.

use holdfast_contract::ids::Millis;
use holdfast_kernel::Session;
use holdfast_lane_native::NativeExtension;
use holdfast_runtime::rebuild::rebuild;
use holdfast_runtime::{SystemClock, upkeep};
use holdfast_store::Retention;
use holdfast_testkit::pieces::echo;
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::json;

/// A lab whose every turn has so many calls.
async fn long_session(turns: usize, calls: usize) -> Lab {
    let call = || ScriptStep::Calls((0..calls).map(|n| ("echo".to_owned(), json!({ "n": n }))).collect());
    let script = (0..turns).flat_map(|_| [call(), ScriptStep::says("done")]);
    let lab = Lab::build()
        .script(script)
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
        .start()
        .await;
    for _ in 0..turns {
        lab.say("go").await;
    }
    lab
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_tail_is_read() {
    let lab = long_session(40, 32).await;
    let frames = lab.frames().len() as u64;
    assert!(frames > 8_000, "{frames} frames");
    let before = lab.runtime.store().stats().rows_read;
    let refolded = rebuild::<Session>(lab.runtime.store(), &"s1".into()).unwrap();
    let rows = lab.runtime.store().stats().rows_read - before;
    assert_eq!(refolded.machine.next_seq().0, frames);
    assert!(rows < 1_400, "{rows} rows of {frames} were read");

    lab.session().close().await.unwrap();
    lab.runtime.store().flush().unwrap();
    let before = lab.runtime.store().stats().rows_read;
    rebuild::<Session>(lab.runtime.store(), &"s1".into()).unwrap();
    let rows = lab.runtime.store().stats().rows_read - before;
    assert!(rows <= 2, "a session that was closed has no tail, and {rows} rows were read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_after_its_beginning_was_collected() {
    let lab = long_session(2, 4).await;
    let (frames, path) = (lab.frames().len(), lab.path().to_owned());
    let directory = lab.stop().await;
    let store = holdfast_store::Store::open(&path, Default::default()).unwrap();
    let retention = Retention { max_age: None, max_frames: Some(5) };
    let collected = upkeep::collect(&store, &SystemClock, &"s1".into(), retention).unwrap().unwrap();
    assert_eq!(collected.frames, frames as u64 - 5);
    store.close();

    let again = || NativeExtension::new("kit", "1.0.0").tool(echo());
    let lab = Lab::build().script([]).on(&path, Default::default()).extension(again()).start().await;
    lab.clock.advance(Millis(1 << 41));
    assert_eq!(lab.say("and now?").await.answer.unwrap().to_text(), "done");
    assert_eq!(lab.findings(), Vec::new());
    drop(directory);
}
