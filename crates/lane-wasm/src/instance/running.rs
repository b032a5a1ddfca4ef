//! A running instance with its store, and how its functions are called: synchronously on the caller's stack where the code cannot
//! wait for the host, asynchronously on a separate stack where it can.

use std::borrow::Cow;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Artifact, Decision, HookInput, HookPoint};
use holdfast_contract::problem::{Code as ErrorCode, Fault};
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::component::code::CompiledCode;
use crate::faults::{fault, one_line};
use crate::instance::guest::{Activation, Guest};
use crate::wit::abi::{
    AgentSpec, ContentIn, ContentOut, Enrichment, Failure, Gate, Named, Sanitized, ToolCall,
};
use crate::wit::abi::{Choice, Delivery, Event, File, ToolSpec, Verdict};
use crate::wit::functions::{Shape, Typed};
use crate::wit::interfaces::Function;

/// An instance and its store. Dropped after any trap, because its state is then undefined.
pub(crate) struct RunningInstance {
    pub store: Store<Guest>,
    instance: Instance,
    /// The functions that were called before, by their positions among the exported ones.
    functions: Vec<Option<Typed>>,
}

/// The parameters of a function.
pub(crate) enum GuestRequest<'a> {
    /// Nothing.
    Nothing,
    /// The input of a hook.
    Hook(&'a HookInput),
    /// A name, and arguments as text.
    Named(&'a str, Cow<'a, str>),
    /// A name, and a value.
    Value(&'a str, Content),
    /// A message to send: user, text and delivery.
    Sent(&'a str, &'a str, Delivery<'a>),
    /// A file to send, and its delivery.
    File(SentFile, Delivery<'a>),
    /// A question to show: user, text, what can be chosen, and its delivery.
    Question(&'a str, &'a str, Vec<Choice<'a>>, Delivery<'a>),
    /// A part of a stream: user, stream id, text, and at the end the delivery.
    Streamed(&'a str, &'a str, &'a str, Delivery<'a>),
    /// An event, without its payload, and the payload as JSON.
    Event(Event<'a>, String),
}

/// A file to send.
pub(crate) struct SentFile {
    /// The user, if one is given.
    pub user: Option<String>,
    /// Its display name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// What a function answers.
pub(crate) enum GuestAnswer {
    Decision(Decision),
    Content(Content),
    Health(bool),
    Done,
    Tools(Vec<ToolSpec>),
    Named(Vec<Named>),
    Agent(AgentSpec),
}

/// Why there is no answer.
pub(crate) enum CallFailure {
    /// The instance trapped or could not be started, and must be dropped.
    Broken(Fault),
    /// The guest returned a failure. The instance can be used again.
    Returned(Failure),
    /// The guest returned an invalid answer. The instance can be used again.
    Invalid(Fault),
}

impl CallFailure {
    /// Whether the instance pool was exhausted.
    pub(crate) fn is_pool_exhausted(&self) -> bool {
        matches!(self, Self::Broken(fault) if fault.code == ErrorCode::SlotsExhausted)
    }
}

impl From<wasmtime::Error> for CallFailure {
    fn from(error: wasmtime::Error) -> Self {
        Self::Broken(fault(&error))
    }
}

impl From<Failure> for CallFailure {
    fn from(failure: Failure) -> Self {
        Self::Returned(failure)
    }
}

/// Calls a function of any signature. One body for synchronous and asynchronous calls.
macro_rules! invoke {
    ($live:expr, $typed:expr, $request:expr, $call:ident $(, $wait:tt)?) => {{
        let (store, request) = (&mut $live.store, $request);
        macro_rules! ask {
            ($function:expr, $arguments:expr) => {
                $function.$call(&mut *store, $arguments)$(.$wait)?.map_err(CallFailure::from)?.0
            };
        }
        match $typed {
            Typed::Step(function) => {
                ask!(function, ())?;
                Ok(request.nothing())
            }
            Typed::Ending(function) => {
                ask!(function, (request.hook().and_then(|input| input.subject.as_ref()).map(content_in),))?;
                Ok(request.nothing())
            }
            Typed::Rewrite(function) => {
                let answer = ask!(function, (request.subject(),))?;
                decided(answer.map(content_out).transpose()?.map(|content| Decision::Replace { content }))
            }
            Typed::Sanitize(function) => sanitized(ask!(function, (request.subject(),))?),
            Typed::SanitizeResult(function) => {
                sanitized(ask!(function, (request.tool_call(), request.subject()))?)
            }
            Typed::Guard(function) => judged(ask!(function, (request.subject(),))?),
            Typed::GuardResult(function) => {
                judged(ask!(function, (request.tool_call(), request.subject()))?)
            }
            Typed::Write(function) => {
                let text = ask!(function, (request.subject(),))?;
                decided(text.map(|text| request.written(text)))
            }
            Typed::Route(function) => {
                let route = ask!(function, (request.subject(),))?;
                decided(route.map(|route| Decision::Route {
                    model: route.model.into(),
                    authoritative: route.authoritative,
                    reason: route.reason,
                }))
            }
            Typed::Modify(function) => {
                let change = ask!(function, (request.tool_call(),))?;
                let change = change.map(|change| {
                    let arguments = change.arguments.as_deref().map(json).transpose()?;
                    let implementation = change.implementation.map(|id| id.into());
                    Ok::<_, CallFailure>(Decision::Modify { arguments, implementation })
                });
                decided(change.transpose()?)
            }
            Typed::Gate(function) => Ok(GuestAnswer::Decision(match ask!(function, (request.tool_call(),))? {
                Gate::Allow => Decision::Allow,
                Gate::Deny(reason) => Decision::Deny { reason },
                Gate::Ask(reason) => Decision::Ask { reason },
            })),
            Typed::After(function) => {
                let change = ask!(function, (request.tool_call(), request.subject()))?;
                decided(change.map(enriched).transpose()?)
            }
            Typed::Plan(function) => {
                let plan = ask!(function, ())?;
                decided(plan.map(|plan| Decision::Compact { instructions: plan.instructions, keep: plan.keep }))
            }
            Typed::Tools(function) => Ok(GuestAnswer::Tools(ask!(function, ()))),
            Typed::Named(function) => Ok(GuestAnswer::Named(ask!(function, ()))),
            Typed::Agent(function) => Ok(GuestAnswer::Agent(ask!(function, ()))),
            Typed::Run(function) => {
                Ok(GuestAnswer::Content(content_out(ask!(function, (request.name(), request.text()))?)?))
            }
            Typed::Invoke(function) => Ok(GuestAnswer::Content(content_out(ask!(function, (request.text(),))?)?)),
            Typed::Task(function) => {
                let answer = ask!(function, (request.text(),))?;
                Ok(GuestAnswer::Content(answer.map(content_out).transpose()?.unwrap_or_default()))
            }
            Typed::Json(function) => Ok(GuestAnswer::Content(json(&ask!(function, ()))?)),
            Typed::Apply(function) => {
                ask!(function, (request.text(),))?;
                Ok(GuestAnswer::Content(Content::default()))
            }
            Typed::Word(function) => Ok(GuestAnswer::Content(Content::text(ask!(function, ())?))),
            Typed::RenderCall(function) => Ok(shown(ask!(function, (request.name(), request.text())))),
            Typed::RenderResult(function) => Ok(shown(ask!(function, (request.name(), request.subject())))),
            Typed::Send(function) => {
                ask!(function, (request.name(), request.text(), request.delivery()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::Message(function) => {
                ask!(function, (request.text(), request.delivery()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::File(function) => {
                ask!(function, (request.user(), request.file(), request.delivery()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::Question(function) => {
                ask!(function, (request.name(), request.text(), request.choices(), request.delivery()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::StreamStart(function) => {
                ask!(function, (request.name(), request.stream()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::StreamPiece(function) => {
                ask!(function, (request.name(), request.stream(), request.text()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::StreamEnd(function) => {
                ask!(function, (request.name(), request.stream(), request.text(), request.delivery()))?;
                Ok(GuestAnswer::Done)
            }
            Typed::Event(function) => {
                ask!(function, (request.event(),))?;
                Ok(GuestAnswer::Done)
            }
            Typed::Health(function) => Ok(GuestAnswer::Health(ask!(function, ()))),
        }
    }};
}

impl RunningInstance {
    /// A store for code that is about to be instantiated.
    pub(crate) fn store(code: &CompiledCode, activation: &Arc<Activation>) -> Store<Guest> {
        Guest::store(code.pre.engine(), activation)
    }

    /// Starts an instance synchronously.
    pub(crate) fn instantiate(code: &CompiledCode, mut store: Store<Guest>) -> Result<Self, CallFailure> {
        let instance = code.pre.instantiate(&mut store)?;
        Ok(Self::with(code, store, instance))
    }

    /// Starts an instance asynchronously.
    pub(crate) async fn instantiate_async(
        code: &CompiledCode,
        mut store: Store<Guest>,
    ) -> Result<Self, CallFailure> {
        let instance = code.pre.instantiate_async(&mut store).await?;
        Ok(Self::with(code, store, instance))
    }

    fn with(code: &CompiledCode, store: Store<Guest>, instance: Instance) -> Self {
        Self { store, instance, functions: vec![None; code.functions()] }
    }

    fn find(&mut self, code: &CompiledCode, function: Function) -> Result<Typed, CallFailure> {
        let Some((place, index)) = code.place(function) else {
            let message = format!("it has no `{}.{}`", function.interface(), function.name());
            return Err(CallFailure::Invalid(Fault::new(ErrorCode::ExtensionFault, message)));
        };
        if let Some(Some(typed)) = self.functions.get(place) {
            return Ok(*typed);
        }
        let typed = Shape::of(function).find(&self.instance, &mut self.store, index)?;
        self.functions[place] = Some(typed);
        Ok(typed)
    }

    /// Calls a function synchronously. The guest's fuel limits how long it holds the thread.
    pub(crate) fn call(
        &mut self,
        code: &CompiledCode,
        function: Function,
        request: &GuestRequest<'_>,
    ) -> Result<GuestAnswer, CallFailure> {
        let typed = self.find(code, function)?;
        invoke!(self, typed, request, call)
    }

    /// Calls a function asynchronously: it can wait for the host, and yields its thread.
    pub(crate) async fn call_async(
        &mut self,
        code: &CompiledCode,
        function: Function,
        request: &GuestRequest<'_>,
    ) -> Result<GuestAnswer, CallFailure> {
        let typed = self.find(code, function)?;
        invoke!(self, typed, request, call_async, await)
    }
}

impl<'a> GuestRequest<'a> {
    /// The answer of a function without a result.
    fn nothing(&self) -> GuestAnswer {
        match self {
            GuestRequest::Hook(_) => GuestAnswer::Decision(Decision::Continue),
            _ => GuestAnswer::Done,
        }
    }

    fn hook(&self) -> Option<&'a HookInput> {
        match self {
            GuestRequest::Hook(input) => Some(input),
            _ => None,
        }
    }

    fn subject(&self) -> ContentIn<'_> {
        match self {
            GuestRequest::Hook(input) => input.subject.as_ref().map_or(ContentIn::Text(""), content_in),
            GuestRequest::Value(_, content) => content_in(content),
            _ => ContentIn::Text(""),
        }
    }

    fn tool_call(&self) -> ToolCall<'a> {
        match self.hook().and_then(|input| input.call.as_ref()) {
            Some(call) => ToolCall {
                id: (u64::from(call.id.turn) << 32) | u64::from(call.id.index),
                tool: call.tool.as_str(),
                arguments: call.arguments.json(),
            },
            None => ToolCall { id: 0, tool: "", arguments: "null" },
        }
    }

    fn name(&self) -> &'a str {
        match self {
            GuestRequest::Named(name, _)
            | GuestRequest::Value(name, _)
            | GuestRequest::Sent(name, ..)
            | GuestRequest::Question(name, ..)
            | GuestRequest::Streamed(name, ..) => name,
            GuestRequest::Hook(_)
            | GuestRequest::Event(..)
            | GuestRequest::File(..)
            | GuestRequest::Nothing => "",
        }
    }

    fn text(&self) -> &str {
        match self {
            GuestRequest::Named(_, text) => text,
            GuestRequest::Sent(_, text, _)
            | GuestRequest::Question(_, text, ..)
            | GuestRequest::Streamed(_, _, text, _) => text,
            GuestRequest::Value(..) | GuestRequest::Hook(_) | GuestRequest::Event(..) => "",
            GuestRequest::File(..) | GuestRequest::Nothing => "",
        }
    }

    fn stream(&self) -> &'a str {
        match self {
            GuestRequest::Streamed(_, id, ..) => id,
            _ => "",
        }
    }

    fn delivery(&self) -> Delivery<'a> {
        match self {
            GuestRequest::Sent(_, _, delivery)
            | GuestRequest::Streamed(_, _, _, delivery)
            | GuestRequest::Question(_, _, _, delivery)
            | GuestRequest::File(_, delivery) => *delivery,
            _ => Delivery { id: "", repeat: false },
        }
    }

    fn user(&self) -> Option<&str> {
        match self {
            GuestRequest::File(file, _) => file.user.as_deref(),
            _ => None,
        }
    }

    fn choices(&self) -> &[Choice<'_>] {
        match self {
            GuestRequest::Question(_, _, choices, _) => choices,
            _ => &[],
        }
    }

    fn file(&self) -> File<'_> {
        match self {
            GuestRequest::File(SentFile { name, media_type, content, .. }, _) => {
                File { name, media_type, content }
            }
            _ => File::default(),
        }
    }

    fn event(&self) -> Event<'_> {
        match self {
            GuestRequest::Event(event, payload) => Event { payload, ..*event },
            _ => Event::default(),
        }
    }

    /// The decision of a hook that returns text.
    fn written(&self, text: String) -> Decision {
        let content = Content::text(text);
        match self.hook().map(|input| input.point) {
            Some(HookPoint::Context) => Decision::Inject { content },
            _ => Decision::Replace { content },
        }
    }
}

fn content_in(content: &Content) -> ContentIn<'_> {
    match content.value() {
        Value::String(text) => ContentIn::Text(text),
        _ => ContentIn::Json(content.json()),
    }
}

fn content_out(content: ContentOut) -> Result<Content, CallFailure> {
    match content {
        ContentOut::Text(text) => Ok(Content::text(text)),
        ContentOut::Json(text) => json(&text),
    }
}

fn json(text: &str) -> Result<Content, CallFailure> {
    let value: Result<Value, _> = serde_json::from_str(text);
    value.map(Content::new).map_err(|error| {
        let message = format!("the extension returned invalid JSON: {}", one_line(&error.to_string()));
        CallFailure::Invalid(Fault::new(ErrorCode::ComponentTrap, message))
    })
}

fn decided(decision: Option<Decision>) -> Result<GuestAnswer, CallFailure> {
    Ok(GuestAnswer::Decision(decision.unwrap_or(Decision::Continue)))
}

fn sanitized(answer: Sanitized) -> Result<GuestAnswer, CallFailure> {
    Ok(GuestAnswer::Decision(match answer {
        Sanitized::Unchanged => Decision::Continue,
        Sanitized::Replaced(content) => Decision::Replace { content: content_out(content)? },
        Sanitized::Flagged(reason) => Decision::Flag { reason },
        Sanitized::Blocked(reason) => Decision::Block { reason },
    }))
}

fn judged(verdict: Verdict) -> Result<GuestAnswer, CallFailure> {
    Ok(GuestAnswer::Decision(match verdict {
        Verdict::Allow => Decision::Allow,
        Verdict::Flag(reason) => Decision::Flag { reason },
        Verdict::Block(reason) => Decision::Block { reason },
    }))
}

fn enriched(change: Enrichment) -> Result<Decision, CallFailure> {
    let artifact = |artifact: crate::wit::abi::Artifact| {
        let content = content_out(artifact.content)?;
        Ok(Artifact { name: artifact.name, media_type: artifact.media_type, content })
    };
    Ok(Decision::Enrich {
        result: change.result.map(content_out).transpose()?,
        artifacts: change.artifacts.into_iter().map(artifact).collect::<Result<_, CallFailure>>()?,
        render: change.render.as_deref().map(json).transpose()?,
    })
}

fn shown(text: Option<String>) -> GuestAnswer {
    GuestAnswer::Content(text.map_or_else(Content::default, Content::text))
}
