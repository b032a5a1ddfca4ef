//! The host's implementation of every interface that a component may import. Only granted imports are linked.
//!
//! Functions that the lane can answer itself are synchronous; those that make a host call are asynchronous. A fault of the host
//! becomes the interface's `failure` where the signature has one, and stops the guest where it has not.

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{Capability, HostCall, HostCallKind};
use holdfast_contract::log::LogLevel;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::UiQuestion;
use serde_json::{Value, json};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, LinkerInstance};
use wasmtime::{Result, StoreContextMut};

use crate::faults::{Stop, stop};
use crate::host::invocations::invocations;
use crate::host::{outside, records, wasi};
use crate::instance::guest::Guest;
use crate::wit::abi::{ContentOut, Failure, Level, NewEvent, Recipient, TurnInfo};
use crate::wit::interfaces::Name;

/// The interface for files.
const FILES: &str = Capability::Files.wit_interface();

/// The interface for truncated results.
const RESULTS: &str = Capability::Results.wit_interface();

/// The interface for setting up extensions.
const MAINTENANCE: &str = Capability::Setup.wit_interface();

/// Random bytes per call.
pub(crate) const RANDOM_LIMIT: u64 = 4096;

/// The shortest wait of a background loop, in milliseconds, so that none becomes a busy loop.
const LEAST_WAIT: u64 = 10;

/// Links what a component imports. Unknown imports are left out, and instantiation then fails.
pub(crate) fn link(linker: &mut Linker<Guest>, component: &Component) -> Result<()> {
    let engine = linker.engine().clone();
    for (import, item) in component.component_type().imports(&engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        let name = Name::parse(import);
        // Functions that trap are defined first, and the implemented ones override them.
        linker.allow_shadowing(name.package.starts_with("wasi:"));
        let mut at = linker.instance(import)?;
        if name.package.starts_with("wasi:") {
            wasi::link(&mut at, &name, import, interface.exports(&engine))?;
            continue;
        }
        match name.interface {
            "log" => log(&mut at)?,
            "config" => config(&mut at)?,
            "session" => session(&mut at)?,
            "state" => state(&mut at)?,
            "messages" => messages(&mut at)?,
            "clock" => clock(&mut at)?,
            "random" => random(&mut at)?,
            "events" => events(&mut at)?,
            "subscriptions" => subscriptions(&mut at)?,
            "ui" => ui(&mut at)?,
            "secrets" => secrets(&mut at)?,
            "timers" => timers(&mut at)?,
            "extensions" => extensions(&mut at)?,
            "services" => services(&mut at)?,
            "agents" => agents(&mut at)?,
            "channels" => outside::channels(&mut at)?,
            "prompts" => outside::prompts(&mut at)?,
            "conversations" => records::conversations(&mut at)?,
            RESULTS => records::results(&mut at)?,
            "discovery" => records::discovery(&mut at)?,
            MAINTENANCE => records::maintenance(&mut at)?,
            "system" => outside::system(&mut at)?,
            "http" => outside::http(&mut at)?,
            FILES => outside::files(&mut at)?,
            "environment" => outside::environment(&mut at)?,
            _ => {}
        }
    }
    Ok(())
}

/// Makes a host call. Its duration does not count against the guest's time.
pub(crate) async fn call_host(
    store: &mut StoreContextMut<'_, Guest>,
    call: HostCall,
) -> Result<Result<Content, Fault>> {
    let host = store.data_mut().host()?;
    let answer = host.call(call).await;
    store.set_epoch_deadline(1);
    Ok(answer)
}

/// Makes a host call whose failure stops the guest.
pub(crate) async fn demand(store: &mut StoreContextMut<'_, Guest>, call: HostCall) -> Result<Content> {
    call_host(store, call).await?.map_err(|fault| Stop(fault).into())
}

/// The time in milliseconds.
pub(crate) async fn now(store: &mut StoreContextMut<'_, Guest>) -> Result<u64> {
    let answer = demand(store, HostCall::Clock).await?;
    let millis = answer.value().as_u64();
    millis.ok_or_else(|| stop(Code::Internal, "the host's time is not a number"))
}

/// Random bytes, which the host gives as hexadecimal digits.
pub(crate) async fn draw(store: &mut StoreContextMut<'_, Guest>, count: u64) -> Result<Vec<u8>> {
    if count > RANDOM_LIMIT {
        let message = format!("it asked for {count} random bytes and may have {RANDOM_LIMIT} at once");
        return Err(stop(Code::ComponentTrap, message));
    }
    let answer = demand(store, HostCall::Random { bytes: count as u32 }).await?;
    let digits = answer.value().as_str().unwrap_or_default().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks_exact(2).map(byte).collect();
    let whole = bytes.filter(|bytes| bytes.len() as u64 == count);
    whole.ok_or_else(|| stop(Code::Internal, "the host's random bytes are not as many as asked for"))
}

