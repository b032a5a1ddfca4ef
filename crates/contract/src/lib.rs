//! The words every other crate speaks: frames, roles, hook points, manifests, wire messages, error codes.
//!
//! Start at [`frame`] for the log's envelope and at [`body`] for the list of frame kinds. [`hook`] and [`tool`] say what
//! extensions may decide and do, [`registry`] what a turn is pinned to, [`effect`] what the kernel may ask of the
//! outside. [`manifest`] reads `manifest.yaml`. [`problem`] holds the stable `HF-` codes.
//!
//! Use this crate for a type that two layers share. Do not put I/O here, nor a decision: those live in the kernel.

pub mod agents;
pub mod attachment;
pub mod body;
pub mod budgets;
mod canonical;
pub mod content;
pub mod context;
pub mod digest;
pub mod discovery;
pub mod effect;
mod event_json;
pub mod exports;
pub mod frame;
pub mod hook;
pub mod host_call;
pub mod ids;
pub mod limits;
pub mod log;
pub mod manifest;
pub mod matcher;
pub mod message;
pub mod names;
mod plain;
pub mod problem;
pub mod protocol;
pub mod registry;
pub mod role;
pub mod sandbox;
pub mod schema;
mod session_choices;
pub mod session_frames;
pub mod snapshot;
pub mod system_frames;
pub mod tool;
pub mod wire;

/// The serialiser, for crates that may depend on nothing but this one.
pub use serde;
