//! Use this crate for checking a log: [`replay()`] feeds a recorded stream to a fresh machine and compares every frame, [`trial`] asks
//! what another build or another policy would have decided, [`verify()`] proves that every decision is covered. It does not write
//! to the log, and it does not run models or the clock: what they gave is taken from the record.
//!
//! | file | contents |
//! |---|---|
//! | `replay.rs` | replay of one stream, strict or from the log only |
//! | `replay/reexecute.rs` | what strict replay runs again, and the host that answers it from the record |
//! | `replay/what_if.rs` | what-if trials on recorded sessions |
//! | `verify.rs` | verification beyond the integrity checks of the store |
//! | `verify/coverage.rs`, `verify/registries.rs` | gate coverage, and gates that a registry lacks |

mod replay;
mod verify;

pub use replay::{Divergence, JudgedCall, Mode, ReplayVerdict, WhatIfCandidate, WhatIfReport, replay, trial};
pub use verify::{VerificationFinding, VerificationReport, verify};
