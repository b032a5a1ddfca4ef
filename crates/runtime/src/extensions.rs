//! Extensions as the runtime knows them: their generations and instances, the registry in force, missing gates, recent faults.
//!
//! | file | contents |
//! |---|---|
//! | `generations.rs` | what was found, loaded and is active, and entering a generation for a call |
//! | `active_registry.rs` | the registry that new turns start on |
//! | `outages.rs` | gates and guardrails that are not active, and how long a turn waits for them |
//! | `diagnosis.rs` | recent faults of extensions, from the system stream |
//! | `changes.rs` | what is reported to the system about extensions, and what follows from a change of state |

mod active_registry;
mod changes;
pub mod diagnosis;
mod generations;
mod outages;

pub(crate) use active_registry::ActiveRegistry;
pub(crate) use changes::crash_in;
pub(crate) use generations::Extensions;
pub(crate) use outages::START_WAIT;
