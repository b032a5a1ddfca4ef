//! Recorded streams: rebuilding a machine, forking, erasing and collecting, and reading what a turn created.
//!
//! | file | contents |
//! |---|---|
//! | `machine.rs` | what the session machine and the system machine have in common |
//! | `rebuild.rs` | a machine from its snapshot and the frames after it |
//! | `fork.rs` | a session's copy under another id |
//! | `session_start.rs` | what a session began with, also once its first frame was collected |
//! | `retention.rs` | collecting frames of a log in use, at once and every day |
//! | `upkeep.rs` | erasing content, and collecting frames past their retention |
//! | `conversations.rs` | sessions with titles and projects, as extensions see them |
//! | `threads.rs` | the host calls about them |
//! | `artifacts.rs` | files that turns created |
//! | `log_search.rs` | the last frame of a kind before a frame |

pub(crate) mod artifacts;
pub(crate) mod conversations;
pub(crate) mod fork;
mod log_search;
mod machine;
pub mod rebuild;
mod retention;
mod session_start;
mod threads;
pub mod upkeep;

pub(crate) use log_search::find_last_before;
pub use machine::Machine;
pub use retention::CollectionReport;
pub use session_start::recorded_start;
pub(crate) use session_start::session_start;
