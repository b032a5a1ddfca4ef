//! What tests are made of: a lab that runs the real runtime with a scripted model, a fake clock and a lane that keeps a ledger.
//!
//! [`Lab`] is where a scenario happens. [`Script`] says what the model answers, [`pieces`] makes tools and hooks of one line
//! each, [`story`] prints a stream the way golden files keep it, [`disk`] is a simulated disk that can lose power,
//! [`terminal`] is a pseudo-terminal, and [`wasm`] makes components from text.
//!
//! Use this crate from tests and benches only; no product crate depends on it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

#[cfg(feature = "lab")]
pub mod clock;
pub mod disk;
#[cfg(feature = "lab")]
pub mod history;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "lab")]
pub mod ledger;
#[cfg(feature = "lab")]
pub mod pieces;
#[cfg(feature = "lab")]
pub mod story;
#[cfg(feature = "lab")]
pub mod terminal;
#[cfg(feature = "lab")]
pub mod wasm;

#[cfg(feature = "lab")]
pub use clock::FakeClock;
#[cfg(feature = "lab")]
pub use holdfast_model::script::{Script, ScriptStep};
#[cfg(feature = "lab")]
pub use lab::{Lab, LabBuilder};
#[cfg(feature = "lab")]
pub use ledger::{EffectLedger, RecordingLane};
