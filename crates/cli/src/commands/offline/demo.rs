//! `holdfast demo`: a small session with a scripted model, two tools, a gate and an approval, recorded for real.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::ids::StreamId;
use holdfast_contract::manifest::Profile;
use holdfast_contract::message::Origin;
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{Answer, ApprovalScope, SessionSettings};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::Lane;
use holdfast_home::Home;
use holdfast_lane_native::{FnHook, FnTool, NativeExtension, NativeLane};
use holdfast_model::Model;
use holdfast_model::script::{Script, ScriptStep};
use holdfast_policy::Policy;
use holdfast_replay::verify;
use holdfast_replay::{Mode, replay};
use holdfast_runtime::{
    HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SessionEvent, Surface, SystemClock,
};
use holdfast_store::{Store, StoreOptions};
use serde_json::json;
use tokio::sync::mpsc;

use crate::arguments::Demo;
use crate::commands::local::replay::show;
use crate::output::{Output, frame_line};

pub(crate) fn demo(output: &Output, home: &Home, command: Demo) -> Result<bool, Problem> {
    // Two runtimes on one log would write over each other.
    let _ownership = home.own()?;
    let store = Store::open(&home.database(), StoreOptions::default())?;
    let home = home.root();
    let session = match command.session {
        Some(id) => StreamId::from(id),
        None => free_name(&store)?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::new(Code::Internal, format!("no threads can be started: {error}")))?;
    runtime.block_on(record(store.clone(), session.clone()))?;
    for frame in store.frames(&session, ..)? {
        if output.json { output.document(&frame)? } else { output.line(frame_line(&frame))? }
    }
    let report = verify(&store, None)?;
    let verdict = replay(&store, &session, Mode::Strict, &lanes())?;
    let whole = report.findings.is_empty();
    if !output.json {
        output.line("")?;
        output.line(format!(
            "verify: {}",
            if whole { "the log is whole, and every gate decided" } else { "FAILED" }
        ))?;
        output.line("replay:")?;
        show(output, &verdict)?;
        output.line("")?;
        output.line(format!("The session is in {}. Look closer:", home.display()))?;
        output
            .line(format!("  holdfast --home {} log show {session} --kind tool.decided", home.display()))?;
        output.line(format!("  holdfast --home {} log verify", home.display()))?;
    }
    Ok(whole && verdict.identical)
}

fn free_name(store: &Store) -> Result<StreamId, Problem> {
    for number in 1u32.. {
        let name = StreamId::from(format!("demo-{number}"));
        if store.head(&name)?.is_none() {
            return Ok(name);
        }
    }
    Err(Problem::new(Code::Internal, "every name is taken"))
}

/// The lanes whose code is built in, for replay.
pub(crate) fn lanes() -> Vec<Arc<dyn Lane>> {
    let lane = NativeLane::default();
    lane.add(extension());
    vec![Arc::new(lane)]
}

/// Two tools and a gate.
fn extension() -> NativeExtension {
    let add = ToolSpec {
        effects: EffectClass::Pure,
        input_schema: Content::new(json!({
            "type": "object",
            "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
            "required": ["a", "b"],
        })),
        ..ToolSpec::named("add", "Adds two numbers.")
    };
    let note = ToolSpec { effects: EffectClass::Write, ..ToolSpec::named("note", "Keeps a note.") };
    let gate = |input: &HookInput| {
        let text = input.subject.as_ref().map(Content::to_text).unwrap_or_default();
        Ok(if text.contains("password") {
            Decision::Deny { reason: "a note must not hold a password".to_owned() }
        } else {
            Decision::Allow
        })
    };
    NativeExtension::new("demo", "1.0.0")
        .tool(FnTool(add, |arguments: &Content| {
            let number = |name: &str| arguments.value()[name].as_f64().unwrap_or(0.0);
            Ok(Content::new(json!({ "sum": number("a") + number("b") })))
        }))
        .tool(FnTool(note, |arguments: &Content| Ok(Content::new(json!({ "kept": arguments.value() })))))
        .hook(FnHook(HookSpec::at(HookPoint::ToolGate), gate))
        .replayable()
}

fn script() -> Script {
    Script::new([
        ScriptStep::calls([
            ("add", json!({ "a": 19, "b": "23" })),
            ("note", json!({ "text": "19 + 23 = 42" })),
            ("note", json!({ "text": "my password is hunter2" })),
        ]),
        ScriptStep::says("19 + 23 is 42. I kept a note of it; the other note was refused."),
    ])
}

async fn record(store: Store, session: StreamId) -> Result<(), Problem> {
    let lane = NativeLane::default();
    let found = lane.add(extension());
    let model: Arc<dyn Model> = Arc::new(script());
    let (approvals, mut asked) = mpsc::unbounded_channel();
    let runtime = Runtime::start(Parts {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        models: BTreeMap::from([("script".into(), model)]),
        lanes: vec![Arc::new(lane)],
        extensions: vec![found],
        policy: Policy::profile(Profile::Standard),
        surface: Arc::new(Approver(approvals)),
        routes: Routes::default(),
        home: HomeParts::default(),
    })
    .await?;
    let handle = runtime.open(NewSession {
        id: session,
        origin: Origin { channel: "demo".to_owned(), user: None },
        agent: "demo".into(),
        instructions: "You add numbers and keep notes.".into(),
        settings: SessionSettings { models: vec!["script".into()], ..SessionSettings::default() },
    })?;
    let approver = handle.clone();
    tokio::spawn(async move {
        while let Some(approval) = asked.recv().await {
            // An approval that came too late, after the turn ended, is no longer wanted.
            let _late = approver.approve(approval, Answer::Approve { scope: ApprovalScope::Once }).await;
        }
    });
    handle.say("demo", "What is 19 + 23? Keep a note of it, and of my password.").await?;
    runtime.stop("the demonstration is over").await
}

/// A surface that hands every approval on, to be answered with yes.
struct Approver(mpsc::UnboundedSender<holdfast_contract::ids::Seq>);

impl Surface for Approver {
    fn show(&self, _: &StreamId, event: SessionEvent) {
        if let SessionEvent::Approval(pending) = event {
            // The receiver is gone once the demonstration is over.
            let _over = self.0.send(pending.approval);
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        true
    }
}
