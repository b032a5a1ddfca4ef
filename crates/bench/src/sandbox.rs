//! The figures of sandboxed gates: the engine alone, the lane, and whole tool calls through the pipeline past 0, 1, 10 and 100
//! gates. All are measured in one run, because a machine's speed varies.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::hook::{HookInput, HookPoint};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::manifest::{Grants, Profile};
use holdfast_contract::message::{AskedCall, CallView, Limits, Message, Origin, TurnContext, Usage};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, SessionSettings};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Bundle, Call, Host, Lane, Later};
use holdfast_lane_native::{FnTool, NativeExtension, NativeLane};
use holdfast_lane_wasm::{WasmLane, bare_gate};
use holdfast_loader::HomeVault;
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_policy::Policy;
use holdfast_runtime::calls::{CallState, start_call};
use holdfast_runtime::{
    HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SessionHandle, SilentSurface, SystemClock,
};
use holdfast_store::{Store, StoreOptions};
use serde_json::json;

use crate::GATE;
use crate::timing::{Moment, Timing};

/// Calls of each kind.
const CALLS: usize = 10_240;
/// Calls that a model asks for at once.
const CONCURRENT_CALLS: usize = 32;
/// How often each kind has its turn.
const PASSES: usize = 16;
/// Turns before the first one that counts.
const WARM: usize = 4;

/// What sandboxed gates cost here.
pub struct Sandboxed {
    /// The engine's own call.
    pub bare: Timing,
    /// The lane's.
    pub lane: Timing,
    /// Whole tool calls past 0, 1, 10 and 100 gates.
    pub pipeline: [Timing; 4],
}

impl Sandboxed {
    /// What one more gate costs, from the 2nd to the 10th and from the 11th to the 100th.
    pub fn marginal(&self) -> (Duration, Duration) {
        let [_, one, ten, hundred] = &self.pipeline;
        let each = |from: &Timing, to: &Timing, gates: u32| to.at(50).saturating_sub(from.at(50)) / gates;
        (each(one, ten, 9), each(ten, hundred, 90))
    }
}

/// Takes the figures, in this empty folder.
pub async fn sandboxed(folder: &Path) -> Result<Sandboxed, Problem> {
    let arguments = arguments(0);
    let bare = Timing::new("", bare_gate(GATE, arguments.json(), CALLS)?);
    let lane = Timing::new("", lane_calls(&folder.join("lane"), arguments).await?);
    // In turns, so that what the machine does meanwhile falls on all of them alike.
    let mut times = [0, 1, 10, 100].map(|gates| (gates, Vec::new()));
    for pass in 0..PASSES {
        for (gates, times) in &mut times {
            let line = Line::start(&folder.join(format!("{pass}-{gates}")), *gates).await?;
            times.extend(line.run().await?);
        }
    }
    let pipeline = times.map(|(gates, times)| Timing::new(gates.to_string(), times));
    Ok(Sandboxed { bare, lane, pipeline })
}

/// A KiB of arguments.
pub(crate) fn arguments(number: usize) -> Content {
    Content::new(json!({ "content": "x".repeat(980), "number": number, "path": "notes/today.md" }))
}

/// Gates in a vault, each an extension of its own, and the lane that runs them.
struct Gates {
    store: Store,
    lane: Arc<dyn Lane>,
    found: Vec<FoundExtension>,
}

/// So many gates.
fn gates(folder: &Path, count: usize) -> Result<Gates, Problem> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Problem::new(Code::Internal, format!("{}: {error}", folder.display())))?;
    let store = Store::open(&folder.join("holdfast.db"), StoreOptions::default())?;
    let vault = Arc::new(HomeVault::new(store.clone(), folder.join("generations")));
    let code = Digest::of(GATE);
    let mut found = Vec::new();
    for index in 0..count {
        let id = format!("gate{index:03}");
        let bundle = Bundle {
            lane: "wasm".to_owned(),
            manifest: format!("id: {id}\nname: {id}\nentrypoint: gate.wasm\n"),
            entrypoint: "gate.wasm".to_owned(),
            files: BTreeMap::from([("gate.wasm".to_owned(), code)]),
            config: Content::new(json!({})),
            grants: Grants::default(),
            budgets: Default::default(),
            pinned: None,
        };
        let digest = vault.keep(&bundle, BTreeMap::from([(code, GATE.to_vec())]))?;
        let (id, version, lane) = (id.as_str().into(), "1.0.0".into(), bundle.lane);
        found.push(FoundExtension { id, version, digest, lane, ..FoundExtension::default() });
    }
    let lane = Arc::new(WasmLane::new(SandboxOptions::default().few(), vault)?);
    Ok(Gates { store, lane, found })
}