fn log(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap("log", |mut store: StoreContextMut<'_, Guest>, (level, line): (Level, String)| {
        let level = match level {
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warning => LogLevel::Warning,
            Level::Error => LogLevel::Error,
        };
        store.data_mut().count()?;
        store.data_mut().log(level, &line)
    })
}

fn config(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap("get", |mut store: StoreContextMut<'_, Guest>, (name,): (String,)| {
        store.data_mut().count()?;
        let value = store.data().activation.config.value().get(&name);
        Ok((value.map(|value| Content::new(value.clone()).json().to_owned()),))
    })?;
    at.func_wrap("all", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        store.data_mut().count()?;
        let config = &store.data().activation.config;
        let nothing = config.value().is_null();
        Ok((if nothing { "{}".to_owned() } else { config.json().to_owned() },))
    })
}

fn session(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap("current", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        store.data_mut().count()?;
        let info = store.data().turn.as_ref().map(|turn| TurnInfo {
            session: turn.session.as_str().to_owned(),
            turn: turn.turn,
            agent: turn.agent.as_str().to_owned(),
            channel: turn.origin.channel.clone(),
            user: turn.origin.user.clone(),
        });
        Ok((info,))
    })
}

fn state(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("get", |mut store: StoreContextMut<'_, Guest>, (key,): (String,)| {
        Box::new(async move {
            let answer = call_host(&mut store, HostCall::StateGet { key }).await?;
            let value = |content: Content| (!is_null(&content)).then(|| content.json().to_owned());
            Ok((answer.map(value).map_err(Failure::from),))
        })
    })?;
    type Change = (String, Option<String>);
    at.func_wrap_async("set", |mut store: StoreContextMut<'_, Guest>, (key, value): Change| {
        Box::new(async move {
            let value = match value.map(|value| parse(&value)).transpose() {
                Ok(value) => value,
                Err(failure) => {
                    store.data_mut().count()?;
                    return Ok((Err(failure),));
                }
            };
            Ok((nothing(call_host(&mut store, HostCall::StateSet { key, value }).await?),))
        })
    })
}

fn messages(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("inject", |mut store: StoreContextMut<'_, Guest>, (text,): (String,)| {
        Box::new(async move {
            let inject = HostCall::Inject { text: Content::text(text) };
            Ok((nothing(call_host(&mut store, inject).await?),))
        })
    })
}

fn clock(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("now", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move { Ok((now(&mut store).await?,)) })
    })
}

fn random(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("bytes", |mut store: StoreContextMut<'_, Guest>, (count,): (u32,)| {
        Box::new(async move { Ok((draw(&mut store, count.into()).await?,)) })
    })
}

fn events(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Event = (String, String, Option<String>);
    at.func_wrap_async("publish", |mut store: StoreContextMut<'_, Guest>, (topic, payload, key): Event| {
        Box::new(async move {
            let payload = match parse(&payload) {
                Ok(payload) => payload,
                Err(failure) => {
                    store.data_mut().count()?;
                    return Ok((Err(failure),));
                }
            };
            let payload = payload.value().clone();
            let arguments = json!({ "topic": topic, "payload": payload, "key": key });
            Ok((nothing(call_host(&mut store, HostCall::of(HostCallKind::EventPublish, arguments)).await?),))
        })
    })?;
    at.func_wrap_async("publish-event", |mut store: StoreContextMut<'_, Guest>, (event,): (NewEvent,)| {
        Box::new(async move {
            let payload = match parse(&event.payload) {
                Ok(payload) => payload.value().clone(),
                Err(failure) => {
                    store.data_mut().count()?;
                    return Ok((Err(failure),));
                }
            };
            let NewEvent { topic, key, correlation, idempotency, .. } = event;
            let arguments = json!({
                "topic": topic, "payload": payload, "key": key, "correlation": correlation, "idempotency": idempotency,
            });
            Ok((words(call_host(&mut store, HostCall::of(HostCallKind::EventPublish, arguments)).await?),))
        })
    })
}

fn subscriptions(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    for (function, kind) in
        [("subscribe", HostCallKind::EventSubscribe), ("unsubscribe", HostCallKind::EventUnsubscribe)]
    {
        at.func_wrap_async(function, move |mut store: StoreContextMut<'_, Guest>, (topic,): (String,)| {
            Box::new(async move {
                let arguments = json!({ "topic": topic });
                Ok((nothing(call_host(&mut store, HostCall::of(kind, arguments)).await?),))
            })
        })?;
    }
    Ok(())
}

