//! The context chain: in which order providers are asked, what becomes of one that is slow, fails or says too much, and that what the model
//! reads is what a prompt is enriched with.

use std::sync::{Arc, Mutex};

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::context::{ContextBudget, SEPARATOR, tokens};
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::{Origin, TurnView};
use holdfast_contract::problem::Fault;
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, SessionSettings};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Channel, FnHook, Hook, NativeExtension, Tool, now};
use holdfast_model::script::Script;
use holdfast_model::{Deltas, Model, ModelRequest};
use holdfast_runtime::NewSession;
use holdfast_testkit::pieces::{hanging_hook, hook, spec};
use holdfast_testkit::story::bodies;
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::{Value, json};

/// A model that remembers what the system role was told.
struct Reader {
    script: Script,
    read: Arc<Mutex<Vec<String>>>,
}

impl Model for Reader {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let blocks: Vec<String> = ask.context.iter().map(Content::to_text).collect();
        self.read.lock().unwrap().push(blocks.join(SEPARATOR));
        self.script.complete(ask, deltas)
    }
}

fn provider(priority: i32, tokens: Option<u32>, text: &str) -> impl Hook + 'static {
    let text = text.to_owned();
    hook(HookSpec { priority, tokens, ..HookSpec::at(HookPoint::Context) }, move |_| Decision::Inject {
        content: text.as_str().into(),
    })
}

