//! Hooks that decide at random and yet always the same: every answer follows from the hook's seed and what it is asked. Some ask the
//! host first, and the wild ones now and then answer nonsense, fail, panic, or never answer.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Artifact, Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::matcher::Matcher;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Hook, NativeExtension, now};
use serde_json::{Value, json};

use super::dice::Dice;

/// What a planned panic says, so that the test's panic hook can keep quiet about it.
pub const PANIC: &str = "a planned panic";

/// Extensions panic on purpose here; those panics are not worth a line each.
pub fn quiet_planned_panics() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(PANIC) {
            loud(info);
        }
    }));
}

/// Where sessions come from.
pub const CHANNELS: [&str; 5] = ["cli", "web", "mail", "desk", "bus"];

/// A hook whose every answer follows from what it is asked.
pub struct Whim {
    spec: HookSpec,
    seed: String,
    wild: bool,
    asks: bool,
}

impl Whim {
    /// A random hook. A calm one neither asks nor misbehaves, and is always answered at once.
    pub fn random(seed: String, dice: &mut Dice, asks: bool, calm: bool) -> Self {
        let point = dice.pick(HookPoint::ALL);
        let mut matcher = Matcher::default();
        if dice.one_in(2) {
            matcher.origins = vec![dice.pick(&CHANNELS).to_owned(), dice.pick(&CHANNELS).to_owned()];
        }
        if dice.one_in(4) {
            matcher.tools = vec![dice.pick(&["write", "*o*", "e?ho", "curious", "*e"]).to_owned()];
        }
        if dice.one_in(6) {
            matcher.arguments = [("/n".to_owned(), dice.pick(&["1*", "?", "*"]).to_owned())].into();
        }
        let priority = dice.pick(&[10, 50, 100, 100, 100, 200]);
        let timeout = Millis(dice.pick(&[50, 200, 1_000, 5_000]));
        Self {
            spec: HookSpec { point, matcher, priority, timeout, tokens: None, streams: false },
            seed,
            wild: dice.one_in(3) && !calm,
            asks,
        }
    }
}

impl Whim {
    fn dice(&self, input: &HookInput) -> Dice {
        let call = input.call.as_ref().map(|call| call.id);
        let subject = input.subject.as_ref().map(Content::digest);
        let (session, turn) = (&input.turn.session, input.turn.turn);
        Dice::of(&format!("{} {session} {turn} {call:?} {subject:?}", self.seed))
    }
}

impl Hook for Whim {
    fn spec(&self) -> HookSpec {
        self.spec.clone()
    }

    fn decide(&self, input: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        let mut dice = self.dice(&input);
        if self.wild && dice.one_in(10) {
            return misbehave(input.point, &mut dice);
        }
        if !self.asks {
            return now(Ok(decide(&input, &mut dice, "")));
        }
        Box::pin(async move {
            let told = ask(&*host, &mut dice).await?;
            Ok(decide(&input, &mut dice, &told))
        })
    }

    fn is_synchronous(&self) -> bool {
        !self.asks && !self.wild
    }

    fn try_decide(&self, input: &HookInput) -> Option<Result<Decision, Fault>> {
        self.is_synchronous().then(|| Ok(decide(input, &mut self.dice(input), "")))
    }
}

fn misbehave(point: HookPoint, dice: &mut Dice) -> Later<Result<Decision, Fault>> {
    match dice.below(4) {
        0 if point == HookPoint::CompactionBefore => now(Ok(Decision::Allow)),
        0 => now(Ok(Decision::Compact { instructions: None, keep: None })),
        1 => now(Err(Fault::new(Code::ExtensionFault, "out of sorts"))),
        2 => panic!("{PANIC}"),
        _ => Box::pin(std::future::pending()),
    }
}

/// Asks the host for one to three things and gives the answers as a text.
pub async fn ask(host: &dyn Host, dice: &mut Dice) -> Result<String, Fault> {
    let mut told = String::new();
    for _ in 0..dice.between(1, 3) {
        let asked = match dice.below(5) {
            0 => HostCall::Clock,
            1 => HostCall::Random { bytes: dice.between(1, 4) as u32 },
            2 => {
                HostCall::StateSet { key: "mood".to_owned(), value: Some(Content::new(json!(dice.below(9)))) }
            }
            3 => HostCall::Inject { text: Content::text("a note") },
            _ => HostCall::StateGet { key: "mood".to_owned() },
        };
        let answer = host.call(asked).await?;
        told.push_str(&answer.to_text());
    }
    Ok(told)
}