fn ui(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Choice = (String, Vec<String>);
    at.func_wrap_async("select", |mut store: StoreContextMut<'_, Guest>, (prompt, options): Choice| {
        Box::new(async move {
            let answer = call_host(&mut store, HostCall::Ui(UiQuestion::Select { prompt, options })).await?;
            Ok((answer.map(|answer| text(&answer)).map_err(Failure::from),))
        })
    })?;
    at.func_wrap_async("confirm", |mut store: StoreContextMut<'_, Guest>, (prompt,): (String,)| {
        Box::new(async move {
            let answer = call_host(&mut store, HostCall::Ui(UiQuestion::Confirm { prompt })).await?;
            let yes = |answer: Content| answer.value().as_bool();
            Ok((answer.map(yes).map_err(Failure::from),))
        })
    })?;
    at.func_wrap_async("input", |mut store: StoreContextMut<'_, Guest>, (prompt,): (String,)| {
        Box::new(async move {
            let answer =
                call_host(&mut store, HostCall::Ui(UiQuestion::Input { prompt, secret: false })).await?;
            Ok((answer.map(|answer| text(&answer)).map_err(Failure::from),))
        })
    })?;
    type Custom = (String, String, String);
    at.func_wrap_async("custom", |mut store: StoreContextMut<'_, Guest>, (kind, prompt, payload): Custom| {
        Box::new(async move {
            let payload = match parse(&payload) {
                Ok(payload) => payload,
                Err(failure) => {
                    store.data_mut().count()?;
                    return Ok((Err(failure),));
                }
            };
            let view = json!({ "kind": kind, "payload": payload.value() });
            let question = UiQuestion::Custom { prompt, view: view.into() };
            let answer = call_host(&mut store, HostCall::Ui(question)).await?;
            let value = |answer: Content| (!is_null(&answer)).then(|| answer.json().to_owned());
            Ok((answer.map(value).map_err(Failure::from),))
        })
    })
}

fn secrets(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    for (function, kind) in [("reference", HostCallKind::SecretReference), ("get", HostCallKind::SecretGet)] {
        at.func_wrap_async(function, move |mut store: StoreContextMut<'_, Guest>, (name,): (String,)| {
            Box::new(async move {
                let answer = call_host(&mut store, HostCall::of(kind, Content::text(name))).await?;
                Ok((words(answer),))
            })
        })?;
    }
    at.func_wrap_async("keep", |mut store: StoreContextMut<'_, Guest>, (name, value): (String, String)| {
        Box::new(async move {
            let arguments = json!({ "name": name, "value": value });
            Ok((nothing(call_host(&mut store, HostCall::of(HostCallKind::SecretKeep, arguments)).await?),))
        })
    })
}

fn timers(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("wait-until", |mut store: StoreContextMut<'_, Guest>, (moment,): (u64,)| {
        Box::new(async move {
            let until = if store.data().is_a_loop() {
                moment.max(now(&mut store).await?.saturating_add(LEAST_WAIT))
            } else {
                moment
            };
            let answer =
                call_host(&mut store, HostCall::of(HostCallKind::ScheduleWait, json!({ "until": until })))
                    .await?;
            Guest::renew(&mut store)?;
            let time = |answer: Content| answer.value().as_u64().unwrap_or(until);
            Ok((answer.map(time).map_err(Failure::from),))
        })
    })?;
    type Schedule = (String, Option<String>);
    at.func_wrap_async("next-due", |mut store: StoreContextMut<'_, Guest>, (when, timezone): Schedule| {
        Box::new(async move {
            let arguments = json!({ "when": when, "timezone": timezone });
            let answer = call_host(&mut store, HostCall::of(HostCallKind::ScheduleNext, arguments)).await?;
            let next = |answer: Content| answer.value()["next"].as_u64();
            Ok((answer.map(next).map_err(Failure::from),))
        })
    })
}

fn extensions(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Called = (String, String, String);
    at.func_wrap_async(
        "call",
        |mut store: StoreContextMut<'_, Guest>, (extension, method, arguments): Called| {
            Box::new(async move {
                let named = json!({ "extension": extension, "method": method });
                Ok((with_arguments(&mut store, HostCallKind::ApiCall, named, &arguments).await?,))
            })
        },
    )
}

