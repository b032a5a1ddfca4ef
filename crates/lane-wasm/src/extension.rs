//! One activation in this lane: what it registers, its lazily loaded code, and how a call is made on an instance.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_contract::attachment::{self, Attachment};
use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookInput, HookPoint};
use holdfast_contract::host_call::HostCall;
use holdfast_contract::ids::Millis;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code as ErrorCode, Fault};
use holdfast_contract::registry::{Descriptor, Payload};
use holdfast_contract::role::Role;
use holdfast_contract::system_frames::LifecycleCommand;
use holdfast_contract::tool;
use holdfast_contract::wire::{Call, Host, InstanceCapabilities, Later, Reply};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::component::code::{CodeOrigin, CompiledCode};
use crate::component::descriptors::Known;
use crate::instance::guest::{Activation, Allowance, Guest};
use crate::instance::pool::{Spare, reclaim};
use crate::instance::running::{CallFailure, GuestAnswer, GuestRequest, RunningInstance, SentFile};
use crate::wit::abi::{self, Choice, Delivery, Event};
use crate::wit::interfaces::Function;
use holdfast_contract::sandbox::SandboxOptions;

/// An activation.
pub(crate) struct WasmExtension {
    pub activation: Arc<Activation>,
    pub origin: Arc<CodeOrigin>,
    pub options: SandboxOptions,
    /// How long its hooks may compute, by hook point.
    pub hook_ticks: HookTicks,
    /// What the code exports.
    pub known: Known,
    /// What it can do. Whether hooks are synchronous is known only after the code is loaded.
    pub capabilities: InstanceCapabilities,
    /// The code, after the first use.
    pub code: OnceCell<Arc<CompiledCode>>,
    /// An unused instance, of code that can be called synchronously.
    pub spare: Spare,
}

impl WasmExtension {
    /// The code, loaded at the first use. Concurrent callers wait for the same load.
    pub(crate) async fn code(&self) -> Result<&Arc<CompiledCode>, Fault> {
        let (origin, activation) = (&self.origin, &self.activation);
        self.code.get_or_try_init(|| load_code(origin.clone(), activation.clone())).await
    }

    /// The limits of a call. Those of hooks are lower, because a turn waits for them.
    pub(crate) fn allowance(&self, call: &Call, yields: bool) -> Allowance {
        match call {
            Call::Hook(input) => self.hook_allowance(input.point, yields),
            call => Allowance {
                renews: is_background(call),
                ..self.allow(self.activation.budgets.fuel, self.timeout(call), yields)
            },
        }
    }

    /// The limits of a hook.
    pub(crate) fn hook_allowance(&self, point: HookPoint, yields: bool) -> Allowance {
        let ticks = self.hook_ticks[point as usize];
        let ticks = if yields { self.options.patient(ticks) } else { ticks };
        Allowance { fuel: self.activation.budgets.hook_fuel, ticks, yields, renews: false }
    }

    fn allow(&self, fuel: u64, timeout: Millis, yields: bool) -> Allowance {
        // A call that holds its thread cannot be cancelled, so its deadline is exact; others have some grace.
        let ticks = if yields { self.options.patient_ticks(timeout) } else { self.options.ticks(timeout) };
        Allowance { fuel, ticks, yields, renews: false }
    }

    /// How long a call may take.
    fn timeout(&self, call: &Call) -> Millis {
        match call {
            Call::Tool { tool, .. } => {
                let specs =
                    self.known.descriptors.iter().filter_map(|descriptor| match &descriptor.payload {
                        Payload::Tool(spec) if spec.name == *tool => Some(spec.timeout),
                        _ => None,
                    });
                specs.max().unwrap_or_else(tool::default_timeout)
            }
            _ => tool::default_timeout(),
        }
    }

