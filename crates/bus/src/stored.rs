//! Events in the log.
//!
//! - `load`: rebuilds the queues at startup
//! - `dead_letters`: lists, retries and discards dead letters
//! - `history`: the events by topic, for a person
//! - `retention`: deletes expired events

pub(crate) mod dead_letters;
pub(crate) mod history;
pub(crate) mod load;
pub(crate) mod retention;
