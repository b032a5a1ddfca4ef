//! Tools of every effect class, and the models that call them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::{CallId, Millis, StreamId};
use holdfast_contract::message::{AskedCall, Limits, TurnView, Usage};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, UiQuestion};
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{FnTool, NativeExtension, Tool, now};
use holdfast_model::{Delta, Deltas, Model, ModelRequest};
use holdfast_testkit::pieces::{agent, echo, failing_tool, hanging_tool, spec, tool};
use serde_json::{Value, json};

use super::dice::Dice;
use super::hooks::{self, PANIC};

/// Tools that may not run twice, whatever happens.
pub const ONCE: [&str; 5] = ["write", "run", "post", "vague", "slow"];

/// A tool that asks the host for whatever its arguments name, and answers with what it was told.
struct Curious;

impl Tool for Curious {
    fn spec(&self) -> ToolSpec {
        ToolSpec { timeout: Millis(3_000), ..spec("curious", EffectClass::Pure) }
    }

    fn call(
        &self,
        call: CallId,
        arguments: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        Box::pin(async move {
            let mut dice = Dice::of(&format!("curious {} {call} {}", turn.session, arguments.digest()));
            let mut told = hooks::ask(&*host, &mut dice).await?;
            if dice.one_in(6) {
                let question = UiQuestion::Confirm { prompt: "May I?".to_owned() };
                told.push_str(&host.call(HostCall::Ui(question)).await?.to_text());
            }
            if dice.one_in(6) {
                let asked = HostCall::named("config.get", Content::text("mood"));
                match host.call(asked).await {
                    Ok(answer) => told.push_str(&answer.to_text()),
                    Err(fault) if dice.one_in(2) => return Err(fault),
                    Err(fault) => told.push_str(fault.code.as_str()),
                }
            }
            Ok(Content::new(json!({ "told": told })))
        })
    }
}

/// A tool with an effect that answers a moment later.
struct Dawdling(ToolSpec);

impl Tool for Dawdling {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn call(
        &self,
        call: CallId,
        arguments: Content,
        _: TurnView,
        _: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let name = self.0.name.clone();
        Box::pin(async move {
            for _ in 0..call.index % 4 {
                tokio::task::yield_now().await;
            }
            Ok(Content::new(json!({ "done": name, "with": arguments.value() })))
        })
    }
}

fn typed() -> impl Tool + 'static {
    let schema = json!({
        "type": "object",
        "properties": { "count": { "type": "integer" }, "name": { "type": "string" } },
        "required": ["count"],
    });
    let spec = ToolSpec {
        input_schema: Content::new(schema),
        output_schema: Some(Content::new(json!({ "type": "integer", "maximum": 50 }))),
        ..spec("typed", EffectClass::Pure)
    };
    FnTool(spec, |arguments: &Content| Ok(Content::new(arguments.value()["count"].clone())))
}

/// The tools that every world has.
pub fn kit() -> NativeExtension {
    let later = |name: &str, effects| Dawdling(spec(name, effects));
    let big = tool("big", EffectClass::Pure, |it| json!(format!("{it} ").repeat(400)));
    let panics = tool("panics", EffectClass::Pure, |_| panic!("{PANIC}"));
    NativeExtension::new("kit", "1.0.0")
        .priority(5)
        .tool(echo())
        .tool(typed())
        .tool(big)
        .tool(panics)
        .tool(failing_tool("broken", "it is broken"))
        .tool(Curious)
        .tool(later("look", EffectClass::Read))
        .tool(later("write", EffectClass::Write))
        .tool(later("run", EffectClass::Exec))
        .tool(later("post", EffectClass::Network))
        .tool(later("vague", EffectClass::Unknown))
        .tool(hanging_tool("drowsy", EffectClass::Pure, Millis(300)))
        .tool(hanging_tool("slow", EffectClass::Network, Millis(1_500)))
        .replayable()
}

/// Other implementations of some tools, and agents that are called as tools.
pub fn second() -> NativeExtension {
    let mut helper = agent("helper", "helper");
    helper.limits = Limits { max_turns: 3, time_budget: Millis(20_000), ..Limits::default() };
    NativeExtension::new("second", "1.0.0")
        .priority(1)
        .tool(tool("echo", EffectClass::Pure, |it| json!({ "second": it })))
        .tool(tool("write", EffectClass::Write, |it| json!({ "second": it })))
        .agent(helper)
        .replayable()
}