    /// The answer to a call that needs no code.
    pub(crate) fn answer_without_code(&self, call: &Call) -> Option<Result<Reply, Fault>> {
        let missing = |function: Function| !self.known.has(function);
        match call {
            Call::Lifecycle(LifecycleCommand::Load) => {
                Some(Ok(Reply::Descriptors(self.known.descriptors.clone())))
            }
            Call::Lifecycle(command) if missing(step(*command)) => Some(Ok(Reply::Done)),
            Call::Health if missing(Function::Health) => Some(Ok(Reply::Health(true))),
            Call::Task { .. } if missing(Function::SchedulerTask) => Some(Err(self.missing("tasks"))),
            _ => None,
        }
    }

    /// A new instance, if the code is loaded and can be started synchronously.
    pub(crate) fn fresh(&self) -> Option<RunningInstance> {
        let code = self.code.get().filter(|code| !code.waits)?;
        self.try_start(code).ok()
    }

    /// Starts an instance synchronously. Starting has its own limits, so that it does not matter when it happens.
    pub(crate) fn start(&self, code: &CompiledCode) -> Result<RunningInstance, CallFailure> {
        let started = self.try_start(code);
        if matches!(&started, Err(failure) if failure.is_pool_exhausted()) {
            reclaim();
            return self.try_start(code);
        }
        started
    }

    fn try_start(&self, code: &CompiledCode) -> Result<RunningInstance, CallFailure> {
        let allowance = self.allow(self.activation.budgets.hook_fuel, tool::default_timeout(), false);
        let mut store = RunningInstance::store(code, &self.activation);
        Guest::begin(&mut store, None, None, allowance)?;
        RunningInstance::instantiate(code, store)
    }

    /// Calls a hook on an instance synchronously.
    pub(crate) fn decide(
        &self,
        code: &CompiledCode,
        live: &mut RunningInstance,
        input: &HookInput,
    ) -> Result<Decision, CallFailure> {
        let (function, request) = (Function::at(input.point), GuestRequest::Hook(input));
        match live.call(code, function, &request)? {
            GuestAnswer::Decision(decision) => Ok(decision),
            _ => {
                Err(CallFailure::Invalid(Fault::new(ErrorCode::HookNonsense, "the answer is not a decision")))
            }
        }
    }

    /// Makes a call on an instance; the call may wait for the host.
    pub(crate) async fn call_async(
        &self,
        code: &CompiledCode,
        live: &mut RunningInstance,
        call: &Call,
    ) -> Result<Reply, CallFailure> {
        let (function, request) = self.request(call).map_err(CallFailure::Invalid)?;
        live.call_async(code, function, &request).await.map(reply)
    }

