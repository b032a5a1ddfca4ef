//! The durable bus: an acknowledged event is on disk and reaches every subscriber at least once.
//!
//! Start at [`Bus`], the handle, and [`Subscription`], what a subscriber asks for.
//!
//! - `publish`: checks events and finds their subscribers
//! - `state`: all state in memory, under one lock; gives an event its sequence number and each subscriber a delivery row, which
//!   are written in one transaction
//! - `dispatch/`: delivers events that are on disk to the handlers and records the outcomes
//! - `stored/`: events in the log: loading at startup, dead letters, retention
//! - `event`, `pattern`, `topics`, `subscription`, `status`: the types
//! - `outside`: clock and random numbers, which the caller provides
//!
//! Use this crate for messages that must survive a restart and may have several receivers. Do not use it where a call is enough:
//! hooks, tools and context providers are called. The runtime decides who subscribes and what a handler does.

mod bus;
mod dispatch;
mod event;
mod outside;
mod pattern;
mod publish;
mod state;
mod status;
mod stored;
mod subscription;
pub mod topics;

pub use bus::{Bus, BusSettings};
pub use event::{BusEvent, Delivery, EventId, NewEvent, Published, streams};
pub use outside::{Clock, Entropy, SteadyTime};
pub use pattern::Pattern;
pub use status::{BusSnapshot, SubscriberStatus};
pub use stored::dead_letters::DeadLetter;
pub use stored::history::{DeliveryProgress, EventHistory, TopicStatus};
pub use stored::retention::CollectedEvents;
pub use subscription::{EventFilter, EventHandler, Overflow, RetryBackoff, Subscription};
