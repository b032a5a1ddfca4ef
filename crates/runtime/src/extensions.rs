//! Extensions as the runtime knows them: their generations and instances, the registry in force, missing gates, recent faults.
//!
//! | file | contents |
//! |---|---|
//! | `generations.rs` | what was found, loaded and is active, and entering a generation for a call |
//! | `active_registry.rs` | the registry that new turns start on |
//! | `startup.rs` | extensions that are starting or prepared for it, and how long turns and calls wait for them |
//! | `outages.rs` | gates and guardrails that are not active, and how long a turn waits for them |
//! | `diagnosis.rs` | recent faults of extensions, from the system stream |
//! | `management.rs` | what a user does with an installed extension: enable, disable, reload, remove |
//! | `changes.rs` | what is reported to the system about extensions, and what follows from a change of state |

mod active_registry;
mod changes;
pub mod diagnosis;
mod generations;
mod management;
mod outages;
mod startup;

#[cfg(test)]
mod startup_tests;

pub(crate) use active_registry::ActiveRegistry;
pub(crate) use changes::crash_in;
pub(crate) use generations::{Extensions, named_in};
pub(crate) use outages::START_WAIT;
pub use startup::Preparations;
pub(crate) use startup::{PINNED_WAIT, StartWait};
