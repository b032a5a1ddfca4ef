//! The C interface, as `holdfast_plugin.h` has it for C.
//!
//! This module holds `unsafe`: it reads what the host passes in. The argument: the host keeps the rules of the header. Its bytes and its
//! table are valid until the function returns, and `HostLink` does not outlive that. What is returned is a leaked box, which the host
//! gives back to `free` once. Nothing unwinds into the host: a panic is caught and becomes an error.

#![allow(unsafe_code, reason = "the argument is above")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::{Call, Exported, Failure};

/// Bytes that one side has allocated and the same side frees.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buffer {
    data: *mut u8,
    length: usize,
}

/// What the host offers in the middle of a call.
#[repr(C)]
pub struct HostTable {
    context: *const c_void,
    send: unsafe extern "C" fn(*const c_void, *const u8, usize) -> Buffer,
    free: unsafe extern "C" fn(*const c_void, Buffer),
}

/// What a plugin exports.
#[repr(C)]
pub struct PluginTable {
    abi: u32,
    size: u32,
    describe: unsafe extern "C" fn(*const u8, usize) -> Buffer,
    call: unsafe extern "C" fn(*const HostTable, *const u8, usize) -> Buffer,
    free: unsafe extern "C" fn(Buffer),
}

/// The table of a plugin.
pub fn table<P: Exported>() -> *const PluginTable {
    const {
        &PluginTable {
            abi: 1,
            size: size_of::<PluginTable>() as u32,
            describe: describe::<P>,
            call: call::<P>,
            free,
        }
    }
}

/// The host, until a call returns.
pub(crate) struct HostLink<'a> {
    table: *const HostTable,
    call: PhantomData<&'a ()>,
}

// SAFETY: the host's functions may be called from any thread until the call returns.
unsafe impl Sync for HostLink<'_> {}

impl HostLink<'_> {
    /// Sends a message and returns the answer, which is empty for a notification.
    pub(crate) fn send(&self, message: &[u8]) -> Vec<u8> {
        // SAFETY: the table is valid until the call returns; the answer is until it is freed, once.
        unsafe {
            let host = &*self.table;
            let answer = (host.send)(host.context, message.as_ptr(), message.len());
            let bytes = copied(answer.data, answer.length);
            (host.free)(host.context, answer);
            bytes
        }
    }
}

/// The calls that were cancelled and go on.
static CANCELLED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn cancelled<T>(change: impl FnOnce(&mut BTreeSet<u64>) -> T) -> T {
    change(&mut CANCELLED.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(crate) fn is_cancelled(id: u64) -> bool {
    cancelled(|all| all.contains(&id))
}

/// Gets the updates of a question.
pub(crate) type Updated = Arc<dyn Fn(&Value) + Send + Sync>;

/// Who gets the updates of the questions that are being answered, by their ids.
static FOLLOWED: Mutex<BTreeMap<u64, Updated>> = Mutex::new(BTreeMap::new());

fn followed<T>(change: impl FnOnce(&mut BTreeMap<u64, Updated>) -> T) -> T {
    change(&mut FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A question whose updates are wanted, until it is dropped.
pub(crate) struct Following(pub(crate) u64);

impl Following {
    pub(crate) fn new(question: u64, updated: Updated) -> Self {
        followed(|all| all.insert(question, updated));
        Self(question)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        followed(|all| all.remove(&self.0));
    }
}

unsafe fn copied(data: *const u8, length: usize) -> Vec<u8> {
    if data.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller says that so many bytes are there.
    unsafe { std::slice::from_raw_parts(data, length) }.to_vec()
}

fn leaked(answer: &Value) -> Buffer {
    let bytes = Box::leak(answer.to_string().into_bytes().into_boxed_slice());
    Buffer { data: bytes.as_mut_ptr(), length: bytes.len() }
}

unsafe extern "C" fn free(answer: Buffer) {
    if !answer.data.is_null() {
        // SAFETY: `leaked` made it.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(answer.data, answer.length)) });
    }
}

/// Answers a request, also where the plugin panics.
fn answered(id: &Value, work: impl FnOnce() -> Result<Value, Failure>) -> Buffer {
    let panicked = |_| Err(Failure::new("the plugin panicked"));
    leaked(&match catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Failure { code, message }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    })
}

unsafe extern "C" fn describe<P: Exported>(hello: *const u8, length: usize) -> Buffer {
    // SAFETY: the host says that so many bytes are there.
    let request: Value = serde_json::from_slice(&unsafe { copied(hello, length) }).unwrap_or_default();
    answered(&request["id"], || {
        let (plugin, welcome) = P::describe(&request["params"])?;
        *P::slot().write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(plugin));
        Ok(welcome)
    })
}

unsafe extern "C" fn call<P: Exported>(host: *const HostTable, request: *const u8, length: usize) -> Buffer {
    // SAFETY: the host says that so many bytes are there.
    let request: Value = serde_json::from_slice(&unsafe { copied(request, length) }).unwrap_or_default();
    let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
    if method == "cancel" {
        cancelled(|all| params["id"].as_u64().map(|id| all.insert(id)));
        return Buffer { data: std::ptr::null_mut(), length: 0 };
    }
    if method == "update" {
        let updated = params["question"].as_u64().and_then(|id| followed(|all| all.get(&id).cloned()));
        // One that panics has missed this update, and the host goes on.
        drop(updated.map(|updated| catch_unwind(AssertUnwindSafe(|| updated(params)))));
        return Buffer { data: std::ptr::null_mut(), length: 0 };
    }
    let id = request["id"].as_u64().unwrap_or_default();
    let answer = answered(&request["id"], || {
        let plugin = P::slot().read().unwrap_or_else(PoisonError::into_inner).clone();
        let plugin = plugin.ok_or_else(|| Failure::new("the plugin was not asked what it is"))?;
        plugin.call(&Call { method, params, id, host: HostLink { table: host, call: PhantomData } })
    });
    cancelled(|all| all.remove(&id));
    answer
}