/// One warm instance, called as the runtime calls it.
async fn lane_calls(folder: &Path, arguments: Content) -> Result<Vec<Duration>, Problem> {
    let Gates { lane, found, .. } = gates(folder, 1)?;
    let missing = || Problem::new(Code::Internal, "there is no gate");
    let loaded = lane.load(&found.first().ok_or_else(missing)?.activation(1)).await?;
    if let Some(preparing) = loaded.prepare() {
        preparing.await;
    }
    let instance = loaded.fresh().ok_or_else(missing)?;
    let turn = Arc::new(TurnContext::default());
    let view = CallView { id: CallId { turn: 1, index: 1 }, tool: "file_write".into(), arguments };
    let host = Arc::new(NoHost);
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let subject = Some(view.arguments.clone());
        let input = HookInput {
            hook: "gate000/0".into(),
            point: HookPoint::ToolGate,
            call: Some(view.clone()),
            subject,
            turn: turn.clone(),
        };
        let begun = Instant::now();
        let made = start_call(&instance, Call::Hook(input), host.clone());
        times.push(begun.elapsed());
        if !matches!(made, CallState::Answered(Ok(_))) {
            return Err(Problem::new(Code::Internal, "the gate did not allow the call at once"));
        }
    }
    Ok(times)
}

/// A session whose tool calls pass so many gates.
struct Line {
    runtime: Runtime,
    session: SessionHandle,
    /// When the model answered, and when the last tool ran.
    answered: Moment,
    ran: Moment,
}

impl Line {
    async fn start(folder: &Path, count: usize) -> Result<Self, Problem> {
        let Gates { store, lane, found } = gates(folder, count)?;
        let (answered, ran) = (Moment::default(), Moment::default());
        let (native, notes) = (NativeLane::default(), ran.clone());
        let spec = ToolSpec { effects: EffectClass::Pure, ..ToolSpec::named("noop", "Does nothing.") };
        let tool = FnTool(spec, move |_: &Content| {
            notes.set();
            Ok(Content::default())
        });
        let kit = native.add(NativeExtension::new("kit", "1.0.0").tool(tool));
        let extensions = std::iter::once(kit).chain(found).collect();
        let model = Arc::new(Caller(answered.clone()));
        let runtime = started(store, model, vec![Arc::new(native), lane], extensions).await?;
        let session = opened(&runtime, "bench", None)?;
        Ok(Self { runtime, session, answered, ran })
    }

    /// The times from the model's answer to the tool's run, on the deciding thread, spread over the calls asked for at once. The first
    /// turns bring code and data in.
    async fn run(self) -> Result<Vec<Duration>, Problem> {
        let mut times = Vec::new();
        for turn in 0..WARM + CALLS / CONCURRENT_CALLS / PASSES {
            self.session.say("bench", "go").await?;
            if turn >= WARM {
                times.push(self.ran.get().duration_since(self.answered.get()) / CONCURRENT_CALLS as u32);
            }
        }
        self.runtime.stop("measured").await?;
        Ok(times)
    }
}

/// A runtime with nothing but what is measured.
pub(crate) async fn started(
    store: Store,
    model: Arc<dyn Model>,
    lanes: Vec<Arc<dyn Lane>>,
    extensions: Vec<FoundExtension>,
) -> Result<Runtime, Problem> {
    Runtime::start(Parts {
        store,
        clock: Arc::new(SystemClock),
        entropy: Arc::new(OsEntropy),
        models: BTreeMap::from([("caller".into(), model)]),
        lanes,
        extensions,
        policy: Policy::profile(Profile::FullAuto),
        surface: Arc::new(SilentSurface),
        routes: Routes::default(),
        home: HomeParts::default(),
    })
    .await
}

/// A session without limits, for this user.
pub(crate) fn opened(runtime: &Runtime, id: &str, user: Option<&str>) -> Result<SessionHandle, Problem> {
    let limits = Limits {
        max_turns: u32::MAX,
        max_tokens: u64::MAX >> 11,
        time_budget: Millis(1 << 40),
        ..Limits::default()
    };
    runtime.open(NewSession {
        id: id.into(),
        origin: Origin { channel: "bench".to_owned(), user: user.map(str::to_owned) },
        agent: "main".into(),
        instructions: Content::default(),
        settings: SessionSettings { models: vec!["caller".into()], limits, ..SessionSettings::default() },
    })
}

/// A model that answers every input with calls of the tool, and then is done.
struct Caller(Moment);

impl Model for Caller {
    fn complete(&self, ask: Box<ModelRequest>, _: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let fresh = matches!(ask.messages.last(), Some(Message::User { .. }));
        let asked = |number: usize| AskedCall {
            model_id: number.to_string().into(),
            tool: "noop".into(),
            arguments: arguments(number),
        };
        let calls: Vec<_> = if fresh { (0..CONCURRENT_CALLS).map(asked).collect() } else { Vec::new() };
        let text = if fresh { "" } else { "done" }.into();
        if fresh {
            self.0.set();
        }
        Box::pin(std::future::ready(Ok(ModelReturned {
            text,
            reasoning: None,
            calls,
            usage: Usage::default(),
        })))
    }
}

/// A host without services: a gate that is measured asks it for nothing.
struct NoHost;

impl Host for NoHost {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::ready(Err(Fault::new(Code::Internal, "a benchmark has no host"))))
    }
}
