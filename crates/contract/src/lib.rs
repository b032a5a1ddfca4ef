//! The types that all other crates share: frames, roles, hook points, manifests, calls into extensions, error codes.
//!
//! Start at [`frame`] for the log's envelope and at [`body`] for the list of frame kinds. [`hook`] and [`tool`] define what
//! extensions may decide and do, [`registry`] what a turn is pinned to, [`effect`] what the kernel may ask of the
//! outside. [`manifest`] reads `manifest.yaml`. [`problem`] has the stable `HF-` codes.
//!
//! Use this crate for a type that two layers share. Do not put I/O here, nor a decision: decisions belong to the kernel.

mod extension;
mod frames;
mod session;
mod values;

pub mod log;
pub mod manifest;
pub mod problem;
pub mod protocol;
pub mod remote;
pub mod wire;

pub use extension::{
    budgets, discovery, exports, hook, host_call, matcher, names, registry, role, sandbox, tool,
};
pub use frames::{body, frame, session_frames, snapshot, system_frames};
pub use session::{agents, channel_question, context, effect, limits, message};
pub use values::{attachment, content, digest, ids, schema, text};
pub(crate) use values::{canonical, event_json};

/// The serialiser, for crates that may depend on nothing but this one.
pub use serde;