/// A model whose every answer follows from the conversation's length, the session and its seed; only how often it has failed is
/// remembered.
pub struct Improviser {
    seed: String,
    failed: Mutex<HashMap<(StreamId, usize), u64>>,
}

impl Improviser {
    /// A model of this seed.
    pub fn new(seed: String) -> Self {
        Self { seed, failed: Mutex::default() }
    }

    fn fails(&self, ask: &ModelRequest, dice: &mut Dice) -> bool {
        let times = if dice.one_in(9) { dice.between(1, 4) } else { 0 };
        let mut failed = self.failed.lock().unwrap();
        let count = failed.entry((ask.turn.session.clone(), ask.messages.len())).or_default();
        *count += 1;
        *count <= times
    }
}

impl Model for Improviser {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let session = ask.turn.session.as_str();
        let mut dice = Dice::of(&format!("{} {session} {}", self.seed, ask.messages.len()));
        let usage = Usage {
            input_tokens: dice.below(300),
            output_tokens: dice.below(60),
            cost_micros: dice.below(200),
        };
        if session.starts_with("long") {
            return now(Ok(tireless(&ask, usage)));
        }
        if self.fails(&ask, &mut dice) {
            let fault = Fault::new(Code::ModelFailed, "overloaded");
            return now(Err(ModelFailed { usage, ..ModelFailed::new(fault, dice.below(3) > 0) }));
        }
        if dice.one_in(40) {
            deltas(Delta::Text("I was just about to"));
            return Box::pin(std::future::pending());
        }
        let calls = if dice.below(5) < 3 && session != "summary" { calls(&mut dice) } else { Vec::new() };
        let text = match dice.below(10) {
            0 => "word ".repeat(1_100),
            1 if !calls.is_empty() => String::new(),
            _ => format!("{} {}", dice.pick(&["Well,", "Done:", "I think"]), dice.below(1_000)),
        };
        text.split_inclusive(' ').take(3).for_each(|word| deltas(Delta::Text(word)));
        let reasoning = dice.one_in(5).then(|| Content::text("because"));
        now(Ok(ModelReturned { text: Content::text(text), reasoning, calls, usage }))
    }
}

/// Four plain calls, then an answer.
fn tireless(ask: &ModelRequest, usage: Usage) -> ModelReturned {
    use holdfast_contract::message::Message;
    let asked = |n: usize| call(n, "echo", json!({ "n": ask.messages.len() + n }));
    let calls = match ask.messages.last() {
        Some(Message::Tool { .. }) => Vec::new(),
        _ => (0..4).map(asked).collect(),
    };
    ModelReturned { text: Content::text("on it"), reasoning: None, calls, usage }
}

fn call(index: usize, tool: &str, arguments: Value) -> AskedCall {
    AskedCall {
        model_id: format!("call-{index}").into(),
        tool: tool.into(),
        arguments: Content::new(arguments),
    }
}

fn calls(dice: &mut Dice) -> Vec<AskedCall> {
    let count = dice.pick(&[1, 1, 1, 2, 2, 3, 4]);
    (0..count).map(|index| random_call(index, dice)).collect()
}

fn random_call(index: usize, dice: &mut Dice) -> AskedCall {
    let n = dice.below(30);
    let (tool, arguments) = match dice.below(22) {
        0..=2 => ("echo", json!({ "n": n })),
        3 => ("echo", json!({ "n": n, "text": "long ".repeat(900) })),
        4 => ("typed", json!({ "count": n })),
        5 => ("typed", json!({ "count": n.to_string(), "name": 5 })),
        6 => {
            ("typed", dice.pick(&[json!({}), json!({ "count": "many" }), json!([1]), json!({ "count": 99 })]))
        }
        7 => ("big", json!({ "n": n })),
        8 => ("panics", json!({})),
        9 => ("broken", json!({})),
        10 | 11 => ("curious", json!({ "n": n })),
        12 => ("look", json!({ "n": n })),
        13 | 14 => ("write", json!({ "n": n, "to": "ada" })),
        15 => ("run", json!({ "n": n })),
        16 => ("post", json!({ "n": n })),
        17 => ("vague", json!({ "n": n })),
        18 => ("drowsy", json!({})),
        19 => ("slow", json!({})),
        20 => ("helper", json!({ "task": format!("count to {n}") })),
        _ => (dice.pick(&["nothing", "helper", "ask"]), json!({ "n": n })),
    };
    call(index, tool, arguments)
}
