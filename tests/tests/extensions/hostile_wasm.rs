//! The hostile corpus in real turns: every guest leaves exactly one frame with its reason, a gate that breaks has denied, everybody
//! else goes on, and the session replays.

#[allow(dead_code, reason = "which limit stops an attack is asked of the lane alone")]
#[path = "../../hostile/corpus.rs"]
mod corpus;

use std::sync::Arc;

use corpus::{Attack, Case};
use holdfast_contract::budgets::Budgets;
use holdfast_contract::frame::Frame;
use holdfast_contract::ids::Millis;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_contract::tool::EffectClass;
use holdfast_contract::wire::Lane;
use holdfast_lane_native::NativeExtension;
use holdfast_testkit::pieces::tool;
use holdfast_testkit::wasm::{MapVault, lane_with, manifest};
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};

/// One lane for the whole corpus, as a program has one.
struct Sandbox {
    vault: Arc<MapVault>,
    lane: Arc<dyn Lane>,
}

impl Sandbox {
    fn new() -> Self {
        let vault = Arc::new(MapVault::default());
        let lane = lane_with(&vault, SandboxOptions::default());
        Self { vault, lane }
    }

    /// A lab with the guest and with two tools of others, whose model first does what the guest waits for and then calls the good
    /// one.
    async fn lab(&self, case: &Case, budgets: Budgets) -> Lab {
        let options = SandboxOptions { budgets, ..SandboxOptions::default() };
        // A gate judges its victim alone, so that a call of the good tool shows whether others notice.
        let hints = match (&case.attack, case.manifest.is_empty()) {
            (Some(Attack::Gate { .. }), true) => "hooks: [{ point: tool_gate }]",
            _ => &case.manifest,
        };
        let hints = hints.replace("point: tool_gate", "point: tool_gate, matcher: { tools: [victim] }");
        let manifest = manifest(&case.name, &hints);
        let found = self.vault.add_granted(&manifest, case.component.clone(), &options, case.grants.clone());
        let attack = case.attack.clone().map(|attack| match attack {
            Attack::Tool { name, arguments } => ScriptStep::Calls(vec![(name, arguments)]),
            Attack::Gate { arguments } => ScriptStep::calls([("victim", arguments)]),
        });
        let steps =
            attack.into_iter().chain([ScriptStep::calls([("good", json!({}))]), ScriptStep::says("done")]);
        let bystanders = NativeExtension::new("bystanders", "1.0.0")
            .tool(tool("good", EffectClass::Pure, |_| json!("well")))
            .tool(tool("victim", EffectClass::Write, |_| json!("ran")))
            .replayable();
        let lab = Lab::build().extension(bystanders).lane(self.lane.clone(), [found]).script(steps);
        let lab = lab.start().await;
        lab.runtime.settled().await.unwrap();
        // The moment that guests which read the time expect.
        lab.clock.advance(Millis(123));
        lab
    }
}

/// The bodies of frames in which an extension's fault of this code is first told.
fn told(frames: &[Frame], code: &str) -> Vec<Value> {
    let facts = frames.iter().filter(|frame| {
        ["hook.faulted", "tool.returned", "extension.reported"].contains(&frame.envelope.kind.as_str())
    });
    let bodies = facts.map(|frame| frame.body.clone().unwrap_or_default());
    let of_code = |body: &Value| {
        let places = ["/fault/code", "/outcome/failure/code", "/outcome/failed/code"];
        places.iter().any(|place| body.pointer(place).is_some_and(|it| it == code))
    };
    bodies.filter(of_code).collect()
}

/// What became of a tool's calls.
fn results(lab: &Lab, wanted: &str) -> Vec<Value> {
    let frames = lab.frames();
    let of_kind = |kind: &'static str| {
        let of_kind = frames.iter().filter(move |frame| frame.envelope.kind.as_str() == kind);
        of_kind.map(|frame| frame.body.clone().unwrap_or_default())
    };
    let called: Vec<_> = of_kind("tool.called")
        .filter(|body| body["tool"] == wanted)
        .map(|body| body["call"].clone())
        .collect();
    of_kind("tool.settled").filter(|body| called.contains(&body["call"])).collect()
}

