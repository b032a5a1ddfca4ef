//! The WASM lane: extensions as sandboxed components, built against the interface in `wit/`.
//!
//! [`WasmLane`] finds an activation's code in the vault and runs it under hard limits. A component's type is read ([`inspect`])
//! before any of it runs: the interfaces that it exports are its roles, and those that it imports must be public or granted.
//! Code is compiled once and cached in the vault, and loaded only when the first call needs it.
//!
//! Every instance has its own store, and any trap discards that store. Fuel limits how much a call may compute, so that the limit is
//! the same on every machine; the epoch only makes a long call yield its thread, and interrupts it in the end.
//!
//! Where to look: [`SandboxOptions`](holdfast_contract::sandbox::SandboxOptions) for the settings; `wit` for names, signatures and
//! types of the interface; `component` for inspection and compilation; `host` for the imports; `extension` for one activation;
//! `instance` for how calls are made, with the limits in `instance::guest`; `faults` for the error codes.

mod bench;
mod component;
mod extension;
mod faults;
mod host;
mod instance;
mod lane;
mod wit;

pub use bench::bare_gate;
pub use component::compiler::{COMPILE_WORK, serve_compile};
pub use component::engine::reserve;
pub use component::inspect::{Inspection, inspect};
pub use lane::WasmLane;
