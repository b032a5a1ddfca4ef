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
//! Where to look: [`SandboxOptions`](holdfast_contract::sandbox::SandboxOptions) for what can be set; `interfaces` and `functions` for the names and signatures; `link` and `wasi`
//! for what components may ask of the host; `guest` for the limits; `live` and `instance` for how calls are made;
//! `faults` for the codes that failures come to.

mod abi;
mod bench;
mod code;
mod descriptors;
mod engine;
mod extension;
mod faults;
mod functions;
mod guest;
mod inspect;
mod instance;
mod instance_pool;
mod interfaces;
mod lane;
mod link;
mod nesting;
mod precompiled;
mod running;
mod wasi;

pub use bench::bare_gate;
pub use engine::reserve;
pub use inspect::{Inspection, inspect};
pub use lane::WasmLane;
