//! The durable frame log: every stream is a hash chain, and all streams are in one SQLite file.
//!
//! Start at [`Store`], the handle, and [`StreamLog`], a stream that is open for appending.
//!
//! - `write/`: from a draft to a row on disk: the queue, the writer thread with its group commits, hash chaining, and
//!   atomic appends to several streams
//! - `reader`: frames, bodies and snapshots
//! - `tables/`: the file's format: rows, blobs, objects, delivery rows, schema and migrations
//! - `verify`: checks that frames are what was written
//! - `maintenance/`: erases, deletes and backs up; only what the system stream records as decided
//! - `failure`, `system_error`: errors of SQLite as problems
//!
//! Use this crate to store frames and read them back. Do not interpret frames here: the kernel decides what they mean, and the
//! runtime when to erase, anchor or collect.

mod failure;
mod maintenance;
mod reader;
mod stats;
mod store;
mod system_error;
mod tables;
mod verify;
mod write;

pub use maintenance::upkeep::{Collected, Retention, copy_database};
pub use reader::StreamInfo;
pub use stats::Stats;
pub use store::{Store, StoreOptions};
pub use tables::deliveries::{Change, DeliveryRow, DeliveryState, SubscriberKey};
pub use tables::migrations::Migration;
pub use tables::objects::ObjectKind;
pub use tables::schema::VERSION;
pub use verify::finding::{FindingKind, LogFinding};
pub use write::atomic_append::{CommitPriority, Prepared, PreparedBody, StreamPart};
pub use write::head_file::LostFrames;
pub use write::receipt::Receipt;
pub use write::stream::{Head, StreamLog};
