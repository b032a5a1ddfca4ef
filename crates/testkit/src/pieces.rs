//! Tools and hooks of one line each.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::AgentSpec;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{FnHook, FnTool, Hook, Tool};
use serde_json::{Value, json};

/// A tool that computes at once.
pub fn tool(
    name: &str,
    effects: EffectClass,
    run: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> impl Tool + 'static {
    FnTool(spec(name, effects), move |arguments: &Content| Ok(Content::new(run(arguments.value()))))
}

/// A tool that fails.
pub fn failing_tool(name: &str, message: &str) -> impl Tool + 'static {
    let message = message.to_owned();
    FnTool(spec(name, EffectClass::Pure), move |_: &Content| {
        Err(Fault::new(Code::ToolFailed, message.clone()))
    })
}

/// A tool that never answers.
pub fn hanging_tool(name: &str, effects: EffectClass, timeout: Millis) -> impl Tool + 'static {
    Hanging(ToolSpec { timeout, ..spec(name, effects) })
}

/// The specification of a tool that takes any object.
pub fn spec(name: &str, effects: EffectClass) -> ToolSpec {
    ToolSpec { effects, ..ToolSpec::named(name, &format!("The tool {name}.")) }
}

/// A tool that gives its arguments back.
pub fn echo() -> impl Tool + 'static {
    tool("echo", EffectClass::Pure, Value::clone)
}

/// A tool that has an effect.
pub fn write() -> impl Tool + 'static {
    tool("write", EffectClass::Write, |arguments| json!({ "written": arguments }))
}

struct Hanging(ToolSpec);

impl Tool for Hanging {
    fn spec(&self) -> ToolSpec {
        self.0.clone()
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::pending())
    }
}

/// A hook that decides at once.
pub fn hook(
    spec: HookSpec,
    decide: impl Fn(&HookInput) -> Decision + Send + Sync + 'static,
) -> impl Hook + 'static {
    FnHook(spec, move |input: &HookInput| Ok(decide(input)))
}

/// A gate that always decides the same.
pub fn gate(decision: Decision) -> impl Hook + 'static {
    hook(HookSpec::at(HookPoint::ToolGate), move |_| decision.clone())
}

/// A hook that fails.
pub fn failing_hook(point: HookPoint, message: &str) -> impl Hook + 'static {
    let message = message.to_owned();
    FnHook(HookSpec::at(point), move |_: &HookInput| Err(Fault::new(Code::ExtensionFault, message.clone())))
}

/// A hook that never answers.
pub fn hanging_hook(point: HookPoint, timeout: Millis) -> impl Hook + 'static {
    HangingHook(HookSpec { timeout, ..HookSpec::at(point) })
}

struct HangingHook(HookSpec);

impl Hook for HangingHook {
    fn spec(&self) -> HookSpec {
        self.0.clone()
    }

    fn decide(&self, _: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(std::future::pending())
    }
}

/// A modifier that sets a field of the arguments.
pub fn set_field(priority: i32, field: &str, value: Value) -> impl Hook + 'static {
    let field = field.to_owned();
    hook(HookSpec { priority, ..HookSpec::at(HookPoint::ToolModify) }, move |input| {
        let mut arguments = input.subject.as_ref().map(Content::value).cloned().unwrap_or_default();
        arguments[&field] = value.clone();
        Decision::Modify { arguments: Some(Content::new(arguments)), implementation: None }
    })
}

/// An agent that is called as a tool and uses this model.
pub fn agent(id: &str, model: &str) -> AgentSpec {
    AgentSpec {
        models: vec![model.into()],
        instructions: Content::text(format!("You are {id}.")),
        ..AgentSpec::named(id, &format!("The agent {id}."))
    }
}
