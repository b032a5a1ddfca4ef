//! Bringing back code that was compiled earlier. The one place of this lane with `unsafe`.
//!
//! `Component::deserialize` runs what it is given as machine code, so its bytes must be the engine's own. They are: they were
//! written by `Component::serialize` of an engine whose compatibility digest is part of the name they are kept under, and the
//! vault gives back exactly what was kept, checked against the digest in the database, or nothing. They are read from memory,
//! so nobody can change them between the check and the use. Whoever can rewrite the database and the files can also
//! rewrite the program itself; SECURITY.md draws that line.
#![allow(unsafe_code)]

use wasmtime::Engine;
use wasmtime::component::Component;

/// The component, or nothing if the bytes do not fit the engine after all.
pub(crate) fn revive(engine: &Engine, checked_by_the_vault: &[u8]) -> Option<Component> {
    // SAFETY: the bytes are what this program's own engine wrote, as argued above.
    unsafe { Component::deserialize(engine, checked_by_the_vault) }.ok()
}
