//! The durable frame log: every stream a hash chain, all of them in one SQLite file.
//!
//! Start at [`Store`], the handle, and [`StreamLog`], a stream open for appending. A frame's way to disk: `stream` takes a draft
//! from the deciding thread, `queue` holds it without a system call, `writer` has it chained by `seal`
//! and commits it with everything else that is queued, and tells those who wait. `rows` is the form a frame has on disk, `blobs` and
//! `objects` the content-addressed data beside it, `schema` and `migrations` the file itself.
//!
//! Where frames and rows belong together, `atomic_append` writes them in one transaction, `receipt` says when they are on disk, and
//! `deliveries` holds the rows: what of a stream is still owed to whom.
//!
//! The way back: `reader` for frames, bodies and snapshots, `verify` with `finding` for whether they are what was written.
//! `upkeep` erases, collects and backs up, `sweep` removes unused objects; both act only on what `evidence` finds
//! recorded in the system stream.
//!
//! Use this crate to keep frames and get them back. Do not put meaning here: what frames imply is the kernel's to say, and when to
//! erase, anchor or collect is the runtime's.

mod atomic_append;
mod blobs;
mod deliveries;
mod derived;
mod evidence;
mod failure;
mod finding;
mod migrations;
mod objects;
mod queue;
mod reader;
mod receipt;
mod rows;
mod schema;
mod seal;
mod stats;
mod store;
mod stream;
mod sweep;
mod system_error;
mod upkeep;
mod verify;
mod writer;

pub use atomic_append::{CommitPriority, Prepared, PreparedBody, StreamPart};
pub use deliveries::{Change, DeliveryRow, DeliveryState, SubscriberKey};
pub use finding::{FindingKind, LogFinding};
pub use migrations::Migration;
pub use objects::ObjectKind;
pub use reader::StreamInfo;
pub use receipt::Receipt;
pub use schema::VERSION;
pub use stats::Stats;
pub use store::{Store, StoreOptions};
pub use stream::{Head, StreamLog};
pub use upkeep::{Collected, Retention};
