//! The imports that reach outside of the session: HTTP, files, environment variables, channels, prompts and the process itself. Bytes
//! cross to the host as text where they are UTF-8, else in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdfast_contract::content::Content;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::problem::{Code, Fault};
use serde_json::{Value, json};
use wasmtime::component::LinkerInstance;
use wasmtime::{Result, StoreContextMut};

use crate::faults::stop;
use crate::host::link::{as_json, call_host, nothing, words};
use crate::instance::guest::Guest;
use crate::wit::abi::{Entry, EntryKind, Failure, KnownChannels, Request, Response};

pub(super) fn channels(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Notice = (String, Option<String>, Option<String>);
    at.func_wrap_async("notify", |mut store: StoreContextMut<'_, Guest>, (text, channel, user): Notice| {
        Box::new(async move {
            let arguments = json!({ "text": text, "channel": channel, "user": user });
            Ok((words(call_host(&mut store, HostCall::of(HostCallKind::UserNotify, arguments)).await?),))
        })
    })?;
    at.func_wrap_async("list", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move {
            let answer = call_host(&mut store, HostCall::of(HostCallKind::ChannelList, json!({}))).await?;
            Ok((answer.map(|answer| known_channels(&answer)).map_err(Failure::from),))
        })
    })
}

fn known_channels(answer: &Content) -> KnownChannels {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let ids = answer.value()["channels"].as_array();
    KnownChannels {
        ids: ids.into_iter().flatten().filter_map(text).collect(),
        default_id: text(&answer.value()["default"]),
    }
}

pub(super) fn prompts(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Prompt = (String, Option<String>);
    at.func_wrap_async("enrich", |mut store: StoreContextMut<'_, Guest>, (prompt, agent): Prompt| {
        Box::new(async move {
            let arguments = json!({ "prompt": prompt, "agent": agent });
            Ok((words(call_host(&mut store, HostCall::of(HostCallKind::ContextEnrich, arguments)).await?),))
        })
    })?;
    at.func_wrap_async(
        "describe-agent",
        |mut store: StoreContextMut<'_, Guest>, (agent,): (Option<String>,)| {
            Box::new(async move {
                let arguments = json!({ "agent": agent });
                Ok((as_json(&mut store, HostCallKind::AgentDescribe, arguments).await?,))
            })
        },
    )
}

pub(super) fn system(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("restart", |mut store: StoreContextMut<'_, Guest>, (reason,): (Option<String>,)| {
        Box::new(async move {
            let call = HostCall::of(HostCallKind::SystemRestart, json!({ "reason": reason }));
            Ok((nothing(call_host(&mut store, call).await?),))
        })
    })
}

pub(super) fn environment(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("get", |mut store: StoreContextMut<'_, Guest>, (name,): (String,)| {
        Box::new(async move {
            let call = HostCall::of(HostCallKind::EnvironmentGet, Content::text(name));
            let answer = call_host(&mut store, call).await?;
            let value = |answer: Content| answer.value().as_str().map(str::to_owned);
            Ok((answer.map(value).map_err(Failure::from),))
        })
    })
}

pub(super) fn http(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("send", |mut store: StoreContextMut<'_, Guest>, (request,): (Request,)| {
        Box::new(async move {
            let Request { method, url, headers, body, timeout_ms } = request;
            let mut arguments = json!({ "method": method, "url": url, "headers": headers });
            if !body.is_empty() {
                arguments["body"] = sent(body);
            }
            if let Some(timeout) = timeout_ms {
                arguments["timeout_ms"] = timeout.into();
            }
            let answer = call_host(&mut store, HostCall::of(HostCallKind::HttpRequest, arguments)).await?;
            Ok((match answer {
                Ok(answer) => Ok(response(&answer)?),
                Err(fault) => Err(Failure::from(fault)),
            },))
        })
    })
}

fn response(answer: &Content) -> Result<Response> {
    let answer = answer.value();
    let (Some(status), Some(headers)) = (answer["status"].as_u64(), answer["headers"].as_array()) else {
        return Err(stop(Code::Internal, "the host's answer is not a response"));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Response {
        status: status as u16,
        headers: headers.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
        body: received(&answer["body"])?,
    })
}

pub(super) fn files(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("read", |mut store: StoreContextMut<'_, Guest>, (path,): (String,)| {
        Box::new(async move {
            Ok((match at_path(&mut store, HostCallKind::FileRead, path).await? {
                Ok(answer) => Ok(received(answer.value())?),
                Err(fault) => Err(Failure::from(fault)),
            },))
        })
    })?;
    type Written = (String, Vec<u8>);
    at.func_wrap_async("write", |mut store: StoreContextMut<'_, Guest>, (path, bytes): Written| {
        Box::new(async move {
            let arguments = json!({ "path": path, "content": sent(bytes) });
            Ok((nothing(call_host(&mut store, HostCall::of(HostCallKind::FileWrite, arguments)).await?),))
        })
    })?;
    at.func_wrap_async("list", |mut store: StoreContextMut<'_, Guest>, (path,): (String,)| {
        Box::new(async move {
            let answer = at_path(&mut store, HostCallKind::FileList, path).await?;
            let entries = |answer: Content| -> Vec<Entry> {
                let found = answer.value().as_array();
                found.into_iter().flatten().map(entry).collect()
            };
            Ok((answer.map(entries).map_err(Failure::from),))
        })
    })?;
    at.func_wrap_async("stat", |mut store: StoreContextMut<'_, Guest>, (path,): (String,)| {
        Box::new(async move {
            let answer = at_path(&mut store, HostCallKind::FileStat, path).await?;
            let found = |answer: Content| Some(answer.value()).filter(|it| !it.is_null()).map(entry);
            Ok((answer.map(found).map_err(Failure::from),))
        })
    })?;
    for (function, kind) in
        [("remove", HostCallKind::FileRemove), ("make-folder", HostCallKind::FileMakeFolder)]
    {
        at.func_wrap_async(function, move |mut store: StoreContextMut<'_, Guest>, (path,): (String,)| {
            Box::new(async move { Ok((nothing(at_path(&mut store, kind, path).await?),)) })
        })?;
    }
    Ok(())
}

async fn at_path(
    store: &mut StoreContextMut<'_, Guest>,
    kind: HostCallKind,
    path: String,
) -> Result<Result<Content, Fault>> {
    call_host(store, HostCall::of(kind, json!({ "path": path }))).await
}

fn entry(found: &Value) -> Entry {
    Entry {
        name: found["name"].as_str().unwrap_or_default().to_owned(),
        kind: match found["kind"].as_str() {
            Some("file") => EntryKind::File,
            Some("folder") => EntryKind::Folder,
            Some("link") => EntryKind::Link,
            _ => EntryKind::Other,
        },
        size: found["bytes"].as_u64().unwrap_or_default(),
    }
}

/// Bytes of a guest as the host takes them.
fn sent(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::String(text),
        Err(other) => json!({ "base64": STANDARD.encode(other.as_bytes()) }),
    }
}

/// Bytes of the host as a guest takes them.
fn received(value: &Value) -> Result<Vec<u8>> {
    if let Some(text) = value.as_str() {
        return Ok(text.as_bytes().to_owned());
    }
    let encoded = value["base64"].as_str().unwrap_or_default();
    STANDARD.decode(encoded).map_err(|_| stop(Code::Internal, "the host's bytes are not valid base64"))
}
