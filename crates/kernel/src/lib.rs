//! The kernel: two pure state machines that decide everything. No clock, no file, no socket, no thread, no random, no async.
//!
//! [`Session`] runs one conversation: turns, hooks, tools, approvals, limits. [`System`] runs the one stream behind them all:
//! registries, lifecycles, generations, schedules. Both do one thing: `step(Input) -> Effects`. An input that fits is
//! recorded as a frame and followed by the frames and acts it leads to; one that does not is refused and changes nothing. The
//! machines number their frames themselves, so feeding a stream's facts to a fresh machine gives the stream's decisions again.
//!
//! Where to look: `session/turn.rs` has the states of a turn, `session/call.rs` those of a tool call, `session/pipeline.rs` the order of
//! hook points, `hook_round.rs` how answers of hooks are combined, `session/recovery.rs` what a crash leads to; `system/reconcile.rs`
//! starts and stops extensions in order, `registry.rs` ranks what they register, `system/outages.rs` keeps the hooks of those that judge
//! and are down. `limits.rs` has the arithmetic of limits, `barrier.rs` what must be durable first.

mod barrier;
mod hook_round;
pub mod limits;
mod phase;
pub mod registry;
mod session;
mod step_recorder;
mod system;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod limits_tests;
#[cfg(test)]
mod outages_tests;
#[cfg(test)]
mod registry_tests;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod system_tests;

pub use barrier::barrier;
pub use holdfast_contract::effect::Pending;
pub use holdfast_contract::system_frames::ExtensionView;
pub use hook_round::HookAnswers;
pub use session::Session;
pub use system::{ExpectedExtension, System};

/// The behaviour version. It changes whenever the same facts would give other decisions, and every recorded session names the
/// one it was made with.
pub const BEHAVIOUR: u32 = 9;
