//! What is measured: a session machine in the middle of a turn, a lab whose model calls a no-op tool, a log to append to.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use holdfast_bench::GATE;
use holdfast_contract::body::Body;
use holdfast_contract::content::Content;
use holdfast_contract::effect::{Effects, Input};
use holdfast_contract::frame::{Draft, FrameSource};
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::{CallId, Millis, Seq};
use holdfast_contract::message::{AskedCall, Limits, Message, Origin, TurnView, Usage};
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{Implementation, Registry, RegistryPin, RegistryRef, ToolEntry};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::{
    CheckOutcome, HookDecided, InputReceived, ModelFailed, ModelReturned, SessionSettings, SessionStarted,
    ToolChecked, ToolReturned,
};
use holdfast_contract::tool::{EffectClass, ToolOutcome, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_kernel::{BEHAVIOUR, Session};
use holdfast_lane_native::{NativeExtension, Tool};
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_testkit::pieces::{gate, spec, tool};
use holdfast_testkit::wasm::{MapVault, lane, manifest};
use holdfast_testkit::{Lab, LabBuilder};
use serde_json::json;

/// Limits that a bench never reaches.
pub fn no_limits() -> Limits {
    Limits {
        max_turns: u32::MAX,
        max_tokens: u64::MAX >> 11,
        time_budget: Millis(1 << 40),
        ..Limits::default()
    }
}

/// A session machine whose model has just been asked, on a registry with one no-op tool and no hooks.
pub struct Loop {
    session: Session,
    asked: AskedCall,
    requested: Seq,
    calls: u32,
}

impl Default for Loop {
    fn default() -> Self {
        let mut session = Session::new("bench".into());
        let started = SessionStarted {
            kernel: BEHAVIOUR,
            origin: Origin { channel: "bench".to_owned(), user: None },
            agent: "main".into(),
            instructions: "".into(),
            parent: None,
            depth: 0,
            settings: SessionSettings {
                models: vec!["bench".into()],
                limits: no_limits(),
                ..SessionSettings::default()
            }
            .into(),
        };
        let _started = session.step(fact(None, started));
        let extension = Arc::new(holdfast_contract::registry::ExtensionRef {
            id: "kit".into(),
            version: "1.0.0".into(),
            digest: Default::default(),
            generation: Default::default(),
        });
        let implementation =
            Implementation { extension, spec: Arc::new(spec("noop", EffectClass::Pure)), agent: None };
        let tools = vec![ToolEntry { name: "noop".into(), stack: vec![implementation] }];
        let registry =
            RegistryPin::new(RegistryRef::default(), Arc::new(Registry { tools, ..Registry::default() }));
        let input = InputReceived { text: "go".into(), attachments: Vec::new(), message_id: None, registry };
        let _asked = session.step(fact(None, input));
        let requested = Seq(session.next_seq().0 - 1);
        let asked = AskedCall {
            model_id: "1".into(),
            tool: "noop".into(),
            arguments: Content::new(json!({ "n": 1 })),
        };
        Self { session, asked, requested, calls: 0 }
    }
}

fn fact(cause: Option<Seq>, body: impl Into<Body>) -> Input {
    Input { at: Millis(1), source: FrameSource::Host, cause, body: body.into() }
}

impl Loop {
    /// One tool call through all phases, from the model's answer to its next request: four steps of the machine.
    pub fn tool_call(&mut self) -> Result<Effects, Fault> {
        let calls = vec![self.asked.clone()];
        let returned = ModelReturned { text: "".into(), reasoning: None, calls, usage: Usage::default() };
        let first = self.session.next_seq();
        self.session.step(fact(Some(self.requested), returned))?;
        self.calls += 1;
        let call = CallId { turn: 1, index: self.calls };
        self.session.step(fact(Some(first), ToolChecked { call, outcome: CheckOutcome::Valid }))?;
        let asked = Seq(self.session.next_seq().0 - 1);
        let decided = HookDecided {
            hook: "policy".into(),
            point: HookPoint::ToolGate,
            call: Some(call),
            subject: None,
            decision: Decision::Allow,
            rule: None,
        };
        self.session.step(fact(Some(asked), decided))?;
        let dispatched = Seq(self.session.next_seq().0 - 1);
        let outcome = ToolOutcome::Result(self.asked.arguments.clone());
        let effects = self.session.step(fact(Some(dispatched), ToolReturned { call, outcome }));
        self.requested = Seq(self.session.next_seq().0 - 1);
        effects
    }
}

/// A model that answers every input with so many calls of the no-op tool at once, and then is done.
pub struct Caller {
    calls: usize,
    /// When it last gave its calls.
    pub answered: Arc<Mutex<Instant>>,
}

impl Model for Caller {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let fresh = matches!(ask.messages.last(), Some(Message::User { .. }));
        drop(ask);
        let asked = |index: usize| AskedCall {
            model_id: index.to_string().into(),
            tool: "noop".into(),
            arguments: Content::new(json!({ "n": index })),
        };
        let calls: Vec<_> = if fresh { (0..self.calls).map(asked).collect() } else { Vec::new() };
        if let (true, Ok(mut answered)) = (fresh, self.answered.lock()) {
            *answered = Instant::now();
        }
        let returned = ModelReturned { text: "".into(), reasoning: None, calls, usage: Usage::default() };
        Box::pin(std::future::ready(Ok(returned)))
    }
}

