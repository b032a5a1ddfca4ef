//! Turns and calls wait for extensions that are starting, and nobody waits for one that hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Lifecycle, NativeExtension, Service, Tool};
use holdfast_store::StoreOptions;
use holdfast_testkit::pieces::spec;
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;
use tokio::sync::Notify;

/// An extension whose `initialize` waits until it is told to go on, and which only one process can run.
#[derive(Clone, Default)]
struct Slow {
    go_on: Arc<Notify>,
    fails: Arc<AtomicBool>,
    /// How often it was started.
    started: Arc<AtomicUsize>,
}

impl Lifecycle for Slow {
    fn initialize(&self, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        let slow = self.clone();
        Box::pin(async move {
            slow.go_on.notified().await;
            if slow.fails.load(Ordering::SeqCst) {
                Err(Fault::new(Code::ExtensionFault, "no key"))
            } else {
                Ok(())
            }
        })
    }

    fn start(&self) -> Later<Result<(), Fault>> {
        self.started.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Service for Slow {
    fn run_background(&self, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        Box::pin(std::future::pending())
    }
}

/// Its tool, which says that it was called and hangs if it is to.
struct Work {
    called: Arc<Notify>,
    hangs: bool,
}

impl Tool for Work {
    fn spec(&self) -> ToolSpec {
        spec("work", EffectClass::Read)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        self.called.notify_one();
        if self.hangs {
            Box::pin(std::future::pending())
        } else {
            Box::pin(std::future::ready(Ok(json!("worked").into())))
        }
    }
}

fn with_tool(slow: &Slow, work: Work) -> NativeExtension {
    NativeExtension::new("slow", "1.0.0").lifecycle(slow.clone()).service(slow.clone()).tool(work)
}

fn slow(slow: &Slow) -> NativeExtension {
    with_tool(slow, Work { called: Arc::default(), hangs: false })
}

/// A lab whose turn calls `work` once.
fn working() -> LabBuilder {
    Lab::build().script([ScriptStep::calls([("work", json!({}))]), ScriptStep::says("done")])
}

fn faults(lab: &Lab) -> Vec<String> {
    let settled = bodies(&lab.frames(), FrameKind::ToolSettled);
    settled.iter().map(|body| body["fault"]["code"].as_str().unwrap_or("none").to_owned()).collect()
}

// Finding D4.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_waits_for_an_extension_that_is_starting_and_has_its_tools() {
    let levers = Slow::default();
    let lab = working().extension(slow(&levers)).begin().await;
    let turn = lab.begin("work");
    // `initialize`, and the turn that waits.
    lab.until("both wait", |lab| lab.clock.sleepers() >= 2).await;
    assert_eq!(lab.runtime.starting(), ["slow".into()]);
    // Who waits for the turn meanwhile gets its end.
    let session = lab.session();
    let mut awaited = std::pin::pin!(session.running_turn());
    tokio::select! {
        biased;
        ended = &mut awaited => panic!("{ended:?}"),
        () = std::future::ready(()) => {}
    }
    levers.go_on.notify_one();
    assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
    assert_eq!(awaited.await.unwrap().outcome, TurnOutcome::Answered);
    assert_eq!((lab.ledger.count("tool "), faults(&lab)), (1, vec!["none".to_owned()]), "{}", lab.story());
    assert_eq!(lab.runtime.starting(), []);
    assert_eq!(lab.findings(), Vec::new());
}

// Finding D4.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_when_an_extension_is_known_to_be_down() {
    let levers = Slow::default();
    levers.fails.store(true, Ordering::SeqCst);
    let lab = working().extension(slow(&levers)).begin().await;
    let turn = lab.begin("work");
    lab.until("both wait", |lab| lab.clock.sleepers() >= 2).await;
    levers.go_on.notify_one();
    assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
    assert_eq!(lab.ledger.count("tool "), 0, "{}", lab.story());
}

// Finding D15.
#[tokio::test(flavor = "multi_thread")]
async fn an_extension_that_hangs_while_it_starts_delays_nobody_for_long() {
    let lab = working().extension(slow(&Slow::default())).begin().await;
    let turn = lab.begin("work");
    lab.pass(Millis(10_000), 2).await;
    assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
    let views = lab.runtime.extensions().await.unwrap();
    assert!(views[0].starting && views[0].active.is_none(), "{views:?}");
    // Later turns do not wait at all.
    let turn = lab.begin("again");
    assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
}

// Finding D5.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_turn_waits_until_its_tool_is_up_again() {
    let levers = Slow::default();
    levers.go_on.notify_one();
    let called = Arc::new(Notify::new());
    let hanging = with_tool(&levers, Work { called: called.clone(), hangs: true });
    let lab = working().extension(hanging).start().await;
    // The turn is interrupted in the middle of its call.
    let session = lab.session();
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.say("test", "work").await }
    });
    called.notified().await;
    session.close().await.unwrap();
    drop(turn.await);
    let (path, directory) = (lab.path().to_owned(), lab.stop().await);

    let levers = Slow::default();
    let reopened = working().on(&path, StoreOptions::default()).extension(slow(&levers));
    let lab = reopened.begin().await;
    let session = lab.session();
    lab.until("it is initialised, and the turn waits", |lab| lab.clock.sleepers() >= 2).await;
    levers.go_on.notify_one();
    lab.until("the turn has ended", |lab| !bodies(&lab.frames(), FrameKind::TurnEnded).is_empty()).await;
    assert_eq!(faults(&lab), ["none"], "{}", lab.story());
    assert_eq!(lab.findings(), Vec::new());
    session.close().await.unwrap();
    drop((lab.stop().await, directory));
}

// Finding D16.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_only_listed_is_not_started() {
    let levers = Slow::default();
    let lab = working().extension(slow(&levers)).inspects().start().await;
    assert_eq!(lab.runtime.registry().tools.len(), 1, "its tools are known");
    assert_eq!(levers.started.load(Ordering::SeqCst), 0);
    drop(lab.stop().await);
}