fn services(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async(
        "get",
        |mut store: StoreContextMut<'_, Guest>, (key, arguments): (String, String)| {
            Box::new(async move {
                let named = json!({ "key": key });
                Ok((with_arguments(&mut store, HostCallKind::ServiceGet, named, &arguments).await?,))
            })
        },
    )?;
    type Called = (String, String, String);
    at.func_wrap_async("call", |mut store: StoreContextMut<'_, Guest>, (key, method, arguments): Called| {
        Box::new(async move {
            let named = json!({ "key": key, "method": method });
            Ok((with_arguments(&mut store, HostCallKind::ServiceCall, named, &arguments).await?,))
        })
    })
}

fn agents(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Asked = (Option<String>, String);
    at.func_wrap_async("invoke", |mut store: StoreContextMut<'_, Guest>, (agent, task): Asked| {
        Box::new(async move {
            let arguments = json!({ "agent": agent, "task": task });
            let answer = call_host(&mut store, HostCall::of(HostCallKind::AgentInvoke, arguments)).await?;
            Ok((answer.map(content).map_err(Failure::from),))
        })
    })?;
    invocations(at)?;
    for (function, kind) in [("task", HostCallKind::AgentTask), ("background", HostCallKind::AgentBackground)]
    {
        type Started = (Option<String>, String, Recipient);
        at.func_wrap_async(
            function,
            move |mut store: StoreContextMut<'_, Guest>, (agent, task, to): Started| {
                Box::new(async move {
                    let Recipient { channel, user, correlation } = to;
                    let arguments = json!({
                        "agent": agent, "task": task, "channel": channel, "user": user, "correlation": correlation,
                    });
                    Ok((words(call_host(&mut store, HostCall::of(kind, arguments)).await?),))
                })
            },
        )?;
    }
    at.func_wrap_async("list", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move { Ok((as_json(&mut store, HostCallKind::AgentList, json!({})).await?,)) })
    })?;
    type Called = (String, String);
    at.func_wrap_async("invoke-tool", |mut store: StoreContextMut<'_, Guest>, (tool, arguments): Called| {
        Box::new(async move {
            let named = json!({ "tool": tool });
            Ok((with_arguments(&mut store, HostCallKind::ToolInvoke, named, &arguments).await?,))
        })
    })?;
    type Prompted = (String, String, Option<String>);
    at.func_wrap_async(
        "invoke-model",
        |mut store: StoreContextMut<'_, Guest>, (prompt, instructions, agent): Prompted| {
            Box::new(async move {
                let arguments = json!({ "prompt": prompt, "instructions": instructions, "agent": agent });
                Ok((words(call_host(&mut store, HostCall::of(HostCallKind::ModelInvoke, arguments)).await?),))
            })
        },
    )
}

/// Makes a host call whose answer a guest takes as JSON.
pub(super) async fn as_json(
    store: &mut StoreContextMut<'_, Guest>,
    kind: HostCallKind,
    arguments: impl Into<Content>,
) -> Result<Result<String, Failure>> {
    let answer = call_host(store, HostCall::of(kind, arguments)).await?;
    Ok(answer.map(|answer| answer.json().to_owned()).map_err(Failure::from))
}

/// Makes a host call whose `arguments` a guest has written as JSON.
async fn with_arguments(
    store: &mut StoreContextMut<'_, Guest>,
    kind: HostCallKind,
    mut named: Value,
    arguments: &str,
) -> Result<Result<ContentOut, Failure>> {
    match parse(arguments) {
        Ok(arguments) => named["arguments"] = arguments.value().clone(),
        Err(failure) => {
            store.data_mut().count()?;
            return Ok(Err(failure));
        }
    }
    Ok(call_host(store, HostCall::of(kind, named)).await?.map(content).map_err(Failure::from))
}

pub(super) fn content(answer: Content) -> ContentOut {
    match answer.value() {
        Value::String(text) => ContentOut::Text(text.clone()),
        _ => ContentOut::Json(answer.json().to_owned()),
    }
}

pub(super) fn parse(text: &str) -> Result<Content, Failure> {
    let value: Result<Value, _> = serde_json::from_str(text);
    value
        .map(Content::new)
        .map_err(|error| Failure::InvalidArguments(format!("this is not valid JSON: {error}")))
}

/// An answer that is a text.
pub(super) fn words(answer: Result<Content, Fault>) -> Result<String, Failure> {
    answer.map(|answer| answer.to_text()).map_err(Failure::from)
}

pub(super) fn nothing(answer: Result<Content, Fault>) -> Result<(), Failure> {
    answer.map(drop).map_err(Failure::from)
}

fn is_null(content: &Content) -> bool {
    content.value().is_null()
}

fn text(answer: &Content) -> Option<String> {
    (!is_null(answer)).then(|| answer.to_text())
}