/// A lab whose model calls the no-op tool so often per turn, past so many gates. The second value is when the model last gave its
/// calls, the third when the tool last ran.
pub fn lab(calls: usize, gates: usize) -> (LabBuilder, Arc<Mutex<Instant>>, Arc<Mutex<Instant>>) {
    let answered = Arc::new(Mutex::new(Instant::now()));
    let ran = answered.lock().map(|now| Arc::new(Mutex::new(*now))).unwrap_or_else(|_| answered.clone());
    let notes = ran.clone();
    let noop = tool("noop", EffectClass::Pure, move |arguments| {
        if let Ok(mut ran) = notes.lock() {
            *ran = Instant::now();
        }
        arguments.clone()
    });
    let mut builder = Lab::build()
        .limits(no_limits())
        .model("script", Caller { calls, answered: answered.clone() })
        .extension(NativeExtension::new("kit", "1.0.0").tool(noop));
    for index in 0..gates {
        builder = builder
            .extension(NativeExtension::new(&format!("gate{index:03}"), "1.0.0").hook(gate(Decision::Allow)));
    }
    (builder, answered, ran)
}

/// A lab whose model calls a tool so often per turn that does not answer at once, as none does that runs elsewhere.
pub fn awaited(calls: usize) -> LabBuilder {
    let answered = Arc::new(Mutex::new(Instant::now()));
    Lab::build()
        .limits(no_limits())
        .model("script", Caller { calls, answered })
        .extension(NativeExtension::new("kit", "1.0.0").tool(Awaited))
}

/// The no-op tool, after a moment.
struct Awaited;

impl Tool for Awaited {
    fn spec(&self) -> ToolSpec {
        spec("noop", EffectClass::Pure)
    }

    fn call(
        &self,
        _: CallId,
        arguments: Content,
        _: TurnView,
        _: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(arguments)
        })
    }
}

/// A lab with so many gates that are sandboxed components, each an extension of its own.
pub fn sandboxed(lab: LabBuilder, gates: usize) -> LabBuilder {
    let (vault, options) = (Arc::new(MapVault::default()), SandboxOptions::small());
    let found: Vec<_> = (0..gates)
        .map(|index| vault.add(&manifest(&format!("gate{index:03}"), ""), GATE.to_vec(), &options))
        .collect();
    lab.lane(lane(&vault), found)
}

/// Frames as a session has them, to append.
pub fn drafts(from: u64, count: u64) -> Vec<Draft> {
    let body = |seq: u64| ToolReturned {
        call: CallId { turn: 1, index: 1 },
        outcome: ToolOutcome::Result(Content::new(
            json!({ "n": seq, "text": "a result of ordinary size, as tools give it" }),
        )),
    };
    (from..from + count)
        .map(|seq| Draft {
            seq: Seq(seq),
            at: Millis(seq),
            source: FrameSource::Host,
            cause: seq.checked_sub(1).map(Seq),
            body: body(seq).into(),
        })
        .collect()
}
