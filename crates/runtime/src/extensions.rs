//! Extensions as the runtime knows them: what is missing, and what went wrong.
//!
//! | file | contents |
//! |---|---|
//! | `outages.rs` | gates and guardrails that are not active, and how long a turn waits for them |
//! | `diagnosis.rs` | recent faults of extensions, from the system stream |

pub mod diagnosis;
mod outages;

pub(crate) use outages::START_WAIT;
