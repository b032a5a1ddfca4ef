//! The WASM lane: extensions as sandboxed components.
