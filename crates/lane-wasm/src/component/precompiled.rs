//! Loading compiled code from the cache. The only module of this lane with `unsafe`.
//!
//! `Component::deserialize` executes its input as machine code, so the bytes must come from the engine itself. They do: they are the
//! answer of a process of this same program file (`compiler`), or they were written by `Component::serialize` of an engine whose compatibility digest is part of the cache name, and the vault returns
//! exactly the bytes that were stored, checked against the digest in the database, or nothing. They are read from memory, so they
//! cannot change between check and use. An attacker who can rewrite the database and the files can also rewrite the program
//! itself, which SECURITY.md excludes.
#![allow(unsafe_code)]

use wasmtime::Engine;
use wasmtime::component::Component;

/// The component; `None` if the bytes are not compatible with the engine.
pub(crate) fn deserialize(engine: &Engine, checked_by_the_vault: &[u8]) -> Option<Component> {
    // SAFETY: the bytes are what this program's own engine wrote, as argued above.
    unsafe { Component::deserialize(engine, checked_by_the_vault) }.ok()
}