    /// The function that a call maps to, and its parameters.
    fn request<'a>(&self, call: &'a Call) -> Result<(Function, GuestRequest<'a>), Fault> {
        Ok(match call {
            Call::Hook(input) => (Function::at(input.point), GuestRequest::Hook(input)),
            Call::Tool { tool, arguments, .. } => {
                let agent = self.known.agent.as_ref();
                if agent.is_some_and(|agent| agent.id == tool.as_str()) {
                    (Function::AgentInvoke, GuestRequest::Named("", field(arguments, "task")?.into()))
                } else {
                    (Function::ToolsCall, GuestRequest::Named(tool.as_str(), arguments.json().into()))
                }
            }
            Call::Lifecycle(command) => (step(*command), GuestRequest::Nothing),
            Call::Health => (Function::Health, GuestRequest::Nothing),
            Call::Task { task } => (Function::SchedulerTask, GuestRequest::Named("", task.as_str().into())),
            Call::Api { method, arguments } => {
                (Function::ApiCall, GuestRequest::Named(method, arguments.json().into()))
            }
            Call::Function { role, function, arguments } => {
                return self.by_name(*role, function, arguments);
            }
        })
    }

    /// Functions of the other roles. Their arguments are an object with the fields that `wit/` defines.
    fn by_name<'a>(
        &self,
        role: Role,
        function: &str,
        arguments: &'a Content,
    ) -> Result<(Function, GuestRequest<'a>), Fault> {
        Ok(match (role, function) {
            (Role::Commands, "run") => {
                let (name, text) = (field(arguments, "name")?, field(arguments, "arguments")?);
                (Function::CommandsRun, GuestRequest::Named(name, text.into()))
            }
            (Role::Agent, "invoke") => {
                (Function::AgentInvoke, GuestRequest::Named("", field(arguments, "task")?.into()))
            }
            (Role::Setup, "schema") => (Function::SetupSchema, GuestRequest::Nothing),
            (Role::Setup, "apply") => {
                (Function::SetupApply, GuestRequest::Named("", arguments.json().into()))
            }
            (Role::Setup, "complete") => (Function::SetupComplete, GuestRequest::Nothing),
            (Role::Renderer, "render-call") => {
                let shown = Content::new(value(arguments, "arguments"));
                let text = shown.json().to_owned();
                (Function::RenderCall, GuestRequest::Named(field(arguments, "tool")?, text.into()))
            }
            (Role::Renderer, "render-result") => {
                let result = Content::new(value(arguments, "result"));
                (Function::RenderResult, GuestRequest::Value(field(arguments, "tool")?, result))
            }
            (Role::Channel, "send-to-user") => {
                let sent = GuestRequest::Sent(
                    field(arguments, "user")?,
                    field(arguments, "text")?,
                    delivery(arguments)?,
                );
                (Function::SendToUser, sent)
            }
            (Role::Channel, "send-message") => (
                Function::SendMessage,
                GuestRequest::Sent("", field(arguments, "text")?, delivery(arguments)?),
            ),
            (Role::Channel, "send-file") => (Function::SendFile, file(arguments)?),
            (Role::Channel, "send-question") => (Function::SendQuestion, question(arguments)?),
            (Role::StreamingChannel, function) => return streamed(function, arguments),
            (Role::Service, "run-background") => (Function::RunBackground, GuestRequest::Nothing),
            (Role::Subscriber, "on-event") => (Function::OnEvent, event(arguments)?),
            _ => return Err(self.missing(&format!("function `{function}`"))),
        })
    }

    /// The fault of a failed call.
    pub(crate) fn faulted(call: &Call, failure: CallFailure) -> Fault {
        match failure {
            CallFailure::Broken(fault) | CallFailure::Invalid(fault) => fault,
            CallFailure::Returned(failure) => match call {
                Call::Hook(_) => Self::hook_faulted(CallFailure::Returned(failure)),
                Call::Lifecycle(_) | Call::Health => Fault::new(ErrorCode::ExtensionFault, failure.text()),
                _ => failure.into_fault(),
            },
        }
    }

    /// The fault of a failed hook.
    pub(crate) fn hook_faulted(failure: CallFailure) -> Fault {
        match failure {
            CallFailure::Broken(fault) | CallFailure::Invalid(fault) => fault,
            CallFailure::Returned(failure) => Fault::new(ErrorCode::HookFault, failure.text()),
        }
    }

    fn missing(&self, what: &str) -> Fault {
        Fault::new(ErrorCode::ExtensionFault, format!("`{}` has no {what}", self.activation.id))
    }
}

/// How long hooks may compute, by hook point, in ticks.
pub(crate) type HookTicks = [u64; HookPoint::ALL.len()];

/// How long the hooks among these descriptors may compute. Of several at one point the longest timeout counts; the caller enforces
/// the exact one.
pub(crate) fn hook_ticks(options: &SandboxOptions, descriptors: &[Descriptor]) -> HookTicks {
    let mut longest = [options.ticks(Millis(0)); HookPoint::ALL.len()];
    for descriptor in descriptors {
        for spec in descriptor.hooks() {
            let ticks = &mut longest[spec.point as usize];
            *ticks = options.ticks(spec.timeout).max(*ticks);
        }
    }
    longest
}

/// Whether a call is a background loop, which has its own instance and does not return.
pub(crate) fn is_background(call: &Call) -> bool {
    matches!(call, Call::Function { role: Role::Service, .. })
}

/// The turn that a call serves.
pub(crate) fn turn(call: &Call) -> Option<&TurnView> {
    match call {
        Call::Hook(input) => Some(&input.turn),
        Call::Tool { turn, .. } => Some(turn),
        _ => None,
    }
}

