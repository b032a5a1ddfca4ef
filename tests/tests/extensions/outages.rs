//! A gate or guardrail whose extension is installed and not up is never simply absent: a turn waits for it while it is on its way up,
//! and what it would judge is denied when it does not come.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::digest::canonical;
use holdfast_contract::effect::{Act, Input};
use holdfast_contract::frame::FrameSource;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::{Registry, RegistryPin, RegistryRef};
use holdfast_contract::session_frames::{InputReceived, TurnOutcome};
use holdfast_contract::system_frames::{ExtensionRejected, SystemSettled, SystemStarted};
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::{Host, Later};
use holdfast_kernel::{BEHAVIOUR, Session, System};
use holdfast_lane_native::{Lifecycle, NativeExtension, Service};
use holdfast_replay::verify;
use holdfast_runtime::rebuild::rebuild;
use holdfast_store::{ObjectKind, Store, StoreOptions};
use holdfast_testkit::pieces::{gate, hook, tool};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::json;
use tokio::sync::Notify;

/// What a test does to its gate.
#[derive(Clone, Default)]
struct Levers {
    /// Ends its loop in the background, so that it is restarted after a pause.
    end: Arc<Notify>,
    /// Lets `initialize` fail.
    broken: Arc<AtomicBool>,
    /// Lets `initialize` wait until it is told to go on.
    slow: Arc<AtomicBool>,
    go_on: Arc<Notify>,
}

impl Lifecycle for Levers {
    fn initialize(&self, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        let levers = self.clone();
        Box::pin(async move {
            if levers.slow.load(Ordering::SeqCst) {
                levers.go_on.notified().await;
            }
            if levers.broken.load(Ordering::SeqCst) {
                Err(Fault::new(Code::ExtensionFault, "the list of words is gone"))
            } else {
                Ok(())
            }
        })
    }
}

impl Service for Levers {
    fn run_background(&self, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        let end = self.end.clone();
        Box::pin(async move {
            end.notified().await;
            Err(Fault::new(Code::ExtensionFault, "the background task raised"))
        })
    }
}

fn guard(levers: &Levers) -> NativeExtension {
    NativeExtension::new("guard", "1.0.0").lifecycle(levers.clone()).service(levers.clone())
}

fn denying(levers: &Levers) -> NativeExtension {
    guard(levers).hook(gate(Decision::Deny { reason: "never".to_owned() }))
}

fn wipe() -> NativeExtension {
    NativeExtension::new("disk", "1.0.0").tool(tool("wipe", EffectClass::Write, |_| json!("wiped")))
}

/// A lab whose every turn calls `wipe` once.
fn wiping() -> LabBuilder {
    let turn = || [ScriptStep::calls([("wipe", json!({}))]), ScriptStep::says("done")];
    Lab::build().script((0..20).flat_map(|_| turn())).extension(wipe())
}

fn reopened(path: &Path) -> LabBuilder {
    wiping().on(path, StoreOptions::default())
}

/// The state of the gate as the registry in force has it; `up` if it can be asked, `none` if it is not expected.
fn state(lab: &Lab) -> String {
    let registry = lab.runtime.registry();
    let hook = registry.hooks.iter().find(|hook| hook.extension.id.as_str() == "guard");
    match hook.map(|hook| &hook.outage) {
        Some(Some(outage)) => format!("{:?}", outage.state),
        Some(None) => "up".to_owned(),
        None => "none".to_owned(),
    }
}

async fn until_state(lab: &Lab, wanted: &str) {
    lab.until(wanted, |lab| state(lab) == wanted).await;
}

/// What the last call of the session came to.
fn settled(lab: &Lab) -> (String, String) {
    let last = bodies(&lab.frames(), FrameKind::ToolSettled).pop().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (text(&last["fault"]["code"]), text(&last["fault"]["message"]))
}

