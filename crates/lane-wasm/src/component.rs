//! Components before they run: reading what a component imports and exports, compiling it, and loading compiled code again.

pub(crate) mod code;
pub(crate) mod compiler;
pub(crate) mod descriptors;
pub(crate) mod engine;
pub(crate) mod inspect;
mod nesting;
mod precompiled;