/// Loads code on a blocking thread, since compiling takes long.
pub(crate) async fn load_code(
    origin: Arc<CodeOrigin>,
    activation: Arc<Activation>,
) -> Result<Arc<CompiledCode>, Fault> {
    let loaded = tokio::task::spawn_blocking(move || CompiledCode::load(&origin, &activation)).await;
    let broken = |error| Fault::new(ErrorCode::Internal, format!("the compiler task failed: {error}"));
    loaded.map_err(broken)?.map(Arc::new)
}

/// Calls the describing functions of code, in an instance that is dropped afterwards.
pub(crate) async fn describe(
    code: &CompiledCode,
    activation: &Arc<Activation>,
    options: &SandboxOptions,
) -> Result<Known, Fault> {
    let mut known = Known::of(code.interfaces());
    let mut describing =
        vec![Function::ToolsList, Function::ApiMethods, Function::CommandsList, Function::AgentDescriptor];
    describing.retain(|function| code.place(*function).is_some());
    if describing.is_empty() {
        return Ok(known);
    }
    let mut store = RunningInstance::store(code, activation);
    let ticks = options.patient_ticks(tool::default_timeout());
    let allowance = Allowance { fuel: activation.budgets.fuel, ticks, yields: true, renews: false };
    let host: Arc<dyn Host> = Arc::new(NoHostCalls);
    let faulted = |failure| match failure {
        CallFailure::Broken(fault) | CallFailure::Invalid(fault) => fault,
        CallFailure::Returned(failure) => Fault::new(ErrorCode::ExtensionFault, failure.text()),
    };
    let all = |names: Vec<abi::Named>| names.into_iter().map(Into::into).collect();
    Guest::begin(&mut store, Some(host.clone()), None, allowance).map_err(|error| faulted(error.into()))?;
    let mut live = RunningInstance::instantiate_async(code, store).await.map_err(faulted)?;
    for function in describing {
        Guest::begin(&mut live.store, Some(host.clone()), None, allowance)
            .map_err(|error| faulted(error.into()))?;
        match live.call_async(code, function, &GuestRequest::Nothing).await.map_err(faulted)? {
            GuestAnswer::Tools(tools) => known.tools = tools,
            GuestAnswer::Named(names) if function == Function::ApiMethods => known.methods = all(names),
            GuestAnswer::Named(names) => known.commands = all(names),
            GuestAnswer::Agent(agent) => known.agent = Some(agent),
            GuestAnswer::Decision(_)
            | GuestAnswer::Content(_)
            | GuestAnswer::Health(_)
            | GuestAnswer::Done => {}
        }
    }
    Ok(known)
}

/// The host while an extension is described: every host call is refused.
struct NoHostCalls;

impl Host for NoHostCalls {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        let message = "host calls are not allowed while an extension is loaded";
        Box::pin(std::future::ready(Err(Fault::new(ErrorCode::ExtensionFault, message))))
    }
}

fn step(command: LifecycleCommand) -> Function {
    match command {
        LifecycleCommand::Load | LifecycleCommand::Initialize => Function::Initialize,
        LifecycleCommand::Start => Function::Start,
        LifecycleCommand::Stop => Function::Stop,
        LifecycleCommand::Destroy => Function::Destroy,
    }
}

fn value(arguments: &Content, name: &str) -> Value {
    arguments.value().get(name).cloned().unwrap_or_default()
}

fn field<'a>(arguments: &'a Content, name: &str) -> Result<&'a str, Fault> {
    let text = arguments.value().get(name).and_then(Value::as_str);
    text.ok_or_else(|| {
        Fault::new(ErrorCode::ToolArguments, format!("the argument `{name}` is missing or not a string"))
    })
}

