//! The world of the crash tests: tools of every effect class that note when they run, hooks that ask the host, agents.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::CallId;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::{AgentMode, AgentSpec};
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Lane, Later};
use holdfast_lane_native::{Hook, NativeExtension, NativeLane, Tool};
use holdfast_testkit::pieces::{agent, hook, set_field, spec, tool};
use serde_json::json;

use super::ledger::{Noted, Outside};
use super::plan::wanted_answer;

/// What a tool really does, whatever it is declared as: the ledger's own knowledge.
pub fn has_effects(tool: &str) -> bool {
    matches!(tool, "write" | "run" | "send" | "mystery" | "later" | "wait")
}

/// A world, and where it notes what happens in it.
#[derive(Clone)]
pub struct World {
    pub outside: Arc<dyn Outside>,
    /// What `mystery` is taken for: nobody declared it, and anything but `Unknown` is a planted bug.
    pub undeclared: EffectClass,
}

impl World {
    pub fn new(outside: Arc<dyn Outside>) -> Self {
        Self { outside, undeclared: EffectClass::default() }
    }

    /// The lane, and what discovery finds in it.
    pub fn lane(&self) -> (Arc<NativeLane>, Vec<FoundExtension>) {
        let lane = NativeLane::default();
        lane.add(sums("2.0.0"));
        let found = self.extensions().into_iter().map(|extension| lane.add(extension)).collect();
        (Arc::new(lane), found)
    }

    /// The other version of an extension.
    pub fn renewed() -> FoundExtension {
        NativeLane::default().add(sums("2.0.0"))
    }

    /// The lanes that replay needs.
    pub fn lanes(&self) -> Vec<Arc<dyn Lane>> {
        vec![self.lane().0]
    }

    fn extensions(&self) -> Vec<NativeExtension> {
        let noting = |spec: ToolSpec, slow: bool| Noting { spec, slow, outside: self.outside.clone() };
        let mystery =
            ToolSpec { effects: self.undeclared, ..ToolSpec::named("mystery", "Nobody said what it does.") };
        let kit = NativeExtension::new("kit", "1.0.0")
            .tool(noting(spec("ponder", EffectClass::Pure), true))
            .tool(noting(spec("look", EffectClass::Read), true))
            .tool(noting(spec("write", EffectClass::Write), false))
            .tool(noting(spec("run", EffectClass::Exec), true))
            .tool(noting(spec("send", EffectClass::Network), true))
            .tool(noting(spec("later", EffectClass::Write), false))
            .tool(noting(spec("wait", EffectClass::Write), false))
            .tool(noting(mystery, true));
        let gate = hook(HookSpec::at(HookPoint::ToolGate), |input| {
            match input.subject.as_ref().and_then(wanted_answer) {
                Some(_) => Decision::Ask { reason: "better ask".to_owned() },
                None => Decision::Allow,
            }
        });
        let house = NativeExtension::new("house", "1.0.0")
            .hook(set_field(10, "house", json!("rules")))
            .hook(gate)
            .hook(Counting)
            .hook(Stamping)
            .hook(hook(HookSpec::at(HookPoint::TurnEnd), |_| Decision::Continue));
        let office = NativeExtension::new("office", "1.0.0")
            .agent(agent("clerk", "planner"))
            .agent(agent("chief", "planner"))
            .agent(AgentSpec { mode: AgentMode::Handoff, ..agent("sage", "planner") });
        vec![kit, sums("1.0.0"), house.replayable(), office]
    }
}

fn sums(version: &str) -> NativeExtension {
    let compute = tool("compute", EffectClass::Pure, |it| json!({ "sum": it }));
    NativeExtension::new("sums", version).tool(compute).replayable()
}

/// A tool that notes when it runs. A slow one takes a moment, so that others run beside it.
struct Noting {
    spec: ToolSpec,
    slow: bool,
    outside: Arc<dyn Outside>,
}

impl Tool for Noting {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call(
        &self,
        call: CallId,
        _: Content,
        turn: TurnView,
        host: Arc<dyn Host>,
    ) -> Later<Result<Content, Fault>> {
        let tool = self.spec.name.clone();
        self.outside.note(Noted::Ran { session: turn.session.clone(), call, tool: tool.clone() });
        // What is looked at is large, and becomes a blob.
        let result = match tool.as_str() {
            "look" => format!("{} {call} ", turn.session).repeat(600),
            _ => format!("{tool} {call}"),
        };
        let slow = self.slow;
        Box::pin(async move {
            match tool.as_str() {
                "wait" => std::future::pending().await,
                "later" => {
                    let arguments = Content::new(json!({ "task": "do: write" }));
                    host.call(HostCall::named("agent.background", arguments)).await?;
                }
                _ if slow => tokio::time::sleep(Duration::from_millis(1)).await,
                _ => {}
            }
            Ok(Content::text(result))
        })
    }
}

/// A context provider that counts in the session's state.
struct Counting;

impl Hook for Counting {
    fn spec(&self) -> HookSpec {
        HookSpec::at(HookPoint::Context)
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(async move {
            let key = "asked".to_owned();
            let counted = host.call(HostCall::StateGet { key: key.clone() }).await?;
            let count = counted.value().as_u64().unwrap_or(0) + 1;
            host.call(HostCall::StateSet { key, value: Some(Content::new(json!(count))) }).await?;
            Ok(Decision::Inject { content: Content::text(format!("asked {count} times")) })
        })
    }
}

/// Stamps each result with the time.
struct Stamping;

impl Hook for Stamping {
    fn spec(&self) -> HookSpec {
        HookSpec::at(HookPoint::ToolAfter)
    }

    fn decide(&self, _: HookInput, host: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(async move {
            let now = host.call(HostCall::Clock).await?;
            Ok(Decision::Enrich { result: None, artifacts: Vec::new(), render: Some(now) })
        })
    }
}
