//! The WASM lane: extensions as sandboxed components, built against the interface in `wit/`.
//!
//! [`WasmLane`] finds an activation's code in the vault and runs it under hard budgets. What a component is, is read from its
//! type ([`inspect`]) before anything of it runs: the interfaces that it exports are its roles, and what it imports must be
//! everybody's or granted. Code is compiled once and brought back from the vault afterwards, and only when the first
//! call needs it.
//!
//! Every instance has a store of its own, and any trap throws that store away. Fuel decides how long a call may compute, so that it
//! is the same on every machine; the epoch only makes a long call share its thread, and stops it in the end.
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
pub use component::engine::reserve;
pub use component::inspect::{Inspection, inspect};
pub use lane::WasmLane;