fn check_replay(lab: &Lab, name: &str) {
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.snapshot_identical, "{name}: {verdict:#?}");
    assert!(lab.findings().is_empty(), "{name}: {:?}", lab.findings());
}

async fn attack(sandbox: &Sandbox, case: &Case) {
    let name = &case.name;
    let lab = sandbox.lab(case, case.budgets).await;
    let report = lab.say("go").await;
    assert!(matches!(report.outcome, TurnOutcome::Answered), "{name}: {report:?}\n{}", lab.story());
    let good = results(&lab, "good");
    assert!(good.len() == 1 && good[0]["status"] == "done", "{name}: the next call\n{}", lab.story());

    let in_session = told(&lab.frames(), &case.expect).len();
    let in_system = told(&lab.frames_of("system"), &case.expect);
    match (&case.attack, case.expect.as_str()) {
        (None, _) => {
            assert_eq!(in_system.len(), 1, "{name}: the system is told once: {in_system:?}");
            let all = lab.runtime.extensions().await.unwrap();
            let it = all.iter().find(|it| it.id.as_str() == name).unwrap();
            assert!(it.active.is_none() && it.fault.is_some(), "{name}: it does not serve: {it:#?}");
        }
        (Some(attack), "ok") => {
            let victim = match attack {
                Attack::Tool { name, .. } => name,
                Attack::Gate { .. } => "victim",
            };
            assert_eq!(results(&lab, victim)[0]["status"], "done", "{name}:\n{}", lab.story());
        }
        (Some(Attack::Tool { .. }), _) => {
            assert_eq!(in_session, 1, "{name}: one frame has the reason {}\n{}", case.expect, lab.story());
        }
        (Some(Attack::Gate { .. }), _) => {
            assert_eq!(in_session, 1, "{name}: one frame has the reason {}\n{}", case.expect, lab.story());
            assert_eq!(results(&lab, "victim")[0]["status"], "denied", "{name}:\n{}", lab.story());
            assert_eq!(lab.ledger.count("tool s1 1.1"), 0, "{name}: a denied call has not run");
        }
    }
    check_replay(&lab, name);
    lab.stop().await;
}

/// Bytes of memory that no file is behind.
fn anonymous() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_guest_gets_its_reason_and_the_session_goes_on() {
    let sandbox = Sandbox::new();
    let cases = corpus::all();
    assert!(cases.len() >= 80, "the corpus is there");
    // The first one pays for what the process keeps anyway.
    attack(&sandbox, &cases[0]).await;
    let before = anonymous();
    for case in &cases {
        attack(&sandbox, case).await;
    }
    let grown = anonymous().saturating_sub(before);
    assert!(grown < 64 << 20, "the corpus left {grown} bytes behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_never_ends_is_cancelled_with_its_turn() {
    let sandbox = Sandbox::new();
    for case in
        corpus::all().iter().filter(|case| ["loop-in-call", "clock-flood"].contains(&case.name.as_str()))
    {
        // So much that nothing but the user ends it.
        let budgets = Budgets { fuel: u64::MAX >> 1, host_calls: u32::MAX, ..case.budgets };
        let lab = sandbox.lab(case, budgets).await;
        let turn = lab.begin("go");
        lab.until_kind("tool.dispatched").await;
        lab.session().cancel("the user pressed Ctrl-C").await.unwrap();
        let report = turn.await.unwrap();
        assert!(matches!(report.outcome, TurnOutcome::Cancelled { .. }), "{}: {report:?}", case.name);
        assert_eq!(results(&lab, "burn")[0]["status"], "cancelled", "{}:\n{}", case.name, lab.story());
        assert!(matches!(lab.say("and now?").await.outcome, TurnOutcome::Answered), "{}", case.name);
        let good = results(&lab, "good");
        assert!(good.len() == 1 && good[0]["status"] == "done", "{}:\n{}", case.name, lab.story());
        check_replay(&lab, &case.name);
        lab.stop().await;
    }
}