#[track_caller]
fn denied_for_the_outage(lab: &Lab) {
    let (code, message) = settled(lab);
    assert_eq!(code, "HF-3103", "{message}");
    for part in
        ["denied by guard/0", "HF-3205", "`guard`", "holdfast ext restart guard", "holdfast ext doctor"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    nothing_ran(lab);
}

/// No call ran, the log verifies, and it replays.
#[track_caller]
fn nothing_ran(lab: &Lab) {
    assert_eq!(lab.ledger.count("tool "), 0, "{:?}", lab.ledger.lines());
    assert_eq!(bodies(&lab.frames(), FrameKind::ToolDispatched), Vec::<serde_json::Value>::new());
    sound(lab);
}

#[track_caller]
fn sound(lab: &Lab) {
    assert_eq!(lab.findings(), Vec::new());
    for stream in ["s1", "system"] {
        let verdict = lab.replay(stream);
        assert!(verdict.identical, "{stream}: {verdict:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_whose_background_task_raised_is_waited_for_and_judges() {
    let levers = Levers::default();
    let lab = wiping().extension(denying(&levers)).start().await;
    for _ in 0..3 {
        levers.end.notify_one();
        until_state(&lab, "Restarting").await;
        let turn = lab.begin("wipe it");
        // The pause before the restart, and the turn that waits.
        lab.pass(Millis(10_000), 2).await;
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
        assert!(settled(&lab).1.contains("denied by guard/0: never"), "{:?}", settled(&lab));
    }
    nothing_ran(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_fails_to_come_back_denies_at_once_until_it_is_restarted() {
    let levers = Levers::default();
    let lab = wiping().extension(denying(&levers)).start().await;
    levers.broken.store(true, Ordering::SeqCst);
    levers.end.notify_one();
    until_state(&lab, "Restarting").await;
    lab.pass(Millis(1_000), 1).await;
    until_state(&lab, "Failed").await;
    for _ in 0..3 {
        lab.say("wipe it").await;
        denied_for_the_outage(&lab);
        assert!(settled(&lab).1.contains("the list of words is gone"), "{:?}", settled(&lab));
    }
    levers.broken.store(false, Ordering::SeqCst);
    lab.runtime.retry("guard".into(), "test");
    lab.runtime.settled().await.unwrap();
    lab.say("wipe it").await;
    assert!(settled(&lab).1.contains("denied by guard/0: never"), "{:?}", settled(&lab));
    nothing_ran(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_does_not_come_up_in_time_denies() {
    let levers = Levers::default();
    let lab = wiping().extension(denying(&levers)).start().await;
    levers.slow.store(true, Ordering::SeqCst);
    levers.end.notify_one();
    until_state(&lab, "Restarting").await;
    lab.pass(Millis(1_000), 1).await;
    until_state(&lab, "Starting").await;
    let turn = lab.begin("wipe it");
    // `initialize`, and the turn that waits.
    lab.pass(Millis(30_000), 2).await;
    assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered);
    denied_for_the_outage(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_for_a_gate_can_be_cancelled_and_its_session_closed() {
    let levers = Levers::default();
    let lab = wiping().extension(denying(&levers)).start().await;
    levers.end.notify_one();
    until_state(&lab, "Restarting").await;
    let session = lab.session();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.say("test", "wipe it").await }
    });
    lab.until("it waits", |lab| lab.clock.sleepers() >= 2).await;
    session.cancel("enough").await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::TurnCancelled);
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.say("test", "wipe it").await }
    });
    lab.until("it waits", |lab| lab.clock.sleepers() >= 2).await;
    session.close().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guardrail_that_is_down_blocks_what_it_judges() {
    use HookPoint as P;
    for point in [
        P::SanitizeInput,
        P::GuardInput,
        P::SanitizeResult,
        P::GuardResult,
        P::GuardChunk,
        P::SanitizeOutput,
        P::GuardOutput,
    ] {
        let levers = Levers::default();
        let consenting = hook(HookSpec::at(point), move |_| point.consent().clone());
        let lab = wiping().extension(guard(&levers).hook(consenting)).start().await;
        levers.broken.store(true, Ordering::SeqCst);
        levers.end.notify_one();
        until_state(&lab, "Restarting").await;
        lab.pass(Millis(1_000), 1).await;
        until_state(&lab, "Failed").await;
        let report = lab.say("wipe it").await;
        match (report.outcome, point) {
            (TurnOutcome::Answered, P::SanitizeResult | P::GuardResult) => {
                let (code, message) = settled(&lab);
                assert!(code == "HF-3204" && message.contains("HF-3205"), "{point:?}: {code} {message}");
            }
            (TurnOutcome::Blocked { reason }, _) => {
                assert!(reason.contains("HF-3205") && reason.contains("`guard`"), "{point:?}: {reason}");
            }
            (other, _) => panic!("{point:?}: {other:?}"),
        }
        sound(&lab);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_is_expected_after_a_restart_as_it_was_and_as_it_is_broken_now() {
    let levers = Levers::default();
    let lab = wiping().extension(denying(&levers)).start().await;
    lab.say("wipe it").await;
    let (path, directory) = (lab.path().to_owned(), lab.stop().await);

    // A broken edit: the last good version is gone with the process that had it.
    let broken = Levers { broken: Arc::new(AtomicBool::new(true)), ..Levers::default() };
    let edited = NativeExtension::new("guard", "2.0.0").lifecycle(broken.clone()).hook(gate(Decision::Allow));
    let lab = reopened(&path).extension(edited).start().await;
    assert_eq!(state(&lab), "Failed");
    lab.say("wipe it").await;
    denied_for_the_outage(&lab);
    lab.stop().await;

    // Its folder cannot be read.
    let lab = reopened(&path)
        .rejects("guard", Fault::new(Code::ExtensionUnreadable, "permission denied"))
        .start()
        .await;
    assert_eq!(state(&lab), "Failed");
    lab.say("wipe it").await;
    denied_for_the_outage(&lab);
    assert!(settled(&lab).1.contains("HF-4010"), "{:?}", settled(&lab));
    let rejected = bodies(&lab.frames_of("system"), FrameKind::ExtensionRejected);
    assert_eq!((rejected.len(), &rejected[0]["id"]), (1, &json!("guard")));
    lab.stop().await;

    // It was removed.
    let lab = reopened(&path).start().await;
    assert_eq!(state(&lab), "none");
    lab.say("wipe it").await;
    assert_eq!(lab.ledger.count("tool "), 1, "it is not expected any more");
    sound(&lab);
    drop((lab.stop().await, directory));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_was_never_loaded_is_expected_if_it_is_declared() {
    for declared in [true, false] {
        let levers = Levers { broken: Arc::new(AtomicBool::new(true)), ..Levers::default() };
        let lab = wiping().start().await;
        // Nothing can load it.
        let mut found = NativeExtension::new("guard", "1.0.0").lifecycle(levers.clone()).to_found();
        found.lane = "nowhere".to_owned();
        found.judges.extend(declared.then(|| HookSpec::at(HookPoint::ToolGate)));
        lab.runtime.found(vec![found]);
        lab.runtime.settled().await.unwrap();
        lab.say("wipe it").await;
        if declared {
            denied_for_the_outage(&lab)
        } else {
            assert_eq!((lab.ledger.count("tool "), state(&lab).as_str()), (1, "none"))
        }
        sound(&lab);
    }
}

/// A log as a program leaves it that does not keep gates in the registry that are not up: the gate's extension cannot be read after a
/// restart, and a turn runs on what is left.
fn unguarded(path: &Path, registry: impl FnOnce(RegistryPin) -> RegistryPin) {
    let store = Store::open(path, StoreOptions::default()).unwrap();
    let (log, mut system) = (
        store.stream(&"system".into()).unwrap(),
        rebuild::<System>(&store, &"system".into()).unwrap().machine,
    );
    let fault = Fault::new(Code::ExtensionUnreadable, "permission denied");
    let facts: [Body; 4] = [
        SystemStarted { kernel: BEHAVIOUR, version: "test".to_owned(), ..SystemStarted::default() }.into(),
        SystemSettled::default().into(),
        ExtensionRejected { id: "guard".into(), fault }.into(),
        SystemSettled::default().into(),
    ];
    for body in facts {
        let input = Input { at: Millis(1), source: FrameSource::Host, cause: None, body };
        let effects = system.step(input).unwrap();
        log.append(effects.frames).unwrap();
        for act in effects.acts {
            if let Act::Activate { pin } = act {
                let bytes = canonical(&**pin.view.as_ref().unwrap()).unwrap();
                store.put(ObjectKind::Registry, bytes).unwrap();
            }
        }
    }
    let pin = registry(system.pin().clone());
    store.put(ObjectKind::Registry, canonical(&**pin.view.as_ref().unwrap()).unwrap()).unwrap();
    let (log, mut session) =
        (store.stream(&"s1".into()).unwrap(), rebuild::<Session>(&store, &"s1".into()).unwrap().machine);
    let body =
        InputReceived { text: "wipe it".into(), attachments: Vec::new(), message_id: None, registry: pin };
    // Long after the gate went down: what is chosen and what is recorded of a turn's start are a moment apart.
    let at = Millis(4_000_000_000_000);
    let input = Input { at, source: FrameSource::Surface("test".into()), cause: None, body: body.into() };
    log.append(session.step(input).unwrap().frames).unwrap();
    store.flush().unwrap();
    store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_notices_a_turn_without_a_gate_that_was_expected() {
    // A registry that nobody made, with the same frame named as its origin.
    let forged = |pin: RegistryPin| {
        let view = Registry { policy: pin.view.unwrap().policy, tools: Vec::new(), ..Registry::default() };
        let digest = holdfast_contract::digest::Digest::of_json(&view).unwrap();
        RegistryPin::new(RegistryRef { seq: Seq(1), digest }, Arc::new(view))
    };
    for (registry, kind) in [(None, "gate_absent"), (Some(forged), "registry_unknown")] {
        let lab = wiping().extension(denying(&Levers::default())).start().await;
        lab.say("wipe it").await;
        assert_eq!(lab.findings(), Vec::new());
        let (path, directory) = (lab.path().to_owned(), lab.stop().await);
        let store = Store::open(&path, StoreOptions::default()).unwrap();
        assert_eq!(verify(&store, None).unwrap().findings, Vec::new());
        store.close();
        unguarded(&path, |pin| registry.map_or(pin.clone(), |forge| forge(pin)));
        let store = Store::open(&path, StoreOptions::default()).unwrap();
        let findings = verify(&store, Some(&"s1".into())).unwrap().findings;
        let found: Vec<_> = findings.iter().map(|finding| finding.kind.as_str()).collect();
        assert_eq!(found, [kind], "{findings:#?}");
        assert!(kind != "gate_absent" || findings[0].detail.contains("guard/0"), "{findings:#?}");
        drop((store, directory));
    }
}
