//! A loaded library, and calls through its table.
//!
//! This module holds `unsafe`: it runs code that nothing checks. The argument: loading a plugin is a decision of the user, who trusts it
//! like this program (the profile `trusted`); what is owed is that this side keeps the rules of the table. A library is never unloaded, so
//! its functions and its table stay where they are. The table is read only as far as it says that it goes. What is passed in is valid
//! until the call returns. What comes back is copied, up to a limit, before the plugin's own function frees it. What the plugin calls back
//! does not unwind into it: a panic is caught and becomes an empty answer.

#![allow(unsafe_code, reason = "the argument is above")]

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::abi::{ABI, Buffer, ENTRY, Entry, HostTable, PluginTable};

/// Answers what a plugin asks in the middle of a call.
pub(crate) trait Answers: Sync {
    /// Takes a message; the answer is empty for a notification.
    fn answer(&self, message: &[u8]) -> Vec<u8>;
}

/// A library that stays loaded until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    describe: unsafe extern "C" fn(*const u8, usize) -> Buffer,
    call: unsafe extern "C" fn(*const HostTable, *const u8, usize) -> Buffer,
    free: unsafe extern "C" fn(Buffer),
}

impl Library {
    /// Loads a file and reads its table. Code of the library runs here already: its constructors and its entry.
    pub(crate) fn open(file: &Path) -> Result<Self, String> {
        let name = CString::new(file.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name ends in a NUL byte. Every symbol is resolved now, so that what is missing is found here and not in a call.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error());
        }
        // SAFETY: the handle is valid and is never closed.
        let symbol = unsafe { libc::dlsym(handle, ENTRY.as_ptr()) };
        if symbol.is_null() {
            return Err(format!("it does not export `{}`", ENTRY.to_string_lossy()));
        }
        // SAFETY: a symbol of this name is a function of this type, which is what the header defines it as.
        let table = unsafe { std::mem::transmute::<*mut c_void, Entry>(symbol)() };
        Self::from_table(table)
    }

    fn from_table(table: *const PluginTable) -> Result<Self, String> {
        if table.is_null() {
            return Err("its entry returned no table".to_owned());
        }
        // SAFETY: every version of the table begins with these two numbers.
        let (abi, size) = unsafe { ((*table).abi, (*table).size) };
        if abi != ABI {
            return Err(format!("it is built for version {abi} of the interface; this program has {ABI}"));
        }
        if (size as usize) < size_of::<PluginTable>() {
            return Err(format!("its table has {size} bytes and is too short"));
        }
        // SAFETY: the table is as long as this type.
        match unsafe { *table } {
            PluginTable { describe: Some(describe), call: Some(call), free: Some(free), .. } => {
                Ok(Self { describe, call, free })
            }
            _ => Err("a function is missing in its table".to_owned()),
        }
    }

    /// Answers `hello`.
    pub(crate) fn describe(&self, hello: &[u8], most: usize) -> Result<Vec<u8>, String> {
        // SAFETY: the bytes are valid until it returns.
        let answer = unsafe { (self.describe)(hello.as_ptr(), hello.len()) };
        self.taken(answer, most)
    }

    /// Answers a request. What the plugin asks meanwhile is answered by `host`.
    pub(crate) fn call<A: Answers>(&self, host: &A, request: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let context = std::ptr::from_ref(host).cast();
        let table = HostTable { context, send: send::<A>, free: free_answer };
        // SAFETY: the table, its context and the bytes are valid until it returns.
        let answer = unsafe { (self.call)(&raw const table, request.as_ptr(), request.len()) };
        self.taken(answer, most)
    }

    /// Copies an answer and lets the plugin free it.
    fn taken(&self, answer: Buffer, most: usize) -> Result<Vec<u8>, String> {
        if answer.data.is_null() {
            return Ok(Vec::new());
        }
        let copied = if answer.length <= most {
            // SAFETY: the plugin says that so many bytes are there, and they are until it frees them.
            Ok(unsafe { std::slice::from_raw_parts(answer.data, answer.length) }.to_vec())
        } else {
            Err(format!("an answer of {} bytes is too long; the limit is {most}", answer.length))
        };
        // SAFETY: the plugin has returned this buffer, and it is freed once.
        unsafe { (self.free)(answer) };
        copied
    }
}

fn last_error() -> String {
    // SAFETY: the text belongs to this thread and is valid until its next call into the loader.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "it cannot be loaded".to_owned();
    }
    // SAFETY: it is a text that ends in a NUL byte.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What a plugin calls to send a message.
unsafe extern "C" fn send<A: Answers>(context: *const c_void, message: *const u8, length: usize) -> Buffer {
    if message.is_null() {
        return Buffer::EMPTY;
    }
    // SAFETY: the context is the one of a call that has not returned, and the plugin says that so many bytes are there.
    let (host, message) = unsafe { (&*context.cast::<A>(), std::slice::from_raw_parts(message, length)) };
    let answer = catch_unwind(AssertUnwindSafe(|| host.answer(message))).unwrap_or_default();
    if answer.is_empty() {
        return Buffer::EMPTY;
    }
    let answer = Box::leak(answer.into_boxed_slice());
    Buffer { data: answer.as_mut_ptr(), length: answer.len() }
}

/// What a plugin calls to free an answer.
unsafe extern "C" fn free_answer(_: *const c_void, answer: Buffer) {
    if !answer.data.is_null() {
        // SAFETY: `send` has leaked a box of this length here, and the plugin frees it once.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(answer.data, answer.length)) });
    }
}