/// A decision that fits the point.
fn decide(input: &HookInput, dice: &mut Dice, told: &str) -> Decision {
    use HookPoint as P;
    let reason = |what: &str| format!("{what} {told}").trim_end().to_owned();
    match input.point {
        P::SessionStart | P::SessionEnd | P::SessionCancel | P::TurnStart | P::TurnEnd => Decision::Continue,
        P::InputNormalise | P::ResponseProcess => match dice.below(3) {
            0 => Decision::Continue,
            _ => replaced(input, dice, told),
        },
        P::SanitizeInput | P::SanitizeResult | P::SanitizeOutput => match dice.below(12) {
            0 => Decision::Block { reason: reason("dirty") },
            1 => Decision::Flag { reason: reason("dusty") },
            2..=5 => replaced(input, dice, told),
            _ => Decision::Continue,
        },
        P::GuardInput | P::GuardResult | P::GuardOutput | P::GuardChunk => match dice.below(16) {
            0 => Decision::Block { reason: reason("harmful") },
            1..=3 => Decision::Flag { reason: reason("odd") },
            _ => Decision::Allow,
        },
        P::Context => match dice.below(3) {
            0 => Decision::Continue,
            _ => Decision::Inject { content: Content::text(reason(dice.pick(&["it rains", "be brief"]))) },
        },
        P::ModelRoute => match dice.below(3) {
            0 => Decision::Continue,
            _ => Decision::Route {
                model: dice.pick(&["main", "spare", "ghost"]).into(),
                authoritative: dice.one_in(2),
                reason: reason("better"),
            },
        },
        P::ToolModify => modified(input, dice, told),
        P::ToolGate => match dice.below(16) {
            0 | 1 => Decision::Deny { reason: reason("no") },
            2 | 3 => Decision::Ask { reason: reason("really?") },
            _ => Decision::Allow,
        },
        P::ToolAfter => enriched(dice, told),
        P::CompactionBefore => Decision::Compact {
            instructions: dice.one_in(2).then(|| reason("keep the numbers")),
            keep: dice.one_in(2).then(|| dice.between(0, 4) as u32),
        },
        P::CompactionProvide => match dice.below(3) {
            0 => Decision::Replace { content: Content::text(reason("they talked")) },
            _ => Decision::Continue,
        },
    }
}

fn replaced(input: &HookInput, dice: &mut Dice, told: &str) -> Decision {
    let text = input.subject.as_ref().map(Content::to_text).unwrap_or_default();
    let short: String = text.chars().take(40).collect();
    let content = match dice.below(12) {
        0 => Content::text(short.repeat(5_000 / short.len().max(1))),
        1 => Content::new(json!({ "was": short, "told": told })),
        _ => Content::text(format!("{short}, {told}")),
    };
    Decision::Replace { content }
}

fn modified(input: &HookInput, dice: &mut Dice, told: &str) -> Decision {
    let mut arguments = input.subject.as_ref().map(Content::value).cloned().unwrap_or_default();
    if !arguments.is_object() {
        arguments = json!({});
    }
    let value = match dice.below(4) {
        0 => json!(told),
        1 => json!("7"),
        2 => json!("many"),
        _ => json!(dice.below(100)),
    };
    arguments[dice.pick(&["n", "count", "extra"])] = value;
    match dice.below(8) {
        0..=2 => Decision::Continue,
        3 => Decision::Modify { arguments: None, implementation: Some("second".into()) },
        4 if dice.one_in(4) => Decision::Modify { arguments: None, implementation: Some("nobody".into()) },
        _ => Decision::Modify { arguments: Some(Content::new(arguments)), implementation: None },
    }
}

fn enriched(dice: &mut Dice, told: &str) -> Decision {
    let artifact = |content: Value| Artifact {
        name: "table".to_owned(),
        media_type: "application/json".to_owned(),
        content: Content::new(content),
    };
    match dice.below(4) {
        0 => Decision::Continue,
        1 => Decision::Enrich {
            result: Some(Content::text(format!("enriched {told}"))),
            artifacts: Vec::new(),
            render: None,
        },
        2 => Decision::Enrich {
            result: None,
            artifacts: vec![artifact(json!([1, 2, told]))],
            render: Some("table".into()),
        },
        _ => Decision::Enrich {
            result: None,
            artifacts: vec![artifact(json!("x".repeat(5_000)))],
            render: None,
        },
    }
}

/// An extension of random hooks, some of which ask the host. `steady` ones are replayable.
pub fn extension(id: &str, version: &str, seed: &str, hooks: u64) -> NativeExtension {
    let mut dice = Dice::of(&format!("{seed} {id} {version}"));
    let calm = dice.one_in(2);
    let extension = (0..hooks).fold(NativeExtension::new(id, version), |extension, index| {
        let seed = format!("{seed} {id} {version} {index}");
        let asks = dice.one_in(3) && !calm;
        extension.hook(Whim::random(seed, &mut dice, asks, calm))
    });
    if id.starts_with("steady") { extension.replayable() } else { extension }
}
