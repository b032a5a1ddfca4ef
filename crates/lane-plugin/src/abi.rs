//! What a plugin exports and what it is given, as C sees it. `sdk/c/holdfast_plugin.h` is the same for authors.
//!
//! This module holds `unsafe` in the types of C functions only; `library.rs` calls them, and argues why that is sound.

use std::ffi::{CStr, c_void};

/// The version of the table. Another one is not loaded.
pub(crate) const ABI: u32 = 1;

/// The one symbol that a plugin exports: a function that returns its table.
pub(crate) const ENTRY: &CStr = c"holdfast_plugin_v1";

/// Bytes that one side has allocated and the same side frees.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub data: *mut u8,
    pub length: usize,
}

impl Buffer {
    pub(crate) const EMPTY: Self = Self { data: std::ptr::null_mut(), length: 0 };
}

/// What a plugin may call in the middle of a call, from any thread, until that call returns.
#[repr(C)]
pub(crate) struct HostTable {
    pub context: *const c_void,
    /// Takes one message to the host and returns the answer; empty for a notification.
    pub send: unsafe extern "C" fn(context: *const c_void, message: *const u8, length: usize) -> Buffer,
    /// Frees what `send` has returned.
    pub free: unsafe extern "C" fn(context: *const c_void, answer: Buffer),
}

/// What a plugin exports.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PluginTable {
    /// [`ABI`].
    pub abi: u32,
    /// The size of the table in bytes, so that later versions can append to it.
    pub size: u32,
    /// Answers `hello`.
    pub describe: Option<unsafe extern "C" fn(hello: *const u8, length: usize) -> Buffer>,
    /// Answers any other request. Called from several threads at once.
    pub call:
        Option<unsafe extern "C" fn(host: *const HostTable, request: *const u8, length: usize) -> Buffer>,
    /// Frees what `describe` and `call` have returned.
    pub free: Option<unsafe extern "C" fn(answer: Buffer)>,
}

/// The type of the function that [`ENTRY`] names.
pub(crate) type Entry = unsafe extern "C" fn() -> *const PluginTable;