/// A file that a channel is to send.
fn file(arguments: &Content) -> Result<GuestRequest<'_>, Fault> {
    let (user, Attachment { name, media_type, text, base64 }) = attachment::sent(arguments)?;
    let invalid =
        |error| Fault::new(ErrorCode::ToolArguments, format!("the file is not valid base64: {error}"));
    let content = match base64 {
        Some(coded) => STANDARD.decode(coded).map_err(invalid)?,
        None => text.unwrap_or_default().into_bytes(),
    };
    Ok(GuestRequest::File(SentFile { user, name, media_type, content }, delivery(arguments)?))
}

/// A question that a channel is to show.
fn question(arguments: &Content) -> Result<GuestRequest<'_>, Fault> {
    let odd = || Fault::new(ErrorCode::ToolArguments, "the question's choices are invalid");
    let choices = arguments.value().get("choices").and_then(Value::as_array).ok_or_else(odd)?;
    let read = choices.iter().map(choice).collect::<Option<Vec<_>>>().ok_or_else(odd)?;
    let (user, text) = (field(arguments, "user")?, field(arguments, "text")?);
    Ok(GuestRequest::Question(user, text, read, delivery(arguments)?))
}

fn choice(given: &Value) -> Option<Choice<'_>> {
    Some(Choice { label: given.get("label")?.as_str()?, answer: given.get("answer")?.as_str()? })
}

/// The delivery of a message.
fn delivery(arguments: &Content) -> Result<Delivery<'_>, Fault> {
    let delivery = arguments.value().get("delivery");
    let id = delivery.and_then(|delivery| delivery.get("id")).and_then(Value::as_str);
    let repeat = delivery.and_then(|delivery| delivery.get("repeat")).and_then(Value::as_bool);
    let missing = || Fault::new(ErrorCode::ToolArguments, "the delivery has no `id`");
    Ok(Delivery { id: id.ok_or_else(missing)?, repeat: repeat.unwrap_or_default() })
}

/// A part of a stream.
fn streamed<'a>(function: &str, arguments: &'a Content) -> Result<(Function, GuestRequest<'a>), Fault> {
    let (user, id) = (field(arguments, "user")?, field(arguments, "id")?);
    let none = Delivery { id: "", repeat: false };
    Ok(match function {
        "stream-start" => (Function::StreamStart, GuestRequest::Streamed(user, id, "", none)),
        "stream-chunk" => {
            (Function::StreamChunk, GuestRequest::Streamed(user, id, field(arguments, "text")?, none))
        }
        "stream-status" => {
            (Function::StreamStatus, GuestRequest::Streamed(user, id, field(arguments, "status")?, none))
        }
        "stream-end" => {
            let (text, delivery) = (field(arguments, "text")?, delivery(arguments)?);
            (Function::StreamEnd, GuestRequest::Streamed(user, id, text, delivery))
        }
        _ => return Err(Fault::new(ErrorCode::ExtensionFault, format!("unknown function `{function}`"))),
    })
}

/// An event for a subscriber.
fn event(arguments: &Content) -> Result<GuestRequest<'_>, Fault> {
    let value = |name: &str| arguments.value().get(name);
    let text = |name: &str| value(name).and_then(Value::as_str);
    let event = Event {
        id: field(arguments, "id")?,
        topic: field(arguments, "topic")?,
        payload: "",
        key: text("key"),
        correlation: text("correlation"),
        attempt: value("attempt").and_then(Value::as_u64).and_then(|it| it.try_into().ok()).unwrap_or(1),
        repeat: value("repeat").and_then(Value::as_bool).unwrap_or_default(),
    };
    let payload = Content::new(value("payload").cloned().unwrap_or_default());
    Ok(GuestRequest::Event(event, payload.json().to_owned()))
}

fn reply(answer: GuestAnswer) -> Reply {
    match answer {
        GuestAnswer::Decision(decision) => Reply::Decision(decision),
        GuestAnswer::Content(content) => Reply::Content(content),
        GuestAnswer::Health(well) => Reply::Health(well),
        GuestAnswer::Done | GuestAnswer::Tools(_) | GuestAnswer::Named(_) | GuestAnswer::Agent(_) => {
            Reply::Done
        }
    }
}
