//! The durable bus: an event that was acknowledged is on disk, and reaches every subscriber at least once.
//!
//! Start at [`Bus`], the handle, and [`Subscription`], what a subscriber asks for. An event's way: `publish` checks it and finds who
//! it is for, `state` gives it its place in a partition of the log and each subscriber a row, both in one transaction; when that is on
//! disk the `dispatcher` hands it to the handlers, and `record` writes the outcome. `queue` is one subscriber's order of
//! events, a plain data structure. `load` takes up what the process before left, `dead_letters` and `retention` look after what was
//! given up or is no longer needed.
//!
//! Use this crate for what must survive a restart and may have several takers. Do not use it where a call would do: hooks, tools and
//! context providers are called, not messaged. Who subscribes, and what a handler does, is the runtime's to say.

mod bus;
mod dead_letters;
mod delivery;
mod dispatcher;
mod event;
mod load;
mod mixed;
mod outside;
mod pattern;
mod publish;
mod queue;
mod record;
mod retention;
mod state;
mod status;
mod subscription;
pub mod topics;

pub use bus::{Bus, BusSettings};
pub use dead_letters::DeadLetter;
pub use event::{BusEvent, Delivery, EventId, NewEvent, Published, streams};
pub use outside::{Clock, Entropy};
pub use pattern::Pattern;
pub use retention::CollectedEvents;
pub use status::{BusSnapshot, SubscriberStatus};
pub use subscription::{EventHandler, RetryBackoff, Subscription};
