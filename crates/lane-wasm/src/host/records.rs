//! The imports for what the program keeps and knows: conversations and projects, truncated results, the extensions and tools of a
//! session, and their setup. Answers cross to the guest as JSON, as a program gets them.

use holdfast_contract::content::Content;
use holdfast_contract::host_call::{HostCall, HostCallKind};
use holdfast_contract::ids::CallId;
use serde_json::{Map, Value, json};
use wasmtime::component::LinkerInstance;
use wasmtime::{Result, StoreContextMut};

use crate::host::link::{as_json, call_host, nothing, parse};
use crate::instance::guest::Guest;
use crate::wit::abi::{Failure, ThreadFilter};

pub(super) fn conversations(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async(
        "list-threads",
        |mut store: StoreContextMut<'_, Guest>, (filter,): (ThreadFilter,)| {
            Box::new(async move {
                let ThreadFilter { thread, channel, project, archived } = filter;
                let arguments =
                    json!({ "thread": thread, "channel": channel, "project": project, "archived": archived });
                Ok((as_json(&mut store, HostCallKind::ThreadList, arguments).await?,))
            })
        },
    )?;
    at.func_wrap_async(
        "update-thread",
        |mut store: StoreContextMut<'_, Guest>, (thread, changes): (String, String)| {
            Box::new(async move {
                let mut changes = match object(&changes) {
                    Ok(changes) => changes,
                    Err(failure) => {
                        store.data_mut().count()?;
                        return Ok((Err(failure),));
                    }
                };
                changes.insert("thread".to_owned(), thread.into());
                let changes = Value::Object(changes);
                Ok((as_json(&mut store, HostCallKind::ThreadUpdate, changes).await?,))
            })
        },
    )?;
    at.func_wrap_async("history", |mut store: StoreContextMut<'_, Guest>, (thread,): (String,)| {
        Box::new(async move {
            Ok((as_json(&mut store, HostCallKind::ThreadHistory, Content::text(thread)).await?,))
        })
    })?;
    at.func_wrap_async("list-projects", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move { Ok((as_json(&mut store, HostCallKind::ProjectList, json!({})).await?,)) })
    })?;
    type Changed = (Option<String>, String);
    at.func_wrap_async(
        "update-project",
        |mut store: StoreContextMut<'_, Guest>, (project, fields): Changed| {
            Box::new(async move {
                let fields = match object(&fields) {
                    Ok(fields) => fields,
                    Err(failure) => {
                        store.data_mut().count()?;
                        return Ok((Err(failure),));
                    }
                };
                let arguments = json!({ "project": project, "fields": fields });
                Ok((as_json(&mut store, HostCallKind::ProjectUpdate, arguments).await?,))
            })
        },
    )?;
    at.func_wrap_async("remove-project", |mut store: StoreContextMut<'_, Guest>, (project,): (String,)| {
        Box::new(async move {
            let call = HostCall::of(HostCallKind::ProjectRemove, Content::text(project));
            Ok((nothing(call_host(&mut store, call).await?),))
        })
    })
}

/// The fields of an object that a guest has written as JSON.
fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    match parse(text)?.value() {
        Value::Object(fields) => Ok(fields.clone()),
        _ => Err(Failure::InvalidArguments("this is not an object".to_owned())),
    }
}

pub(super) fn results(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Part = (u64, u64, u64);
    at.func_wrap_async("read", |mut store: StoreContextMut<'_, Guest>, (call, offset, limit): Part| {
        Box::new(async move {
            // As hooks are given it: the turn above, the call's index in it below.
            let call = CallId { turn: (call >> 32) as u32, index: call as u32 };
            let arguments = json!({ "call": call, "offset": offset, "limit": limit });
            Ok((as_json(&mut store, HostCallKind::ResultRead, arguments).await?,))
        })
    })
}

pub(super) fn discovery(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    type Search = (String, Option<u32>);
    at.func_wrap_async("find-tools", |mut store: StoreContextMut<'_, Guest>, (query, limit): Search| {
        Box::new(async move {
            let arguments = json!({ "query": query, "limit": limit });
            Ok((as_json(&mut store, HostCallKind::ToolsFind, arguments).await?,))
        })
    })?;
    at.func_wrap_async("list-capabilities", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move { Ok((as_json(&mut store, HostCallKind::CapabilitiesList, json!({})).await?,)) })
    })
}

pub(super) fn maintenance(at: &mut LinkerInstance<'_, Guest>) -> Result<()> {
    at.func_wrap_async("open", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move { Ok((as_json(&mut store, HostCallKind::SetupOpen, json!({})).await?,)) })
    })?;
    at.func_wrap_async("show", |mut store: StoreContextMut<'_, Guest>, (extension,): (String,)| {
        Box::new(async move {
            Ok((as_json(&mut store, HostCallKind::SetupShow, Content::text(extension)).await?,))
        })
    })?;
    type Set = (String, String, String);
    at.func_wrap_async("apply", |mut store: StoreContextMut<'_, Guest>, (extension, name, value): Set| {
        Box::new(async move {
            let value = match parse(&value) {
                Ok(value) => value.value().clone(),
                Err(failure) => {
                    store.data_mut().count()?;
                    return Ok((Err(failure),));
                }
            };
            let arguments = json!({ "extension": extension, "name": name, "value": value });
            Ok((as_json(&mut store, HostCallKind::SetupApply, arguments).await?,))
        })
    })?;
    at.func_wrap_async("doctor", |mut store: StoreContextMut<'_, Guest>, (extension,): (Option<String>,)| {
        Box::new(async move {
            let arguments = json!({ "extension": extension });
            Ok((as_json(&mut store, HostCallKind::ExtensionDoctor, arguments).await?,))
        })
    })
}