/// A provider that takes its time, as one that asks the host does.
struct Later100(HookSpec, &'static str);

impl Hook for Later100 {
    fn spec(&self) -> HookSpec {
        self.0.clone()
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        let text = self.1;
        Box::pin(async move {
            host.call(HostCall::Clock).await?;
            Ok(Decision::Inject { content: text.into() })
        })
    }
}

/// A tool that gives a prompt enriched, as an extension with an agent of its own would.
struct Enriching;

impl Tool for Enriching {
    fn spec(&self) -> ToolSpec {
        spec("enrich", EffectClass::Read)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        host.call(HostCall::named("context.enrich", json!({ "prompt": "What now?" })))
    }
}

const LONG: &str = "The first paragraph is short.\n\nThe second paragraph goes on and on, and is where the budget ends, because it \
                    has many more words than anybody could possibly want to read in a system prompt.";

fn chain(read: &Arc<Mutex<Vec<String>>>, steps: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    let slow = HookSpec { priority: 20, ..HookSpec::at(HookPoint::Context) };
    let failing = FnHook(HookSpec { priority: 30, ..HookSpec::at(HookPoint::Context) }, |_: &HookInput| {
        Err(Fault::new(holdfast_contract::problem::Code::ExtensionFault, "the index is gone"))
    });
    let reader = Reader { script: Script::new(steps), read: read.clone() };
    Lab::build()
        .model("script", reader)
        .extension(
            NativeExtension::new("last", "1.0.0").hook(provider(50, None, "The last block.")).replayable(),
        )
        .extension(
            NativeExtension::new("patient", "1.0.0").hook(Later100(slow, "The patient block.")).replayable(),
        )
        .extension(NativeExtension::new("broken", "1.0.0").hook(failing).replayable())
        .extension(NativeExtension::new("hung", "1.0.0").hook(hanging_hook(HookPoint::Context, Millis(500))))
        .extension(
            NativeExtension::new("first", "1.0.0").hook(provider(10, None, "The first block.")).replayable(),
        )
        .extension(NativeExtension::new("wordy", "1.0.0").hook(provider(40, Some(30), LONG)).replayable())
        .extension(NativeExtension::new("agent", "1.0.0").tool(Enriching))
}

/// What `docs/context.md` promises of this chain.
const EXPECTED: &str = "The first block.\n\n---\n\nThe patient block.\n\n---\n\nThe first paragraph is short.\n\nThe second paragraph goes on and on,\n\
                        [cut here: about 48 tokens, of which 30 may be used]\n\n---\n\nThe last block.";

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_a_failing_and_a_wordy_provider_leave_the_others_as_they_are() {
    let read = Arc::default();
    let lab = chain(&read, [ScriptStep::says("done")]).start().await;
    let turn = lab.begin("hello");
    lab.until_kind("hook.called").await;
    // The turn's own timer, and the provider that hangs.
    lab.pass(Millis(500), 2).await;
    assert_eq!(turn.await.unwrap().answer.unwrap().to_text(), "done");
    let read: Vec<String> = read.lock().unwrap().clone();
    assert_eq!(read, [EXPECTED]);

    let frames = lab.frames();
    let faulted: Vec<(Value, Value)> = bodies(&frames, FrameKind::HookFaulted)
        .iter()
        .map(|body| (body["hook"].clone(), body["fault"]["code"].clone()))
        .collect();
    assert_eq!(faulted, [(json!("broken/0"), json!("HF-4003")), (json!("hung/0"), json!("HF-3201"))]);
    let cut: Vec<Value> = bodies(&frames, FrameKind::HookDecided)
        .into_iter()
        .filter(|body| !body["rule"].is_null() && body["point"] == "context")
        .map(|body| json!([body["hook"], body["rule"]]))
        .collect();
    assert_eq!(
        cut,
        [json!(["wordy/0", "context.provider_tokens"])],
        "the frame says what was cut, and by what"
    );
    let injected = &bodies(&frames, FrameKind::ContextInjected)[0]["blocks"];
    let origins: Vec<&Value> = injected.as_array().unwrap().iter().map(|block| &block["hook"]).collect();
    assert_eq!(origins, ["first/0", "patient/0", "wordy/0", "last/0"]);
    assert_eq!(lab.findings(), []);
    let verdict = lab.replay("s1");
    assert!(verdict.identical && verdict.snapshot_identical, "{verdict:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enriched_prompt_begins_with_what_the_model_reads() {
    let read = Arc::default();
    let lab =
        chain(&read, [ScriptStep::calls([("enrich", json!({}))]), ScriptStep::says("done")]).start().await;
    let turn = lab.begin("hello");
    lab.until_kind("hook.called").await;
    lab.pass(Millis(500), 2).await;
    lab.until_kind("tool.dispatched").await;
    // The turn's timer, the tool's, and the provider that hangs again.
    lab.pass(Millis(500), 3).await;
    turn.await.unwrap();
    let returned = &bodies(&lab.frames(), FrameKind::ToolReturned)[0];
    let told = read.lock().unwrap()[0].clone();
    assert_eq!(returned["outcome"]["result"]["json"], json!(format!("{told}{SEPARATOR}What now?")));
    lab.runtime.settled().await.unwrap();
    let faults = bodies(&lab.frames_of("system"), FrameKind::ExtensionFaulted);
    let of = |id: &str| faults.iter().filter(|fault| fault["id"] == id).count();
    assert_eq!((of("broken"), of("hung")), (2, 2), "once in the turn, and once outside of it: {faults:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_are_asked_first_have_their_say_first() {
    let read: Arc<Mutex<Vec<String>>> = Arc::default();
    let words = "word ".repeat(1_000);
    let budget = ContextBudget {
        provider_tokens: 100,
        total_tokens: 250,
        providers: [("trusted".into(), 200)].into(),
    };
    let lab = Lab::build()
        .settings(|settings| settings.context = budget)
        .model("script", Reader { script: Script::new([ScriptStep::says("done")]), read: read.clone() })
        .extension(NativeExtension::new("trusted", "1.0.0").hook(provider(1, Some(50), &words)).replayable())
        .extension(NativeExtension::new("second", "1.0.0").hook(provider(2, None, &words)).replayable())
        .extension(NativeExtension::new("third", "1.0.0").hook(provider(3, None, &words)).replayable())
        .start()
        .await;
    lab.say("hello").await;
    let read = read.lock().unwrap()[0].clone();
    let sizes: Vec<u32> = read.split(SEPARATOR).map(tokens).collect();
    assert!(
        sizes[0] <= 200 && sizes[0] > 180,
        "what the user sets counts more than what it declares: {sizes:?}"
    );
    assert!(sizes[1] <= 250 - sizes[0] && sizes[2] < 20, "then there is room for little else: {sizes:?}");
    let rules: Vec<Value> =
        bodies(&lab.frames(), FrameKind::HookDecided).iter().map(|body| body["rule"].clone()).collect();
    assert_eq!(rules, ["context.provider_tokens", "context.total_tokens", "context.total_tokens"]);
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:#?}");
}

struct Pigeon;

impl Channel for Pigeon {
    fn send_to_user(&self, _: String, _: String, _: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_provider_comes_first_and_says_where_the_user_is() {
    let read: Arc<Mutex<Vec<String>>> = Arc::default();
    let script = Script::new([ScriptStep::says("done"), ScriptStep::says("done")]);
    let lab = Lab::build()
        .model("script", Reader { script, read: read.clone() })
        .extension(NativeExtension::new("early", "1.0.0").hook(provider(1, None, "Early.")).replayable())
        .extension(holdfast_ext_orchestrator::extension())
        .extension(NativeExtension::new("pigeon", "1.0.0").channel(Pigeon))
        .start()
        .await;
    lab.say("hello").await;
    let reads = read;
    let read = reads.lock().unwrap()[0].clone();
    assert_eq!(
        read,
        "[Current Session Context]\nThe user is on the channel `test`, and your answer goes there. The user is `ada`.\n\
         Other channels reach the user too: `pigeon`.\nMessages that are not replies go to `pigeon` unless a channel is named.\
         \n\n---\n\nEarly.\n\n---\n\n[Capabilities]\nExtensions:\n- orchestrator (4 tools: find_tools, \
         list_channels, send_to_channel, start_background_task): \
         Finds tools, reaches channels and starts work in the background."
    );
    // Once there is a chat of the terminal, it is a channel like the others.
    let origin = Origin { channel: "chat".to_owned(), user: None };
    let (agent, instructions) = ("main".into(), Content::default());
    let settings = SessionSettings::default();
    lab.runtime.open(NewSession { id: "c1".into(), origin, agent, instructions, settings }).unwrap();
    lab.say("hello again").await;
    let read = reads.lock().unwrap()[1].clone();
    assert!(read.contains("Other channels reach the user too: `pigeon`, `chat`."), "{read}");
    let verdict = lab.replay("s1");
    assert!(verdict.identical, "{verdict:#?}");
}
